//! When a loop only waits: the state of a thread repeats, and it did nothing visible in between.
//!
//! Then only a change of memory can change what it does next, and the thread is parked until there is one. The state is compared at
//! taken backward branches by Brent's method: with a state that is kept for twice as long each time. So cycles of any length are found,
//! and a loop that computes pays one comparison a round. [`Paces`](super::pace::Paces) say of whom a state is kept.

use super::lanes::Row;
use super::thread::{Frame, Thread};
use crate::op::Special;

/// More reads than this in a cycle: any change wakes.
const MOST_READS: usize = 1024;
/// More words of its own memory than this that a thread has changed since its state was kept: it does not only wait.
const MOST_OWN: usize = 64;
/// After so many rounds that are not alike, but do nothing visible, others come first, if the world wants that: it may count how often it looks.
const MANY_ROUNDS: u32 = 128;
/// So many changes of memory are kept; who comes after more than that looks again.
const KEPT_CHANGES: usize = 64;

/// The last changes of memory that the block has seen. What changes within a round of a spin may have been read before that.
#[derive(Clone, Debug)]
pub(super) struct Changes {
    last: [(u64, u64); KEPT_CHANGES],
    count: u64,
    /// What the world says that it is.
    pub(super) now: u64,
}

impl Default for Changes {
    fn default() -> Changes {
        Changes { last: [(0, 0); KEPT_CHANGES], count: 0, now: 0 }
    }
}

impl Changes {
    #[inline]
    pub(super) fn note(&mut self, address: u64, bytes: u64) {
        self.last[self.count as usize % KEPT_CHANGES] = (address, bytes);
        self.count += 1;
    }

    /// Now, and how many changes there were.
    fn begin(&self) -> Begin {
        Begin { changes: self.count, now: self.now }
    }

    /// Whether something of this has changed since a round began.
    fn touch(&self, watch: &Watch, since: Begin) -> bool {
        self.count - since.changes > KEPT_CHANGES as u64
            || (since.changes..self.count).any(|number| {
                let (address, bytes) = self.last[number as usize % KEPT_CHANGES];
                watch.covers(address, bytes)
            })
    }
}

/// When a round began.
#[derive(Clone, Copy, Debug, Default)]
struct Begin {
    /// So many changes of memory there were.
    changes: u64,
    /// What the world said that it was.
    now: u64,
}

/// What the rounds of a thread have come to.
pub(super) enum Round {
    /// It does something else in each.
    Goes,
    /// It only waits.
    Waits(Watch),
    /// It only waits, and this thread has come to where it meets others, since it was there. So it looks again.
    Awaited(usize),
    /// It only waits, and what it has read has changed since the round began, at this time. So it looks again.
    Again(Watch, u64),
}

/// The memory whose change can end a spin: ranges of addresses, or any.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Watch {
    pub(super) ranges: Vec<(u64, u8)>,
    /// More than the ranges.
    pub(super) any: bool,
    /// What other threads do can end it too, when they come to where they meet.
    pub(super) met: Meetings,
}

/// Where threads wait for each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Meeting {
    /// Votes and shuffles of a warp, and what else it does together.
    Warp = 1,
    /// Barriers, and what several warps do together.
    Block = 2,
}

impl Meeting {
    /// Of so many threads.
    pub(super) fn of(threads: usize) -> Self {
        if threads > 32 { Self::Block } else { Self::Warp }
    }
}

/// Some of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Meetings(u8);

impl Meetings {
    pub(super) fn has(self, meeting: Meeting) -> bool {
        self.0 & meeting as u8 != 0
    }

    fn add(&mut self, meeting: Meeting) {
        self.0 |= meeting as u8;
    }

    fn remove(&mut self, meeting: Meeting) {
        self.0 &= !(meeting as u8);
    }

    fn any_of(self, others: Self) -> bool {
        self.0 & others.0 != 0
    }
}

impl Watch {
    /// Whether it may come to such a meeting in its rounds.
    pub(super) fn meets(&self, meeting: Meeting) -> bool {
        self.any || self.met.has(meeting)
    }

    pub(super) fn covers(&self, address: u64, bytes: u64) -> bool {
        self.any
            || self
                .ranges
                .iter()
                .any(|&(at, length)| at < address.saturating_add(bytes) && address < at + u64::from(length))
    }
}

#[derive(Clone, Debug, Default)]
pub(super) struct Spin {
    state: State,
    since: u32,
    power: u32,
    /// Rounds since others came first.
    rounds: u32,
    /// When the round began.
    begin: Begin,
    reads: Vec<(u64, u8)>,
    /// Where it met other threads.
    met: Meetings,
    /// Where others have come since it was there itself, or have ended; and who was the first.
    awaited: Meetings,
    awaited_by: usize,
    /// It has looked at a clock.
    timed: bool,
    own: Own,
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

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct State {
    pc: u32,
    carry: bool,
    frames: Vec<Frame>,
    registers: Vec<u64>,
}

impl Spin {
    /// Notes a read of a thread of which a state is kept.
    pub(super) fn read(&mut self, address: u64, bytes: u8) {
        if self.reads.len() < MOST_READS && self.reads.last() != Some(&(address, bytes)) {
            self.reads.push((address, bytes));
        }
    }

