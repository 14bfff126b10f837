//! What all command lines here have in common.

use std::fmt;
use std::process::ExitCode;

use clap::ValueEnum;

/// Prints what clap says: an error, or a help text that was asked for.
pub fn refused(error: &clap::Error) -> ExitCode {
    let _ = error.print(); // nobody is left to tell
    ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2))
}

/// Says why a command could not do its work.
pub fn failed(why: impl fmt::Display) -> ExitCode {
    eprintln!("error: {why}");
    ExitCode::from(2)
}

/// Where programs and cases run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Backend {
    /// The deterministic simulator: all PEs in this process, no GPU needed
    Sim,
    /// libnvshmem on GPUs: one process for each PE
    Nvshmem,
}
