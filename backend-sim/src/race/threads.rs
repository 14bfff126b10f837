//! Threads of a kernel's block: each is an agent, and they know of each other what barriers, shuffles and strong accesses tell.
//!
//! What is known of a *block* at a moment, each of its threads has done by then: a barrier of the whole block tells one number in
//! place of one for each thread.

use std::rc::Rc;

use onesided::At;
use onesided::backend::Span;
use onesided_ptx::Scope;

use super::clock::{Clock, What};
use super::{Detector, FENCED, How, Lane, Mark, Scoped, Ticket, Told, Update, View, knows, steps_of};
use crate::config::Quiet;
use crate::machine::{AgentId, PeId, Table};

/// Up to where a call of an agent that completes covers what another agent of its scope has issued; `all`: everything.
pub(super) fn covered_by(
    quiet: Quiet,
    agents: &Table<AgentId, View>,
    base: u64,
    agent: AgentId,
    of: AgentId,
    all: u64,
) -> u64 {
    match quiet {
        Quiet::Thread if agents[agent].block.is_some() && of != agent => {
            base.max(steps_of(&agents[agent].clock, agents, of))
        }
        Quiet::Thread | Quiet::Pe => all,
    }
}

/// A strong store of a thread to another PE's memory, or an atomic there, as the detector knows it from its issue on.
#[derive(Clone, Debug)]
pub(crate) struct StrongWrite {
    pub(crate) ticket: Ticket,
    pub(crate) scope: Scope,
    pub(crate) update: Update,
    /// Whether it replaces whatever the word held before.
    pub(crate) replaces: bool,
}

impl Detector {
    /// An agent is a thread of a block from now on. `rank`: the number of the block, if that is a cluster.
    pub(crate) fn is_thread_of(&mut self, thread: AgentId, block: AgentId, rank: u32) {
        if self.on {
            let View { met, mark, ref clock, .. } = self.agents[block];
            let clock = Rc::clone(clock);
            let view = &mut self.agents[thread];
            (view.block, view.met, view.mark, view.clock, view.issue) = (Some(block), met, mark, clock, None);
            view.rank = rank;
            view.made_by = None;
        }
    }

    /// An agent is a bulk copy that a thread of a block makes: it is beside all of them, and knows what its thread knew.
    pub(crate) fn is_copy_of(&mut self, copy: AgentId, block: AgentId) {
        if self.on {
            let mark = self.agents[block].mark;
            let view = &mut self.agents[copy];
            (view.block, view.mark, view.issue, view.made_by) = (None, mark, None, Some((block, 0)));
        }
    }

    /// A bulk copy begins, if that is what it is.
    pub(crate) fn is_made_by(&mut self, copy: AgentId, maker: AgentId) {
        if self.on && self.agents[copy].made_by.is_some() {
            let View { last, mark, .. } = self.agents[maker];
            self.agents[copy].made_by = Some((maker, last));
            self.agents[copy].mark = mark;
        }
    }

    /// A thread is about to act: it knows what its block knew when all threads met last.
    pub(crate) fn thread_acts(&mut self, thread: AgentId) {
        if !self.on {
            return;
        }
        if let Some(block) = self.agents[thread].block {
            self.thread_of_acts(thread, block);
        }
    }

    /// The same, of a thread of this block.
    #[inline]
    pub(super) fn thread_of_acts(&mut self, thread: AgentId, block: AgentId) {
        let met = self.agents[block].met;
        if self.agents[thread].met != met {
            let clock = Rc::clone(&self.agents[block].clock);
            let view = &mut self.agents[thread];
            (view.met, view.clock, view.issue) = (met, clock, None);
        }
    }

