//! The threads of a block, as the race detector sees them: each is an agent, which knows what it has done, and what barriers, shuffles,
//! strong accesses and its own calls have told it.

use onesided::At;
use onesided::backend::Span;
use onesided_ptx::{Access, AccessKind, AtomicOp, Sync, Type, Written, each_lane, in_a_row};

use super::super::access::shared_at;
use super::super::ids::{AgentId, BlockId, PeId};
use super::super::past::Past;
use super::super::tells::Tells;
use super::super::{Fold, Machine, Object, Touch};
use super::{Running, address, arrives};
use crate::race::How;

impl Machine {
    /// The agent of a thread, which begins to be one when it first acts.
    #[inline]
    pub(super) fn agent_of_thread(&mut self, id: BlockId, thread: usize) -> AgentId {
        match self.kernels.blocks[id].threads[thread] {
            Some(agent) => agent,
            None => self.new_thread(id, thread),
        }
    }

    #[cold]
    fn new_thread(&mut self, id: BlockId, thread: usize) -> AgentId {
        let (block, number) = (self.kernels.blocks[id].agent, self.kernels.blocks[id].number);
        let (pe, launched) = (self.agents[block].pe, std::sync::Arc::clone(&self.kernels.blocks[id].launched));
        let agent = self.agent_in_kernel(pe, id, (&launched, number, Some(thread)));
        match (thread as u64) < launched.threads {
            true => self.races.is_thread_of(agent, block, launched.rank_of(thread as u64)),
            false => self.races.is_copy_of(agent, block),
        }
        self.kernels.blocks[id].threads[thread] = Some(agent);
        agent
    }

    /// A thread is about to do something that others may race with.
    pub(super) fn thread_acts(&mut self, id: BlockId, thread: usize) -> AgentId {
        let agent = self.agent_of_thread(id, thread);
        self.races.thread_acts(agent);
        agent
    }

