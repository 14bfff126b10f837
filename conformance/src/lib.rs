#![doc = include_str!("../README.md")]
#![deny(unsafe_code)]
//!
//! # Module map
//!
//! | file | what it holds |
//! |---|---|
//! | `case.rs`, `suite/` | [`case::Case`]: what a case is; the cases, by chapter |
//! | `outcome.rs` | what a case does on the simulator, as a set of lines |
//! | `expected.rs`, `known.rs` | outcome files and the relation to them; known deviations |
//! | `check.rs` | one case against its file |
//! | `hardware/` | [`hardware::run`]: the cases on GPUs, in jobs with a time limit |
//! | `ahead.rs` | compiles what kernels need on GPUs, before they are loaded |
//! | `command/` | the `onesided` command |
//! | `processes.rs` | runs other programs, with a limit |

mod ahead;
pub mod case;
pub mod check;
pub mod command;
pub mod expected;
pub mod hardware;
pub mod known;
pub mod outcome;
mod processes;
pub mod suite;

/// The code in the project's README compiles.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
pub struct ProjectReadme;
