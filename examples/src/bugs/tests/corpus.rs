//! Every repaired twin is right on every schedule, and every bug is found for what it is.

use std::ops::ControlFlow;

use onesided_bugs::{Bug, Class, PROFILES, Program, simulated};
use onesided_sim::{Config, Explore, Profile, Races, Run, Sim, Simulation};

/// The most schedules of an exhaustive search. All but the programs of [`POLLS`] have fewer.
const LIMIT: u64 = 3_000;
/// Random schedules of a program that has more.
const RANDOM: u64 = 2_000;
/// Programs that poll until a lock is free: they have endless schedules.
const POLLS: [&str; 3] = ["lock_without_fence", "lock_at_another_pe", "polled_by_read"];
/// Races that only some orders of synchronization show, and the one in order is none of them.
const NOT_IN_ORDER: [&str; 4] =
    ["counter_of_chunks", "flag_of_the_last_round", "lock_at_another_pe", "quiet_claimed_by_a_stream"];
/// Races that change nothing that their program looks at.
const HARMLESS: [&str; 12] = [
    "put_to_a_signal",
    "signal_read_plainly",
    "polled_by_read",
    "winner_by_put",
    "polled_by_a_volatile_load",
    "polled_behind_a_fence",
    "fence_behind_the_barrier",
    "fence_of_the_block",
    "read_only_load",
    "waited_for_the_source",
    "atomic_within_the_gpu",
    "fetched_without_a_fence",
];

fn simulation(bug: &Bug<Sim>, profile: Profile, races: Races) -> Simulation {
    Simulation::new(Config { profile, races, ..Config::pes(bug.label.pes) }).unwrap()
}

/// Visits all schedules of a program until `visit` breaks, or random ones if there are too many. Returns whether it was all.
fn visit(
    bug: &Bug<Sim>,
    mut simulation: Simulation,
    program: Program<Sim>,
    mut visit: impl FnMut(&Run<()>) -> ControlFlow<()>,
) -> bool {
    let mut broke = false;
    let mut explore = |how| {
        let explored = simulation.explore(how, program, |run| {
            let flow = visit(run);
            broke |= flow.is_break();
            flow
        });
        explored.unwrap().complete || broke
    };
    let all = !POLLS.contains(&bug.name) && explore(Explore::All { limit: LIMIT });
    if !all {
        explore(Explore::random(RANDOM, 0));
    }
    all
}

/// What is found by the run that `wanted` says, the first of them.
fn find(bug: &Bug<Sim>, simulation: Simulation, wanted: impl Fn(Class) -> bool) -> Option<String> {
    let mut found = None;
    visit(bug, simulation, bug.buggy, |run| match class(run).is_some_and(&wanted) {
        true => {
            found = Some(described(bug, run));
            ControlFlow::Break(())
        }
        false => ControlFlow::Continue(()),
    });
    found
}

/// The class of what a run found. Behind a race everything may go wrong: then it is the race.
fn class(run: &Run<()>) -> Option<Class> {
    let races = run.verdict.races.iter().map(|race| Class::of_race([race.first.call, race.second.call]));
    races.min().or_else(|| Class::of_outcome(&run.verdict.kind.outcome()))
}

/// Whether a run has a race of both lines of the label; and whether all its races are of those lines.
fn lines_of_races(bug: &Bug<Sim>, run: &Run<()>) -> (bool, bool) {
    let marks = bug.lines();
    let wanted = [marks.first, marks.second].map(|line| format!("{}:{}", bug.file, line.unwrap_or_default()));
    // lines of kernels name their file without its folder
    let is = |at: &onesided::At, wanted: &String| {
        let at = at.to_string();
        at.ends_with(wanted.as_str()) || wanted.ends_with(&format!("/{at}"))
    };
    let races: Vec<[onesided::At; 2]> = run.verdict.races.iter().map(|race| [race.first.at, race.second.at]).collect();
    let both = races.iter().any(|race| wanted.iter().all(|wanted| race.iter().any(|at| is(at, wanted))));
    (both, races.iter().flatten().all(|at| wanted.iter().any(|wanted| is(at, wanted))))
}

fn described(bug: &Bug<Sim>, run: &Run<()>) -> String {
    format!("{} on {}: {}", bug.name, run.schedule, run.verdict)
}

