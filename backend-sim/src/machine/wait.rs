//! Waiting for memory. A wait does not poll: it is not a choice until it can end.
//!
//! A wait on several variables looks at one after the other, as the library's loop does: each is satisfied at a moment of its
//! own, and need not be when the wait ends.
//!
//! In order, a variable is seen as soon as it compares true. In a relaxed run each is seen by a step of its own. In a proof, the step
//! that sees a steady word is taken as soon as it can be (`assumed.rs`).

use onesided::At;
use onesided::backend::{Span, Wait};

use super::access::{Awaited, Test, is_shared};
use super::agent::{Agent, AgentKind, Condition, State};
use super::ids::{AgentId, PeId};
use super::observe::look;
use super::relaxed::Asked;
use super::tells::Tells;
use super::{Machine, Progress, Touch};
use crate::heap::Heap;
use crate::lint::{Lints, Notice, Waiting};
use crate::race::{Detector, How};
use crate::request::Reply;

impl Machine {
    /// An agent begins to wait until a condition on its own memory holds.
    pub(super) fn wait(&mut self, agent: AgentId, mut condition: Condition, asked: Asked) -> Progress {
        self.observe_wait(agent, &condition, asked);
        condition.returns = self.assumed.is_some() && condition.wait.signal && self.looks_at_result(agent);
        self.assume_of_wait(agent, &condition);
        if condition.is_over() {
            return Progress::Done;
        }
        if !self.mode.needs.relaxed
            && let Some(value) =
                pass(&mut condition, &self.heap, &mut self.races, &mut self.lints, (agent, self.agents[agent].asked()))
        {
            self.record_waited(agent, condition.last(), condition.wait.dtype, value);
            return self.answer(agent, Reply::Value(value));
        }
        self.wait_for(agent, condition);
        Progress::Blocked
    }

    /// What is assumed of words that an agent begins to wait for.
    pub(super) fn assume_of_wait(&mut self, agent: AgentId, condition: &Condition) {
        if let Some(assumed) = &mut self.assumed {
            let pe = condition.pe;
            assumed.wait(condition, |variable| !self.races.knows_last_write(agent, pe, variable));
        }
    }

    /// An agent waits from now on.
    pub(super) fn wait_for(&mut self, agent: AgentId, condition: Condition) {
        let is_ready = self.mode.needs.relaxed && self.holds(agent, &condition);
        if self.assumed.is_some() && !condition.takes {
            self.looks_at(agent, &condition.test());
        }
        self.pes[condition.pe].waiting.push(agent);
        self.agents[agent].set(State::Waiting(condition));
        if is_ready {
            self.make_ready(agent);
        }
    }

    /// An agent waits for the variable that its wait looks at.
    fn looks_at(&mut self, agent: AgentId, test: &Test) {
        if let Some(assumed) = &mut self.assumed {
            let past = self.mode.needs.tracking.then_some(&self.agents[agent].past);
            assumed.begins_to_wait(agent, test, past);
        }
    }

    /// The variable that the wait looks at compares true, and its step was chosen.
    pub(super) fn end_wait(&mut self, agent: AgentId) {
        let State::Waiting(condition) = &self.agents[agent].state else { unreachable!("the agent waits") };
        let test = condition.test();
        if let Some(assumed) = &mut self.assumed {
            assumed.has_waited(agent, &test);
        }
        let Test { pe, variable: seen, .. } = test;
        let plain = !condition.wait.signal;
        let is_steady = self.is_steady_wait(condition);
        if condition.is_loop {
            match condition.has_more() {
                true => self.passes_in_loop(agent, test, is_steady),
                false => return self.loop_ends(agent, test, is_steady),
            }
        } else {
            self.lint(|| Notice::Ends { agent, word: seen });
            self.lint_look(agent, (pe, seen));
            self.acquire_seen(agent, &test, plain);
        }
        if !is_steady {
            self.step.test = self.mode.needs.tracking.then_some(Awaited::Word(test));
            self.touch_memory(pe, seen, Touch::Read);
        }
        self.in_chosen_step = false;
        let value = self.heap.load(pe, seen);
        let State::Waiting(condition) = &mut self.agents[agent].state else { unreachable!("the agent waits") };
        condition.advance();
        if condition.is_over() {
            return self.waited(agent, value);
        }
        let next = condition.test();
        let holds = condition.is_satisfied_by(self.heap.load(pe, next.variable));
        self.looks_at(agent, &next);
        if holds {
            self.make_ready(agent);
        }
    }

