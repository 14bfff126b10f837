//! Locks that kernels take by calls, `while (nvshmem_uint64_atomic_compare_swap(lock, 0, 1, pe) != 0);`: waits, as locks of CUDA's atomics are.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use onesided::{Grid, Pe, Result, Source, args};
use onesided_sim::{Config, EventKind, Explore, Profile, Races, Sim, Simulation};

use crate::hand_over::{outcomes, run, set};

const SWAPS: &str = include_str!("../ptx/kernels/swaps.ptx");

/// Runs a kernel of a thread on each PE. What PE 0 has counted, and how often each PE has tried in vain, if the kernel says so.
fn launch(name: &str, rounds: i32) -> impl Fn(&Pe<Sim>) -> Result<[i32; 2]> + '_ {
    let threads = if name == "beside_fence" { 2 } else { 1 };
    move |pe| {
        let (data, lock) = (pe.alloc_zeroed::<i32>(3)?, pe.alloc_zeroed::<u64>(1)?);
        run(
            pe,
            &Source::ptx("swaps.ptx", SWAPS),
            name,
            &Grid::new(1, threads).collective(),
            args![&data, &lock, rounds],
        )?;
        let seen = [pe.read_one(data.at(0))?, pe.read_one(data.at(2))?];
        pe.free(lock)?;
        pe.free(data)?;
        Ok(seen)
    }
}

/// Classes, and what PE 0 has counted or how a run ends, in all schedules. Random ones have nothing else.
#[track_caller]
fn all(config: Config, name: &str, rounds: i32) -> (u64, BTreeSet<String>) {
    outcomes(&config, launch(name, rounds), |run| run.results[0].map_or(0, |[counted, _]| counted).to_string())
}

/// Nobody else's order matters: of two PEs that each take the lock twice, there are six.
#[test]
fn a_lock_has_a_class_for_each_order_in_which_it_is_taken() {
    for races in [Races::Find, Races::Note] {
        for name in ["by_compare_swap", "by_swap", "by_name"] {
            let of = |pes, rounds| all(Config { races, ..Config::pes(pes) }, name, rounds);
            assert_eq!(of(2, 1), (2, set(&["2"])), "{name}");
            assert_eq!(of(3, 1), (6, set(&["3"])), "{name}");
            assert_eq!(of(2, 2), (6, set(&["4"])), "{name}");
        }
        assert_eq!(all(Config { races, ..Config::pes(3) }, "in_turn", 0), (1, set(&["0"])));
    }
}

/// No load reaches the other node: the calls do.
#[test]
fn a_lock_on_another_node_is_waited_for() {
    let config = Config { nodes: 2, ..Config::pes(2) };
    assert_eq!(all(config, "by_compare_swap", 1), (2, set(&["2"])));
}

#[test]
fn a_lock_orders_only_what_is_done_under_it() {
    assert_eq!(all(Config::pes(2), "too_late", 1).1, set(&["race"]));
}

#[test]
fn what_is_written_under_a_lock_is_completed_before_it_is_given_back() {
    for name in ["by_compare_swap_without_quiet", "by_swap_without_quiet"] {
        assert_eq!(all(Config::pes(2), name, 1).1, set(&["race"]), "{name}");
        let noted = all(Config { races: Races::Note, ..Config::pes(2) }, name, 1);
        assert_eq!(noted.1, set(&["1", "2"]), "{name}");
        // there everything of a PE arrives in the order of its issue
        let config = Config { profile: Profile::Nvlink, ..Config::pes(2) };
        assert_eq!(all(config, name, 1), (2, set(&["2"])), "{name}");
    }
}

#[test]
fn a_lock_that_is_not_given_back_is_a_deadlock_at_its_call() {
    assert_eq!(all(Config::pes(2), "kept", 0), (2, set(&["deadlock"])));
    let in_order = Simulation::new(Config::pes(2)).unwrap().run(launch("kept", 0)).unwrap().verdict.to_string();
    assert!(in_order.contains("kept: block 0, thread 0 polls buf1+0 on PE 0, found 1, at swaps.cu:37"), "{in_order}");
    let mut last = String::new();
    let mut simulation = Simulation::new(Config::pes(2)).unwrap();
    let explored = simulation.explore(Explore::All { limit: 2 }, launch("kept", 0), |run| {
        let text = run.verdict.to_string();
        last = text.lines().find(|line| line.contains("swaps.cu")).unwrap_or_default().to_string();
        ControlFlow::<()>::Continue(())
    });
    assert!(explored.unwrap().complete);
    assert!(last.contains("compare_swap") && last.contains("buf1"), "{last}");
}

/// A trace has what each swap has found and left, so nobody says that nothing came to the lock.
#[test]
fn a_trace_has_the_swaps_that_take_a_lock() {
    let mut taken = BTreeSet::new();
    let all = Explore::All { limit: 2 };
    for name in ["by_name", "kept"] {
        let explored = Simulation::new(Config::pes(2)).unwrap().explore(all, launch(name, 1), |run| {
            let again = Simulation::new(Config::pes(2)).unwrap().reproduce(run, launch(name, 1)).unwrap();
            assert!(!again.verdict.to_string().contains("nothing was sent to it"), "{}", again.verdict);
            let trace = again.trace.as_ref().unwrap();
            let is_swap = |of: usize| trace[of].op().is_some_and(|op| op.name() == "atomic_compare_swap");
            let swaps = trace
                .iter()
                .filter(|event| matches!(event.kind, EventKind::Delivered { .. }) && event.of.is_some_and(is_swap));
            taken.insert(swaps.map(|event| event.moved.as_ref().unwrap().to_string()).collect::<Vec<_>>().join(", "));
            ControlFlow::<()>::Continue(())
        });
        assert!(explored.unwrap().complete);
    }
    let taken: Vec<&str> = taken.iter().map(String::as_str).collect();
    assert_eq!(taken, ["0 -> 1", "0 -> 1, 0 -> 2", "0 -> 2, 0 -> 1"]);
}

/// When a swap is issued matters beside a fence of another thread, though it takes the word only later.
#[test]
fn a_fence_of_another_thread_comes_before_the_swap_or_behind_it() {
    let mut seen = BTreeSet::new();
    let mut simulation = Simulation::new(Config { races: Races::Note, ..Config::pes(2) }).unwrap();
    let explored = simulation.explore(Explore::All { limit: 1_000 }, launch("beside_fence", 0), |run| {
        assert!(run.is_ok(), "{}", run.verdict);
        seen.insert(run.results[1].map(|[_, seen]| seen));
        ControlFlow::<()>::Continue(())
    });
    let explored = explored.unwrap();
    assert!(explored.complete && explored.redundant == 0, "{explored:?}");
    assert_eq!(seen, BTreeSet::from([Some(0), Some(7)]));
    // behind the fence there is one; before it, the put arrives before the look or behind it
    assert_eq!(explored.schedules, 3);
}

/// A loop that counts its attempts does more than wait.
#[test]
fn attempts_that_are_counted_are_made() {
    let mut most = 0;
    let mut simulation = Simulation::new(Config::pes(2)).unwrap();
    let explored = simulation.explore(Explore::random(50, 1), launch("counted", 1), |run| {
        assert!(run.is_ok(), "{}", run.verdict);
        most = run.results.iter().flatten().map(|[_, tried]| *tried).fold(most, i32::max);
        ControlFlow::<()>::Continue(())
    });
    explored.unwrap();
    assert!(most > 1, "{most}");
}
