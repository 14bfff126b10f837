//! What others need for the same work.
//!
//! | file | what it holds |
//! |---|---|
//! | `oshmem.rs`, `oshmem.c` | Open MPI's OpenSHMEM, one process per PE |
//! | `shuttle.rs` | the schedule explorer for threads |
//! | `threads.rs` | one thread per PE |

mod oshmem;
pub(super) mod shuttle;
pub(super) mod threads;

pub(super) use oshmem::{NO_OSHMEM, Oshmem};
