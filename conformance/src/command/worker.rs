//! `onesided worker`: one PE of a job that `onesided suite` started.

use std::process::ExitCode;

use onesided_harness::tool::number::whole;

use crate::hardware::worker;

/// What `onesided worker` takes.
#[derive(Debug, clap::Args)]
pub(super) struct Options {
    /// How often to run each case
    #[arg(long, value_name = "N", value_parser = whole::<u64>(1, u64::MAX))]
    runs: u64,
    /// The cases, by their full names
    #[arg(required = true)]
    cases: Vec<String>,
}

pub(super) fn run(options: &Options) -> ExitCode {
    worker::main(&options.cases, options.runs)
}
