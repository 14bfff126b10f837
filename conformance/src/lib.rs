#![doc = include_str!("../README.md")]
#![deny(unsafe_code)]
//!
//! # Module map
//!
//! | file | what it holds |
//! |---|---|
//! | `harness/` | [`harness::Program`]: any program, with the command line that all share |
//! | `case.rs`, `suite/` | [`case::Case`]: what a case is; the cases, by chapter |
//! | `outcome.rs` | what a case does on the simulator, as a set of lines |
//! | `expected.rs`, `known.rs` | outcome files and the relation to them; known deviations |
//! | `check.rs` | one case against its file |
//! | `hardware/` | [`hardware::run`]: the cases on GPUs, in jobs with a time limit |
//! | `bench/` | `onesided bench`: what the simulator costs, and the backend for GPUs, beside peers |
//! | `launch/` | [`launch::Job`]: the PEs of a program as processes on this host |
//! | `command/` | the `onesided` command |
//! | `tool/` | Ctrl-C, progress, output files |

pub mod bench;
pub mod case;
pub mod check;
pub mod command;
pub mod expected;
pub mod hardware;
pub mod harness;
pub mod known;
pub mod launch;
pub mod outcome;
pub mod suite;
mod tool;

/// The code in the project's README compiles.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
pub struct ProjectReadme;
