//! Fences and atomics of kernels have a scope: that of the GPU is about what blocks of one PE do, and nothing between PEs. A fence is its
//! thread's: who reads a flag must fence itself.

use std::ops::ControlFlow;

use crate::hand_over;
use onesided::{Argument, Grid, Pe, Result, Source, args};
use onesided_sim::{Config, Explore, MissingEdge, Profile, Race, Sim, Simulation, Verdict, prove};

const SCOPES: &str = include_str!("../ptx/kernels/scopes.ptx");

fn hand_over(pe: &Pe<Sim>, name: &str, grid: &Grid, how: &[Argument]) -> Result<i32> {
    hand_over::hand_over(pe, &Source::ptx("scopes.ptx", SCOPES), name, grid, how)
}

fn between_pes(writer_system: bool, reader_system: bool) -> Verdict {
    let program = |pe: &Pe<Sim>| {
        hand_over(pe, "between_pes", &Grid::new(1, 1), args![i32::from(writer_system), i32::from(reader_system)])
    };
    Simulation::new(Config::pes(2)).unwrap().run(program).unwrap().verdict
}

#[test]
fn a_fence_of_the_gpu_orders_nothing_between_pes() {
    let verdict = between_pes(true, true);
    assert!(verdict.is_ok(), "{verdict}");
    for (writer, reader, line) in
        [(false, true, "scopes.cu:12"), (true, false, "scopes.cu:20"), (false, false, "scopes.cu:12")]
    {
        let verdict = between_pes(writer, reader);
        assert_eq!(verdict.races.len(), 1, "{verdict}");
        let race = &verdict.races[0];
        assert_eq!(
            (race.first.at.to_string(), race.second.at.to_string()),
            ("scopes.cu:8".into(), "scopes.cu:22".into())
        );
        let MissingEdge::SystemFence { at } = race.missing else { panic!("{race}") };
        assert_eq!(at.to_string(), line);
        let text = format!("missing: a fence of system scope (__threadfence_system) in place of the one at {line}");
        assert!(verdict.to_string().contains(&text), "{verdict}");
    }
}

#[test]
fn a_fence_of_the_gpu_orders_blocks_of_a_pe() {
    for call in [0, 1] {
        let explored = Simulation::new(Config::pes(2)).unwrap().explore(
            Explore::All { limit: 20_000 },
            |pe| hand_over(pe, "between_blocks", &Grid::new(2, 1), args![call]),
            |run| {
                assert!(run.verdict.is_ok(), "{}", run.verdict);
                assert_eq!(run.results, [Some(42), Some(42)]);
                ControlFlow::Continue(())
            },
        );
        assert!(explored.unwrap().complete);
    }
}

/// Thread 1 stores, and thread 0 sets the flag; there, thread 0 polls it, and thread 1 reads. A bit for a fence of thread 0 before and
/// behind the barrier of the block, and of thread 1.
fn for_the_block(writers: i32, readers: i32) -> Verdict {
    let grid = Grid::new(1, 2);
    let program = |pe: &Pe<Sim>| hand_over(pe, "for_the_block", &grid, args![writers, readers]);
    Simulation::new(Config::pes(2)).unwrap().run(program).unwrap().verdict
}

#[test]
fn who_reads_a_flag_fences_and_who_sets_it_comes_after_a_fence() {
    let [first_before, first_behind, other_before, other_behind] = [1, 2, 4, 8];
    let everything = first_before | first_behind | other_before | other_behind;
    for writers in [first_behind, other_before, everything] {
        for readers in [first_before, first_before | other_behind, everything] {
            let verdict = for_the_block(writers, readers);
            assert!(verdict.is_ok(), "{writers} {readers} {verdict}");
        }
    }
    // the one that sets the flag does not come after what the fence orders, or not after the fence
    for writers in [0, first_before, other_behind] {
        assert_eq!(for_the_block(writers, everything).races.len(), 1, "{writers}");
    }
    for readers in [0, first_behind, other_before] {
        assert_eq!(for_the_block(everything, readers).races.len(), 1, "{readers}");
    }
    let verdict = for_the_block(everything, other_behind);
    let [race] = &verdict.races[..] else { panic!("{verdict}") };
    let MissingEdge::ReadersFence { fence, read, .. } = race.missing else { panic!("{race}") };
    assert_eq!([fence, read].map(|at| at.to_string()), ["scopes.cu:45", "scopes.cu:56"]);
    insta::assert_snapshot!(race.missing, @"a fence (__threadfence_system) by the thread that reads the flag, behind scopes.cu:56 and before the barrier; the one at scopes.cu:45 is behind it, and acquires only what its own thread has read");
}

