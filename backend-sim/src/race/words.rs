//! Words that are read atomically: what an update releases, and what a read of it acquires.
//!
//! A signal tells what its transfer knew, and that it has arrived. Most words are updated again before anybody asks twice, so a word
//! keeps the transfer's [`Ticket`], which costs nothing, and not a clock of its own.

use std::rc::Rc;

use onesided::At;
use onesided::backend::Span;
use smallvec::SmallVec;

use super::clock::{Clock, Times};
use super::edges::{Agents, scope_of};
use super::who::takes_turn;
use super::{Detector, FENCED, How, Lane, Mark, Released, Ticket, View, Who, steps_of};
use crate::machine::{AgentId, PeId, Table};
use crate::profile::Promises;

/// What a word told at a moment to those who read it atomically.
#[derive(Clone, Debug)]
pub(crate) struct Told {
    pub(super) time: u64,
    pub(super) clock: Rc<Clock>,
}

impl Told {
    /// Whether it is the same.
    pub(crate) fn is(&self, other: &Told) -> bool {
        Rc::ptr_eq(&self.clock, &other.clock)
    }

    /// What an agent has done until a moment.
    #[cfg(test)]
    pub(crate) fn of(agent: AgentId, time: u64) -> Told {
        let mut clock = Clock::default();
        clock.learn_steps(agent, time);
        Told { time, clock: Rc::new(clock) }
    }

    /// Up to when it tells what an agent has done.
    #[cfg(test)]
    pub(crate) fn steps(&self, agent: AgentId) -> u64 {
        self.clock.steps(agent)
    }

    /// Whether it tells all that another one does.
    pub(crate) fn covers(&self, other: &Told) -> bool {
        self.is(other) || {
            let mut both = Clock::clone(&self.clock);
            both.join(&other.clock);
            both == *self.clock
        }
    }

    /// Tells what another one tells, too.
    pub(crate) fn join(&mut self, other: &Told) {
        if !self.is(other) {
            Rc::make_mut(&mut self.clock).join(&other.clock);
        }
        self.time = self.time.max(other.time);
    }
}

/// What two releases tell together.
pub(crate) fn join_told(one: &mut Option<Told>, other: Option<&Told>) {
    match (one.as_mut(), other) {
        (_, None) => {}
        (None, other) => *one = other.cloned(),
        (Some(one), Some(other)) => one.join(other),
    }
}

/// A transfer's arrival, and what somebody knows who knows of it.
pub(super) struct Arrival<'a> {
    ticket: &'a Ticket,
    to: PeId,
    /// Its issuer's PE, where the path to a PE's memory matters.
    from: Option<PeId>,
    /// Where transfers arrive in order: the agents whose earlier ones have arrived, too, up to when, and whether its stores have.
    in_order: SmallVec<[(AgentId, u64, bool); 4]>,
    /// Agents some of whose transfers a fence of a thread puts before it.
    fenced: Agents,
    base: u64,
}

