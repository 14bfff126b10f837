//! A kernel ends the job, as a host does; and the regions of NVSHMEM 3.8, which change nothing.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use onesided::{Grid, Pe, Result, Source, args, expect_eq};
use onesided_sim::{Config, Explore, Races, Run, Sim, Simulation, prove};

const EXIT: &str = include_str!("../ptx/kernels/exit.ptx");

/// PE 1 ends the job in a kernel, with this status. If `before`, it tells PE 0 something first.
fn leave(pe: &Pe<Sim>, threads: u32, before: bool, status: i32) -> Result<()> {
    let flag = pe.alloc_zeroed::<u64>(1)?;
    let module = pe.module(&Source::ptx("exit.ptx", EXIT))?;
    let stream = pe.stream()?;
    let grid = Grid::new(1, threads).collective();
    // SAFETY: the kernel takes these arguments.
    unsafe { pe.on(&stream).launch(&module.kernel("leave")?, &grid, args![&flag, i32::from(before), status])? };
    pe.synchronize(&stream)?;
    assert!(!before || pe.my_pe() == 1, "PE 0 was told");
    pe.free(flag)
}

fn in_order(program: impl Fn(&Pe<Sim>) -> Result<()>) -> Run<()> {
    Simulation::new(Config::pes(2)).unwrap().run(program).unwrap()
}

/// How schedules end, in one word each.
fn outcomes(races: Races, explore: Explore, program: impl Fn(&Pe<Sim>) -> Result<()>) -> Vec<String> {
    let mut outcomes = BTreeSet::new();
    let mut simulation = Simulation::new(Config { races, ..Config::pes(2) }).unwrap();
    let visited = simulation.explore(explore, program, |run| {
        outcomes.insert(run.verdict.kind.outcome());
        ControlFlow::Continue(())
    });
    visited.unwrap();
    Vec::from_iter(outcomes)
}

fn first_line(run: &Run<()>) -> String {
    run.verdict.to_string().lines().next().unwrap().to_string()
}

#[test]
fn a_kernel_ends_the_job_for_all_and_names_its_line() {
    let run = in_order(|pe| leave(pe, 2, false, 3));
    assert!(!run.is_ok() && run.results == [None, None], "{}", run.verdict);
    assert_eq!(run.verdict.kind.outcome(), "exited: 3");
    insta::assert_snapshot!(first_line(&run), @"PE 1 ended the job with status 3 (exit.cu:9, kernel leave, block 0, thread 1)");
    let good = in_order(|pe| leave(pe, 2, false, 0));
    assert!(good.is_ok() && good.results == [None, None], "{}", good.verdict);
}

/// Neither what its thread would do next, nor that the others wait for ever, is seen in any schedule.
#[test]
fn nothing_happens_behind_the_end_of_the_job() {
    for races in [Races::Find, Races::Note] {
        for (status, expected) in [(0, "exited: 0"), (7, "exited: 7")] {
            let ends = |pe: &Pe<Sim>| leave(pe, 2, false, status);
            assert_eq!(outcomes(races, Explore::All { limit: 1000 }, ends), [expected], "{races:?}");
        }
    }
}

/// Others may see the end later than what was sent before it.
#[test]
fn what_a_kernel_sends_before_it_ends_the_job_may_be_seen() {
    let told = |pe: &Pe<Sim>| leave(pe, 1, true, 0);
    assert_eq!(outcomes(Races::Find, Explore::All { limit: 1000 }, told), ["panicked"]);
}

const ELEMENTS: usize = 4;

#[test]
fn a_region_answers_and_changes_nothing() {
    prove(2, |pe| {
        let noted = pe.alloc_zeroed::<i32>(8 * 32)?;
        let (from, to) = (pe.alloc_zeroed::<i32>(32 * ELEMENTS)?, pe.alloc_zeroed::<i32>(32 * ELEMENTS)?);
        let module = pe.module(&Source::ptx("exit.ptx", EXIT))?;
        let stream = pe.stream()?;
        let kernel = module.kernel("region")?;
        // SAFETY: the kernel takes these arguments.
        unsafe { pe.on(&stream).launch(&kernel, &Grid::new(1, 32), args![&noted, &from, &to, ELEMENTS as i32])? };
        pe.on(&stream).barrier_all()?;
        pe.synchronize(&stream)?;
        // started; there is one already; it is there; another one cannot be stopped, and it can; now there is none
        let each = [0, 1, 0, 1, 1, 0, 0, 0];
        expect_eq(&pe.read(&noted)?[..], &each.repeat(32), "what the calls returned")?;
        pe.free(to)?;
        pe.free(from)?;
        pe.free(noted)
    });
}

#[test]
fn all_threads_of_a_block_start_a_region() {
    let run = in_order(|pe| {
        let module = pe.module(&Source::ptx("exit.ptx", EXIT))?;
        let stream = pe.stream()?;
        // SAFETY: the kernel takes nothing.
        unsafe { pe.on(&stream).launch(&module.kernel("half_a_region")?, &Grid::new(1, 32), args![])? };
        pe.synchronize(&stream)
    });
    insta::assert_snapshot!(first_line(&run), @"kernel half_a_region on PE 0: all threads of the group call nvshmemx_region_start_block, and block 0, thread 16 has ended (exit.cu:37, block 0, thread 0)");
}
