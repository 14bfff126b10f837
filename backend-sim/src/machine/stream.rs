//! Streams and events: work that runs beside the host, in its own order.

use onesided::backend::{Effect, Op, Values};
use onesided::{At, Error, ErrorKind};

use super::agent::{Agent, AgentKind, OwnedValues, State, Task, Work};
use super::claim::{Claimed, Completes, is_nbi};
use super::ids::{AgentId, PeId};
use super::past::Past;
use super::{Machine, Object, Progress, Touch};
use crate::race::{Kind, Snapshot};
use crate::request::Reply;

/// The most streams of a PE: names of transfers have room for so many.
const MAX_STREAMS: u32 = 2000;

/// One record of an event.
#[derive(Debug, Default)]
pub(crate) struct Record {
    reached: bool,
    /// Steps before it.
    past: Past,
    /// What its stream knew.
    known: Option<Snapshot>,
}

impl Task {
    /// The work as a report has it.
    pub(crate) fn in_words(&self) -> String {
        match self {
            Task::Op { op, .. } => op.to_string(),
            other => other.name().to_string(),
        }
    }

    /// The work's name in the API.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Task::Op { op, .. } => op.name(),
            Task::Record { .. } => "record",
            Task::WaitEvent { .. } => "wait_event",
            Task::Launch(_) => "launch",
            Task::Look(look) => look.call,
        }
    }
}

impl Task {
    /// Whether all members of a team take part.
    pub(crate) fn is_collective(&self) -> bool {
        matches!(self, Task::Op { op, .. } if matches!(op.effect(), Effect::Collective(_)))
    }
}

/// # Streams
impl Machine {
    /// A new stream of the PE; the reply is its number there.
    pub(super) fn new_stream(&mut self, host: AgentId, at: At) -> Progress {
        let pe = self.agents[host].pe;
        let number = self.pes[pe].streams.len() as u32;
        if number >= MAX_STREAMS {
            let message = format!("a PE has at most {MAX_STREAMS} streams in the simulator");
            return self.answer(host, Reply::Failed(Error::new(ErrorKind::Unsupported, "stream", message, at)));
        }
        let scope = self.pes[pe].stream_scope;
        let kind = AgentKind::Stream(number);
        let stream = self.agents.push_again(|agent| agent.reset(pe, kind, scope), || Agent::new(pe, kind, scope));
        self.pes[pe].streams.push(stream);
        self.races.new_agent(pe, Kind::Stream(number));
        self.answer(host, Reply::Value(u64::from(number)))
    }

    /// The host enqueues an operation.
    pub(super) fn enqueue_op(&mut self, pe: PeId, stream: u32, op: &Op, values: &Values<'_>, at: At) -> Progress {
        let agent = self.pes[pe].streams[stream as usize];
        let completes = self.completes(op.effect());
        if completes.is_some() {
            self.touch(Object::Claims(pe), Touch::Write);
        }
        let claim = completes
            .filter(|&completes| completes != Completes::Stores) // a stream stores nothing through pointers
            .and_then(|completes| self.claim_at_call(agent, completes));
        let state = &mut self.pes[pe];
        state.called += 1;
        state.unstarted += u32::from(is_nbi(op));
        let called = state.called;
        let values = OwnedValues::new(values);
        let what = Task::Op { op: *op, values, called, claim, claimed: Claimed::default() };
        self.enqueue(pe, stream, what, at)
    }

    /// The host adds work to a stream, which starts it if it is idle.
    pub(super) fn enqueue(&mut self, pe: PeId, stream: u32, what: Task, at: At) -> Progress {
        let agent = self.pes[pe].streams[stream as usize];
        let host = self.pes[pe].host;
        let (past, known) = (self.agents[host].past.clone(), self.races.snapshot(host));
        let mark = self.races.mark(host);
        let state = &mut self.agents[agent];
        let idle = state.is_idle();
        state.queue.push_back(Work { what, at, past, known, mark });
        state.enqueued += 1;
        if idle {
            self.run_stream(agent);
        }
        Progress::Done
    }