impl<'a> Arrival<'a> {
    #[inline]
    pub(super) fn new(
        ticket: &'a Ticket,
        to: PeId,
        pes_per_node: Option<u32>,
        promises: Promises,
        base: u64,
        agents: &Table<AgentId, View>,
    ) -> Arrival<'a> {
        let in_order = match promises.in_order && takes_turn(ticket.lane, &agents[ticket.agent]) {
            true => scope_of(ticket.agent, agents).into_iter().map(|of| issued_before(ticket, of, agents)).collect(),
            false => SmallVec::new(),
        };
        let is_fenced = agents[ticket.agent].is_in_kernel() && FENCED.contains(&ticket.lane);
        let of_scope = |of: &AgentId| agents[*of].scope() == agents[ticket.agent].scope();
        let fenced = match is_fenced {
            true => ticket.issue.clock.fenced().map(|(of, _)| of).filter(of_scope).collect(),
            false => Agents::new(),
        };
        Arrival { ticket, to, from: pes_per_node.map(|_| agents[ticket.agent].pe), in_order, base, fenced }
    }

    /// Adds what is known with it.
    pub(super) fn tell(&self, clock: &mut Clock) {
        let Ticket { agent, lane, time, previous, ref issue, .. } = *self.ticket;
        clock.join(&issue.clock);
        if let Some(from) = self.from {
            clock.hear(from, &issue.clock);
        }
        // without itself, where only a part of it is known to have arrived
        let known = if previous < time { time } else { time - 1 };
        if let Lane::Puts | Lane::Nbi | Lane::Stores = lane
            && let Some(fenced) = &issue.fenced
        {
            fenced.tell(self.to, clock);
        }
        for (of, times) in issue.clock.fenced().filter(|(of, _)| self.fenced.contains(of)) {
            FENCED.into_iter().for_each(|lane| clock.learn_to(of, lane, self.to, times));
        }
        let of_issuer = clock.of(agent);
        of_issuer.steps = known.max(of_issuer.steps);
        match lane {
            Lane::Puts | Lane::Nbi | Lane::Stores | Lane::Parts => {
                of_issuer.to(self.to, lane).add(previous.max(self.base), time);
            }
            Lane::Steps | Lane::Arrived | Lane::Reads | Lane::Gets => {}
        }
        if lane == Lane::Nbi && previous < time {
            of_issuer.lane(Lane::Reads).add(time - 1, time);
        }
        for &(of, upto, stores) in &self.in_order {
            let all = Times::between(0, upto.min(known));
            clock.learn_to(of, Lane::Puts, self.to, &all);
            if stores {
                clock.learn_to(of, Lane::Stores, self.to, &all);
            }
        }
    }
}

/// Up to when an agent of the scope has issued what comes before a transfer, and whether its stores take part in that order: those of kernels
/// do not.
fn issued_before(ticket: &Ticket, of: AgentId, agents: &Table<AgentId, View>) -> (AgentId, u64, bool) {
    let upto = if of == ticket.agent { ticket.time } else { steps_of(&ticket.issue.clock, agents, of) };
    (of, upto, takes_turn(Lane::Stores, &agents[of]))
}

/// What a word tells those who read it atomically.
#[derive(Clone, Debug)]
pub(super) enum Tells {
    /// What is known with the arrival of the transfer that has updated it: mostly one has, and nobody asks before the next.
    Arrival(Ticket),
    /// What several have told, or an agent of a kernel.
    Clock(Rc<Clock>),
}

impl Tells {
    /// As a clock. `tell` adds what is known with an arrival.
    fn into_clock(self, tell: impl Fn(&Ticket, &mut Clock)) -> Rc<Clock> {
        match self {
            Tells::Clock(clock) => clock,
            Tells::Arrival(ticket) => {
                let mut clock = Clock::default();
                tell(&ticket, &mut clock);
                Rc::new(clock)
            }
        }
    }

    /// This, and what it told before.
    pub(super) fn besides(&self, before: Tells, tell: impl Fn(&Ticket, &mut Clock)) -> Tells {
        let mut both = before.into_clock(&tell);
        let clock = Rc::make_mut(&mut both);
        match self {
            Tells::Arrival(ticket) => tell(ticket, clock),
            Tells::Clock(other) => clock.join(other),
        }
        Tells::Clock(both)
    }
}

/// # Words that are read atomically
impl Detector {
    /// A transfer has updated a word atomically. `replaces`: whatever it held before.
    pub(crate) fn release(&mut self, ticket: &Ticket, to: PeId, word: Span, replaces: bool) {
        self.tells(to, word, (ticket.time, &Tells::Arrival(ticket.clone())), replaces);
    }

    fn tells(&mut self, pe: PeId, word: Span, told: (u64, &Tells), replaces: bool) {
        let Detector { shadow, agents, pes_per_node, promises, base, .. } = self;
        let tell = |ticket: &Ticket, clock: &mut Clock| {
            Arrival::new(ticket, pe, *pes_per_node, *promises, *base, agents).tell(clock);
        };
        shadow.release(pe, word, told, replaces, tell);
    }

