//! Happens-before between the threads of a block: vector clocks, which a barrier of the whole block resets.
//!
//! An access is identified by its epoch (how many barriers of the whole block came before), its thread, and that thread's clock. A clock
//! advances when its thread releases. A row of clocks holds what a thread knows of others beyond the last barrier of the block. Most
//! threads never need one.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::module::Place;
use crate::world::{Asks, AtomicOp};

/// For each thread the latest clock that is known of it.
type Row = Arc<[u32]>;

/// An event that orders threads of a block. A [`World`](crate::World) that looks for races in global memory is told of each. Bulk copies in flight
/// have numbers behind those of the threads: see [`COPIES`](crate::COPIES).
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "a world that listens must handle every kind")]
pub enum Sync {
    /// All threads of the block that have not ended meet: each comes after what the others have done.
    MeetAll,
    /// Threads meet: `into` come after what `from` have done. Threads are given by their numbers in the block.
    Meet {
        /// Who has come.
        from: Vec<usize>,
        /// Who goes on behind it.
        into: Vec<usize>,
    },
    /// Threads arrive at a barrier without waiting there, or before they wait. Their later accesses do not come before the barrier.
    Arrive {
        /// Who arrives.
        from: Vec<usize>,
        /// The barrier's number.
        barrier: usize,
        /// Whether these are the first arrivals since the barrier was last passed.
        first: bool,
        /// Whether the arrival releases what the threads have done. If not, threads that pass the barrier only wait for it.
        releases: bool,
    },
    /// Threads pass a barrier: they come after what the arriving threads had released.
    Pass {
        /// Who goes on.
        into: Vec<usize>,
        /// The barrier's number.
        barrier: usize,
    },
    /// A strong write to shared memory.
    Write {
        /// Who writes.
        thread: usize,
        /// The instruction.
        place: Place,
        /// Where.
        address: u64,
        /// Whether it releases by itself.
        releases: bool,
        /// Whether what was released there before stays.
        atomic: bool,
    },
    /// A strong read of shared memory.
    Read {
        /// Who reads.
        thread: usize,
        /// The instruction.
        place: Place,
        /// Where.
        address: u64,
        /// Whether it acquires by itself.
        acquires: bool,
        /// If it is an atomic that [asks](crate::Access::asks) and gets the answer no, it learns nothing of others before it to which the same happened.
        in_vain: Option<InVain>,
    },
    /// A phase of an mbarrier ends.
    PhaseEnds {
        /// Where it is.
        mbarrier: u64,
    },
    /// A thread has seen the end of an mbarrier's last phase: it comes after what was released there before that end.
    SeesPhase {
        /// Who has seen it.
        thread: usize,
        /// Where it is.
        mbarrier: u64,
    },
}

/// Where an atomic that [asks](crate::Access::asks) and gets the answer no stands among its like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "it is the first, or not")]
pub enum InVain {
    /// The one before it has asked something else, or got the answer yes.
    First,
    /// It follows others that have asked the same in vain.
    Again,
}

/// What was released at a word of shared memory, as of a strong write to it. An acquiring read learns it.
#[derive(Clone, Debug)]
pub struct ToldInBlock {
    /// How many barriers of the whole block came before. After one more, all threads know it.
    epoch: u32,
    row: Option<Row>,
}

#[derive(Clone, Debug)]
pub(super) struct Order {
    threads: usize,
    /// The length of a row. A row has a clock for each thread. Then it has a count for each number of a bulk copy: how many copies with that number are
    /// known to be over. If there are copies, it also has a clock for each thread, plus one: the thread's writes up to that clock are visible to copies,
    /// and so are all writes of earlier epochs.
    width: usize,
    /// For each number of a copy, how many copies all threads know to be over since the last barrier of the block.
    over: Vec<u32>,
    /// For each thread, the epoch and clock up to which all threads know that its writes are visible to copies.
    visible: Vec<(u32, u32)>,
    /// Events that the world has yet to be told. `None` if it wants none. Strong accesses to global memory are not among them: the world makes those itself.
    pub(super) untold: Option<Vec<Sync>>,
    pub(super) epoch: u32,
    clocks: Vec<u32>,
    /// Whether threads were ordered in another way since the last barrier of the block. In most blocks they never are.
    news: bool,
    known: Vec<Option<Row>>,
    /// What a thread's last fence released; and what its relaxed reads since then have found, which its next fence acquires.
    fenced: Vec<Option<Row>>,
    pending: Vec<Option<Row>>,
    /// What was released at each address of shared memory; and at each mbarrier, what was released before its last phase ended.
    released: BTreeMap<u64, Row>,
    phases: BTreeMap<u64, Row>,
    /// The next strong read of this thread learns this row, and not what is released at the address now.
    as_of: Option<(usize, Option<Row>)>,
    /// What was released at an address before atomics that follow each other and have asked the same in vain; and what they ask.
    in_vain: BTreeMap<u64, ((AtomicOp, Asks), Option<Row>)>,
    /// What the threads that arrived at each barrier had done.
    arrived: BTreeMap<usize, Row>,
}

