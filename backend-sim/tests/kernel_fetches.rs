//! Loops of kernels around calls that only look at a word, `nvshmem_signal_fetch` and tests: they are waits, as the same loops around loads are.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use onesided::{Grid, Pe, Result, Source, args};
use onesided_sim::{Config, Explore, Races, Run, Sim, Simulation};

use crate::hand_over::run;

const FETCHES: &str = include_str!("../ptx/kernels/fetches.ptx");

/// Runs a kernel of a thread on each PE, or of two. What it has seen.
fn launch(name: &str, number: i32) -> impl Fn(&Pe<Sim>) -> Result<i32> + '_ {
    let threads = if name == "fetch_of_a_plain_word" { 2 } else { 1 };
    move |pe| {
        let (data, signal) = (pe.alloc_zeroed::<i32>(3)?, pe.alloc_zeroed::<u64>(2)?);
        run(pe, &Source::ptx("fetches.ptx", FETCHES), name, &Grid::new(1, threads), args![&data, &signal, number])?;
        let seen = pe.read_one(data.at(1))?;
        pe.free(signal)?;
        pe.free(data)?;
        Ok(seen)
    }
}

/// Classes, and what the PEs return or how it ends, in all schedules. Random ones have nothing else.
#[track_caller]
fn all((pes, races): (usize, Races), name: &str, number: i32) -> (u64, BTreeSet<String>) {
    let config = Config { races, ..Config::pes(pes) };
    let of = |how: Explore| {
        let mut outcomes = BTreeSet::new();
        let explored = Simulation::new(config.clone()).unwrap().explore(how, launch(name, number), |run| {
            outcomes.insert(match run.is_ok() {
                true => format!("{:?}", run.results.iter().copied().flatten().collect::<Vec<_>>()),
                false => run.verdict.kind.outcome(),
            });
            ControlFlow::<()>::Continue(())
        });
        (explored.unwrap(), outcomes)
    };
    let (explored, outcomes) = of(Explore::All { limit: 5_000 });
    assert!(explored.complete && explored.redundant == 0, "{name}: {explored:?}");
    let (_, at_random) = of(Explore::random(100, 1));
    assert!(at_random.is_subset(&outcomes), "{name}: {at_random:?} beside {outcomes:?}");
    (explored.schedules, outcomes)
}

fn set(outcomes: &[&str]) -> BTreeSet<String> {
    outcomes.iter().map(|outcome| (*outcome).to_string()).collect()
}

const BOTH: [Races; 2] = [Races::Find, Races::Note];

#[test]
fn messages_that_go_around_have_one_class() {
    for races in BOTH {
        for name in ["around_by_wait", "around_by_fetch", "around_by_test"] {
            assert_eq!(all((2, races), name, 2), (1, set(&["[0, 3]"])), "{name}");
            assert_eq!(all((2, races), name, 6), (1, set(&["[0, 21]"])), "{name}");
            assert_eq!(all((4, races), name, 2), (1, set(&["[0, 3, 3, 3]"])), "{name}");
        }
    }
    // the call that ends the loop finds that a comparison does not hold, and takes nothing for told
    assert_eq!(all((2, Races::Note), "around_by_test_below", 2), (1, set(&["[0, 3]"])));
}

#[test]
fn a_missing_fence_is_found_as_behind_a_wait() {
    for races in BOTH {
        let behind_wait = all((2, races), "around_by_wait_without_fence", 2);
        for name in ["around_by_fetch_without_fence", "around_by_test_without_fence"] {
            assert_eq!(all((2, races), name, 2), behind_wait, "{name}");
        }
    }
    let (_, outcomes) = all((2, Races::Note), "around_by_fetch_without_fence", 2);
    assert_eq!(outcomes, set(&["[0, 0]", "[0, 1]", "[0, 2]", "[0, 3]"]));
    assert_eq!(all((2, Races::Find), "around_by_fetch_without_fence", 2).1, set(&["race"]));
}

#[test]
fn what_a_fetch_has_found_may_matter() {
    for races in BOTH {
        let by_load = all((2, races), "found_by_load", 0);
        assert_eq!(by_load, (2, set(&["[0, 1]", "[0, 2]"])));
        assert_eq!(all((2, races), "found_by_fetch", 0), by_load);
    }
}

/// The thread may be told to give up by another word, which nobody changes, or before its own.
#[test]
fn a_wait_may_be_given_up_as_around_loads() {
    for (told, outcome) in [(0, "[0, 1]"), (1, "[0, 2]")] {
        for races in BOTH {
            let by_loads = all((2, races), "load_unless_told_by_load", told);
            assert_eq!(by_loads.1, set(&[outcome]));
            for (look, stop) in [("fetch", "load"), ("fetch", "fetch"), ("load", "fetch"), ("test", "fetch")] {
                let name = format!("{look}_unless_told_by_{stop}");
                assert_eq!(all((2, races), &name, told), by_loads, "{name}, told {told}");
            }
        }
    }
    // what a test tells besides is looked at step by step
    assert_eq!(all((2, Races::Find), "load_unless_told_by_load", 0).0, 1);
    assert_eq!(all((2, Races::Find), "test_unless_told_by_test", 0), (3, set(&["[0, 1]"])));
}

#[test]
fn a_loop_that_counts_its_looks_is_no_wait() {
    for races in BOTH {
        let by_loads = all((2, races), "load_in_time", 0);
        assert_eq!(by_loads.1, set(&["[0, 1]", "[0, 2]"]));
        for name in ["fetch_in_time", "test_in_time"] {
            assert_eq!(all((2, races), name, 0), by_loads, "{name}");
        }
        assert_eq!(all((2, races), "test_of_more_and_more", 0).1, set(&["[0, 2]", "deadlock"]));
    }
}

#[test]
fn two_words_are_waited_for_one_after_the_other() {
    for races in BOTH {
        for first in [0, 1] {
            assert_eq!(all((2, races), "load_of_two", first), (1, set(&["[0, 1]"])));
            assert_eq!(all((2, races), "fetch_of_two", first), (1, set(&["[0, 1]"])));
        }
    }
    // a test of all looks at all of them in one step
    assert_eq!(all((2, Races::Find), "around_by_test_of_all", 2), (81, set(&["[0, 3]"])));
}

/// A look in vain may race: the race detector is told of one.
#[test]
fn a_plain_store_to_the_word_is_a_race() {
    assert_eq!(all((1, Races::Find), "fetch_of_a_plain_word", 0), (1, set(&["race"])));
}

#[test]
fn a_loop_that_nobody_ends_is_a_deadlock_at_its_call() {
    for (name, call, wanted) in [("fetch_for_ever", "signal_fetch", ">= 3"), ("test_for_ever", "test", "== 3")] {
        for races in BOTH {
            assert_eq!(all((2, races), name, 0), (1, set(&["deadlock"])), "{name}");
        }
        let mut said = Vec::new();
        let visit = |run: &Run<i32>| {
            said.push(run.verdict.to_string());
            ControlFlow::<()>::Continue(())
        };
        let all = Explore::All { limit: 10 };
        Simulation::new(Config::pes(1)).unwrap().explore(all, launch(name, 0), visit).unwrap();
        assert!(said[0].contains(call) && said[0].contains(&format!("{wanted}, found 0")), "{}", said[0]);
    }
}
