//! The command line that all programs share.

use std::ffi::OsString;
use std::fmt::{self, Display};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use clap::{ArgMatches, Args, Command, FromArgMatches, ValueEnum};
use onesided_sim::{Loads, Quiet, Reduce, Schedule, Strategy};

use super::Facts;
use super::own::{Augment, check_names};
use crate::launch::{FabricOptions, Sharing};
use crate::tool::command::{Backend, let_values_be_negative, with_short_help};
use crate::tool::number::{Numbers, bytes, seconds, several, whole};
use crate::tool::output::Output as File;
use crate::tool::profiles::{self, Profiles};
use crate::tool::schedule;

/// Schedules visited unless the user asks for another number.
pub(super) const SCHEDULES: u64 = 200;
/// The most schedules of `--all`, unless the user gives another limit.
pub(super) const LIMIT: u64 = 1_000_000;
/// The most classes behind a finding that are visited to compare outcomes, unless the user gives a time or a number.
pub(super) const BEHIND: u64 = 20_000;
/// The same, where a proof covers the search.
pub(super) const COVERED: u64 = 2_000;
/// The most PEs and nodes of a simulation.
const MOST: u64 = 32_000;
/// The longest `--time`, in seconds: a year.
pub(super) const MOST_TIME: u64 = 31_536_000;
/// The most `--memory`: 1T.
pub(super) const MOST_MEMORY: usize = 1 << 40;

// No groups: a program's own struct may have any name.
#[derive(Clone, Debug, Args)]
#[group(skip)]
pub(super) struct Options {
    #[command(flatten)]
    pub(super) machine: Machine,
    #[command(flatten)]
    pub(super) search: Search,
    #[command(flatten)]
    pub(super) output: Output,
}

#[derive(Clone, Debug, Args)]
#[group(skip)]
#[command(next_help_heading = "The machine")]
pub(super) struct Machine {
    /// Where the program runs
    #[arg(long, value_enum, default_value_t = Backend::Sim)]
    pub(super) backend: Backend,
    /// Number of PEs; each runs the program
    #[arg(long, short = 'n', value_name = "N", value_parser = several(1, MOST as usize))]
    pub(super) pes: Option<Numbers>,
    /// Number of nodes that the PEs are spread over [default: 1]. On GPUs they are made of namespaces of this host
    #[arg(long, value_name = "N", value_parser = whole::<usize>(1, MOST))]
    pub(super) nodes: Option<usize>,
    /// Number of GPUs that the PEs share [default: one for each PE]. On GPUs also a list: CUDA's numbers, as 0,1
    #[arg(long, value_name = "GPUS")]
    pub(super) gpus: Option<String>,
    /// Symmetric memory of each PE, in bytes or with K, M, G or T behind the number [default: 1G; on GPUs: the library's choice]
    #[arg(long, value_name = "SIZE", value_parser = bytes("1", "1T"))]
    pub(super) heap: Option<usize>,
    /// Memory of this computer: what the allocations of all simulated PEs may take together, and what a search of all
    /// schedules may remember before it ends [default: 8G]
    #[arg(long, value_name = "SIZE", value_parser = bytes("1", "1T"))]
    pub(super) memory: Option<usize>,
    /// Stack of each simulated PE; a program that overflows it ends with a segmentation fault [default: 256K]
    #[arg(long, value_name = "SIZE", value_parser = bytes("32K", "1G"))]
    pub(super) stack: Option<usize>,
    #[arg(long, value_name = "PROFILE", help = format!(
        "What the transport promises: {}. all: under each, with a table of the results [default: spec]",
        profiles::in_words()
    ))]
    pub(super) profile: Option<Profiles>,
    /// A transfer of many elements arrives in at most N pieces, in any order [default: 4]
    #[arg(long, value_name = "N", value_parser = whole::<usize>(1, 64))]
    pub(super) pieces: Option<usize>,
    /// Let the simulator refuse what that backend does not have
    #[arg(long, value_name = "BACKEND")]
    pub(super) like: Option<Like>,
    #[command(flatten)]
    pub(super) on_gpus: OnGpus,
}

/// Which backend the simulator is to be like.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Like {
    /// libnvshmem has no multicast outside of kernels
    Nvshmem,
}

