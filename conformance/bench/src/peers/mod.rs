//! What others need for the same work.
//!
//! | file | what it holds |
//! |---|---|
//! | `oshmem.rs`, `oshmem.c` | Open MPI's OpenSHMEM, one process per PE |
//! | `nvshmem.rs`, `nvshmem.cpp`, `nvshmem_loops.cpp` | NVSHMEM called directly, for `--backend nvshmem` |
//! | `shuttle.rs`, `loom.rs` | explorers of threads |
//! | `searched.rs` | the programs that both search |
//! | `threads.rs` | one thread per PE |

pub(super) mod loom;
mod nvshmem;
mod oshmem;
mod searched;
pub(super) mod shuttle;
pub(super) mod threads;

pub(super) use nvshmem::Nvshmem;
pub(super) use oshmem::{NO_OSHMEM, Oshmem};
