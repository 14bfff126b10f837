//! Atomics that count, of whose old value a thread only asks whether it comes last, or first: the order of the others is no choice of a search, and tells
//! nobody anything.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use onesided::{Grid, Pe, Result, Source, args};
use onesided_sim::{Config, Explore, Races, Reduce, Sim, Simulation, Verdict};

use crate::hand_over::run;

const ARRIVALS: &str = include_str!("../ptx/kernels/arrivals.ptx");

/// Runs blocks of one thread on one PE, or one block of so many threads. What they leave in the words of the data.
fn program(name: &str, blocks: u32) -> impl Fn(&Pe<Sim>) -> Result<[i32; 4]> + '_ {
    move |pe| {
        let data = pe.alloc_zeroed::<i32>(64)?;
        let grid = if name.starts_with("threads_") { Grid::new(1, blocks) } else { Grid::new(blocks, 1).cooperative() };
        run(pe, &Source::ptx("arrivals.ptx", ARRIVALS), name, &grid, args![&data, blocks as i32])?;
        let left = [0, 1, 40, 41].map(|at| pe.read_one(data.at(at)));
        pe.free(data)?;
        let [count, other, seen, also] = left;
        Ok([count?, other?, seen?, also?])
    }
}

/// What all schedules show.
#[derive(Debug, PartialEq)]
struct Shown {
    classes: u64,
    left: BTreeSet<[i32; 4]>,
    races: bool,
}

/// Whether a run has a race, in global or in shared memory.
fn races(verdict: &Verdict) -> bool {
    !verdict.races.is_empty() || verdict.to_string().contains("race in shared memory")
}

fn explored(config: Config, name: &str, blocks: u32) -> Shown {
    let mut shown = Shown { classes: 0, left: BTreeSet::new(), races: false };
    let mut simulation = Simulation::new(config).unwrap();
    let explored = simulation.explore(Explore::All { limit: 10_000 }, program(name, blocks), |run| {
        let races = races(&run.verdict);
        shown.races |= races;
        assert!(races || run.is_ok(), "{name}: {}", run.verdict);
        shown.left.extend(run.results[0]);
        ControlFlow::<()>::Continue(())
    });
    let explored = explored.unwrap();
    assert!(explored.complete, "{name}: {explored:?}");
    assert_eq!(explored.redundant, 0, "{name}");
    shown.classes = explored.schedules;
    shown
}

#[test]
fn it_only_matters_who_comes_last() {
    for blocks in [2, 3, 8] {
        for name in ["last_by_add", "last_by_plus", "last_by_inc", "last_by_sub", "last_by_ref"] {
            let Shown { classes, left, races } = explored(Config::pes(1), name, blocks);
            assert!(!races, "{name}");
            assert_eq!(classes, u64::from(blocks), "{name}");
            assert!(left.iter().all(|left| left[2] == 7 * blocks as i32), "{name}: {left:?}");
        }
    }
}

#[test]
fn threads_of_a_block_count_in_its_memory() {
    for threads in [2, 3, 8] {
        for name in ["threads_by_add", "threads_by_inc", "threads_leave"] {
            for name in [name.to_string(), format!("{name}_in_global")] {
                let Shown { classes, left, races } = explored(Config::pes(1), &name, threads);
                assert!(!races, "{name}");
                assert_eq!(classes, u64::from(threads), "{name}");
                assert!(left.iter().all(|left| left[2] == 7 * threads as i32), "{name}: {left:?}");
            }
        }
    }
    for name in ["threads_last_or_first", "threads_last_or_first_in_global"] {
        let Shown { classes, races, .. } = explored(Config::pes(1), name, 3);
        assert_eq!((classes, races), (6, false), "{name}");
    }
    let Shown { classes, races, .. } = explored(Config::pes(1), "threads_second_reads", 2);
    assert_eq!((classes, races), (4, false));
}

#[test]
fn who_is_not_the_last_knows_of_nobody() {
    for (name, blocks) in [
        ("too_early", 3),
        ("others_read", 3),
        ("last_without_fence", 2),
        ("threads_too_early", 3),
        ("threads_too_early_in_global", 3),
        ("threads_others_read", 3),
        ("threads_others_read_in_global", 3),
        ("threads_without_fence", 2),
        ("threads_without_fence_in_global", 2),
    ] {
        assert!(explored(Config::pes(1), name, blocks).races, "{name}");
        // also in the order that happens to be right
        let mut in_order = Simulation::new(Config::pes(1)).unwrap();
        let run = in_order.run(program(name, blocks)).unwrap();
        assert!(races(&run.verdict), "{name}: {}", run.verdict);
    }
}

#[test]
fn who_is_not_the_first_knows_of_the_first() {
    let Shown { classes, races, .. } = explored(Config::pes(1), "second_reads", 2);
    assert!(!races);
    assert_eq!(classes, 2);
}

#[test]
fn who_looks_at_more_sees_all_orders() {
    let Shown { classes, races, .. } = explored(Config::pes(1), "last_or_first", 3);
    assert!(!races);
    assert_eq!(classes, 6);
}

#[test]
fn the_word_is_used_again() {
    let Shown { classes, left, races } = explored(Config::pes(1), "two_phases", 3);
    assert!(!races);
    assert_eq!(classes, 9, "who comes last in each phase");
    assert_eq!(left.iter().map(|left| left[2]).collect::<BTreeSet<_>>(), BTreeSet::from([6]));
}

/// The orders that are left out show nothing that the others do not show.
#[test]
fn nothing_is_lost() {
    for races in [Races::Find, Races::Note] {
        for name in [
            "last_by_add",
            "last_by_inc",
            "last_by_sub",
            "last_by_ref",
            "last_without_fence",
            "too_early",
            "last_or_first",
            "others_read",
            "second_reads",
            "two_phases",
            "by_two",
            "one_looks",
            "threads_by_add",
            "threads_leave_in_global",
            "threads_too_early_in_global",
            "threads_last_or_first",
            "threads_others_read",
            "threads_one_stores",
        ] {
            for blocks in [2, 3, 4] {
                if blocks == 4 && name == "two_phases" {
                    continue; // 576 orders
                }
                let of = |reduce| explored(Config { reduce, races, ..Config::pes(1) }, name, blocks);
                let (all, few) = (of(Reduce::Nothing), of(Reduce::Everything));
                assert_eq!((few.left, few.races), (all.left, all.races), "{name}, {blocks} blocks, {races:?}");
                assert!(few.classes <= all.classes, "{name}, {blocks} blocks, {races:?}");
            }
        }
    }
}
