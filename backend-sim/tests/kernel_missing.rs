//! What is missing where threads of kernels race: the report names it, and with it nothing races.

use onesided::{Grid, Pe, Result, Source, args};
use onesided_sim::{Config, MissingEdge, Sim, Simulation, Verdict};

const MISSING: &str = include_str!("../ptx/kernels/missing.ptx");

fn run(name: &str, fixed: bool) -> Verdict {
    let program = |pe: &Pe<Sim>| -> Result<()> {
        let (data, flag, seen) = (pe.alloc_zeroed::<i32>(8)?, pe.alloc_zeroed::<u64>(2)?, pe.alloc_zeroed::<i32>(4)?);
        let module = pe.module(&Source::ptx("missing.ptx", MISSING))?;
        let stream = pe.stream()?;
        let grid = Grid::new(1, 4).collective();
        // SAFETY: every kernel of the file takes these four, and stays inside them.
        unsafe { pe.on(&stream).launch(&module.kernel(name)?, &grid, args![&data, &flag, &seen, i32::from(fixed)])? };
        pe.on(&stream).barrier_all()?;
        pe.synchronize(&stream)?;
        pe.free(seen)?;
        pe.free(flag)?;
        pe.free(data)
    };
    Simulation::new(Config::pes(3)).unwrap().run(program).unwrap().verdict
}

/// What the report says that is missing in each race of the kernel, once for each text.
fn missing(name: &str) -> String {
    let verdict = run(name, true);
    assert!(verdict.is_ok(), "{name}, repaired: {verdict:#}");
    let mut said: Vec<String> = run(name, false).races.iter().map(|race| race.missing.to_string()).collect();
    said.dedup();
    said.join("\n")
}

#[test]
fn flags_have_a_fence_on_both_sides() {
    insta::assert_snapshot!(missing("flag_set"), @r"a fence (__threadfence_system) between missing.cu:17 and missing.cu:9, inlined at missing.cu:21, which sets the flag");
    insta::assert_snapshot!(missing("flag_read"), @r"a fence (__threadfence_system), by the thread that reads the flag, between missing.cu:12, inlined at missing.cu:35 and missing.cu:39");
}

#[test]
fn a_fence_is_the_same_threads() {
    insta::assert_snapshot!(missing("fence_by_another"), @r"a fence by the same thread between missing.cu:44 and missing.cu:48, or one put_signal; the fence at missing.cu:46 is another thread's, and no barrier puts it between them");
}

#[test]
fn a_fence_for_a_block_is_behind_its_barrier_or_each_threads() {
    insta::assert_snapshot!(missing("fence_before_the_barrier"), @"a fence by each thread that sends at missing.cu:109, or one behind a barrier of the block, before missing.cu:113, where another thread signals; the fence at missing.cu:110 is another thread's, and no barrier puts it between them");
    insta::assert_snapshot!(missing("fence_for_the_block"), @"a fence between missing.cu:122 and missing.cu:126");
}

#[test]
fn threads_of_one_block_need_no_barrier_of_the_grid() {
    insta::assert_snapshot!(missing("source_used_by_another"), @r"a flush or quiet between missing.cu:56 and missing.cu:59");
    insta::assert_snapshot!(missing("awaited_by_one"), @r"a barrier of the block (__syncthreads) before missing.cu:68, behind the wait by which another of its threads knows of missing.cu:64");
}

#[test]
fn a_fence_is_enough_before_the_second_signal() {
    insta::assert_snapshot!(missing("two_neighbours"), @r"a fence between missing.cu:75 and missing.cu:78, or one put_signal");
}

#[test]
fn several_threads_write_to_one_place() {
    insta::assert_snapshot!(missing("counter"), @r"an atomic (atomicAdd) in place of what several threads read and write at missing.cu:88, or a barrier between them");
    insta::assert_snapshot!(missing("same_value"), @r"one thread that writes at missing.cu:93 in place of several (it is a race also if all write the same), or an atomic, or a barrier between them");
    insta::assert_snapshot!(missing("in_place"), @r"a barrier of the block (__syncthreads) between missing.cu:98 and missing.cu:103");
}

/// The host tells the other PE of what its kernel has not done yet.
#[test]
fn a_launch_is_synchronized_before_the_host_tells_of_it() {
    let run = Simulation::new(Config::pes(2)).unwrap().run(|pe: &Pe<Sim>| {
        let (data, signal, seen) = (pe.alloc_zeroed::<i32>(4)?, pe.alloc_zeroed::<u64>(1)?, pe.alloc_zeroed::<i32>(1)?);
        let module = pe.module(&Source::ptx("stores.ptx", include_str!("../ptx/kernels/stores.ptx")))?;
        let stream = pe.stream()?;
        // SAFETY: the kernel takes these three, and stays inside them.
        unsafe { pe.on(&stream).launch(&module.kernel("end")?, &Grid::new(1, 2), args![&data, &signal, &seen])? };
        pe.host().barrier_all()?;
        pe.read(&data)?;
        pe.synchronize(&stream)?;
        pe.host().barrier_all()?;
        pe.free(seen)?;
        pe.free(signal)?;
        pe.free(data)
    });
    let races = run.unwrap().verdict.races;
    let missing = races[0].missing;
    let MissingEdge::Synchronize { after, before, quiet: false, launch: true } = missing else {
        panic!("{}", races[0])
    };
    assert_eq!(before.line(), after.line() + 1, "the barrier is behind the launch: {missing}");
}
