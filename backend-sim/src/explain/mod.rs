//! Why a run failed, and what would help: found by running the program again, differently.
//!
//! | file | what it holds |
//! |---|---|
//! | `edit.rs` | a change of a program, made while it runs |
//! | `lines.rs` | the calls of a program: where another one can be inserted |
//! | `trial.rs` | whether a changed program is right, as far as the effort goes |
//! | `fix.rs` | the weakest change that makes a program right |
//! | `kernels.rs` | changes of kernels, which follow what races lack |
//! | `minimize.rs` | a schedule that fails, as the run in order with the fewest exceptions |
//! | `critical.rs` | the step after which every schedule fails |
//! | `weaken.rs` | which calls that order others a program does not need |
//! | `odd.rs` | an outcome that is not sequentially consistent, and the value that shows it |
//! | `witness.rs` | a run in which a race changes a result |

mod critical;
mod edit;
mod fix;
mod kernels;
mod lacking;
mod lines;
mod minimize;
mod odd;
mod trial;
mod weaken;
mod witness;

pub use critical::{Critical, NoWayBack};
pub use edit::{Edit, Ordering};
pub use fix::{Fix, Fixes, Shown};
pub use minimize::Minimized;
pub use odd::{Difference, OddRun};
pub use trial::Effort;
pub use weaken::{Enough, Weaker};
pub use witness::Witness;

pub(crate) use critical::Job as CriticalJob;
pub(crate) use edit::Edits;
pub(crate) use trial::Job as TrialJob;
