#![doc = include_str!("../README.md")]
#![deny(unsafe_code)]
//!
//! # Module map
//!
//! | file | what it holds |
//! |---|---|
//! | `process.rs` | [`Process`]: finds the library, and becomes a PE |
//! | `capabilities.rs` | [`CAPABILITIES`]: what works on GPUs, known without one |
//! | `claim.rs` | at most one PE at a time in a process |
//! | `join.rs`, `lifecycle.rs` | joining the other PEs within a limit; status, versions, the end |
//! | `launcher.rs`, `key.rs`, `rendezvous.rs` | rank and number of PEs, from the launcher's environment; what only my job's PEs know; the unique id over TCP |
//! | `mpi.rs`, `mpi_absent.rs` | MPI's world communicator, with the feature `mpi` and without |
//! | `pe.rs` | [`Nvshmem`]: one PE's end of the backend |
//! | `host.rs`, `stream.rs`, `strided.rs`, `wait.rs` | operations of the host and of streams; strided ones; waits of the host |
//! | `network.rs` | operations to PEs behind a network that the library does not do as the text says |
//! | `unclaimed.rs` | what a composed fence takes from a later quiet, and gives back |
//! | `reduction.rs` | reductions, with those that the library computes wrongly |
//! | `code.rs`, `ahead.rs` | kernels as PTX and machine code; [`Ahead`]: on a machine without a GPU |
//! | `kernels.rs`, `launch.rs`, `tensor.rs` | modules of kernels that are loaded; launches, with their limits; tensors as arguments |
//! | `atomics.rs`, `atomics.cu` | atomics of the host, by a kernel of the backend's own |
//! | `memory.rs`, `vmm.rs` | the addresses of allocations; memory that can be registered |
//! | `room.rs`, `heap.rs` | whether all PEs have room for an allocation; where the library's heap is free |
//! | `team.rs`, `slots.rs` | teams; whether the library has room for another one |
//! | `access.rs` | [`DeviceAccess`]: pointers and streams, for kernels; local access |
//! | `cuda.rs`, `staging.rs`, `workspace.rs` | the device, copies, memory of the backend's own |
//! | `bindings.rs`, `layout.rs`, `table.rs` | the library's functions and structs: generated; by hand; looked up |
//! | `library.rs`, `search.rs`, `elf.rs`, `plugin.rs` | opening libraries, where they may lie, damage that the loader would not survive, the library's own plugins |
//! | `machine.rs`, `problem.rs` | the driver and the library of a machine, for a process that is not a PE; why a part cannot be used |
//! | `limit.rs` | runs commands and foreign code with a time limit |
//! | `setting.rs` | numbers and sizes in environment variables |

mod access;
mod ahead;
mod atomics;
#[rustfmt::skip] // generated
mod bindings;
mod capabilities;
mod claim;
mod code;
mod cuda;
mod elf;
mod heap;
mod host;
mod join;
mod kernels;
mod key;
mod launch;
mod launcher;
mod layout;
mod library;
mod lifecycle;
mod limit;
mod machine;
mod memory;
#[cfg_attr(not(feature = "mpi"), path = "mpi_absent.rs")]
mod mpi;
mod network;
mod pe;
mod plugin;
mod problem;
mod process;
mod reduction;
mod rendezvous;
mod room;
mod search;
mod setting;
mod slots;
mod staging;
mod stream;
mod strided;
mod table;
mod team;
mod tensor;
mod unclaimed;
mod vmm;
mod wait;
mod workspace;

pub use access::{DeviceAccess, DeviceSlice, Extension};
pub use ahead::Ahead;
pub use capabilities::CAPABILITIES;
pub use code::COMPILES;
pub use kernels::CudaModule;
pub use key::Key;
pub use launcher::{Launcher, Placement, placement};
pub use machine::{Driver, HostLibrary, driver, host_library, kernel_module, open_library};
#[doc(hidden)]
pub use onesided_compile::python_folders;
pub use pe::{CudaEvent, CudaStream, Nvshmem};
pub use problem::Problem;
pub use process::{Process, Settings};
pub use search::{Origin, SONAME, library_at};
