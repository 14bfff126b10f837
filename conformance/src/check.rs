//! Checks one case on the simulator: visits its schedules and compares the outcomes with its file.

use std::collections::{BTreeMap, BTreeSet};
use std::env;

use onesided::{Backend, count};
use onesided_harness::tool::interrupt;
use onesided_harness::tool::invocation::invocation;
use onesided_sim::{Explore, Profile, Sim};

use crate::case::Case;
use crate::expected::{Difference, Folder, Relation};
use crate::known::Known;
use crate::outcome::{self, LIMIT, Visited};

/// How cases are checked.
#[derive(Clone, Debug)]
pub struct Settings {
    /// What the simulated transport guarantees.
    pub profile: Profile,
    /// The number of random schedules of each case; `None` for all schedules.
    pub schedules: Option<u64>,
    /// Where random schedules start.
    pub seed: u64,
    /// The outcome files.
    pub expected: Folder,
}

impl Default for Settings {
    /// All schedules under `spec`.
    fn default() -> Settings {
        Settings { profile: Profile::Spec, schedules: None, seed: 0, expected: Folder::new(None) }
    }
}

/// The result of a case.
#[derive(Clone, Debug)]
pub struct Checked {
    /// `chapter/name`.
    pub name: String,
    /// PEs that it ran on.
    pub pes: usize,
    /// Whether it agreed with its file.
    pub status: Status,
    /// Schedules visited; on GPUs, runs.
    pub visits: u64,
    /// Whether these are all schedules that there are, up to equivalence. Never on GPUs.
    pub complete: bool,
    /// Each outcome, with the number of schedules or runs that led to it.
    pub outcomes: BTreeMap<String, u64>,
    /// Why it failed or did not run. Empty where it passed, except for a known deviation.
    pub why: String,
}

/// Whether a case agreed with its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "a case ran and agreed, ran and did not, or did not run")]
pub enum Status {
    /// It agreed.
    Passed,
    /// It did not agree, or could not be run to its end.
    Failed,
    /// It was not run.
    NotRun,
}

impl Status {
    /// The status in reports.
    pub fn name(self) -> &'static str {
        match self {
            Status::Passed => "passed",
            Status::Failed => "failed",
            Status::NotRun => "not run",
        }
    }
}

/// Checks a case.
pub fn check(case: &Case<Sim>, settings: &Settings) -> Checked {
    if interrupt::is_wanted() {
        return Checked::ended(case, Status::NotRun, "interrupted");
    }
    let expected = match settings.expected.read(&case.name, settings.profile) {
        Ok(expected) => expected,
        Err(why) => return Checked::ended(case, Status::Failed, &why),
    };
    let how = match settings.schedules {
        Some(schedules) => Explore::random(schedules, settings.seed),
        None => Explore::All { limit: LIMIT },
    };
    let visited = match outcome::visit(case, settings.profile, how) {
        Ok(visited) => visited,
        Err(why) => return Checked::ended(case, Status::Failed, &why.to_string()),
    };
    if interrupt::is_wanted() {
        return Checked::ended(case, Status::NotRun, "interrupted");
    }

    let all = matches!(how, Explore::All { .. });
    let relation = if all { Relation::Equal } else { Relation::Subset };
    let difference = Difference::new(visited.outcomes.keys(), &expected, relation);
    let why = if all && !visited.complete {
        format!("not complete after {}: the case is too large", count(visited.schedules, "schedule"))
    } else {
        let lints = if all { lints_differ(case, settings.profile) } else { String::new() };
        let wrong = [explain(case, &difference, &visited), mislabelled(case, settings.profile, all, &visited), lints];
        wrong.into_iter().filter(|why| !why.is_empty()).collect::<Vec<_>>().join("; ")
    };
    Checked {
        name: case.name.clone(),
        pes: case.pes,
        status: if why.is_empty() { Status::Passed } else { Status::Failed },
        visits: visited.schedules,
        complete: visited.complete,
        outcomes: visited.outcomes.into_iter().map(|(outcome, sighting)| (outcome, sighting.schedules)).collect(),
        why,
    }
}

impl Checked {
    /// A case that did not come to a comparison.
    pub(crate) fn ended<B: Backend>(case: &Case<B>, status: Status, why: &str) -> Checked {
        Checked {
            name: case.name.clone(),
            pes: case.pes,
            status,
            visits: 0,
            complete: false,
            outcomes: BTreeMap::new(),
            why: why.to_string(),
        }
    }

