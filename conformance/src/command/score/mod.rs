//! `onesided score`: how well findings agree with labels, on the corpus of bugs or on somebody else's programs.
//!
//! | file | what it holds |
//! |---|---|
//! | `labels.rs` | what a tool should find: of the corpus, or from a file |
//! | `judge.rs` | one finding against its label |
//! | `programs.rs` | runs a program of the corpus, or a command |
//! | `report.rs` | what a person reads, and `--json` |

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Instant;

use onesided::count;
use onesided_harness::complain;
use onesided_harness::tool::command::failed;
use onesided_harness::tool::interrupt;
use onesided_harness::tool::number::whole;
use onesided_harness::tool::output::{Output, none_is_read};
use onesided_harness::tool::progress::{Progress, Things};

mod judge;
mod labels;
mod programs;
mod report;

use judge::{Judged, judge};
use labels::Label;
use programs::Runner;

/// What `onesided score` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = "Exit status: 0 every program is found for what it is, 1 one is not, 2 one could not be run.")]
pub(super) struct Options {
    /// Score the programs of this file of labels instead of the corpus. examples/src/bugs/README.md describes the format (onesided-labels/1);
    /// sources are looked for from the folder of FILE on
    #[arg(long, value_name = "FILE", requires = "command")]
    labels: Option<PathBuf>,
    /// Visit N schedules of each program of the corpus, the one in order included
    #[arg(long, value_name = "N", default_value_t = 200, conflicts_with = "labels", value_parser = whole::<u64>(1, u64::MAX))]
    schedules: u64,
    /// Give a command up after S seconds
    #[arg(long, value_name = "S", default_value_t = 60, value_parser = whole::<u64>(1, 1_000_000), requires = "command")]
    timeout: u64,
    /// Write each program's score to FILE; - is standard output
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// What runs a program: its name takes the place of {}, or comes last; --pes, --profile and --finding FILE come behind it, and --strict
    /// if its label is a lint
    #[arg(last = true, requires = "labels")]
    command: Vec<OsString>,
}

/// One run of a program under a profile, and what came of it.
#[derive(Debug)]
struct Scored<'a> {
    label: &'a Label,
    profile: &'a str,
    /// `Err`: it could not be run, and why.
    judged: Result<Judged, String>,
}

pub(super) fn run(options: &Options) -> ExitCode {
    interrupt::watch();
    score(options).unwrap_or_else(failed)
}

fn score(options: &Options) -> Result<ExitCode, String> {
    if let (Some(labels), Some(json)) = (&options.labels, &options.json) {
        none_is_read(labels, [("--json", json.as_path())])?;
    }
    let (labels, runner) = match &options.labels {
        Some(file) => (labels::read(file)?, Runner::command(&options.command, options.timeout)?),
        None => (labels::corpus(), Runner::corpus(options.schedules)),
    };
    let json = options.json.as_deref().map(Output::prepare).transpose()?;
    let start = Instant::now();
    let scored = run_all(&labels, &runner);
    report::print(&labels, &scored, start.elapsed());
    if let Some(json) = json {
        json.finish(|out| report::write(out, &labels, &scored))?;
        if scored.len() < report::runs(&labels) {
            complain!(
                "note: the JSON is not complete, and says so: it has {} of {}",
                scored.len(),
                count(report::runs(&labels), "run")
            );
        }
    }
    let broken = scored.iter().filter(|scored| scored.judged.is_err()).count();
    match report::is_perfect(&scored) {
        _ if interrupt::is_wanted() => Ok(interrupt::status()),
        _ if broken > 0 => Err(format!("{broken} of {} could not be run", count(scored.len(), "program"))),
        true => Ok(ExitCode::SUCCESS),
        false => Ok(ExitCode::from(1)),
    }
}

/// Runs every program under every profile of its label, on as many threads as the machine has, until Ctrl-C.
fn run_all<'a>(labels: &'a [Label], runner: &Runner) -> Vec<Scored<'a>> {
    let runs: Vec<(&Label, &str)> =
        labels.iter().flat_map(|label| label.profiles.iter().map(move |profile| (label, profile.as_str()))).collect();
    let progress = Progress::new(Some(runs.len() as u64), Things::new("program", "programs"));
    let next = AtomicUsize::new(0);
    let (send, results) = mpsc::channel();
    let mut scored: Vec<(usize, Scored<'_>)> = thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from).min(runs.len()) {
            let (send, next, runs) = (send.clone(), &next, &runs);
            scope.spawn(move || {
                while let Some((index, &(label, profile))) =
                    runs.iter().enumerate().nth(next.fetch_add(1, Ordering::Relaxed))
                    && !interrupt::is_wanted()
                {
                    let judged = runner.run(label, profile).map(|finding| judge(label, finding.as_ref()));
                    if interrupt::is_wanted() {
                        return; // it may have been stopped before anything was found
                    }
                    let _ = send.send((index, Scored { label, profile, judged }));
                }
            });
        }
        drop(send);
        results.into_iter().inspect(|_| progress.step()).collect()
    });
    scored.sort_by_key(|(index, _)| *index);
    scored.into_iter().map(|(_, scored)| scored).collect()
}
