//! `onesided suite`: checks cases against their outcome files.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Instant;

use onesided_sim::{Profile, Sim};
use serde_json::{Value, json};

use super::{Backend, failed, list, promote};
use crate::case::Case;
use crate::check::{Checked, Settings, Status, check};
use crate::expected::Folder;
use crate::known::{self, Known};
use crate::tool::output::Output;
use crate::tool::progress::Progress;
use crate::tool::say::say;
use crate::tool::{interrupt, quiet};

/// What `onesided suite` takes.
#[derive(Debug, clap::Args)]
pub(super) struct Options {
    /// Chapters, cases, or parts of case names; all cases if left out
    patterns: Vec<String>,
    /// Where the cases run
    #[arg(long, value_enum, default_value_t = Backend::Sim)]
    backend: Backend,
    /// What the simulated transport guarantees: spec (nothing beyond the text) or nvlink
    ///
    /// Under nvlink, a fence completes, a blocking put has arrived when it returns, and transfers to one PE keep their
    /// order. What a case does then must be a part of what the text allows.
    #[arg(long, default_value_t = Profile::Spec)]
    profile: Profile,
    /// Visit N random schedules of each case: a quick look, which sees part of the outcomes
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    schedules: Option<u64>,
    /// Where random schedules start
    #[arg(long, value_name = "S", default_value_t = 0)]
    seed: u64,
    /// Write the result of each case to FILE
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Where the outcome files are, if not in the sources of this command
    #[arg(long, value_name = "DIR")]
    expected: Option<PathBuf>,
    /// Write the outcome files from all schedules, to be reviewed; cases with too many schedules are left alone
    #[arg(long, conflicts_with_all = ["schedules", "json", "seed"])]
    promote: bool,
    /// Fail unless the cases run on GPUs
    #[arg(long)]
    require_hardware: bool,
}

pub(super) fn run(options: &Options) -> ExitCode {
    interrupt::watch();
    try_run(options).unwrap_or_else(failed)
}

fn try_run(options: &Options) -> Result<ExitCode, String> {
    options.backend.check()?;
    if options.require_hardware {
        return Err("hardware is required (--require-hardware), and the simulator is none".to_string());
    }
    let cases = list::chosen(&options.patterns)?;
    let expected = Folder::new(options.expected.as_deref());
    if options.promote {
        if options.profile != Profile::Spec {
            return Err(format!("outcome files belong to the profile spec, not {}", options.profile));
        }
        return promote::run(&cases, &expected);
    }
    let known = known::of("sim", &crate::suite::cases::<Sim>())?;
    let json = options.json.as_deref().map(Output::prepare).transpose()?;
    let settings = Settings { profile: options.profile, schedules: options.schedules, seed: options.seed, expected };

    let start = Instant::now();
    let mut results = quiet::panics(|| check_all(&cases, &settings, &known));
    results.sort_by_key(|(index, _)| *index);
    let results: Vec<Checked> = results.into_iter().map(|(_, checked)| checked).collect();
    let counts = [Status::Passed, Status::Failed, Status::NotRun]
        .map(|status| results.iter().filter(|checked| checked.status == status).count());
    summary(&results, &settings, start, counts);
    if let Some(json) = json {
        json.finish(|out| writeln!(out, "{:#}", to_json(&results, &settings)))?;
    }
    match counts {
        _ if interrupt::is_wanted() => Ok(interrupt::status()),
        [0, 0, _] => Err("no case ran".to_string()),
        [_, 0, _] => Ok(ExitCode::SUCCESS),
        _ => Ok(ExitCode::from(1)),
    }
}

/// Checks all cases, on as many threads as the machine has. Prints each as soon as it is done, and returns them with
/// their places.
fn check_all(cases: &[Case<Sim>], settings: &Settings, known: &[Known]) -> Vec<(usize, Checked)> {
    let progress = Progress::new(Some(cases.len() as u64), "cases");
    let width = cases.iter().map(|case| case.name.len()).max().unwrap_or(0);
    let next = AtomicUsize::new(0);
    let (send, results) = mpsc::channel();
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from).min(cases.len()) {
            let (send, next) = (send.clone(), &next);
            scope.spawn(move || {
                while let Some((index, case)) = cases.iter().enumerate().nth(next.fetch_add(1, Ordering::Relaxed)) {
                    let known = known.iter().find(|known| known.case == case.name);
                    let _ = send.send((index, with_known(check(case, settings), known)));
                }
            });
        }
        drop(send);
        results
            .into_iter()
            .inspect(|(_, checked)| {
                progress.step();
                if checked.status != Status::NotRun {
                    progress.println(&line(checked, width));
                }
            })
            .collect()
    })
}

