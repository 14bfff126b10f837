//! Waiting: for memory, for transfers, for streams and events. Nothing polls: a wait is simply not a choice until it
//! can end.

use onesided::At;
use onesided::backend::Span;

use super::agent::{Agent, NONE, Phase, Work};
use super::{Collective, Condition, Machine, Progress, Touch};
use crate::request::Reply;
use crate::trace::{EventKind, compared};
use crate::verdict::VerdictKind;

/// The most streams of a PE: names of transfers have room for so many.
pub(super) const MAX_STREAMS: u32 = 2000;

/// # Memory
impl Machine {
    /// An agent waits until a condition on its own memory holds.
    pub(super) fn wait(&mut self, agent: u32, condition: Condition) -> Progress {
        let pe = self.agents[agent as usize].pe;
        let holds = condition.holds(&self.heap, pe);
        if condition.signal {
            self.touch_as(pe, condition.vars, Touch::Entry);
        }
        if holds && !self.relaxed {
            self.found_value(agent, &condition);
            return Progress::Done;
        }
        self.agents[agent as usize].condition = Some(condition);
        self.pes[pe as usize].waiting.push(agent);
        if holds {
            self.make_ready(agent, Phase::Memory);
            return Progress::Blocked;
        }
        self.block(agent, Phase::Memory)
    }

    /// The wait's condition holds and its step was chosen.
    pub(super) fn end_wait(&mut self, agent: u32) {
        let pe = self.agents[agent as usize].pe;
        let condition = self.agents[agent as usize].condition.take().expect("an agent in a wait has a condition");
        self.touch(pe, condition.vars, false);
        self.pes[pe as usize].waiting.retain(|&other| other != agent);
        self.found_value(agent, &condition);
        self.finish(agent);
    }

    /// A wait for a signal ends: its reply is the value that compares true.
    fn found_value(&mut self, agent: u32, condition: &Condition) {
        if condition.signal {
            let value = self.heap.load(self.agents[agent as usize].pe, condition.vars);
            self.agents[agent as usize].reply = Reply::Value(value);
        }
    }

    /// Memory of `pe` has changed: waits on it may now end, or no longer end.
    #[inline]
    pub(super) fn wrote(&mut self, pe: u32, span: Span) {
        if !self.pes[pe as usize].waiting.is_empty() {
            self.recheck(pe, span);
        }
    }

    /// As [`Machine::wrote`], by something that is not atomic against signals.
    #[inline]
    pub(super) fn wrote_plain(&mut self, pe: u32, span: Span) {
        if self.pes[pe as usize].waiting.is_empty() {
            return;
        }
        let waits_for_signal = |&&agent: &&u32| {
            let condition = self.agents[agent as usize].condition.as_ref();
            condition.is_some_and(|condition| condition.signal && condition.vars.overlaps(&span))
        };
        if let Some(&waiter) = self.pes[pe as usize].waiting.iter().find(waits_for_signal) {
            let word = self.agents[waiter as usize].condition.as_ref().expect("just looked at").vars;
            self.found(VerdictKind::MixedAtomicity { pe: pe as usize, word });
        }
        self.recheck(pe, span);
    }

    fn recheck(&mut self, pe: u32, span: Span) {
        let mut next = 0;
        while let Some(&agent) = self.pes[pe as usize].waiting.get(next) {
            next += 1;
            let state = &self.agents[agent as usize];
            let condition = state.condition.as_ref().expect("an agent in a wait has a condition");
            if condition.vars.alloc != span.alloc {
                continue;
            }
            match (condition.holds(&self.heap, pe), state.ready != NONE) {
                (true, false) if self.relaxed => self.make_ready(agent, Phase::Memory),
                (true, false) => {
                    // in order, a wait ends in the very step that fulfils it, and leaves the list
                    self.end_wait(agent);
                    next -= 1;
                }
                (false, true) => self.unready(agent),
                _ => {}
            }
        }
    }
}

/// # Transfers
impl Machine {
    /// An agent completes what its scope has in flight, then enters a collective if there is one.
    pub(super) fn quiet(&mut self, agent: u32, then: Option<&Collective>) -> Progress {
        let scope = self.agents[agent as usize].scope();
        let claimed = self.flight.claim(scope, agent);
        if claimed == 0 {
            return self.after_quiet(agent, then);
        }
        self.agents[agent as usize].quieting = claimed;
        self.agents[agent as usize].then = then.map(|then| Box::new(then.clone()));
        self.block(agent, Phase::Quiet)
    }

