//! [`IneffectiveOrder`]: a call that stands where one is missing, and does not do what is missing.

use std::fmt;

use onesided::At;
use onesided::backend::{Collective, CollectiveKind, Effect, Order};

use super::missing::MissingEdge;
use super::report::Race;
use crate::trace::{Event, EventKind};

/// A quiet, flush or fence between the two accesses of a [`Race`] that does not order them, or a wait for an event. It is looked for in recorded
/// runs, on the PE that issued the first access, and the last such call counts. (NVSHMEM, "Memory Ordering".)
///
/// ```
/// use onesided::{Backend, Cmp, Pe, Result, SignalOp};
/// use onesided_sim::{IneffectiveReason, refute};
///
/// /// The host's quiet is not about what a stream has issued.
/// fn message(pe: &Pe<impl Backend>) -> Result<()> {
///     let (data, from) = (pe.alloc_zeroed::<u32>(1)?, pe.alloc_zeroed::<u32>(1)?);
///     let flag = pe.alloc_zeroed::<u64>(1)?;
///     if pe.my_pe() == 0 {
///         let stream = pe.stream()?;
///         pe.on(&stream).put(&data, &from, 1)?;
///         pe.synchronize(&stream)?;
///         pe.host().quiet()?;
///         pe.host().signal_op(flag.signal(0), 1, SignalOp::Set, 1)?;
///     } else {
///         pe.host().signal_wait_until(flag.signal(0), Cmp::Eq, 1)?;
///         pe.read(&data)?;
///     }
///     pe.free(flag)?;
///     pe.free(from)?;
///     pe.free(data)
/// }
///
/// let run = refute(2, message);
/// assert_eq!(run.verdict.races[0].ineffective.unwrap().reason, IneffectiveReason::Scope);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct IneffectiveOrder {
    /// The call.
    pub call: &'static str,
    /// Its line.
    pub at: At,
    /// The stream that it is on; `None` for the host.
    pub stream: Option<usize>,
    /// Why it does not order them.
    pub reason: IneffectiveReason,
}

/// Why a call does not order what it seems to order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum IneffectiveReason {
    /// It is about what the host has issued, and a stream has issued the access; or the other way round.
    Scope,
    /// It is a flush of another stream: a flush is about its own stream only.
    Stream,
    /// It is a fence: it orders deliveries to one PE, and completes nothing.
    Fence,
    /// Another quiet had claimed the non-blocking operation before, and only that one completes it.
    Claimed,
    /// It waits for an event that had not been recorded when it was called: it waits for nothing, as CUDA has it.
    Unrecorded,
}

impl Race {
    /// Looks in the trace of the run for a call that seems to do what is missing.
    pub(crate) fn find_ineffective_order(&mut self, trace: &[Event]) {
        self.ineffective = ineffective(self, trace);
    }
}

