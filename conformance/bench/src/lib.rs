#![doc = include_str!("../README.md")]
//!
//! # Module map
//!
//! | file | what it holds |
//! |---|---|
//! | `put.rs`, `pingpong.rs`, `barrier.rs`, `bulk.rs` | single operations, beside Open MPI's OpenSHMEM and a memory copy |
//! | `races.rs` | what looking for data races costs |
//! | `start.rs` | whole programs from start to end, and the memory that they take |
//! | `explore.rs` | schedules per second, beside shuttle |
//! | `search.rs`, `searched.rs` | searches of all executions, beside loom and shuttle; the programs |
//! | `kernels.rs` | CUDA kernels in the simulator: instructions, whole programs, loading |
//! | `hardware/` | `--backend nvshmem`: the API on GPUs, beside the same calls in C++ |
//! | `peers/` | the others: programs for OpenSHMEM and NVSHMEM, shuttle, loom, threads |
//! | `lab.rs` | how a number is measured: best of several passes, ours and the peer's in turn |
//! | `process.rs`, `child.rs` | starting processes; this program again, where time or memory of a whole process counts |
//! | `row.rs`, `report.rs`, `machine.rs` | the table and its JSON |

mod barrier;
mod bulk;
mod child;
mod explore;
mod hardware;
mod kernels;
mod lab;
mod machine;
mod peers;
mod pingpong;
mod process;
mod put;
mod races;
mod report;
mod row;
mod search;
mod searched;
mod start;

use std::path::PathBuf;
use std::process::ExitCode;

use onesided_harness::complain;
use onesided_harness::launch::FabricOptions;
use onesided_harness::tool::command::failed;
use onesided_harness::tool::number::whole;
use onesided_harness::tool::output::Output;
use onesided_harness::tool::progress::{Progress, Things};
use onesided_harness::tool::{interrupt, say};

use lab::{Bench, Lab};
use machine::Machine;
use report::Report;
use row::Cell;
use search::Search;

/// What `onesided bench` is asked to do.
#[derive(clap::Args, Clone, Debug)]
#[command(
    after_help = "Exit status: 0 also where aims are missed, 1 a benchmark of ours failed, 2 no benchmark has that name."
)]
pub struct Options {
    /// What to measure
    #[arg(long, value_enum, default_value_t = Backend::Sim)]
    pub backend: Backend,
    /// Write the rows to FILE too, as JSON
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// One short pass: shows that everything runs; the numbers mean nothing
    #[arg(long)]
    pub quick: bool,
    /// Only benchmarks whose name contains PATTERN
    #[arg(long, value_name = "PATTERN")]
    pub only: Option<String>,
    /// The date that the JSON is to carry; without it, it carries none
    #[arg(long, value_name = "DATE")]
    pub date: Option<String>,
    /// On GPUs: how often both programs are started, in turn [default: 9]
    #[arg(long, value_name = "N", value_parser = whole::<u8>(1, 255))]
    pub rounds: Option<u8>,
    /// On GPUs: how the PEs reach each other, and what that needs.
    #[command(flatten)]
    pub fabric: FabricOptions,
    /// What a process that `--backend nvshmem` started is to measure.
    #[doc(hidden)]
    #[arg(long, hide = true, num_args = 0.., value_name = "MEASUREMENT")]
    pub worker: Option<Vec<String>>,
    /// The same calls in C++, which that process is to measure too.
    #[doc(hidden)]
    #[arg(long, hide = true, requires = "worker", value_name = "FILE")]
    pub loops: Option<PathBuf>,
}

/// How often the programs are started on GPUs, unless the user says otherwise.
const ROUNDS: u8 = 9;

/// What the benchmarks measure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
#[expect(clippy::exhaustive_enums, reason = "each is measured by code of its own")]
pub enum Backend {
    /// The simulator
    #[default]
    Sim,
    /// libnvshmem on the GPUs of this machine, beside the same calls in C++
    Nvshmem,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            backend: Backend::Sim,
            json: None,
            quick: false,
            only: None,
            date: None,
            rounds: None,
            fabric: FabricOptions::default(),
            worker: None,
            loops: None,
        }
    }
}

