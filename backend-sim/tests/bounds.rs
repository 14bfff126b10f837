//! What bounds a search, and what is kept then.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use crate::common::tickets;
use onesided::{Pe, Result};
use onesided_sim::{Bound, Budget, Config, Explore, Explored, Run, Sim, Simulation};

const ALL: Explore = Explore::All { limit: 1_000_000 };
const RANDOM: Explore = Explore::random(1_000_000, 0);

/// Searches within a budget, and collects the schedules that were visited.
fn search(pes: usize, how: Explore, budget: Budget) -> (Explored, Vec<String>) {
    let mut simulation = Simulation::new(Config::pes(pes)).unwrap();
    simulation.set_budget(budget);
    let mut visited = Vec::new();
    let explored = simulation.explore(how, tickets, |run: &Run<u64>| {
        visited.push(run.schedule.to_string());
        ControlFlow::Continue(())
    });
    (explored.unwrap(), visited)
}

#[test]
fn without_a_bound_every_class_is_visited_and_counted() {
    let (explored, visited) = search(5, ALL, Budget::default());
    assert_eq!((explored.schedules, explored.redundant, visited.len()), (120, 0, 120));
    assert_eq!((explored.complete, explored.bound, explored.estimated), (true, None, Some(120)));
    assert_eq!(explored.findings, 0);
}

/// The search counts its memory itself, so it ends at the same schedule each time.
#[test]
fn memory_ends_a_search_always_at_the_same_schedule() {
    let within = |bytes| search(7, ALL, Budget { memory: Some(bytes), ..Budget::default() });
    let (least, first) = within(1);
    assert_eq!((least.schedules, least.bound, first.len()), (1, Some(Bound::Memory(1)), 1));

    let (some, visited) = within(4 << 10);
    assert_eq!((some.complete, some.bound), (false, Some(Bound::Memory(4 << 10))));
    assert!(some.schedules > 1 && some.schedules == visited.len() as u64, "{some:?}");
    assert!(some.estimated.is_some_and(|estimate| estimate > some.schedules), "{some:?}");
    assert_eq!(within(4 << 10), (some, visited));

    let (enough, _) = within(1 << 20);
    assert_eq!((enough.complete, enough.schedules), (true, 5040));
}

/// One schedule is always visited, and kept.
#[test]
fn time_ends_a_search_of_either_kind() {
    for how in [ALL, RANDOM] {
        let over = Budget { time: Some(Duration::ZERO), ..Budget::default() };
        let (explored, visited) = search(6, how, over);
        assert_eq!((explored.schedules, visited.len()), (1, 1));
        assert_eq!((explored.complete, explored.bound), (false, Some(Bound::Time(Duration::ZERO))));
        let ample = Budget { time: Some(Duration::from_secs(86_400)), ..Budget::default() };
        let few = match how {
            Explore::All { .. } => Explore::All { limit: 700 },
            Explore::Random { seed, .. } => Explore::random(700, seed),
        };
        assert_eq!(search(6, few, ample).0.schedules, 700);
    }
}

#[test]
fn who_ends_a_search_is_told() {
    for how in [ALL, RANDOM] {
        let mut simulation = Simulation::new(Config::pes(4)).unwrap();
        let mut left = 3;
        let broken = simulation.explore(how, tickets, |_| {
            left -= 1;
            if left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        let broken = broken.unwrap();
        assert_eq!((broken.schedules, broken.complete, broken.bound), (3, false, Some(Bound::Visitor)));

        let flag = Arc::new(AtomicBool::new(false));
        simulation.stop_when(Arc::clone(&flag));
        let stopped = simulation.explore(how, tickets, |_| {
            flag.store(true, Ordering::Relaxed);
            ControlFlow::Continue(())
        });
        let stopped = stopped.unwrap();
        assert_eq!((stopped.schedules, stopped.complete, stopped.bound), (1, false, Some(Bound::Stopped)));
    }
    let (bounded, _) = search(4, Explore::All { limit: 24 }, Budget::default());
    assert_eq!((bounded.complete, bounded.bound), (true, None), "there are no more than these");
    let (bounded, _) = search(4, Explore::All { limit: 23 }, Budget::default());
    assert_eq!((bounded.complete, bounded.bound), (false, Some(Bound::Schedules(23))));
    let (random, _) = search(4, Explore::random(5, 1), Budget::default());
    assert_eq!((random.complete, random.bound, random.estimated), (false, Some(Bound::Schedules(5)), None));
}

/// Tickets make a tree in which every branch of a point has as many schedules as its siblings, once it is known.
#[test]
fn the_estimate_of_a_search_grows_to_the_number_of_classes() {
    let mut simulation = Simulation::new(Config::pes(6)).unwrap();
    let outlook = simulation.outlook();
    let mut estimates = Vec::new();
    let explored = simulation.explore(ALL, tickets, |_| {
        estimates.push(outlook.look().estimated);
        ControlFlow::Continue(())
    });
    assert_eq!(explored.unwrap().schedules, 720);
    assert_eq!(estimates[0], None, "nothing is known before the first schedule is over");
    let estimates: Vec<u64> = estimates.into_iter().flatten().collect();
    assert!(estimates[..40].iter().all(|&estimate| (32..720).contains(&estimate)), "{estimates:?}");
    assert!(estimates[360..].iter().all(|&estimate| (700..=720).contains(&estimate)), "{estimates:?}");
    assert_eq!(outlook.look().estimated, Some(720));
    assert_eq!(outlook.look().schedules, 720);
}

/// It is not only looked at when a schedule is over: one that sends for ever takes long to reach the step limit.
#[test]
fn a_long_schedule_is_ended_within_it() {
    for how in [ALL, RANDOM] {
        let mut simulation = Simulation::new(Config::pes(2)).unwrap();
        let (flag, calls) = (Arc::new(AtomicBool::new(false)), AtomicU64::new(0));
        simulation.stop_when(Arc::clone(&flag));
        let called = || {
            if calls.fetch_add(1, Ordering::Relaxed) == 1000 {
                flag.store(true, Ordering::Relaxed);
            }
        };
        let fetches = |pe: &Pe<Sim>| -> Result<()> {
            let counter = pe.alloc_zeroed::<u64>(1)?;
            loop {
                pe.host().atomic_fetch_inc(&counter, 0)?;
                called();
            }
        };
        // no step of this one is a choice
        let meets = |pe: &Pe<Sim>| -> Result<()> {
            loop {
                pe.host().barrier_all()?;
                called();
            }
        };
        for program in [&fetches as &dyn Fn(&Pe<Sim>) -> Result<()>, &meets] {
            flag.store(false, Ordering::Relaxed);
            calls.store(0, Ordering::Relaxed);
            let explored = simulation.explore(how, program, |_: &Run<()>| ControlFlow::Continue(())).unwrap();
            assert_eq!((explored.schedules, explored.bound), (0, Some(Bound::Stopped)), "{how:?}");
            assert!((1000..5000).contains(&calls.load(Ordering::Relaxed)), "{calls:?}");
        }
    }
}
