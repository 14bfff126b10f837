//! Open MPI's OpenSHMEM: an own C program, compiled when it is first needed, one process per PE.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use tempfile::TempDir;

use crate::process::{self, Finished};
use crate::row::Cell;

/// The program; its first comment says what it can do.
const SOURCE: &str = include_str!("oshmem.c");

/// Why it cannot be run where it is not installed.
pub(crate) const NO_OSHMEM: &str = "no oshcc";

/// Seconds that one start of it may take.
const LIMIT: u64 = 120;

/// The compiled program.
pub(crate) struct Oshmem {
    folder: TempDir,
    version: String,
}

impl Oshmem {
    /// Compiles the program, or says what is missing here.
    pub(crate) fn find() -> Result<Oshmem, String> {
        let limit = Duration::from_secs(LIMIT);
        // "oshrun (OpenRTE) 4.1.4", then a line on where to report bugs
        let oshrun = process::run(Command::new("oshrun").arg("--version"), limit).map_err(|_| NO_OSHMEM)?;
        let version = oshrun.output.lines().next().and_then(|line| line.split_whitespace().last());
        let version = format!("Open MPI {}", version.unwrap_or("of unknown version"));
        if process::run(Command::new("oshcc").arg("--version"), limit).is_err() {
            return Err(NO_OSHMEM.into());
        }
        let folder = tempfile::tempdir().map_err(|error| format!("no temporary folder: {error}"))?;
        let source = folder.path().join("oshmem.c");
        fs::write(&source, SOURCE).map_err(|error| format!("{} cannot be written: {error}", source.display()))?;
        let oshmem = Oshmem { folder, version };
        process::run(Command::new("oshcc").arg("-O2").arg("-o").arg(oshmem.program()).arg(source), limit)?;
        Ok(oshmem)
    }

    /// Whose it is, and which.
    pub(crate) fn version(&self) -> &str {
        &self.version
    }

    /// What PE 0 prints.
    pub(crate) fn measure(&self, pes: usize, arguments: &[&str]) -> Cell {
        let number = self.run(pes, arguments).and_then(|finished| {
            let text = finished.output.trim();
            text.parse().map_err(|_| format!("PE 0 printed '{text}' in place of a number"))
        });
        number.map_or_else(Cell::NotRun, Cell::Value)
    }

    /// Milliseconds from the start of `oshrun` to its end.
    pub(crate) fn process_ms(&self, pes: usize, arguments: &[&str]) -> Cell {
        self.run(pes, arguments).map_or_else(Cell::NotRun, |finished| Cell::Value(finished.time.as_secs_f64() * 1e3))
    }

    fn run(&self, pes: usize, arguments: &[&str]) -> Result<Finished, String> {
        let mut command = Command::new("oshrun");
        command.arg("-np").arg(pes.to_string()).args(["--allow-run-as-root", "--oversubscribe"]);
        command.arg("--timeout").arg(LIMIT.to_string());
        // Open MPI 4.1 crashes in shmem_finalize with this component, which is MPI's and does nothing for OpenSHMEM:
        // https://github.com/open-mpi/ompi/issues/11604
        command.args(["--mca", "osc", "^rdma"]);
        // Large enough for every measurement, and not so large that 64 processes fill the machine.
        command.env("SHMEM_SYMMETRIC_SIZE", "16M");
        command.arg(self.program()).args(arguments);
        process::run(&mut command, Duration::from_secs(LIMIT + 10))
    }

    fn program(&self) -> PathBuf {
        self.folder.path().join("oshmem")
    }
}