/// All schedules of a kernel of two PEs, of which the first that is wrong ends the search: under a profile where a load shows what transfers bring.
fn two_pes(name: &str, system: bool) -> Verdict {
    let grid = Grid::new(1, 1).collective();
    let program = |pe: &Pe<Sim>| hand_over(pe, name, &grid, args![i32::from(system)]);
    let mut verdict = None;
    let mut simulation = Simulation::new(Config { profile: Profile::Nvlink, ..Config::pes(2) }).unwrap();
    let explored = simulation.explore(Explore::All { limit: 20_000 }, program, |run| {
        verdict = Some(run.verdict.clone());
        if run.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    let verdict = verdict.expect("there is a schedule");
    assert!(explored.unwrap().complete || !verdict.is_ok(), "{name}");
    verdict
}

#[test]
fn an_atomic_of_the_gpu_is_none_to_another_pe() {
    for (name, line) in [("polls_a_signal", 87), ("sets_a_flag", 79), ("count_by_calls", 79), ("count_by_pointer", 79)]
    {
        let verdict = two_pes(name, true);
        assert!(verdict.is_ok(), "{name}: {verdict}");
        let verdict = two_pes(name, false);
        assert_eq!(verdict.races.len(), 1, "{name}: {verdict}");
        let MissingEdge::Scope { at, also, blocks: false } = verdict.races[0].missing else {
            panic!("{name}: {verdict}")
        };
        assert_eq!((at.to_string(), also), (format!("scopes.cu:{line}"), None), "{name}: {verdict}");
    }
    let verdict = two_pes("polls_a_signal", false);
    insta::assert_snapshot!(verdict.races[0].missing, @"scope sys (atomicAdd_system, cuda::thread_scope_system, ld.acquire.sys) in place of the narrower one at scopes.cu:87: to another PE such an access is no atomic");
}

#[test]
fn an_atomic_of_the_gpu_is_right_where_no_other_pe_conflicts_with_it() {
    for name in ["count_at_home", "two_look", "then_another_looks"] {
        for system in [false, true] {
            let verdict = two_pes(name, system);
            assert!(verdict.is_ok(), "{name}: {verdict}");
        }
    }
}

/// What a warp does to a row of words is looked at all at once: the race is still that of one word, and of its thread.
#[test]
fn a_race_within_a_row_names_its_word_and_its_thread() {
    for which in [0, 17, 31, 40] {
        let program = |pe: &Pe<Sim>| hand_over(pe, "row", &Grid::new(2, 64), args![which]);
        let verdict = Simulation::new(Config::pes(1)).unwrap().run(program).unwrap().verdict;
        let [race] = &verdict.races[..] else { panic!("{verdict}") };
        assert_eq!((race.span.start, race.span.len), (which as usize * 4, 4), "{race}");
        let threads = [race.first, race.second].map(|access| access.thread.expect("a kernel's").to_string());
        assert_eq!(threads, [0, 1].map(|block| format!("block {block}, thread {which}")));
        assert!(matches!(race.missing, MissingEdge::Blocks { .. }), "{race}");
        assert!(race.missing.to_string().contains("a barrier of the grid (grid.sync)"), "{race}");
    }
}

/// One thread hands data to another, each in a scope as in scopes.cu: the races of the run in order.
fn scoped(blocks: u32, writer: i32, reader: i32) -> Vec<Race> {
    let grid = Grid::new(blocks, 3 - blocks);
    let program = |pe: &Pe<Sim>| hand_over(pe, "scoped", &grid, args![writer, reader]);
    let run = Simulation::new(Config::pes(1)).unwrap().run(program).unwrap();
    assert_eq!(run.results, [Some(42)], "{}", run.verdict);
    run.verdict.races
}

// As in scopes.cu.
const FENCE_BLOCK: i32 = 0;
const FENCE_GPU: i32 = 1;
const ATOMIC_BLOCK: i32 = 2;
const ORDERED_BLOCK: i32 = 3;
const ORDERED_GPU: i32 = 4;

#[test]
fn the_scope_of_a_block_is_enough_within_it_and_orders_nothing_between_blocks() {
    for writer in 0..5 {
        for reader in 0..5 {
            assert!(scoped(1, writer, reader).is_empty(), "{writer} {reader}");
            let is_of_gpu = |how| how == FENCE_GPU || how == ORDERED_GPU;
            let races = scoped(2, writer, reader);
            assert_eq!(races.is_empty(), is_of_gpu(writer) && is_of_gpu(reader), "{writer} {reader}");
        }
    }
}

#[test]
fn what_is_too_narrow_between_blocks_is_named() {
    let missing = |writer, reader| scoped(2, writer, reader)[0].missing;
    let fence = |writer, reader| match missing(writer, reader) {
        MissingEdge::GpuFence { at } => at.line(),
        other => panic!("{other}"),
    };
    assert_eq!([fence(FENCE_BLOCK, FENCE_GPU), fence(FENCE_GPU, FENCE_BLOCK)], [167, 176]);
    let scope = |writer, reader| match missing(writer, reader) {
        MissingEdge::Scope { at, also, blocks: true } => (at.line(), also.map(|at| at.line())),
        other => panic!("{other}"),
    };
    assert_eq!(scope(ATOMIC_BLOCK, FENCE_GPU), (170, None));
    assert_eq!(scope(FENCE_GPU, ATOMIC_BLOCK), (174, None));
    assert_eq!(scope(ORDERED_BLOCK, ATOMIC_BLOCK), (157, Some(174)));
    assert_eq!(scope(ORDERED_GPU, ORDERED_BLOCK), (149, None));
    insta::assert_snapshot!(missing(FENCE_BLOCK, FENCE_GPU), @"a fence in the scope of the GPU (__threadfence) in place of the one at scopes.cu:167");
    insta::assert_snapshot!(missing(ATOMIC_BLOCK, FENCE_GPU), @"scope gpu (atomicAdd, cuda::thread_scope_device, ld.acquire.gpu) in place of the narrower one at scopes.cu:170: to another block such an access is no atomic");
}

/// A word that several have updated tells each block and each GPU what its own have told there.
#[test]
fn what_a_word_tells_a_block_or_a_gpu_stays_when_others_update_it() {
    for (pes, blocks, threads) in [(false, 2, 2), (true, 2, 1)] {
        for config in [Config::pes(2), Config { profile: Profile::Nvlink, ..Config::pes(2) }] {
            prove(config, move |pe: &Pe<Sim>| {
                let grid = Grid::new(blocks, threads).collective();
                let seen = hand_over(pe, "through_another", &grid, args![i32::from(pes)])?;
                assert_eq!(seen, if pes && pe.my_pe() == 1 { 0 } else { 42 });
                Ok(())
            });
        }
    }
}
