//! Loops of kernels around calls that only look at a word, `nvshmem_signal_fetch` and tests: they are waits, as the same loops around loads are.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use onesided::{Grid, Pe, Result, Source, args};
use onesided_sim::{Config, Explore, Profile, Races, Run, Sim, Simulation};

use crate::hand_over::{outcomes, run, set};

const FETCHES: &str = include_str!("../ptx/kernels/fetches.ptx");

/// Runs a kernel of a thread on each PE, or of two. What it has seen.
fn launch(name: &str, number: i32) -> impl Fn(&Pe<Sim>) -> Result<i32> + '_ {
    let is_of_two = |part: &str| name.contains(part);
    let threads = if ["_plain_word", "_beside_quiet", "_beside_fence"].into_iter().any(is_of_two) { 2 } else { 1 };
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
    all_with(Config { races, ..Config::pes(pes) }, name, number)
}

#[track_caller]
fn all_with(config: Config, name: &str, number: i32) -> (u64, BTreeSet<String>) {
    outcomes(&config, launch(name, number), |run| format!("{:?}", run.results.iter().flatten().collect::<Vec<_>>()))
}

const BOTH: [Races; 2] = [Races::Find, Races::Note];

#[test]
fn messages_that_go_around_have_one_class() {
    for races in BOTH {
        for name in
            ["around_by_wait", "around_by_fetch", "around_by_test", "around_by_atomic", "around_by_atomic_of_me"]
        {
            assert_eq!(all((2, races), name, 2), (1, set(&["[0, 3]"])), "{name}");
            assert_eq!(all((2, races), name, 6), (1, set(&["[0, 21]"])), "{name}");
            assert_eq!(all((4, races), name, 2), (1, set(&["[0, 3, 3, 3]"])), "{name}");
        }
    }
    for races in BOTH {
        assert_eq!(all((2, races), "around_by_pull", 2), (1, set(&["[3, 3]"])));
        assert_eq!(all((4, races), "around_by_pull", 2), (1, set(&["[3, 3, 3, 3]"])));
    }
    // the call that ends the loop finds that a comparison does not hold, and takes nothing for told
    assert_eq!(all((2, Races::Note), "around_by_test_below", 2), (1, set(&["[0, 3]"])));
}

#[test]
fn a_missing_fence_is_found_as_behind_a_wait() {
    for races in BOTH {
        let behind_wait = all((2, races), "around_by_wait_without_fence", 2);
        for by in ["fetch", "test", "test_of_all", "atomic"] {
            let name = format!("around_by_{by}_without_fence");
            assert_eq!(all((2, races), &name, 2), behind_wait, "{name}");
        }
    }
    assert_eq!(all((2, Races::Find), "around_by_pull_without_quiet", 1), (1, set(&["race"])));
    assert_eq!(all((2, Races::Note), "around_by_pull_without_quiet", 1).1.len(), 4);
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
        assert_eq!(all((2, races), "found_by_atomic", 0), by_load);
    }
}

