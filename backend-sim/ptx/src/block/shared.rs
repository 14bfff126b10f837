//! Shared memory, and its shadow: who wrote each word last and who has read it since, for races and for what nobody wrote.
//!
//! Threads that store the same value by one instruction do not race with each other: compilers make such stores where threads hold the same element.
//! The earlier ones are kept, because a later store of somebody else must come after all of them.
//!
//! Many threads may have read a word without being ordered. Mostly they read it by one instruction, one after the other. Then one
//! [`Stamp`] stands for all of them. A read is forgotten when a later one stands for it: an access that comes after the later read also comes after the earlier one.
//!
//! Strong accesses do not race with each other. So those that came before a strong write, in no order with it, are kept for a weak access that comes later. A thread that has
//! read a strong write by a strong read comes after that write, but not after what its thread had done before: PTX calls this observation order. Accesses of different blocks of a
//! cluster are not strong to each other if the scope of one of them is its block.

use super::order::Order;
use crate::bytes;
use crate::module::Place;
use crate::types::{self, Scope};

/// For whom an access is strong.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Strength {
    #[default]
    Weak,
    /// The threads of its block: the scope is `.cta`.
    InBlock,
    /// All threads of the cluster.
    Strong,
}

impl Strength {
    /// By the order and the scope of an instruction. A volatile access has no scope.
    pub(super) fn of(order: types::Order, scope: Scope) -> Self {
        match scope {
            _ if !order.is_strong() => Self::Weak,
            Scope::Cta if order != types::Order::Volatile => Self::InBlock,
            _ => Self::Strong,
        }
    }

    fn is_strong(self) -> bool {
        self != Self::Weak
    }
}

/// An access of a thread, or the same access of several threads with consecutive numbers. Epoch 0: there was none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Stamp {
    epoch: u32,
    clock: u32,
    place: Place,
    first: u16,
    last: u16,
    strength: Strength,
    writes: bool,
    by_thread: bool,
    /// The block of its threads, from 1 on; 0 if there is only one.
    block: u16,
    /// The world's moment of all of them.
    moment: u64,
}

/// Whether the current access comes after everything that another thread had done by a moment, because of events that only the world knows.
pub(super) type Learned<'a> = &'a mut dyn FnMut(usize, u64) -> bool;

impl Stamp {
    fn is_alike(&self, other: &Stamp) -> bool {
        let same = |stamp: &Stamp| Stamp { first: 0, last: 0, moment: 0, ..*stamp };
        same(self) == same(other)
    }

    /// Makes it stand for a later access of one of its threads, too. False if it cannot.
    fn takes(&mut self, other: &Stamp) -> bool {
        if self.first == self.last && self.covers(&Stamp { moment: self.moment, ..*other }) {
            self.moment = other.moment;
        }
        self.moment == other.moment && self.covers(other)
    }

    /// Joins it with the same access of the threads that follow its own. False if they cannot be joined.
    fn joins(&mut self, other: &Stamp) -> bool {
        let follows = self.is_alike(other) && self.moment == other.moment && self.last + 1 == other.first;
        if follows {
            self.last = other.last;
        }
        follows
    }

    /// Whether its threads include those of another stamp, and made the same access, not earlier. Then an access that comes after this stamp comes after the other one.
    fn covers(&self, other: &Stamp) -> bool {
        self.is_alike(other) && self.first <= other.first && other.last <= self.last && self.moment >= other.moment
    }

    /// One of its threads whose access is not ordered before what `thread` does now. `None`: all are ordered.
    fn unordered(&self, order: &Order, thread: usize, learned: Learned<'_>) -> Option<usize> {
        if self.epoch < order.epoch {
            return None;
        }
        let mut threads = (self.first..=self.last).rev().map(usize::from);
        threads.find(|&other| !order.before(self.epoch, other, self.clock, thread) && !learned(other, self.moment))
    }

    /// One of its threads whose write is ordered before a copy of `thread`, but may not be visible to the copy. `None`: there is none.
    fn invisible(&self, order: &Order, thread: usize) -> Option<usize> {
        let mut threads = (self.first..=self.last).rev().map(usize::from);
        let is_ordinary = self.epoch > 0 && self.writes && self.by_thread;
        threads.find(|&other| is_ordinary && order.lacks_fence(self.epoch, other, self.clock, thread))
    }

