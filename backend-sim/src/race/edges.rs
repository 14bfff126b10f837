//! Happens-before: what orders accesses, and what each call learns by it.
//!
//! | edge | here |
//! |---|---|
//! | host call → stream's step → synchronize, event | [`Detector::snapshot`], [`Detector::learn`] |
//! | issue → source read → delivery → signal | [`Detector::issue`] |
//! | fence | [`Detector::fence`] |
//! | quiet, barrier | [`Detector::claim_nbi`], [`Detector::complete`], [`Detector::end_claim`] |
//! | flush | [`Detector::flush`] |
//! | update → wait, fetch that reads it | `words.rs` |
//! | collectives | [`Detector::meet`], [`Detector::part`] and what follows it |

use std::rc::Rc;

use onesided::At;
use smallvec::{SmallVec, smallvec};

use super::clock::{Clock, Times};
use super::threads::covered_by;
use super::words::Arrival;
use super::{Detector, Fenced, Issue, Kind, Lane, Outstanding, Run, Ticket, View, knows_step, steps_of};
use crate::config::Quiet;
use crate::machine::{AgentId, ClaimId, Claimed, Completes, PeId, Table};

/// What an agent knew at a moment, its own accesses included.
#[derive(Clone, Debug)]
pub(crate) struct Snapshot {
    agent: AgentId,
    /// Its PE, where the path to a PE's memory matters.
    pe: Option<PeId>,
    time: u64,
    clock: Rc<Clock>,
}

/// The agents that a call is about: mostly a host alone.
pub(super) type Agents = SmallVec<[AgentId; 4]>;

/// The agents that share the scope of one.
#[inline]
pub(super) fn scope_of(agent: AgentId, agents: &Table<AgentId, View>) -> Agents {
    if agents[agent].is_host() {
        return smallvec![agent];
    }
    let scope = agents[agent].scope();
    agents.ids().filter(|&of| agents[of].scope() == scope).collect()
}

/// # Transfers
impl Detector {
    /// An agent issues a transfer to a PE. `arrives`: whether it is delivered before its call returns, if the transport promises
    /// that.
    #[inline(always)] // on the hottest path
    pub(crate) fn issue(
        &mut self,
        agent: AgentId,
        to: PeId,
        lane: Lane,
        arrives: bool,
        asked: (&'static str, At),
    ) -> Option<Ticket> {
        self.on.then(|| self.issue_now(agent, to, lane, arrives, asked))
    }

    /// The same, where races are looked for.
    #[inline(always)] // as its callers
    pub(crate) fn issue_now(
        &mut self,
        agent: AgentId,
        to: PeId,
        lane: Lane,
        arrives: bool,
        (call, at): (&'static str, At),
    ) -> Ticket {
        let (time, site) = (self.tick(), self.sites.number(call, at, self.agents[agent].mark));
        let view = &mut self.agents[agent];
        let (reads, lane) = match lane {
            Lane::Puts if arrives && self.promises.put_arrives => (Lane::Steps, Lane::Arrived),
            Lane::Nbi => (Lane::Reads, Lane::Nbi),
            Lane::Gets => (Lane::Gets, Lane::Gets),
            lane => (Lane::Steps, lane),
        };
        let previous = match lane {
            Lane::Gets => {
                let previous = view.previous(to, Lane::Nbi, time);
                view.previous(view.pe, Lane::Nbi, time);
                previous
            }
            lane => view.previous(to, lane, time),
        };
        (view.last, view.site) = (time, site);
        match lane {
            Lane::Puts | Lane::Stores => view.issued = time,
            Lane::Nbi | Lane::Gets if view.is_in_kernel() => view.issued = time,
            _ => {}
        }
        match lane {
            Lane::Stores => view.stored = time,
            Lane::Nbi => view.nbi_puts.push((time, to)),
            _ => {}
        }
        let fenced = &self.pes[view.pe].fenced[view.kind.scope()];
        // a thread's plain store is no step: what nothing orders with it, also a fence, may come first. Of a strong one, its clock has what fences order
        let in_kernel = view.is_in_kernel();
        let is_by_kernel = lane == Lane::Stores && in_kernel;
        let issue = match is_by_kernel && fenced.is_some() {
            true => Rc::new(Issue { clock: Rc::clone(&view.clock), fenced: None }),
            false => {
                let now = || Rc::new(Issue { clock: Rc::clone(&view.clock), fenced: fenced.clone() });
                Rc::clone(view.issue.get_or_insert_with(now))
            }
        };
        if !view.is_host() && lane != Lane::Steps && !is_by_kernel {
            view.sends(Some(to).filter(|_| lane != Lane::Gets), time, &issue);
        }
        if lane == Lane::Steps && in_kernel {
            self.has_stored(agent, time); // what a call gets, its agent has written
        }
        let block = self.agents[agent].block;
        Ticket { agent, block, lane, reads, time, previous, site, in_kernel, issue }
    }

    /// A non-blocking operation has been issued: a quiet must complete it. `claimed`: by whom that is done, where it is known
    /// before. Nobody claims what kernels issue.
    pub(crate) fn outstanding(&mut self, ticket: &Ticket, claimed: Claimed) {
        let Ticket { agent, time, ref issue, .. } = *ticket;
        let view = &mut self.agents[agent];
        if view.is_in_kernel() {
            return;
        }
        let from = std::mem::replace(&mut view.nbi, time).max(self.base);
        let runs = &mut self.pes[view.pe].nbi;
        match runs.iter_mut().rev().find(|run| run.agent == agent) {
            Some(run) if run.claimed == claimed => {
                run.to = time;
                run.issue = Rc::clone(issue);
            }
            _ => runs.push(Run { agent, from, to: time, issue: Rc::clone(issue), claimed }),
        }
    }

    /// A transfer's arrival at a PE.
    pub(super) fn arrival<'a>(&self, ticket: &'a Ticket, to: PeId) -> Arrival<'a> {
        Arrival::new(ticket, to, self.pes_per_node, self.promises, self.base, &self.agents)
    }

