//! The suite on GPUs. One process starts the jobs, one for all cases with the same number of PEs and GPUs, and compares what
//! the PEs saw with the outcome files.
//!
//! | file | what it holds |
//! |---|---|
//! | `plan.rs` | which cases can run here, and which share a job |
//! | `suite.rs` | [`run`]: runs one job after the other; a hang costs one case |
//! | `worker.rs` | the PE's side |
//! | `report.rs` | what a person reads, and the JSON |
//!
//! The module `hardware` of `onesided-harness` has a job and the messages of its PEs.

mod plan;
pub(crate) mod report;
mod suite;
pub(crate) mod worker;

pub use suite::{Ran, Results, Settings, run};
