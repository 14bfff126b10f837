//! Loops of kernels that look now and then at a word by which they are told to give up: waits.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use onesided::{Grid, Pe, Result, Source, args};
use onesided_sim::{Config, Explore, Sim, Simulation, check_random, prove};

use crate::hand_over::run;

const ABORTS: &str = include_str!("../ptx/kernels/aborts.ptx");

/// One thread on each PE, which looks at the other word each time that it has looked so often. What it has seen.
fn runs(name: &str, most: u32) -> impl Fn(&Pe<Sim>) -> Result<u32> + '_ {
    move |pe| {
        let [flags, aborts, out] = [pe.alloc_zeroed::<u32>(2)?, pe.alloc_zeroed(1)?, pe.alloc_zeroed(1)?];
        let (source, grid) = (Source::ptx("aborts.ptx", ABORTS), Grid::new(1, 1).collective());
        run(pe, &source, name, &grid, args![&flags, &aborts, &out, most])?;
        let seen = pe.read_one(&out)?;
        [flags, aborts, out].into_iter().try_for_each(|words| pe.free(words))?;
        Ok(seen)
    }
}

/// How many classes there are for so many PEs, and what PE 1 has seen in them, or what was wrong.
fn classes(name: &str, most: u32, pes: usize) -> (u64, BTreeSet<String>) {
    let mut seen = BTreeSet::new();
    let explored =
        Simulation::new(Config::pes(pes)).unwrap().explore(Explore::All { limit: 3_000 }, runs(name, most), |run| {
            seen.insert(match run.is_ok() {
                true => run.results[1].expect("it has finished").to_string(),
                false => run.verdict.to_string(),
            });
            ControlFlow::<()>::Continue(())
        });
    let explored = explored.unwrap();
    assert!(explored.complete, "{name}: {} classes", explored.schedules);
    (explored.schedules, seen)
}

#[test]
fn whom_nobody_tells_to_give_up_waits() {
    for (name, seen) in [("rounds", "3"), ("tells_its_block", "2")] {
        for most in [1, 2, 10_000] {
            for pes in [2, 3, 4] {
                let found = classes(name, most, pes);
                assert_eq!(found, (1, BTreeSet::from([seen.to_string()])), "{name} on {pes} PEs, {most} looks");
            }
        }
        check_random(3, |pe| runs(name, 100)(pe).map(drop));
        assert_eq!(prove(2, |pe| runs(name, 10_000)(pe).map(drop)).schedules, 1, "{name}");
    }
}

#[test]
fn who_is_told_to_give_up_does() {
    for (most, orders) in [(1, 6), (2, 8), (5, 17)] {
        let seen = BTreeSet::from(["1", "77"].map(String::from));
        assert_eq!(classes("told", most, 2), (orders, seen), "{most} looks: which comes first, nobody knows");
        assert_eq!(classes("told_only", most, 2), (3, BTreeSet::from(["77".into()])), "{most} looks");
    }
}

/// These loops look alike and are none: how often they have looked says what they do.
#[test]
fn how_often_a_loop_has_looked_may_matter() {
    for most in [1, 2, 5] {
        let seen = BTreeSet::from(["1", "77"].map(String::from));
        assert_eq!(classes("loses_patience", most, 2), (u64::from(most) + 1, seen), "{most} looks");
    }
    for (most, orders) in [(1, 3), (2, 5), (5, 14)] {
        let seen = (0..most).map(|looks| looks.to_string()).collect();
        assert_eq!(classes("tells_its_looks", most, 2), (orders, seen), "{most} looks");
    }
}
