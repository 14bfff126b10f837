//! Ways to draw random schedules: each comes back from its text, keeps its promise, and is told by how many classes it visits.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use crate::common::{ENOUGH, tickets, visit_all};
use onesided::{Cmp, Pe, Result};
use onesided_sim::{Config, Explore, Explored, Races, Run, Schedule, Sim, Simulation, Strategy};

/// A program, with its number of PEs.
type Small = (usize, fn(&Pe<Sim>) -> Result<u64>);

const STRATEGIES: [Strategy; 4] =
    [Strategy::Plain, Strategy::Pos, Strategy::Pct { depth: 1 }, Strategy::Pct { depth: 4 }];

/// PE 1 fetches what PE 0 sets after 30 other steps: two classes, of which one has nearly all schedules.
fn late(pe: &Pe<Sim>) -> Result<u64> {
    let words = pe.alloc_zeroed::<u64>(2)?;
    let mut seen = 0;
    if pe.my_pe() == 0 {
        for i in 0..30 {
            pe.write(words.at(1), &[i])?;
        }
        pe.host().atomic_set(words.at(0), 1, 0)?;
    } else {
        seen = pe.host().atomic_fetch(words.at(0), 0)?;
    }
    pe.free(words)?;
    Ok(seen)
}

/// Puts in pieces, on a stream and of the host, and a reduction.
fn mixed(pe: &Pe<Sim>) -> Result<u64> {
    let (from, to) = (pe.alloc_zeroed::<u64>(8)?, pe.alloc_zeroed::<u64>(8)?);
    let next = (pe.my_pe() + 1) % pe.n_pes();
    let stream = pe.stream()?;
    pe.on(&stream).put(&to, &from, next)?;
    pe.on(&stream).quiet()?;
    pe.host().put_nbi(to.slice(0..3), from.slice(0..3), next)?;
    pe.host().p(to.at(1), 7, next)?;
    pe.synchronize(&stream)?;
    pe.host().barrier_all()?;
    let seen = pe.read(to.at(1))?[0];
    pe.free(to)?;
    pe.free(from)?;
    Ok(seen)
}

/// What came out of a series, each with the number of schedules, and how much was explored.
fn series((pes, program): Small, strategy: Strategy, schedules: u64) -> (BTreeMap<Vec<u64>, u64>, Explored) {
    let mut simulation = Simulation::new(Config::pes(pes)).unwrap();
    simulation.count_classes();
    let mut seen = BTreeMap::new();
    let explored = simulation.explore(Explore::Random { schedules, seed: 0, strategy }, program, |run| {
        *seen.entry(run.results.iter().flatten().copied().collect()).or_insert(0) += 1;
        ControlFlow::Continue(())
    });
    (seen, explored.unwrap())
}

#[test]
fn every_schedule_of_every_strategy_is_replayed_from_its_text() {
    for strategy in STRATEGIES {
        for (pes, program) in [(3, tickets as fn(&Pe<Sim>) -> Result<u64>), (2, late), (3, mixed)] {
            let mut simulation = Simulation::new(Config::pes(pes)).unwrap();
            let mut visited = Vec::new();
            let how = Explore::Random { schedules: 30, seed: 5, strategy };
            let explored = simulation.explore(how, program, |run: &Run<u64>| {
                visited.push((run.schedule.to_string(), run.results.clone(), run.steps));
                ControlFlow::Continue(())
            });
            assert_eq!(explored.unwrap().classes, None, "nobody wanted to know");
            for (text, results, steps) in visited {
                let schedule: Schedule = text.parse().unwrap();
                let again = simulation.replay(&schedule, program).unwrap();
                assert_eq!((again.results, again.steps), (results, steps), "{text}");
                let recorded = again.schedule.to_string().parse().unwrap();
                simulation.replay(&recorded, program).unwrap(); // with its fingerprint
            }
        }
    }
}