    /// An agent's call returns because its transfer has arrived.
    pub(crate) fn arrived(&mut self, agent: AgentId, ticket: &Ticket, to: PeId) {
        match ticket.lane {
            // own accesses, and what is known with them
            Lane::Steps | Lane::Arrived => {}
            _ => {
                let arrival = self.arrival(ticket, to);
                arrival.tell(self.agents[agent].clock());
            }
        }
    }
}

/// # Calls that return when their puts have arrived
impl Detector {
    /// If this is such a put, its own access is its agent's. What arrives before it, because transfers arrive in order, is known from now on.
    #[inline(always)] // on the hottest path, where a look at the lane is enough
    pub(crate) fn put_returns(&mut self, agent: AgentId, ticket: &Ticket, to: PeId) {
        if ticket.lane == Lane::Arrived && self.promises.in_order {
            self.learn_what_arrived_before(agent, ticket, to);
        }
    }

    fn learn_what_arrived_before(&mut self, agent: AgentId, ticket: &Ticket, to: PeId) {
        let is_outstanding = |of: &AgentId| self.agents[*of].issued > self.base;
        if self.scope_of(agent).iter().any(is_outstanding) {
            self.arrival(ticket, to).tell(self.agents[agent].clock());
        }
    }
}

/// # Fences, quiets, flushes
impl Detector {
    /// A fence: what the scope has issued to a PE is delivered before what it issues later to the same PE. Of the non-blocking
    /// operations that holds for those that the fence itself has claimed, or, for a host's, that nobody has.
    pub(crate) fn fence(&mut self, agent: AgentId, claim: Option<ClaimId>, at: Option<At>) {
        if !self.on {
            return;
        }
        let now = self.tick();
        if self.agents[agent].is_in_kernel() {
            self.agents[agent].fence = at.map(|at| (now, at));
            self.thread_fences(agent, now);
            if self.quiet == Quiet::Thread {
                return;
            }
        }
        let (pe, which) = self.agents[agent].scope();
        let is_host = !matches!(self.agents[agent].kind, Kind::Stream(_)); // a kernel waits in its call, as a host does
        let before = self.pes[pe].fenced[which].take();
        let mut fenced = Fenced::default();
        for of in self.scope_of(agent) {
            let all = Times::between(0, now);
            let mut nbi = all.clone();
            for run in self.pes[pe].nbi.iter().filter(|run| run.agent == of) {
                let is_mine = is_host && run.claimed.by.is_none() || claim.is_some() && run.claimed.by == claim;
                if !is_mine {
                    nbi.remove(run.from, run.to);
                }
            }
            // what an earlier fence has ordered stays so, whoever has claimed it since
            let earlier = before.iter().flat_map(|before| &before.transfers).filter(|(other, _)| *other == of);
            earlier.for_each(|(_, [_, earlier, _])| nbi.join(earlier));
            // a thread's plain store is no step: what nothing orders with it may come first
            let stores = match self.agents[of].is_in_kernel() && of != agent {
                true => Times::between(0, steps_of(&self.agents[agent].clock, &self.agents, of)),
                false => all.clone(),
            };
            fenced.transfers.push((of, [all, nbi, stores]));
            for (to, time, issue) in self.agents[of].sent.iter().filter(|_| of != agent) {
                let Some(to) = *to else { continue };
                let known = fenced.known.iter().position(|(pe, _)| *pe == to).unwrap_or_else(|| {
                    fenced.known.push((to, Clock::default()));
                    fenced.known.len() - 1
                });
                fenced.known[known].1.join(&issue.clock);
                fenced.known[known].1.learn_steps(of, *time);
            }
        }
        self.pes[pe].fenced[which] = Some(Rc::new(fenced));
        for of in self.scope_of(agent) {
            self.agents[of].issue = None;
        }
    }

