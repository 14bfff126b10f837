//! The comparison: a program's outcomes on the simulator, in every way in which schedules are visited, and in the model.

use std::cell::Cell;
use std::collections::BTreeSet;

use onesided_sim::Strategy::{Pct, Plain, Pos};
use onesided_sim::{Explore, Profile, Races};
use proptest::prelude::*;

use super::profiles::Rules;
use super::program::{Op, Program};
use super::simulate::{Simulated, in_order, proved_without_values, simulated};
use super::state::{self, Allowed, Outcome};
use crate::random;

/// Programs with more schedules, or more states of the model, are left out; how many is checked in the end.
const SCHEDULES: u64 = 5_000;
const STATES: usize = 6_000;

/// The number of calls of a random program, where `usual` is enough for every day.
pub(crate) fn calls(usual: usize) -> usize {
    usual + random::asked("REFERENCE_CALLS", 0) as usize
}

/// Compares a program under one profile: `Ok` with what is allowed, or with `None` if it is too large.
fn compare(program: &Program, profile: Profile) -> Result<Option<Allowed>, String> {
    let Some(Allowed { outcomes: allowed, racy, may_race }) = state::allowed(program, Rules::of(profile), STATES)
    else {
        return Ok(None);
    };
    let all = Explore::All { limit: SCHEDULES };
    let seen = simulated(program, profile, all, Races::Note)?;
    if seen.complete && seen.outcomes != allowed {
        let missing = Vec::from_iter(allowed.difference(&seen.outcomes));
        let wrong = Vec::from_iter(seen.outcomes.difference(&allowed));
        return Err(format!("{profile}: all schedules miss {missing:?}, and show {wrong:?}"));
    }
    if seen.complete && ![racy, may_race].contains(&(seen.racy > 0)) {
        let [model, simulator] = if racy { ["has", "none"] } else { ["has no", &seen.race] };
        return Err(format!("{profile}: the model {model} race, all schedules: {simulator}"));
    }
    let mut random = Simulated { outcomes: BTreeSet::from([in_order(program, profile)]), ..Simulated::default() };
    // a loop that nobody ends takes time
    let schedules = if program.polls() { 4 } else { 20 };
    for strategy in [Plain, Pos, Pct { depth: 2 }] {
        let how = Explore::Random { schedules, seed: 1, strategy };
        let drawn = simulated(program, profile, how, Races::Note)?;
        if seen.complete && !program.polls() && drawn.classes > Some(seen.runs) {
            let classes = drawn.classes.unwrap_or_default();
            return Err(format!("{profile}: {classes} classes among schedules by {strategy}, of {} in all", seen.runs));
        }
        random.outcomes.extend(drawn.outcomes);
        random.runs += drawn.runs;
        random.racy += drawn.racy;
        random.race = if drawn.race.is_empty() { random.race } else { drawn.race };
    }
    if let Some(outcome) = seen.outcomes.iter().chain(&random.outcomes).find(|outcome| !allowed.contains(outcome)) {
        return Err(format!("{profile}: {outcome:?} is not allowed; allowed are {allowed:?}"));
    }
    if !seen.complete {
        return Ok(None);
    }
    let proof = simulated(program, profile, all, Races::Find)?;
    prove(&seen, &random, &proof).map_err(|why| format!("{profile}: {why}"))?;
    let returns = program.hosts.iter().flatten().any(|call| matches!(call.op, Op::Wait { signal: true, .. }));
    if returns {
        let unseen = proved_without_values(program, profile, SCHEDULES)?;
        if !unseen.complete || unseen.runs > proof.runs || (unseen.racy > 0) != (proof.racy > 0) {
            let [unseen, proof] = [unseen, proof].map(|seen| format!("{} of {}", seen.racy, seen.runs));
            return Err(format!("{profile}: races on {unseen} schedules if values do not matter, else on {proof}"));
        }
    }
    let drawn = simulated(program, profile, Explore::random(schedules, 2), Races::Find)?;
    if proof.racy == 0 && !program.polls() && drawn.classes > Some(proof.runs) {
        let classes = drawn.classes.unwrap_or_default();
        return Err(format!("{profile}: {classes} classes among random schedules, of {} in a proof", proof.runs));
    }
    Ok(Some(Allowed { outcomes: allowed, racy, may_race }))
}

