//! The options of `suite` and `litmus` that are about GPUs.

use std::path::Path;
use std::time::Duration;

use onesided_harness::hardware::machine::{self, Machine};
use onesided_harness::tool::number::whole;

use crate::expected::Folder;
use crate::hardware::Settings;

/// Runs of each case unless the user asks for another number.
const RUNS: u64 = 20;
/// After so many seconds without progress a case is given up, unless the user gives another number.
const TIMEOUT: u64 = 20;
/// How long a job may take to initialize: GPUs wake slowly, and each PE waits a minute for the others.
const START: Duration = Duration::from_secs(90);

/// How cases run on GPUs.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "On GPUs (--backend nvshmem)")]
pub(super) struct OnGpus {
    /// Run each case N times [default: 20]
    #[arg(long, value_name = "N", value_parser = whole::<u64>(1, u64::MAX))]
    runs: Option<u64>,
    /// The GPUs to use: their number, or CUDA's numbers of them as 0,1 [default: all]
    #[arg(long, value_name = "GPUS")]
    gpus: Option<String>,
    /// Give a case up when none of its PEs got further for S seconds [default: 20]
    #[arg(long, value_name = "S", value_parser = whole::<u64>(1, 3600))]
    timeout: Option<u64>,
}

impl OnGpus {
    /// The first of these options that was given. The simulator refuses them.
    pub(super) fn given(&self) -> Option<&'static str> {
        let given = [("--runs", self.runs.is_some()), ("--gpus", self.gpus.is_some())];
        let given = given.into_iter().chain([("--timeout", self.timeout.is_some())]);
        given.into_iter().find_map(|(option, is_given)| is_given.then_some(option))
    }

    /// Looks at the machine, and says how cases run on it: as processes of this program.
    ///
    /// # Errors
    /// What this machine lacks, or a GPU that it does not have.
    pub(super) fn settings(&self, expected: Option<&Path>) -> Result<(Machine, Settings), String> {
        let machine = Machine::look()?;
        let gpus = machine::choose(self.gpus.as_deref(), machine.gpus.len())?;
        let program = std::env::current_exe().map_err(|why| format!("the file of this program is not known: {why}"))?;
        let runs = self.runs.unwrap_or(RUNS);
        let settings = Settings {
            program,
            arguments: ["worker".into(), "--runs".into(), runs.to_string().into()].to_vec(),
            gpus,
            runs,
            limit: Duration::from_secs(self.timeout.unwrap_or(TIMEOUT)),
            start: START,
            expected: Folder::new(expected),
        };
        Ok((machine, settings))
    }
}

/// Refuses what the simulator understands and GPUs do not.
pub(super) fn refuse(options: &[(&str, bool)]) -> Result<(), String> {
    match options.iter().find(|(_, is_given)| *is_given) {
        Some((option, _)) => {
            Err(format!("{option} is about simulated schedules, and on GPUs (--backend nvshmem) there are none"))
        }
        None => Ok(()),
    }
}
