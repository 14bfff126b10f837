//! Threads of a kernel's block: what orders them, and the races of kernels that lack it.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use onesided::{Grid, Pe, Result, Source, args};
use onesided_sim::{Config, Explore, MissingEdge, Quiet, Races, Reach, Run, Side, Sim, Simulation};

const RIGHT: &str = include_str!("../ptx/kernels/threads.ptx");
const BROKEN: &str = include_str!("../ptx/kernels/threads.broken.ptx");

/// A program that launches a kernel of threads.cu on every PE, once for each number of threads; the result is what its PE has seen.
fn program<'a>(ptx: &'a str, name: &'a str, threads: &'a [u32]) -> impl Fn(&Pe<Sim>) -> Result<Vec<i32>> + use<'a> {
    move |pe| {
        let module = pe.module(&Source::ptx("threads.ptx", ptx))?;
        let kernel = module.kernel(name)?;
        let (data, seen) = (pe.alloc_zeroed::<i32>(128)?, pe.alloc_zeroed::<i32>(64)?);
        let signal = pe.alloc_zeroed::<u64>(1)?;
        let stream = pe.stream()?;
        for &threads in threads {
            // SAFETY: every kernel of the file takes these three, and stays inside them.
            unsafe { pe.on(&stream).launch(&kernel, &Grid::new(1, threads), args![&data, &signal, &seen])? };
        }
        pe.on(&stream).barrier_all()?;
        pe.synchronize(&stream)?;
        let result = pe.read(&seen)?;
        pe.free(signal)?;
        pe.free(seen)?;
        pe.free(data)?;
        Ok(result)
    }
}

fn run(n: usize, ptx: &str, name: &str, threads: &[u32]) -> Run<Vec<i32>> {
    Simulation::new(Config::pes(n)).unwrap().run(program(ptx, name, threads)).unwrap()
}

/// The kernel is right in all schedules, and its broken twin has a race between these lines.
fn is_right_and_twin_races(n: usize, name: &str, threads: &[u32], lines: [u32; 2]) -> MissingEdge {
    let right = run(n, RIGHT, name, threads);
    assert!(right.verdict.is_ok(), "{name}: {}", right.verdict);
    let mut simulation = Simulation::new(Config::pes(n)).unwrap();
    let explored = simulation.explore(Explore::All { limit: 10_000 }, program(RIGHT, name, threads), |run| {
        assert!(run.verdict.is_ok(), "{name}: {}", run.verdict);
        ControlFlow::Continue(())
    });
    assert!(explored.unwrap().complete, "{name}");
    let broken = run(n, BROKEN, name, threads);
    assert_eq!(broken.verdict.kind.outcome(), "race", "{name}: {}", broken.verdict);
    let race = &broken.verdict.races[0];
    let places = [race.first.at.to_string(), race.second.at.to_string()];
    assert_eq!(places, lines.map(|line| format!("threads.cu:{line}")), "{name}: {race}");
    race.missing
}

/// The same of a broken one that lacks a barrier.
fn is_right_and_twin_lacks_a_barrier(n: usize, name: &str, threads: &[u32], lines: [u32; 2]) -> MissingEdge {
    let missing = is_right_and_twin_races(n, name, threads, lines);
    assert!(missing.to_string().contains("a barrier of the block (__syncthreads)"), "{name}: {missing}");
    missing
}

#[test]
fn a_message_that_one_thread_waits_for_is_read_by_all_behind_a_barrier() {
    let missing = is_right_and_twin_lacks_a_barrier(2, "one_waits_for_all", &[4], [23, 19]);
    assert!(matches!(missing, MissingEdge::Threads { side: Side::Second, .. }), "{missing}");
}

#[test]
fn credit_that_one_thread_waits_for_is_used_by_another_behind_a_barrier() {
    is_right_and_twin_lacks_a_barrier(2, "one_waits_for_credit", &[2], [29, 35]);
}

#[test]
fn threads_exchange_words_of_global_memory() {
    is_right_and_twin_lacks_a_barrier(1, "neighbours", &[64], [41, 43]);
    is_right_and_twin_lacks_a_barrier(1, "neighbours_of_a_warp", &[32], [48, 50]);
    is_right_and_twin_lacks_a_barrier(1, "named_barrier", &[64], [60, 56]);
}

