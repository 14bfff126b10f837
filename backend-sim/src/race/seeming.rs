//! Calls that seem to order the two accesses of a race, looked for in the trace of its run.

use onesided::At;
use onesided::backend::{Collective, CollectiveKind, Effect, Op, Order};

use super::ineffective::{IneffectiveOrder, IneffectiveReason};
use super::missing::MissingEdge;
use super::report::{Access, Race};
use crate::trace::{Event, EventKind};

impl Race {
    /// Looks for a call that seems to do what is missing. If the stream has a quiet already,
    /// none is missing: what is missing is a wait for its end.
    pub(crate) fn find_ineffective_order(&mut self, trace: &[Event]) {
        let calls = Calls { race: self, trace };
        let (ineffective, has_quiet) = (calls.ineffective(), calls.quiet_of_the_stream());
        if let (None, Some(at), MissingEdge::Synchronize { after, quiet, .. }) =
            (ineffective, has_quiet, &mut self.missing)
        {
            (*after, *quiet) = (at, false);
        }
        self.ineffective = ineffective;
    }
}

/// A PE, and which of its streams; `None` for the host.
type Who = (usize, Option<usize>);

fn who(event: &Event) -> Who {
    (event.pe as usize, event.stream.map(|stream| stream as usize))
}

/// The calls of a run that has the race. A number is that of an event in the trace.
#[derive(Clone, Copy)]
struct Calls<'a> {
    race: &'a Race,
    trace: &'a [Event],
}

/// A wait for an event.
struct Wait {
    call: &'static str,
    at: At,
    by: Who,
    /// Whether it had something to wait for, and that came.
    is_over: bool,
    /// What it waited for: the step of a stream that records the event.
    record: Option<usize>,
}

impl<'a> Calls<'a> {
    fn ineffective(self) -> Option<IneffectiveOrder> {
        let [first, second] = [&self.race.first, &self.race.second];
        let either = |look: &dyn Fn(&Access, &Access) -> Option<IneffectiveOrder>| {
            look(first, second).or_else(|| look(second, first))
        };
        match self.race.missing {
            MissingEdge::Synchronize { quiet, .. } => self
                .unrecorded()
                .or_else(|| either(&|access, other| self.recorded_too_early(access, other)))
                .or_else(|| quiet.then(|| self.order()).flatten()),
            MissingEdge::Quiet { .. } | MissingEdge::Flush { .. } | MissingEdge::Fence { .. } => {
                self.recorded_before_an_order().or_else(|| self.order())
            }
            MissingEdge::Barrier { .. } => either(&|access, other| self.signal_beside(access, other)),
            _ => None,
        }
    }

    /// The last call that orders or completes something, and not the first access.
    fn order(self) -> Option<IneffectiveOrder> {
        let first = &self.race.first;
        let mut claimed = None; // since when, by others of the PE
        let issue = self.issue_of(first)?;
        let orders = self.behind(issue).chain(self.barrier_behind(issue)).filter_map(|(number, event)| {
            let (op, stream) = operation(event)?;
            let order = order_of(op.effect())?;
            if stream != first.stream && order != Order::Flush {
                claimed.get_or_insert(number);
            }
            let EventKind::Op { .. } = event.kind else { return None };
            let reason = match order {
                _ if stream.is_some() != first.stream.is_some() => IneffectiveReason::Scope,
                Order::Flush if stream != first.stream => IneffectiveReason::Stream,
                _ if stream != first.stream => return None,
                Order::Fence if matches!(self.race.missing, MissingEdge::Fence { .. }) => return None,
                Order::Fence => IneffectiveReason::Fence,
                // it claims what is left when it is called, whenever its stream comes to it
                Order::Quiet if claimed.is_some_and(|claimed| claimed < self.call_of(number)) => {
                    IneffectiveReason::Claimed
                }
                Order::Quiet => return None, // it comes too late
                Order::Flush => return None,
            };
            Some(IneffectiveOrder { call: op.name(), at: event.at, stream, reason })
        });
        orders.last()
    }