    /// All threads of a block that are left have met: whoever goes on comes after what each of these has done.
    pub(crate) fn block_meets(&mut self, block: AgentId, threads: impl Iterator<Item = AgentId> + Clone) {
        if !self.on {
            return;
        }
        self.found.block_meets(block, &self.agents);
        let now = self.tick();
        let met = self.agents[block].met;
        // A thread knows what its block knew, and more. Until it acts again it holds no clock: so what it has learned is mostly not copied.
        let before = std::mem::replace(&mut self.agents[block].clock, Rc::clone(&self.nothing));
        let (mut joined, mut last): (Option<Rc<Clock>>, Option<Rc<Clock>>) = (None, None);
        for thread in threads.clone() {
            let view = &mut self.agents[thread];
            if view.met != met {
                continue;
            }
            view.issue = None;
            let clock = std::mem::replace(&mut view.clock, Rc::clone(&self.nothing));
            let is_known = |known: &Option<Rc<Clock>>| known.as_ref().is_some_and(|known| Rc::ptr_eq(known, &clock));
            if Rc::ptr_eq(&before, &clock) || is_known(&joined) || is_known(&last) {
                continue;
            }
            match &mut joined {
                None => joined = Some(clock),
                Some(joined) => {
                    Rc::make_mut(joined).join(&clock);
                    last = Some(clock);
                }
            }
        }
        let mut joined = joined.unwrap_or(before);
        let clock = Rc::make_mut(&mut joined);
        clock.learn_steps(block, now);
        if self.agents[block].wrote > self.base {
            self.gather_stores(block, threads, clock, now);
        }
        let view = &mut self.agents[block];
        view.met_at = [now, view.met_at[0]];
        (view.met, view.last, view.clock, view.issue) = (met + 1, now, joined, None);
    }

    /// Where each thread of a block that has stored has fenced since, what a clock knows of that is said once: of the block.
    fn gather_stores(
        &self,
        block: AgentId,
        threads: impl Iterator<Item = AgentId> + Clone,
        clock: &mut Clock,
        now: u64,
    ) {
        let stores = threads.map(|thread| (thread, self.agents[thread].wrote)).filter(|(_, wrote)| *wrote > self.base);
        for what in [What::Over(Lane::Stores), What::Fenced] {
            if clock.knows_all(block, what, stores.clone()) {
                clock.gather(block, what, now, |of| {
                    let view = &self.agents[of];
                    // a fence of NVSHMEM is also about what else a thread has issued
                    view.block == Some(block) && (what != What::Fenced || view.issued <= self.base)
                });
            }
        }
    }

    /// All threads of a block have met. Where each of them has fenced after all that it has done, what these fences tell is said once: of the block.
    pub(crate) fn gather_told(&self, block: AgentId, threads: impl Iterator<Item = AgentId> + Clone, told: &mut Told) {
        let is_of_block = |of: AgentId| self.agents[of].block == Some(block);
        let is_told = |thread: AgentId| {
            let last = self.agents[thread].last;
            last <= self.base.max(steps_of(&told.clock, &self.agents, thread))
        };
        if !told.clock.all_steps().any(|(of, _)| is_of_block(of)) || !threads.clone().all(is_told) {
            return;
        }
        let clock = Rc::make_mut(&mut told.clock);
        let met = self.agents[block].last;
        self.gather_stores(block, threads, clock, met);
        clock.gather_steps(block, met, is_of_block);
    }

    /// A thread accesses its block's shared memory. Returns the moment. What the thread tells later has a later moment, so those who hear it
    /// know this one.
    pub(crate) fn acts_in_block(&mut self, thread: AgentId) -> u64 {
        self.agents[thread].acted = true;
        self.now
    }

    /// What a thread has done in its block's shared memory is behind it, before it tells others what it has done.
    pub(super) fn has_acted(&mut self, agent: AgentId) {
        if std::mem::take(&mut self.agents[agent].acted) {
            let now = self.tick();
            self.agents[agent].last = now;
        }
    }

    /// Some threads have met: `into` come after what `from` have done.
    pub(crate) fn threads_meet(&mut self, from: &[AgentId], into: &[AgentId]) {
        if !self.on || from.is_empty() {
            return;
        }
        from.iter().chain(into).for_each(|&thread| self.thread_acts(thread));
        from.iter().for_each(|&thread| self.has_acted(thread));
        let mut joined = Rc::clone(&self.agents[from[0]].clock);
        let mut last = Rc::clone(&joined);
        for &thread in from {
            let clock = &self.agents[thread].clock;
            if !Rc::ptr_eq(clock, &joined) && !Rc::ptr_eq(clock, &last) {
                last = Rc::clone(clock);
                Rc::make_mut(&mut joined).join(&last);
            }
        }
        for &thread in from {
            let done = self.agents[thread].last;
            if done > self.base.max(steps_of(&joined, &self.agents, thread)) {
                Rc::make_mut(&mut joined).learn_steps(thread, done);
            }
        }
        for &thread in into {
            let view = &mut self.agents[thread];
            if Rc::ptr_eq(&view.clock, &joined) {
                continue;
            }
            view.issue = None;
            if from.contains(&thread) {
                view.clock = Rc::clone(&joined);
            } else {
                Rc::make_mut(&mut view.clock).join(&joined);
            }
        }
    }