fn ineffective(race: &Race, trace: &[Event]) -> Option<IneffectiveOrder> {
    use MissingEdge::{Fence, Flush, Quiet, Synchronize};
    let first = &race.first;
    if let Synchronize { .. } = race.missing
        && let Some(wait) = unrecorded(race, trace)
    {
        return Some(wait);
    }
    let is_about_order =
        matches!(race.missing, Quiet { .. } | Flush { .. } | Fence { .. } | Synchronize { quiet: true, .. });
    if !is_about_order || first.thread.is_some() {
        return None; // kernels have scopes of their own
    }
    let is_first = |event: &Event| {
        (event.pe as usize, event.stream.map(|stream| stream as usize)) == (first.pe, first.stream)
            && (event.at, event.step) == (first.at, first.step)
            && matches!(event.kind, EventKind::Op { .. })
    };
    let from = trace.iter().position(is_first)? + 1;
    let (_, _, before) = race.missing.call();
    let of_the_pe = trace
        .iter()
        .enumerate()
        .skip(from)
        .filter(|(_, event)| event.pe as usize == first.pe && event.thread.is_none());
    let until =
        of_the_pe.take_while(|(_, event)| event.step <= race.second.step && (event.at != before || event.of.is_some()));
    let mut claimed = None; // since when, by others of the PE
    let orders = until.filter_map(|(number, event)| {
        let (op, stream) = match &event.kind {
            EventKind::Op { op, .. } => (op, event.stream),
            EventKind::Enqueued { op, stream, .. } => (op, Some(*stream)),
            _ => return None,
        };
        let stream = stream.map(|stream| stream as usize);
        if stream != first.stream && claims(op.effect()) {
            claimed.get_or_insert(number);
        }
        let EventKind::Op { .. } = event.kind else { return None };
        let Effect::Order(order) = op.effect() else { return None };
        let reason = match order {
            _ if stream.is_some() != first.stream.is_some() => IneffectiveReason::Scope,
            Order::Flush if stream != first.stream => IneffectiveReason::Stream,
            _ if stream != first.stream => return None,
            Order::Fence if matches!(race.missing, Fence { .. }) => return None,
            Order::Fence => IneffectiveReason::Fence,
            // it claims what is left when it is called, whenever its stream comes to it
            Order::Quiet if claimed.is_some_and(|claimed| claimed < event.of.unwrap_or(number)) => {
                IneffectiveReason::Claimed
            }
            Order::Quiet => return None, // it comes too late
            Order::Flush => return None,
        };
        Some(IneffectiveOrder { call: op.name(), at: event.at, stream, reason })
    });
    orders.last()
}

/// Whether an operation claims what its PE has outstanding.
fn claims(effect: Effect) -> bool {
    match effect {
        Effect::Order(order) => order != Order::Flush,
        Effect::Collective(Collective { kind: CollectiveKind::Barrier, .. }) => true,
        _ => false,
    }
}

/// The last wait for an event by whoever made the second access, if that waited for nothing.
fn unrecorded(race: &Race, trace: &[Event]) -> Option<IneffectiveOrder> {
    let second = &race.second;
    let is_second = |event: &Event| {
        (event.pe as usize, event.stream.map(|stream| stream as usize)) == (second.pe, second.stream)
            && event.step < second.step
    };
    let mut waits = trace.iter().enumerate().filter(|(_, event)| is_second(event)).filter_map(|(number, event)| {
        let call = match event.kind {
            EventKind::Call(call @ "synchronize_event") => call,
            EventKind::Call(call @ "wait_event") if event.stream.is_some() => call, // of the host, it is enqueued
            _ => return None,
        };
        Some((number, call, event.at))
    });
    let (number, call, at) = waits.next_back()?;
    let is_over = |event: &Event| event.of == Some(number) && matches!(event.kind, EventKind::Returned { .. });
    let is_ineffective = !trace[number..].iter().any(is_over);
    is_ineffective.then_some(IneffectiveOrder {
        call,
        at,
        stream: second.stream,
        reason: IneffectiveReason::Unrecorded,
    })
}

impl fmt::Display for IneffectiveOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let IneffectiveOrder { call, at, stream, reason } = self;
        write!(f, "the {call} at {at} ")?;
        match (reason, stream) {
            (IneffectiveReason::Scope, None) => f.write_str("is the host's, and is not about what streams have issued"),
            (IneffectiveReason::Scope, Some(_)) => {
                f.write_str("is a stream's, and is not about what the host has issued")
            }
            (IneffectiveReason::Stream, _) => f.write_str("is on another stream, and is about that one only"),
            (IneffectiveReason::Fence, _) => f.write_str("completes nothing: it orders what goes to one PE"),
            (IneffectiveReason::Unrecorded, _) => {
                f.write_str("waits for nothing: its event had not been recorded when it was called")
            }
            (IneffectiveReason::Claimed, _) => {
                f.write_str("does not wait for it: another quiet had claimed it before, and completes it later")
            }
        }
    }
}