    /// The thread is no longer parked: its round begins again.
    pub(super) fn woken(&mut self, changes: &Changes) {
        self.begin = changes.begin();
    }

    /// It comes to a meeting.
    pub(super) fn meets(&mut self, meeting: Meeting) {
        self.met.add(meeting);
        self.awaited.remove(meeting);
    }

    /// Another thread has come there, or has ended.
    pub(super) fn is_awaited(&mut self, meeting: Meeting, by: usize) {
        if self.awaited == Meetings::default() {
            self.awaited_by = by;
        }
        self.awaited.add(meeting);
    }
}

impl Thread {
    /// It is about to write to its local memory, and a state of it is kept. Whether that can be taken back.
    pub(super) fn writes_own(&mut self, at: usize) -> bool {
        let (words, number) = (&mut self.spin.own.words, at / 8);
        if words.iter().all(|&(word, _)| word != number)
            && let Some(old) = word(&self.local, number)
        {
            words.push((number, old));
        }
        words.len() <= MOST_OWN
    }

    /// Its local memory was changed otherwise.
    pub(super) fn lost_own(&mut self) {
        self.spin.own.others = true;
    }

    /// A frame of it ends, whose local memory begins here. It is zero when a frame begins there again.
    pub(super) fn leaves_own(&mut self, begin: usize) {
        let kept = begin..self.spin.own.length.min(self.local.len()).max(begin);
        self.spin.own.others |= self.local.get(kept).is_some_and(|kept| kept.iter().any(|&byte| byte != 0));
    }

    /// Notes that it reads a special register.
    pub(super) fn looked_at_clock(&mut self, what: Special) {
        self.spin.timed |= what == Special::Clock;
    }

    /// Whether it waits for a time: all that it reads is a clock.
    pub(super) fn waits_for_time(&self) -> bool {
        self.spin.timed
    }

    /// A state of it is kept for the first time since it did something visible.
    pub(super) fn begins_to_look(&mut self) {
        self.spin.rounds = 0;
    }

    /// Whether it has looked at memory for many rounds since it was asked last, or since a state of it was first kept.
    pub(super) fn has_looked_long(&mut self) -> bool {
        let spin = &mut self.spin;
        let has = spin.rounds >= MANY_ROUNDS && !spin.reads.is_empty();
        if has {
            spin.rounds = 0;
        }
        has
    }

    /// Its state changes now, and will be the same in the rounds behind that.
    pub(super) fn compares_soon(&mut self) {
        (self.spin.since, self.spin.power) = (0, 1);
    }

    /// A backward branch is taken, to `pc`, by a thread that may only wait: a state of it is kept. `registers` are those of the thread's
    /// callers and its function, by lane.
    pub(super) fn backward(&mut self, pc: u32, registers: [&[Row]; 2], lane: usize, changes: &Changes) -> Round {
        let spin = &mut self.spin;
        let state = &spin.state;
        let same = || state.registers.iter().eq(registers.into_iter().flatten().map(|row| &row[lane]));
        let is_back = || state.carry == self.carry && state.frames == self.frames && spin.own.is_back(&self.local);
        if state.pc == pc && same() && is_back() {
            let mut ranges = std::mem::take(&mut spin.reads);
            let (any, met) = (ranges.len() == MOST_READS, spin.met);
            ranges.sort_unstable();
            ranges.dedup();
            // When it is woken, one further round without a change parks it again.
            spin.since = 0;
            let watch = Watch { ranges, any, met };
            let since = std::mem::replace(&mut spin.begin, changes.begin());
            if changes.touch(&watch, since) {
                return Round::Again(watch, since.now);
            }
            // Once for each time that others come: it need not come to where they are.
            return match std::mem::take(&mut spin.awaited).any_of(met) {
                true => Round::Awaited(spin.awaited_by),
                false => Round::Waits(watch),
            };
        }
        (spin.since, spin.rounds) = (spin.since + 1, spin.rounds + 1);
        if spin.since >= spin.power {
            let power = spin.power.saturating_mul(2);
            self.keep(pc, registers, lane, power, changes);
        }
        Round::Goes
    }

    /// Keeps the state in which a thread is, for `power` rounds.
    pub(super) fn keep(&mut self, pc: u32, registers: [&[Row]; 2], lane: usize, power: u32, changes: &Changes) {
        let spin = &mut self.spin;
        spin.since = 0;
        spin.power = power;
        spin.begin = changes.begin();
        (spin.met, spin.timed) = (Meetings::default(), false);
        spin.reads.clear();
        spin.own.keep(&self.local);
        spin.state.pc = pc;
        spin.state.carry = self.carry;
        spin.state.frames.clone_from(&self.frames);
        spin.state.registers.clear();
        spin.state.registers.extend(registers.into_iter().flatten().map(|row| row[lane]));
    }
}