    /// A thread stores plainly to another PE's memory: everybody there may see that later, and others of its GPU at once.
    pub(crate) fn store_to_peer(
        &mut self,
        thread: AgentId,
        pe: PeId,
        span: Span,
        asked: (&'static str, At),
    ) -> Option<Ticket> {
        let ticket = self.on.then(|| self.issue_store(thread, pe, asked))?;
        self.transfer(&ticket, pe, span, How::Write, span.len);
        Some(ticket)
    }

    fn issue_store(&mut self, thread: AgentId, pe: PeId, asked: (&'static str, At)) -> Ticket {
        let ticket = self.issue_now(thread, pe, Lane::Stores, false, asked);
        self.has_stored(thread, ticket.time);
        ticket
    }

    /// An agent of a kernel has stored: to others than the kernels of its PE, fences of the system tell that.
    #[inline]
    pub(super) fn has_stored(&mut self, agent: AgentId, time: u64) {
        let view = &mut self.agents[agent];
        view.wrote = time;
        let (pe, block) = (view.pe, view.block);
        self.pes[pe].wrote = time;
        if let Some(block) = block {
            self.agents[block].wrote = time;
        }
    }

    /// A thread writes strongly to another PE's memory, where races are looked for: that arrives later. `behind`: what it comes after besides, by fences
    /// of NVSHMEM.
    pub(crate) fn sends_strongly(
        &mut self,
        thread: AgentId,
        pe: PeId,
        behind: Option<&Told>,
        asked: (&'static str, At),
    ) -> Ticket {
        self.behind(thread, behind, |races| races.issue_store(thread, pe, asked))
    }

    /// A strong write of a thread arrives at a word: who has read it there comes after it, and after what it tells.
    pub(crate) fn strong_write_arrives(&mut self, write: &StrongWrite, (pe, word): (PeId, Span)) {
        let StrongWrite { ticket, scope, update, replaces } = write;
        let how = How::AtomicUpdate;
        let mark = Mark::new(ticket.agent, ticket.lane, ticket.time, ticket.site, how, word.len).within(*scope);
        self.transfer_by(ticket, pe, word, mark);
        self.update_by_kernel(update, (pe, word), *replaces);
    }

    /// The stores that are before a fence or a release of an agent in the scope of the system: its own, and those of others of its PE's kernels that it
    /// comes after. By thread, or by block for all threads of it, up to when.
    fn stores_before(&self, agent: AgentId) -> Vec<(AgentId, u64)> {
        let view = &self.agents[agent];
        if self.pes[view.pe].wrote <= self.base {
            return Vec::new();
        }
        let has_stored = |&(of, upto): &(AgentId, u64)| {
            let other = &self.agents[of];
            upto > self.base && other.wrote > self.base && other.pe == view.pe && other.is_in_kernel()
        };
        view.clock.all_steps().chain([(agent, view.last)]).filter(has_stored).collect()
    }

    /// A thread comes to a fence in the scope of the system: whatever it does or issues later comes after the stores before that.
    pub(crate) fn system_fence(&mut self, thread: AgentId) {
        for (of, upto) in self.stores_before(thread) {
            self.agents[thread].clock().of(of).lane(Lane::Stores).add(0, upto);
        }
    }

    /// What a thread tells that releases. `system`: in the scope of the system.
    pub(crate) fn tell_by_kernel(&mut self, thread: AgentId, system: bool) -> Scoped {
        let Some(mut told) = self.tell(thread) else { return Scoped::default() };
        for (of, upto) in self.stores_before(thread).into_iter().filter(|_| system) {
            Rc::make_mut(&mut told.clock).of(of).lane(Lane::Stores).add(0, upto);
        }
        Scoped::of(told, Scope::Sys, None)
    }

    /// A block has ended: whoever comes after that comes after the stores of its threads.
    pub(crate) fn block_ends(&mut self, block: AgentId, threads: impl Iterator<Item = AgentId>) {
        if !self.on || self.pes[self.agents[block].pe].wrote <= self.base {
            return;
        }
        for thread in threads {
            let view = &mut self.agents[thread];
            if view.stored > self.base && view.issued == view.stored {
                view.claimed = view.stored; // nothing else of it is outstanding
            }
        }
        self.system_fence(block);
    }

    /// Whether a call of an agent that completes covers a transfer of its scope: see [`Quiet`].
    pub(crate) fn quiet_covers(&self, agent: AgentId, ticket: Option<&Ticket>) -> bool {
        ticket.is_none_or(|&Ticket { agent: of, time, .. }| {
            time <= covered_by(self.quiet, &self.agents, self.base, agent, of, u64::MAX)
        })
    }

    /// Whether an agent of a kernel comes after a store of its PE's kernels: its fences and releases put no other in order. The end of a block
    /// comes after those of all its threads.
    pub(crate) fn comes_after_store(&self, agent: AgentId, store: Option<&Ticket>) -> bool {
        store.is_none_or(|&Ticket { agent: of, time, .. }| {
            of == agent || self.agents[of].block == Some(agent) || self.comes_after(agent, of, time)
        })
    }

    /// Whether an agent knows that a store has arrived: because it has waited for that, or because a fence says so, and whoever writes behind
    /// the fence waits.
    pub(crate) fn is_told_of_arrival(&self, agent: AgentId, store: Option<&Ticket>, to: PeId) -> bool {
        store.is_some_and(|store| {
            knows(&self.agents[agent].clock, &self.agents, store.agent, Lane::Stores, store.time, to)
        })
    }

    /// A thread's fence puts what it comes after before whatever is issued by somebody who comes after the fence. So this order is something that
    /// threads know, and tell each other. For plain stores the fence does no more than that, whatever fences are about.
    pub(super) fn thread_fences(&mut self, thread: AgentId, now: u64) {
        for of in self.scope_of(thread) {
            let covered = covered_by(Quiet::Thread, &self.agents, self.base, thread, of, now);
            if self.agents[of].issued > self.base && covered > 0 {
                self.agents[thread].clock().of(of).fenced().add(0, covered);
            }
        }
        for (of, upto) in self.stores_before(thread) {
            self.agents[thread].clock().of(of).fenced().add(0, upto);
        }
    }

    /// What fences of NVSHMEM put before a thread's own strong writes to a PE's memory: arrivals there, and nothing that came before their issue. For
    /// that, a flag needs a release.
    pub(crate) fn fenced_before(&mut self, thread: AgentId, to: PeId) -> Option<Told> {
        if !self.on {
            return None;
        }
        let mut clock = Clock::default();
        let view = &self.agents[thread];
        if let Some(fenced) = &self.pes[view.pe].fenced[view.kind.scope()] {
            fenced.tell_arrivals(to, &mut clock);
        }
        for (of, times) in view.clock.fenced().filter(|(of, _)| self.agents[*of].scope() == view.scope()) {
            FENCED.into_iter().for_each(|lane| clock.learn_to(of, lane, to, times));
        }
        (!clock.is_empty()).then(|| Told { time: self.tick(), clock: Rc::new(clock) })
    }

    /// Whether fences of NVSHMEM by threads put a transfer before what a thread does now.
    pub(crate) fn has_fenced(&self, thread: AgentId, ticket: Option<&Ticket>) -> bool {
        ticket.is_some_and(|ticket| self.agents[thread].clock.has_fenced(ticket.agent, ticket.time))
    }

    /// When an agent made its last step.
    pub(crate) fn last_step(&self, agent: AgentId) -> u64 {
        self.agents[agent].last
    }

    /// Whether an agent comes after what another has done by a time.
    pub(crate) fn comes_after(&self, agent: AgentId, of: AgentId, time: u64) -> bool {
        time <= self.base.max(steps_of(&self.agents[agent].clock, &self.agents, of))
    }
}
