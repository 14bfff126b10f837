//! Why a run failed, and what would help: found by running the program again, differently.
//!
//! | file | what it holds |
//! |---|---|
//! | `edit.rs` | a change of a program, made while it runs |
//! | `lines.rs` | the calls of a program: where another one can be inserted |
//! | `trial.rs` | whether a changed program is right, as far as the effort goes |
//! | `fix.rs` | the weakest change that makes a program right |

mod edit;
mod fix;
mod lines;
mod trial;

pub use edit::{Edit, Ordering};
pub use fix::{Fix, Fixes, Shown};
pub use trial::Effort;

pub(crate) use edit::Edits;
