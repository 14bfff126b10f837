//! Kernels that wait by libcu++ (`cuda::atomic_ref::wait`, semaphores, barriers). They look some twenty times, then in a loop that sleeps, and once more behind
//! it: all of that is one wait.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use onesided::{Grid, Pe, Result, Source, args};
use onesided_sim::{Config, Explore, Sim, Simulation, VerdictKind, check_random, prove, refute};

const CUDA_WAITS: &str = include_str!("../ptx/kernels/cuda_waits.ptx");

/// One thread on each PE. What it has seen.
fn runs(name: &str) -> impl Fn(&Pe<Sim>) -> Result<i32> + '_ {
    move |pe| {
        let words = [pe.alloc_zeroed::<i32>(8)?, pe.alloc_zeroed::<i32>(1)?, pe.alloc_zeroed::<i32>(1)?];
        let (module, stream) = (pe.module(&Source::ptx("cuda_waits.ptx", CUDA_WAITS))?, pe.stream()?);
        let [flag, data, out] = &words;
        // SAFETY: the kernels take three pointers, of which the first is to 32 bytes.
        unsafe {
            let kernel = module.kernel(name)?;
            pe.on(&stream).launch(&kernel, &Grid::new(1, 1).collective(), args![flag, data, out])?
        };
        pe.on(&stream).barrier_all()?;
        pe.synchronize(&stream)?;
        let seen = pe.read_one(out)?;
        words.into_iter().try_for_each(|words| pe.free(words))?;
        Ok(seen)
    }
}

/// How many classes there are for so many PEs, and what their runs have seen.
fn classes(name: &str, pes: usize) -> (u64, BTreeSet<Vec<i32>>) {
    let mut seen = BTreeSet::new();
    let explored =
        Simulation::new(Config::pes(pes)).unwrap().explore(Explore::All { limit: 1_000 }, runs(name), |run| {
            seen.insert(run.results.iter().map(|result| result.expect("it finishes")).collect());
            ControlFlow::<()>::Continue(())
        });
    let explored = explored.unwrap();
    assert!(explored.complete, "{name}");
    (explored.schedules, seen)
}

#[test]
fn a_wait_of_an_atomic_has_one_class() {
    for pes in [2, 3, 4] {
        let from = |pe: usize| 7 + ((pe + pes - 1) % pes) as i32;
        assert_eq!(classes("atomic_wait", pes), (1, BTreeSet::from([(0..pes).map(from).collect()])), "{pes} PEs");
    }
    check_random(3, |pe| runs("atomic_wait")(pe).map(drop));
}

/// Who arrives last at a barrier sees it, and does something else: so the order of arrivals matters. A semaphore is looked at in three ways, on each PE whatever
/// the others do: what they release may arrive later.
#[test]
fn semaphores_and_barriers_have_few() {
    for (name, pes, wanted) in [("semaphore", 2, 9), ("semaphore", 3, 27), ("barrier", 2, 4), ("barrier", 3, 24)] {
        let (classes, seen) = classes(name, pes);
        assert_eq!((classes, seen.len()), (wanted, 1), "{name} on {pes} PEs");
    }
    for name in ["semaphore", "barrier"] {
        check_random(3, |pe| runs(name)(pe).map(drop));
    }
}

#[test]
fn a_wait_without_order_tells_nothing() {
    let run = refute(2, |pe| runs("atomic_wait_relaxed")(pe).map(drop));
    let race = run.verdict.races.first().expect("a race").to_string();
    assert!(race.contains("cuda_waits.cu:29") && race.contains("inlined at cuda_waits.cu:28"), "{race}");
    assert!(race.contains("a fence (__threadfence_system), by the thread that reads the flag"), "{race}");
    prove(2, |pe| runs("atomic_wait")(pe).map(drop));
}

#[test]
fn a_wait_that_nobody_ends_is_a_deadlock() {
    let run = refute(2, |pe| runs("atomic_wait_for_ever")(pe).map(drop));
    assert!(matches!(run.verdict.kind, VerdictKind::Deadlock), "{}", run.verdict);
    let text = run.verdict.to_string();
    assert!(text.contains("cuda_waits.cu:34") && text.contains("buf0+0"), "{text}");
}
