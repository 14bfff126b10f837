//! Probabilistic concurrency testing: random schedules that find bugs of few ordering constraints with a known probability.
//!
//! Agents and the PEs that transfers go to have random priorities, and the highest of those that can do something does it. A PE
//! that several transfers are on their way to takes any of them. At `depth - 1` steps, drawn at random, whoever is highest gets a
//! priority below all others. A bug that needs `depth` ordering constraints is found with a probability of at least
//! 1/(n · k^(depth-1)), with n agents and PEs and k steps. (Burckhardt, Kothari, Musuvathi, Nagarakatte: A Randomized Scheduler
//! with Probabilistic Guarantees of Finding Bugs, ASPLOS 2010.)
//!
//! The highest becomes the lowest after every 256 steps, too: it may be polling. So the probability is that of runs that are not longer.

use std::collections::BTreeMap;

use super::Chooser;
use super::generator::Generator;
use crate::machine::Machine;
use crate::mix::mixed;

/// Picks by priorities of agents and targets.
#[derive(Debug)]
pub(crate) struct Pct {
    seed: u64,
    generator: Generator,
    /// Steps at which the highest becomes low, in no order; it gets the place in this list as its priority.
    changes: Vec<u64>,
    /// Priorities that were changed. All others are a hash of the seed and the name, and higher.
    changed: BTreeMap<u64, i64>,
    taken: u64,
    /// How often the highest was made the lowest because it may be polling.
    yields: i64,
}

/// After so many steps, the highest is made the lowest: it may be polling for what another brings.
const PATIENCE: u64 = 256;

impl Pct {
    /// The schedule of this seed, for bugs of this depth in runs of about so many steps.
    pub(crate) fn new(seed: u64, depth: u32, steps: u64) -> Pct {
        let mut generator = Generator::new(seed);
        let steps = usize::try_from(steps).unwrap_or(usize::MAX);
        let draws = if steps == 0 { 0 } else { depth.saturating_sub(1) };
        let changes = (0..draws).map(|_| generator.below(steps) as u64).collect();
        let seed = mixed(seed);
        Pct { seed, generator, changes, changed: BTreeMap::new(), taken: 0, yields: 0 }
    }

    fn priority(&self, who: u64) -> i64 {
        let changed = || Some(*self.changed.get(&who)?);
        let usual = || (mixed(self.seed ^ mixed(who)) >> 1) as i64 | 1 << 32; // above every change
        changed().unwrap_or_else(usual)
    }

    fn highest(&self, machine: &Machine, n: usize) -> u64 {
        let who = (0..n).map(|index| machine.choice_owner(index)).max_by_key(|&who| (self.priority(who), who));
        who.expect("there is a choice")
    }
}

impl Chooser for Pct {
    fn pick(&mut self, machine: &Machine, n: usize) -> usize {
        let mut who = self.highest(machine, n);
        for change in (0..self.changes.len()).filter(|&change| self.changes[change] == self.taken).collect::<Vec<_>>() {
            self.changed.insert(who, change as i64);
            who = self.highest(machine, n);
        }
        self.taken += 1;
        if self.taken.is_multiple_of(PATIENCE) {
            self.yields += 1;
            self.changed.insert(who, -self.yields);
            who = self.highest(machine, n);
        }
        let theirs = |index: &usize| machine.choice_owner(*index) == who;
        match (0..n).filter(theirs).count() {
            1 => (0..n).find(theirs),
            several => (0..n).filter(theirs).nth(self.generator.below(several)),
        }
        .expect("it was among them")
    }
}
