//! The options of `suite` and `litmus` that are about GPUs.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use onesided_harness::complain;
use onesided_harness::hardware::machine::{self, Machine};
use onesided_harness::launch::{FabricOptions, Rig, Sharing};
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
    /// How PEs of a node that share a GPU use it at once, on several nodes: CUDA's multi-process service for each node, or one
    /// for all; with none, cases whose PEs would have to share one are not run [default: node]
    #[arg(long, value_enum, value_name = "HOW")]
    mps: Option<Sharing>,
    /// The nodes that cases may be spread over: made of namespaces of this host [default: 1; with --fabric mixed: 2]
    #[arg(long, value_name = "N", value_parser = whole::<usize>(1, 1000))]
    nodes: Option<usize>,
    #[command(flatten)]
    fabric: FabricOptions,
}

impl OnGpus {
    /// The first of these options that was given. The simulator refuses them.
    pub(super) fn given(&self) -> Option<&'static str> {
        let OnGpus { runs, gpus, timeout, mps, nodes, fabric } = self;
        let given = [
            ("--runs", runs.is_some()),
            ("--gpus", gpus.is_some()),
            ("--timeout", timeout.is_some()),
            ("--mps", mps.is_some()),
            ("--nodes", nodes.is_some()),
        ];
        given.into_iter().find_map(|(option, is_given)| is_given.then_some(option)).or(fabric.given())
    }

    /// Looks at the machine, and says how cases run on it: as processes of this program.
    ///
    /// # Errors
    /// What this machine lacks, or a GPU that it does not have.
    pub(super) fn settings(&self, expected: Option<&Path>) -> Result<(Machine, Settings), String> {
        let mut machine = Machine::look()?;
        let gpus = machine::choose(self.gpus.as_deref(), machine.gpus.len())?;
        let program = std::env::current_exe().map_err(|why| format!("the file of this program is not known: {why}"))?;
        let runs = self.runs.unwrap_or(RUNS);
        let rig = Rig::prepare(&self.fabric, self.nodes)?;
        rig.notes().iter().for_each(|note| complain!("note: {note}"));
        machine.add_settings(rig.environment());
        let settings = Settings {
            program,
            arguments: ["worker".into(), "--runs".into(), runs.to_string().into()].to_vec(),
            gpus,
            runs,
            limit: Duration::from_secs(self.timeout.unwrap_or(TIMEOUT)),
            start: START,
            expected: Folder::new(expected),
            rig: Arc::new(rig),
            sharing: self.mps,
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
