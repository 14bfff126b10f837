#![doc = include_str!("../README.md")]
#![deny(unsafe_code)]
//!
//! # Module map
//!
//! | file | what it holds |
//! |---|---|
//! | `doctor.rs` | [`doctor`]: looks for each part, one after the other |
//! | `report.rs` | [`Report`]: what was found, and its table |
//! | `problem.rs` | [`Problem`]: why a part cannot be used |
//! | `search.rs` | [`Search`]: the places where libnvshmem_host may lie, in order |
//! | `library.rs` | opens libraries and calls what is safe before initialization; the only file with `unsafe` |
//! | `elf.rs` | tells a damaged library from a whole one before the loader touches it |
//! | `mpi.rs`, `mpi_absent.rs` | MPI's world communicator, with the feature `mpi` and without |
//! | `limit.rs` | runs commands and foreign code with a time limit |

mod access;
#[rustfmt::skip] // generated
mod bindings;
mod cuda;
mod doctor;
mod elf;
mod host;
mod join;
mod launcher;
mod layout;
mod library;
mod lifecycle;
mod limit;
mod memory;
#[cfg_attr(not(feature = "mpi"), path = "mpi_absent.rs")]
mod mpi;
mod pe;
mod problem;
mod process;
mod rendezvous;
mod report;
mod search;
mod staging;
mod stream;
mod table;
mod team;
mod vmm;

pub use access::{DeviceAccess, DeviceSlice};
pub use doctor::{doctor, driver, host_library, kernel_module};
pub use launcher::{Placement, placement};
pub use pe::{CudaEvent, CudaStream, Nvshmem};
pub use problem::Problem;
pub use process::{Process, Settings};
pub use report::{Driver, Finding, HostLibrary, Report, Row, Tool};
pub use search::{Origin, SONAME, Search};
