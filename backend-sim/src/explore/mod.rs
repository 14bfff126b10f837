//! Ways to choose a schedule: who picks, when several steps are possible.
//!
//! | file | chooser |
//! |---|---|
//! | `in_order.rs` | nobody: each step happens at once |
//! | `late.rs` | the adversary: transfers as late as they may, the last one first |
//! | `random.rs` | a seeded generator (`generator.rs`), any step with some bias |
//! | `pos.rs`, `pct.rs` | the same generator, by priorities: of steps; of agents and targets |
//! | `all.rs`, `reversals.rs` | a depth-first search over all schedules, leaving out equivalent ones |
//! | `attempt.rs` | one schedule of it, which anybody can run |
//! | `class.rs` | any of them, and which class of equivalent schedules its run belongs to |
//! | `exceptions.rs` | in order, but for some steps that come later; any chooser, and the names of the steps that it takes |
//! | `behind.rs` | the first steps of a run, and any chooser behind them |
//! | `replay.rs` | a recorded list |

mod all;
mod attempt;
mod behind;
mod class;
mod exceptions;
mod generator;
mod in_order;
mod late;
mod pct;
mod pos;
mod random;
mod replay;
mod reversals;

use crate::machine::{Machine, Needs, Step};

pub(crate) use all::All;
pub(crate) use attempt::{Attempt, Attempted, Attempting};
pub(crate) use behind::Behind;
pub(crate) use class::{Class, Classified};
pub(crate) use exceptions::{Exceptions, Named};
pub(crate) use in_order::InOrder;
pub(crate) use late::Late;
pub(crate) use pct::Pct;
pub(crate) use pos::Pos;
pub(crate) use random::Random;
pub(crate) use replay::Replay;

/// Picks one of the steps that are possible.
pub(crate) trait Chooser {
    /// What it needs of the machine.
    const NEEDS: Needs = Needs::CHOICES;

    /// A run is about to begin.
    fn prepare(&mut self, _machine: &mut Machine) {}

    /// The index of the step to take, below `n`; `n` is at least 1.
    fn pick(&mut self, machine: &Machine, n: usize) -> usize;

    /// The step that was picked has been taken: this is what it touched, and what comes before it.
    fn took(&mut self, _step: &Step) {}

    /// The run has ended. `cut`: by a finding, before everything had happened that could.
    fn ended(&mut self, _machine: &mut Machine, _cut: bool) {}
}