    /// A thread reads or writes plainly.
    pub(super) fn plain_access(
        &mut self,
        id: BlockId,
        thread: usize,
        (pe, span): (PeId, Span),
        how: How,
        asked: (&'static str, At),
    ) {
        if self.races.is_on() {
            let agent = self.thread_acts(id, thread);
            if how == How::Write && pe != self.agents[agent].pe {
                self.plain_store_to_peer(agent, (pe, span), asked);
                return;
            }
            self.observe(agent, pe, span, how, span.len, asked);
        }
    }

    /// Threads read or write plainly by one instruction: those of these lanes, each at its address in an allocation of the PE. Races
    /// are looked for.
    pub(super) fn plain_accesses(
        &mut self,
        id: BlockId,
        access: &Access,
        (lanes, addresses): (u32, &[u64; 32]),
        (pe, all): (PeId, Span),
        how: How,
        asked: (&'static str, At),
    ) {
        let lead = lanes.trailing_zeros();
        let (first, size) = ((access.thread - lead) as usize, usize::from(access.bytes));
        let word = |address: u64| Span { start: address::offset(address), len: size, ..all };
        let begin = addresses[lead as usize];
        // also where lanes between them do not take part
        let is_row = || each_lane(lanes).zip((begin..).step_by(size)).all(|(lane, next)| addresses[lane] == next);
        if self.looks_for_all_lints() || in_a_row(addresses, lanes, access.bytes).is_none() && !is_row() {
            for lane in each_lane(lanes) {
                self.plain_access(id, first + lane, (pe, word(addresses[lane])), how, asked);
            }
            return;
        }
        let mut threads = [AgentId(0); 32];
        let known = &self.kernels.blocks[id].threads;
        let mut is_new = false;
        for (thread, lane) in threads.iter_mut().zip(each_lane(lanes)) {
            match known[first + lane] {
                Some(agent) => *thread = agent,
                None => is_new = true,
            }
        }
        if is_new {
            for (thread, lane) in threads.iter_mut().zip(each_lane(lanes)) {
                *thread = self.agent_of_thread(id, first + lane);
            }
        }
        let threads = &threads[..lanes.count_ones() as usize];
        let words = Span { len: threads.len() * size, ..word(begin) };
        self.races.touch_words(self.kernels.blocks[id].agent, threads, (pe, words), how, asked);
    }

    /// A thread has read a word that nobody may write while its kernel runs.
    pub(super) fn reads_only(&mut self, id: BlockId, thread: usize, (pe, word): (PeId, Span)) {
        if self.races.is_on() {
            let agent = self.agent_of_thread(id, thread);
            self.races.reads_only(agent, pe, word);
        }
    }

    /// A thread has accessed shared memory strongly.
    pub(super) fn accessed_shared(&mut self, id: BlockId, access: &Access, written: Option<&Written>) {
        self.mbarrier_changed(id, access);
        let (pe, word) = shared_at(self.block_name(id), access.address, access.bytes).expect("it lies there");
        let ending = self.kernels.ending.take_if(|ending| ending.is_load_of(pe, word));
        if !self.in_chosen_step || std::mem::take(&mut self.kernels.sees_steady_phase) {
            return;
        }
        let object = Object::memory(pe, word);
        self.depend_on_polled(id, access.thread as usize, &object);
        match (access.kind, written) {
            (AccessKind::Arrive { odd, ends }, _) => {
                self.touch(object, Touch::Fold(arrival(access.commutes, odd)));
                if ends {
                    self.touch(object, Touch::Ends);
                }
                if self.mode.needs.tracking {
                    self.arrived_at(id, access, ends);
                }
            }
            (_, Some(written)) => self.updates_shared(id, access, (pe, word), written),
            (_, None) if ending.is_some_and(|ending| ending.is_steady) => {}
            (_, None) => self.touch(object, Touch::Read),
        }
        if written.is_some_and(|written| written.before != written.now) && self.mode.needs.tracking {
            let number = self.number();
            self.kernels.blocks[id].watches.changed(object, number);
        }
    }

    /// A word of shared memory is updated in the step that was chosen.
    fn updates_shared(&mut self, id: BlockId, access: &Access, (pe, word): (PeId, Span), written: &Written) {
        let around = Span { start: word.start & !7, len: 8, ..word };
        self.keep_shared((pe, around), written.before);
        let replaced =
            [written.before, written.now].map(|all| all >> (8 * (word.start & 7)) & (u64::MAX >> (64 - 8 * word.len)));
        let op = match access.kind {
            AccessKind::Atomic(op) if access.commutes => Some(op),
            _ => None,
        };
        let adds = (op == Some(AtomicOp::Add)).then(|| replaced[1].wrapping_sub(replaced[0]));
        // minima and maxima are signed or not, and nobody says so here
        let fold = op.filter(|op| matches!(op, AtomicOp::And | AtomicOp::Or | AtomicOp::Xor));
        let fold = fold.and_then(|op| fold_of(op, Type::B64));
        let tells = Tells::in_block(self.told_in_block(id, access.address), written.told.clone());
        if let Some(arrival) = arrives::arrival(access) {
            return self.touch_arrival((pe, word), replaced.into(), arrival, Some(tells));
        }
        let touch = self.touch_of_update((pe, word), (replaced[0], replaced[1]), (adds, fold), Some(tells));
        self.touch(Object::memory(pe, word), touch);
    }

    /// A thread accesses its block's shared memory: when that is.
    pub(super) fn acts_in_block(&mut self, id: BlockId, thread: usize) -> u64 {
        if !self.races.is_on() {
            return 0;
        }
        let agent = self.agent_of_thread(id, thread);
        self.races.acts_in_block(agent)
    }

    /// Whether a thread comes after what another one of its block had done by a moment.
    pub(super) fn thread_comes_after(&mut self, id: BlockId, thread: usize, of: usize, moment: u64) -> bool {
        if !self.races.is_on() {
            return false;
        }
        let Some(of) = self.kernels.blocks[id].threads[of] else { return false };
        let thread = self.thread_acts(id, thread);
        moment.checked_add(1).is_some_and(|later| self.races.comes_after(thread, of, later))
    }

    /// All threads of a block that have acted, and those that have ended, know of each other.
    pub(super) fn all_threads_meet(&mut self, id: BlockId) {
        let Running { agent, ref mut heard, ref threads, ref launched, .. } = self.kernels.blocks[id];
        let threads = threads[..launched.threads as usize].iter().copied().flatten();
        self.races.block_meets(agent, threads.clone());
        for told in heard.all_meet() {
            self.races.gather_told(agent, threads.clone(), told);
        }
    }

    /// A block ends, and with it its bulk copies: whoever comes after it comes after what they have done.
    pub(super) fn copies_end(&mut self, id: BlockId) {
        let Running { ref threads, ref launched, .. } = self.kernels.blocks[id];
        let copies: Vec<AgentId> = threads[launched.threads as usize..].iter().copied().flatten().collect();
        if self.races.is_on() && !copies.is_empty() {
            let into = self.agent_of_thread(id, 0);
            self.races.threads_meet(&copies, &[into]);
        }
    }

    /// In a search: what a step of these threads comes after.
    pub(super) fn past_of_threads(&self, id: BlockId, threads: &[usize]) -> Past {
        let Running { agent, ref pasts, .. } = self.kernels.blocks[id];
        let mut past = self.agents[agent].past.clone();
        threads.iter().filter_map(|thread| pasts.get(thread)).for_each(|own| past.join(own));
        past
    }

    /// In a search: the block comes after what its threads have done, and so does what they do next.
    pub(super) fn pasts_meet(&mut self, id: BlockId) {
        let Running { agent, ref mut pasts, .. } = self.kernels.blocks[id];
        std::mem::take(pasts).values().for_each(|past| self.agents[agent].past.join(past));
    }

    /// The interpreter has ordered threads.
    pub(super) fn threads_synchronize(&mut self, id: BlockId, sync: &Sync) {
        match sync {
            Sync::MeetAll => self.pasts_meet(id),
            Sync::Meet { from, into } if self.mode.needs.tracking => {
                let all = self.past_of_threads(id, from);
                let pasts = &mut self.kernels.blocks[id].pasts;
                into.iter().for_each(|&thread| pasts.entry(thread).or_default().join(&all));
            }
            &Sync::Arrive { ref from, barrier, first, .. } if self.mode.needs.tracking => {
                let past = self.past_of_threads(id, from);
                let arrived = self.kernels.blocks[id].arrived.entry(barrier).or_default();
                if first {
                    arrived.clear();
                }
                arrived.join(&past);
            }
            Sync::Pass { into, barrier } if self.mode.needs.tracking => {
                let Running { pasts, arrived, .. } = &mut self.kernels.blocks[id];
                let past = &arrived[barrier];
                into.iter().for_each(|&thread| pasts.entry(thread).or_default().join(past));
            }
            Sync::Meet { .. } | Sync::Arrive { .. } | Sync::Pass { .. } => {}
            Sync::Write { .. } | Sync::Read { .. } | Sync::PhaseEnds { .. } | Sync::SeesPhase { .. } => {} // steps
        }
        if !self.races.is_on() {
            return;
        }
        match *sync {
            Sync::MeetAll => self.all_threads_meet(id),
            Sync::Meet { ref from, ref into } => {
                let Running { heard, makers, launched, .. } = &mut self.kernels.blocks[id];
                heard.meet(from, into);
                if let ([maker], [copy]) = (&from[..], &into[..])
                    && *copy as u64 >= launched.threads
                {
                    makers.insert(*copy, *maker);
                }
                let [from, into] = [from, into]
                    .map(|all| all.iter().map(|&thread| self.agent_of_thread(id, thread)).collect::<Vec<_>>());
                self.races.threads_meet(&from, &into);
                if let ([maker], [copy]) = (&from[..], &into[..]) {
                    self.races.is_made_by(*copy, *maker);
                }
            }
            Sync::Arrive { ref from, barrier, first, releases } => {
                let from = if releases { &from[..] } else { &[] };
                self.arrives_in_block(id, from, barrier, first);
            }
            Sync::Pass { ref into, barrier } => self.passes_in_block(id, into, barrier),
            Sync::Write { thread, place, address, releases, atomic } => {
                self.tells_in_block(id, (thread, place), address, releases, atomic);
            }
            Sync::Read { thread, place, address, acquires, in_vain } => {
                self.hears_in_block(id, (thread, place), (address, acquires), in_vain);
            }
            Sync::PhaseEnds { mbarrier } => self.phase_ends_in_block(id, mbarrier),
            Sync::SeesPhase { thread, mbarrier } => self.hears_of_phase(id, thread, mbarrier),
        }
    }
}

/// An arrival at an mbarrier, or bytes that are announced to it, in one of its phases.
fn arrival(commutes: bool, odd: bool) -> Fold {
    match (commutes, odd) {
        (true, false) => Fold::ArrivalsEven,
        (true, true) => Fold::ArrivalsOdd,
        (false, false) => Fold::BytesEven,
        (false, true) => Fold::BytesOdd,
    }
}

/// Whether an atomic on a number of a type commutes with its like.
pub(super) fn fold_of(op: AtomicOp, ty: Type) -> Option<Fold> {
    match op {
        AtomicOp::And => Some(Fold::And),
        AtomicOp::Or => Some(Fold::Or),
        AtomicOp::Xor => Some(Fold::Xor),
        AtomicOp::Min if ty.is_signed() => Some(Fold::LeastSigned),
        AtomicOp::Max if ty.is_signed() => Some(Fold::GreatestSigned),
        AtomicOp::Min => Some(Fold::Least),
        AtomicOp::Max => Some(Fold::Greatest),
        AtomicOp::Add | AtomicOp::Inc | AtomicOp::Dec | AtomicOp::Exchange | AtomicOp::CompareSwap => None,
    }
}