#[derive(Clone, Debug, Args)]
#[group(skip)]
#[command(next_help_heading = "On GPUs (--backend nvshmem)")]
pub(super) struct OnGpus {
    /// Let several PEs share a GPU: brings up CUDA's multi-process service for them, and ends it; with several nodes one
    /// for each node, unless HOW says otherwise
    #[arg(long, value_enum, value_name = "HOW", num_args = 0..=1, require_equals = true, default_missing_value = "node")]
    pub(super) mps: Option<Sharing>,
    #[command(flatten)]
    pub(super) fabric: FabricOptions,
    /// End the PEs when none of them got further for S seconds [default: 60]
    #[arg(long, value_name = "S", value_parser = whole::<u64>(1, 86_400))]
    pub(super) timeout: Option<u64>,
}

#[derive(Clone, Debug, Args)]
#[group(skip)]
#[command(next_help_heading = "The orders of events that are tried")]
pub(super) struct Search {
    /// Visit N schedules, the first of them in order; with --all, begin at most N [default: 200; with --all: 1000000; with
    /// --time: as many as there is time for]
    #[arg(long, value_name = "N", value_parser = whole::<u64>(1, u64::MAX))]
    pub(super) schedules: Option<u64>,
    /// Prove the program right: visit every schedule that can make a difference. The result holds for these PEs and options
    #[arg(long, conflicts_with = "strategy")]
    pub(super) all: bool,
    /// Only schedules of one kind, instead of one in order and then plain random ones: in-order; plain (any possible step
    /// next); pos (a random priority for each step: classes of equivalent schedules come up more evenly); pct or pct:D (a
    /// random priority for each agent and target, with D-1 changes: for bugs that need D ordering constraints) [default: in-order, then plain]
    #[arg(long, value_name = "STRATEGY")]
    pub(super) strategy: Option<Kind>,
    /// Where the series of random schedules starts: the same seed gives the same schedules [default: 0]
    #[arg(long, value_name = "S", conflicts_with = "all", value_parser = whole::<u64>(0, u64::MAX))]
    pub(super) seed: Option<u64>,
    /// End the search, and what explains a finding, after S seconds, with what was found until then
    #[arg(long, value_name = "S", value_parser = seconds(MOST_TIME))]
    pub(super) time: Option<Duration>,
    /// Use N cores [default: all]. What is found does not depend on it
    #[arg(long, value_name = "N", value_parser = whole::<usize>(1, 4096))]
    pub(super) jobs: Option<usize>,
    /// Give a run up after N steps, as one that may never end [default: 1000000; with --all: 100000]
    #[arg(long, value_name = "N", value_parser = whole::<u64>(1, u64::MAX))]
    pub(super) max_steps: Option<u64>,
    /// Give a run up after N instructions of a block of a kernel, as one that may never end [default: 200000000]
    #[arg(long, value_name = "N", value_parser = whole::<u64>(1, u64::MAX))]
    pub(super) max_instructions: Option<u64>,
    /// What a data race means: two accesses to the same bytes that nothing orders [default: find]
    #[arg(long, value_enum, value_name = "MEANING")]
    pub(super) races: Option<RacesMean>,
    /// Which operations a quiet or barrier in a kernel completes, and a fence orders: those of all kernels of the PE, or only those that
    /// happen before it, as over NVLink [default: pe]
    #[arg(long, value_enum, value_name = "WHOSE")]
    pub(super) quiet: Option<QuietIs>,
    /// Which value a strong load of a kernel finds where PTX allows several, as the lint stale-load says [default: newest]
    #[arg(long, value_enum, value_name = "WHICH")]
    pub(super) loads: Option<LoadsFind>,
    /// The program does not look at the values that signal_wait_until returns, so --all need not visit orders that differ in them
    /// only. The proof says so
    #[arg(long)]
    pub(super) ignore_values: bool,
    /// Which orders --all leaves out because they show nothing new [default: everything]. Less takes longer, and finds the same
    #[arg(long, value_enum, value_name = "WHAT")]
    pub(super) reduce: Option<ReduceBy>,
    /// Lints are findings too: what works by luck or without a promise, as a wait for a word that a plain put writes
    #[arg(long)]
    pub(super) strict: bool,
    /// Print every pair of calls that races in the finding's run, not only the first; and every lint
    #[arg(long)]
    pub(super) all_races: bool,
    /// Find out which fences, flushes, quiets, barriers and syncs the program does not need for this number of PEs: prove it
    /// as --all does, then without each, and with weaker calls
    #[arg(long, conflicts_with_all = ["strategy", "seed"])]
    pub(super) weaken: bool,
    /// Take up to a minute to explain a finding, instead of a fraction of a second
    #[arg(long)]
    pub(super) explain: bool,
    /// Compare all outcomes with those of sequential consistency, where every operation is complete before the next begins,
    /// and show one that only the profile has. Races are no findings here
    #[arg(long, conflicts_with_all = ["strategy", "seed", "races", "strict", "all_races", "replay", "weaken"])]
    pub(super) robust: bool,
    /// Print every event of the finding's run, or else of the first run
    #[arg(long)]
    pub(super) events: bool,
    /// Run one schedule again, as a finding printed it; it brings its PEs, nodes, GPUs, profile and pieces. @FILE reads it from a
    /// file: its text, or what --finding has written
    #[arg(long, value_name = "SCHEDULE", value_parser = schedule, conflicts_with_all = ["schedules", "all", "weaken", "strategy", "seed", "time"])]
    pub(super) replay: Option<Schedule>,
}

