//! Shuttle: explores schedules of threads, sequentially consistent ones only.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use shuttle::Runner;
use shuttle::scheduler::{DfsScheduler, RandomScheduler};
use shuttle::sync::atomic::{AtomicU64, Ordering};
use shuttle::sync::mpsc;
use shuttle::thread;

use super::super::searched::Program;
use super::searched::programs;

programs!();

/// Searches all schedules, as far as the limits allow: how many were begun, and how many different results they had.
pub(crate) fn all(program: Program, n: usize, executions: u64, time: Duration) -> (u64, u64) {
    let scheduler = DfsScheduler::new(usize::try_from(executions).ok(), false);
    let mut config = shuttle::Config::new();
    config.max_time = Some(time);
    let seen = Arc::new(Mutex::new((0, BTreeSet::new())));
    let note = Arc::clone(&seen);
    Runner::new(scheduler, config).run(move || {
        note.lock().expect("nobody panics with it").0 += 1;
        let results = execution(program, n);
        note.lock().expect("nobody panics with it").1.insert(results);
    });
    let (begun, results) = &*seen.lock().expect("nobody panics with it");
    (*begun, results.len() as u64)
}

/// Where the atomic operations of a thread go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// Stores to the thread's own word.
    Own,
    /// Additions to the next thread's word.
    Next,
}

/// The time that so many random schedules take on so many cores: `threads` threads of `events` atomic operations each are started, run
/// and joined. Each operation is one point at which the scheduler chooses. Without shuttle's vector clocks, which are
/// off by default.
pub(crate) fn random(cores: usize, schedules: u64, threads: usize, events: u64, target: Target) -> Duration {
    let start = Instant::now();
    let run = |core: usize| {
        let scheduler = RandomScheduler::new_from_seed(1 + core as u64, schedules as usize / cores);
        Runner::new(scheduler, shuttle::Config::new()).run(move || schedule(threads, events, target));
    };
    std::thread::scope(|scope| {
        (1..cores).for_each(|core| drop(scope.spawn(move || run(core))));
        run(0);
    });
    start.elapsed()
}

fn schedule(threads: usize, events: u64, target: Target) {
    let words: Arc<Vec<AtomicU64>> = Arc::new((0..threads).map(|_| AtomicU64::new(0)).collect());
    let start = |me: usize| {
        let words = Arc::clone(&words);
        shuttle::thread::spawn(move || match target {
            Target::Own => (0..events).for_each(|i| words[me].store(i, Ordering::SeqCst)),
            Target::Next => {
                let word = &words[(me + 1) % threads];
                (0..events).for_each(|_| {
                    word.fetch_add(1, Ordering::SeqCst);
                });
            }
        })
    };
    let started: Vec<_> = (0..threads).map(start).collect();
    for thread in started {
        thread.join().expect("no thread panics");
    }
}
