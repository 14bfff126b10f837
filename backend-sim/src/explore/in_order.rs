//! The fast default: hosts run in the order of their ranks, every step happens at once.

use super::Chooser;
use crate::machine::{Machine, Needs};

/// Chooses nothing.
#[derive(Debug)]
pub(crate) struct InOrder;

impl Chooser for InOrder {
    const NEEDS: Needs = Needs::NOTHING;

    fn pick(&mut self, _: &Machine, _: usize) -> usize {
        unreachable!("in order, there is nothing to choose")
    }
}
