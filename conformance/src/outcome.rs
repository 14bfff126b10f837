//! Outcomes: what all PEs saw in one run, as one line of text, and sets of them.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::ops::ControlFlow;

use onesided::Result;
use onesided_harness::tool::interrupt;
use onesided_sim::{Config, Explore, Profile, Race, Races, Run, Schedule, Sim, Simulation, VerdictKind};

use crate::case::{Case, Seen};

/// The most schedules of a case that an exhaustive search begins. No case has as many.
pub const LIMIT: u64 = 2_000_000;

/// Steps after which a run of a case is given up: the longest take a few hundred.
const MAX_STEPS: u64 = 100_000;

/// What a case did on the schedules visited.
#[derive(Clone, Debug)]
pub struct Visited {
    /// Each outcome with what is known about it.
    pub outcomes: BTreeMap<String, Sighting>,
    /// Schedules visited.
    pub schedules: u64,
    /// Whether these are all there are, up to equivalence.
    pub complete: bool,
    /// A race, and a schedule on which it was seen, if there was one.
    pub race: Option<(Race, Schedule)>,
}

/// One outcome's part of the schedules visited.
#[derive(Clone, Debug)]
pub struct Sighting {
    /// Schedules that led to it.
    pub schedules: u64,
    /// The first of them, to be replayed.
    pub example: Schedule,
}

/// The cluster that a case runs on.
pub fn cluster<B: onesided::Backend>(case: &Case<B>, profile: Profile) -> Config {
    let Case { pes, nodes, gpus, .. } = *case;
    Config { pes, nodes, gpus, profile, races: Races::Note, max_steps: Some(MAX_STEPS), ..Config::default() }
}

/// Runs a case on the simulator and collects its outcomes. Every example is replayed, and must end as it did.
///
/// # Errors
/// When the case cannot be run at all, or is not deterministic: see [`Simulation::explore`].
pub fn visit(case: &Case<Sim>, profile: Profile, how: Explore) -> Result<Visited> {
    visit_on(cluster(case, profile), case, how)
}

/// The same on another cluster than the usual one.
///
/// # Errors
/// As [`visit`].
pub fn visit_on(cluster: Config, case: &Case<Sim>, how: Explore) -> Result<Visited> {
    let mut simulation = Simulation::new(cluster)?;
    simulation.stop_when(interrupt::flag());
    let mut tallies: BTreeMap<String, (u64, Run<Seen>)> = BTreeMap::new();
    let mut text = String::new();
    let mut race = None;
    let explored = simulation.explore(how, case.body, |run| {
        write_outcome(&mut text, run);
        if let (None, Some(first)) = (&race, run.verdict.races.first()) {
            race = Some((first.clone(), run.schedule.clone()));
        }
        match tallies.get_mut(&text) {
            Some((count, _)) => *count += 1,
            None => drop(tallies.insert(text.clone(), (1, run.without_results()))),
        }
        ControlFlow::Continue(())
    })?;

    let mut outcomes = BTreeMap::new();
    for (outcome, (schedules, run)) in tallies {
        let again = simulation.reproduce(&run, case.body)?;
        write_outcome(&mut text, &again);
        onesided::expect_eq(&text, &outcome, "the outcome of the same schedule, replayed,")?;
        outcomes.insert(outcome, Sighting { schedules, example: again.schedule });
    }
    Ok(Visited { outcomes, schedules: explored.schedules, complete: explored.complete, race })
}

/// Runs a case once, in order and recorded.
///
/// # Errors
/// As [`visit`].
pub fn in_order(case: &Case<Sim>, profile: Profile) -> Result<Run<Seen>> {
    let mut simulation = Simulation::new(cluster(case, profile))?;
    let run = simulation.run(case.body)?;
    simulation.reproduce(&run, case.body)
}

/// The outcome of a run: what the PEs recorded, `0: x=1 | 1: y=2`; `finished` if they recorded nothing; else the
/// verdict in a few words.
pub fn outcome(run: &Run<Seen>) -> String {
    let mut text = String::new();
    write_outcome(&mut text, run);
    text
}

fn write_outcome(text: &mut String, run: &Run<Seen>) {
    text.clear();
    if !matches!(run.verdict.kind, VerdictKind::Finished) {
        text.push_str(&run.verdict.kind.outcome());
        return;
    }
    let recorded = run.results.iter().enumerate().filter_map(|(pe, seen)| Some((pe, seen.as_ref()?.as_str())));
    write_seen(text, recorded);
}

/// The outcome of a run that finished, from what each PE recorded: the same text on every backend.
pub fn combine<'a>(seen: impl IntoIterator<Item = &'a str>) -> String {
    let mut text = String::new();
    write_seen(&mut text, seen.into_iter().enumerate());
    text
}

fn write_seen<'a>(text: &mut String, recorded: impl Iterator<Item = (usize, &'a str)>) {
    for (pe, seen) in recorded.filter(|(_, seen)| !seen.is_empty()) {
        let bar = if text.is_empty() { "" } else { " | " };
        let _ = write!(text, "{bar}{pe}: {seen}"); // writing to a String cannot fail
    }
    if text.is_empty() {
        text.push_str("finished");
    }
}
