//! The suite on GPUs: one process starts jobs of PEs, one job for all cases on the same number of PEs and GPUs, and
//! compares what they saw with the outcome files.
//!
//! | file | what it holds |
//! |---|---|
//! | `plan.rs` | which cases can run here, and which share a job |
//! | `suite.rs` | [`run`]: runs the groups, a job after the other; a hang costs one case |
//! | `job.rs` | one job, from its start to its end |
//! | `trouble.rs` | why a job did not end as it should |
//! | `worker.rs` | the PE's side |
//! | `protocol.rs` | what a PE tells the process that started it |
//! | `machine.rs` | the GPUs, the driver and the library of this machine |
//! | `report.rs` | what a person reads, and the JSON |

pub(crate) mod job;
pub(crate) mod machine;
mod plan;
pub mod protocol;
pub(crate) mod report;
mod suite;
pub(crate) mod trouble;
pub(crate) mod worker;

pub use suite::{Ran, Results, Settings, run};
