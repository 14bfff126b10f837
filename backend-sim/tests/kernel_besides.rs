//! Loops of kernels that look at more than the word that ends them, such as packets, and flags by which they are told to give up: waits.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use onesided::{Grid, Pe, Result, Source, args};
use onesided_sim::{Choices, Config, Explore, Reduce, Schedule, Sim, Simulation, check_random, prove};

const BESIDES: &str = include_str!("../ptx/kernels/besides.ptx");

/// One thread on each PE. What it has seen.
fn runs(name: &str) -> impl Fn(&Pe<Sim>) -> Result<i32> + '_ {
    move |pe| {
        let words = [pe.alloc_zeroed::<i32>(3)?, pe.alloc_zeroed::<i32>(8)?, pe.alloc_zeroed::<i32>(1)?];
        let (module, stream) = (pe.module(&Source::ptx("besides.ptx", BESIDES))?, pe.stream()?);
        let [flags, data, out] = &words;
        // SAFETY: the kernels take three pointers to numbers, of so many elements.
        unsafe {
            let kernel = module.kernel(name)?;
            pe.on(&stream).launch(&kernel, &Grid::new(1, 1).collective(), args![flags, data, out])?
        };
        pe.on(&stream).barrier_all()?;
        pe.synchronize(&stream)?;
        pe.write(flags.slice(1..2), &[5])?; // behind all kernels
        let seen = pe.read_one(out)?;
        words.into_iter().try_for_each(|words| pe.free(words))?;
        Ok(seen)
    }
}

/// How many classes there are for so many PEs, and what PE 1 has seen in them, or what was wrong.
fn classes(name: &str, pes: usize) -> (u64, BTreeSet<String>) {
    let mut seen = BTreeSet::new();
    let explored =
        Simulation::new(Config::pes(pes)).unwrap().explore(Explore::All { limit: 1_000 }, runs(name), |run| {
            seen.insert(match run.is_ok() {
                true => run.results[1].expect("it has finished").to_string(),
                false => run.verdict.to_string(),
            });
            ControlFlow::<()>::Continue(())
        });
    let explored = explored.unwrap();
    assert!(explored.complete, "{name}");
    (explored.schedules, seen)
}

#[test]
fn a_loop_that_looks_at_several_words_has_one_class() {
    for (name, seen) in [("packets", "99"), ("strong_beside", "2"), ("rounds", "3")] {
        for pes in [2, 3, 4] {
            assert_eq!(classes(name, pes), (1, BTreeSet::from([seen.to_string()])), "{name} on {pes} PEs");
        }
        check_random(3, |pe| runs(name)(pe).map(drop));
    }
    assert_eq!(prove(2, |pe| runs("packets")(pe).map(drop)).schedules, 1);
}

#[test]
fn a_flag_says_nothing_of_the_other_words_of_its_packet() {
    let seen = ["0", "10", "20", "30"].map(String::from);
    assert_eq!(classes("torn", 2), (4, BTreeSet::from(seen)));
}

#[test]
fn a_lock_that_may_be_given_up_has_a_class_for_each_order() {
    for (pes, orders) in [(2, 2), (3, 6), (4, 24)] {
        assert_eq!(classes("locked", pes), (orders, BTreeSet::from(["1".into()])), "{pes} PEs");
    }
}

#[test]
fn what_each_round_looks_at_besides_races() {
    let (_, seen) = classes("plain_beside", 2);
    let [race] = Vec::from_iter(seen).try_into().unwrap();
    assert!(race.contains("data race") && race.contains("besides.cu:58"), "{race}");
    assert!(race.contains("besides.cu:63"), "{race}");
}

#[test]
fn who_is_told_to_give_up_does() {
    assert_eq!(classes("told_only", 2), (3, BTreeSet::from(["77".into()])), "it looks step by step");
    let (_, seen) = classes("told", 2);
    assert_eq!(seen, BTreeSet::from(["1".into(), "77".into()]), "which comes first, nobody knows");
    let mut drawn = BTreeSet::new();
    let explored = Simulation::new(Config::pes(2)).unwrap().explore(Explore::random(200, 1), runs("told"), |run| {
        assert!(run.is_ok(), "{}", run.verdict);
        drawn.insert(run.results[1].expect("it has finished"));
        ControlFlow::<()>::Continue(())
    });
    assert_eq!(explored.unwrap().schedules, 200);
    assert_eq!(drawn, BTreeSet::from([1, 77]));
}

/// A schedule of a proof is replayed with the same steps, whether somebody is told to give up in the program or not.
#[test]
fn a_schedule_is_replayed_in_the_same_steps() {
    use Reduce::{Counters, Everything};
    for (name, reduce, stepwise) in [
        ("rounds", Everything, false),
        ("locked", Everything, false),
        ("told", Everything, true),
        ("locked", Counters, true),
    ] {
        let mut simulation = Simulation::new(Config { reduce, ..Config::pes(2) }).unwrap();
        let mut schedules = Vec::new();
        let explored = simulation.explore(Explore::All { limit: 100 }, runs(name), |run| {
            schedules.push((run.schedule.clone(), run.results.clone()));
            ControlFlow::<()>::Continue(())
        });
        assert!(explored.unwrap().complete, "{name}");
        for (schedule, results) in schedules {
            let printed = schedule.to_string();
            assert_eq!(matches!(schedule.choices, Choices::Stepwise(_)), stepwise, "{printed}");
            assert_eq!(printed.parse::<Schedule>().unwrap(), schedule);
            let again = Simulation::new(Config::pes(2)).unwrap().replay(&schedule, runs(name)).unwrap();
            assert!(again.is_ok(), "{name}: {printed}: {}", again.verdict);
            assert_eq!(again.results, results, "{name}: {printed}");
        }
    }
}

#[test]
fn who_waits_for_what_nobody_does_is_in_a_deadlock() {
    let (classes, seen) = classes("nobody", 2);
    let [deadlock] = Vec::from_iter(seen).try_into().unwrap();
    assert_eq!(classes, 1);
    assert!(deadlock.contains("deadlock"), "{deadlock}");
    assert!(deadlock.contains("waits for buf0+0 (made at"), "{deadlock}");
    assert!(deadlock.contains("> 0, found 0 (i32); or for buf0+4 != 0"), "{deadlock}");
}