    /// The agents whose operations a quiet of an agent covers: those of its scope, and for a stream, the PE's kernels.
    fn completed_by(&self, agent: AgentId) -> Agents {
        let mut all = self.scope_of(agent);
        if let Kind::Stream(_) = self.agents[agent].kind {
            let pe = self.agents[agent].pe;
            let in_kernel = |of: &AgentId| self.agents[*of].pe == pe && self.agents[*of].is_in_kernel();
            all.extend(self.agents.ids().filter(in_kernel));
        }
        all
    }

    /// The agents that share the scope of one.
    pub(super) fn scope_of(&self, agent: AgentId) -> Agents {
        scope_of(agent, &self.agents)
    }

    /// Whether a PE has non-blocking operations that no quiet has completed.
    #[inline]
    pub(crate) fn has_nbi(&self, pe: PeId) -> bool {
        self.on && !self.pes[pe].nbi.is_empty()
    }

    /// A call that completes claims the PE's non-blocking operations that have started: `take` does so with each one's claim,
    /// told whether it is of the call's scope. Returns what the call knows of the starts of those that nobody had claimed.
    pub(crate) fn claim_nbi(&mut self, agent: AgentId, mut take: impl FnMut(bool, &mut Claimed)) -> Option<Clock> {
        let Detector { agents, pes, .. } = self;
        let (pe, scope) = agents[agent].scope();
        let mut starts: Option<Clock> = None;
        for run in &mut pes[pe].nbi {
            let of = agents[run.agent].kind.scope();
            if run.claimed.by.is_none() {
                let clock = starts.get_or_insert_default();
                clock.join(&run.issue.clock);
                clock.learn_steps(run.agent, run.to);
            }
            take(of == scope, &mut run.claimed);
        }
        starts
    }

    /// What a claim tells its owner when it ends, besides what it completes.
    pub(crate) fn will_learn(&mut self, claim: ClaimId, starts: &Clock) {
        self.starts.entry(claim).or_default().join(starts);
    }

    /// A claimed operation of a stream has started.
    pub(crate) fn started(&mut self, stream: AgentId, claim: ClaimId) {
        if self.on {
            let view = &self.agents[stream];
            let clock = self.starts.entry(claim).or_default();
            clock.join(&view.clock);
            clock.learn_steps(stream, view.last);
        }
    }

    /// A call that completes learns what has arrived of its scope's blocking operations and stores: those that no quiet has
    /// claimed, and, where the call is a fence, also those that one has. Of what kernels have issued it learns everything.
    #[inline]
    pub(crate) fn complete(&mut self, agent: AgentId, completes: Completes) {
        if self.on && completes != Completes::Nothing {
            self.complete_now(agent, completes);
        }
    }