impl Order {
    /// `copies`: how many numbers bulk copies in flight have. `tells`: whether the world is told what orders threads.
    pub(super) fn new(threads: usize, copies: usize, tells: bool) -> Self {
        Self {
            threads,
            width: if copies > 0 { threads + copies + threads } else { threads },
            over: vec![0; copies],
            visible: vec![(0, 0); if copies > 0 { threads } else { 0 }],
            untold: tells.then(Vec::new),
            epoch: 1,
            clocks: vec![1; threads],
            news: false,
            known: vec![None; threads],
            fenced: vec![None; threads],
            pending: vec![None; threads],
            released: BTreeMap::new(),
            phases: BTreeMap::new(),
            as_of: None,
            in_vain: BTreeMap::new(),
            arrived: BTreeMap::new(),
        }
    }

    pub(super) fn threads(&self) -> usize {
        self.threads
    }

    pub(super) fn clock(&self, thread: usize) -> u32 {
        self.clocks[thread]
    }

    /// Whether an access of another thread, in an epoch and at a clock, comes before what this thread does now.
    pub(super) fn before(&self, epoch: u32, other: usize, clock: u32, thread: usize) -> bool {
        epoch < self.epoch || other == thread || self.known[thread].as_ref().is_some_and(|row| row[other] >= clock)
    }

    /// All threads that are left have met.
    pub(super) fn meet_all(&mut self) {
        if let Some(untold) = &mut self.untold {
            untold.push(Sync::MeetAll);
        }
        let ended = self.epoch;
        self.epoch += 1;
        if !std::mem::take(&mut self.news) {
            return;
        }
        let fences = self.fences();
        for row in self.known.iter().flatten().filter(|row| row.len() > fences) {
            join(&mut self.over, &row[self.threads..]);
            let clocks = row[fences..].iter().zip(&mut self.visible);
            clocks.filter(|(clock, _)| **clock > 0).for_each(|(clock, all)| *all = (*all).max((ended, clock - 1)));
        }
        self.clocks.fill(1);
        self.known.fill(None);
        self.fenced.fill(None);
        self.pending.fill(None);
        self.arrived.clear();
        self.in_vain.clear();
        // a copy that ended is still learned from its mbarrier, by threads that look at it later
        let (threads, over) = (self.threads, &self.over);
        for released in [&mut self.released, &mut self.phases] {
            released.retain(|_, row| row[threads..].iter().zip(over).any(|(told, known)| told > known));
            for row in released.values_mut() {
                let row = Arc::make_mut(row);
                row[..threads].fill(0);
                row[fences..].fill(0);
            }
        }
    }

    /// The place in a row where the clocks begin up to which writes are visible to copies.
    fn fences(&self) -> usize {
        self.threads + self.over.len()
    }

    /// Writes of a thread, and writes of others that it knows of, become visible to copies that come later.
    pub(super) fn fence_for_copies(&mut self, thread: usize) {
        if self.visible.is_empty() {
            return;
        }
        let fences = self.fences();
        let mut row = self.done_by(&[thread]);
        let (clocks, visible) = Arc::make_mut(&mut row).split_at_mut(fences);
        visible.iter_mut().zip(clocks).for_each(|(visible, clock)| *visible = (*visible).max(*clock + 1));
        self.learn(thread, &row);
    }

    /// Whether a write is ordered before what a thread does now, within the block, and no fence in between makes it visible to a copy. False also if the
    /// write is not ordered before.
    pub(super) fn lacks_fence(&self, epoch: u32, other: usize, clock: u32, thread: usize) -> bool {
        let is_told = |row: &Row| row[self.fences() + other] > if epoch < self.epoch { 0 } else { clock };
        self.visible.get(other).is_some_and(|all| *all < (epoch, clock))
            && self.before(epoch, other, clock, thread)
            && !self.known[thread].as_ref().is_some_and(is_told)
    }

