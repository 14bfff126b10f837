//! `onesided suite` on the simulator: all schedules of each case under each profile, or as many as the user asks for.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Instant;

use onesided::count;
use onesided_harness::say;
use onesided_harness::tool::output::Output;
use onesided_harness::tool::profiles::Profiles;
use onesided_harness::tool::progress::{Progress, Things};
use onesided_sim::{Profile, Sim};
use serde_json::{Value, json};

use super::{Options, status};
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
    let settings =
        Settings { profile: Profile::Spec, schedules: options.schedules, seed: options.seed.unwrap_or(0), expected };

    let start = Instant::now();
    let jobs = options.jobs.unwrap_or_else(|| thread::available_parallelism().map_or(1, usize::from));
    let results = check_all(&cases, (options.profile, jobs), &settings, &known);
    let counts = [Status::Passed, Status::Failed, Status::NotRun]
        .map(|status| results.iter().filter(|ran| ran.status() == status).count());
    summary(&results, options.profile, start, counts);
    if let Some(json) = json {
        json.finish(|out| writeln!(out, "{:#}", to_json(&results, options.profile, &settings)))?;
    }
    status(counts)
}

/// A case, under each profile that was asked for.
struct Ran(Vec<(Profile, Checked)>);

impl Ran {
    fn name(&self) -> &str {
        &self.0[0].1.name
    }

    /// It has failed if it has under some profile, and passed if it has under each.
    fn status(&self) -> Status {
        let has = |status| self.0.iter().any(|(_, checked)| checked.status == status);
        [Status::Failed, Status::NotRun].into_iter().find(|status| has(*status)).unwrap_or(Status::Passed)
    }

    /// The case as a line for people. What is wrong follows, one reason a line.
    fn line(&self, width: usize) -> String {
        if let [(_, only)] = &self.0[..] {
            return only.line(width, "schedule");
        }
        let status = if self.status() == Status::Failed { "FAILED" } else { self.status().name() };
        let mut numbers: Vec<(usize, Vec<&str>)> = Vec::new();
        for (profile, checked) in &self.0 {
            let outcomes = checked.outcomes.len();
            match numbers.iter_mut().find(|(number, _)| *number == outcomes) {
                Some((_, names)) => names.push(profile.name()),
                None => numbers.push((outcomes, vec![profile.name()])),
            }
        }
        let numbers = match &numbers[..] {
            [(outcomes, _)] => count(*outcomes as u64, "outcome"),
            several => {
                let under = |(outcomes, names): &(usize, Vec<&str>)| format!("{outcomes} under {}", names.join(", "));
                format!("outcomes: {}", several.iter().map(under).collect::<Vec<_>>().join("; "))
            }
        };
        let why = self.0.iter().flat_map(|(profile, checked)| {
            let parts = checked.why.split("; ").filter(|part| !part.is_empty());
            parts.map(move |part| format!("\n        under {profile}: {part}"))
        });
        format!("{status}  {:<width$}  {numbers}{}", self.name(), why.collect::<String>())
    }
}

/// Checks all cases, so many at a time. Prints each as soon as it and all before it are done.
fn check_all(
    cases: &[Case<Sim>],
    (profiles, jobs): (Profiles, usize),
    settings: &Settings,
    known: &[Known],
) -> Vec<Ran> {
    let progress = Progress::new(Some(cases.len() as u64), Things::new("case", "cases"));
    let width = cases.iter().map(|case| case.name.len()).max().unwrap_or(0);
    let next = AtomicUsize::new(0);
    let (send, done) = mpsc::channel();
    let check = |case, profile| check(case, &Settings { profile, ..settings.clone() }).with_known(known);
    let (mut results, mut early) = (Vec::new(), BTreeMap::new());
    thread::scope(|scope| {
        for _ in 0..jobs.min(cases.len()) {
            let (send, next) = (send.clone(), &next);
            scope.spawn(move || {
                while let Some((index, case)) = cases.iter().enumerate().nth(next.fetch_add(1, Ordering::Relaxed)) {
                    let under = profiles.each().into_iter().map(|profile| (profile, check(case, profile)));
                    let _ = send.send((index, Ran(under.collect())));
                }
            });
        }
        drop(send);
        for (index, ran) in done {
            progress.step();
            early.insert(index, ran);
            while let Some(ran) = early.remove(&results.len()) {
                if ran.status() != Status::NotRun {
                    progress.println(&ran.line(width));
                }
                results.push(ran);
            }
        }
    });
    results
}

/// Repeats what failed, at the end where it is seen. The last line is for machines.
fn summary(results: &[Ran], profiles: Profiles, start: Instant, [passed, failed, not_run]: [usize; 3]) {
    let schedules: u64 = results.iter().flat_map(|ran| &ran.0).map(|(_, checked)| checked.visits).sum();
    say!("");
    for ran in results.iter().filter(|ran| ran.status() == Status::Failed) {
        say!("FAILED  {}", ran.name());
    }
    let seconds = start.elapsed().as_secs_f64();
    let under = match profiles {
        Profiles::One(profile) => format!("profile {profile}"),
        Profiles::All => format!("{} profiles", profiles.each().len()),
    };
    say!("{} on sim, {under}, {seconds:.1} s", count(schedules, "schedule"));
    if not_run > 0 {
        say!("{not_run} not run");
    }
    say!("{passed} passed, {failed} failed");
}

fn to_json(results: &[Ran], profiles: Profiles, settings: &Settings) -> Value {
    let cases = results.iter().flat_map(|ran| &ran.0).map(|(profile, checked)| {
        let Checked { name, pes, status, visits, complete, outcomes, why } = checked;
        json!({
            "name": name, "profile": profile.name(), "pes": pes, "status": status.name(), "schedules": visits,
            "complete": complete, "outcomes": outcomes, "why": why,
        })
    });
    json!({
        "schema": "onesided-suite/1",
        "backend": "sim",
        "library": format!("onesided-sim {}", onesided::VERSION),
        "profile": profiles.to_string(),
        "seed": settings.schedules.map(|_| settings.seed), // nothing is drawn of all schedules
        "cases": cases.collect::<Vec<_>>(),
    })
}
