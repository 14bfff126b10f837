#![doc = include_str!("../README.md")]
#![deny(unsafe_code)]
//!
//! # Module map
//!
//! | folder | what it holds |
//! |---|---|
//! | `program/` | [`Program`] and [`main`]: a program's command line, its runs on the simulator and on GPUs, its reports |
//! | `launch/` | [`launch::Job`]: the PEs of a program as processes on this host |
//! | `hardware/` | what those PEs tell the process that started them, and the machine they run on |
//! | `tool/` | Ctrl-C, progress, output files |

#[doc(hidden)]
pub mod hardware;
pub mod launch;
mod program;
#[doc(hidden)]
pub mod tool;

pub use clap;
pub use program::{Program, main, main_on_one_core, main_with_options, main_with_options_on_one_core};
