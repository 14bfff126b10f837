//! Partial order sampling: random schedules that favour no class of equivalent schedules for its many schedules.
//!
//! Each pending step has a random priority, and the highest goes first. Then the step's agent gets a new priority for its next
//! step, and so do the pending steps that depend on the step that was taken; all others keep theirs. (Yuan, Yang, Gu: Partial
//! Order Aware Concurrency Sampling, CAV 2018.)

use std::collections::BTreeMap;

use super::Chooser;
use crate::machine::{Aim, Machine, Needs};
use crate::mix::mixed;

/// Picks by priorities.
#[derive(Debug)]
pub(crate) struct Pos {
    seed: u64,
    /// How often a step that has a name was drawn again. A priority is a hash of the seed, the name and this number.
    again: BTreeMap<u64, u64>,
    aims: Vec<Aim>,
    /// Steps so far.
    taken: u64,
}

/// After so many steps, all that are pending get new priorities. A step can have a priority so low that agents which poll for its result would draw
/// higher ones for thousands of polls.
const PATIENCE: u64 = 256;

impl Pos {
    /// The schedule of this seed.
    pub(crate) fn new(seed: u64) -> Pos {
        Pos { seed: mixed(seed), again: BTreeMap::new(), aims: Vec::new(), taken: 0 }
    }

    fn priority(&self, key: u64) -> u64 {
        let again = self.again.get(&key).copied().unwrap_or(0);
        mixed(self.seed ^ mixed(key).wrapping_add(mixed(again)))
    }

    fn draw_again(&mut self, key: u64) {
        *self.again.entry(key).or_insert(0) += 1;
    }
}

impl Chooser for Pos {
    const NEEDS: Needs = Needs { aiming: true, ..Needs::CHOICES };

    fn pick(&mut self, machine: &Machine, n: usize) -> usize {
        self.taken += 1;
        if self.taken.is_multiple_of(PATIENCE) {
            (0..n).for_each(|index| self.draw_again(machine.choice_key(index)));
        }
        let priorities = (0..n).map(|index| (self.priority(machine.choice_key(index)), index));
        let (_, index) = priorities.max().expect("there is a choice");
        let key = machine.choice_key(index);
        let mut aims = std::mem::take(&mut self.aims);
        aims.clear();
        machine.aims(index, &mut aims);
        let taken = aims.len();
        for other in (0..n).filter(|&other| other != index) {
            aims.truncate(taken);
            machine.aims(other, &mut aims);
            let (mine, theirs) = aims.split_at(taken);
            if mine.iter().any(|aim| theirs.iter().any(|other| aim.meets(other))) {
                self.draw_again(machine.choice_key(other));
            }
        }
        self.aims = aims;
        match index < machine.agent_choices() {
            true => self.draw_again(key), // its next step has the same name
            false => drop(self.again.remove(&key)),
        }
        index
    }
}
