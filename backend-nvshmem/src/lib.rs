#![doc = include_str!("../README.md")]
#![deny(unsafe_code)]
//!
//! # Module map
//!
//! | file | what it holds |
//! |---|---|
//! | `doctor.rs` | [`doctor`]: looks for each part, one after the other |
//! | `report.rs` | [`Report`]: what was found, and its table |
//! | `foresee.rs` | what will work, and what will not, told from what was found |
//! | `network.rs` | [`Network`]: whether PEs of this host can find each other |
//! | `problem.rs` | [`Problem`]: why a part cannot be used |
//! | `search.rs` | [`Search`]: the places where libnvshmem_host may lie, in order |
//! | `library.rs` | opens libraries and calls what is safe before initialization; the only file with `unsafe` |
//! | `elf.rs` | tells a damaged library from a whole one before the loader touches it |
//! | `launcher.rs` | [`placement`]: who this process is, according to what started it |
//! | `rendezvous.rs` | PE 0 gives a few bytes to all, over TCP and within a limit |
//! | `limit.rs` | runs commands and foreign code with a time limit |

mod doctor;
mod elf;
mod foresee;
mod launcher;
mod library;
mod limit;
mod network;
mod pe;
mod problem;
mod process;
mod rendezvous;
mod report;
mod search;

pub use doctor::{doctor, driver};
pub use launcher::{Launcher, Placement, placement};
pub use network::Network;
pub use pe::{CudaEvent, CudaStream, Nvshmem};
pub use problem::Problem;
pub use process::{Process, Settings};
pub use report::{Driver, Finding, HostLibrary, Report, Row, Tool};
pub use search::{Origin, SONAME, Search};