/// Measures, prints the table, and writes the JSON if that is asked for.
///
/// The exit status is 0 also when targets are missed; 1 when a benchmark of ours failed; 2 when none is called as asked
/// for, or the file cannot be written; 130 after Ctrl-C and 143 after SIGTERM, with the rows until then and without the JSON.
pub fn run(options: &Options) -> ExitCode {
    if let Some(measurements) = &options.worker {
        return hardware::work(measurements, options.loops.as_deref());
    }
    if let Some(status) = child::play() {
        return status;
    }
    interrupt::watch();
    let measured = match options.backend {
        Backend::Sim => match options.rounds.map(|_| "--rounds").or(options.fabric.given()) {
            Some(option) => Err(format!("{option} is about GPUs: it needs --backend nvshmem")),
            None => measure(options),
        },
        Backend::Nvshmem => hardware::run(options),
    };
    measured.unwrap_or_else(failed)
}

fn measure(options: &Options) -> Result<ExitCode, String> {
    let benches = chosen(options.only.as_deref())?;
    let json = options.json.as_deref().map(Output::prepare).transpose()?;
    let lab = Lab::new(options.quick);
    let mut report = Report::new(Machine::here(), options.date.clone(), options.quick);
    let progress = Progress::new(Some(benches.len() as u64), Things::new("benchmark", "benchmarks"));
    if !options.quick {
        complain!("measuring for a few minutes; --quick only tries everything out");
    }
    for bench in &benches {
        let measured = (bench.measure)(&lab);
        if interrupt::is_wanted() {
            break; // what was measured last was cut short
        }
        report.rows.extend(measured.rows);
        report.searches.extend(measured.searches);
        progress.step();
    }
    drop(progress);
    say::bytes(report.to_string().as_bytes());
    if interrupt::is_wanted() {
        return Ok(not_all());
    }
    if let Some(json) = json {
        json.finish(|out| writeln!(out, "{:#}", report.to_json()))?;
    }
    let failed = report.rows.iter().any(|row| matches!(row.ours, Cell::Failed(_)));
    let failed = failed || report.searches.iter().any(Search::has_failed);
    Ok(ExitCode::from(u8::from(failed)))
}

/// Says that there are only some of the rows. They do not become a JSON, which would look like all of them.
fn not_all() -> ExitCode {
    complain!("ended by you: these are the rows until then, and no JSON is written");
    interrupt::status()
}

/// The benchmarks whose name contains the pattern, in the order of the table.
fn chosen(pattern: Option<&str>) -> Result<Vec<Bench>, String> {
    let groups = [
        put::benches(),
        pingpong::benches(),
        barrier::benches(),
        bulk::benches(),
        races::benches(),
        start::benches(),
        explore::benches(),
        kernels::benches(),
        search::benches(),
    ];
    let mut benches: Vec<Bench> = groups.into_iter().flatten().collect();
    if let Some(pattern) = pattern {
        let names: Vec<String> = benches.iter().map(|bench| bench.name.clone()).collect();
        benches.retain(|bench| bench.name.contains(pattern));
        if benches.is_empty() {
            return Err(format!("no benchmark's name contains '{pattern}'; there are:\n  {}", names.join("\n  ")));
        }
    }
    Ok(benches)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_chooses_by_part_of_a_name() {
        let all: Vec<String> = chosen(None).unwrap().into_iter().map(|bench| bench.name).collect();
        let barriers: Vec<String> = chosen(Some("barrier of")).unwrap().into_iter().map(|bench| bench.name).collect();
        assert_eq!(barriers, ["barrier of 2 PEs", "barrier of 4 PEs", "barrier of 8 PEs"]);
        assert!(all.iter().all(|name| all.iter().filter(|other| *other == name).count() == 1), "{all:?}");
        let none = chosen(Some("parsec")).err().unwrap();
        assert!(none.starts_with("no benchmark's name contains 'parsec'; there are:\n  put 8 B"), "{none}");
    }
}
