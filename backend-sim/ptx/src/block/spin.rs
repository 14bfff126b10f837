//! When a loop only waits: the state of a thread repeats, and it did nothing visible in between.
//!
//! Then only a change of memory can change what it does next, so the thread is parked until there is one. The state is compared at
//! taken backward branches by Brent's method: each kept state is kept twice as long as the one before. So cycles of any length are found,
//! and a loop that computes pays one comparison per round. [`Paces`](super::pace::Paces) say of which threads a state is kept.
//!
//! A thread that meets others in its rounds does not wait alone: see [`circle`](super::circle).

use super::changes::Changes;
use super::circle::Circle;
use super::cycle::{Cycle, Read, Standing, Watch};
use super::lanes::Row;
use super::thread::Thread;
use crate::op::Special;

/// After so many rounds without a visible effect whose states differ, others come first, if the world wants that: the thread may count how often it looks.
const MANY_ROUNDS: u32 = 128;

/// What the rounds of a thread have come to.
pub(super) enum Round {
    /// It does something else in each, or meets others.
    Goes,
    /// It only waits.
    Waits(Watch),
    /// It only waits, and something of this has changed since it was read. So it looks again.
    Again(Vec<Read>),
}

#[derive(Clone, Debug, Default)]
pub(super) struct Spin {
    /// From one backward branch to another.
    cycle: Cycle,
    since: u32,
    power: u32,
    /// Rounds since others came first.
    rounds: u32,
    /// It has met others since the state was kept.
    met: bool,
    /// From one meeting with others to another.
    pub(super) circle: Circle,
}

impl Spin {
    /// Back to the start, keeping allocations.
    pub(super) fn reset(&mut self) {
        (self.since, self.power, self.rounds, self.met) = (0, 0, 0, false);
        self.cycle.reset();
        self.circle.reset();
    }

    /// Notes a read of a thread of which a state is kept.
    #[inline]
    pub(super) fn read(&mut self, address: u64, bytes: u8, changes: &Changes) {
        let read = Read { address, bytes, when: changes.begin() };
        self.cycle.read(read);
        if self.circle.is_kept() {
            self.circle.cycle.read(read);
        }
    }

    /// The thread is no longer parked: its round begins again.
    pub(super) fn woken(&mut self, changes: &Changes) {
        self.cycle.begin = changes.begin();
        self.circle.cycle.begin = changes.begin();
    }

    /// It meets others.
    pub(super) fn meets(&mut self) {
        self.met = true;
    }

    /// A state of it is kept for the first time since it did something visible.
    pub(super) fn begins_to_look(&mut self) {
        self.rounds = 0;
        self.circle.forget();
    }

    /// Whether it has looked at memory for many rounds since it was asked last, or since a state of it was first kept.
    pub(super) fn has_looked_long(&mut self) -> bool {
        let has = self.rounds >= MANY_ROUNDS && !self.cycle.reads.is_empty();
        if has {
            self.rounds = 0;
        }
        has
    }

    /// Whether it waits for a time: all that it reads is a clock.
    pub(super) fn waits_for_time(&self) -> bool {
        self.cycle.timed
    }

    /// Its clock jumps now, and later rounds may repeat a state. So states are kept and compared from the next round on.
    pub(super) fn compares_soon(&mut self) {
        (self.since, self.power) = (0, 1);
    }
}

impl Thread {
    /// It is about to write to its local memory, and a state of it is kept. False if the old value is not kept, so the state cannot be the same again.
    pub(super) fn writes_own(&mut self, at: usize) -> bool {
        let Spin { cycle, circle, .. } = &mut self.spin;
        if circle.is_kept() && !circle.cycle.writes_own(&self.local, at) {
            circle.forget();
        }
        cycle.writes_own(&self.local, at)
    }

    /// Its local memory was changed otherwise.
    pub(super) fn lost_own(&mut self) {
        self.spin.cycle.lost_own();
        self.spin.circle.cycle.lost_own();
    }

    /// A frame of it ends, whose local memory begins here. It is zero when a frame begins there again.
    pub(super) fn leaves_own(&mut self, begin: usize) {
        self.spin.cycle.leaves_own(&self.local, begin);
        self.spin.circle.cycle.leaves_own(&self.local, begin);
    }

    /// Notes that it reads a special register.
    pub(super) fn looked_at_clock(&mut self, what: Special) {
        if what == Special::Clock {
            (self.spin.cycle.timed, self.spin.circle.cycle.timed) = (true, true);
        }
    }

    /// How it stands at an instruction; `registers` are those of its warp.
    pub(super) fn standing<'a>(&'a self, pc: u32, registers: [&'a [Row]; 2], lane: usize) -> Standing<'a> {
        Standing { pc, carry: self.carry, frames: &self.frames, local: &self.local, registers, lane }
    }

    /// A backward branch is taken, to `pc`, by a thread that may only wait: a state of it is kept. `registers` are those of the thread's
    /// callers and its function, by lane.
    pub(super) fn backward(&mut self, pc: u32, registers: [&[Row]; 2], lane: usize, changes: &Changes) -> Round {
        let spin = &self.spin;
        if !spin.met && spin.cycle.is_back(self.standing(pc, registers, lane)) {
            let spin = &mut self.spin;
            let any = spin.cycle.has_read_much();
            let reads = std::mem::take(&mut spin.cycle.reads);
            // When it is woken, one further round without a change parks it again.
            spin.since = 0;
            let since = std::mem::replace(&mut spin.cycle.begin, changes.begin());
            return match changes.touch(&reads, any, since) {
                true => Round::Again(reads),
                false => Round::Waits(Watch::of(&reads, any)),
            };
        }
        let spin = &mut self.spin;
        (spin.since, spin.rounds) = (spin.since + 1, spin.rounds + 1);
        if spin.since >= spin.power {
            let power = spin.power.saturating_mul(2);
            self.keep(pc, registers, lane, power, changes);
        }
        Round::Goes
    }

    /// Keeps the state in which a thread is, for `power` rounds.
    pub(super) fn keep(&mut self, pc: u32, registers: [&[Row]; 2], lane: usize, power: u32, changes: &Changes) {
        let mut cycle = std::mem::take(&mut self.spin.cycle);
        cycle.keep(self.standing(pc, registers, lane), changes);
        self.spin.cycle = cycle;
        (self.spin.since, self.spin.power, self.spin.met) = (0, power, false);
    }
}