/// Seeds lead to the same schedules in every version.
#[test]
fn the_schedules_of_a_seed_are_fixed() {
    let orders = |strategy| {
        let mut simulation = Simulation::new(Config::pes(4)).unwrap();
        let mut orders = Vec::new();
        let how = Explore::Random { schedules: 6, seed: 42, strategy };
        let explored = simulation.explore(how, tickets, |run| {
            orders
                .push(run.results.iter().flatten().map(|ticket| char::from(b'0' + *ticket as u8)).collect::<String>());
            ControlFlow::Continue(())
        });
        explored.unwrap();
        orders.join(" ")
    };
    insta::assert_snapshot!(STRATEGIES.map(|strategy| format!("{strategy}: {}", orders(strategy))).join("\n"));
}

/// Plain chance nearly never lets one agent go ahead by 30 steps. Priorities of steps do so in one of some 32 schedules, because
/// only the steps of that agent are drawn again. Priorities of agents and targets do so in one of four: the agent comes before
/// the target, and then either transfer first.
#[test]
fn strategies_reach_what_plain_chance_hardly_does() {
    let late_ones = |strategy| {
        let (seen, explored) = series((2, late), strategy, 2000);
        assert_eq!(explored.schedules, 2000);
        seen.get(&vec![0, 1]).copied().unwrap_or(0)
    };
    let [plain, pos, pct, _] = STRATEGIES.map(late_ones);
    assert!(plain < 20, "{plain}");
    assert!((20..150).contains(&pos), "{pos}");
    assert!((400..600).contains(&pct), "{pct}");
    // with n = 3 agents and targets and k steps, a bug of depth 2 is found with a probability of at least 1/(n k)
    let deeper = late_ones(Strategy::Pct { depth: 2 });
    assert!(deeper > 2000 / (3 * 40), "{deeper}");
}

/// Where every step depends on every other, all priorities are drawn again after each: that one PE makes all of its eight steps
/// first has a probability of some 2^-8. If priorities of others stayed, it would be 1/9.
#[test]
fn partial_order_sampling_draws_dependent_steps_again() {
    let updates = |pe: &Pe<Sim>| {
        let words = pe.alloc_zeroed::<u64>(2)?;
        let mut last = 0;
        for _ in 0..8 {
            last = pe.host().atomic_fetch_inc(words.at(0), 0)?;
        }
        pe.free(words)?;
        Ok(last)
    };
    let (seen, _) = series((2, updates), Strategy::Pos, 2000);
    let first = seen.get(&vec![7, 15]).copied().unwrap_or(0);
    assert!(first < 30, "{first}");
    // the same with words of their own: nothing depends, and each order comes as often as by priorities that stay
    let stores = |pe: &Pe<Sim>| {
        let words = pe.alloc_zeroed::<u64>(2)?;
        for i in 0..8 {
            pe.write(words.at(1), &[i])?;
        }
        let order = pe.host().atomic_fetch_inc(words.at(0), 0)?;
        pe.free(words)?;
        Ok(order)
    };
    let (seen, explored) = series((2, stores), Strategy::Pos, 2000);
    assert_eq!((explored.classes, seen.len()), (Some(2), 2));
}

/// A schedule that gives priority to an agent that polls does so only for a while.
#[test]
fn a_loop_that_polls_ends_under_every_strategy() {
    let poll = |pe: &Pe<Sim>| {
        let word = pe.alloc_zeroed::<u64>(1)?;
        match pe.my_pe() {
            0 => while pe.host().signal_fetch(word.signal(0))? == 0 {},
            _ => pe.host().signal_op(word.signal(0), 1, onesided::SignalOp::Set, 0)?,
        }
        pe.free(word)
    };
    for strategy in STRATEGIES {
        let mut simulation = Simulation::new(Config::pes(2)).unwrap();
        let how = Explore::Random { schedules: 200, seed: 0, strategy };
        let explored = simulation.explore(how, poll, |run| {
            assert!(run.is_ok(), "{strategy}: {}", run.verdict);
            ControlFlow::Continue(())
        });
        let explored = explored.unwrap();
        assert!(explored.steps < 200 * 5000, "{strategy}: {explored:?}");
    }
}