    fn complete_now(&mut self, agent: AgentId, completes: Completes) {
        let now = self.tick();
        let mut news = false;
        let in_kernel = self.agents[agent].is_in_kernel();
        if in_kernel && completes == Completes::Stores {
            self.system_fence(agent);
            self.agents[agent].last = now; // as below; it completes no store that it does not come after
            return;
        }
        for of in self.completed_by(agent) {
            let covered = covered_by(self.quiet, &self.agents, self.base, agent, of, now);
            let view = &mut self.agents[of];
            if view.issued <= self.base || covered == 0 {
                continue;
            }
            news = true;
            let stored = view.stored > self.base;
            let in_kernel = view.is_in_kernel();
            let to = covered.max(view.claimed);
            let claimed = if completes == Completes::Scope { std::mem::replace(&mut view.claimed, to) } else { 0 };
            let from = if in_kernel { 0 } else { claimed };
            let theirs = if of != agent && covered == now { view.sent.clone() } else { Vec::new() };
            let mine = self.agents[agent].clock();
            for (_, time, issue) in theirs {
                mine.join(&issue.clock);
                mine.learn_steps(of, time);
            }
            let known = mine.of(of);
            if stored && !in_kernel {
                known.lane(Lane::Stores).add(0, covered);
            }
            if completes != Completes::Stores {
                known.lane(Lane::Puts).add(from, covered);
                if in_kernel {
                    known.lane(Lane::Nbi).add(0, covered);
                }
            }
            known.prune();
        }
        if in_kernel {
            self.system_fence(agent); // also of stores that come before what it has completed
        }
        if news {
            self.agents[agent].last = now; // who does not come after this call does not know that they are complete
        }
    }

    /// The call that made a claim ends.
    pub(crate) fn end_claim(&mut self, owner: AgentId, claim: ClaimId) {
        if !self.on {
            return;
        }
        let pe = self.agents[owner].pe;
        if let Some(starts) = self.starts.remove(&claim) {
            self.agents[owner].clock().join(&starts);
        }
        let now = self.tick();
        let Detector { agents, pes, .. } = self;
        pes[pe].nbi.retain_mut(|run| {
            if run.claimed.by != Some(claim) {
                return true;
            }
            let Claimed { owed, .. } = std::mem::take(&mut run.claimed);
            if owed {
                let clock = agents[owner].clock();
                clock.join(&run.issue.clock);
                clock.learn_steps(run.agent, run.to);
                clock.of(run.agent).lane(Lane::Nbi).add(run.from, run.to);
                agents[owner].last = now; // as in `complete_now`
            }
            !owed
        });
    }

    /// The sources of the agent's own non-blocking puts have been read.
    pub(crate) fn flush(&mut self, agent: AgentId) {
        if self.on {
            let now = self.now;
            self.agents[agent].clock().of(agent).lane(Lane::Reads).add(0, now);
        }
    }
}

/// # Agents that learn from each other
impl Detector {
    /// What an agent knows now, to be learned later by somebody who comes after this call.
    pub(crate) fn snapshot(&mut self, agent: AgentId) -> Option<Snapshot> {
        self.on.then(|| {
            self.has_acted(agent);
            let view = &self.agents[agent];
            Snapshot { agent, pe: self.pes_per_node.map(|_| view.pe), time: view.last, clock: Rc::clone(&view.clock) }
        })
    }

    /// An agent comes after somebody's call.
    pub(crate) fn learn(&mut self, agent: AgentId, from: &Snapshot) {
        let Snapshot { agent: of, pe, time, ref clock } = *from;
        let view = &mut self.agents[agent];
        let news = time > self.base && view.clock.steps(of) < time && of != agent;
        if news {
            view.clock().learn_steps(of, time);
        }
        if !clock.is_empty() && !Rc::ptr_eq(clock, &view.clock) {
            view.clock().join(clock);
            pe.into_iter().for_each(|pe| view.clock().hear(pe, clock));
        }
    }

    /// An agent comes after everything that another has done.
    pub(crate) fn learn_all(&mut self, agent: AgentId, from: AgentId) {
        if let Some(snapshot) = self.snapshot(from) {
            self.learn(agent, &snapshot);
        }
    }
}

