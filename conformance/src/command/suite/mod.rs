//! `onesided suite`: checks cases against their outcome files, on the simulator or on GPUs.

use std::path::PathBuf;
use std::process::ExitCode;

use onesided_harness::tool::command::{Backend, failed};
use onesided_harness::tool::interrupt;
use onesided_harness::tool::number::whole;
use onesided_harness::tool::profiles::Profiles;

use super::gpus::{OnGpus, refuse};
use crate::check::{Checked, Status};

mod hardware;
mod sim;

/// What `onesided suite` takes.
#[derive(Debug, clap::Args)]
pub(super) struct Options {
    /// Chapters, cases, or parts of case names; all cases if left out
    patterns: Vec<String>,
    /// Where the cases run
    #[arg(long, value_enum, default_value_t = Backend::Sim)]
    backend: Backend,
    /// What the simulated transport promises: one profile, or all, each after the other
    ///
    /// A case that does not do under a profile all that it does under spec has an outcome file of its own for it.
    #[arg(long, default_value_t = Profiles::All)]
    profile: Profiles,
    /// Visit N random schedules of each case: a quick look, which sees part of the outcomes
    #[arg(long, value_name = "N", value_parser = whole::<u64>(1, u64::MAX))]
    schedules: Option<u64>,
    /// Where random schedules start [default: 0]
    #[arg(long, value_name = "S", requires = "schedules", value_parser = whole::<u64>(0, u64::MAX))]
    seed: Option<u64>,
    /// Check N cases at a time [default: one on each core]. They are printed in the order of the list
    #[arg(long, value_name = "N", value_parser = whole::<usize>(1, 4096))]
    jobs: Option<usize>,
    /// Write the result of each case to FILE
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Where the outcome files are, if not in the sources of this command
    #[arg(long, value_name = "DIR")]
    expected: Option<PathBuf>,
    /// Write the outcome files of each profile from all schedules, to be reviewed; cases with too many schedules are left
    /// alone
    #[arg(long, conflicts_with_all = ["profile", "schedules", "json", "seed", "jobs"])]
    promote: bool,
    /// Fail unless the cases run on GPUs
    #[arg(long)]
    require_hardware: bool,
    #[command(flatten)]
    on_gpus: OnGpus,
}

pub(super) fn run(options: &Options) -> ExitCode {
    interrupt::watch();
    try_run(options).unwrap_or_else(failed)
}

fn try_run(options: &Options) -> Result<ExitCode, String> {
    match options.backend {
        Backend::Sim => {
            if options.require_hardware {
                return Err(
                    "--require-hardware needs --backend nvshmem: without it the cases run on the simulator".to_string()
                );
            }
            if let Some(option) = options.on_gpus.given() {
                return Err(format!("{option} is about GPUs: it needs --backend nvshmem"));
            }
            sim::run(options)
        }
        Backend::Nvshmem => {
            refuse(&[
                ("--profile", options.profile != Profiles::All),
                ("--schedules", options.schedules.is_some()),
                ("--seed", options.seed.is_some()),
                ("--jobs", options.jobs.is_some()),
                ("--promote", options.promote),
            ])?;
            hardware::run(options)
        }
    }
}

/// How many cases passed, failed and did not run.
fn counts<'a>(results: impl Iterator<Item = &'a Checked> + Clone) -> [usize; 3] {
    [Status::Passed, Status::Failed, Status::NotRun]
        .map(|status| results.clone().filter(|checked| checked.status == status).count())
}

/// The exit status: 1 if a case failed.
fn status(counts: [usize; 3]) -> Result<ExitCode, String> {
    match counts {
        _ if interrupt::is_wanted() => Ok(interrupt::status()),
        [0, 0, _] => Err("no case ran".to_string()),
        [_, 0, _] => Ok(ExitCode::SUCCESS),
        _ => Ok(ExitCode::from(1)),
    }
}
