//! Warps that wait in loops for words of their block's shared memory, or of other PEs' memory: waits, so that nothing depends on when a thread looks.

use onesided::{Grid, Pe, Result, Source, args};
use onesided_sim::{Config, Explore, Sim, Simulation, VerdictKind, check_random, prove};

const WARPS: &str = include_str!("../ptx/kernels/warps.ptx");

/// A block of so many warps on each PE. Its first number is then `seen`.
fn runs(name: &str, warps: u32, seen: i32) -> impl Fn(&Pe<Sim>) -> Result<()> + '_ {
    move |pe| {
        let words = [pe.alloc_zeroed::<i32>(1)?, pe.alloc_zeroed::<i32>(2)?, pe.alloc_zeroed::<i32>(8)?];
        let (module, stream) = (pe.module(&Source::ptx("warps.ptx", WARPS))?, pe.stream()?);
        let [flags, data, of] = &words;
        // SAFETY: the kernels take three pointers to numbers, of so many elements.
        unsafe {
            let kernel = module.kernel(name)?;
            pe.on(&stream).launch(&kernel, &Grid::new(1, 32 * warps).collective(), args![flags, data, of])?
        };
        pe.on(&stream).barrier_all()?;
        pe.synchronize(&stream)?;
        onesided::expect_eq(pe.read_one(of.at(0))?, seen, "what was seen")?;
        words.into_iter().try_for_each(|words| pe.free(words))
    }
}

/// What is wrong in each class, and what it says first.
fn findings(name: &str, warps: u32) -> Vec<String> {
    let mut said = Vec::new();
    let mut simulation = Simulation::new(Config::pes(1)).unwrap();
    let explored = simulation.explore(Explore::All { limit: 100 }, runs(name, warps, 0), |run| {
        said.extend((!run.is_ok()).then(|| run.verdict.to_string()));
        std::ops::ControlFlow::<()>::Continue(())
    });
    assert!(explored.unwrap().complete);
    said
}

#[test]
fn a_wait_in_shared_memory_has_one_class() {
    for (name, warps, seen) in
        [("chain", 4, 4), ("all_have_come", 4, 4), ("queue", 2, 21), ("two_slots", 2, 10), ("relay", 3, 7)]
    {
        for pes in [1, 2, 3] {
            assert_eq!(prove(pes, runs(name, warps, seen)).schedules, 1, "{name} on {pes} PEs");
        }
        check_random(2, runs(name, warps, seen));
    }
}

#[test]
fn a_wait_for_another_pes_word_has_one_class() {
    for pes in [1, 2, 3, 4] {
        assert_eq!(prove(pes, runs("pull", 1, 3)).schedules, 1, "{pes} PEs");
    }
    check_random(3, runs("pull", 1, 3));
}

#[test]
fn a_lock_in_shared_memory_has_a_class_for_each_order() {
    for (warps, orders) in [(2, 2), (3, 6), (4, 24)] {
        assert_eq!(prove(1, runs("under_a_lock", warps, warps as i32)).schedules, orders, "{warps}");
    }
}

/// The first look counts, though it is no step: what it races with may come before the look that ends the loop.
#[test]
fn a_look_in_vain_may_be_a_race() {
    let said = findings("forgets_a_barrier", 2);
    assert!(said.len() == 1 && said[0].contains("race in shared memory"), "{said:?}");
    assert!(said[0].contains("warps.cu:155") && said[0].contains("warps.cu:159"), "{said:?}");
}

#[test]
fn who_waits_in_shared_memory_for_ever_is_named() {
    let run = Simulation::new(Config::pes(1)).unwrap().run(runs("waits_for_another", 2, 0)).unwrap();
    assert!(matches!(run.verdict.kind, VerdictKind::Deadlock));
    let in_order = run.verdict.to_string();
    assert!(in_order.contains("thread 32 polls") && in_order.contains("in shared memory, found 1"), "{in_order}");
    let said = findings("waits_for_another", 2);
    assert!(said.len() == 1 && said[0].contains("in shared memory == 2, found 1 (i32)"), "{said:?}");
}

/// A block of a later kernel has the same name, and another memory.
#[test]
fn what_a_kernel_before_has_told_is_forgotten() {
    let program = |pe: &Pe<Sim>, times: u32| -> Result<()> {
        let words = [pe.alloc_zeroed::<i32>(1)?, pe.alloc_zeroed::<i32>(2)?, pe.alloc_zeroed::<i32>(8)?];
        let (module, stream) = (pe.module(&Source::ptx("warps.ptx", WARPS))?, pe.stream()?);
        let [flags, data, of] = &words;
        let kernel = module.kernel("tells_once")?;
        for _ in 0..times {
            // SAFETY: the kernel takes three pointers to numbers, of so many elements.
            unsafe { pe.on(&stream).launch(&kernel, &Grid::new(1, 64), args![flags, data, of])? };
        }
        pe.synchronize(&stream)?;
        words.into_iter().try_for_each(|words| pe.free(words))
    };
    assert_eq!(prove(1, |pe| program(pe, 1)).schedules, 1);
    let mut said = Vec::new();
    let mut simulation = Simulation::new(Config::pes(1)).unwrap();
    let explored = simulation.explore(
        Explore::All { limit: 100 },
        |pe| program(pe, 2),
        |run| {
            said.push(run.verdict.to_string());
            std::ops::ControlFlow::<()>::Continue(())
        },
    );
    assert!(explored.unwrap().complete && said.iter().all(|said| said.contains("race in shared memory")), "{said:?}");
}

/// A wait comes after what its word told when it became true, and not after what it told later: there is a schedule in which it ended then.
#[test]
fn a_late_look_learns_no_more_than_an_early_one() {
    for name in ["reads_too_much_in_shared", "reads_too_much_in_global"] {
        let said = findings(name, 3);
        assert!(!said.is_empty() && said.iter().all(|said| said.contains("race")), "{name}: {said:?}");
    }
}