#[derive(Clone, Debug, Args)]
#[group(skip)]
#[command(next_help_heading = "Files (- is standard output)")]
pub(super) struct Output {
    /// Write every event of the finding's run, or else of the first run, to FILE as JSON
    #[arg(long, value_name = "FILE")]
    pub(super) trace: Option<PathBuf>,
    /// Write a summary to FILE as JSON
    #[arg(long, value_name = "FILE")]
    pub(super) json: Option<PathBuf>,
    /// Write all that is known of that run to FILE, for `onesided show`: verdict, events, sources
    #[arg(long, value_name = "FILE")]
    pub(super) finding: Option<PathBuf>,
    /// Draw that run to FILE: one HTML page, which needs no network
    #[arg(long, value_name = "FILE")]
    pub(super) report: Option<PathBuf>,
}

impl Output {
    /// The files that are to be written, each with its option.
    pub(super) fn given(&self) -> impl Iterator<Item = (&'static str, &Path)> {
        let Output { trace, json, finding, report } = self;
        let all = [("--trace", trace), ("--json", json), ("--finding", finding), ("--report", report)];
        all.into_iter().filter_map(|(option, file)| Some((option, file.as_deref()?)))
    }

    /// Makes sure that all can be written, before a long run: in the order of the fields.
    pub(super) fn prepare(&self) -> Result<[Option<File>; 4], String> {
        let Output { trace, json, finding, report } = self;
        let mut files = [const { None }; 4];
        for (file, path) in files.iter_mut().zip([trace, json, finding, report]) {
            *file = path.as_deref().map(File::prepare).transpose()?;
        }
        Ok(files)
    }

    /// Those that need a recorded run.
    pub(super) fn of_a_run(&self) -> impl Iterator<Item = (&'static str, &Path)> {
        self.given().filter(|(option, _)| *option != "--json")
    }

    /// Whether one of them needs a recorded run.
    pub(super) fn needs_a_record(&self) -> bool {
        self.of_a_run().next().is_some()
    }
}

/// What a data race means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum RacesMean {
    /// It is a finding
    Find,
    /// Nothing by itself: only what it leads to is a finding
    Note,
    /// Races are not looked for, which is faster
    Ignore,
}

/// Whose operations a quiet in a kernel completes, and a fence orders.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum QuietIs {
    /// Those of all kernels of its PE: the specification's text
    Pe,
    /// Those of its thread, and those that the thread comes after, by a barrier of the block for example
    Thread,
}

impl From<QuietIs> for Quiet {
    fn from(is: QuietIs) -> Quiet {
        match is {
            QuietIs::Pe => Quiet::Pe,
            QuietIs::Thread => Quiet::Thread,
        }
    }
}

impl From<Quiet> for QuietIs {
    fn from(quiet: Quiet) -> QuietIs {
        match quiet {
            Quiet::Pe => QuietIs::Pe,
            Quiet::Thread => QuietIs::Thread,
        }
    }
}

impl Display for QuietIs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_value(self, f)
    }
}