    /// Whether a thread knows that a copy is over: the `count`th with its number.
    pub(super) fn knows_over(&self, thread: usize, (copy, count): (usize, u32)) -> bool {
        let knows = |row: &Row| row[self.threads + copy] >= count;
        self.over[copy] >= count || self.known[thread].as_ref().is_some_and(knows)
    }

    /// Whether all threads know that a copy is over.
    pub(super) fn is_over(&self, (copy, count): (usize, u32)) -> bool {
        self.over[copy] >= count
    }

    fn row_of(&self, (copy, count): (usize, u32)) -> Row {
        let mut row = vec![0; self.width];
        row[self.threads + copy] = count;
        row.into()
    }

    /// A thread knows from now on that a copy is over.
    pub(super) fn learns_over(&mut self, thread: usize, copy: (usize, u32)) {
        self.news = true;
        let row = self.row_of(copy);
        self.learn(thread, &row);
    }

    /// Whoever reads at an address knows that a copy is over.
    pub(super) fn tells_over(&mut self, address: u64, copy: (usize, u32)) {
        self.news = true;
        let row = self.row_of(copy);
        match self.released.get_mut(&address) {
            Some(old) => join(Arc::make_mut(old), &row),
            None => _ = self.released.insert(address, row),
        }
    }

    /// Notes an event that only the world needs.
    pub(super) fn also(&mut self, sync: Sync) {
        if let Some(untold) = &mut self.untold {
            untold.push(sync);
        }
    }

    /// Some threads have met: `into` know what all of `from` did. Nobody waited for the end of others.
    pub(super) fn meet(&mut self, from: &[usize], into: &[usize]) {
        if from.len() == self.threads && into.len() == self.threads {
            return self.meet_all();
        }
        if let Some(untold) = &mut self.untold {
            untold.push(Sync::Meet { from: from.to_vec(), into: into.to_vec() });
        }
        let row = self.done_by(from);
        for &thread in into {
            self.learn(thread, &row);
        }
    }

    /// Threads arrive at a barrier that they do not wait at, or not yet. `first`: nobody had arrived since all went on behind it last.
    pub(super) fn arrive(&mut self, from: &[usize], barrier: usize, first: bool, releases: bool) {
        if let Some(untold) = &mut self.untold {
            untold.push(Sync::Arrive { from: from.to_vec(), barrier, first, releases });
        }
        let row = self.done_by(if releases { from } else { &[] });
        match self.arrived.get_mut(&barrier) {
            Some(known) if !first => join(Arc::make_mut(known), &row),
            _ => _ = self.arrived.insert(barrier, row),
        }
    }

    /// Threads go on behind a barrier, where others have arrived.
    pub(super) fn pass(&mut self, into: &[usize], barrier: usize) {
        if let Some(untold) = &mut self.untold {
            untold.push(Sync::Pass { into: into.to_vec(), barrier });
        }
        // a barrier of the whole block in between has told everybody
        if let Some(row) = self.arrived.get(&barrier).cloned() {
            into.iter().for_each(|&thread| self.learn(thread, &row));
        }
    }

    /// A row of what threads have done and know until now. Their clocks advance, so later accesses are not part of it.
    fn done_by(&mut self, from: &[usize]) -> Row {
        self.news = true;
        let mut row = vec![0; self.width];
        let mut merged: Option<&Row> = None;
        for &thread in from {
            if let Some(known) = &self.known[thread] {
                // Threads that met before share their row.
                if !merged.is_some_and(|last| Arc::ptr_eq(last, known)) {
                    join(&mut row, known);
                }
                merged = Some(known);
            }
        }
        for &thread in from {
            row[thread] = row[thread].max(self.clocks[thread]);
            self.clocks[thread] += 1;
        }
        row.into()
    }

    fn learn(&mut self, thread: usize, row: &Row) {
        self.news = true;
        match &mut self.known[thread] {
            Some(known) if !Arc::ptr_eq(known, row) => {
                let mine = known.iter().zip(row.iter()).any(|(mine, new)| mine > new);
                if mine { join(Arc::make_mut(known), row) } else { *known = Arc::clone(row) }
            }
            known => *known = Some(Arc::clone(row)),
        }
    }

