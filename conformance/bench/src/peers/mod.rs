//! What others need for the same work.
//!
//! | file | what it holds |
//! |---|---|
//! | `oshmem.rs`, `oshmem.c` | Open MPI's OpenSHMEM, one process per PE |
//! | `nvshmem.rs`, `nvshmem.cpp`, `nvshmem_loops.cpp` | NVSHMEM called directly, for `--backend nvshmem` |
//! | `shuttle.rs` | the schedule explorer for threads |
//! | `threads.rs` | one thread per PE |

mod nvshmem;
mod oshmem;
pub(super) mod shuttle;
pub(super) mod threads;

pub(super) use nvshmem::Nvshmem;
pub(super) use oshmem::{NO_OSHMEM, Oshmem};
