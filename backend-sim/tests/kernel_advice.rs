//! What a report says is missing where kernels race: the fence that lacks, and no other one; a barrier only where there is none.

use std::ops::ControlFlow;

use crate::hand_over;
use onesided::{Argument, Grid, Pe, Result, Source, args};
use onesided_sim::{Config, Explore, LintKind, MissingEdge, Reach, Sim, Simulation, Verdict, prove};

const ADVICE: &str = include_str!("../ptx/kernels/advice.ptx");

fn hand_over(pe: &Pe<Sim>, name: &str, grid: &Grid, how: &[Argument]) -> Result<i32> {
    hand_over::hand_over(pe, &Source::ptx("advice.ptx", ADVICE), name, grid, how)
}

/// The verdict of the run in order, and of the race that it names first, what is missing.
fn advice(name: &str, grid: &Grid, how: &[i32]) -> (Verdict, Option<MissingEdge>) {
    let arguments: Vec<Argument> = how.iter().map(|&how| Argument::from(how)).collect();
    let program = |pe: &Pe<Sim>| hand_over(pe, name, grid, &arguments);
    let verdict = Simulation::new(Config::pes(2)).unwrap().run(program).unwrap().verdict;
    let missing = verdict.races.first().map(|race| race.missing);
    (verdict, missing)
}

fn is_right(name: &str, grid: Grid, how: &[i32]) {
    let arguments: Vec<i32> = how.to_vec();
    let name = name.to_string();
    prove(2, move |pe: &Pe<Sim>| {
        let arguments: Vec<Argument> = arguments.iter().map(|&how| Argument::from(how)).collect();
        hand_over(pe, &name, &grid, &arguments)
    });
}

/// The lines between which a fence is missing, and how far it must reach.
fn releasing(name: &str, grid: &Grid, how: &[i32]) -> (u32, u32, Reach) {
    match advice(name, grid, how) {
        (_, Some(MissingEdge::ReleasingFence { after, flag, reach })) => (after.line(), flag.line(), reach),
        (verdict, _) => panic!("{name} {how:?}: {verdict}"),
    }
}

fn acquiring(name: &str, grid: &Grid, how: &[i32]) -> (u32, u32, Reach) {
    match advice(name, grid, how) {
        (_, Some(MissingEdge::AcquiringFence { read, before, reach })) => (read.line(), before.line(), reach),
        (verdict, _) => panic!("{name} {how:?}: {verdict}"),
    }
}

/// What fences of the GPU release and acquire in other rounds does not make one of them the culprit.
#[test]
fn a_narrow_fence_elsewhere_is_not_blamed() {
    let grid = Grid::new(1, 1).collective();
    is_right("rounds", grid, &[1, 1]);
    assert_eq!(releasing("rounds", &grid, &[0, 1]), (11, 13, Reach::System));
    assert_eq!(acquiring("rounds", &grid, &[1, 0]), (16, 18, Reach::System));
}

/// Who sets the flag comes after the store, by a barrier: a fence is missing, and no barrier.
#[test]
fn a_barrier_that_is_there_is_not_asked_for() {
    let grid = Grid::new(1, 2).collective();
    is_right("behind_the_barrier", grid, &[1, 1]);
    assert_eq!(releasing("behind_the_barrier", &grid, &[1, 0]), (28, 32, Reach::System));
    let (verdict, missing) = advice("behind_the_barrier", &grid, &[0, 1]);
    assert!(matches!(missing, Some(MissingEdge::Threads { .. })), "{verdict}");
    // also where the reader knows the other thread from before
    is_right("rounds_of_two", grid, &[1]);
    assert_eq!(acquiring("rounds_of_two", &grid, &[0]), (126, 128, Reach::System));
}

/// A compare-and-swap that finds another value tells nothing, so the fence before it stands for no other one: in every run, not only where it
/// comes first. And who takes a flag back in the step that reads it lacks a fence like any other.
#[test]
fn a_swap_in_vain_tells_nothing() {
    let grid = Grid::new(1, 1).collective();
    is_right("swaps", grid, &[1, 1]);
    assert_eq!(releasing("swaps", &grid, &[0, 1]), (52, 45, Reach::System));
    assert_eq!(acquiring("swaps", &grid, &[1, 0]), (47, 54, Reach::System));
}

/// Also between threads of one block, a flag lacks its fence, and no barrier.
#[test]
fn a_flag_within_a_block_needs_fences() {
    let grid = Grid::new(1, 64);
    is_right("within_a_block", grid, &[1, 1]);
    assert_eq!(releasing("within_a_block", &grid, &[0, 1]), (103, 105, Reach::Block));
    assert_eq!(acquiring("within_a_block", &grid, &[1, 0]), (107, 109, Reach::Block));
}