    fn after_quiet(&mut self, agent: u32, then: Option<&Collective>) -> Progress {
        let Some(collective) = then else { return Progress::Done };
        let Agent { pe, at, .. } = self.agents[agent as usize];
        let team = collective.team().map_or(0, |team| self.team_index(pe, team));
        self.enter(agent, team, collective, at.expect("a call has a place"))
    }

    /// One of the transfers that the agent's quiet waits for has landed.
    pub(super) fn claimed_landed(&mut self, agent: u32) {
        let state = &mut self.agents[agent as usize];
        state.quieting -= 1;
        if state.quieting > 0 {
            return;
        }
        let then = state.then.take();
        state.phase = Phase::Running;
        if self.after_quiet(agent, then.as_deref()) == Progress::Done {
            self.finish(agent);
        }
    }

    /// A fence under a profile in which it completes: unlike a quiet, it takes nothing over from other streams.
    pub(super) fn fence_as_quiet(&mut self, agent: u32) -> Progress {
        if self.flight.is_quiet(self.agents[agent as usize].scope()) {
            return Progress::Done;
        }
        self.block(agent, Phase::Fence)
    }

    /// A transfer of the scope has landed; fences that wait for it may end.
    pub(super) fn fence_further(&mut self, scope: u32) {
        if !self.rules.fence_is_quiet || !self.flight.is_quiet(scope) {
            return;
        }
        for agent in self.agents_of(scope / 2) {
            let state = &self.agents[agent as usize];
            if state.phase == Phase::Fence && state.scope() == scope {
                self.finish(agent);
            }
        }
    }

    /// An agent waits until the sources of its scope's non-blocking puts are reusable.
    pub(super) fn flush(&mut self, agent: u32) -> Progress {
        if self.flight.is_flushed(self.agents[agent as usize].scope()) {
            return Progress::Done;
        }
        self.block(agent, Phase::Flush)
    }

    /// A source of the scope was read.
    pub(super) fn source_read(&mut self, scope: u32) {
        if !self.flight.is_flushed(scope) {
            return;
        }
        let pe = scope / 2;
        for agent in self.agents_of(pe) {
            let state = &self.agents[agent as usize];
            if state.phase == Phase::Flush && state.scope() == scope {
                self.finish(agent);
            }
        }
    }

    /// A PE finalizes: waits for its streams and for everything in flight, then enters.
    pub(super) fn drain(&mut self, pe: u32) -> Progress {
        self.block(pe, Phase::Drain);
        self.drain_further(pe);
        Progress::Blocked
    }

    /// Something of the PE has ended; a finalize that waits for it may go on.
    pub(super) fn drain_further(&mut self, pe: u32) {
        if self.agents[pe as usize].phase != Phase::Drain {
            return;
        }
        let idle = self.pes[pe as usize].streams.iter().all(|&stream| self.agents[stream as usize].is_idle());
        if !idle || !self.flight.is_quiet(2 * pe) || !self.flight.is_quiet(2 * pe + 1) {
            return;
        }
        let at = self.agents[pe as usize].at.expect("a call has a place");
        self.agents[pe as usize].phase = Phase::Running;
        if self.enter(pe, 0, &Collective::Finalize, at) == Progress::Done {
            self.finish(pe);
        }
    }

    fn agents_of(&self, pe: u32) -> Vec<u32> {
        let mut agents = vec![pe];
        agents.extend(&self.pes[pe as usize].streams);
        agents
    }
}

/// # Streams and events
impl Machine {
    /// A new stream of the PE; its number there, if it can have another.
    pub(super) fn new_stream(&mut self, pe: u32) -> Option<u32> {
        let agent = self.agents.len() as u32;
        let streams = &mut self.pes[pe as usize].streams;
        let number = u32::try_from(streams.len()).ok().filter(|&number| number < MAX_STREAMS)?;
        streams.push(agent);
        self.agents.push(Agent::new(pe, number));
        Some(number)
    }