/// What a thread does behind its arrival is not ordered by it, and it knows of the others when it has waited.
#[test]
fn an_arrival_tells_what_came_before_it() {
    is_right_and_twin_lacks_a_barrier(1, "reads_behind_an_arrival", &[64], [148, 154]);
    is_right_and_twin_lacks_a_barrier(1, "reads_behind_a_clusters_arrival", &[64], [164, 167]);
    is_right_and_twin_lacks_a_barrier(1, "reads_before_the_clusters_wait", &[32], [175, 178]);
    is_right_and_twin_lacks_a_barrier(1, "arrives_relaxed_at_the_cluster", &[32], [186, 193]);
}

#[test]
fn a_flag_in_shared_memory_hands_over_global_memory() {
    let missing = is_right_and_twin_races(1, "flag_in_shared_memory", &[2], [70, 76]);
    let MissingEdge::ReleasingFence { flag, reach: Reach::Block, .. } = missing else { panic!("{missing}") };
    assert_eq!(flag.line(), 72);
}

#[test]
fn one_thread_signals_what_all_have_stored() {
    let missing = is_right_and_twin_lacks_a_barrier(2, "one_signals_for_all", &[4], [83, 91]);
    assert!(matches!(missing, MissingEdge::Threads { side: Side::First, .. }), "{missing}");
}

#[test]
fn a_block_puts_what_its_threads_have_written() {
    is_right_and_twin_lacks_a_barrier(2, "the_block_puts", &[32], [96, 98]);
}

#[test]
fn puts_of_two_threads_are_ordered_by_a_barrier() {
    let missing = is_right_and_twin_lacks_a_barrier(2, "two_put", &[2], [104, 106]);
    assert!(matches!(missing, MissingEdge::Threads { side: Side::Both, .. }), "{missing}");
}

#[test]
fn launches_with_other_numbers_of_threads_follow_each_other() {
    let right = run(1, RIGHT, "one_after_the_other", &[4, 32, 8]);
    assert!(right.verdict.is_ok(), "{}", right.verdict);
    is_right_and_twin_lacks_a_barrier(1, "one_after_the_other", &[32, 64, 32], [111, 113]);
}

#[test]
fn a_quiet_or_fence_is_the_pes_or_its_threads() {
    for name in ["quiet_for_others", "quiet_for_others_nbi", "fence_for_others"] {
        for (ptx, quiet, races) in [
            (RIGHT, Quiet::Pe, false),
            (RIGHT, Quiet::Thread, false),
            (BROKEN, Quiet::Pe, false),
            (BROKEN, Quiet::Thread, true),
        ] {
            let config = Config { quiet, ..Config::pes(2) };
            let mut outcomes = BTreeSet::new();
            let explored = Simulation::new(config).unwrap().explore(
                Explore::All { limit: 20_000 },
                program(ptx, name, &[2]),
                |run| {
                    outcomes.insert(run.verdict.kind.outcome());
                    ControlFlow::Continue(())
                },
            );
            assert!(explored.unwrap().complete, "{name} {quiet:?}");
            let expected = if races { "race" } else { "finished" };
            assert_eq!(outcomes, BTreeSet::from([expected.to_string()]), "{name} {quiet:?}");
        }
    }
    let never = Simulation::new(Config { quiet: Quiet::Thread, races: Races::Ignore, ..Config::pes(2) });
    assert!(never.unwrap_err().to_string().contains("Quiet::Thread needs the race detector"));
}

#[test]
fn what_a_threads_quiet_leaves_out_is_not_delivered() {
    let config = Config { quiet: Quiet::Thread, races: Races::Note, ..Config::pes(2) };
    let mut seen = BTreeSet::new();
    let explored = Simulation::new(config).unwrap().explore(
        Explore::All { limit: 20_000 },
        program(BROKEN, "quiet_for_others", &[2]),
        |run| {
            seen.insert(run.results.iter().map(|result| result.as_ref().unwrap()[1]).collect::<Vec<_>>());
            ControlFlow::Continue(())
        },
    );
    assert!(explored.unwrap().complete);
    assert_eq!(seen, [[0, 0], [0, 1], [1, 0], [1, 1]].map(Vec::from).into(), "old values too");
}
