//! Payloads that say for themselves that they have come, because no element is the sentinel that lay there before: each element is waited for.

use std::ops::ControlFlow;

use onesided::{Grid, Pe, Result, Source, args};
use onesided_sim::{Config, Explore, Explored, Profile, Sim, Simulation, check_random};

use crate::hand_over::run;

const SENTINELS: &str = include_str!("../ptx/kernels/sentinels.ptx");

/// One block of so many threads on each PE, whose slots are filled with a sentinel.
fn runs(name: &str, sentinel: f32, threads: u32) -> impl Fn(&Pe<Sim>) -> Result<()> + '_ {
    move |pe| {
        let (slots, out) = (pe.alloc_zeroed::<f32>(128)?, pe.alloc_zeroed::<f32>(8)?);
        pe.write(&slots, &[sentinel; 128])?;
        pe.host().barrier_all()?;
        let source = Source::ptx("sentinels.ptx", SENTINELS);
        run(pe, &source, name, &Grid::new(1, threads).collective(), args![&slots, &out])?;
        onesided::expect_eq(pe.read(&out)?[0], (pe.my_pe() + 1) as f32 + 92.0, "the sum of what has come")?;
        pe.free(slots)?;
        pe.free(out)
    }
}

/// All schedules, and what was wrong in them.
fn explored(profile: Profile, pes: usize, program: impl Fn(&Pe<Sim>) -> Result<()>) -> (Explored, Vec<String>) {
    let (mut simulation, mut said) = (Simulation::new(Config { profile, ..Config::pes(pes) }).unwrap(), Vec::new());
    let explored = simulation.explore(Explore::All { limit: 1_000 }, program, |run| {
        said.extend((!run.is_ok()).then(|| run.verdict.to_string()));
        ControlFlow::<()>::Continue(())
    });
    (explored.unwrap(), said)
}

#[test]
fn each_element_is_waited_for() {
    for (name, sentinel) in [("minus_zero_by_bits", -0.0), ("minus_zero_by_sign", -0.0), ("magic_number", -12345.0)] {
        for pes in [2, 3] {
            let (found, said) = explored(Profile::Spec, pes, runs(name, sentinel, 2));
            assert_eq!((found.schedules, said, found.complete), (1, vec![], true), "{name} on {pes} PEs");
        }
        let (found, said) = explored(Profile::Nvlink, 2, runs(name, sentinel, 1));
        assert_eq!((found.schedules, said, found.complete), (1, vec![], true), "{name} over NVLink");
        check_random(3, runs(name, sentinel, 2));
    }
}

/// A comparison of numbers is none of their bits.
#[test]
fn a_payload_that_equals_the_sentinel_never_comes() {
    let (found, said) = explored(Profile::Spec, 2, runs("zero_of_either_sign", -0.0, 1));
    assert!(found.complete && !said.is_empty());
    assert!(said.iter().all(|said| said.contains("deadlock") && said.contains("sentinels.cu:9")), "{said:?}");
    let (found, _) = explored(Profile::Spec, 2, runs("minus_zero_by_bits", 0.0, 1));
    assert!(found.findings > 0, "nobody waits for what is no sentinel");
}

/// Numbers of 16 bits, which are compared as ones of 32.
fn runs_short(name: &str, sentinel: u16) -> impl Fn(&Pe<Sim>) -> Result<()> + '_ {
    move |pe| {
        let (slots, out) = (pe.alloc_zeroed::<u16>(8)?, pe.alloc_zeroed::<f32>(2)?);
        pe.write(&slots, &[sentinel; 8])?;
        pe.host().barrier_all()?;
        let source = Source::ptx("sentinels.ptx", SENTINELS);
        run(pe, &source, name, &Grid::new(1, 2).collective(), args![&slots, &out])?;
        onesided::expect_eq(pe.read(&out)?, vec![92.0; 2], "the sums of what has come")?;
        pe.free(slots)?;
        pe.free(out)
    }
}

#[test]
fn numbers_of_16_bits_are_waited_for() {
    for name in ["halves", "bfloats"] {
        for pes in [2, 3] {
            let (found, said) = explored(Profile::Spec, pes, runs_short(name, 0x8000));
            assert_eq!((found.schedules, said, found.complete), (1, vec![], true), "{name} on {pes} PEs");
        }
        check_random(3, runs_short(name, 0x8000));
        let (found, _) = explored(Profile::Spec, 2, runs_short(name, 0));
        assert!(found.findings > 0, "{name}: nobody waits for what is no sentinel");
    }
    let mut simulation = Simulation::new(Config::pes(2)).unwrap();
    let run = runs_short("halves_that_nothing_equals", 0x8000);
    let found = simulation.explore(Explore::random(40, 1), run, |_| ControlFlow::<()>::Continue(())).unwrap();
    assert!(found.findings > 0, "nothing equals a number that is none of 16 bits");
}

#[test]
fn what_is_no_number_equals_nothing() {
    let mut simulation = Simulation::new(Config::pes(2)).unwrap();
    let run = runs("not_a_number", f32::NAN, 1);
    let found = simulation.explore(Explore::random(40, 1), run, |_| ControlFlow::<()>::Continue(())).unwrap();
    assert!(found.findings > 0);
}
