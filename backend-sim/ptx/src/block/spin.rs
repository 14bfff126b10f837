//! When a loop only waits: the state of a thread repeats, and it did nothing visible in between.
//!
//! Then only a change of memory can change what it does next, and the thread is parked until there is one. The state is compared at
//! taken backward branches by Brent's method: with a state that is kept for twice as long each time. So cycles of any length are found,
//! and a loop that computes pays one comparison a round.

use super::thread::{Frame, Thread};

/// Rounds without anything visible before states are kept: a loop that stores pays a counter only.
const QUIET_ROUNDS: u32 = 3;
/// More reads than this in a cycle: any change wakes.
const MOST_READS: usize = 1024;

/// The memory whose change can end a spin: ranges of addresses, or any.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Watch {
    pub(super) ranges: Vec<(u64, u8)>,
    /// More than the ranges.
    pub(super) any: bool,
    /// What other threads of the block read, or do, can end it too: they met in it.
    pub(super) met: bool,
}

impl Watch {
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
    rounds: u32,
    /// A state is kept, and reads are noted.
    active: bool,
    state: State,
    since: u32,
    power: u32,
    reads: Vec<(u64, u8)>,
    /// It met other threads: their reads count as well.
    met: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct State {
    pc: u32,
    carry: bool,
    frames: Vec<Frame>,
    registers: Vec<u64>,
}

impl Spin {
    /// Something happened that others can see, or that a comparison of registers does not show.
    #[inline]
    pub(super) fn visible(&mut self) {
        self.rounds = 0;
        self.active = false;
    }

    #[inline]
    pub(super) fn read(&mut self, address: u64, bytes: u8) {
        if self.active && self.reads.len() < MOST_READS && self.reads.last() != Some(&(address, bytes)) {
            self.reads.push((address, bytes));
        }
    }

    /// Took part in a barrier or in what a warp does together.
    pub(super) fn met(&mut self) {
        self.met = true;
    }
}

impl Thread {
    /// A backward branch is taken, to `pc`. What the thread waits for, if it only waits.
    #[inline]
    pub(super) fn backward(&mut self, pc: u32, registers: &[u64]) -> Option<Watch> {
        let spin = &mut self.spin;
        if !spin.active {
            spin.rounds += 1;
            if spin.rounds > QUIET_ROUNDS {
                self.keep(pc, registers, 1);
            }
            return None;
        }
        let state = &spin.state;
        if state.pc == pc && state.registers == registers && state.carry == self.carry && state.frames == self.frames {
            let mut ranges = std::mem::take(&mut spin.reads);
            let (any, met) = (ranges.len() == MOST_READS, spin.met);
            ranges.sort_unstable();
            ranges.dedup();
            // When it is woken, one further round without a change parks it again.
            spin.since = 0;
            return Some(Watch { ranges, any, met });
        }
        spin.since += 1;
        if spin.since >= spin.power {
            let power = spin.power.saturating_mul(2);
            self.keep(pc, registers, power);
        }
        None
    }

    fn keep(&mut self, pc: u32, registers: &[u64], power: u32) {
        let spin = &mut self.spin;
        spin.active = true;
        spin.since = 0;
        spin.power = power;
        spin.met = false;
        spin.reads.clear();
        spin.state.pc = pc;
        spin.state.carry = self.carry;
        spin.state.frames.clone_from(&self.frames);
        spin.state.registers.clear();
        spin.state.registers.extend_from_slice(registers);
    }
}
