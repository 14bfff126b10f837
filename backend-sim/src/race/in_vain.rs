//! [`InVain`]: a quiet, flush or fence that stands where one is missing, and does not do what is missing.

use std::fmt;

use onesided::At;
use onesided::backend::{Effect, Order};

use super::missing::MissingEdge;
use super::report::Race;
use crate::trace::{Event, EventKind};

/// A quiet, flush or fence between the two accesses of a [`Race`] that does not order them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct InVain {
    /// The call.
    pub call: &'static str,
    /// Its line.
    pub at: At,
    /// The stream that it is on; `None` for the host.
    pub stream: Option<usize>,
    /// Why it does not.
    pub why: Why,
}

/// Why a call does not order what it seems to order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Why {
    /// It is about what the host has issued, and a stream has issued the access; or the other way round.
    Scope,
    /// It is a flush of another stream: a flush is about its own stream only.
    Stream,
    /// It is a fence: it orders deliveries to one PE, and completes nothing.
    Fence,
    /// Another quiet had claimed the non-blocking operation before, and only that one completes it.
    Claimed,
}

impl Race {
    /// Looks in the trace of the run for a call that seems to do what is missing.
    pub(crate) fn look_for_what_is_in_vain(&mut self, trace: &[Event]) {
        self.in_vain = in_vain(self, trace);
    }
}

fn in_vain(race: &Race, trace: &[Event]) -> Option<InVain> {
    let first = &race.first;
    if !matches!(
        race.missing,
        MissingEdge::Quiet { .. }
            | MissingEdge::Flush { .. }
            | MissingEdge::Synchronize { quiet: true, .. }
            | MissingEdge::Fence { .. }
    ) || first.thread.is_some()
    {
        return None;
    }
    let is_first = |event: &Event| {
        (event.pe as usize, event.stream.map(|stream| stream as usize)) == (first.pe, first.stream)
            && (event.at, event.step) == (first.at, first.step)
            && matches!(event.kind, EventKind::Op { .. })
    };
    let from = trace.iter().position(is_first)? + 1;
    let (_, _, before) = race.missing.call();
    let of_the_pe = trace[from..].iter().filter(|event| event.pe as usize == first.pe && event.thread.is_none());
    let until =
        of_the_pe.take_while(|event| event.step <= race.second.step && (event.at != before || event.of.is_some()));
    let orders = until.filter_map(|event| {
        let EventKind::Op { op, .. } = &event.kind else { return None };
        let Effect::Order(order) = op.effect() else { return None };
        let stream = event.stream.map(|stream| stream as usize);
        let why = match order {
            _ if stream.is_some() != first.stream.is_some() => Why::Scope,
            Order::Flush if stream != first.stream => Why::Stream,
            _ if stream != first.stream => return None,
            Order::Fence => Why::Fence,
            Order::Quiet => Why::Claimed,
            Order::Flush => return None,
        };
        let is_better = order == Order::Fence && matches!(race.missing, MissingEdge::Fence { .. }) && why == Why::Fence;
        (!is_better).then_some(InVain { call: op.name(), at: event.at, stream, why })
    });
    orders.last()
}

impl fmt::Display for InVain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let InVain { call, at, stream, why } = self;
        write!(f, "the {call} at {at} ")?;
        match (why, stream) {
            (Why::Scope, None) => f.write_str("is the host's, and is not about what streams have issued"),
            (Why::Scope, Some(_)) => f.write_str("is a stream's, and is not about what the host has issued"),
            (Why::Stream, _) => f.write_str("is on another stream, and is about that one only"),
            (Why::Fence, _) => f.write_str("completes nothing: it orders what goes to one PE"),
            (Why::Claimed, _) => {
                f.write_str("does not wait for it: another quiet had claimed it before, and completes it later")
            }
        }
    }
}
