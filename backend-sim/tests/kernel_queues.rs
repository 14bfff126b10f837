//! Queues of tasks whose workers compare a counter twice in each round: a wait for it, and nothing else.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use onesided::{Grid, Pe, Result, Source, args};
use onesided_sim::{Config, Explore, Explored, Sim, Simulation, VerdictKind};

const QUEUES: &str = include_str!("../ptx/kernels/queues.ptx");

/// One thread on each PE. The sum of the tasks that it has taken.
fn runs(name: &str) -> impl Fn(&Pe<Sim>) -> Result<i32> + '_ {
    move |pe| {
        let (ready, tasks, out) = (pe.alloc_zeroed::<u64>(1)?, pe.alloc_zeroed::<i32>(4)?, pe.alloc_zeroed::<i32>(1)?);
        let (module, stream) = (pe.module(&Source::ptx("queues.ptx", QUEUES))?, pe.stream()?);
        // SAFETY: the kernels take three pointers to numbers, of so many elements.
        unsafe {
            let grid = Grid::new(1, 1).collective();
            pe.on(&stream).launch(&module.kernel(name)?, &grid, args![&ready, &tasks, &out])?
        };
        pe.on(&stream).barrier_all()?;
        pe.synchronize(&stream)?;
        let taken = pe.read_one(&out)?;
        pe.free(ready)?;
        pe.free(tasks)?;
        pe.free(out)?;
        Ok(taken)
    }
}

/// All schedules, and what was seen in them.
fn explored(name: &str, pes: usize) -> (Explored, Vec<std::result::Result<Vec<i32>, String>>) {
    let mut seen = Vec::new();
    let explored =
        Simulation::new(Config::pes(pes)).unwrap().explore(Explore::All { limit: 20_000 }, runs(name), |run| {
            seen.push(match &run.verdict.kind {
                VerdictKind::Finished => Ok(run.results.iter().map(|taken| taken.unwrap()).collect()),
                _ => Err(run.verdict.to_string()),
            });
            ControlFlow::<()>::Continue(())
        });
    (explored.unwrap(), seen)
}

/// A worker that finds one task of two looks once more. On each PE that is so or not, whatever the others find: the second announcement may arrive late.
#[test]
fn a_counter_that_is_compared_twice_is_waited_for() {
    for (name, tasks, classes) in [("one_task", 1, [1, 1]), ("two_tasks", 2, [4, 8])] {
        for (pes, classes) in [2, 3].into_iter().zip(classes) {
            let (explored, seen) = explored(name, pes);
            let sum = |me: usize| {
                let from = (me + pes - 1) % pes;
                (0..tasks).map(|i| (10 * from + i + 1) as i32).sum()
            };
            let expected: Vec<i32> = (0..pes).map(sum).collect();
            assert!(seen.iter().all(|seen| seen.as_ref() == Ok(&expected)), "{name} on {pes} PEs: {seen:?}");
            assert_eq!((explored.schedules, explored.complete), (classes, true), "{name} on {pes} PEs");
        }
    }
}

#[test]
fn a_task_that_is_announced_too_early_is_a_race() {
    let (_, seen) = explored("announced_before", 2);
    let races = |seen: &std::result::Result<_, String>| seen.as_ref().is_err_and(|said| said.contains("data race"));
    assert!(seen.iter().any(races), "{seen:?}");
}

#[test]
fn a_task_that_does_not_come_is_a_deadlock() {
    let (explored, seen) = explored("one_too_many", 2);
    let hangs = |seen: &std::result::Result<_, String>| seen.as_ref().is_err_and(|said| said.contains("deadlock"));
    assert!(explored.complete && seen.iter().all(hangs), "{seen:?}");
    assert_eq!(explored.schedules, 1);
}

/// Some rounds are in vain, and some PEs have none.
#[test]
fn what_rounds_in_vain_leave_behind_is_seen() {
    let mut taken = BTreeSet::new();
    let mut simulation = Simulation::new(Config::pes(2)).unwrap();
    let explored = simulation.explore(Explore::random(100, 1), runs("counts_its_looks"), |run| {
        taken.insert(run.results[0]);
        ControlFlow::<()>::Continue(())
    });
    assert_eq!(explored.unwrap().findings, 0);
    assert!(taken.contains(&Some(11)) && taken.len() > 1, "{taken:?}");
}

#[test]
fn a_round_that_fails_behind_one_in_vain_is_found() {
    let mut simulation = Simulation::new(Config::pes(2)).unwrap();
    let program = runs("fails_behind_one_look");
    let found = simulation.explore(Explore::random(100, 1), program, |_| ControlFlow::<()>::Continue(())).unwrap();
    assert!((1..100).contains(&found.findings), "{found:?}");
}