/// # Collectives
impl Detector {
    /// All of a team's members have entered, and leave. `is_everybody`: whether everybody who acts from now on comes after
    /// this meeting. If nothing is outstanding then either, everybody knows everything.
    pub(crate) fn meet(&mut self, members: &[AgentId], is_everybody: bool) {
        if !self.on {
            return;
        }
        // where the path matters, one meeting does not tell everybody of what others have been told by it
        if is_everybody && self.pes_per_node.is_none() && self.all_is_known() {
            self.base = self.tick();
            self.sites.known = self.sites.all.len() as u32;
            for view in self.agents.iter_mut() {
                view.issue = None;
                view.nbi_puts.clear();
                if let Some(&last) = view.log.last() {
                    view.log.clear(); // what everybody knows of it
                    view.log.push(last);
                }
                if !view.clock.is_empty() {
                    view.clock = Rc::clone(&self.nothing);
                }
            }
            self.pes.iter_mut().for_each(Outstanding::forget_fences);
            return;
        }
        let entries: Vec<Snapshot> = members.iter().filter_map(|&member| self.snapshot(member)).collect();
        let joined = Detector::entries(entries.iter());
        let joined = Rc::new(joined);
        for &member in members {
            let view = &mut self.agents[member];
            view.issue = None;
            view.clock = Rc::clone(&joined);
        }
    }

    /// Whether hosts know everything that has happened on their PE, and all of it is complete.
    fn all_is_known(&self) -> bool {
        let is_known = |agent: AgentId, view: &View| {
            let host = &self.agents[AgentId(view.pe.0)]; // hosts come first, by rank
            knows_step(&host.clock, &self.agents, agent, view.last)
        };
        let complete = |(agent, view): (AgentId, &View)| {
            view.issued <= self.base.max(view.claimed)
                && (view.last <= self.base || view.is_host() || is_known(agent, view))
        };
        self.agents.ids().zip(self.agents.iter()).all(complete) && self.pes.iter().all(|pe| pe.nbi.is_empty())
    }

    /// A part of a collective leaves its source's PE for another: the entry of its source's agent comes before it.
    pub(crate) fn part(&mut self, entry: &Snapshot, to: PeId, asked: (&'static str, At)) -> Ticket {
        self.part_of(entry.agent, Rc::clone(&entry.clock), to, asked)
    }

    /// The result of a reduction leaves for a member, after all entries.
    pub(crate) fn result(&mut self, all: &Rc<Clock>, member: AgentId, to: PeId, asked: (&'static str, At)) -> Ticket {
        self.part_of(member, Rc::clone(all), to, asked)
    }

    fn part_of(&mut self, agent: AgentId, clock: Rc<Clock>, to: PeId, (call, at): (&'static str, At)) -> Ticket {
        let (time, site) = (self.tick(), self.sites.number(call, at, self.agents[agent].mark));
        let view = &mut self.agents[agent];
        let previous = view.previous(to, Lane::Parts, time);
        view.last = view.last.max(time);
        let issue = Rc::new(Issue { clock, fenced: None });
        let (block, in_kernel) = (view.block, view.is_in_kernel());
        Ticket { agent, block, lane: Lane::Parts, reads: Lane::Reads, time, previous, site, in_kernel, issue }
    }

    /// What all entries together know.
    pub(crate) fn entries<'a>(entries: impl Iterator<Item = &'a Snapshot>) -> Clock {
        let mut all = Clock::default();
        for entry in entries {
            all.join(&entry.clock);
            entry.pe.into_iter().for_each(|pe| all.hear(pe, &entry.clock));
            all.learn_steps(entry.agent, entry.time);
        }
        all
    }

    /// A part has arrived: what its target's call learns.
    pub(crate) fn part_landed(&self, ticket: &Ticket, to: PeId, learned: &mut Clock) {
        self.arrival(ticket, to).tell(learned);
        Detector::source_read(ticket, learned);
    }

    /// The source of a part, or of a reduction, has been read: what somebody learns who comes after that.
    pub(crate) fn source_read(ticket: &Ticket, learned: &mut Clock) {
        learned.of(ticket.agent).lane(Lane::Reads).add(ticket.time - 1, ticket.time);
    }

    /// A member leaves a collective that moves data: its own source has been read since it entered.
    pub(crate) fn leave(&mut self, entry: &Snapshot, learned: &Clock) {
        let now = self.tick();
        let view = &mut self.agents[entry.agent];
        view.last = now; // as in `complete_now`
        let clock = view.clock();
        clock.join(learned);
        clock.of(entry.agent).lane(Lane::Reads).add(entry.time, now);
    }
}