    /// A known deviation passes where it deviates, and fails where it no longer does.
    pub(crate) fn with_known(self, known: &[Known]) -> Checked {
        match (known.iter().find(|known| known.case == self.name), self.status) {
            (Some(known), Status::Failed) => {
                Checked { status: Status::Passed, why: format!("known deviation: {}", known.reason), ..self }
            }
            (Some(_), Status::Passed) => {
                let why = "agrees, and stands in known.txt as a deviation: remove its line".to_string();
                Checked { status: Status::Failed, why, ..self }
            }
            _ => self,
        }
    }

    /// The case as a line for people, with a number of `things` visited. What is wrong follows, one reason a line.
    pub(crate) fn line(&self, width: usize, things: &str) -> String {
        let Checked { name, status, visits, outcomes, why, .. } = self;
        let status = if *status == Status::Failed { "FAILED" } else { status.name() };
        let numbers = format!("{} of {}", count(outcomes.len(), "outcome"), count(*visits, things));
        let why = why.split("; ").filter(|part| !part.is_empty()).map(|part| format!("\n        {part}"));
        format!("{status}  {name:<width$}  {numbers}{}", why.collect::<String>())
    }
}

/// The difference, with the command that shows the first unexpected outcome.
fn explain(case: &Case<Sim>, difference: &Difference, visited: &Visited) -> String {
    let mut why = difference.to_string();
    if let Some(sighting) = difference.unexpected.first().and_then(|outcome| visited.outcomes.get(outcome)) {
        why += &format!("; {}", replay_command(&case.name, &sighting.example.to_string()));
    }
    why
}

/// Compares the race of a case with its label: an unlabelled race, or a label without a race. Empty if they agree. Under a
/// profile that promises more than `spec`, a racy case may have no race.
fn mislabelled(case: &Case<Sim>, profile: Profile, all: bool, visited: &Visited) -> String {
    let mixed = !profile.promises().one_fabric;
    let must_race = profile == Profile::Spec && case.racy || mixed && (case.racy || case.racy_when_mixed);
    match &visited.race {
        Some((race, schedule)) if !(case.racy || mixed && case.racy_when_mixed) => {
            let race = race.to_string().replace("; ", ", ").replace('\n', " ");
            format!("{race}; {}", replay_command(&case.name, &schedule.to_string()))
        }
        None if must_race && all => "is listed as racy, and no schedule has a race: remove the word".to_string(),
        _ => String::new(),
    }
}

/// Compares the lints of a case that is about lints with its label. Empty if they agree.
fn lints_differ(case: &Case<Sim>, profile: Profile) -> String {
    let Some(labelled) = case.lints.filter(|_| profile == Profile::Spec) else { return String::new() };
    match outcome::in_order(case, profile) {
        Err(why) => why.to_string(),
        Ok(run) => {
            let found: BTreeSet<&str> = run.verdict.lints.iter().map(|lint| lint.kind.name()).collect();
            let labelled: BTreeSet<&str> = labelled.iter().copied().collect();
            if found == labelled {
                return String::new();
            }
            let names = |kinds: BTreeSet<&str>| kinds.into_iter().collect::<Vec<_>>().join(", ");
            let (found, labelled) = (names(found), names(labelled));
            format!("its lints are [{found}], and it is listed with [{labelled}]")
        }
    }
}

/// The command that replays a schedule of a case: this program, unless it is another one that checks cases (a test).
pub(crate) fn replay_command(case: &str, schedule: &str) -> String {
    let is_this = env::current_exe().is_ok_and(|file| file.file_stem().is_some_and(|name| name == "onesided"));
    let onesided = if is_this { invocation() } else { "cargo run --release --bin onesided --".to_string() };
    format!("{onesided} litmus {case} --replay {schedule}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(status: Status) -> Checked {
        let why = if status == Status::Failed { "seen, not in the file: deadlock" } else { "" };
        let outcomes = [("deadlock".to_string(), 1)].into();
        Checked { name: "a/b".into(), pes: 2, status, visits: 1, complete: true, outcomes, why: why.into() }
    }

    #[test]
    fn a_known_deviation_must_still_deviate() {
        let known = [Known { backend: "sim".into(), case: "a/b".into(), reason: "for a reason".into() }];
        let deviates = checked(Status::Failed).with_known(&known);
        assert_eq!((deviates.status, deviates.why.as_str()), (Status::Passed, "known deviation: for a reason"));
        let agrees = checked(Status::Passed).with_known(&known);
        assert!(agrees.status == Status::Failed && agrees.why.contains("remove its line"), "{}", agrees.why);
        assert_eq!(checked(Status::Failed).with_known(&[]).status, Status::Failed);
    }

    #[test]
    fn a_failure_is_shown_below_its_case() {
        let expected = "FAILED  a/b    1 outcome of 1 schedule\n        seen, not in the file: deadlock";
        assert_eq!(checked(Status::Failed).line(5, "schedule"), expected);
    }
}