/// As it stands on a command line.
fn write_value(value: &impl ValueEnum, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let value = value.to_possible_value();
    f.write_str(value.as_ref().map_or("", |value| value.get_name()))
}

/// Which value a strong load of a kernel finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum LoadsFind {
    /// The last one that was written
    Newest,
    /// The oldest one that PTX allows: the load misses all writes that nothing but the order of the kernel's text puts before it
    Oldest,
}

impl From<LoadsFind> for Loads {
    fn from(find: LoadsFind) -> Loads {
        match find {
            LoadsFind::Newest => Loads::Newest,
            LoadsFind::Oldest => Loads::Oldest,
        }
    }
}

impl From<Loads> for LoadsFind {
    fn from(loads: Loads) -> LoadsFind {
        match loads {
            Loads::Newest => LoadsFind::Newest,
            Loads::Oldest => LoadsFind::Oldest,
        }
    }
}

impl Display for LoadsFind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_value(self, f)
    }
}

/// Which orders a search of all schedules leaves out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum ReduceBy {
    /// No more than those that differ in the order of steps that always commute
    Nothing,
    /// Those of additions to one word that return nothing
    Counters,
    /// Also those of a wait and later updates of its word, if none of them makes its condition false again
    Everything,
}

impl From<ReduceBy> for Reduce {
    fn from(by: ReduceBy) -> Reduce {
        match by {
            ReduceBy::Nothing => Reduce::Nothing,
            ReduceBy::Counters => Reduce::Counters,
            ReduceBy::Everything => Reduce::Everything,
        }
    }
}

/// Which kind of schedules is visited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Every step as soon as it can be, PEs by rank: one schedule.
    InOrder,
    /// Drawn at random.
    Random(Strategy),
}

impl FromStr for Kind {
    type Err = String;

    fn from_str(name: &str) -> Result<Kind, String> {
        match name {
            "in-order" => Ok(Kind::InOrder),
            random => {
                let kind = random.parse().map(Kind::Random);
                kind.map_err(|why: String| why.replace("there are ", "there are in-order, "))
            }
        }
    }
}

/// What `-h` says of options whose help does not begin with it, by their ids.
const LINES: [(&str, &str); 8] = [
    ("memory", "What all PEs may allocate together, and a search may remember"),
    ("like", "Refuse what that backend does not have"),
    ("time", "End the search after S seconds"),
    ("quiet", "What a quiet in a kernel completes"),
    ("loads", "What strong loads of kernels find"),
    ("reduce", "What --all leaves out"),
    ("weaken", "Find out which fences, quiets and barriers are not needed"),
    ("trace", "Write every event of that run to FILE as JSON"),
];

/// The command line of a program: its own options first.
pub(super) fn command(facts: &Facts, own: Augment) -> Command {
    let Facts { name, about, checks, pes, min_pes, .. } = *facts;
    let least = if min_pes > 1 { format!(", at least {min_pes}") } else { String::new() };
    let own = own(Command::new(name).next_help_heading("The program"));
    let shared = let_values_be_negative(Options::augment_args(Command::new(name)));
    check_names(&own, &shared);
    let all = own
        .args(shared.get_arguments().cloned())
        .about(about)
        .version(env!("CARGO_PKG_VERSION"))
        .max_term_width(100)
        .after_help(format!(
            "Without options, the program runs once in order, which prints its lines, and then in random orders.\n\
             Every PE checks that {checks}.\n\n\
             Exit status: 0 nothing wrong was found, 1 something was, 2 wrong usage or it could not run,\n\
             3 nothing wrong was found, but --all is not complete or a run was given up at a limit,\n\
             130 ended by Ctrl-C, 143 by SIGTERM."
        ))
        .mut_arg("pes", |arg| {
            arg.help(format!(
                "Number of PEs; each runs the program{least}. Several, as 2..8 or 2,4,8: a search for each, with a table of the \
                 results [default: {pes}]"
            ))
        });
    with_short_help(all, &LINES)
}

/// Reads the arguments, the program's name first.
pub(super) fn parse(
    command: &mut Command,
    arguments: impl IntoIterator<Item = OsString>,
) -> Result<(Options, ArgMatches), clap::Error> {
    let matches = command.try_get_matches_from_mut(arguments)?;
    Ok((Options::from_arg_matches(&matches)?, matches))
}