#[test]
fn a_flag_that_is_stored_plainly_is_none() {
    let (verdict, missing) = advice("plain_flag", &Grid::new(1, 1).collective(), &[]);
    assert_eq!(verdict.races.len(), 2, "{verdict}"); // what the flag is about, too
    let Some(MissingEdge::StrongStore { at, read }) = missing else { panic!("{verdict}") };
    assert_eq!([at.line(), read.line()], [62, 64]);
    insta::assert_snapshot!(verdict.races[0].missing, @"a strong store (volatile, st.relaxed.sys, or an atomic of the system) in place of the plain one at advice.cu:62: the strong load at advice.cu:64 knows nothing of a plain store");
}

/// The last block to count signals for all: it must acquire what the others have released, and their transfers must be behind a fence.
#[test]
fn the_last_block_signals_for_all() {
    let grid = Grid::new(2, 1).collective();
    is_right("last_block", grid, &[0, 1, 1]);
    is_right("last_block", grid, &[1, 1, 1]);
    assert_eq!(releasing("last_block", &grid, &[0, 0, 1]), (77, 81, Reach::Gpu));
    assert_eq!(acquiring("last_block", &grid, &[0, 1, 0]), (81, 84, Reach::Gpu));
    let (verdict, missing) = advice("last_block", &grid, &[1, 0, 1]);
    let Some(MissingEdge::BlocksFence { after, before, .. }) = missing else { panic!("{verdict}") };
    assert_eq!([after.line(), before.line()], [74, 84]);
}

/// Another thread of the block has told something before all met, and the store came behind that: no barrier of the block is missing.
#[test]
fn what_was_told_before_a_barrier_is_no_reason_for_another() {
    let grid = Grid::new(2, 2).collective();
    is_right("told_too_early", grid, &[1]);
    let (verdict, missing) = advice("told_too_early", &grid, &[0]);
    let Some(MissingEdge::Barrier { after, before }) = missing else { panic!("{verdict}") };
    assert_eq!([after.line(), before.line()], [143, 158]);
    // also where the block has met again and again before the race is seen
    let program = |pe: &Pe<Sim>| {
        hand_over::hand_over(pe, &Source::ptx("advice.ptx", ADVICE), "told_too_early", &grid, &[Argument::from(0)])
    };
    let mut simulation = Simulation::new(Config::pes(2)).unwrap();
    let explored = simulation.explore(Explore::random(200, 1), program, |run| {
        let races = &run.verdict.races;
        assert!(races.iter().all(|race| !matches!(race.missing, MissingEdge::Threads { .. })), "{}", run.verdict);
        ControlFlow::Continue(())
    });
    assert_eq!(explored.unwrap().findings, 200);
}

#[test]
fn a_word_that_is_swapped_is_read_by_an_atomic() {
    let grid = Grid::new(1, 1).collective();
    is_right("adds_by_swap", grid, &[1]);
    let (verdict, missing) = advice("adds_by_swap", &grid, &[0]);
    let missing = missing.unwrap_or_else(|| panic!("{verdict}"));
    insta::assert_snapshot!(missing, @"an atomic read (atomic_fetch) in place of the call at advice.cu:164");
}

/// A lock or a ticket lacks its fence, on either side, and no atomic in place of what it protects.
#[test]
fn blocks_that_take_turns_need_fences() {
    let grid = Grid::new(2, 1).collective();
    for (tickets, unlocks, takes) in [(0, 187, 180), (1, 186, 178)] {
        is_right("in_turn", grid, &[tickets, 1, 1]);
        assert_eq!(releasing("in_turn", &grid, &[tickets, 0, 0]), (183, unlocks, Reach::Gpu));
        assert_eq!(releasing("in_turn", &grid, &[tickets, 1, 0]), (183, unlocks, Reach::Gpu));
        assert_eq!(acquiring("in_turn", &grid, &[tickets, 0, 1]), (takes, 183, Reach::Gpu));
    }
}

/// A counter that is added to before and behind it is no lock.
#[test]
fn a_counter_is_no_lock() {
    let grid = Grid::new(2, 1).collective();
    is_right("counts_beside", grid, &[1]);
    let (verdict, missing) = advice("counts_beside", &grid, &[0]);
    let Some(MissingEdge::OneThread { at, updates: true }) = missing else { panic!("{verdict}") };
    assert_eq!(at.line(), 195);
}

/// The reader hears of the count only through the flag of the last block, which is a store to another PE's memory.
#[test]
fn the_last_block_stores_behind_a_fence_of_the_system() {
    let grid = Grid::new(2, 1).collective();
    is_right("last_block_stores", grid, &[1]);
    assert_eq!(acquiring("last_block_stores", &grid, &[0]), (204, 206, Reach::System));
}

