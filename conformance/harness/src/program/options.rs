//! The command line that all programs share.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, CommandFactory, FromArgMatches, Parser, ValueEnum};
use onesided_sim::{Profile, Schedule};

use super::Facts;
use crate::tool::command::Backend;
use crate::tool::schedule;

/// Schedules visited unless the user asks for another number.
pub(super) const SCHEDULES: u64 = 200;
/// The most schedules of `--all`, unless the user gives another limit.
pub(super) const LIMIT: u64 = 1_000_000;

#[derive(Debug, Parser)]
#[command(version, max_term_width = 100)]
pub(super) struct Options {
    #[command(flatten)]
    pub(super) machine: Machine,
    #[command(flatten)]
    pub(super) search: Search,
    #[command(flatten)]
    pub(super) output: Output,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "The machine")]
pub(super) struct Machine {
    /// Where the program runs
    #[arg(long, value_enum, default_value_t = Backend::Sim)]
    pub(super) backend: Backend,
    /// Number of PEs; each runs the program
    #[arg(long, value_name = "N")]
    pub(super) pes: Option<usize>,
    /// Number of nodes that the simulated PEs are spread over [default: 1]
    #[arg(long, value_name = "N")]
    pub(super) nodes: Option<usize>,
    /// Number of GPUs that the PEs share [default: one for each PE]. On GPUs also a list: CUDA's numbers, as 0,1
    #[arg(long, value_name = "GPUS")]
    pub(super) gpus: Option<String>,
    /// Symmetric memory of each PE, in bytes or with K, M or G behind the number [default: 1G]
    #[arg(long, value_name = "SIZE", value_parser = bytes)]
    pub(super) heap: Option<usize>,
    /// Memory that the allocations of all simulated PEs may take together on this computer [default: 8G]
    #[arg(long, value_name = "SIZE", value_parser = bytes)]
    pub(super) memory: Option<usize>,
    /// Stack of each simulated PE; a program that overflows it ends with a segmentation fault [default: 256K]
    #[arg(long, value_name = "SIZE", value_parser = bytes)]
    pub(super) stack: Option<usize>,
    /// What the transport guarantees: spec is the specification's text and no more; under nvlink a fence completes, a
    /// blocking put has arrived when it returns, and transfers to one PE keep their order [default: spec]
    #[arg(long, value_name = "PROFILE")]
    pub(super) profile: Option<Profile>,
    /// A transfer of many elements arrives in at most N pieces, in any order [default: 4]
    #[arg(long, value_name = "N")]
    pub(super) pieces: Option<usize>,
    #[command(flatten)]
    pub(super) on_gpus: OnGpus,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "On GPUs (--backend nvshmem)")]
pub(super) struct OnGpus {
    /// Let several PEs share a GPU: brings up CUDA's multi-process service for them, and ends it
    #[arg(long)]
    pub(super) mps: bool,
    /// End the PEs when none of them got further for S seconds [default: 60]
    #[arg(long, value_name = "S", value_parser = clap::value_parser!(u64).range(1..=86400))]
    pub(super) timeout: Option<u64>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "The orders of events that are tried")]
pub(super) struct Search {
    /// Visit N schedules, the first of them in order; with --all, begin at most N [default: 200; with --all: 1000000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(super) schedules: Option<u64>,
    /// Visit every schedule that can make a difference: if none fails, the program is right for this input
    #[arg(long, conflicts_with = "strategy")]
    pub(super) all: bool,
    /// Only schedules of one kind, instead of one in order and then random ones
    #[arg(long, value_enum)]
    pub(super) strategy: Option<Strategy>,
    /// Where the series of random schedules starts: the same seed gives the same schedules [default: 0]
    #[arg(long, value_name = "S", conflicts_with = "all")]
    pub(super) seed: Option<u64>,
    /// Give a run up after N steps, as one that may never end [default: 1000000; with --all, at most 100000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(super) max_steps: Option<u64>,
    /// Run one schedule again, as a finding printed it; it brings its PEs, nodes, GPUs, profile and pieces
    #[arg(long, value_name = "SCHEDULE", value_parser = schedule, conflicts_with_all = ["schedules", "all", "strategy", "seed"])]
    pub(super) replay: Option<Schedule>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Files")]
pub(super) struct Output {
    /// Write every event of the finding's run, or else of the first run, to FILE as JSON
    #[arg(long, value_name = "FILE")]
    pub(super) trace: Option<PathBuf>,
    /// Write a summary to FILE as JSON
    #[arg(long, value_name = "FILE")]
    pub(super) json: Option<PathBuf>,
}

/// Which schedules are visited.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Strategy {
    /// Every step as soon as it can be, PEs by rank: one schedule
    InOrder,
    /// Any possible step next, drawn at random
    Random,
}

/// The command line of a program.
pub(super) fn command(facts: &Facts) -> clap::Command {
    let Facts { name, about, checks, pes, min_pes } = *facts;
    let least = if min_pes > 1 { format!(", at least {min_pes}") } else { String::new() };
    Options::command()
        .name(name)
        .about(about)
        .after_help(format!(
            "Without options, the program runs once in order, which prints its lines, and then in random orders.\n\
             Every PE checks that {checks}.\n\n\
             Exit status: 0 nothing wrong was found, 1 something was, 2 wrong usage or it could not run,\n\
             130 ended by Ctrl-C."
        ))
        .mut_arg("pes", |arg| arg.help(format!("Number of PEs; each runs the program{least} [default: {pes}]")))
}

/// Reads the arguments, the program's name first.
pub(super) fn parse(
    command: &mut clap::Command,
    arguments: impl IntoIterator<Item = OsString>,
) -> Result<Options, clap::Error> {
    let matches = command.try_get_matches_from_mut(arguments)?;
    Options::from_arg_matches(&matches)
}

/// A number of bytes: `4096`, `64K`, `16M`, `1G`.
fn bytes(text: &str) -> Result<usize, String> {
    let (digits, factor) = match text.char_indices().last() {
        Some((at, 'k' | 'K')) => (&text[..at], 1 << 10),
        Some((at, 'm' | 'M')) => (&text[..at], 1 << 20),
        Some((at, 'g' | 'G')) => (&text[..at], 1 << 30),
        _ => (text, 1),
    };
    let number: usize = digits.parse().map_err(|_| "expected a number, and K, M or G behind it if you like")?;
    number.checked_mul(factor).filter(|&bytes| bytes > 0).ok_or_else(|| format!("{text} is no size that can be had"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_suffixes() {
        let sizes = ["1", "64K", "16m", "2G"].map(|text| bytes(text).unwrap());
        assert_eq!(sizes, [1, 64 << 10, 16 << 20, 2 << 30]);
        for wrong in ["", "K", "1.5G", "-1", "0", "1T", "99999999999G"] {
            assert!(bytes(wrong).is_err(), "{wrong}");
        }
    }
}