    /// A wait learns what the word tells that it sees, and comes after it. `plain`: also from a put that wrote the word.
    fn acquire_seen(&mut self, agent: AgentId, test: &Test, plain: bool) {
        self.learn_seen(agent, test, plain);
        if self.is_steady(test.pe, test.variable) {
            self.comes_after_what_told(agent, test);
        }
    }

    /// What a word told when a condition became true, as far as that is assumed.
    pub(super) fn learn_seen(&mut self, agent: AgentId, test: &Test, plain: bool) {
        let Test { pe, variable, .. } = *test;
        let told = self.assumed.as_ref().filter(|_| self.mode.needs.tracking).and_then(|assumed| assumed.told(test));
        match told {
            Some(None) if self.races.knows_last_write(agent, pe, variable) => {}
            None | Some(None) => self.races.acquire(agent, pe, variable, plain),
            Some(Some(update)) => {
                let Tells { told, nearby, .. } = &update.tells;
                told.iter().for_each(|told| self.races.learn_told(agent, told));
                nearby.iter().for_each(|nearby| self.races.learn_nearby(agent, nearby));
            }
        }
    }

    /// The end of a wait for a steady word comes after the update that made it true for good.
    pub(super) fn comes_after_what_told(&mut self, agent: AgentId, test: &Test) {
        let number = self.number();
        let Some(assumed) = self.assumed.as_mut().filter(|_| self.mode.needs.tracking) else { return };
        assumed.ends(agent, test, number);
        if let Some(Some(update)) = assumed.told(test) {
            let step = update.step;
            self.agents[agent].past.add(step);
            self.step.past.add(step);
        }
    }

    /// Beginning to wait looks at every variable.
    fn observe_wait(&mut self, agent: AgentId, condition: &Condition, asked: Asked) {
        if !self.races.is_on() {
            return;
        }
        let (pe, size) = (self.agents[agent].pe, condition.wait.dtype.size());
        let how = if condition.wait.signal { How::AtomicRead } else { How::Wait };
        for variable in condition.variables() {
            self.observe(agent, pe, variable, how, size, asked);
        }
        if self.looks_for_all_lints() {
            let Wait { dtype, cmp, against, signal, .. } = condition.wait;
            let waiting = Waiting { pe, asked, dtype, cmp, against, signal, time: self.races.last_step(agent) };
            let words: Vec<Span> = condition.variables().collect();
            self.lint(|| Notice::Waits { agent, waiting, words: &words });
        }
    }

    /// The wait is over; the call returns the value that it saw last.
    fn waited(&mut self, agent: AgentId, value: u64) {
        let pe = self.agents[agent].pe;
        if self.record.is_some()
            && let State::Waiting(condition) = &self.agents[agent].state
        {
            let (variable, dtype) = (condition.last(), condition.wait.dtype);
            self.record_waited(agent, variable, dtype, value);
        }
        self.agents[agent].answer(Reply::Value(value));
        self.pes[pe].waiting.retain(|&other| other != agent);
        self.finish(agent);
    }

    /// Memory of `pe` has changed: waits on it may now end, or no longer end.
    #[inline(always)] // on the hottest path: mostly there is nothing to tell
    pub(super) fn wrote(&mut self, pe: PeId, span: Span) {
        self.lint(|| Notice::Changed { pe, span }); // before a wait sees it
        if !self.pes[pe].waiting.is_empty() {
            self.recheck(pe, span);
        }
        if !self.kernels.is_empty() {
            self.wake_kernels(pe, span);
        }
        if self.mode.needs.tracking {
            self.changed(pe, span);
        }
    }

    fn recheck(&mut self, pe: PeId, span: Span) {
        let mut next = 0;
        while let Some(&agent) = self.pes[pe].waiting.get(next) {
            next += 1;
            let asked = self.agents[agent].asked();
            let State::Waiting(condition) = &mut self.agents[agent].state else { unreachable!("the agent waits") };
            if condition.wait.vars.alloc != span.alloc {
                continue;
            }
            if !self.mode.needs.relaxed {
                // in order, a wait ends in the very step that fulfils it, and leaves the list
                if let Some(value) = pass(condition, &self.heap, &mut self.races, &mut self.lints, (agent, asked)) {
                    self.waited(agent, value);
                    next -= 1;
                }
                continue;
            }
            let holds = condition.is_satisfied_by(self.heap.load(pe, condition.variable()));
            self.goes_on_if(agent, holds);
        }
    }