    /// Whether one of its threads has done this before what `thread` does now.
    fn precedes(&self, order: &Order, thread: usize, learned: Learned<'_>) -> bool {
        let mut threads = (self.first..=self.last).map(usize::from);
        self.epoch < order.epoch
            || threads.any(|other| order.before(self.epoch, other, self.clock, thread) || learned(other, self.moment))
    }

    /// Whether both are strong, to each other.
    fn is_strong_with(&self, other: &Stamp) -> bool {
        let strength = self.strength.min(other.strength);
        strength == Strength::Strong || strength == Strength::InBlock && self.block == other.block
    }

    /// Whether whatever races with this one races with a later one that comes after it, too: then it need not be kept. In a cluster, a weak one stands for no strong one, because
    /// a strong write ends that it is kept; and one of another block stands for none, because it may be strong enough for threads of that block.
    fn is_covered_by(&self, later: &Stamp) -> bool {
        match (self.strength.is_strong(), later.strength.is_strong()) {
            (false, is_strong) => !is_strong,
            (true, false) => self.block == 0,
            (true, true) => self.block == later.block && self.strength >= later.strength,
        }
    }

    /// Whether these accesses need not be kept any more, because a thread's later one stands for them.
    fn is_over(&self, order: &Order, later: &Stamp) -> bool {
        self.is_covered_by(later) && self.unordered(order, later.first.into(), &mut |_, _| false).is_none()
    }
}

/// The last write and the last read. `earlier` has the earlier reads for which the last one does not stand, and the writes that the last write repeats.
#[derive(Clone, Debug, Default)]
struct Cell {
    write: Stamp,
    read: Stamp,
    earlier: Vec<Stamp>,
    /// Of the last strong write, unless a weak one has come after it.
    strong: Option<Box<Strong>>,
}

/// A strong access, and of a write, who has read it by strong reads: for each thread the first of them.
#[derive(Clone, Debug, Default)]
struct Kept {
    access: Stamp,
    seen: Vec<Stamp>,
}

impl Kept {
    /// Whether a thread comes after a strong read of this write.
    fn is_seen(&self, order: &Order, thread: usize, learned: Learned<'_>) -> bool {
        self.seen.iter().any(|read| read.precedes(order, thread, learned))
    }
}

#[derive(Clone, Debug, Default)]
struct Strong {
    /// The last write.
    last: Kept,
    /// Strong accesses that came before it, in no order with it.
    before: Vec<Kept>,
}

impl Cell {
    fn write(&mut self, write: Stamp) {
        (self.write, self.read, self.strong) = (write, Stamp::default(), None);
        self.earlier.clear();
    }

    /// A strong write, or a strong update: that has read the last write.
    fn write_strongly(&mut self, write: Stamp, reads: bool, order: &Order, learned: Learned<'_>) {
        let Strong { last, mut before } = self.strong.take().map_or_else(Strong::default, |strong| *strong);
        let written = if last.access == self.write { last } else { Kept { access: self.write, ..Kept::default() } };
        let mut written = Some(written).filter(|one| !(reads && one.access.is_covered_by(&write)));
        if let (true, Some(written)) = (reads, &mut written) {
            written.seen.push(write);
        }
        let others = self.earlier.iter().chain([&self.read]); // the last one comes last
        let others = others.map(|&access| Kept { access, ..Kept::default() });
        for one in written.into_iter().chain(others) {
            let Stamp { epoch, strength, first, last, writes, .. } = one.access;
            if epoch > 0 && strength.is_strong() {
                // whatever comes after the later one comes after both; but a write is forgotten when it was seen, and a read is not
                let stands = |other: &Stamp| {
                    (other.first, other.last, other.writes) == (first, last, writes) && other.strength >= strength
                };
                before.retain(|other| !stands(&other.access));
                before.push(one);
            }
        }
        let thread = usize::from(write.first);
        before.retain(|one| {
            one.access.epoch == order.epoch
                && !(one.access.is_covered_by(&write)
                    && (one.access.unordered(order, thread, learned).is_none() || one.is_seen(order, thread, learned)))
        });
        self.write(write);
        self.strong = Some(Box::new(Strong { last: Kept { access: write, ..Kept::default() }, before }));
    }