    /// A strong write at an address: a release, or relaxed behind a fence. An atomic keeps what was released there before.
    pub(super) fn write(&mut self, (thread, place): (usize, Place), address: u64, releases: bool, atomic: bool) {
        self.in_vain.remove(&address);
        self.writes((thread, place), address, releases, atomic);
    }

    fn writes(&mut self, (thread, place): (usize, Place), address: u64, releases: bool, atomic: bool) {
        if let Some(untold) = &mut self.untold {
            untold.push(Sync::Write { thread, place, address, releases, atomic });
        }
        let row = if releases { Some(self.done_by(&[thread])) } else { self.fenced[thread].clone() };
        match (row, self.released.get_mut(&address)) {
            (Some(row), Some(old)) if atomic => join(Arc::make_mut(old), &row),
            (Some(row), _) => _ = self.released.insert(address, row),
            (None, Some(_)) if !atomic => _ = self.released.remove(&address),
            (None, _) => {}
        }
    }

    /// A strong read at an address: an acquire, or relaxed for a later fence.
    pub(super) fn read(&mut self, (thread, place): (usize, Place), address: u64, acquires: bool) {
        let row = match self.as_of.take() {
            Some((of, row)) if of == thread => row,
            _ => self.released.get(&address).cloned(),
        };
        self.in_vain.remove(&address);
        self.reads((thread, place), address, acquires, (None, row));
    }

    /// Whether an atomic that asks this in vain follows another one.
    pub(super) fn follows_in_vain(&self, address: u64, asks: (AtomicOp, Asks)) -> bool {
        self.in_vain.get(&address).is_some_and(|(of, _)| *of == asks)
    }

    /// An atomic that counts at an address, and asks this in vain.
    pub(super) fn counts_in_vain(
        &mut self,
        by: (usize, Place),
        address: u64,
        (acquires, releases): (bool, bool),
        asks: (AtomicOp, Asks),
    ) {
        let (in_vain, row) = match self.in_vain.remove(&address) {
            Some((of, row)) if of == asks => (InVain::Again, row),
            _ => (InVain::First, self.released.get(&address).cloned()),
        };
        self.reads(by, address, acquires, (Some(in_vain), row.clone()));
        self.writes(by, address, releases, true);
        self.in_vain.insert(address, (asks, row));
    }

    fn reads(
        &mut self,
        (thread, place): (usize, Place),
        address: u64,
        acquires: bool,
        (in_vain, row): (Option<InVain>, Option<Row>),
    ) {
        if let Some(untold) = &mut self.untold {
            untold.push(Sync::Read { thread, place, address, acquires, in_vain });
        }
        let Some(row) = row else { return };
        if acquires {
            self.learn(thread, &row);
        } else {
            match &mut self.pending[thread] {
                Some(pending) => join(Arc::make_mut(pending), &row),
                pending => *pending = Some(row),
            }
        }
    }

    /// What an acquiring read of an address would learn now.
    pub(super) fn told_at(&self, address: u64) -> ToldInBlock {
        ToldInBlock { epoch: self.epoch, row: self.released.get(&address).cloned() }
    }

    /// A thread's next strong read learns `told`, and nothing that was released later. With `None` it learns nothing.
    pub(super) fn reads_as_of(&mut self, thread: usize, told: Option<&ToldInBlock>) {
        let row = told.filter(|told| told.epoch == self.epoch).and_then(|told| told.row.clone());
        self.as_of = Some((thread, row));
    }

    /// A phase of an mbarrier ends: see [`Sync::PhaseEnds`].
    pub(super) fn phase_ends(&mut self, mbarrier: u64) {
        if let Some(untold) = &mut self.untold {
            untold.push(Sync::PhaseEnds { mbarrier });
        }
        match self.released.get(&mbarrier) {
            Some(row) => _ = self.phases.insert(mbarrier, Arc::clone(row)),
            None => _ = self.phases.remove(&mbarrier),
        }
    }

    /// A thread has seen that the last phase of an mbarrier is over.
    pub(super) fn sees_phase(&mut self, thread: usize, mbarrier: u64) {
        if let Some(untold) = &mut self.untold {
            untold.push(Sync::SeesPhase { thread, mbarrier });
        }
        if let Some(row) = self.phases.get(&mbarrier).cloned() {
            self.learn(thread, &row);
        }
    }

    pub(super) fn fence(&mut self, thread: usize) {
        if let Some(row) = self.pending[thread].take() {
            self.learn(thread, &row);
        }
        self.fenced[thread] = Some(self.done_by(&[thread]));
    }
}

