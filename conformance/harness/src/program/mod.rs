//! Runs any program on any backend, with the command line that all programs share.
//!
//! | file | what it holds |
//! |---|---|
//! | `options.rs` | the command line |
//! | `one_core.rs` | a program that is not `Sync` |
//! | `own.rs` | what of it is the program's own |
//! | `plan.rs` | what the options ask for on the simulator, or why that is impossible |
//! | `run.rs` | runs the plan, up to the first finding |
//! | `results.rs` | whether the PEs returned the same on every schedule |
//! | `explain.rs` | what explains a finding |
//! | `report.rs`, `next.rs`, `colour.rs` | what a person reads; what would help next; how it looks on a terminal |
//! | `table.rs`, `compare.rs` | several numbers of PEs or profiles: a row for each; whether one profile is stronger |
//! | `json.rs` | what `--trace` and `--json` write |
//! | `robust.rs` | `--robust`: whether every outcome is sequentially consistent |
//! | `finding.rs`, `sources.rs` | what `--finding`, `--report` and `--events` write of a run; the source files that it names |
//! | `gpus.rs` | on GPUs: what the options ask for, and the process that starts the PEs |
//! | `gpus_report.rs` | what a person reads of that, and its `--json` |
//! | `pe.rs` | on GPUs: the process that is a PE |

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use clap::ArgMatches;
use onesided::{Backend, Pe, Result, count};
use onesided_nvshmem::Placement;
use onesided_sim::{Run, Sim};

use crate::tool::command::{self, NOT_COMPLETE, ended, failed, refused};
use crate::tool::interrupt;
use crate::tool::output::{Output, is_standard};
use crate::tool::terminal::{events_of, terminal};
use crate::{complain, say};

mod colour;
mod compare;
mod explain;
mod finding;
mod gpus;
mod gpus_report;
mod json;
mod next;
mod one_core;
mod options;
mod own;
mod pe;
mod plan;
mod report;
mod results;
mod robust;
mod run;
mod sources;
mod table;

use explain::Explained;
use one_core::OneCore;
use own::{Augment, Own};
use plan::Plan;
use run::End;
use table::Table;

/// A program that every PE runs: the unit of the harness.
///
/// Each program checks its own result: a wrong one is an `Err` (see [`onesided::expect_eq`]). What it returns is
/// printed, one PE after the other, for the first schedule.
///
/// A program with options of its own is a struct of them, which derives [`clap::Args`](crate::clap::Args); its `main` is
/// [`main_with_options`]. Every PE gets the same struct, on every schedule. The options that were given stand in the
/// command that replays a finding, and a replay with other ones is refused.
///
/// Schedules of the simulator run on all cores where a program is [`Sync`]. One that is not has [`main_on_one_core`].
///
/// ```no_run
/// use onesided::{Backend, Pe, Result};
/// use onesided_harness::{Program, clap, main_with_options};
///
/// #[derive(clap::Args)]
/// struct Pairs {
///     /// Rounds that each pair plays
///     #[arg(long, default_value_t = 3)]
///     rounds: u64,
/// }
///
/// impl Program for Pairs {
///     const NAME: &'static str = "pairs";
///     const ABOUT: &'static str = "PEs exchange words, two by two.";
///     const CHECKS: &'static str = "it received every word of its partner";
///
///     fn precondition(&self, n_pes: usize) -> std::result::Result<(), String> {
///         if n_pes.is_multiple_of(2) { Ok(()) } else { Err("it needs an even number of PEs".to_string()) }
///     }
///
///     fn run(&self, pe: &Pe<impl Backend>) -> Result<String> {
///         Ok(format!("PE {} played {} rounds", pe.my_pe(), self.rounds))
///     }
/// }
///
/// fn main() -> std::process::ExitCode {
///     main_with_options::<Pairs>()
/// }
/// ```
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

    /// Whether the program can run on so many PEs, with its options. Asked before anything runs.
    ///
    /// # Errors
    /// A sentence that says what it needs. The command then ends with status 2: this is not a finding.
    fn precondition(&self, n_pes: usize) -> std::result::Result<(), String> {
        let _ = n_pes;
        Ok(())
    }

    /// The program, run by every PE. Returns a few readable lines, or nothing on PEs that have nothing to say.
    ///
    /// # Errors
    /// The first call that failed, or the program's own check.
    fn run(&self, pe: &Pe<impl Backend>) -> Result<String>;
}

/// A program as the simulator runs it, without its type: what follows is compiled once, and not for each program.
type Main<'a> = &'a (dyn Fn(&Pe<Sim>) -> Result<String> + Sync);
/// The same of [`Program::precondition`].
type Precondition<'a> = &'a dyn Fn(usize) -> std::result::Result<(), String>;

