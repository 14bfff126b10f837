//! A recorded list of picks, followed to the letter.

use super::Chooser;
use crate::machine::Machine;

/// Follows recorded picks; where they end, the first step is taken.
#[derive(Debug)]
pub(crate) struct Replay<'a> {
    picks: std::slice::Iter<'a, u32>,
    /// A pick that did not exist: the program is not the one that was recorded.
    pub(crate) diverged: bool,
}

impl<'a> Replay<'a> {
    pub(crate) fn new(picks: &'a [u32]) -> Replay<'a> {
        Replay { picks: picks.iter(), diverged: false }
    }

    /// Whether every recorded pick was used.
    pub(crate) fn is_used_up(&self) -> bool {
        self.picks.len() == 0
    }
}

impl Chooser for Replay<'_> {
    fn pick(&mut self, _: &Machine, n: usize) -> usize {
        if n == 1 {
            return 0;
        }
        let pick = self.picks.next().copied().unwrap_or(0) as usize;
        self.diverged |= pick >= n;
        if pick < n { pick } else { 0 }
    }
}
