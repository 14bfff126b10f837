//! Every finding of the corpus has a simplest run, and what a label says repairs it.

use std::ops::ControlFlow;

use onesided::{Pe, Result};
use onesided_bugs::{Bug, Class, simulated};
use onesided_sim::{Config, Effort, Explore, Profile, Races, Run, Sim, Simulation};

/// Exceptions that are enough for every bug.
const FEW: usize = 4;

/// Each bug that the run in order does not have, with its cluster and a run that has it.
fn found_at_random(races: Races) -> Vec<(Bug<Sim>, Simulation, Run<()>)> {
    let mut found = Vec::new();
    for bug in simulated() {
        if [Class::Lint, Class::Leak].contains(&bug.label.class) {
            continue;
        }
        let profile: Profile = bug.label.profiles[0].parse().unwrap();
        let config = Config { profile, races, max_steps: Some(5000), ..Config::pes(bug.label.pes) };
        let mut simulation = Simulation::new(config).unwrap();
        if !simulation.run(bug.buggy).unwrap().is_ok() {
            continue;
        }
        let mut first = None;
        let explored = simulation.explore(Explore::random(1000, 0), bug.buggy, |run| {
            first = run.has_finding().then(|| run.without_results());
            if first.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        explored.unwrap();
        found.extend(first.map(|run| (bug, simulation, run)));
    }
    found
}

/// An effort that ends in the middle leaves a schedule that is longer than it need be, and replays.
#[test]
fn a_run_that_is_minimized_with_too_little_effort_replays() {
    let mut seen = 0;
    for (bug, mut simulation, run) in found_at_random(Races::Note) {
        for times in [3, 5, 8] {
            let mut effort = Effort::LITTLE;
            effort.steps = times * run.steps;
            let minimized = simulation.minimize(&run, effort, bug.buggy);
            let minimized = minimized.unwrap_or_else(|why| panic!("{} with {times}: {why}", bug.name));
            if let Some(minimized) = minimized {
                let again = simulation.replay(&minimized.run.schedule, bug.buggy);
                let again = again.unwrap_or_else(|why| panic!("{} with {times}: {why}", bug.name));
                assert_eq!(again.verdict.kind.outcome(), run.verdict.kind.outcome(), "{} with {times}", bug.name);
                seen += 1;
            }
        }
    }
    assert!(seen > 40, "{seen}");
}

/// Where races are no findings, most bugs need another order than the first to show.
#[test]
fn every_failing_run_is_minimized_and_replays() {
    let mut seen = 0;
    for races in [Races::Find, Races::Note] {
        for (bug, mut simulation, run) in found_at_random(races) {
            let program: fn(&Pe<Sim>) -> Result<()> = bug.buggy;
            let minimized = simulation.minimize(&run, Effort::LITTLE, program).unwrap();
            let minimized = minimized.unwrap_or_else(|| panic!("{}: nothing simpler", bug.name));
            let (few, of) = (&minimized.exceptions, minimized.run.verdict.kind.outcome());
            assert!(few.len() <= FEW, "{} on {}: {few:#?}", bug.name, run.schedule);
            assert_eq!(of, run.verdict.kind.outcome(), "{}", bug.name);
            let schedule = minimized.run.schedule.to_string().parse().unwrap();
            let again = simulation.replay(&schedule, program).unwrap_or_else(|why| panic!("{}: {why}", bug.name));
            assert_eq!(again.verdict.kind.outcome(), of, "{}", bug.name);
            seen += usize::from(!few.is_empty());
        }
    }
    assert!(seen > 40, "{seen} need an exception");
}
