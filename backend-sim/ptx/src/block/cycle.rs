//! A state of a thread, to be compared with later ones, and what the thread has read and changed since it was in it.

use super::changes::{Begin, Changes};
use super::lanes::Row;
use super::thread::Frame;

/// If a cycle has more reads than this, any change of memory wakes the thread.
const MOST_READS: usize = 1024;
/// If a thread has changed more words of its local memory than this since its state was kept, it does not only wait.
const MOST_OWN: usize = 64;

/// A range of addresses that was read, and when.
#[derive(Clone, Copy, Debug)]
pub(super) struct Read {
    pub(super) address: u64,
    pub(super) bytes: u8,
    pub(super) when: Begin,
}

/// Whether a range that was read has some of these bytes.
pub(super) fn overlap((at, length): (u64, u8), address: u64, bytes: u64) -> bool {
    at < address.saturating_add(bytes) && address < at + u64::from(length)
}

/// The memory whose change can end a spin: ranges of addresses, or any.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Watch {
    pub(super) ranges: Vec<(u64, u8)>,
    /// Whether more was read than the ranges, so that any change counts.
    pub(super) any: bool,
}

impl Watch {
    /// What was read by several threads, or by one again and again.
    pub(super) fn of(reads: &[Read], any: bool) -> Watch {
        let mut ranges: Vec<(u64, u8)> = reads.iter().map(|read| (read.address, read.bytes)).collect();
        ranges.sort_unstable();
        ranges.dedup();
        Watch { ranges, any }
    }

    /// Whether no change ends it.
    pub(super) fn is_empty(&self) -> bool {
        self.ranges.is_empty() && !self.any
    }

    pub(super) fn covers(&self, address: u64, bytes: u64) -> bool {
        self.any || self.ranges.iter().any(|&range| overlap(range, address, bytes))
    }
}

/// Where a thread stands, or will stand, and what it has there.
#[derive(Clone, Copy)]
pub(super) struct Standing<'a> {
    pub(super) pc: u32,
    pub(super) carry: bool,
    pub(super) frames: &'a [Frame],
    /// Its local memory.
    pub(super) local: &'a [u8],
    /// The registers of its warp: of its callers, and of its function.
    pub(super) registers: [&'a [Row]; 2],
    pub(super) lane: usize,
}

impl<'a> Standing<'a> {
    fn registers(self) -> impl Iterator<Item = &'a u64> {
        self.registers.into_iter().flatten().map(move |row| &row[self.lane])
    }

    /// Whether these are its registers. Those of its function are mostly the ones that differ.
    fn has_registers(self, all: &[u64]) -> bool {
        let [callers, own] = self.registers;
        let are = |rows: &[Row], values: &[u64]| {
            rows.len() == values.len() && rows.iter().zip(values).all(|(row, value)| row[self.lane] == *value)
        };
        all.split_at_checked(callers.len()).is_some_and(|(outer, inner)| are(own, inner) && are(callers, outer))
    }
}

#[derive(Clone, Debug, Default)]
pub(super) struct Cycle {
    pc: u32,
    carry: bool,
    frames: Vec<Frame>,
    registers: Vec<u64>,
    own: Own,
    /// What the thread has read since its round began: since its state was kept, or was the same again.
    pub(super) reads: Vec<Read>,
    /// When its round began.
    pub(super) begin: Begin,
    /// It has looked at a clock.
    pub(super) timed: bool,
}

impl Cycle {
    /// Keeps none, but its allocations.
    pub(super) fn reset(&mut self) {
        (self.pc, self.carry) = (0, false);
        self.frames.clear();
        self.registers.clear();
        self.own.keep(&[]);
        self.reads.clear();
        (self.begin, self.timed) = (Begin::default(), false);
    }

    /// Keeps a state.
    pub(super) fn keep(&mut self, state: Standing<'_>, changes: &Changes) {
        (self.pc, self.carry) = (state.pc, state.carry);
        self.frames.clear();
        self.frames.extend(state.frames);
        self.registers.clear();
        self.registers.extend(state.registers());
        self.own.keep(state.local);
        self.reads.clear();
        (self.begin, self.timed) = (changes.begin(), false);
    }

    /// Whether the thread is in that state again.
    pub(super) fn is_back(&self, state: Standing<'_>) -> bool {
        self.pc == state.pc
            && state.has_registers(&self.registers)
            && self.carry == state.carry
            && self.frames == state.frames
            && self.own.is_back(state.local)
    }

    #[inline]
    pub(super) fn read(&mut self, read: Read) {
        let is_last = |last: &Read| (last.address, last.bytes) == (read.address, read.bytes);
        if self.reads.len() < MOST_READS && !self.reads.last().is_some_and(is_last) {
            self.reads.push(read);
        }
    }

    /// Whether it has read more than is kept.
    pub(super) fn has_read_much(&self) -> bool {
        self.reads.len() == MOST_READS
    }

    /// The thread is about to write to its local memory. False if the old value is not kept, so the state cannot be the same again.
    pub(super) fn writes_own(&mut self, local: &[u8], at: usize) -> bool {
        let (words, number) = (&mut self.own.words, at / 8);
        if words.iter().all(|&(word, _)| word != number)
            && let Some(old) = word(local, number)
        {
            words.push((number, old));
        }
        words.len() <= MOST_OWN
    }

    /// Its local memory was changed otherwise.
    pub(super) fn lost_own(&mut self) {
        self.own.others = true;
    }

    /// A frame of it ends, whose local memory begins here. It is zero when a frame begins there again.
    pub(super) fn leaves_own(&mut self, local: &[u8], begin: usize) {
        let kept = begin..self.own.length.min(local.len()).max(begin);
        self.own.others |= local.get(kept).is_some_and(|kept| kept.iter().any(|&byte| byte != 0));
    }
}

/// What a thread has changed of its local memory since its state was kept: the memory itself is not compared.
#[derive(Clone, Debug, Default)]
struct Own {
    /// Words of 8 bytes, by number, and what was in them.
    words: Vec<(usize, u64)>,
    /// The bytes that there were.
    length: usize,
    /// There were other changes.
    others: bool,
}

impl Own {
    fn keep(&mut self, local: &[u8]) {
        self.words.clear();
        (self.length, self.others) = (local.len(), false);
    }

    /// Whether all of it is again as it was. Frames are the same, and so is the length.
    fn is_back(&self, local: &[u8]) -> bool {
        !self.others && self.words.iter().all(|&(number, old)| word(local, number).is_none_or(|now| now == old))
    }
}

/// A word of local memory, the last of which may be shorter.
fn word(local: &[u8], number: usize) -> Option<u64> {
    let rest = local.get(8 * number..).filter(|rest| !rest.is_empty())?;
    let mut bytes = [0; 8];
    let length = rest.len().min(8);
    bytes[..length].copy_from_slice(&rest[..length]);
    Some(u64::from_le_bytes(bytes))
}