    /// Strong accesses before the last write that may race with a weak one now.
    fn before(&self) -> &[Kept] {
        self.strong.as_ref().map_or(&[], |strong| &strong.before)
    }

    /// The first access that races with one now. `repeated`: whether it repeats an unordered write.
    #[inline]
    fn race(
        &self,
        (touch, stamp): (&Touch, &Stamp),
        order: &Order,
        learned: Learned<'_>,
        repeated: &mut bool,
    ) -> Option<Finding> {
        let &Touch { thread, place, writes, repeats, .. } = touch;
        let mut with = |earlier: &Stamp, seen: &[Stamp]| {
            if earlier.is_strong_with(stamp) {
                return None;
            }
            let other = earlier.unordered(order, thread, learned)?;
            if seen.iter().any(|read| read.precedes(order, thread, learned)) {
                return None;
            }
            if repeats && earlier.writes && earlier.place == place {
                *repeated = true;
                return None;
            }
            Some(Finding::of(earlier, other, false))
        };
        let kept = self.strong.as_deref();
        let last = kept.filter(|kept| kept.last.access == self.write).map_or(&[][..], |kept| &kept.last.seen);
        let with_last = with(&self.write, last);
        if with_last.is_some() {
            return with_last;
        }
        let mut reads = std::iter::once(&self.read).chain(self.earlier.iter().rev());
        let with_read = if writes { reads.find_map(|one| with(one, &[])) } else { None };
        with_read.or_else(|| {
            let before = kept?.before.iter().filter(|one| writes || one.access.writes);
            before.into_iter().find_map(|one| with(&one.access, &one.seen))
        })
    }

    /// A write of what other threads have written by the same instruction.
    fn repeat(&mut self, write: Stamp) {
        let before = std::mem::replace(&mut self.write, write);
        let stands = self.earlier.iter_mut().any(|earlier| earlier.takes(&before));
        if !stands && !self.earlier.last_mut().is_some_and(|last| last.joins(&before)) {
            self.earlier.push(before);
        }
    }

    #[inline]
    fn read(&mut self, order: &Order, read: Stamp) {
        if let Some(strong) = &mut self.strong
            && read.strength.is_strong()
            && !strong.last.seen.iter().any(|seen| seen.first == read.first)
        {
            strong.last.seen.push(read);
        }
        if self.read.epoch < read.epoch {
            self.earlier.retain(|earlier| earlier.epoch == read.epoch); // writes that were repeated
            self.read = read;
        } else if !self.read.takes(&read) && !self.read.joins(&read) {
            self.read_besides(order, read);
        }
    }

    fn read_besides(&mut self, order: &Order, read: Stamp) {
        if self.earlier.iter_mut().any(|earlier| earlier.takes(&read)) {
            return;
        }
        let before = std::mem::replace(&mut self.read, read);
        if before.is_over(order, &read) || self.earlier.last_mut().is_some_and(|last| last.joins(&before)) {
            return;
        }
        self.earlier.retain(|earlier| !before.covers(earlier));
        if self.earlier.len() == self.earlier.capacity() {
            self.earlier.retain(|earlier| !earlier.is_over(order, &read));
            self.earlier.reserve(self.earlier.len() + 1); // so that the next time is far away
        }
        self.earlier.push(before);
    }
}

#[derive(Clone, Debug)]
pub(super) struct Shared {
    pub(super) bytes: Vec<u8>,
    cells: Vec<Cell>,
    /// Bytes of a cell, as a shift.
    granularity: u32,
    /// Of several blocks, from the number of one's first thread to that of the next one's.
    pitch: Option<usize>,
}

/// Who accesses, and how.
#[derive(Clone, Copy, Debug)]
pub(super) struct Touch {
    pub(super) thread: usize,
    pub(super) place: Place,
    pub(super) reads: bool,
    /// It changes what it reads, and its thread cannot tell what that was.
    pub(super) is_blind: bool,
    pub(super) writes: bool,
    /// Accesses that are strong to each other do not race.
    pub(super) strength: Strength,
    /// It stores what is there already.
    pub(super) repeats: bool,
    pub(super) by: By,
}