    /// A quiet of the stream behind the first access, before the line that the end of the stream is missing before.
    fn quiet_of_the_stream(self) -> Option<At> {
        let first = &self.race.first;
        let MissingEdge::Synchronize { after, quiet: true, .. } = self.race.missing else { return None };
        let call = self.call_of(self.issue_of(first).filter(|_| after == first.at)?);
        let quiets = self.behind(call).filter(|(_, event)| {
            matches!(event.kind, EventKind::Enqueued { .. })
                && operation(event)
                    .is_some_and(|(op, stream)| stream == first.stream && op.effect() == Effect::Order(Order::Quiet))
        });
        quiets.map(|(_, event)| event.at).next()
    }

    /// The last wait for an event by whoever made the second access, if that waited for nothing.
    fn unrecorded(self) -> Option<IneffectiveOrder> {
        let Wait { call, at, by: (_, stream), is_over, .. } = self.waits_of(&self.race.second).last()?;
        let reason = IneffectiveReason::Unrecorded;
        (!is_over).then_some(IneffectiveOrder { call, at, stream, reason })
    }

    /// The last wait for an event by whoever made the one access, if a stream had recorded that before the call that made the other.
    fn recorded_too_early(self, on_stream: &Access, waits: &Access) -> Option<IneffectiveOrder> {
        let access = self.call_of(self.issue_of(on_stream)?);
        let Wait { call, at, by: (_, stream), record, .. } = self.waits_of(waits).last()?;
        let record = record.filter(|&record| who(&self.trace[record]) == (on_stream.pe, on_stream.stream))?;
        let reason = IneffectiveReason::Recorded { record: self.trace[record].at, before: on_stream.at };
        (self.call_of(record) < access).then_some(IneffectiveOrder { call, at, stream, reason })
    }

    /// A wait for an event that the stream recorded behind the first access, and before what orders that.
    fn recorded_before_an_order(self) -> Option<IneffectiveOrder> {
        let first = &self.race.first;
        first.stream?;
        let access = self.call_of(self.issue_of(first)?);
        let orders = self.behind(access).filter(|(_, event)| {
            matches!(event.kind, EventKind::Enqueued { .. })
                && operation(event).is_some_and(|(op, on)| on == first.stream && order_of(op.effect()).is_some())
        });
        let (order, before) = orders.map(|(number, event)| (number, event.at)).next()?;
        self.waits().find_map(|Wait { call, at, by: (pe, stream), record, .. }| {
            let record = record.filter(|&record| who(&self.trace[record]) == (first.pe, first.stream))?;
            let is_between = (access..order).contains(&self.call_of(record));
            let reason = IneffectiveReason::Recorded { record: self.trace[record].at, before };
            (pe == first.pe && is_between).then_some(IneffectiveOrder { call, at, stream, reason })
        })
    }

    /// The last signal that somebody has waited for before an access, if it was sent by the PE that made the other access, behind that, and by
    /// another of its streams than the one that did.
    fn signal_beside(self, sent: &Access, waits: &Access) -> Option<IneffectiveOrder> {
        let access = self.call_of(self.issue_of(sent)?);
        let is_end = |event: &&Event| who(event) == (waits.pe, waits.stream) && event.step <= waits.step;
        let mut ends = self.trace.iter().filter(is_end).filter_map(|event| match event.kind {
            EventKind::Returned { variable: Some(_), by: Some(by), .. } => Some(self.call_by(by)),
            _ => None,
        });
        let signal = ends.next_back()?;
        let event = &self.trace[signal];
        let EventKind::Op { op, .. } = &event.kind else { return None };
        let (pe, stream) = who(event);
        let is_beside = pe == sent.pe && stream != sent.stream && stream.is_some() && sent.stream.is_some();
        let is_behind = self.call_of(signal) > access;
        let reason = IneffectiveReason::Unordered;
        (is_beside && is_behind).then_some(IneffectiveOrder { call: op.name(), at: event.at, stream, reason })
    }
}

