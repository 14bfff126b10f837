//! What strong accesses and fences of kernels tell (PTX's memory model): a release tells what its thread has done, an acquire learns it.
//!
//! A fence followed by a strong store releases, and so does a quiet, which has completed more; a strong load followed by a fence acquires.
//! After a barrier of the block, any thread's strong store releases what another thread has fenced: `__threadfence(); __syncthreads();`,
//! then a store by one thread, is common, and right on every GPU. Acquiring is stricter: each thread must fence after its own read.
//!
//! Between two kernels of a stream all threads fence: a GPU writes back at the end of a kernel, and reads anew at the beginning of the next.

use std::collections::BTreeMap;

use onesided::At;
use onesided::backend::{AllocId, Span};
use onesided_ptx::{Access, AccessKind, InVain, Place, Scope, Within};

use super::super::access::Test;
use super::super::agent::Agent;
use super::super::ids::{AgentId, BlockId, PeId};
use super::super::{Machine, Object, Touch};
use super::{Ending, Running};
use crate::config::Quiet;
use crate::lint::{By, Missed, Notice, Strong};
use crate::race::{How, Lack, Reach, Scoped, StrongWrite, Told, join_told, takes_in_blocks};

/// So many words that a line has read are told apart.
const MOST_WORDS: usize = 32;

/// What a block's relaxed accesses have brought, and what its next relaxed stores tell.
#[derive(Debug, Default)]
pub(super) struct Heard {
    /// What each thread has read by strong loads since its last fence: one for each line, scope and word, and not too many for a line, so a loop without a fence
    /// does not add up.
    pending: BTreeMap<usize, Vec<Pending>>,
    /// Of that, what each thread has acquired by its last fence that did, behind the last barrier of all threads.
    acquired: BTreeMap<usize, Vec<Pending>>,
    /// What each thread's fences tell that are behind the last barrier of all threads, its own and those that it comes after.
    fenced: BTreeMap<usize, Scoped>,
    /// What fences before that barrier tell.
    met: Scoped,
    /// What was released at addresses of shared memory, and at mbarriers until their last phases ended.
    shared: BTreeMap<u64, Told>,
    phases: BTreeMap<u64, Told>,
    /// A thread's next strong read of shared memory learns this, and not what is told there now.
    as_of: Option<(usize, Option<Told>)>,
    /// What was released at an address before atomics that follow each other and have asked in vain.
    in_vain: BTreeMap<u64, Option<Told>>,
    /// What a thread has released by its last release of a word of global memory: its later stores to that word tell it, too.
    released: BTreeMap<(usize, PeId, AllocId, usize), Scoped>,
    /// What those had done, and fenced, who arrived at a barrier.
    arrived: BTreeMap<usize, (Option<Told>, Scoped)>,
}

/// What strong loads at a line have read, and no fence has acquired yet.
#[derive(Clone, Debug)]
struct Pending {
    told: Told,
    /// The scope that a fence must have.
    scope: Scope,
    /// When the thread read there last, and where in a kernel's text.
    time: u64,
    at: At,
    /// The word of global memory that was read; `None` if there were too many, or if it is one of shared memory.
    word: Option<(PeId, AllocId, usize)>,
}

impl Heard {
    /// What the fences tell that a thread comes after.
    fn fenced_before(&self, thread: usize) -> Scoped {
        let mut all = self.met.clone();
        if let Some(own) = self.fenced.get(&thread) {
            all.join(own);
        }
        all
    }

    /// All threads have met. Returns what their fences tell, by scope.
    pub(super) fn all_meet(&mut self) -> impl Iterator<Item = &mut Told> {
        self.acquired.clear(); // all come after those fences
        std::mem::take(&mut self.fenced).values().for_each(|fenced| self.met.join(fenced));
        let Scoped { system, gpu, block } = &mut self.met;
        let near = [gpu, block].into_iter().flatten().map(|near| &mut near.told);
        system.iter_mut().chain(near)
    }

    /// Some threads have met: `into` come after what `from` have done.
    pub(super) fn meet(&mut self, from: &[usize], into: &[usize]) {
        let Some(fenced) = self.fenced_by(from) else { return };
        for &thread in into {
            match from.contains(&thread) {
                true => _ = self.fenced.insert(thread, fenced.clone()), // its own are among them
                false => self.fenced.entry(thread).or_default().join(&fenced),
            }
        }
    }