impl Touch {
    /// A weak read.
    pub(super) fn read(thread: usize, place: Place, by: By) -> Touch {
        let (is_blind, writes, repeats) = (false, false, false);
        Touch { thread, place, reads: true, is_blind, writes, strength: Strength::Weak, repeats, by }
    }

    /// A weak write.
    pub(super) fn write(thread: usize, place: Place, by: By) -> Touch {
        Touch { reads: false, writes: true, ..Touch::read(thread, place, by) }
    }
}

/// On whose behalf a thread accesses shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum By {
    Thread,
    /// A copy of elements, which shares the proxy of threads.
    Elements,
    /// What goes through the async proxy, and does not see what threads write until they make a fence.
    Async(&'static str),
}

impl By {
    pub(super) const COPY: By = By::Async("a bulk copy");
    pub(super) const PRODUCT: By = By::Async("a product of a warp group");
}

/// A race with an earlier access, which wrote or only read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Finding {
    pub(super) thread: usize,
    pub(super) place: Place,
    pub(super) wrote: bool,
    /// It comes before, and a copy may not see it yet.
    pub(super) invisible: bool,
    /// That of the earlier access.
    pub(super) strength: Strength,
    /// The world's moment of the earlier access.
    pub(super) moment: u64,
}

impl Finding {
    /// With an earlier access of this thread.
    fn of(earlier: &Stamp, thread: usize, invisible: bool) -> Self {
        let &Stamp { place, writes: wrote, strength, moment, .. } = earlier;
        Self { thread, place, wrote, invisible, strength, moment }
    }
}

impl Shared {
    /// `narrowest` is the width of the narrowest access that the kernel makes: 1, 2 or 4.
    pub(super) fn new(bytes: usize, narrowest: u8, shadow: bool, pitch: Option<usize>) -> Self {
        let granularity = u32::from(narrowest.clamp(1, 4)).trailing_zeros();
        let cells = if shadow { bytes.div_ceil(1 << granularity) } else { 0 };
        Self { bytes: vec![0; bytes], cells: vec![Cell::default(); cells], granularity, pitch }
    }

    /// A word that lies within.
    #[inline]
    pub(super) fn load(&self, at: usize, bytes: u8) -> u64 {
        bytes::get(&self.bytes, at, bytes).unwrap_or(0)
    }

    /// The aligned 8 bytes in which a word lies; behind the end there are zeros.
    #[inline]
    pub(super) fn around(&self, at: usize) -> u64 {
        let start = at & !7;
        match self.bytes.get(start..start + 8) {
            Some(all) => u64::from_le_bytes(all.try_into().expect("they are 8")),
            None => self.bytes[start..].iter().rev().fold(0, |all, &byte| all << 8 | u64::from(byte)),
        }
    }

    /// Whether that changed the memory.
    #[inline]
    pub(super) fn store(&mut self, at: usize, bytes: u8, value: u64) -> bool {
        bytes::put(&mut self.bytes, at, bytes, value).unwrap_or(false)
    }

    /// Finds a write to one of these bytes that is not ordered before what each of these threads does now, or that may not be visible to what they begin.
    /// Returns the thread that races, and the write; `None` if there is no such write. `learned`: what else orders a thread behind what another had done by a moment.
    pub(super) fn written_beside(
        &self,
        at: usize,
        bytes: usize,
        threads: std::ops::Range<usize>,
        order: &Order,
        learned: &mut dyn FnMut(usize, usize, u64) -> bool,
    ) -> Option<(usize, Finding)> {
        // Many words in a row have been written by the same access.
        let mut known = Stamp::default();
        for Cell { write, .. } in self.cells_of(at, bytes) {
            if *write == known {
                continue;
            }
            let finding = |other, invisible| Finding::of(write, other, invisible);
            for thread in threads.clone() {
                let learned: Learned<'_> = &mut |of, moment| learned(thread, of, moment);
                if let Some(other) = write.unordered(order, thread, learned) {
                    return Some((thread, finding(other, false)));
                }
            }
            // It is enough if one thread knows of a fence, because they begin it together.
            let writers = threads.clone().map(|thread| write.invisible(order, thread));
            if let Some(Some(other)) = writers.min_by_key(Option::is_some) {
                return Some((threads.start, finding(other, true)));
            }
            known = *write;
        }
        None
    }