/// A known deviation passes where it deviates, and fails where it no longer does.
fn with_known(checked: Checked, known: Option<&Known>) -> Checked {
    match (known, checked.status) {
        (Some(known), Status::Failed) => {
            Checked { status: Status::Passed, why: format!("known deviation: {}", known.reason), ..checked }
        }
        (Some(_), Status::Passed) => {
            let why = "agrees, and stands in known.txt as a deviation: remove its line".to_string();
            Checked { status: Status::Failed, why, ..checked }
        }
        _ => checked,
    }
}

fn line(checked: &Checked, width: usize) -> String {
    let Checked { name, status, schedules, outcomes, why, .. } = checked;
    let status = if *status == Status::Failed { "FAILED" } else { status.name() };
    let numbers = format!("{} of {}", count(outcomes.len() as u64, "outcome"), count(*schedules, "schedule"));
    let why = why.split("; ").filter(|part| !part.is_empty()).map(|part| format!("\n        {part}"));
    format!("{status}  {name:<width$}  {numbers}{}", why.collect::<String>())
}

fn count(number: u64, thing: &str) -> String {
    format!("{number} {thing}{}", if number == 1 { "" } else { "s" })
}

/// Repeats what failed, at the end where it is seen. The last line is for machines.
fn summary(results: &[Checked], settings: &Settings, start: Instant, [passed, failed, not_run]: [usize; 3]) {
    let schedules: u64 = results.iter().map(|checked| checked.schedules).sum();
    say!("");
    for checked in results.iter().filter(|checked| checked.status == Status::Failed) {
        say!("FAILED  {}", checked.name);
    }
    let seconds = start.elapsed().as_secs_f64();
    say!("{} on sim, profile {}, {seconds:.1} s", count(schedules, "schedule"), settings.profile);
    if not_run > 0 {
        say!("{not_run} not run");
    }
    say!("{passed} passed, {failed} failed");
}

fn to_json(results: &[Checked], settings: &Settings) -> Value {
    let cases = results.iter().map(|checked| {
        let Checked { name, pes, status, schedules, outcomes, why } = checked;
        json!({
            "name": name, "pes": pes, "status": status.name(), "schedules": schedules, "outcomes": outcomes, "why": why,
        })
    });
    json!({
        "schema": "onesided-suite/1",
        "backend": "sim",
        "library": format!("onesided-sim {}", onesided::VERSION),
        "profile": settings.profile.name(),
        "seed": settings.seed,
        "cases": cases.collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(status: Status) -> Checked {
        let why = if status == Status::Failed { "seen, not in the file: deadlock" } else { "" };
        let outcomes = [("deadlock".to_string(), 1)].into();
        Checked { name: "a/b".into(), pes: 2, status, schedules: 1, outcomes, why: why.into() }
    }

    #[test]
    fn a_known_deviation_must_still_deviate() {
        let known = Known { backend: "sim".into(), case: "a/b".into(), reason: "for a reason".into() };
        let deviates = with_known(checked(Status::Failed), Some(&known));
        assert_eq!((deviates.status, deviates.why.as_str()), (Status::Passed, "known deviation: for a reason"));
        let agrees = with_known(checked(Status::Passed), Some(&known));
        assert!(agrees.status == Status::Failed && agrees.why.contains("remove its line"), "{}", agrees.why);
        assert_eq!(with_known(checked(Status::Failed), None).status, Status::Failed);
    }

    #[test]
    fn a_failure_is_shown_below_its_case() {
        let expected = "FAILED  a/b    1 outcome of 1 schedule\n        seen, not in the file: deadlock";
        assert_eq!(line(&checked(Status::Failed), 5), expected);
    }
}
