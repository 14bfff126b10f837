//! Polls that give up after a time, or after so many looks: others have their turns before that.

use onesided::{Grid, Pe, Result, Source, args};
use onesided_sim::{Config, Profile, Sim, Simulation, prove, refute};

const TIME_OUTS: &str = include_str!("../ptx/kernels/time_outs.ptx");

fn waits_for_a_time(pe: &Pe<Sim>) -> Result<()> {
    let flags = pe.alloc_zeroed::<i32>(2)?;
    let (module, stream) = (pe.module(&Source::ptx("time_outs.ptx", TIME_OUTS))?, pe.stream()?);
    let kernel = module.kernel("each_waits_for_a_time")?;
    // SAFETY: the kernel takes an element for each PE.
    unsafe { pe.on(&stream).launch(&kernel, &Grid::new(1, 128).collective(), args![&flags])? };
    pe.on(&stream).barrier_all()?;
    pe.synchronize(&stream)?;
    onesided::expect_eq(pe.read(&flags)?, vec![1, 1], "what the PEs have told")?;
    pe.free(flags)
}

fn counts_its_looks(most: i32) -> impl Fn(&Pe<Sim>) -> Result<()> {
    move |pe| {
        let flag = pe.alloc_zeroed::<i32>(1)?;
        let (module, stream) = (pe.module(&Source::ptx("time_outs.ptx", TIME_OUTS))?, pe.stream()?);
        let kernel = module.kernel("each_counts_its_looks")?;
        // SAFETY: the kernel takes these arguments.
        unsafe { pe.on(&stream).launch(&kernel, &Grid::new(1, 1).collective(), args![&flag, most])? };
        pe.on(&stream).barrier_all()?;
        pe.synchronize(&stream)?;
        pe.free(flag)
    }
}

fn says_what_it_finds(wanted: i32) -> impl Fn(&Pe<Sim>) -> Result<()> {
    move |pe| {
        let flag = pe.alloc_zeroed::<i32>(1)?;
        let (module, stream) = (pe.module(&Source::ptx("time_outs.ptx", TIME_OUTS))?, pe.stream()?);
        let kernel = module.kernel("each_says_what_it_finds")?;
        // SAFETY: the kernel takes these arguments.
        unsafe { pe.on(&stream).launch(&kernel, &Grid::new(1, 1).collective(), args![&flag, wanted])? };
        pe.on(&stream).barrier_all()?;
        pe.synchronize(&stream)?;
        pe.free(flag)
    }
}

/// A thread that gives up looks once more at the flag, which is none of its rounds.
#[test]
fn who_says_what_it_finds_in_the_end_waits_until_then() {
    for pes in [2, 3] {
        assert_eq!(prove(pes, says_what_it_finds(1)).schedules, 1, "{pes} PEs");
    }
    let run = refute(2, says_what_it_finds(2));
    assert!(run.verdict.to_string().contains("polls buf0+0 on PE 0, found 1"), "{}", run.verdict);
}

/// What a thread's clock shows does not depend on what other threads do: all schedules of a class see the same times.
#[test]
fn polls_with_a_time_limit_are_proved() {
    prove(2, waits_for_a_time);
}

#[test]
fn in_order_others_come_before_the_looks_run_out() {
    for profile in Profile::ALL {
        for pes in [2, 3, 8] {
            let mut simulation = Simulation::new(Config { profile, ..Config::pes(pes) }).unwrap();
            for most in [10_000, 1_000_000_000] {
                let run = simulation.run(counts_its_looks(most)).unwrap();
                assert!(run.is_ok(), "{}", run.verdict);
            }
        }
    }
}

/// Whoever gives up too soon is found.
#[test]
fn looks_that_run_out_are_found() {
    let run = refute(2, counts_its_looks(1));
    assert!(run.verdict.to_string().contains("the kernel has trapped"), "{}", run.verdict);
}

/// Where nobody tells, the time limit does not end the loop, and the report says why.
#[test]
fn a_time_limit_never_runs_out() {
    let run = Simulation::new(Config::pes(1)).unwrap().run(|pe: &Pe<Sim>| {
        let flags = pe.alloc_zeroed::<i32>(1)?;
        let (module, stream) = (pe.module(&Source::ptx("time_outs.ptx", TIME_OUTS))?, pe.stream()?);
        let kernel = module.kernel("each_waits_for_a_time")?;
        // SAFETY: the kernel takes an element for each PE.
        unsafe { pe.on(&stream).launch(&kernel, &Grid::new(1, 32), args![&flags])? };
        pe.synchronize(&stream)?;
        pe.free(flags)
    });
    let text = run.unwrap().verdict.to_string();
    let why = "(a time limit of such a loop never runs out in the simulator)";
    assert!(text.starts_with("deadlock: ") && text.contains(why), "{text}");
}