    /// An access to a part that does not come before its end. `comes_before`: whether the end comes behind what a thread did in an epoch, by a clock and a moment.
    pub(super) fn outlives(
        &self,
        part: std::ops::Range<usize>,
        comes_before: &mut dyn FnMut(usize, u32, u32, u64) -> bool,
    ) -> Option<Finding> {
        let mut known = Stamp::default();
        for cell in self.cells_of(part.start, part.len()) {
            for stamp in [&cell.write, &cell.read]
                .into_iter()
                .chain(&cell.earlier)
                .chain(cell.before().iter().map(|kept| &kept.access))
            {
                if stamp.epoch == 0 || *stamp == known {
                    continue;
                }
                let mut threads = (stamp.first..=stamp.last).map(usize::from);
                let late = threads.find(|&thread| !comes_before(thread, stamp.epoch, stamp.clock, stamp.moment));
                if let Some(thread) = late {
                    return Some(Finding::of(stamp, thread, false));
                }
                known = *stamp;
            }
        }
        None
    }

    /// Whether somebody has written each of these bytes, as far as that is kept.
    pub(super) fn is_written(&self, at: usize, bytes: usize) -> bool {
        self.cells_of(at, bytes).iter().all(|cell| cell.write.epoch != 0)
    }

    fn cells_of(&self, at: usize, bytes: usize) -> &[Cell] {
        match self.cells.is_empty() {
            true => &[],
            false => &self.cells[at >> self.granularity..(at + bytes).div_ceil(1 << self.granularity)],
        }
    }

    /// Notes an access to bytes that exist, at a [moment](crate::World::moment) of the world. Returns the first race, if there is one, and whether the access reads bytes that
    /// nobody wrote. `learned`: what else orders threads; `None` if races are not looked for.
    pub(super) fn touch(
        &mut self,
        at: usize,
        bytes: usize,
        (touch, moment): (Touch, u64),
        order: &Order,
        mut learned: Option<Learned<'_>>,
    ) -> (Option<Finding>, bool) {
        let (mut finding, mut uninitialized) = (None, false);
        if self.cells.is_empty() {
            return (None, false);
        }
        let Touch { thread, place, reads, is_blind, writes, mut strength, by, .. } = touch;
        let by_thread = by == By::Thread;
        let number = thread as u16;
        let (epoch, clock) = (order.epoch, order.clock(thread));
        let block = self.pitch.map_or(0, |pitch| (thread / pitch + 1) as u16);
        if self.pitch.is_none() && strength == Strength::InBlock {
            strength = Strength::Strong; // there is no other block
        }
        let (first, last) = (number, number);
        let stamp = Stamp { epoch, clock, place, first, last, strength, writes, by_thread, block, moment };
        for cell in &mut self.cells[at >> self.granularity..(at + bytes).div_ceil(1 << self.granularity)] {
            uninitialized |= reads && cell.write.epoch == 0;
            let mut repeated = false;
            if let (Some(learned), None) = (&mut learned, finding) {
                finding = cell.race((&touch, &stamp), order, learned, &mut repeated);
                if matches!(by, By::Async(_)) && finding.is_none() {
                    let mut writes = std::iter::once(&cell.write).chain(&cell.earlier);
                    finding = writes.find_map(|write| {
                        let thread = write.invisible(order, thread)?;
                        Some(Finding::of(write, thread, true))
                    });
                }
            }
            match writes {
                true if repeated && finding.is_none() => cell.repeat(stamp),
                true => match &mut learned {
                    Some(learned) if strength.is_strong() => {
                        cell.write_strongly(stamp, reads && !is_blind, order, learned)
                    }
                    _ => cell.write(stamp),
                },
                false => cell.read(order, stamp),
            }
        }
        (finding, uninitialized)
    }
}

#[cfg(test)]
mod tests;