/// A proof finds a race exactly if some schedule has one; without a race it has every outcome, and visits no more schedules.
fn prove(seen: &Simulated, random: &Simulated, proof: &Simulated) -> Result<(), String> {
    if !proof.complete || proof.runs > seen.runs {
        return Err(format!("a proof visits {} schedules, all of them are {}", proof.runs, seen.runs));
    }
    if (seen.racy > 0) != (proof.racy > 0) || seen.racy == 0 && random.racy > 0 {
        let race = [&seen.race, &random.race, &proof.race].into_iter().find(|race| !race.is_empty());
        let [all, at_random, proof] = [seen, random, proof].map(|seen| format!("{} of {}", seen.racy, seen.runs));
        return Err(format!("a race on {all} schedules, {at_random} random ones, {proof} of a proof: {race:?}"));
    }
    if seen.racy == 0 && proof.outcomes != seen.outcomes {
        let missing = Vec::from_iter(seen.outcomes.difference(&proof.outcomes));
        return Err(format!("a proof misses {missing:?}"));
    }
    Ok(())
}

/// Those that differ on one node, on which the programs are.
fn profiles() -> impl Iterator<Item = Profile> {
    Profile::ALL.into_iter().filter(|profile| profile.promises().one_fabric)
}

/// Every outcome under a profile is one under each profile that promises less, and so is every race.
fn who_promises_more_shows_no_more(known: &[(Profile, Allowed)]) -> Result<(), String> {
    for (strong, of_strong) in known {
        for (weak, of_weak) in known.iter().filter(|(weak, _)| strong.promises().include(&weak.promises())) {
            if let Some(more) = of_strong.outcomes.difference(&of_weak.outcomes).next() {
                return Err(format!("{strong} shows {more:?}, and {weak}, which promises less, does not"));
            }
            if of_strong.racy && !of_weak.racy {
                return Err(format!("{strong} has a race, and {weak}, which promises less, has none"));
            }
        }
    }
    Ok(())
}

/// Compares random programs under every profile, and checks that enough of them were small enough, and had a choice.
pub(crate) fn compare_all(programs: impl Strategy<Value = Program> + 'static, cases: u32) {
    compare_under(&Vec::from_iter(profiles()), programs, cases);
}

/// The same under these profiles.
pub(crate) fn compare_under(profiles: &[Profile], programs: impl Strategy<Value = Program> + 'static, cases: u32) {
    compare_some(profiles, programs.boxed(), cases); // boxed: compiled once for all kinds of programs
}

fn compare_some(profiles: &[Profile], programs: BoxedStrategy<Program>, cases: u32) {
    let (compared, branching, racy) = (Cell::new(0), Cell::new(0), Cell::new(0));
    let cases = random::check_all(programs, cases, 0x6f73_696d, |program| {
        let mut known = Vec::new();
        for &profile in profiles {
            let Some(allowed) = compare(&program, profile).map_err(TestCaseError::fail)? else { continue };
            compared.set(compared.get() + 1);
            branching.set(branching.get() + u32::from(allowed.outcomes.len() > 1));
            racy.set(racy.get() + u32::from(allowed.racy));
            known.push((profile, allowed));
        }
        who_promises_more_shows_no_more(&known).map_err(TestCaseError::fail)
    });
    let (tried, compared, branching) = (cases * profiles.len() as u32, compared.get(), branching.get());
    let racy = racy.get();
    eprintln!("{compared} of {tried} comparisons made, {branching} with more than one outcome, {racy} with a race");
    let enough = if calls(0) == 0 { tried * 9 / 10 } else { tried / 2 };
    assert!(compared >= enough, "only {compared} of {tried} programs were small enough to be compared");
    assert!(branching >= tried / 10, "only {branching} of {tried} programs have more than one outcome");
}

/// Whether a program has a race, on the simulator as in the model.
#[track_caller]
pub(crate) fn races(program: &Program, profile: Profile) -> bool {
    allowed(program, profile).racy
}

/// What the hosts of a program see, one after another, on the simulator as in the model; or how else it ends.
#[track_caller]
pub(crate) fn seen(program: &Program, profile: Profile) -> Vec<String> {
    let allowed = allowed(program, profile).outcomes;
    let mut seen: Vec<String> = allowed.iter().map(|outcome| outcome.in_words(program.pes())).collect();
    seen.dedup();
    seen
}

/// What a word of a PE's memory holds in the end.
#[track_caller]
pub(crate) fn left(program: &Program, profile: Profile, pe: usize, word: usize) -> Vec<u64> {
    let allowed = allowed(program, profile).outcomes;
    let finished = allowed.iter().filter_map(|outcome| match outcome {
        Outcome::Finished(saw) => Some(saw[program.pes() + pe][word]),
        Outcome::Deadlock => None,
    });
    finished.collect::<BTreeSet<u64>>().into_iter().collect()
}

/// What is allowed of a program, which is the same on the simulator as in the model.
#[track_caller]
fn allowed(program: &Program, profile: Profile) -> Allowed {
    match compare(program, profile) {
        Ok(Some(allowed)) => allowed,
        Ok(None) => panic!("the program is too large to be compared\n{program:?}"),
        Err(difference) => panic!("{difference}\n{program:?}"),
    }
}
