//! The simulator against an independent model of the interface: the same outcomes on random programs, and a race exactly where the model has one.
//!
//! The model (`reference/`) knows no footprints, no sleep sets, no eager steps and no clocks. Equal sets of outcomes on every program
//! mean that the simulator's search leaves out nothing but what is equivalent, and adds nothing. That both have a race, or neither, means that
//! happens-before has every edge and no other. A program that fails is
//! printed as the expression that makes it: as a test it belongs into `regressions.rs`.
//!
//! | file | what it holds |
//! |---|---|
//! | `program.rs` | programs, as data |
//! | `generate.rs`, `themes.rs`, `crossed.rs` | random programs: about everything, about something, and on two nodes |
//! | `teams.rs`, `narrow.rs` | random programs with teams, and with words of several sizes and registered memory |
//! | `plan.rs` | what each host and stream does, taken from the program's text |
//! | `state.rs` | where everything stands, and every step that can follow |
//! | `transfers.rs` | what is in flight, and its steps |
//! | `order.rs` | what holds steps back |
//! | `claims.rs` | quiets and fences |
//! | `collectives.rs` | collectives |
//! | `races.rs` | what each step touches, and which steps race |
//! | `profiles.rs` | the rules that profiles switch |
//! | `fabrics.rs` | what is seen where there are two fabrics |
//! | `simulate.rs`, `running.rs`, `compare.rs` | the same program on the simulator, and the comparison |
//! | `agreed.rs`, `surprises.rs` | programs whose outcomes are written down |
//! | `regressions.rs` | random programs that showed a fault |
//!
//! Other random programs, more of them, with more calls: `REFERENCE_SEED=7 REFERENCE_TIMES=5 REFERENCE_CALLS=3 cargo test
//! -p onesided-sim --test all reference`.

mod agreed;
mod claims;
mod collectives;
mod compare;
mod crossed;
mod fabrics;
mod generate;
mod narrow;
mod order;
mod plan;
mod profiles;
mod program;
mod races;
mod regressions;
mod running;
mod simulate;
mod state;
mod surprises;
mod teams;
mod themes;
mod transfers;

use compare::{calls, compare_all, compare_under};
use generate::{Kind, programs};
use onesided_sim::Profile;

#[test]
fn hosts_have_exactly_the_outcomes_of_the_reference() {
    compare_all(programs(Kind { calls: calls(6), streams: 0, collectives: 0, on_streams: false }), 600);
}

#[test]
fn hosts_and_streams_have_exactly_the_outcomes_of_the_reference() {
    compare_all(programs(Kind { calls: calls(6), streams: 2, collectives: 0, on_streams: false }), 600);
}

#[test]
fn collectives_have_exactly_the_outcomes_of_the_reference() {
    compare_all(programs(Kind { calls: calls(4), streams: 0, collectives: 2, on_streams: false }), 300);
}

#[test]
fn collectives_on_streams_have_exactly_the_outcomes_of_the_reference() {
    compare_all(programs(Kind { calls: calls(4), streams: 1, collectives: 2, on_streams: true }), 150);
}

#[test]
fn messages_have_exactly_the_outcomes_of_the_reference() {
    compare_all(themes::messages(calls(4), 2), 600);
}

#[test]
fn claims_have_exactly_the_outcomes_of_the_reference() {
    compare_all(themes::claims(calls(5), 2), 800);
}

#[test]
fn answers_have_exactly_the_outcomes_of_the_reference() {
    compare_all(themes::answers(calls(4)), 400);
}

#[test]
fn stores_have_exactly_the_outcomes_of_the_reference() {
    compare_all(themes::stores(calls(4)), 400);
}

#[test]
fn flags_have_exactly_the_outcomes_of_the_reference() {
    compare_all(themes::flags(calls(3)), 800);
}

#[test]
fn flags_that_are_taken_back_have_exactly_the_outcomes_of_the_reference() {
    compare_all(themes::turns(calls(7)), 400);
}

#[test]
fn loops_that_poll_have_exactly_the_outcomes_of_the_reference() {
    compare_all(themes::polls(calls(2)), 200);
}

#[test]
fn counters_have_exactly_the_outcomes_of_the_reference() {
    compare_all(themes::counters(calls(2)), 600);
}

#[test]
fn updates_that_commute_have_exactly_the_outcomes_of_the_reference() {
    compare_all(themes::updates(calls(2)), 500);
}

/// Four PEs on two nodes. A proof takes what arrives as seen at once, and has to find every race and every outcome all the same.
#[test]
fn two_fabrics_have_exactly_the_outcomes_of_the_reference() {
    compare_under(&[Profile::Spec, Profile::MixedFabric], crossed::programs(calls(2)), 500);
}

#[test]
fn teams_have_exactly_the_outcomes_of_the_reference() {
    compare_all(teams::programs(calls(3), 3, 0), 140);
}

#[test]
fn teams_on_streams_have_exactly_the_outcomes_of_the_reference() {
    compare_all(teams::programs(calls(1), 3, 2), 140);
}

#[test]
fn narrow_words_have_exactly_the_outcomes_of_the_reference() {
    compare_all(narrow::programs(calls(3), 0), 180);
}

#[test]
fn narrow_words_and_streams_have_exactly_the_outcomes_of_the_reference() {
    compare_all(narrow::programs(calls(3), 2), 180);
}

#[test]
fn registered_memory_has_exactly_the_outcomes_of_the_reference() {
    compare_all(narrow::registered(calls(4), 1), 150);
}
