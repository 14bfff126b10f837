//! A search on several cores has the result of one on a single core: each schedule, in the same order, and every count.

use std::ops::ControlFlow;

use crate::common::tickets;
use onesided::{Cmp, Pe, Result, SignalOp, expect_eq};
use onesided_sim::{
    Bound, Budget, Config, Effort, Enough, Explore, Explored, Ordering, Races, Sim, Simulation, Strategy, VerdictKind,
    Weaker, robustness,
};

type Program = fn(&Pe<Sim>) -> Result<u64>;

/// Tickets, then signals to whoever waits for all: a search assumes that words are counters, and finds some are not.
fn served(pe: &Pe<Sim>) -> Result<u64> {
    let words = pe.alloc_zeroed::<u64>(3)?;
    let mut seen = 0;
    if pe.my_pe() == 0 {
        pe.host().signal_wait_until(words.signal(1), Cmp::Ge, 1)?;
        seen = pe.host().atomic_fetch(words.at(0), 0)?;
        pe.host().signal_wait_until(words.signal(2), Cmp::Eq, pe.n_pes() as u64 - 1)?;
    } else {
        seen += pe.host().atomic_fetch_inc(words.at(0), 0)?;
        pe.host().signal_op(words.signal(1), 1, SignalOp::Add, 0)?;
        pe.host().signal_op(words.signal(2), 1, SignalOp::Add, 0)?;
    }
    pe.free(words)?;
    Ok(seen)
}

/// A spin lock: polls are left out, or tried.
fn locked(pe: &Pe<Sim>) -> Result<u64> {
    let words = pe.alloc_zeroed::<u64>(2)?;
    while pe.host().atomic_compare_swap(words.at(0), 0, 1, 0)? != 0 {}
    let mine = pe.host().atomic_fetch_inc(words.at(1), 0)?;
    pe.host().atomic_set(words.at(0), 0, 0)?;
    pe.free(words)?;
    Ok(mine)
}

/// Puts on a stream and of the host, in pieces, and racing ones.
fn racy(pe: &Pe<Sim>) -> Result<u64> {
    let (from, to) = (pe.alloc_zeroed::<u64>(2)?, pe.alloc_zeroed::<u64>(2)?);
    let next = (pe.my_pe() + 1) % pe.n_pes();
    let stream = pe.stream()?;
    pe.on(&stream).put(&to, &from, next)?;
    pe.on(&stream).quiet()?;
    pe.host().p(to.at(1), 7, next)?;
    pe.synchronize(&stream)?;
    pe.host().sync_all()?;
    let seen = pe.read(to.at(1))?[0];
    pe.host().barrier_all()?;
    pe.free(to)?;
    pe.free(from)?;
    Ok(seen)
}

/// Fails where the second ticket is PE 0's, and hangs where the third is.
fn fails(pe: &Pe<Sim>) -> Result<u64> {
    let words = pe.alloc_zeroed::<u64>(2)?;
    let mine = pe.host().atomic_fetch_inc(words.at(0), 0)?;
    if pe.my_pe() == 0 {
        expect_eq(mine == 1, false, "another ticket")?;
        if mine == 2 {
            pe.host().signal_wait_until(words.signal(1), Cmp::Eq, 1)?;
        }
    }
    pe.free(words)?;
    Ok(mine)
}

