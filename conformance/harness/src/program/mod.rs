//! Runs any program on any backend, with the command line that all programs share.
//!
//! | file | what it holds |
//! |---|---|
//! | `options.rs` | the command line |
//! | `plan.rs` | what the options ask for on the simulator, or why that is impossible |
//! | `run.rs` | runs the plan, up to the first finding |
//! | `results.rs` | whether the PEs returned the same on every schedule |
//! | `report.rs` | what a person reads |
//! | `json.rs` | what `--trace` and `--json` write |
//! | `gpus.rs` | on GPUs: what the options ask for, and the process that starts the PEs |
//! | `gpus_report.rs` | what a person reads of that, and its `--json` |
//! | `pe.rs` | on GPUs: the process that is a PE |

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use onesided::{Backend, Pe, Result};
use onesided_nvshmem::Placement;

use crate::say;
use crate::tool::command::{self, failed, refused};
use crate::tool::interrupt;
use crate::tool::output::Output;

mod gpus;
mod gpus_report;
mod json;
mod options;
mod pe;
mod plan;
mod report;
mod results;
mod run;

use plan::Plan;
use run::End;
pub(crate) use run::is_operating;

/// A program that every PE runs: the unit of the harness.
///
/// Each program checks its own result: a wrong one is an `Err` (see [`onesided::expect_eq`]). What it returns is
/// printed, one PE after the other, for the first schedule.
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

    /// The program, run by every PE. Returns a few readable lines, or nothing on PEs that have nothing to say.
    ///
    /// # Errors
    /// The first call that failed, or the program's own check.
    fn run<B: Backend>(pe: &Pe<B>) -> Result<String>;
}

/// What is known of a program besides its code: the constants of [`Program`].
#[derive(Clone, Copy, Debug)]
struct Facts {
    name: &'static str,
    about: &'static str,
    checks: &'static str,
    pes: usize,
    min_pes: usize,
}

/// The `main` of a program: reads the command line, runs, reports.
///
/// The exit status is 0 when nothing wrong was found, 1 after a finding, 2 after wrong usage or an operating error, and
/// 130 when Ctrl-C ended it before it had found anything.
///
/// On GPUs, the process starts itself again for each PE; a process that was started as a PE, by `onesided launch`,
/// `mpirun`, `srun` or `torchrun`, is that PE.
pub fn main<P: Program>() -> ExitCode {
    let facts = Facts { name: P::NAME, about: P::ABOUT, checks: P::CHECKS, pes: P::PES, min_pes: P::MIN_PES };
    let asked = match plan(&facts, std::env::args_os()) {
        Ok(asked) => asked,
        Err(error) => return refused(&error),
    };
    let done = match &asked {
        Asked::Sim(plan) => {
            interrupt::watch();
            say_if_launched();
            follow::<P>(&facts, plan)
        }
        Asked::Gpus(plan) => gpus::run::<P>(&facts, plan),
    };
    done.unwrap_or_else(failed)
}

/// What the command line asks for.
#[derive(Debug)]
enum Asked {
    Sim(Box<Plan>),
    Gpus(gpus::Plan),
}

fn plan(facts: &Facts, arguments: impl IntoIterator<Item = OsString>) -> std::result::Result<Asked, clap::Error> {
    let mut command = options::command(facts);
    let options = options::parse(&mut command, arguments)?;
    let asked = match options.machine.backend {
        command::Backend::Sim => Plan::new(facts, options).map(|plan| Asked::Sim(Box::new(plan))),
        command::Backend::Nvshmem => gpus::Plan::new(facts, options).map(Asked::Gpus),
    };
    asked.map_err(|why| command.error(clap::error::ErrorKind::ValueValidation, why))
}

/// Says, in the first of the processes that a launcher started, that each of them simulates a whole job: that is hardly
/// what was meant.
fn say_if_launched() {
    if let Ok(Some(Placement { rank: 0, n_pes, .. })) = onesided_nvshmem::placement()
        && n_pes > 1
    {
        eprintln!(
            "note: a launcher started {n_pes} processes, and each simulates all PEs by itself; with --backend nvshmem each \
             is one PE"
        );
    }
}

fn wrote(file: Option<&Path>, what: &str) {
    if let Some(file) = file {
        say!("Wrote {what} to {}.", file.display());
    }
}

/// Runs the plan on the simulator and writes the files.
fn follow<P: Program>(facts: &Facts, plan: &Plan) -> std::result::Result<ExitCode, String> {
    // Before the long run, so that no result is lost to a wrong path.
    let trace = plan.trace.as_deref().map(Output::prepare).transpose()?;
    let summary = plan.json.as_deref().map(Output::prepare).transpose()?;

    let done = run::run::<P>(plan);
    report::print(facts, plan, &done);
    if let (Some(trace), Some(run)) = (trace, &done.recorded) {
        trace.finish(|out| json::write_trace(out, facts, run))?;
        wrote(plan.trace.as_deref(), "what happened");
    }
    if let Some(summary) = summary {
        summary.finish(|out| json::write_summary(out, facts, plan, &done))?;
        wrote(plan.json.as_deref(), "a summary");
    }
    match done.end {
        End::Fine => Ok(ExitCode::SUCCESS),
        End::Finding => Ok(ExitCode::from(1)),
        End::GivenUp => Ok(ExitCode::from(3)),
        End::Interrupted => Ok(interrupt::status()),
        End::Error(why) => Err(why),
    }
}
