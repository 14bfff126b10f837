//! Checks one case on the simulator: visits its schedules and compares the outcomes with its file.

use std::collections::BTreeMap;

use onesided_sim::{Explore, Profile, Sim};

use crate::case::Case;
use crate::expected::{Difference, Folder, Relation};
use crate::outcome::{self, Visited};
use crate::tool::interrupt;

/// How cases are checked.
#[derive(Clone, Debug)]
pub struct Settings {
    /// What the simulated transport guarantees.
    pub profile: Profile,
    /// So many random schedules of each case, instead of those that it asks for.
    pub schedules: Option<u64>,
    /// Where random schedules start.
    pub seed: u64,
    /// The outcome files.
    pub expected: Folder,
}

impl Default for Settings {
    /// What cases ask for, under the profile of the outcome files.
    fn default() -> Settings {
        Settings { profile: Profile::Spec, schedules: None, seed: 0, expected: Folder::new(None) }
    }
}

/// What became of a case.
#[derive(Clone, Debug)]
pub struct Checked {
    /// `chapter/name`.
    pub name: String,
    /// PEs that it ran on.
    pub pes: usize,
    /// Whether it agreed with its file.
    pub status: Status,
    /// Schedules visited.
    pub schedules: u64,
    /// Each outcome, with the number of schedules that led to it.
    pub outcomes: BTreeMap<String, u64>,
    /// Why it failed or did not run. Empty where it passed, except for a known deviation.
    pub why: String,
}

/// Whether a case agreed with its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// It did.
    Passed,
    /// It did not, or could not be run to its end.
    Failed,
    /// It was left out.
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
        return ended(case, Status::NotRun, "interrupted");
    }
    let expected = match settings.expected.read(&case.name) {
        Ok(expected) => expected,
        Err(why) => return ended(case, Status::Failed, &why),
    };
    let how = match settings.schedules {
        Some(schedules) => Explore::Random { schedules, seed: settings.seed },
        None => outcome::registered(case.visit, settings.seed),
    };
    let visited = match outcome::visit(case, settings.profile, how) {
        Ok(visited) => visited,
        Err(why) => return ended(case, Status::Failed, &why.to_string()),
    };
    if interrupt::is_wanted() {
        return ended(case, Status::NotRun, "interrupted");
    }

    let all = matches!(how, Explore::All { .. });
    let relation = if all && settings.profile == Profile::Spec { Relation::Equal } else { Relation::Subset };
    let difference = Difference::new(&visited, &expected, relation);
    let why = if all && !visited.complete {
        format!("{} schedules were not all; such a case asks for random ones", visited.schedules)
    } else {
        explain(case, &difference, &visited)
    };
    Checked {
        name: case.name.clone(),
        pes: case.pes,
        status: if why.is_empty() { Status::Passed } else { Status::Failed },
        schedules: visited.schedules,
        outcomes: visited.outcomes.into_iter().map(|(outcome, sighting)| (outcome, sighting.schedules)).collect(),
        why,
    }
}

/// A case that did not come to a comparison.
fn ended(case: &Case<Sim>, status: Status, why: &str) -> Checked {
    Checked {
        name: case.name.clone(),
        pes: case.pes,
        status,
        schedules: 0,
        outcomes: BTreeMap::new(),
        why: why.to_string(),
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

/// The command that replays a schedule of a case.
pub(crate) fn replay_command(case: &str, schedule: &str) -> String {
    format!("cargo run --release --bin onesided -- litmus {case} --replay {schedule}")
}