    /// A stream goes on until it blocks, has to be chosen, or has nothing left.
    pub(super) fn run_stream(&mut self, agent: AgentId) {
        loop {
            if !self.agents[agent].is_running() {
                return;
            }
            let Some(work) = self.agents[agent].queue.front() else {
                return self.drain_further(self.agents[agent].pe);
            };
            if let Task::Look(_) = &work.what
                && self.mode.needs.relaxed
            {
                return self.stops_at_work(agent);
            }
            if let Task::Op { op, .. } = &work.what {
                if let Some(alloc) = self.missing(op) {
                    self.agents[agent].state = State::Exchanging { registration: alloc, peer: None };
                    return;
                }
                if self.mode.needs.relaxed && self.op_is_choice(agent, op) {
                    return self.stops_at_work(agent);
                }
            }
            self.learn_enqueued(agent);
            if self.perform_front(agent) == Progress::Blocked {
                return;
            }
            self.stream_op_finished(agent);
        }
    }

    /// The next work is a step.
    fn stops_at_work(&mut self, agent: AgentId) {
        self.learn_enqueued(agent);
        match self.agents[agent].is_in_kernel() {
            true => self.thread_stops(agent),
            false => self.make_pending(agent),
        }
    }

    /// The stream's work comes after the call that enqueued it.
    fn learn_enqueued(&mut self, agent: AgentId) {
        let Agent { queue, past, .. } = &mut self.agents[agent];
        if let Some(work) = queue.front() {
            past.join(&work.past);
        }
        self.learn_registrations(agent);
    }

    /// The stream's next operation was chosen.
    pub(super) fn perform_stream_op(&mut self, agent: AgentId) {
        if self.perform_front(agent) == Progress::Done {
            self.in_chosen_step = false;
            self.finish(agent);
        }
    }

    /// Takes the stream's next work and does it.
    fn perform_front(&mut self, agent: AgentId) -> Progress {
        let Work { what, at, known, mark, .. } =
            self.agents[agent].queue.pop_front().expect("a running stream has work");
        if let Some(known) = &known {
            self.races.learn(agent, known); // not before it acts: others would learn by its fences what it has not told
        }
        self.races.set_mark(agent, mark);
        let state = &mut self.agents[agent];
        state.call = what.name();
        state.at = Some(at);
        self.step();
        if self.record.is_some() {
            self.record_started(agent, &what, at);
        }
        match what {
            Task::Op { op, values, called, claim, claimed } => {
                self.agents[agent].called = called;
                if self.agents[agent].is_in_kernel() {
                    return self.perform_in_kernel(agent, &op, &values.borrow(), at);
                }
                if is_nbi(&op) {
                    return self.start_nbi(agent, &op, at, claimed);
                }
                self.begin(agent, &op, op.effect(), &values.borrow(), at, claim)
            }
            Task::Record { event, record } => {
                self.record_reached(agent, event, record);
                Progress::Done
            }
            Task::WaitEvent { event, record } => self.wait_event(agent, event, record),
            Task::Launch(launched) => self.begin_kernel(agent, &launched),
            Task::Look(look) => self.look(agent, look, at),
        }
    }

    /// A non-blocking operation of a stream starts. From now on its claim, if there is one, is the transfer's.
    fn start_nbi(&mut self, agent: AgentId, op: &Op, at: At, claimed: Claimed) -> Progress {
        let pe = self.agents[agent].pe;
        self.pes[pe].unstarted -= 1;
        if claimed.by.is_some_and(|claim| self.claims.lends(claim)) {
            self.touch(Object::Claims(pe), Touch::Read);
        }
        self.starting = Some(self.claimed_by_transfer(claimed));
        let progress = self.begin(agent, op, op.effect(), &Values::NONE, at, None);
        let launched = self.starting.take().is_none();
        self.in_chosen_step = false;
        self.started(agent, claimed, launched);
        self.has_started(pe);
        progress
    }

