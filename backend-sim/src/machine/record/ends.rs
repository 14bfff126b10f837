//! Streams, and ends of calls that had to wait: by what they went on.

use std::collections::VecDeque;

use onesided::backend::Span;
use onesided::{At, DType};

use super::super::Machine;
use super::super::agent::{State, Task};
use super::super::ids::{AgentId, PeId};
use crate::trace::{EventKind, Moved};

impl Machine {
    /// A call has enqueued work on a stream.
    pub(super) fn note_enqueued(&mut self, pe: PeId, stream: u32) {
        let stream = self.pes[pe].streams[stream as usize];
        let record = self.recorded();
        let number = record.number_of_last();
        record.enqueued.entry(stream).or_default().push_back(number);
    }

    /// A stream starts what was enqueued first.
    #[cold]
    pub(in crate::machine) fn record_started(&mut self, stream: AgentId, what: &Task, at: At) {
        let of = self.recorded().enqueued.get_mut(&stream).and_then(VecDeque::pop_front);
        match what {
            Task::Op { op, values, .. } => self.record_op(stream, op, &values.borrow(), of, at),
            Task::Record { .. } | Task::WaitEvent { .. } | Task::Launch(_) | Task::Look(_) => {
                let event = self.note_call(stream, EventKind::Call(what.name()), at, None);
                (event.of, event.implied) = (of, true);
            }
        }
        if let Task::Record { event, record: which } = *what {
            let pe = self.agents[stream].pe;
            let record = self.recorded();
            let number = record.number_of_last();
            record.reached.insert((pe, event, which), number);
        }
    }

    /// An agent's call is over that had to wait. A step that was merely put off did not wait.
    #[cold]
    pub(in crate::machine) fn record_return(&mut self, agent: AgentId) {
        let by = match self.agents[agent].state {
            State::Running | State::Waiting(_) => return, // a wait says itself what it saw
            State::Synchronizing { stream, .. } => self.last_of(stream),
            State::AwaitingEvent { event, record } => self.reached(agent, event, record),
            _ => None,
        };
        self.note_return(agent, None, by, None);
    }

    /// A host's call finds that what it would wait for has happened.
    pub(in crate::machine) fn record_synchronized(&mut self, host: AgentId, stream: AgentId) {
        if self.record.is_some() {
            self.note_return(host, None, self.last_of(stream), None);
        }
    }

    /// The same of a record of an event.
    pub(in crate::machine) fn record_event_reached(&mut self, agent: AgentId, event: u32, record: usize) {
        if self.record.is_some() {
            self.note_return(agent, None, self.reached(agent, event, record), None);
        }
    }

    /// A wait is over: it saw this value.
    pub(in crate::machine) fn record_waited(&mut self, agent: AgentId, variable: Span, dtype: DType, value: u64) {
        if self.record.is_some() {
            self.note_return(agent, Some(variable), None, Some(Moved::one(dtype, value)));
        }
    }

    fn note_return(&mut self, agent: AgentId, variable: Option<Span>, by: Option<usize>, moved: Option<Moved>) {
        let record = self.recorded();
        let Some(of) = record.call_of(agent) else { return };
        let at = record.trace[of].at;
        let call = match &record.trace[of].kind {
            EventKind::Call(name) => *name,
            EventKind::Op { op, .. } | EventKind::Enqueued { op, .. } => op.name(),
            EventKind::Write { .. } => "write",
            _ => "read",
        };
        let event = self.note_by(agent, EventKind::Returned { call, variable, by }, at);
        (event.of, event.moved, event.implied) = (Some(of), moved, true);
    }

    fn last_of(&self, agent: AgentId) -> Option<usize> {
        self.record.as_ref()?.last.get(&agent).copied()
    }

    fn reached(&self, agent: AgentId, event: u32, which: usize) -> Option<usize> {
        self.record.as_ref()?.reached.get(&(self.agents[agent].pe, event, which)).copied()
    }
}