/// The profiles under which a bug shows.
fn shows_under(bug: &Bug<Sim>) -> Vec<Profile> {
    bug.label.profiles.iter().map(|name| name.parse().unwrap()).collect()
}

#[track_caller]
fn nothing(wrong: &[String]) {
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

fn every_repaired_twin_is_right(profile: Profile) {
    let mut wrong = Vec::new();
    for bug in simulated() {
        let mut finding = None;
        let all = visit(&bug, simulation(&bug, profile, Races::Find), bug.fixed, |run| match class(run) {
            Some(_) => {
                finding = Some(described(&bug, run));
                ControlFlow::Break(())
            }
            None => ControlFlow::Continue(()),
        });
        if finding.is_none() && !all && !POLLS.contains(&bug.name) {
            finding = Some(format!("{} has more than {LIMIT} schedules", bug.name));
        }
        wrong.extend(finding);
    }
    nothing(&wrong);
}

#[test]
fn every_repaired_twin_is_right_under_spec() {
    every_repaired_twin_is_right(Profile::Spec);
}

#[test]
fn every_repaired_twin_is_right_under_nvlink() {
    every_repaired_twin_is_right(Profile::Nvlink);
}

/// The finding has the label's class on every schedule that has one, and names the label's lines.
#[test]
fn what_is_no_race_is_found() {
    let mut wrong = Vec::new();
    for bug in simulated().into_iter().filter(|bug| ![Class::Race, Class::Lint].contains(&bug.label.class)) {
        for profile in shows_under(&bug) {
            let search = |wanted: &dyn Fn(Class) -> bool| find(&bug, simulation(&bug, profile, Races::Find), wanted);
            let Some(said) = search(&|class| class == bug.label.class) else {
                wrong.push(format!("{} under {profile}: nothing found", bug.name));
                continue;
            };
            wrong.extend(search(&|class| class != bug.label.class));
            let lines = bug.lines();
            let file = bug.file.strip_prefix("kernels/").unwrap_or(bug.file);
            let named = |line: u32| said.contains(&format!("{file}:{line}"));
            if ![lines.first, lines.second].into_iter().flatten().all(named) {
                wrong.push(format!("{lines:?} are not named: {said}"));
            }
        }
    }
    nothing(&wrong);
}

/// Some schedule has a race of the label's lines, and no schedule another one. Nearly all races show in the run in order.
#[test]
fn races_are_found_at_their_lines() {
    let mut wrong = Vec::new();
    for bug in simulated().into_iter().filter(|bug| bug.label.class == Class::Race) {
        for profile in shows_under(&bug) {
            let in_order = simulation(&bug, profile, Races::Find).run(bug.buggy).unwrap();
            if lines_of_races(&bug, &in_order).0 == NOT_IN_ORDER.contains(&bug.name) {
                wrong.push(format!("in order, {}", described(&bug, &in_order)));
            }
            let mut found = false;
            visit(&bug, simulation(&bug, profile, Races::Find), bug.buggy, |run| {
                let (both, no_others) = lines_of_races(&bug, run);
                found |= both;
                if !no_others {
                    wrong.push(described(&bug, run));
                }
                ControlFlow::Continue(())
            });
            if !found {
                wrong.push(format!("{} under {profile}: no race is found", bug.name));
            }
        }
    }
    nothing(&wrong);
}

/// A race is no matter of taste: on some schedule the program goes wrong.
#[test]
fn races_do_harm() {
    let mut wrong = Vec::new();
    for bug in simulated().into_iter().filter(|bug| bug.label.class == Class::Race) {
        for profile in shows_under(&bug) {
            let harm = find(&bug, simulation(&bug, profile, Races::Ignore), |_| true);
            if harm.is_some() == HARMLESS.contains(&bug.name) {
                wrong.push(harm.unwrap_or_else(|| format!("{} under {profile}: nothing goes wrong", bug.name)));
            }
        }
    }
    nothing(&wrong);
}

/// Under the profiles that its label does not name, a program is right.
#[test]
fn a_bug_shows_only_where_its_label_says() {
    let mut wrong = Vec::new();
    for bug in simulated() {
        for profile in PROFILES
            .map(|name| name.parse().unwrap())
            .into_iter()
            .filter(|profile| !shows_under(&bug).contains(profile))
        {
            wrong.extend(find(&bug, simulation(&bug, profile, Races::Find), |_| true));
        }
    }
    nothing(&wrong);
}
