//! The simulator against an independent model of the interface: the same outcomes on random programs.
//!
//! The model (`reference/`) knows no footprints, no sleep sets and no eager steps. Equal sets of outcomes on every program
//! mean that the simulator's search leaves out nothing but what is equivalent, and adds nothing.

use std::cell::Cell;

use onesided_sim::{Explore, Profile};
use proptest::prelude::*;
use proptest::test_runner::{RngSeed, TestRunner};

#[path = "reference/agreed.rs"]
mod agreed;
#[path = "reference/collectives.rs"]
mod collectives;
#[path = "reference/generate.rs"]
mod generate;
#[path = "reference/order.rs"]
mod order;
#[path = "reference/plan.rs"]
mod plan;
#[path = "reference/profiles.rs"]
mod profiles;
#[path = "reference/program.rs"]
mod program;
#[path = "reference/simulate.rs"]
mod simulate;
#[path = "reference/state.rs"]
mod state;
#[path = "reference/transfers.rs"]
mod transfers;

use generate::{Kind, messages, programs};
use profiles::Rules;
use program::Program;
use simulate::{in_order, simulated};

/// Programs with more schedules, or more states of the model, are left out; how many is checked in the end.
const SCHEDULES: u64 = 5_000;
const STATES: usize = 20_000;

/// Compares a program under one profile: `Ok` with the number of its outcomes, or with `None` if it is too large.
fn compare(program: &Program, profile: Profile) -> Result<Option<usize>, String> {
    let Some(allowed) = state::outcomes(program, Rules::of(profile), STATES) else { return Ok(None) };
    let (seen, complete) = simulated(program, profile, Explore::All { limit: SCHEDULES });
    if complete && seen != allowed {
        let missing = Vec::from_iter(allowed.difference(&seen));
        let wrong = Vec::from_iter(seen.difference(&allowed));
        return Err(format!("{profile}: all schedules miss {missing:?}, and show {wrong:?}"));
    }
    let (random, _) = simulated(program, profile, Explore::Random { schedules: 20, seed: 1 });
    let in_order = in_order(program, profile);
    match seen.iter().chain(&random).chain([&in_order]).find(|outcome| !allowed.contains(outcome)) {
        Some(outcome) => Err(format!("{profile}: {outcome:?} is not allowed; allowed are {allowed:?}")),
        None => Ok(complete.then_some(allowed.len())),
    }
}

/// Whether the simulator does not follow the rules for such a program yet (or not all of its schedules are searched).
fn is_ahead_of_the_simulator(program: &Program, profile: Profile) -> bool {
    use program::{Collective, Op};
    let has = |what: &dyn Fn(&Op) -> bool| program.hosts.iter().flatten().any(|call| what(&call.op));
    let streams = (0..program.pes()).any(|pe| program.streams(pe) > 0);
    has(&|op| matches!(op, Op::WaitAll { values: [Some(_), Some(_)], .. } | Op::Wait { signal: true, .. }))
        || has(&|op| *op == Op::Enter(Collective::Team))
        || streams && has(&|op| *op == Op::Flush)
        || profile == Profile::Nvlink && has(&|op| *op == Op::Fence || op.is_nbi())
}

/// Compares random programs under every profile, and checks how many were small enough.
fn compare_all(programs: impl Strategy<Value = Program>, cases: u32) {
    let config = ProptestConfig {
        cases,
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(0x6f73_696d),
        ..ProptestConfig::default()
    };
    let (tried, compared, branching) = (Cell::new(0), Cell::new(0), Cell::new(0));
    let result = TestRunner::new(config).run(&programs, |program| {
        for profile in Profile::ALL {
            if is_ahead_of_the_simulator(&program, profile) {
                continue;
            }
            tried.set(tried.get() + 1);
            let outcomes = compare(&program, profile).map_err(TestCaseError::fail)?;
            compared.set(compared.get() + u32::from(outcomes.is_some()));
            branching.set(branching.get() + u32::from(outcomes.is_some_and(|outcomes| outcomes > 1)));
        }
        Ok(())
    });
    if let Err(error) = result {
        panic!("{error}");
    }
    let (tried, compared, branching) = (tried.get(), compared.get(), branching.get());
    eprintln!("{compared} of {tried} programs compared, {branching} with more than one outcome");
    assert!(compared >= cases, "{compared} comparisons of {cases} programs");
    assert!(compared >= tried * 9 / 10, "{compared} of {tried} programs were small enough to be compared");
    assert!(branching >= tried / 10, "{branching} of {tried} programs have more than one outcome");
}

#[test]
fn hosts_have_exactly_the_outcomes_of_the_reference() {
    compare_all(programs(Kind { calls: 6, streams: 0, collectives: 0, on_streams: false }), 800);
}

#[test]
fn hosts_and_streams_have_exactly_the_outcomes_of_the_reference() {
    compare_all(programs(Kind { calls: 6, streams: 2, collectives: 0, on_streams: false }), 800);
}

#[test]
fn collectives_have_exactly_the_outcomes_of_the_reference() {
    compare_all(programs(Kind { calls: 4, streams: 0, collectives: 2, on_streams: false }), 400);
}

#[test]
fn collectives_on_streams_have_exactly_the_outcomes_of_the_reference() {
    compare_all(programs(Kind { calls: 3, streams: 1, collectives: 2, on_streams: true }), 200);
}

#[test]
fn messages_have_exactly_the_outcomes_of_the_reference() {
    compare_all(messages(Kind { calls: 4, streams: 2, collectives: 0, on_streams: false }), 800);
}
