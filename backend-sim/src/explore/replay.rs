//! A recorded list of picks, followed to the letter.

use super::Chooser;
use crate::config::Reduce;
use crate::machine::{Assumptions, Machine, Needs};

/// Follows recorded picks; where they end, the first step is taken.
#[derive(Debug)]
pub(crate) struct Replay<'a> {
    picks: std::slice::Iter<'a, u32>,
    /// A pick that did not exist: the program is not the one that was recorded.
    pub(crate) diverged: bool,
    /// Whether the picks are those of a proof.
    proof: bool,
    /// Whether it was one in which loops that may be told to give up look step by step.
    stepwise: bool,
}

impl<'a> Replay<'a> {
    pub(crate) fn new(picks: &'a [u32], proof: bool) -> Replay<'a> {
        Replay { picks: picks.iter(), diverged: false, proof, stepwise: false }
    }

    /// The same, of a proof in which loops that may be told to give up look step by step.
    pub(crate) fn stepwise(picks: &'a [u32]) -> Replay<'a> {
        Replay { stepwise: true, ..Replay::new(picks, true) }
    }

    /// Whether every recorded pick was used.
    pub(crate) fn is_used_up(&self) -> bool {
        self.picks.len() == 0
    }
}

impl Chooser for Replay<'_> {
    /// As in the search that made the picks: what it tracks decides which steps are choices.
    const NEEDS: Needs = Needs::PASTS;

    fn prepare(&mut self, machine: &mut Machine) {
        if self.proof {
            let assumed = Assumptions::new(true, machine.config.loads.reduces(Reduce::Everything)); // waits learn the same
            machine.assume(Box::new(if self.stepwise { assumed.stepwise() } else { assumed }));
        }
    }

    fn pick(&mut self, _: &Machine, n: usize) -> usize {
        if n == 1 {
            return 0;
        }
        let pick = self.picks.next().copied().unwrap_or(0) as usize;
        self.diverged |= pick >= n;
        if pick < n { pick } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    #[test]
    fn picks_are_followed_where_there_is_a_choice_and_the_first_step_is_taken_behind_them() {
        let machine = Machine::new(Config::default());
        let mut replay = Replay::new(&[2, 1], false);
        let taken = [3, 1, 2, 5].map(|n| replay.pick(&machine, n));
        assert_eq!(taken, [2, 0, 1, 0]);
        assert!(replay.is_used_up() && !replay.diverged);
    }

    #[test]
    fn a_pick_that_does_not_exist_and_a_pick_too_many_are_noticed() {
        let machine = Machine::new(Config::default());
        let mut replay = Replay::new(&[2, 1], false);
        assert_eq!(replay.pick(&machine, 2), 0);
        assert!(replay.diverged && !replay.is_used_up());
    }
}
