//! PEs as processes that report to the process that started them. Programs on GPUs use this, and the suite.
//!
//! | file | what it holds |
//! |---|---|
//! | `job.rs` | one job, from its start to its end |
//! | `trouble.rs` | why a job did not end as it should |
//! | `pe.rs` | the PE's side |
//! | `protocol.rs` | what a PE tells the process that started it |
//! | `machine.rs` | the GPUs, the driver and the library of this machine |

pub mod job;
pub mod machine;
pub mod pe;
pub mod protocol;
pub mod trouble;
