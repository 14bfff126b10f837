//! Random schedules from a seed: the same seed gives the same schedule on every machine, for ever.

use super::Chooser;
use crate::machine::Machine;

/// Picks at random, with a bias of its own for each schedule.
#[derive(Debug)]
pub(crate) struct Random {
    state: [u64; 4],
    /// How often, of 16 times, an agent goes first where both an agent and a transfer could.
    eagerness: u64,
}

impl Random {
    /// The schedule of this seed.
    pub(crate) fn new(seed: u64) -> Random {
        // splitmix64, as the authors of xoshiro recommend for seeding
        let mut next = seed;
        let state = [(); 4].map(|()| {
            next = next.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let z = (next ^ (next >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            z ^ (z >> 31)
        });
        let mut random = Random { state, eagerness: 8 };
        // Some bugs need agents that run far ahead of their transfers, others need the opposite.
        random.eagerness = [2, 8, 8, 14][random.below(4)];
        random
    }

    /// The seed of the `index`-th schedule of a series.
    pub(crate) fn nth_seed(seed: u64, index: u64) -> u64 {
        seed.wrapping_add(index.wrapping_mul(0xd1b5_4a32_d192_ed03))
    }

    /// xoshiro256++
    #[inline]
    fn next(&mut self) -> u64 {
        let [a, b, c, d] = self.state;
        let result = a.wrapping_add(d).rotate_left(23).wrapping_add(a);
        let (c2, d2) = (c ^ a, d ^ b);
        self.state = [a ^ d2, b ^ c2, c2 ^ (b << 17), d2.rotate_left(45)];
        result
    }

    /// A number below `n`. The bias of at most `n / 2^32` does not matter here.
    #[inline]
    fn below(&mut self, n: usize) -> usize {
        (((self.next() >> 32) * n as u64) >> 32) as usize
    }
}

impl Chooser for Random {
    #[inline]
    fn pick(&mut self, machine: &Machine, n: usize) -> usize {
        if n == 1 {
            return 0;
        }
        let agents = machine.agent_choices();
        if agents == 0 || agents == n {
            return self.below(n);
        }
        let draw = self.next();
        let agent_first = draw & 15 < self.eagerness;
        let (start, len) = if agent_first { (0, agents) } else { (agents, n - agents) };
        start + (((draw >> 32) * len as u64) >> 32) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Seeds must replay across versions: these numbers never change.
    #[test]
    fn the_generator_is_fixed() {
        let mut random = Random::new(42);
        let drawn: Vec<u64> = (0..4).map(|_| random.next()).collect();
        assert_eq!(drawn, FROM_SEED_42);
    }

    /// Computed by another implementation of xoshiro256++, after the one draw for the bias.
    const FROM_SEED_42: [u64; 4] = [0x519e4174576f3791, 0xfbe07cfb0c24ed8c, 0xb37d9f600cd835b8, 0xcb231c3874846a73];

    #[test]
    fn numbers_stay_below_their_bound_and_reach_it() {
        let mut random = Random::new(7);
        let mut seen = [0; 5];
        (0..1000).for_each(|_| seen[random.below(5)] += 1);
        assert!(seen.iter().all(|&count| count > 100), "{seen:?}");
    }
}
