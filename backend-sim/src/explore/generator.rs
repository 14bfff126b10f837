//! Numbers from a seed: the same on every machine, for ever.

use crate::mix::mixed;

/// xoshiro256++.
#[derive(Debug)]
pub(super) struct Generator([u64; 4]);

impl Generator {
    pub(super) fn new(seed: u64) -> Generator {
        // splitmix64, as the authors of xoshiro recommend for seeding
        let mut next = seed;
        Generator([(); 4].map(|()| {
            next = next.wrapping_add(0x9e37_79b9_7f4a_7c15);
            mixed(next)
        }))
    }

    #[inline]
    pub(super) fn next(&mut self) -> u64 {
        let [a, b, c, d] = self.0;
        let result = a.wrapping_add(d).rotate_left(23).wrapping_add(a);
        let (c2, d2) = (c ^ a, d ^ b);
        self.0 = [a ^ d2, b ^ c2, c2 ^ (b << 17), d2.rotate_left(45)];
        result
    }

    /// A number below `n`. The bias of at most `n / 2^32` does not matter here.
    #[inline]
    pub(super) fn below(&mut self, n: usize) -> usize {
        below(self.next(), n)
    }
}

/// A random number as one below `n`.
#[inline]
pub(super) fn below(random: u64, n: usize) -> usize {
    (((random >> 32) * n as u64) >> 32) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stay_below_their_bound_and_reach_it() {
        let mut generator = Generator::new(7);
        let mut seen = [0; 5];
        (0..1000).for_each(|_| seen[generator.below(5)] += 1);
        assert!(seen.iter().all(|&count| count > 100), "{seen:?}");
    }
}