    /// An agent has read a word of a PE atomically, or has waited for it.
    pub(crate) fn acquire(&mut self, agent: AgentId, pe: PeId, word: Span, waits: bool) {
        if !self.on {
            return;
        }
        self.acquire_near(agent, pe, word);
        match self.shadow.acquire(pe, word, waits, self.base) {
            None => {}
            Some(Released::Told(Tells::Clock(clock))) => self.agents[agent].clock().join(&clock),
            Some(Released::Told(Tells::Arrival(ticket))) => {
                let arrival = self.arrival(&ticket, pe);
                arrival.tell(self.agents[agent].clock());
            }
            Some(Released::Transfer(mark, issue)) => {
                self.agents[mark.agent()].synchronized(mark.time, mark.site(), pe);
                // the word is ordered with the wait, and what came before its transfer; the rest of the transfer is not
                let (lane, time) = (mark.lane(), mark.time);
                let (by, site) = (mark.agent(), mark.site());
                let (block, in_kernel) = (self.agents[by].block, self.agents[by].is_in_kernel());
                let ticket =
                    Ticket { agent: by, block, lane, reads: lane, time, previous: time, site, in_kernel, issue };
                let arrival = self.arrival(&ticket, pe);
                arrival.tell(self.agents[agent].clock());
                let time = self.tick();
                self.agents[agent].last = time;
                let wait = Mark::new(agent, Lane::Steps, time, mark.site(), How::Wait, word.len);
                self.shadow.seen(pe, word, wait);
            }
        }
        self.found.heard(agent, &self.agents);
    }

    /// What the word tells now.
    pub(crate) fn told(&mut self, pe: PeId, word: Span) -> Option<Told> {
        if !self.on {
            return None;
        }
        let (time, tells) = self.shadow.released(pe, word)?.clone();
        let is_clock = matches!(tells, Tells::Clock(_));
        let clock = tells.into_clock(|ticket, clock| self.arrival(ticket, pe).tell(clock));
        if !is_clock {
            self.tells(pe, word, (time, &Tells::Clock(Rc::clone(&clock))), true); // whoever asks again gets the same
        }
        Some(Told { time, clock })
    }

    /// When a word was updated last, since its last plain write.
    pub(crate) fn last_update(&self, pe: PeId, word: Span) -> Option<u64> {
        self.shadow.released(pe, word).map(|(time, _)| *time)
    }

    /// An agent comes after the update by which a word told this.
    pub(crate) fn learn_told(&mut self, agent: AgentId, told: &Told) {
        if told.time > self.base {
            self.agents[agent].clock().join(&told.clock);
            self.found.heard(agent, &self.agents);
        }
    }

    /// What an agent tells that releases: everything that it knows and has done.
    pub(crate) fn tell(&mut self, agent: AgentId) -> Option<Told> {
        self.on.then(|| {
            self.has_acted(agent);
            let time = self.tick();
            let view = &self.agents[agent];
            let mut clock = Clock::clone(&view.clock);
            clock.learn_steps(agent, view.last);
            Told { time, clock: Rc::new(clock) }
        })
    }

    /// An agent has updated a word itself at a time, and the word tells this from now on. `replaces`: whatever it held before.
    pub(crate) fn update(&mut self, time: u64, pe: PeId, word: Span, told: Option<&Told>, replaces: bool) {
        let tells = Tells::Clock(told.map_or_else(Rc::default, |told| Rc::clone(&told.clock)));
        self.tells(pe, word, (time, &tells), replaces);
    }

    /// Whether an agent comes after the last plain write of a word, as far as races are looked for.
    pub(crate) fn knows_last_write(&mut self, agent: AgentId, pe: PeId, word: Span) -> bool {
        if !self.on {
            return true;
        }
        let view = &self.agents[agent];
        let who = Who { pe, ..Who::agent(agent, view.last, self.base, &self.agents) };
        self.shadow.last_write(pe, word).is_none_or(|write| who.knows(write))
    }

    /// Notes a call that others may synchronize with, for reports. `to`: the PE that it signals.
    #[inline(always)] // as its callers
    pub(crate) fn synchronizes(&mut self, agent: AgentId, to: Option<PeId>, asked: (&'static str, At)) {
        if self.on {
            self.synchronizes_now(agent, to, asked);
        }
    }

    fn synchronizes_now(&mut self, agent: AgentId, to: Option<PeId>, (call, at): (&'static str, At)) {
        let (time, site) = (self.tick(), self.sites.number(call, at, 0));
        let view = &mut self.agents[agent];
        (view.last, view.site) = (time, site);
        view.log.push((time, site, to));
    }
}