    /// The condition of an agent that waits holds now, or does not.
    pub(super) fn goes_on_if(&mut self, agent: AgentId, holds: bool) {
        let Agent { ready, state: State::Waiting(condition), .. } = &mut self.agents[agent] else {
            unreachable!("the agent waits")
        };
        match (holds, ready.is_some()) {
            (true, false) => self.make_ready(agent),
            (false, true) => {
                condition.has_held = true;
                self.unready(agent);
            }
            (true, true) | (false, false) => {}
        }
    }

    /// Whether the condition of an agent holds.
    pub(super) fn holds(&self, agent: AgentId, condition: &Condition) -> bool {
        condition.is_satisfied_by(self.found_by(agent, condition))
    }

    /// What is in the variable that it looks at now.
    pub(super) fn found_by(&self, agent: AgentId, condition: &Condition) -> u64 {
        let word = condition.variable();
        match is_shared(word.alloc) {
            true => self.found_in_shared(agent, word),
            false => self.heap.load(condition.pe, word),
        }
    }

    /// Whether an agent waits, and looks at a part of this memory.
    pub(super) fn is_waited_for(&self, pe: PeId, span: Span) -> bool {
        self.pes[pe].waiting.iter().any(|&agent| match &self.agents[agent].state {
            State::Waiting(condition) => condition.variable().overlaps(&span),
            _ => false,
        })
    }

    /// A choice that is to be taken before all others, because nothing depends on when.
    pub(crate) fn forced(&self) -> Option<usize> {
        let is_forced = |&index: &usize| {
            let steady = self.ready.get(index).is_some_and(|&agent| match &self.agents[agent].state {
                State::Waiting(condition) => self.is_steady_wait(condition),
                State::AwaitingPhase(phase) => self.is_steady_phase(agent, *phase),
                _ => false,
            });
            steady || self.is_idle_poll(index)
        };
        if self.paths.matter()
            && let Some(index) = self.flight.units.iter().position(|unit| self.is_spread_at_once(*unit))
        {
            return Some(self.ready.len() + index);
        }
        let of_transfers = self.pes.iter().any(|pe| self.is_tried(pe.host));
        (0..if of_transfers { self.choices() } else { self.ready.len() }).find(is_forced)
    }

    /// Whether nothing depends on when this wait ends, as far as is known.
    pub(super) fn is_steady_wait(&self, condition: &Condition) -> bool {
        let is_steady = |word: Span| self.is_steady(condition.pe, word);
        match condition.is_loop {
            // it looks at all of them in the end; what it changes or loads besides depends on when that is
            true => !condition.takes && !condition.loads_more && condition.variables().all(is_steady),
            false => is_steady(condition.variable()),
        }
    }

    /// Whether nothing depends on when a wait for a word ends that only looks at it, as far as is known.
    pub(super) fn is_steady(&self, pe: PeId, variable: Span) -> bool {
        self.assumed.as_ref().is_some_and(|assumed| assumed.is_steady(pe, variable))
    }

    /// Whether an agent may look at what its call returns.
    fn looks_at_result(&self, agent: AgentId) -> bool {
        self.config.values_matter
            && match self.agents[agent].kind {
                AgentKind::Stream(_) => false,
                AgentKind::Block(_) | AgentKind::Thread(_) => self.call_is_used(agent),
                AgentKind::Host => true,
            }
    }
}

/// Passes every variable that compares true now; if that was the last, returns the value seen there. In order, a variable is seen
/// as soon as it compares true.
fn pass(
    condition: &mut Condition,
    heap: &Heap,
    races: &mut Detector,
    lints: &mut Option<Box<Lints>>,
    (agent, asked): (AgentId, (&'static str, Option<At>)),
) -> Option<u64> {
    loop {
        let (pe, word) = (condition.pe, condition.variable());
        let value = heap.load(pe, word);
        if !condition.is_satisfied_by(value) {
            return None;
        }
        if let Some(lints) = lints {
            lints.notice(&Notice::Ends { agent, word }, races);
        }
        look(lints, races, agent, (pe, word), asked);
        races.acquire(agent, pe, word, !condition.wait.signal);
        condition.advance();
        if condition.is_over() {
            return Some(value);
        }
    }
}