    /// The stream's current work is over: a host that waits for that is woken.
    pub(super) fn stream_op_finished(&mut self, agent: AgentId) {
        if self.agents[agent].is_in_kernel() {
            return self.call_of_thread_finished(agent);
        }
        let state = &mut self.agents[agent];
        state.finished += 1;
        let (pe, finished) = (state.pe, state.finished);
        let host = self.pes[pe].host;
        if let State::Synchronizing { stream, upto } = self.agents[host].state
            && stream == agent
            && finished >= upto
        {
            self.learn_past(host, agent);
            self.finish(host);
        }
    }

    /// The host waits until a stream has run everything enqueued so far.
    pub(super) fn synchronize(&mut self, host: AgentId, stream: u32) -> Progress {
        let stream = self.pes[self.agents[host].pe].streams[stream as usize];
        let Agent { enqueued: upto, finished, .. } = self.agents[stream];
        if finished >= upto {
            self.learn_past(host, stream);
            self.record_synchronized(host, stream);
            return Progress::Done;
        }
        self.block(host, State::Synchronizing { stream, upto })
    }

    /// An agent learns everything that another has done.
    pub(super) fn learn_past(&mut self, agent: AgentId, from: AgentId) {
        self.races.learn_all(agent, from);
        if self.mode.needs.tracking {
            let past = self.agents[from].past.clone();
            self.agents[agent].past.join(&past);
        }
    }

    /// An agent waits until the sources of its own non-blocking puts are reusable.
    pub(super) fn flush(&mut self, agent: AgentId) -> Progress {
        if self.agents[agent].unread > 0 {
            return self.block(agent, State::Flushing);
        }
        self.flushed(agent);
        Progress::Done
    }

    /// Every source has been read.
    pub(super) fn flushed(&mut self, agent: AgentId) {
        self.races.flush(agent);
        let Agent { past, reads, .. } = &mut self.agents[agent];
        past.join(reads);
    }
}

/// # Events
impl Machine {
    /// The host records an event on a stream.
    pub(super) fn enqueue_record(&mut self, pe: PeId, event: u32, stream: u32, at: At) -> Progress {
        let records = &mut self.pes[pe].events[event as usize];
        records.push(Record::default());
        let record = records.len();
        self.enqueue(pe, stream, Task::Record { event, record }, at)
    }

    /// A stream is to wait for the event's last record so far.
    pub(super) fn enqueue_wait_event(&mut self, pe: PeId, event: u32, stream: u32, at: At) -> Progress {
        let record = self.last_record(pe, event);
        self.enqueue(pe, stream, Task::WaitEvent { event, record }, at)
    }

    /// The number of the event's last record so far; 0 if there was none.
    pub(super) fn last_record(&self, pe: PeId, event: u32) -> usize {
        self.pes[pe].events[event as usize].len()
    }

    /// A host or stream waits until a record of an event has been reached.
    pub(super) fn wait_event(&mut self, agent: AgentId, event: u32, record: usize) -> Progress {
        let Agent { pe, past, .. } = &mut self.agents[agent];
        let Some(number) = record.checked_sub(1) else { return Progress::Done };
        let record_state = &self.pes[*pe].events[event as usize][number];
        if record_state.reached {
            past.join(&record_state.past);
            if let Some(known) = &record_state.known {
                self.races.learn(agent, known);
            }
            self.record_event_reached(agent, event, record);
            return Progress::Done;
        }
        self.block(agent, State::AwaitingEvent { event, record })
    }

    fn record_reached(&mut self, stream: AgentId, event: u32, record: usize) {
        let Agent { pe, ref past, .. } = self.agents[stream];
        let past = past.clone();
        let known = self.races.snapshot(stream);
        let state = &mut self.pes[pe].events[event as usize][record - 1];
        state.reached = true;
        state.past.clone_from(&past);
        state.known = known;
        for agent in self.agents_of(pe) {
            if matches!(self.agents[agent].state, State::AwaitingEvent { event: of, record: which } if (of, which) == (event, record))
            {
                self.agents[agent].past.join(&past);
                self.races.learn_all(agent, stream);
                self.finish(agent);
            }
        }
    }

    /// The host of a PE and its streams.
    pub(super) fn agents_of(&self, pe: PeId) -> Vec<AgentId> {
        std::iter::once(self.pes[pe].host).chain(self.pes[pe].streams.iter().copied()).collect()
    }
}
