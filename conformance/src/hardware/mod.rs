//! The suite on GPUs: one process starts jobs of PEs, one job for all cases on the same number of PEs and GPUs, and
//! compares what they saw with the outcome files.
//!
//! | file | what it holds |
//! |---|---|
//! | `plan.rs` | which cases can run here, and which share a job |
//! | `suite.rs` | [`run`]: runs the groups, a job after the other; a hang costs one case |
//! | `worker.rs` | the PE's side |
//! | `report.rs` | what a person reads, and the JSON |
//!
//! One job and its PEs' messages are `hardware` of the package `onesided-harness`.

mod plan;
pub(crate) mod report;
mod suite;
pub(crate) mod worker;

pub use suite::{Ran, Results, Settings, run};
