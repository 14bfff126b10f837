//! The `onesided` command.
//!
//! | file | subcommand |
//! |---|---|
//! | `list.rs` | `list`: the cases, and the patterns that choose among them |
//! | `suite/` | `suite`: checks cases against their outcome files, on the simulator or on GPUs |
//! | `promote.rs` | `suite --promote`: writes outcome files |
//! | `worker.rs` | `worker`: a PE that `suite` started on a GPU |
//! | `litmus.rs` | `litmus`: one case and its outcomes |
//! | `bootstrap.rs` | `bootstrap`: becomes a PE and meets the others |
//! | `gpus.rs` | the options of `suite` and `litmus` that are about GPUs |
//! | `compare.rs` | `compare`: two reports of `suite` |
//! | `compile.rs` | `compile`: kernels for GPUs, into the cache, where there is no GPU |
//! | `launch/` | `launch`: the PEs of a program, on this host |
//! | `score/` | `score`: how well findings agree with the labels of a corpus of bugs |
//! | `show.rs` | `show`: draws a finding |
//! | `doctor/` | `doctor`: what of CUDA, NVSHMEM and MPI is found here, and what will work |
//! | `hardware/` | `hardware`: everything that needs a GPU, step by step |
//!
//! `bench` is the package `onesided-bench`.

use std::process::ExitCode;

use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use onesided_harness::tool::command::{ended, let_values_be_negative, refused};

mod bootstrap;
mod compare;
mod compile;
mod doctor;
mod gpus;
mod hardware;
mod launch;
mod list;
mod litmus;
mod promote;
mod score;
mod show;
mod suite;
mod worker;

/// NVSHMEM programs on a deterministic simulator and on GPUs: the suite of their semantics, and what is found on this
/// machine.
///
/// Programs have a command line of their own; try `cargo run --release --bin ring -- --help`.
#[derive(Debug, Parser)]
#[command(
    name = "onesided",
    version,
    max_term_width = 100,
    after_help = "Exit status: 0 all is well, 1 something was found, 2 wrong usage or it could not do its work,\n\
                  130 ended by Ctrl-C, 143 by SIGTERM. Each command says more."
)]
struct Options {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// List the cases of the suite.
    List(list::Options),
    /// Run cases and compare what they do with their outcome files.
    Suite(suite::Options),
    /// Run one case and print its outcomes, each with a schedule that leads to it.
    Litmus(litmus::Options),
    /// Compare two reports of the suite (`suite --json`), say of the simulator and of GPUs.
    Compare(compare::Options),
    /// One PE of a job that the suite started.
    #[command(hide = true)]
    Worker(worker::Options),
    /// Compile kernels for GPUs into the cache, on a machine that needs none.
    Compile(compile::Options),
    /// Start the PEs of a program on this host, one process each.
    Launch(launch::Options),
    /// Draw a finding that a program has written (--finding FILE), and convert it for other tools.
    Show(show::Options),
    /// Run a corpus of bugs, and say how well what is found agrees with its labels.
    Score(score::Options),
    /// Look for CUDA, NVSHMEM, MPI and NVRTC on this machine, and say what would work.
    Doctor(doctor::Options),
    /// Become a PE on a GPU, meet the others, and say so; started once for each PE.
    Bootstrap(bootstrap::Options),
    /// Run everything that needs a GPU: what is found, tests, suite, examples, bootstraps, mistakes, benchmarks.
    Hardware(hardware::Options),
    /// Measure what the simulator costs, or the backend for GPUs, beside what others cost on this machine.
    Bench(onesided_bench::Options),
}

/// The `main` of the command. Exit status 0: all is well; 1: something was found; 2: wrong usage, or it could not run, or
/// what it printed was lost; 130 and 143: ended by Ctrl-C, or by SIGTERM.
pub fn main() -> ExitCode {
    let command = Options::command().mut_subcommands(let_values_be_negative);
    let options = match command.try_get_matches().and_then(|matches| Options::from_arg_matches(&matches)) {
        Ok(options) => options,
        Err(error) => return refused(&error),
    };
    let status = match options.command {
        Command::List(options) => list::run(&options),
        Command::Suite(options) => suite::run(&options),
        Command::Litmus(options) => litmus::run(&options),
        Command::Compare(options) => compare::run(&options),
        Command::Compile(options) => compile::run(&options),
        Command::Worker(options) => worker::run(&options),
        Command::Launch(options) => launch::run(&options),
        Command::Score(options) => score::run(&options),
        Command::Show(options) => show::run(&options),
        Command::Doctor(options) => doctor::run(&options),
        Command::Bootstrap(options) => bootstrap::run(&options),
        Command::Hardware(options) => hardware::run(&options),
        Command::Bench(options) => onesided_bench::run(&options),
    };
    ended(Ok(status))
}