/// Who polls by calls of which each goes to another PE and back acts by turns with its own transfers, and with others that poll.
#[test]
fn a_spin_lock_is_taken_under_every_strategy() {
    let lock = |pe: &Pe<Sim>| {
        let words = pe.alloc_zeroed::<u64>(2)?;
        for _ in 0..2 {
            while pe.host().atomic_compare_swap(words.at(0), 0, 1, 0)? != 0 {}
            let found = pe.host().atomic_fetch(words.at(1), 0)?;
            pe.host().atomic_set(words.at(1), found + 1, 0)?;
            pe.host().quiet()?;
            pe.host().atomic_set(words.at(0), 0, 0)?;
            pe.host().quiet()?;
        }
        pe.host().barrier_all()?;
        let sum = pe.host().atomic_fetch(words.at(1), 0)?;
        pe.free(words)?;
        Ok(sum)
    };
    for (pes, strategy) in [2, 3, 4].into_iter().flat_map(|pes| STRATEGIES.map(|strategy| (pes, strategy))) {
        let mut simulation = Simulation::new(Config { max_steps: Some(20_000), ..Config::pes(pes) }).unwrap();
        let how = Explore::Random { schedules: 300, seed: 0, strategy };
        let explored = simulation.explore(how, lock, |run| {
            assert!(run.is_ok(), "{strategy}, {pes} PEs: {}", run.verdict);
            assert!(run.results.iter().all(|sum| *sum == Some(2 * pes as u64)));
            ControlFlow::Continue(())
        });
        assert!(explored.unwrap().steps < 300 * 5_000, "{strategy}, {pes} PEs");
    }
}

/// Random schedules are never of more classes than there are, and of all of them if there are few.
#[test]
fn classes_are_those_of_the_exhaustive_search() {
    for (pes, program, enough) in [(4, tickets as fn(&Pe<Sim>) -> Result<u64>, 1000), (2, late, 3000)] {
        let all = visit_all(Config::pes(pes), program, |_| {}).schedules;
        for strategy in STRATEGIES {
            let (_, few) = series((pes, program), strategy, 4);
            assert!(few.classes.is_some_and(|classes| (1..=4.min(all)).contains(&classes)), "{strategy}: {few:?}");
            let (_, many) = series((pes, program), strategy, enough);
            assert_eq!(many.classes, Some(all), "{strategy}");
        }
    }
    // additions to a counter commute, and so they do for those who count classes
    let counter = |pe: &Pe<Sim>| {
        let words = pe.alloc_zeroed::<u64>(1)?;
        pe.host().atomic_add(&words, 1, 0)?;
        if pe.my_pe() == 0 {
            pe.host().signal_wait_until(words.signal(0), Cmp::Ge, 2)?;
        }
        pe.host().barrier_all()?;
        pe.free(words)?;
        Ok(0)
    };
    for (races, program, classes) in [
        (Races::Find, counter as fn(&Pe<Sim>) -> Result<u64>, 4),
        (Races::Note, counter, 4),
        (Races::Find, tickets, 6),
        (Races::Note, tickets, 6),
    ] {
        let mut simulation = Simulation::new(Config { races, ..Config::pes(3) }).unwrap();
        simulation.count_classes();
        let mut explore = |how| simulation.explore(how, program, |_| ControlFlow::Continue(())).unwrap();
        assert_eq!(explore(Explore::All { limit: ENOUGH }).schedules, classes, "{races:?}");
        assert_eq!(explore(Explore::random(500, 0)).classes, Some(classes), "{races:?}");
    }
    // many classes: only the number of different ones, which is less than that of schedules where some come twice
    let mut simulation = Simulation::new(Config::pes(3)).unwrap();
    let all = simulation.explore(Explore::All { limit: ENOUGH }, mixed, |_| ControlFlow::Continue(())).unwrap();
    assert!(all.complete, "{all:?}");
    for strategy in STRATEGIES {
        let (_, some) = series((3, mixed), strategy, 500);
        let classes = some.classes.expect("they were counted");
        assert!(classes > 50 && classes <= all.schedules.min(500), "{strategy}: {classes} of {}", all.schedules);
    }
}
