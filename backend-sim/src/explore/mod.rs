//! Ways to choose a schedule: who picks, when several steps are possible.
//!
//! | file | chooser |
//! |---|---|
//! | `in_order.rs` | nobody: each step happens at once |
//! | `random.rs` | a seeded generator |
//! | `all.rs`, `reversals.rs` | a depth-first search over all schedules, leaving out equivalent ones |
//! | `replay.rs` | a recorded list |

mod all;
mod in_order;
mod random;
mod replay;
mod reversals;

use crate::machine::{Machine, Step};

pub(crate) use all::All;
pub(crate) use in_order::InOrder;
pub(crate) use random::Random;
pub(crate) use replay::Replay;

/// Picks one of the steps that are possible.
pub(crate) trait Chooser {
    /// Whether there is anything to choose: otherwise every step happens at once.
    const RELAXED: bool = true;
    /// Whether it wants to know what each step touched, and what comes before it.
    const TRACKING: bool = false;

    /// A run is about to begin.
    fn prepare(&self, _machine: &mut Machine) {}

    /// The index of the step to take, below `n`; `n` is at least 1.
    fn pick(&mut self, machine: &Machine, n: usize) -> usize;

    /// The step that was picked has been taken: this is what it touched, and what comes before it.
    fn took(&mut self, _step: &Step) {}

    /// The run has ended. `cut`: by a finding, before everything had happened that could.
    fn ended(&mut self, _machine: &Machine, _cut: bool) {}
}