/// What is known of a program besides its code: the constants of [`Program`].
#[derive(Clone, Copy, Debug)]
struct Facts {
    name: &'static str,
    about: &'static str,
    checks: &'static str,
    pes: usize,
    min_pes: usize,
    cores: Cores,
}

/// How many cores may run its schedules.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Cores {
    All,
    /// It is not `Sync`.
    One,
}

/// The `main` of a program: reads the command line, runs, reports.
///
/// | exit status | |
/// |---|---|
/// | 0 | nothing wrong was found |
/// | 1 | a finding |
/// | 2 | wrong usage, or an operating error: what was asked for could not be done, a kernel does not compile, or a result could not be written |
/// | 3 | nothing wrong was found, and not everything was seen: `--all` is not complete, or a run was given up at a limit |
/// | 130, 143 | Ctrl-C or SIGTERM ended it before it had found anything, or while it explained a finding, which it prints |
///
/// On GPUs, the process starts itself again for each PE; a process that was started as a PE, by `onesided launch`,
/// `mpirun`, `srun` or `torchrun`, is that PE.
pub fn main(program: impl Program + Sync) -> ExitCode {
    start(Cores::All, |command| command, |_| Ok(program))
}

/// As [`main`], for a program that is not [`Sync`]: its schedules run one after the other, and a note says so.
///
/// ```no_run
/// use onesided::{Backend, Pe, Result};
/// use onesided_harness::{Program, main_on_one_core};
/// use std::cell::Cell;
///
/// /// Counts its runs, in a cell that threads cannot share.
/// #[derive(Default)]
/// struct Counted(Cell<u64>);
///
/// impl Program for Counted {
///     const NAME: &'static str = "counted";
///     const ABOUT: &'static str = "All PEs meet.";
///     const CHECKS: &'static str = "they do";
///
///     fn run(&self, pe: &Pe<impl Backend>) -> Result<String> {
///         self.0.set(self.0.get() + 1);
///         pe.host().barrier_all()?;
///         Ok(String::new())
///     }
/// }
///
/// fn main() -> std::process::ExitCode {
///     main_on_one_core(Counted::default())
/// }
/// ```
pub fn main_on_one_core(program: impl Program) -> ExitCode {
    start(Cores::One, |command| command, |_| Ok(OneCore::new(program)))
}

/// As [`main`], for a program with options of its own: they are read into `P`.
///
/// # Panics
/// When `P` has an option that all programs have already.
pub fn main_with_options<P: Program + Sync + clap::Args>() -> ExitCode {
    start(Cores::All, P::augment_args, P::from_arg_matches)
}

/// As [`main_with_options`], for a program that is not [`Sync`]: see [`main_on_one_core`].
///
/// # Panics
/// When `P` has an option that all programs have already.
pub fn main_with_options_on_one_core<P: Program + clap::Args>() -> ExitCode {
    start(Cores::One, P::augment_args, |matches| P::from_arg_matches(matches).map(OneCore::new))
}

/// Reads the command line and does what it asks for.
fn start<P: Program + Sync>(
    cores: Cores,
    augment: Augment,
    program: impl FnOnce(&ArgMatches) -> std::result::Result<P, clap::Error>,
) -> ExitCode {
    let facts = Facts { name: P::NAME, about: P::ABOUT, checks: P::CHECKS, pes: P::PES, min_pes: P::MIN_PES, cores };
    let read = read(&facts, augment, std::env::args_os());
    let (asked, program) = match read.and_then(|(asked, matches)| Ok((asked, program(&matches)?))) {
        Ok(read) => read,
        Err(error) => return refused(&error),
    };
    let main: Main<'_> = &|pe| program.run(pe);
    let done = match &asked {
        Asked::Sim(plan) => match program.precondition(plan.config.pes) {
            Err(why) => return failed(facts.cannot_run(plan.config.pes, &why)),
            Ok(()) => {
                interrupt::watch();
                say_if_launched();
                facts.say_if_on_one_core();
                match plan.robust {
                    true => robust::run(&facts, main, plan),
                    false => follow(&facts, (main, &|pes| program.precondition(pes)), plan),
                }
            }
        },
        Asked::Table(table) => {
            interrupt::watch();
            say_if_launched();
            facts.say_if_on_one_core();
            table.run(&facts, (main, &|pes| program.precondition(pes)))
        }
        Asked::Gpus(plan) => gpus::run(&facts, &program, plan),
    };
    ended(done)
}

/// What the command line asks for.
#[derive(Debug)]
enum Asked {
    Sim(Box<Plan>),
    Table(Table),
    Gpus(Box<gpus::Plan>),
}