/// The thread may be told to give up by another word, which nobody changes, or before its own.
#[test]
fn a_wait_may_be_given_up_as_around_loads() {
    for (told, outcome) in [(0, "[0, 1]"), (1, "[0, 2]")] {
        for races in BOTH {
            let by_loads = all((2, races), "load_unless_told_by_load", told);
            assert_eq!(by_loads.1, set(&[outcome]));
            for (look, stop) in
                [("fetch", "load"), ("fetch", "fetch"), ("load", "fetch"), ("test", "fetch"), ("atomic", "load")]
            {
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
        for name in ["fetch_in_time", "test_in_time", "atomic_in_time"] {
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
}

/// A look in vain may race: the race detector is told of one.
#[test]
fn a_plain_store_to_the_word_is_a_race() {
    for name in ["fetch_of_a_plain_word", "atomic_of_a_plain_word"] {
        assert_eq!(all((1, Races::Find), name, 0), (1, set(&["race"])), "{name}");
    }
}

#[test]
fn a_loop_that_nobody_ends_is_a_deadlock_at_its_call() {
    let calls = [
        ("fetch_for_ever", "signal_fetch", ">= 3"),
        ("test_for_ever", "test", "== 3"),
        ("atomic_for_ever", "atomic_fetch", ">= 3"),
    ];
    for (name, call, wanted) in calls {
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

/// Where a loop fails only after many looks, it is a wait. Where it may fail sooner, it looks step by step.
#[test]
fn a_loop_that_counts_many_looks_is_a_wait() {
    for races in BOTH {
        for by in ["load", "fetch", "test", "atomic"] {
            assert_eq!(all((2, races), &format!("{by}_or_trap"), 0), (1, set(&["[0, 1]"])), "{by}");
        }
        let by_load = all((2, races), "load_or_trap_soon", 1);
        assert_eq!(by_load.1.len(), 2);
        for by in ["test", "atomic"] {
            assert_eq!(all((2, races), &format!("{by}_or_trap_soon"), 1), by_load, "{by}");
        }
    }
}

/// A fence of its thread puts a put before the fetch: who has fetched knows that the put has come.
#[test]
fn a_fetch_comes_behind_what_a_fence_puts_before_it() {
    for races in BOTH {
        assert_eq!(all((2, races), "atomic_behind_own_put", 0), (1, set(&["[0, 7]"])));
    }
    assert_eq!(all((2, Races::Find), "atomic_beside_own_put", 0), (1, set(&["race"])));
    assert_eq!(all((2, Races::Note), "atomic_beside_own_put", 0), (2, set(&["[0, 0]", "[0, 7]"])));
}

/// Where transfers arrive in the order of issue, no fence is needed for that. Where a PE sees on two paths what has arrived, the loop looks step by step.
#[test]
fn a_fetch_is_in_the_order_of_issue() {
    for races in BOTH {
        for profile in [Profile::Network, Profile::Nvlink] {
            let config = Config { profile, races, ..Config::pes(2) };
            assert_eq!(all_with(config, "atomic_beside_own_put", 0).1, set(&["[0, 7]"]), "{profile}");
        }
        let config = Config { profile: Profile::MixedFabric, nodes: 2, races, ..Config::pes(4) };
        assert_eq!(all_with(config, "atomic_behind_own_put", 0).1, set(&["[0, 7, 0, 0]"]));
    }
}

/// A quiet of another thread waits for no fetch that still finds its word in vain.
#[test]
fn a_quiet_does_not_wait_for_a_loop_that_fetches() {
    for races in BOTH {
        assert_eq!(all((2, races), "atomic_beside_quiet", 0).1, set(&["[0, 1]"]));
    }
}

/// A fence of another thread puts nothing before a fetch that was issued earlier, though it finds its word later.
#[test]
fn a_fence_does_not_hold_up_a_loop_that_fetches() {
    for races in BOTH {
        for thread in [0, 1] {
            assert_eq!(all((2, races), "atomic_beside_fence", thread).1, set(&["[0, 1]", "[0, 2]"]), "{thread} fences");
        }
    }
}

#[test]
fn a_fetch_of_an_int_compares_it_as_one() {
    for races in BOTH {
        assert_eq!(all((2, races), "atomic_of_an_int", 0), (1, set(&["[0, 1]"])));
    }
}

#[test]
fn a_test_of_several_words_may_look_at_one() {
    for races in BOTH {
        for what in ["all", "any", "some", "rest"] {
            assert_eq!(all((2, races), &format!("around_by_test_of_{what}"), 2), (1, set(&["[0, 3]"])), "{what}");
        }
    }
}

/// A test of all words is a wait for one after the other, as `wait_until_all` is.
#[test]
fn a_test_of_all_words_is_a_wait_for_all() {
    for (pes, rounds, sum) in [(2, 1, 1), (2, 2, 3), (3, 1, 2), (3, 2, 6)] {
        for name in ["all_by_wait", "all_by_test", "all_by_test_of_values"] {
            let sums = format!("{:?}", vec![sum; pes]);
            assert_eq!(all((pes, Races::Find), name, rounds), (1, set(&[&sums])), "{name} of {pes} PEs");
        }
    }
    for name in ["rounds_by_wait", "rounds_by_test"] {
        assert_eq!(all((3, Races::Find), name, 2), (1, set(&["[2, 2, 2]"])), "{name}");
    }
    for name in ["all_by_wait_without_fence", "all_by_test_without_fence"] {
        assert_eq!(all((3, Races::Find), name, 1).1, set(&["race"]), "{name}");
    }
    for races in BOTH {
        let without_fence = |how: &str| all((2, races), &format!("all_by_{how}_without_fence"), 1);
        assert_eq!(without_fence("test"), without_fence("wait"));
    }
}

/// Unlike a wait, a test looks at all words at once: that each of them was so at some time does not end the loop.
#[test]
fn a_test_of_all_words_looks_at_them_at_once() {
    for races in BOTH {
        assert_eq!(all((2, races), "all_at_once", 0).1, set(&["[0, 1]", "deadlock"]));
        assert_eq!(all((2, races), "all_at_once", 1).1, set(&["deadlock"]));
    }
}

/// Which of several words ends a loop depends on the order in which they come: it looks step by step.
#[test]
fn a_test_of_any_of_several_words_looks_step_by_step() {
    for races in BOTH {
        assert_eq!(all((2, races), "which_of_two", 0), (3, set(&["[0, 2]"])));
    }
}

/// What others can write is read in each round: such a loop looks step by step.
#[test]
fn what_a_test_asks_may_lie_where_others_write() {
    for races in BOTH {
        assert_eq!(all((2, races), "all_by_shared_status", 0), (3, set(&["[0, 1]"])));
    }
}