#[test]
fn a_word_that_a_kernel_swaps_is_loaded_strongly() {
    let grid = Grid::new(2, 1).collective();
    is_right("swaps_natively", grid, &[1]);
    let (verdict, missing) = advice("swaps_natively", &grid, &[0]);
    let missing = missing.unwrap_or_else(|| panic!("{verdict}"));
    insta::assert_snapshot!(missing, @"a strong load (volatile, ld.relaxed.sys) in place of the plain one at advice.cu:220: the word is compared and swapped beside it");
}

/// A put under a lock is completed before the lock is given back, not before somebody else reads.
#[test]
fn a_put_under_a_lock_is_complete_before_it_is_given_back() {
    let grid = Grid::new(2, 1).collective();
    is_right("puts_under_a_lock", grid, &[1]);
    let (verdict, missing) = advice("puts_under_a_lock", &grid, &[0]);
    let Some(MissingEdge::Quiet { after, before }) = missing else { panic!("{verdict}") };
    assert_eq!([after.line(), before.line()], [233, 236]);
}

/// A strong store behind a release of the same word tells what that has told.
#[test]
fn a_store_behind_a_release_of_the_word_releases() {
    let grid = Grid::new(1, 1).collective();
    is_right("stores_again", grid, &[0]);
    assert_eq!(releasing("stores_again", &grid, &[1]), (243, 246, Reach::System));
}

#[test]
fn accesses_of_different_sizes_are_no_atomics_to_each_other() {
    let (verdict, missing) = advice("bytes_in_a_word", &Grid::new(1, 1).collective(), &[]);
    let missing = missing.unwrap_or_else(|| panic!("{verdict}"));
    insta::assert_snapshot!(missing, @"accesses of one size at advice.cu:258 and advice.cu:257: each is atomic, but to one of another size it is not");
}

/// The barriers of the block are there; what is missing is between the PEs.
#[test]
fn a_round_that_nobody_tells_of_lacks_no_barrier_of_the_block() {
    let grid = Grid::new(1, 2).collective();
    is_right("told_in_each_round", grid, &[1]);
    for rounds in [2, 4] {
        let (verdict, missing) = advice("told_in_each_round", &grid, &[rounds]);
        let Some(MissingEdge::Barrier { .. }) = missing else { panic!("{rounds}: {verdict}") };
    }
}

/// Memory of a kernel's own is none that the simulator has.
#[test]
fn a_kernel_that_allocates_is_told_what_to_do() {
    let text = ".version 9.0\n.target sm_90\n.address_size 64\n.extern .func (.param .b64 r) malloc(.param .b64 bytes);\n\
                .visible .entry k() {\n.reg .b64 %rd<2>;\n{ .param .b64 a; .param .b64 b;\nst.param.b64 [a], 8;\ncall.uni (b), malloc, (a);\n\
                ld.param.b64 %rd1, [b]; }\nret;\n}\n";
    let run =
        Simulation::new(Config::pes(1)).unwrap().run(|pe: &Pe<Sim>| pe.module(&Source::ptx("k.ptx", text)).map(drop));
    let verdict = run.unwrap().verdict.to_string();
    assert!(verdict.contains("malloc: memory that kernels allocate themselves"), "{verdict}");
}

/// What the threads of a warp write together has been written, whatever they write.
#[test]
fn what_a_warp_has_written_is_not_unwritten() {
    let program = |pe: &Pe<Sim>| {
        let (words, bytes, seen) = (pe.alloc::<i32>(64)?, pe.alloc::<u8>(256)?, pe.alloc::<i32>(32)?);
        let module = pe.module(&Source::ptx("advice.ptx", ADVICE))?;
        let stream = pe.stream()?;
        // SAFETY: the kernel takes arrays of 64 words, 256 bytes and 32 words.
        unsafe { pe.on(&stream).launch(&module.kernel("rows")?, &Grid::new(1, 32), args![&words, &bytes, &seen])? };
        pe.synchronize(&stream)?;
        let result = pe.read(&seen)?;
        pe.free(seen)?;
        pe.free(bytes)?;
        pe.free(words)?;
        Ok(result)
    };
    let run = Simulation::new(Config::pes(1)).unwrap().run(program).unwrap();
    let lints: Vec<_> = run.verdict.lints.iter().filter(|lint| lint.kind == LintKind::UnwrittenRead).collect();
    assert!(lints.is_empty(), "{lints:?}");
    assert_eq!(run.results[0].as_ref().unwrap()[0], 63 + 165);
}