fn read(
    facts: &Facts,
    augment: Augment,
    arguments: impl IntoIterator<Item = OsString>,
) -> std::result::Result<(Asked, ArgMatches), clap::Error> {
    let mut command = options::command(facts, augment);
    let (options, matches) = options::parse(&mut command, arguments)?;
    let own = Own::of(augment, &matches);
    let asked = match options.machine.backend {
        command::Backend::Sim => match Table::new(facts, &options, &own) {
            Ok(None) => Plan::new(facts, options, own).map(|plan| Asked::Sim(Box::new(plan))),
            Ok(Some(table)) => Ok(Asked::Table(table)),
            Err(why) => Err(why),
        },
        command::Backend::Nvshmem => gpus::Plan::new(facts, options, own).map(|plan| Asked::Gpus(Box::new(plan))),
    };
    match asked {
        Ok(asked) => Ok((asked, matches)),
        Err(why) => Err(command.error(clap::error::ErrorKind::ValueValidation, why)),
    }
}

impl Facts {
    fn cannot_run(&self, pes: usize, why: &str) -> String {
        format!("{} cannot run on {}: {why}", self.name, count(pes, "PE"))
    }

    fn say_if_on_one_core(&self) {
        if self.cores == Cores::One {
            complain!("note: {} is not Sync, so its schedules run on one core", self.name);
        }
    }
}

/// Says, in the first of the processes that a launcher started, that each of them simulates a whole job: that is hardly
/// what was meant.
fn say_if_launched() {
    if let Ok(Some(Placement { rank: 0, n_pes, .. })) = onesided_nvshmem::placement()
        && n_pes > 1
    {
        complain!(
            "note: a launcher started {n_pes} processes, and each simulates all PEs by itself; with --backend nvshmem each \
             is one PE"
        );
    }
}

fn wrote(file: Option<&Path>, what: &str) {
    if let Some(file) = file.filter(|file| !is_standard(file)) {
        say!("Wrote {what} to {}.", file.display());
    }
}

/// Says which files there are not, where no run was complete that they could show.
fn note_unwritten_files(plan: &Plan, end: &End) {
    let why = match end {
        End::Interrupted => "you ended the first schedule before its end",
        End::Bounded => "time was over within the first schedule",
        _ => "there is no run that it could show",
    };
    for (option, file) in plan.output.of_a_run() {
        complain!("note: {} is not written ({option}): {why}", file.display());
    }
}

/// Prints and writes what is asked for of the recorded run.
fn record(
    facts: &Facts,
    plan: &Plan,
    explained: Option<&Explained>,
    run: &Run<String>,
    files: [Option<Output>; 3],
) -> std::result::Result<(), String> {
    let [trace, to_show, report] = files;
    if plan.events {
        say!(
            "\n{}",
            onesided_show::events(&events_of(run.trace.as_deref().unwrap_or_default()), terminal()).trim_end()
        );
    }
    if let Some(trace) = trace {
        trace.finish(|out| json::write_trace(out, facts, run))?;
        wrote(plan.output.trace.as_deref(), "what happened");
    }
    if to_show.is_none() && report.is_none() {
        return Ok(());
    }
    let finding = finding::finding(facts, plan, explained, run);
    if let Some(file) = to_show {
        file.finish(|out| finding.write(out))?;
        wrote(plan.output.finding.as_deref(), "all that is known of the run");
    }
    if let Some(report) = report {
        report.finish(|out| out.write_all(onesided_show::html(&finding).as_bytes()))?;
        wrote(plan.output.report.as_deref(), "a picture of the run");
    }
    Ok(())
}

/// Runs the plan on the simulator and writes the files.
fn follow(
    facts: &Facts,
    (main, precondition): (Main<'_>, Precondition<'_>),
    plan: &Plan,
) -> std::result::Result<ExitCode, String> {
    // Before the long run, so that no result is lost to a wrong path.
    let [trace, summary, finding, report] = plan.output.prepare()?;

    let done = run::run(main, plan, None);
    report::print(facts, precondition, plan, &done);
    // The small file first: a second signal ends the process within a long one.
    if let Some(summary) = summary {
        summary.finish(|out| writeln!(out, "{:#}", json::summary(facts, plan, &done)))?;
        wrote(plan.output.json.as_deref(), "a summary");
    }
    match done.recorded.as_ref().filter(|_| plan.needs_a_record()) {
        Some(run) => record(facts, plan, done.explained.as_ref(), run, [trace, finding, report])?,
        None => note_unwritten_files(plan, &done.end),
    }
    match done.end {
        End::Fine | End::Finding if done.cut => Ok(interrupt::status()),
        End::Fine => Ok(ExitCode::SUCCESS),
        End::Finding => Ok(ExitCode::from(1)),
        End::GivenUp | End::Bounded => Ok(ExitCode::from(NOT_COMPLETE)),
        End::Interrupted => Ok(interrupt::status()),
        End::Error(why) => Err(why),
    }
}
