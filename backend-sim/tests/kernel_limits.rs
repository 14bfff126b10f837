//! Kernels that compute for long: the limit of instructions gives them up, and time or a flag ends a run while they compute.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use onesided::{Grid, Pe, Result, Source, args};
use onesided_sim::{Bound, Budget, Config, Explore, Explored, Run, Sim, Simulation, VerdictKind};

/// Every round stores another value, so no look at the threads shows that nothing can end the loop.
const COUNT: &str = include_str!("count.ptx");

/// A kernel of one thread counts: four instructions a round.
fn counts(rounds: u32) -> impl Fn(&Pe<Sim>) -> Result<u32> + Sync {
    move |pe| {
        let word = pe.alloc_zeroed::<u32>(1)?;
        let module = pe.module(&Source::ptx("count.ptx", COUNT))?;
        let stream = pe.stream()?;
        // SAFETY: the kernel takes a pointer to a word, and a number.
        unsafe { pe.on(&stream).launch(&module.kernel("count")?, &Grid::new(1, 1), args![&word, rounds])? };
        pe.synchronize(&stream)?;
        let found = pe.read(&word)?[0];
        pe.free(word)?;
        Ok(found)
    }
}

/// Practically for ever.
const ENDLESS: u32 = u32::MAX;

fn simulation(config: Config) -> Simulation {
    Simulation::new(config).unwrap()
}

#[test]
fn a_long_block_is_given_up_and_not_a_finding() {
    let config = Config { max_instructions: 4000, ..Config::pes(2) };
    let run = simulation(config.clone()).run(counts(2000)).unwrap();
    assert!(run.is_given_up() && !run.is_ok(), "{}", run.verdict);
    let VerdictKind::InstructionLimit { instructions: 4000, at, .. } = &run.verdict.kind else {
        panic!("{}", run.verdict)
    };
    assert!(at.to_string().starts_with("count.ptx:"), "{at}");
    let said = run.verdict.to_string();
    let what = "instruction limit: given up after 4000 instructions of a block of kernel count on PE ";
    assert!(said.starts_with(what), "{said}");

    let mut outcomes = Vec::new();
    let visit = |run: &Run<u32>| {
        outcomes.push(run.verdict.kind.outcome());
        ControlFlow::Continue(())
    };
    let explored = simulation(config).explore(Explore::All { limit: 9 }, counts(2000), visit).unwrap();
    assert!(!explored.complete && explored.findings == 0 && explored.given_up == explored.schedules, "{explored:?}");
    assert!(!outcomes.is_empty() && outcomes.iter().all(|outcome| outcome == "instruction limit"), "{outcomes:?}");

    let enough = Config { max_instructions: 9000, ..Config::pes(2) };
    assert_eq!(simulation(enough).run(counts(2000)).unwrap().results, [Some(2000), Some(2000)]);
}

/// What a search of an endless kernel comes to, alone and with a helper.
fn explored(how: Explore, prepare: impl Fn(&mut Simulation)) -> [Explored; 2] {
    [1, 2].map(|cores| {
        let mut simulation = simulation(Config { max_instructions: u64::MAX, ..Config::pes(2) });
        prepare(&mut simulation);
        let none = |run: &Run<u32>| panic!("a run that was stopped is no schedule: {}", run.verdict);
        simulation.on_cores(Some(cores)).explore(how, counts(ENDLESS), none).unwrap()
    })
}

#[test]
fn time_ends_a_run_while_a_kernel_computes() {
    let time = Duration::from_millis(20);
    let budget = Budget { time: Some(time), memory: None };
    let mut one = simulation(Config { max_instructions: u64::MAX, ..Config::pes(2) });
    one.set_budget(budget);
    let run = one.run(counts(ENDLESS)).unwrap();
    assert!(matches!(run.verdict.kind, VerdictKind::Stopped { bound: Bound::Time(_) }), "{}", run.verdict);
    assert!(run.is_given_up());
    let again = one.replay(&run.schedule, counts(ENDLESS)).unwrap();
    assert!(again.is_given_up(), "{}", again.verdict);

    for how in [Explore::All { limit: 9 }, Explore::random(9, 0)] {
        for explored in explored(how, |simulation| simulation.set_budget(budget)) {
            assert_eq!((explored.schedules, explored.bound), (0, Some(Bound::Time(time))));
            assert!(!explored.complete);
        }
    }
}

#[test]
fn a_flag_ends_a_run_while_a_kernel_computes() {
    let flag = || Arc::new(AtomicBool::new(true));
    let mut one = simulation(Config { max_instructions: u64::MAX, ..Config::pes(2) });
    one.stop_when(flag());
    let run = one.run(counts(ENDLESS)).unwrap();
    assert!(matches!(run.verdict.kind, VerdictKind::Stopped { bound: Bound::Stopped }), "{}", run.verdict);

    for how in [Explore::All { limit: 9 }, Explore::random(9, 0)] {
        for explored in explored(how, |simulation| simulation.stop_when(flag())) {
            assert_eq!((explored.schedules, explored.bound), (0, Some(Bound::Stopped)));
        }
    }
}

/// Whether a block is looked at changes nothing in a run: the same schedules, in the same number of steps.
#[test]
fn a_deadline_that_does_not_come_changes_nothing() {
    let searched = |time: Option<Duration>| {
        let mut simulation = simulation(Config::pes(2));
        simulation.set_budget(Budget { time, memory: None });
        let mut seen = Vec::new();
        let visit = |run: &Run<u32>| {
            seen.push((run.steps, run.schedule.to_string(), run.results.clone()));
            ControlFlow::Continue(())
        };
        simulation.explore(Explore::All { limit: 9 }, counts(400_000), visit).unwrap();
        seen
    };
    let without = searched(None);
    assert!(!without.is_empty());
    assert_eq!(searched(Some(Duration::from_secs(3600))), without);
}