    /// What the fences of these threads tell that are behind the last barrier of all.
    fn fenced_by(&self, threads: &[usize]) -> Option<Scoped> {
        let mut fences = threads.iter().filter_map(|thread| self.fenced.get(thread));
        let mut joined = fences.next()?.clone();
        fences.for_each(|fenced| joined.join(fenced));
        Some(joined)
    }

    fn reads(&mut self, thread: usize, read: Pending) {
        let pending = self.pending.entry(thread).or_default();
        let of_line = |known: &Pending| (known.scope, known.at) == (read.scope, read.at);
        let is_full =
            pending.len() >= MOST_WORDS && pending.iter().filter(|known| of_line(known)).count() >= MOST_WORDS;
        match pending.iter_mut().find(|known| of_line(known) && (known.word == read.word || is_full)) {
            Some(known) => {
                known.told.join(&read.told);
                known.time = read.time;
                known.word = known.word.filter(|word| read.word == Some(*word));
            }
            None => pending.push(read),
        }
    }
}

impl Machine {
    /// A block accesses a word strongly. `writes`: a compare-and-swap that finds another value does not. `ending`: the load ends a loop. Returns what
    /// a load finds that is older than what the word holds.
    pub(super) fn strong_access(
        &mut self,
        id: BlockId,
        (access, by): (&Access, usize),
        (pe, span): (PeId, Span),
        (writes, ending): (bool, Option<Ending>),
        asked: (&'static str, At),
    ) -> Option<u64> {
        let is_peer_write = self.comes_to_strong_access(id, access, (pe, span));
        let refused = self.kernels.refused.take();
        if !self.races.is_on() {
            return None;
        }
        let agent = self.thread_acts(id, by);
        // who does not look at what an atomic has found cannot know what it comes after
        let reads = access.kind != AccessKind::Store && !access.commutes;
        // nor can who gets the answer no, behind others who got it
        let follows = refused.is_some_and(|arrival| self.follows_refused((pe, span), arrival));
        let how = match (writes, access.kind) {
            (false, _) => How::AtomicRead,
            (true, AccessKind::Atomic(_)) if reads && !follows => How::AtomicFetch,
            (true, _) => How::AtomicUpdate,
        };
        let behind = if writes && is_peer_write { self.races.fenced_before(agent, pe) } else { None };
        self.races.touch_strongly(agent, (pe, span), (how, access.scope), behind.as_ref(), asked);
        let mut missed = Missed::default();
        if let Some(lints) = &mut self.lints {
            let by = By::Agent { agent, time: self.races.last_step(agent), asked };
            let waits = self.kernels.blocks[id].launched.code.module.is_look(access.place);
            let (is_load, replaces) = (access.kind == AccessKind::Load, !access.commutes);
            let (place, is_part) = ((pe, span), access.within != Within::Alone);
            let before = self.heap.load(pe, span);
            let strong = Strong { by, place, reads, writes, is_load, replaces, waits, is_part, before };
            lints.notice(&Notice::Strong(strong), &mut self.races);
            missed = lints.take_missed();
        }
        if let Some(assumed) = self.assumed.as_mut().filter(|_| missed.may) {
            assumed.misses(pe, span);
        }
        let heard = match &missed.older {
            _ if !reads => crate::race::Heard::new(),
            Some(older) => self.heard_as_of(agent, pe, &older.tells),
            None => match refused {
                Some(arrival) => self.heard_refused(agent, (pe, span), arrival),
                None => {
                    self.reads_between((pe, span));
                    self.heard(agent, ending, (pe, span))
                }
            },
        };
        let word = Some((pe, span.alloc, span.start));
        for (told, scope) in heard {
            match access.order.acquires() {
                true => self.races.learn_told(agent, &told),
                false => {
                    let read = Pending { told, scope, time: self.races.last_step(agent), at: asked.1, word };
                    self.kernels.blocks[id].heard.reads(by, read);
                }
            }
        }
        if reads && access.order.acquires() {
            // also what earlier reads of the word have read
            let pending = self.kernels.blocks[id].heard.pending.get(&by);
            let acquired = pending.into_iter().flatten().filter(|read| read.word == word && read.scope <= access.scope);
            acquired.for_each(|read| self.races.learn_told(agent, &read.told));
        }
        if writes {
            let tells = self.told_by_write(id, (agent, by), access, (pe, span), behind.as_ref());
            let update = self.races.update_of(agent, tells);
            self.races.update_by_kernel(&update, (pe, span), access.kind == AccessKind::Store);
            if refused.is_some() {
                self.has_refused((pe, span));
            }
        }
        missed.older.map(|older| older.value)
    }

    /// A block writes strongly to another PE's memory, where that arrives later.
    pub(super) fn strong_write(
        &mut self,
        id: BlockId,
        access: &Access,
        (pe, span): (PeId, Span),
        asked: (&'static str, At),
    ) -> Option<StrongWrite> {
        self.comes_to_strong_access(id, access, (pe, span));
        if !self.races.is_on() {
            return None;
        }
        let by = access.thread as usize;
        let agent = self.thread_acts(id, by);
        let behind = self.races.fenced_before(agent, pe);
        let ticket = self.races.sends_strongly(agent, pe, behind.as_ref(), asked);
        let tells = self.told_by_write(id, (agent, by), access, (pe, span), behind.as_ref());
        let (update, replaces) = (self.races.update_of(agent, tells), access.kind == AccessKind::Store);
        Some(StrongWrite { ticket, scope: access.scope, update, replaces })
    }

    /// What a strong access depends on, and what depends on it, besides memory. Returns whether it writes to another PE's memory.
    fn comes_to_strong_access(&mut self, id: BlockId, access: &Access, (pe, span): (PeId, Span)) -> bool {
        self.depend_on_polled(id, access.thread as usize, &Object::memory(pe, span));
        let Agent { pe: me, scope, .. } = self.agents[self.kernels.blocks[id].agent];
        let is_peer_write = access.kind != AccessKind::Load && pe != me;
        if is_peer_write && self.in_chosen_step && self.races.quiet() == Quiet::Pe {
            self.touch(Object::Scope(scope), Touch::Add { by: 1 }); // a fence of another thread puts it behind something, or comes later
        }
        is_peer_write
    }

    /// What a strong write of a thread tells. `behind`: what it comes after besides, by fences of NVSHMEM.
    fn told_by_write(
        &mut self,
        id: BlockId,
        (agent, by): (AgentId, usize),
        access: &Access,
        (pe, span): (PeId, Span),
        behind: Option<&Told>,
    ) -> Scoped {
        let word = (by, pe, span.alloc, span.start);
        let mut tells = match access.order.releases() {
            // beyond its scope, whoever reads the word races with this access
            true => self.races.tell_by_kernel(agent, access.scope == Scope::Sys),
            false => self.kernels.blocks[id].heard.fenced_before(by),
        };
        let Heard { released, .. } = &mut self.kernels.blocks[id].heard;
        match access.order.releases() {
            true => _ = released.insert(word, tells.clone()),
            false => released.get(&word).into_iter().for_each(|released| tells.join(released)),
        }
        behind.into_iter().for_each(|behind| tells.join_told(behind));
        tells
    }

    /// A thread of a block comes to a fence.
    pub(super) fn kernel_fence(&mut self, id: BlockId, thread: usize, (scope, sequential): (Scope, bool), at: At) {
        if !self.races.is_on() {
            return;
        }
        let agent = self.thread_acts(id, thread);
        if sequential {
            self.lint(|| Notice::Fences { agent, scope });
        }
        let Heard { pending, .. } = &mut self.kernels.blocks[id].heard;
        let own = pending.remove(&thread).unwrap_or_default();
        if own.is_empty() {
            self.fence_behind_a_barrier(id, agent, (scope, at));
        }
        let (acquired, wider): (Vec<Pending>, Vec<Pending>) = own.into_iter().partition(|read| read.scope <= scope);
        for read in wider {
            self.races.misses(agent, &read.told, Lack::Scope { fence: at });
            self.kernels.blocks[id].heard.reads(thread, read); // for a later fence
        }
        acquired.iter().for_each(|read| self.races.learn_told(agent, &read.told));
        if !acquired.is_empty() {
            self.kernels.blocks[id].heard.acquired.insert(thread, acquired);
        }
        if scope == Scope::Sys {
            self.races.system_fence(agent);
        }
        self.releases(id, (thread, agent), scope, at);
    }

    /// A block begins: its relaxed stores tell what came before the kernel.
    pub(super) fn fences_at_the_beginning(&mut self, id: BlockId) {
        if let Some(told) = self.races.tell(self.kernels.blocks[id].agent) {
            self.kernels.blocks[id].heard.met = Scoped::of(told, Scope::Sys, None);
        }
    }

    /// A block ends: whoever comes after its kernel comes after what its strong loads have read.
    pub(super) fn fences_at_the_end(&mut self, id: BlockId) {
        for (thread, all) in std::mem::take(&mut self.kernels.blocks[id].heard.pending) {
            let agent = self.thread_acts(id, thread);
            all.iter().for_each(|read| self.races.learn_told(agent, &read.told));
        }
        self.races.forget_shared(self.kernels.blocks[id].agent);
    }

    /// A thread's quiet has ended, or another call that completes: what it has completed is everywhere, as behind a fence of the system.
    pub(super) fn completion_releases(&mut self, id: BlockId, thread: usize) {
        if self.races.is_on() {
            let agent = self.thread_acts(id, thread);
            let at = self.agents[agent].at.expect("it has called");
            self.lint(|| Notice::Fences { agent, scope: Scope::Sys }); // who reads anything later, on whichever PE, finds what is completed
            self.releases(id, (thread, agent), Scope::Sys, at);
        }
    }

    /// What a thread has done is released by what it stores strongly from now on, and by whom that comes after it.
    fn releases(&mut self, id: BlockId, (thread, agent): (usize, AgentId), scope: Scope, at: At) {
        if let Some(told) = self.races.tell(agent) {
            let fences = self.kernels.blocks[id].heard.fenced.entry(thread).or_default();
            fences.follow(Scoped::of(told, scope, Some(at)));
        }
    }

    /// A fence behind a barrier does not acquire what other threads have read. Notes what it would acquire if those threads had made it
    /// before the barrier. They may make it, too, behind the barrier.
    fn fence_behind_a_barrier(&mut self, id: BlockId, agent: AgentId, (scope, fence): (Scope, At)) {
        let Running { heard, threads, .. } = &self.kernels.blocks[id];
        let all = heard.pending.iter().chain(&heard.acquired);
        let all = all.flat_map(|(&reader, all)| all.iter().map(move |read| (reader, read)));
        for (reader, read) in all.filter(|(_, read)| read.scope <= scope || takes_in_blocks(scope)) {
            if threads[reader].is_some_and(|reader| self.races.comes_after(agent, reader, read.time)) {
                let reach = Reach::of(read.scope);
                self.races.misses(agent, &read.told, Lack::Place { fence, read: read.at, reach });
            }
        }
    }

    /// Threads arrive at a barrier, and go on.
    pub(super) fn arrives_in_block(&mut self, id: BlockId, from: &[usize], barrier: usize, first: bool) {
        let mut told = None;
        for &thread in from {
            let agent = self.thread_acts(id, thread);
            join_told(&mut told, self.races.tell(agent).as_ref());
        }
        let heard = &mut self.kernels.blocks[id].heard;
        let fenced = heard.fenced_by(from);
        let arrived = heard.arrived.entry(barrier).or_default();
        if first {
            *arrived = Default::default();
        }
        join_told(&mut arrived.0, told.as_ref());
        fenced.iter().for_each(|fenced| arrived.1.join(fenced));
    }

    /// Threads go on behind a barrier, where others have arrived.
    pub(super) fn passes_in_block(&mut self, id: BlockId, into: &[usize], barrier: usize) {
        let Some((told, fenced)) = self.kernels.blocks[id].heard.arrived.get(&barrier).cloned() else { return };
        for &thread in into {
            let agent = self.thread_acts(id, thread);
            told.iter().for_each(|told| self.races.learn_told(agent, told));
            self.kernels.blocks[id].heard.fenced.entry(thread).or_default().join(&fenced);
        }
    }

    /// A thread writes to shared memory strongly: what that tells others of the block.
    pub(super) fn tells_in_block(
        &mut self,
        id: BlockId,
        (thread, place): (usize, Place),
        address: u64,
        releases: bool,
        atomic: bool,
    ) {
        let agent = self.thread_acts(id, thread);
        let Running { agent: block, ref heard, ref launched, .. } = self.kernels.blocks[id];
        let at = launched.code.at(place);
        let mut told =
            if releases { self.races.tell(agent) } else { heard.fenced_before(thread).block.map(|near| near.told) };
        self.races.update_in_shared((agent, block), address, (told.as_ref(), atomic), at);
        let Heard { shared, .. } = &mut self.kernels.blocks[id].heard;
        join_told(&mut told, shared.get(&address).filter(|_| atomic));
        match told {
            Some(told) => _ = shared.insert(address, told),
            None => _ = shared.remove(&address),
        }
    }

    /// A phase of an mbarrier ends: who sees that learns what was told there until now.
    pub(super) fn phase_ends_in_block(&mut self, id: BlockId, mbarrier: u64) {
        let Heard { shared, phases, .. } = &mut self.kernels.blocks[id].heard;
        match shared.get(&mbarrier) {
            Some(told) => _ = phases.insert(mbarrier, told.clone()),
            None => _ = phases.remove(&mbarrier),
        }
    }

    /// A thread sees that the last phase of an mbarrier is over.
    pub(super) fn hears_of_phase(&mut self, id: BlockId, thread: usize, mbarrier: u64) {
        let agent = self.thread_acts(id, thread);
        if let Some(told) = self.kernels.blocks[id].heard.phases.get(&mbarrier) {
            self.races.learn_told(agent, told);
        }
    }

    /// What an address of shared memory tells the block's threads.
    pub(super) fn told_in_block(&self, id: BlockId, address: u64) -> Option<Told> {
        self.kernels.blocks[id].heard.shared.get(&address).cloned()
    }

    /// The look of a thread that ends its loop comes after what its word told when it became true for good, and not after what it told later.
    pub(super) fn looks_as_of(&mut self, id: BlockId, thread: AgentId, test: &Test) {
        let assumed = self.assumed.as_ref().filter(|_| self.mode.needs.tracking);
        let Some(told) = assumed.and_then(|assumed| assumed.told(test)) else { return };
        let number = self.first_of(id, thread);
        let Running { block, heard, .. } = &mut self.kernels.blocks[id];
        let tells = told.map(|update| &update.tells);
        heard.as_of = Some((number, tells.and_then(|tells| tells.told.clone())));
        let block = block.as_mut().expect("it is between two turns");
        block.reads_as_of(number, tells.and_then(|tells| tells.in_block.as_ref()));
    }

    /// A thread reads shared memory strongly.
    pub(super) fn hears_in_block(
        &mut self,
        id: BlockId,
        (thread, place): (usize, Place),
        (address, acquires): (u64, bool),
        in_vain: Option<InVain>,
    ) {
        let agent = self.thread_acts(id, thread);
        let Running { agent: block, ref mut heard, ref launched, .. } = self.kernels.blocks[id];
        let at = launched.code.at(place);
        self.races.hears_in_shared((agent, block), address, (at, !launched.code.module.is_look(place)));
        let now = heard.shared.get(&address).cloned();
        let told = match (in_vain, heard.as_of.take()) {
            (Some(InVain::Again), _) => heard.in_vain.get(&address).cloned().flatten(),
            (Some(InVain::First), _) => heard.in_vain.entry(address).insert_entry(now).get().clone(),
            (None, Some((of, told))) if of == thread => told,
            (None, _) => now,
        };
        let Some(told) = told else { return };
        match acquires {
            true => self.races.learn_told(agent, &told),
            false => {
                let time = self.races.last_step(agent);
                heard.reads(thread, Pending { told, scope: Scope::Cta, time, at, word: None });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{AllocId, At, Heard, MOST_WORDS, PeId, Pending, Scope};
    use crate::machine::AgentId;
    use crate::race::Told;

    /// A loop goes over many flags. An acquire of one of the first acquires what was read there.
    #[test]
    fn the_words_that_a_line_has_read_are_told_apart_while_they_are_few() {
        let (mut heard, at) = (Heard::default(), At::foreign("flags.cu", 7, 1, None));
        let word = |number: usize| Some((PeId(0), AllocId(0), 8 * number));
        for number in 0..1000 {
            let told = Told::of(AgentId(3), 1 + number as u64);
            heard.reads(7, Pending { told, scope: Scope::Sys, time: 0, at, word: word(number) });
        }
        let pending = &heard.pending[&7];
        assert_eq!(pending.len(), MOST_WORDS);
        assert_eq!(
            pending.iter().filter(|read| read.word == word(1)).map(|read| read.told.steps(AgentId(3))).max(),
            Some(2)
        );
        assert_eq!(pending.iter().map(|read| read.told.steps(AgentId(3))).max(), Some(1000));
    }

    /// Each store of a loop tells something else, and the next load reads it.
    #[test]
    fn what_a_loop_without_a_fence_has_read_is_kept_once() {
        let (mut heard, at) = (Heard::default(), At::foreign("loop.cu", 7, 1, None));
        for time in 1..=1000 {
            for scope in [Scope::Gpu, Scope::Sys] {
                heard.reads(7, Pending { told: Told::of(AgentId(3), time), scope, time, at, word: None });
            }
        }
        let [near, far] = &heard.pending[&7][..] else { panic!("{:?}", heard.pending) };
        assert!(
            [near.scope, far.scope] == [Scope::Gpu, Scope::Sys] && [near, far].iter().all(|read| read.time == 1000)
        );
        assert_eq!([near, far].map(|read| read.told.steps(AgentId(3))), [1000; 2]);
    }
}
