//! Which threads may only wait, and what a clock shows them. Every access and every jump needs that. So it is stored compactly for each warp, apart from
//! the [`Spin`](super::spin::Spin)s.

use super::lanes::{Lanes, each_lane};

/// Rounds without anything visible before states are kept: a loop that stores pays a counter only.
const QUIET_ROUNDS: u8 = 3;

/// The threads of a block.
#[derive(Clone, Debug)]
pub(super) struct Paces {
    warps: Vec<Pace>,
    /// Threads of which a state is kept.
    watching: u32,
}

/// The threads of a warp.
#[derive(Clone, Copy, Debug, Default)]
struct Pace {
    /// Of these lanes a state is kept, and reads are noted.
    active: u32,
    /// Of the others, rounds without anything visible.
    rounds: [u8; 32],
    /// The clocks. A clock counts the visible actions of its thread. If the thread waits for its clock alone, the clock also jumps ahead. What other threads do
    /// changes no clock. So a loop with a time-out repeats its state, and depends only on what it reads.
    times: [u64; 32],
}

impl Paces {
    pub(super) fn new(threads: usize) -> Self {
        Self { warps: vec![Pace::default(); threads.div_ceil(32)], watching: 0 }
    }

    /// Whether a state is kept of any thread of the block: otherwise nobody will ask what changes now.
    #[inline]
    pub(super) fn any_active(&self) -> bool {
        self.watching != 0
    }

    /// The lanes of a warp of which a state is kept; `first` is the number of its first thread.
    #[inline]
    pub(super) fn active(&self, first: usize) -> u32 {
        self.warps[first / 32].active
    }

    #[inline]
    pub(super) fn is_active(&self, thread: usize) -> bool {
        self.active(thread) >> (thread % 32) & 1 == 1
    }

    /// A state of the thread is kept from now on.
    pub(super) fn activate(&mut self, thread: usize) {
        if !self.is_active(thread) {
            self.warps[thread / 32].active |= 1 << (thread % 32);
            self.watching += 1;
        }
    }

    /// A thread has done something that others can see, or that a comparison of registers does not show.
    #[inline]
    pub(super) fn visible(&mut self, thread: usize) {
        let Pace { active, rounds, times } = &mut self.warps[thread / 32];
        let lane = thread % 32;
        (rounds[lane], times[lane]) = (0, times[lane] + 1);
        self.watching -= *active >> lane & 1;
        *active &= !(1 << lane);
    }

    /// The same, of threads on these lanes of a warp.
    #[inline]
    pub(super) fn visible_together(&mut self, first: usize, lanes: u32) {
        let Pace { active, rounds, times } = &mut self.warps[first / 32];
        match lanes {
            u32::MAX => {
                *rounds = [0; 32];
                times.iter_mut().for_each(|time| *time += 1);
            }
            some => each_lane(some).for_each(|lane| (rounds[lane], times[lane]) = (0, times[lane] + 1)),
        }
        self.watching -= (*active & lanes).count_ones();
        *active &= !lanes;
    }

    /// What a clock shows a thread.
    pub(super) fn time(&self, thread: usize) -> u64 {
        self.warps[thread / 32].times[thread % 32]
    }

    /// A thread waits for its clock, which goes on.
    pub(super) fn skip(&mut self, thread: usize, time: u64) {
        self.warps[thread / 32].times[thread % 32] += time;
    }

    /// A call or step has only looked at memory. It costs more than keeping a state, so a state is kept at once.
    pub(super) fn looked(&mut self, thread: usize) {
        let rounds = &mut self.warps[thread / 32].rounds[thread % 32];
        *rounds = (*rounds).max(QUIET_ROUNDS);
    }

    /// Threads on these lanes begin another round. Returns the lanes whose threads have done nothing visible for some rounds, and so may only wait.
    #[inline(always)]
    pub(super) fn round(&mut self, first: usize, lanes: impl Lanes) -> u32 {
        let Pace { active, rounds, .. } = &mut self.warps[first / 32];
        if lanes.all() && *active == 0 {
            rounds.iter_mut().for_each(|rounds| *rounds += 1);
            let most = rounds.iter().fold(0, |most, &rounds| most.max(rounds));
            if most <= QUIET_ROUNDS {
                return 0;
            }
            return lanes.those(|lane| rounds[lane] > QUIET_ROUNDS);
        }
        let mut quiet = *active & lanes.mask();
        for lane in lanes.iter().filter(|lane| *active >> lane & 1 == 0) {
            rounds[lane] += 1;
            quiet |= u32::from(rounds[lane] > QUIET_ROUNDS) << lane;
        }
        quiet
    }
}
