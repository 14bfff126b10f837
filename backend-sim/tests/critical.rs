//! The step after which every schedule fails, of runs in which that step is known.

use std::ops::ControlFlow;

use crate::common::without_lines;
use onesided::{Cmp, Pe, Result, SignalOp, expect_eq};
use onesided_sim::{Config, Critical, Effort, Explore, NoWayBack, Run, Sim, Simulation};

/// The first schedule that fails, with the simplest one that fails alike.
fn failing<T>(simulation: &mut Simulation, program: impl Fn(&Pe<Sim>) -> Result<T>) -> Run<T> {
    let mut found = None;
    let how = Explore::All { limit: 10_000 };
    let visit = |run: &Run<T>| {
        found = (!run.is_ok()).then(|| run.without_results());
        if found.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    simulation.explore(how, &program, visit).unwrap();
    let found = found.expect("it fails on some schedule");
    simulation.minimize(&found, Effort::LITTLE, &program).unwrap().map_or(found, |minimized| minimized.run)
}

fn critical<T>(pes: usize, program: impl Fn(&Pe<Sim>) -> Result<T> + Sync) -> Option<Critical> {
    let mut simulation = Simulation::new(Config::pes(pes)).unwrap();
    let run = failing(&mut simulation, &program);
    let alone = simulation.critical(&run, Effort::LITTLE, &program).unwrap();
    for cores in [1, 2, 3] {
        let on_cores = simulation.on_cores(Some(cores)).critical(&run, Effort::LITTLE, &program).unwrap();
        assert_eq!(on_cores, alone, "on {cores} cores");
    }
    alone
}

/// The second signal comes first, and the first one overwrites it before the wait has looked: only that is fatal.
#[test]
fn a_value_that_is_overwritten_before_anybody_looks() {
    let found = critical(2, |pe| {
        let word = pe.alloc_zeroed::<u64>(1)?;
        if pe.my_pe() == 0 {
            pe.host().signal_op(word.signal(0), 1, SignalOp::Set, 1)?;
            pe.host().signal_op(word.signal(0), 2, SignalOp::Set, 1)?;
        } else {
            pe.host().signal_wait_until(word.signal(0), Cmp::Eq, 2)?;
        }
        pe.free(word)
    });
    let found = found.expect("the wait could end before");
    let said = without_lines(&found);
    insta::assert_snapshot!(said);
    assert!(matches!(found.shown, NoWayBack::Proved { .. }));
}

/// PE 0 must not be second. Whoever comes first decides nothing yet.
#[test]
fn a_ticket_that_nobody_may_have() {
    let found = critical(3, |pe| {
        let counter = pe.alloc_zeroed::<u64>(1)?;
        let mine = pe.host().atomic_fetch_inc(&counter, 0)?;
        pe.host().barrier_all()?; // who comes third is no choice any more, but a step
        expect_eq(pe.my_pe() == 0 && mine == 1, false, "the second ticket is PE 0's:")?;
        pe.free(counter)
    });
    let found = found.expect("another can be second");
    assert!(found.step.contains("by PE 0"), "{found}");
    assert!(found.instead.contains("by PE 1") || found.instead.contains("by PE 2"), "{found}");
    assert!(found.number < found.of, "what comes behind it is not critical: {found}");
}

/// A race is there in every schedule, and so is a wrong check that no order helps.
#[test]
fn what_fails_on_every_schedule_has_no_critical_step() {
    let race = critical(2, |pe| {
        let word = pe.alloc_zeroed::<u64>(1)?;
        if pe.my_pe() == 0 {
            pe.host().p(&word, 7, 1)?;
        }
        pe.host().sync_all()?;
        let found = pe.read_one(&word)?;
        pe.free(word)?;
        Ok(found)
    });
    assert_eq!(race, None);
    let wrong = critical(2, |pe| {
        let counter = pe.alloc_zeroed::<u64>(1)?;
        pe.host().atomic_fetch_inc(&counter, 0)?;
        pe.host().barrier_all()?;
        expect_eq(pe.host().atomic_fetch(&counter, 0)?, 3, "tickets")?;
        pe.free(counter)
    });
    assert_eq!(wrong, None);
}

/// Where the effort does not last, nothing is said.
#[test]
fn little_effort_says_nothing() {
    let program = |pe: &Pe<Sim>| {
        let counter = pe.alloc_zeroed::<u64>(1)?;
        let mine = pe.host().atomic_fetch_inc(&counter, 0)?;
        expect_eq(pe.my_pe() == 0 && mine == 1, false, "the second ticket is PE 0's:")?;
        pe.free(counter)
    };
    let mut simulation = Simulation::new(Config::pes(3)).unwrap();
    let run = failing(&mut simulation, program);
    let found = |steps| simulation.critical(&run, Effort { schedules: 100, steps }, program).unwrap();
    assert_eq!(found(10), None);
    assert!(found(100_000).is_some());
}

/// Two rounds of a loop are two steps: the words tell them apart.
#[test]
fn rounds_of_a_loop_are_told_apart() {
    let program = |pe: &Pe<Sim>| {
        let word = pe.alloc_zeroed::<u64>(1)?;
        for value in [1, 2] {
            if pe.my_pe() == 0 {
                pe.host().signal_op(word.signal(0), value, SignalOp::Set, 1)?;
            }
        }
        if pe.my_pe() == 1 {
            pe.host().signal_wait_until(word.signal(0), Cmp::Eq, 2)?;
        }
        pe.free(word)
    };
    let mut simulation = Simulation::new(Config::pes(2)).unwrap();
    let run = failing(&mut simulation, program);
    let found = simulation.critical(&run, Effort::LITTLE, program).unwrap().expect("the wait could end before");
    let exceptions =
        simulation.minimize(&run, Effort::LITTLE, program).unwrap().expect("it is no run in order").exceptions;
    insta::assert_snapshot!(without_lines(format!("{found}\n{exceptions:#?}")));
}
