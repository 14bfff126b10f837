//! `onesided suite` on the simulator: all schedules of each case, or as many as the user asks for.

use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Instant;

use onesided_harness::say;
use onesided_harness::tool::count;
use onesided_harness::tool::output::Output;
use onesided_harness::tool::progress::Progress;
use onesided_sim::Sim;
use serde_json::{Value, json};

use super::{Options, counts, status};
use crate::case::Case;
use crate::check::{Checked, Settings, Status, check};
use crate::command::{list, promote};
use crate::expected::Folder;
use crate::known::{self, Known};

/// Checks the cases that the user chose, or writes their files.
pub(super) fn run(options: &Options) -> Result<ExitCode, String> {
    let cases = list::chosen(&options.patterns)?;
    let expected = Folder::new(options.expected.as_deref());
    if options.promote {
        return promote::run(&cases, &expected);
    }
    expected.check()?;
    let known = known::of("sim", &crate::suite::cases::<Sim>())?;
    let json = options.json.as_deref().map(Output::prepare).transpose()?;
    let settings = Settings { profile: options.profile, schedules: options.schedules, seed: options.seed, expected };

    let start = Instant::now();
    let mut results = check_all(&cases, &settings, &known);
    results.sort_by_key(|(index, _)| *index);
    let results: Vec<Checked> = results.into_iter().map(|(_, checked)| checked).collect();
    let counts = counts(results.iter());
    summary(&results, &settings, start, counts);
    if let Some(json) = json {
        json.finish(|out| writeln!(out, "{:#}", to_json(&results, &settings)))?;
    }
    status(counts)
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
                    let _ = send.send((index, check(case, settings).with_known(known)));
                }
            });
        }
        drop(send);
        results
            .into_iter()
            .inspect(|(_, checked)| {
                progress.step();
                if checked.status != Status::NotRun {
                    progress.println(&checked.line(width, "schedule"));
                }
            })
            .collect()
    })
}

/// Repeats what failed, at the end where it is seen. The last line is for machines.
fn summary(results: &[Checked], settings: &Settings, start: Instant, [passed, failed, not_run]: [usize; 3]) {
    let schedules: u64 = results.iter().map(|checked| checked.visits).sum();
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
        let Checked { name, pes, status, visits, complete, outcomes, why } = checked;
        json!({
            "name": name, "pes": pes, "status": status.name(), "schedules": visits, "complete": complete,
            "outcomes": outcomes, "why": why,
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
