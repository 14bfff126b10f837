//! What the simulator's own tests share: visiting schedules and collecting what was seen.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::ops::ControlFlow;

use onesided::{Pe, Result};
use onesided_sim::{Config, Explore, Explored, MissingEdge, Race, Races, Run, Sim, Simulation, Verdict};

/// More schedules than any program here has.
pub(crate) const ENOUGH: u64 = 1_000_000;

/// The wait or fence for a copy that is missing in the run in order, or what else is wrong with it; nothing if it is right.
pub(crate) fn missing_for_a_copy<T>(pes: usize, program: impl Fn(&Pe<Sim>) -> Result<T>) -> String {
    let run = Simulation::new(Config::pes(pes)).unwrap().run(program).unwrap();
    match &run.verdict.races[..] {
        [] if run.verdict.is_ok() => String::new(),
        [] => run.verdict.to_string().lines().take(3).collect::<Vec<_>>().join("\n"),
        [race, ..] => {
            assert!(matches!(race.missing, MissingEdge::Copy { .. }), "{race}");
            race.missing.to_string()
        }
    }
}

/// Every PE takes a ticket: n! classes.
pub(crate) fn tickets(pe: &Pe<Sim>) -> Result<u64> {
    let counter = pe.alloc_zeroed::<u64>(1)?;
    let mine = pe.host().atomic_fetch_inc(&counter, 0)?;
    pe.free(counter)?;
    Ok(mine)
}

/// Visits all schedules, which there must be fewer of than [`ENOUGH`]; calls `visit` with each run.
pub(crate) fn visit_all<T>(
    config: Config,
    program: impl Fn(&Pe<Sim>) -> Result<T>,
    mut visit: impl FnMut(&Run<T>),
) -> Explored {
    let config = Config { races: Races::Note, ..config }; // many programs here are litmus tests
    let explored = Simulation::new(config).unwrap().explore(Explore::All { limit: ENOUGH }, program, |run| {
        visit(run);
        ControlFlow::Continue(())
    });
    let explored = explored.unwrap();
    assert!(explored.complete);
    explored
}

/// How each of all schedules ended, in one word, with the number of schedules that did.
pub(crate) fn endings<T>(config: Config, program: impl Fn(&Pe<Sim>) -> Result<T>) -> BTreeMap<String, u64> {
    let mut endings = BTreeMap::new();
    visit_all(config, program, |run| *endings.entry(run.verdict.kind.outcome()).or_insert(0) += 1);
    endings
}

/// What the PEs returned on each of all schedules, none of which may end in a finding; with the number of schedules.
pub(crate) fn results<T: Ord + Clone>(
    config: Config,
    program: impl Fn(&Pe<Sim>) -> Result<T>,
) -> BTreeMap<Vec<T>, u64> {
    let mut seen = BTreeMap::new();
    visit_all(config, program, |run| {
        assert!(run.is_ok(), "{}", run.verdict);
        *seen.entry(run.results.iter().flatten().cloned().collect()).or_insert(0) += 1;
    });
    seen
}

/// What the PEs returned in order.
pub(crate) fn in_order<T>(config: Config, program: impl Fn(&Pe<Sim>) -> Result<T>) -> Vec<T> {
    let config = Config { races: Races::Note, ..config };
    let run = Simulation::new(config).unwrap().run(program).unwrap();
    run.into_results().unwrap()
}

/// The verdict of the run in order.
pub(crate) fn verdict<T>(pes: usize, program: impl Fn(&Pe<Sim>) -> Result<T>) -> Verdict {
    Simulation::new(Config::pes(pes)).unwrap().run(program).unwrap().verdict
}

/// A report without line numbers, which change with every edit.
pub(crate) fn without_lines(report: impl Display) -> String {
    let report = report.to_string();
    let mut parts = report.split(".rs:");
    let first = parts.next().unwrap_or_default().to_string();
    parts.fold(first, |text, part| text + ".rs:_" + part.trim_start_matches(|c: char| c.is_ascii_digit()))
}

/// The races of the run in order, each as its calls; and whether each of all schedules has one, or none has.
pub(crate) fn races_under<T>(config: Config, program: impl Fn(&Pe<Sim>) -> Result<T>) -> Vec<String> {
    let mut simulation = Simulation::new(Config { races: Races::Note, ..config }).unwrap();
    let run = simulation.run(&program).unwrap();
    assert!(run.is_ok(), "{}", run.verdict);
    let found: BTreeSet<String> = run.verdict.races.iter().map(pair).collect();
    let explored = simulation.explore(Explore::All { limit: 20_000 }, &program, |run| {
        assert_eq!(run.verdict.races.is_empty(), found.is_empty(), "{:?}\n{}", found, run.verdict);
        ControlFlow::Continue(())
    });
    assert!(explored.unwrap().complete);
    found.into_iter().collect()
}

pub(crate) fn pair(race: &Race) -> String {
    let mut calls = [&race.first, &race.second].map(|access| access.call);
    calls.sort();
    calls.join(" | ")
}

/// The same of so many PEs, where each transfer is one piece.
pub(crate) fn races<T>(pes: usize, program: impl Fn(&Pe<Sim>) -> Result<T>) -> Vec<String> {
    races_under(Config { pieces: 1, ..Config::pes(pes) }, program)
}