/// Everything that a visitor sees, and the result.
fn visited(
    (pes, program): (usize, Program),
    races: Races,
    how: Explore,
    cores: Option<usize>,
    (budget, most): (Budget, usize),
) -> (Vec<String>, Explored) {
    let mut simulation = Simulation::new(Config { races, pieces: 2, ..Config::pes(pes) }).unwrap();
    simulation.count_classes();
    simulation.set_budget(budget);
    let outlook = simulation.outlook();
    let mut seen = Vec::new();
    let mut visit = |run: &onesided_sim::Run<u64>| {
        let (outcome, estimated) = (run.verdict.to_string(), outlook.look().estimated);
        seen.push(format!("{} {:?} {} {outcome} {estimated:?}", run.schedule, run.results, run.steps));
        if seen.len() < most { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    };
    let explored = match cores {
        None => simulation.explore(how, program, &mut visit),
        cores => simulation.on_cores(cores).explore(how, program, &mut visit),
    };
    (seen, explored.unwrap())
}

#[track_caller]
fn the_same_on_any_number(what: (usize, Program), races: Races, how: Explore, limits: (Budget, usize)) -> Explored {
    let (alone, explored) = visited(what, races, how, None, limits);
    for cores in [1, 2, 3] {
        let (seen, result) = visited(what, races, how, Some(cores), limits);
        let differ = alone.iter().zip(&seen).position(|(alone, seen)| alone != seen);
        assert_eq!(differ.map(|at| (&alone[at], &seen[at])), None, "on {cores} cores");
        assert_eq!((seen.len(), result), (alone.len(), explored), "on {cores} cores");
    }
    explored
}

const FREE: (Budget, usize) = (Budget { time: None, memory: None }, usize::MAX);

#[test]
fn all_schedules_are_visited_in_the_order_of_one_core() {
    for (what, proof, outcomes) in [
        ((4, tickets as Program), 24, 24),
        ((3, served), 0, 0),
        ((2, locked), 0, 0),
        ((2, racy), 0, 0),
        ((3, fails), 0, 0),
    ] {
        for (races, classes) in [(Races::Find, proof), (Races::Note, outcomes)] {
            let explored = the_same_on_any_number(what, races, Explore::All { limit: 100_000 }, FREE);
            assert!(explored.bound.is_none() && explored.schedules > 1, "{explored:?}");
            assert!(classes == 0 || explored.schedules == classes);
        }
    }
}

#[test]
fn random_schedules_are_visited_in_the_order_of_one_core() {
    for strategy in [Strategy::Plain, Strategy::Pos, Strategy::Pct { depth: 3 }] {
        for what in [(4, tickets as Program), (3, served), (2, racy), (3, fails)] {
            for races in [Races::Find, Races::Note] {
                let how = Explore::Random { schedules: 150, seed: 3, strategy };
                let explored = the_same_on_any_number(what, races, how, FREE);
                assert_eq!(explored.schedules, 150);
                assert!(explored.classes.is_some_and(|classes| classes > 1));
            }
        }
    }
}

#[test]
fn a_search_that_ends_early_ends_at_the_same_schedule() {
    let all = Explore::All { limit: 1_000_000 };
    let first = the_same_on_any_number((5, tickets), Races::Find, all, (Budget::default(), 7));
    assert_eq!((first.schedules, first.bound), (7, Some(Bound::Visitor)));
    let limited = the_same_on_any_number((5, tickets), Races::Find, Explore::All { limit: 50 }, FREE);
    assert_eq!((limited.schedules, limited.bound), (50, Some(Bound::Schedules(50))));
    let memory = Budget { memory: Some(4 << 10), time: None };
    let bounded = the_same_on_any_number((8, tickets), Races::Find, all, (memory, usize::MAX));
    assert!(matches!(bounded.bound, Some(Bound::Memory(_))) && bounded.schedules > 1, "{bounded:?}");
    let random = the_same_on_any_number((5, tickets), Races::Find, Explore::random(500, 1), (Budget::default(), 33));
    assert_eq!((random.schedules, random.bound), (33, Some(Bound::Visitor)));
}

/// A finding is the same first one, and a search that goes on finds the same others.
#[test]
fn the_first_finding_is_the_same() {
    let first = |cores| {
        let mut simulation = Simulation::new(Config::pes(3)).unwrap();
        let mut found = None;
        let visit = |run: &onesided_sim::Run<u64>| {
            let is_wanted = matches!(run.verdict.kind, VerdictKind::Deadlock);
            found = is_wanted.then(|| run.schedule.to_string());
            if is_wanted { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        simulation.on_cores(Some(cores)).explore(Explore::All { limit: 1000 }, fails, visit).unwrap();
        found.expect("it hangs on some schedule")
    };
    assert_eq!([2, 3].map(first), [first(1), first(1)]);
}

#[test]
#[should_panic(expected = "the visitor has seen enough")]
fn a_visitor_that_panics_ends_the_helpers() {
    let mut simulation = Simulation::new(Config::pes(4)).unwrap();
    let visit = |_: &onesided_sim::Run<u64>| panic!("the visitor has seen enough");
    let _ = simulation.on_cores(Some(3)).explore(Explore::All { limit: 1000 }, tickets, visit);
}

/// Puts without what orders them: several changes are tried until one is enough.
fn unordered(pe: &Pe<Sim>) -> Result<()> {
    let (data, flag) = (pe.alloc_zeroed::<u64>(1)?, pe.alloc_zeroed::<u64>(1)?);
    if pe.my_pe() == 0 {
        pe.host().p(&data, 7, 1)?;
        pe.host().signal_op(flag.signal(0), 1, SignalOp::Set, 2)?; // to another PE: a fence is not enough
    } else if pe.my_pe() == 2 {
        pe.host().signal_wait_until(flag.signal(0), Cmp::Eq, 1)?;
        expect_eq(pe.host().g(&data, 1)?, 7, "the data")?;
    }
    pe.free(flag)?;
    pe.free(data)
}

#[test]
fn the_fix_is_the_same() {
    let mut simulation = Simulation::new(Config::pes(3)).unwrap();
    let run = simulation.run(unordered).unwrap();
    assert!(!run.is_ok());
    for effort in [Effort::LITTLE, Effort { schedules: 20, steps: 400 }] {
        let alone = simulation.fix(&run, effort, unordered).unwrap();
        for cores in [1, 2, 3] {
            let fixes = simulation.on_cores(Some(cores)).fix(&run, effort, unordered).unwrap();
            assert_eq!(fixes, alone, "on {cores} cores");
        }
    }
    let fix = simulation.fix(&run, Effort::LITTLE, unordered).unwrap();
    assert!(fix.tried > 1 && fix.fix.is_some_and(|fix| fix.to_string().starts_with("insert `quiet`")));
}

/// Barriers and quiets of which some are not needed, and some are stronger than needed.
fn careful(pe: &Pe<Sim>) -> Result<()> {
    let (data, flag) = (pe.alloc_zeroed::<u64>(1)?, pe.alloc_zeroed::<u64>(1)?);
    pe.host().barrier_all()?; // not needed
    if pe.my_pe() == 0 {
        pe.host().p(&data, 7, 1)?;
        pe.host().quiet()?; // a fence is enough
        pe.host().signal_op(flag.signal(0), 1, SignalOp::Set, 1)?;
        pe.host().fence()?; // not needed
    } else if pe.my_pe() == 1 {
        pe.host().signal_wait_until(flag.signal(0), Cmp::Eq, 1)?;
        expect_eq(pe.read(&data)?[0], 7, "the data")?;
    }
    pe.host().barrier_all()?; // a sync is enough
    if pe.my_pe() == 2 {
        expect_eq(pe.host().g(&data, 1)?, 7, "the data")?;
    }
    pe.free(flag)?;
    pe.free(data)
}

#[test]
fn the_calls_that_are_not_needed_are_the_same() {
    let mut simulation = Simulation::new(Config::pes(3)).unwrap();
    let said = |found: &[Weaker]| found.iter().map(|weaker| weaker.in_words(3)).collect::<Vec<_>>();
    for effort in [Effort::LITTLE, Effort { schedules: 20, steps: 400 }, Effort { schedules: 20, steps: 4000 }] {
        let alone = simulation.weaken(effort, careful).unwrap();
        for cores in [1, 2, 3, 5] {
            let found = simulation.on_cores(Some(cores)).weaken(effort, careful).unwrap();
            assert_eq!(said(&found), said(&alone), "on {cores} cores");
        }
    }
    let enough = simulation.on_cores(Some(3)).weaken(Effort::LITTLE, careful).unwrap();
    let enough: Vec<Enough> = enough.into_iter().map(|weaker| weaker.enough).collect();
    assert!(
        matches!(
            enough[..],
            [Enough::Nothing(_), Enough::Call(Ordering::Fence, _), Enough::Nothing(_), Enough::Call(Ordering::Sync, _)]
        ),
        "{enough:?}"
    );
}

/// Stores and loads of two PEs that delays let pass each other.
fn store_buffering(pe: &Pe<Sim>) -> Result<u64> {
    let words = pe.alloc_zeroed::<u64>(2)?;
    let (mine, other) = (pe.my_pe() % 2, 1 - pe.my_pe() % 2);
    pe.host().p(words.at(mine), 1, other)?;
    pe.host().p(words.at(mine), 1, mine)?;
    let seen = pe.host().g(words.at(other), mine)?;
    pe.free(words)?;
    Ok(seen)
}

#[test]
fn robustness_is_the_same() {
    for (pes, program) in [(2, store_buffering as Program), (3, served), (2, fails)] {
        for limit in [20, 20_000] {
            let alone = robustness(Config::pes(pes), limit, program).unwrap();
            let mut simulation = Simulation::new(Config::pes(pes)).unwrap();
            for cores in [1, 2, 4] {
                let found = simulation.on_cores(Some(cores)).robustness(limit, program).unwrap();
                assert_eq!(found.to_string(), alone.to_string(), "on {cores} cores");
                assert_eq!((found.odd, found.searches), (alone.odd.clone(), alone.searches), "on {cores} cores");
            }
        }
    }
    let odd = robustness(Config::pes(2), 20_000, store_buffering).unwrap().odd;
    assert!(!odd.is_empty(), "delays change what it does");
}

/// Who stops a search stops the one for robustness too.
#[test]
fn a_search_for_robustness_can_be_stopped() {
    let mut simulation = Simulation::new(Config::pes(5)).unwrap();
    simulation.stop_when(std::sync::Arc::new(true.into()));
    let found = simulation.on_cores(Some(2)).robustness(1000, tickets).unwrap();
    assert_eq!((found.is_complete(), found.searches[0].bound), (false, Some(Bound::Stopped)));
}

/// More stacks than an operating system lets one process have: then there are fewer cores, and the same result.
#[test]
fn many_pes_on_many_cores_do_not_run_out_of_stacks() {
    let mut simulation = Simulation::new(Config::pes(1500)).unwrap();
    let program = |pe: &Pe<Sim>| pe.host().barrier_all();
    let mut cores = simulation.on_cores(Some(64));
    if let Ok(most) = std::fs::read_to_string("/proc/sys/vm/max_map_count") {
        let used: usize = format!("{cores:?}").split(' ').find_map(|word| word.parse().ok()).unwrap();
        let most: usize = most.trim().parse().unwrap();
        assert!(used == 1 || used * 1500 * 2 <= most / 2, "{cores:?}"); // a stack and its guard page
    }
    let explored = cores.explore(Explore::random(64, 0), program, |_| ControlFlow::Continue(())).unwrap();
    assert_eq!((explored.schedules, explored.findings), (64, 0));
}