/// # What is read from the trace
impl<'a> Calls<'a> {
    /// The event that issued an access of a host or stream. Kernels have scopes of their own.
    fn issue_of(self, access: &Access) -> Option<usize> {
        let is_it = |event: &Event| {
            who(event) == (access.pe, access.stream)
                && (event.at, event.step) == (access.at, access.step)
                && matches!(event.kind, EventKind::Op { .. })
        };
        if access.thread.is_some() { None } else { self.trace.iter().position(is_it) }
    }

    /// The call of the host that an event belongs to. Calls of one PE are numbered in the order of the program.
    fn call_of(self, number: usize) -> usize {
        self.trace[number].of.unwrap_or(number)
    }

    /// The operation whose transfer did something, or the event itself.
    fn call_by(self, number: usize) -> usize {
        match self.trace[number].kind {
            EventKind::Signaled { .. } | EventKind::Delivered { .. } => self.call_of(number),
            _ => number,
        }
    }

    /// What the first access's PE does behind an event, up to the line before which something is missing.
    fn behind(self, number: usize) -> impl Iterator<Item = (usize, &'a Event)> {
        let Race { first, second, missing, .. } = self.race;
        let (_, _, before) = missing.call();
        let events = self.trace.iter().enumerate().skip(number + 1);
        let of_the_pe = events.filter(|(_, event)| event.pe as usize == first.pe && event.thread.is_none());
        of_the_pe.take_while(move |(_, event)| event.step <= second.step && (event.at != before || event.of.is_some()))
    }

    /// The call before which something is missing, if it is a barrier of the first access's PE: a claimed operation goes on behind it.
    fn barrier_behind(self, number: usize) -> Option<(usize, &'a Event)> {
        let (_, _, before) = self.race.missing.call();
        let events = self.trace.iter().enumerate().skip(number + 1);
        let mut calls = events.filter(|(_, event)| {
            let is_barrier = || operation(event).is_some_and(|(op, _)| is_barrier(op.effect()));
            event.pe as usize == self.race.first.pe && event.at == before && is_barrier()
        });
        calls.find(|(_, event)| matches!(event.kind, EventKind::Op { .. }))
    }

    /// The waits for events of a host or stream before an access of it.
    fn waits_of(self, access: &Access) -> impl Iterator<Item = Wait> {
        let (by, step) = ((access.pe, access.stream), access.step);
        let waits = self.trace.iter().enumerate().filter(move |(_, event)| who(event) == by && event.step < step);
        waits.filter_map(move |(number, event)| self.wait(number, event))
    }

    fn waits(self) -> impl Iterator<Item = Wait> {
        self.trace.iter().enumerate().filter_map(move |(number, event)| self.wait(number, event))
    }

    fn wait(self, number: usize, event: &Event) -> Option<Wait> {
        let call = match event.kind {
            EventKind::Call(call @ "synchronize_event") => call,
            EventKind::Call(call @ "wait_event") if event.stream.is_some() => call, // of the host, it is enqueued
            _ => return None,
        };
        let end = self.trace[number..].iter().find_map(|event| match event.kind {
            EventKind::Returned { by, .. } if event.of == Some(number) => Some(by),
            _ => None,
        });
        Some(Wait { call, at: event.at, by: who(event), is_over: end.is_some(), record: end.flatten() })
    }
}

/// The operation that was performed or enqueued, and the stream that it is on.
fn operation(event: &Event) -> Option<(&Op, Option<usize>)> {
    match &event.kind {
        EventKind::Op { op, .. } => Some((op, who(event).1)),
        EventKind::Enqueued { op, stream, .. } => Some((op, Some(*stream as usize))),
        _ => None,
    }
}

/// How an operation orders what its PE has issued. A barrier does what a quiet does.
fn order_of(effect: Effect) -> Option<Order> {
    match effect {
        Effect::Order(order) => Some(order),
        _ if is_barrier(effect) => Some(Order::Quiet),
        _ => None,
    }
}

fn is_barrier(effect: Effect) -> bool {
    matches!(effect, Effect::Collective(Collective { kind: CollectiveKind::Barrier, .. }))
}