fn join(into: &mut [u32], other: &[u32]) {
    for (mine, &theirs) in into.iter_mut().zip(other) {
        *mine = (*mine).max(theirs);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    const THREADS: usize = 5;

    type Events = BTreeSet<usize>;

    /// What each thread has done and knows, as sets of events.
    #[derive(Default)]
    struct Model {
        events: usize,
        known: [Events; THREADS],
        fenced: [Events; THREADS],
        pending: [Events; THREADS],
        released: BTreeMap<u64, Events>,
        /// Each fence for copies, and what came before it.
        visible: Vec<(usize, Events)>,
        /// Each write, with the epoch, the thread and the clock that stand for it.
        writes: Vec<(usize, (u32, usize, u32))>,
    }

    impl Model {
        fn event(&mut self, thread: usize) -> usize {
            self.events += 1;
            self.known[thread].insert(self.events);
            self.events
        }

        fn meet(&mut self, from: &[usize], into: &[usize]) {
            let all: Events = from.iter().flat_map(|&thread| self.known[thread].clone()).collect();
            into.iter().for_each(|&thread| self.known[thread].extend(&all));
        }

        fn write(&mut self, thread: usize, address: u64, releases: bool, atomic: bool) {
            let new = if releases { self.known[thread].clone() } else { self.fenced[thread].clone() };
            let released = self.released.entry(address).or_default();
            if !atomic {
                released.clear();
            }
            released.extend(new);
        }

        fn read(&mut self, thread: usize, address: u64, acquires: bool) {
            let new = self.released.get(&address).into_iter().flatten();
            if acquires { self.known[thread].extend(new) } else { self.pending[thread].extend(new) }
        }

        fn fence(&mut self, thread: usize) {
            let pending = std::mem::take(&mut self.pending[thread]);
            self.known[thread].extend(pending);
            self.fenced[thread] = self.known[thread].clone();
        }

        fn is_visible(&self, write: usize, thread: usize) -> bool {
            self.visible.iter().any(|(fence, before)| self.known[thread].contains(fence) && before.contains(&write))
        }
    }

    /// Against sets of events: what comes before what, and whether there is a fence for copies in between.
    #[test]
    fn clocks_say_what_sets_of_events_say() {
        let (mut random, mut asked) = (7_u64, BTreeMap::<_, usize>::new());
        let mut next = |below: usize| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (random >> 33) as usize % below
        };
        for _ in 0..2_000 {
            let (mut order, mut model) = (Order::new(THREADS, 2, false), Model::default());
            for _ in 0..50 {
                let (thread, address) = (next(THREADS), next(2) as u64);
                match next(20) {
                    0 => {
                        order.meet_all();
                        let all: Vec<usize> = (0..THREADS).collect();
                        model.meet(&all, &all);
                    }
                    1 | 2 => {
                        let pair = [thread, (thread + 1 + next(THREADS - 1)) % THREADS];
                        let into = &pair[..1 + next(2)];
                        order.meet(&pair, into);
                        model.meet(&pair, into);
                    }
                    3 | 4 => {
                        let (releases, atomic) = (next(2) == 0, next(2) == 0);
                        order.write((thread, Place::default()), address, releases, atomic);
                        model.write(thread, address, releases, atomic);
                    }
                    5..=7 => {
                        let acquires = next(2) == 0;
                        order.read((thread, Place::default()), address, acquires);
                        model.read(thread, address, acquires);
                    }
                    8 => {
                        order.fence(thread);
                        model.fence(thread);
                    }
                    9..=11 => {
                        order.fence_for_copies(thread);
                        let fence = model.event(thread);
                        model.visible.push((fence, model.known[thread].clone()));
                    }
                    12..=15 => {
                        let write = model.event(thread);
                        model.writes.push((write, (order.epoch, thread, order.clock(thread))));
                    }
                    _ => {}
                }
                for &(write, (epoch, other, clock)) in &model.writes {
                    let comes_before = model.known[thread].contains(&write);
                    let is_visible = model.is_visible(write, thread);
                    assert_eq!(order.before(epoch, other, clock, thread), comes_before);
                    assert_eq!(order.lacks_fence(epoch, other, clock, thread), comes_before && !is_visible);
                    *asked.entry((comes_before, is_visible)).or_default() += 1;
                }
            }
        }
        assert!(asked.len() == 3 && asked.values().all(|times| *times > 10_000), "{asked:?}");
    }
}
