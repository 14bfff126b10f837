//! What a recorded run keeps: the trace, and who in it belongs to whom.
//!
//! Everything here is cold: nothing of it is called unless the run is recorded. An event is noted before the step that it is
//! about, because values that are read are those of before the step.
//!
//! This file keeps the trace and adds events to it. `record/calls.rs` says what calls and operations are as events, `record/ends.rs` what
//! their ends are, and `record/transfers.rs` what becomes of transfers and collectives.

mod calls;
mod ends;
mod transfers;

use std::collections::{BTreeMap, VecDeque};

use onesided::{At, DType};

use super::Machine;
use super::ids::{AgentId, PeId, TeamIndex};
use super::kernel::Accesses;
use crate::trace::{Event, EventKind, LastRead, Made, Moved, name_origins, name_what_ended_waits};

/// A recorded run so far.
#[derive(Debug, Default)]
pub(super) struct Record {
    pub(super) trace: Vec<Event>,
    /// The event of each agent's last call, or of a stream's last operation.
    calls: BTreeMap<AgentId, usize>,
    /// The last event of each agent.
    last: BTreeMap<AgentId, usize>,
    /// The calls that enqueued what a stream has not started.
    enqueued: BTreeMap<AgentId, VecDeque<usize>>,
    /// The event of the call that issued a transfer, by the transfer's name, and the type of what moves.
    issued: BTreeMap<u64, (usize, DType)>,
    /// The first entry into a collective, and the entries of its members.
    meetings: BTreeMap<(TeamIndex, u32), usize>,
    entries: BTreeMap<(TeamIndex, u32, u32), usize>,
    /// Where a stream reached a record of an event, by PE, event and number of the record.
    reached: BTreeMap<(PeId, u32, usize), usize>,
    /// What kernels have accessed by themselves.
    pub(super) accesses: Accesses,
}

impl Record {
    /// The trace, and what a PE that failed has read last.
    pub(super) fn into_trace(mut self, made: Made<'_>, failed: Option<usize>) -> (Vec<Event>, Vec<LastRead>) {
        name_what_ended_waits(&mut self.trace);
        let reads = name_origins(&mut self.trace, made, failed);
        (self.trace, reads)
    }

    /// The step in which a transfer of this name was issued, if its PE's host or stream has issued others by that line before.
    pub(super) fn issued_again(&self, key: u64) -> Option<u64> {
        let (of, _) = *self.issued.get(&key)?;
        let Event { at, pe, stream, step, .. } = self.trace[of];
        let issues =
            |kind: &EventKind| matches!(kind, EventKind::Op { .. } | EventKind::Write { .. } | EventKind::Loads { .. });
        let is_same = |event: &Event| issues(&event.kind) && (event.at, event.pe, event.stream) == (at, pe, stream);
        self.trace[..of].iter().any(is_same).then_some(step)
    }

    fn call_of(&self, agent: AgentId) -> Option<usize> {
        self.calls.get(&agent).copied()
    }

    fn number_of_last(&self) -> usize {
        self.trace.len() - 1
    }
}

/// # Events
impl Machine {
    /// The record of a run that is recorded.
    fn recorded(&mut self) -> &mut Record {
        self.record.as_mut().expect("the run is recorded")
    }

    /// Every PE is initialized where the run begins.
    pub(super) fn record_init(&mut self, at: At) {
        for pe in self.pes.ids() {
            self.record_named(self.pes[pe].host, "init", at);
        }
    }

    /// A call that the machine makes for a host.
    pub(super) fn record_named(&mut self, host: AgentId, name: &'static str, at: At) {
        if self.record.is_some() {
            self.note_call(host, EventKind::Call(name), at, None);
        }
    }

    /// Adds the call that an agent performs now.
    fn note_call(&mut self, agent: AgentId, kind: EventKind, at: At, moved: Option<Moved>) -> &mut Event {
        let record = self.recorded();
        record.calls.insert(agent, record.trace.len());
        let event = self.note_by(agent, kind, at);
        event.moved = moved;
        event
    }

    /// Adds a step of what an agent's call does, which happens with the call.
    fn note_at_once(&mut self, agent: AgentId, kind: EventKind, at: At, moved: Moved) {
        let (pe, of) = (self.agents[agent].pe, self.recorded().call_of(agent));
        let event = self.note(pe, None, kind, at);
        (event.of, event.moved, event.implied) = (of, Some(moved), true);
    }

    /// Adds an event of an agent.
    pub(super) fn note_by(&mut self, agent: AgentId, kind: EventKind, at: At) -> &mut Event {
        let (pe, stream, thread) = (self.agents[agent].pe, self.agents[agent].stream(), self.thread_of(agent));
        let record = self.recorded();
        record.last.insert(agent, record.trace.len());
        let event = self.note(pe, stream, kind, at);
        event.thread = thread;
        event
    }

    /// Adds an event.
    fn note(&mut self, pe: PeId, stream: Option<u32>, kind: EventKind, at: At) -> &mut Event {
        let (step, pe) = (self.steps, pe.0);
        let (thread, of, moved, unwritten, implied) = (None, None, None, None, false);
        let trace = &mut self.recorded().trace;
        trace.push(Event { step, pe, stream, thread, kind, at, of, moved, unwritten, implied });
        trace.last_mut().expect("just added")
    }
}