    /// The host adds work to a stream, which starts it if it is idle.
    pub(super) fn enqueue(&mut self, pe: u32, stream: u32, work: Work) -> Progress {
        let agent = self.pes[pe as usize].streams[stream as usize];
        let state = &mut self.agents[agent as usize];
        let idle = state.is_idle();
        state.queue.push_back(work);
        state.enqueued += 1;
        if idle {
            self.run_stream(agent);
        }
        Progress::Done
    }

    /// A stream goes on until it blocks, has to be chosen, or has nothing left.
    pub(super) fn run_stream(&mut self, agent: u32) {
        loop {
            let state = &self.agents[agent as usize];
            if state.phase != Phase::Running {
                return;
            }
            match state.queue.front() {
                None => return self.drain_further(state.pe),
                Some(Work::Op { op, .. }) if self.relaxed && self.op_is_choice(agent, op) => {
                    return self.make_ready(agent, Phase::Pending);
                }
                Some(_) => {}
            }
            if self.perform_front(agent) == Progress::Blocked {
                return;
            }
            self.stream_op_finished(agent);
        }
    }

    /// The stream's next operation was chosen.
    pub(super) fn perform_stream_op(&mut self, agent: u32) {
        if self.perform_front(agent) == Progress::Done {
            self.finish(agent);
        }
    }

    /// Takes the stream's next work and does it.
    fn perform_front(&mut self, agent: u32) -> Progress {
        let work = self.agents[agent as usize].queue.pop_front().expect("a running stream has work");
        let (call, at) = match &work {
            Work::Op { op, at, .. } => (op.name(), *at),
            Work::Record { at, .. } => ("record", *at),
            Work::WaitEvent { at, .. } => ("wait_event", *at),
        };
        let state = &mut self.agents[agent as usize];
        state.call = call;
        state.at = Some(at);
        self.steps += 1;
        match work {
            Work::Op { op, values, at, called } => {
                self.agents[agent as usize].called = called;
                if self.trace.is_some() {
                    self.record(agent, EventKind::Op { op, values: compared(&op, &values.borrow()) }, at);
                }
                self.issue(agent, &op, &values.borrow(), at)
            }
            Work::Record { event, record, .. } => {
                self.record_reached(agent, event, record);
                Progress::Done
            }
            Work::WaitEvent { event, record, .. } => self.wait_event(agent, event, record),
        }
    }

    /// The stream's current work is over: a host that waits for that is woken.
    pub(super) fn stream_op_finished(&mut self, agent: u32) {
        let state = &mut self.agents[agent as usize];
        state.finished += 1;
        let (pe, finished) = (state.pe, state.finished);
        if let Phase::Synchronize { stream, upto } = self.agents[pe as usize].phase
            && stream == agent
            && finished >= upto
        {
            self.finish(pe);
        }
    }

    /// The host waits until a stream has run everything enqueued so far.
    pub(super) fn synchronize(&mut self, pe: u32, stream: u32) -> Progress {
        let agent = self.pes[pe as usize].streams[stream as usize];
        let Agent { enqueued: upto, finished, .. } = self.agents[agent as usize];
        if finished >= upto {
            return Progress::Done;
        }
        self.block(pe, Phase::Synchronize { stream: agent, upto })
    }

    /// The host records an event on a stream.
    pub(super) fn enqueue_record(&mut self, pe: u32, event: u32, stream: u32, at: At) -> Progress {
        let records = &mut self.pes[pe as usize].events[event as usize];
        records.push(false);
        let record = records.len();
        self.enqueue(pe, stream, Work::Record { event, record, at })
    }

    /// The number of the event's last record so far; 0 if there was none.
    pub(super) fn last_record(&self, pe: u32, event: u32) -> usize {
        self.pes[pe as usize].events[event as usize].len()
    }

    /// A host or stream waits until a record of an event has been reached.
    pub(super) fn wait_event(&mut self, agent: u32, event: u32, record: usize) -> Progress {
        let pe = self.agents[agent as usize].pe;
        if record == 0 || self.pes[pe as usize].events[event as usize][record - 1] {
            return Progress::Done;
        }
        self.block(agent, Phase::Event { event, record })
    }

    fn record_reached(&mut self, stream: u32, event: u32, record: usize) {
        let pe = self.agents[stream as usize].pe;
        self.pes[pe as usize].events[event as usize][record - 1] = true;
        for agent in self.agents_of(pe) {
            if self.agents[agent as usize].phase == (Phase::Event { event, record }) {
                self.finish(agent);
            }
        }
    }
}
