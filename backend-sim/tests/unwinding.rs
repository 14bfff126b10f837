//! When a PE fails, the others are unwound: destructors run, cannot communicate, and the process goes on. And the life of
//! simulations themselves: one after the other, many PEs, none inside another.

use std::cell::{Cell, OnceCell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};

use onesided::{Bootstrap, Cmp, Error, ErrorKind, InitMethod, Pe, ReduceOp, Result, SignalOp, expect_eq};
use onesided_sim::{Config, Ending, Explore, Races, Sim, SimProcess, Simulation, VerdictKind};

use crate::common::{in_order, verdict, without_lines};

/// Notes that it was dropped, and what a call made from there returned.
struct Guard<'a> {
    pe: &'a Pe<Sim>,
    dropped: &'a RefCell<Vec<(usize, Option<ErrorKind>)>>,
}

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        let kind = self.pe.host().barrier_all().err().map(|error| error.kind());
        self.dropped.borrow_mut().push((self.pe.my_pe(), kind));
    }
}

/// Runs a program whose PEs hold a guard; what the guards saw, by PE.
fn guarded(body: impl Fn(&Pe<Sim>) -> Result<()>) -> (VerdictKind, Vec<(usize, Option<ErrorKind>)>) {
    let dropped = RefCell::default();
    let config = Config { races: Races::Ignore, ..Config::pes(3) }; // which ends the run with the failure
    let run = Simulation::new(config).unwrap().run(|pe| {
        let _guard = Guard { pe, dropped: &dropped };
        body(pe)
    });
    let mut dropped = dropped.take();
    dropped.sort();
    (run.unwrap().verdict.kind, dropped)
}

const ABORTED: Option<ErrorKind> = Some(ErrorKind::Aborted);

#[test]
fn when_one_pe_panics_all_are_unwound_and_their_destructors_cannot_communicate() {
    let (kind, dropped) = guarded(|pe| {
        pe.host().sync_all()?; // everybody has begun
        assert!(pe.my_pe() != 1, "PE {} has had enough", pe.my_pe());
        pe.host().barrier_all()
    });
    let VerdictKind::Panicked { pe: 1, message, .. } = kind else { panic!("{kind}") };
    assert_eq!(message, "PE 1 has had enough");
    assert_eq!(dropped, [(0, ABORTED), (1, ABORTED), (2, ABORTED)]);
}

#[test]
fn when_one_pe_fails_the_others_are_unwound() {
    let (kind, dropped) = guarded(|pe| {
        pe.host().sync_all()?; // everybody has begun
        expect_eq(pe.my_pe() % 2, 0, "the parity")?;
        pe.host().barrier_all()
    });
    // the failing PE's own destructor runs before its program has returned: its barrier is that of the others
    assert!(matches!(kind, VerdictKind::Failed { pe: 1, .. }), "{kind}");
    assert_eq!(dropped, [(0, ABORTED), (1, None), (2, ABORTED)]);

    let failing = |pe: &Pe<Sim>| {
        pe.host().sync_all()?;
        expect_eq(pe.my_pe() % 2, 0, "the parity")?;
        pe.host().barrier_all()
    };
    let verdict = verdict(3, failing);
    insta::assert_snapshot!(without_lines(&verdict.kind), @"PE 1 failed: check: the parity is 1, expected 0 (wrong result, backend-sim/tests/unwinding.rs:_)");
    let report = verdict.to_string();
    for waiting in ["PE 0: in barrier at", "PE 2: in barrier at", "waits for PE 1 to enter barrier #2 on TEAM_WORLD"] {
        assert!(report.contains(waiting), "{report}");
    }
    let run = Simulation::new(Config::pes(3)).unwrap().run(failing).unwrap();
    let error = run.into_results().unwrap_err();
    assert_eq!((error.kind(), error.message()), (ErrorKind::WrongResult, "the parity is 1, expected 0"));
}

#[test]
fn a_finished_run_unwinds_nobody() {
    let (kind, dropped) = guarded(|_| Ok(()));
    assert!(matches!(kind, VerdictKind::Finished));
    assert_eq!(dropped, [(0, None), (1, None), (2, None)]); // the barriers worked
}

#[test]
fn deadlock_mismatch_exit_and_step_limit_unwind_too() {
    let (kind, dropped) = guarded(|pe| {
        let word = pe.alloc_zeroed::<u64>(1)?;
        pe.host().wait_until(&word, Cmp::Eq, 1)?;
        pe.free(word)
    });
    assert!(matches!(kind, VerdictKind::Deadlock));
    assert_eq!(dropped.len(), 3);

    let (kind, dropped) = guarded(|pe| if pe.my_pe() == 2 { pe.host().sync_all() } else { pe.host().barrier_all() });
    assert!(matches!(kind, VerdictKind::Mismatch { .. }));
    // PE 1 may still have been in its initialization
    let [(0, ABORTED), .., (2, ABORTED)] = dropped[..] else { panic!("{dropped:?}") };

    let (kind, dropped) = guarded(|pe| if pe.my_pe() == 0 { pe.global_exit(4) } else { pe.host().barrier_all() });
    assert!(matches!(kind, VerdictKind::Exited { status: 4, .. }));
    assert!(dropped.contains(&(0, ABORTED)), "{dropped:?}");

    let dropped = Cell::new(0);
    struct Count<'a>(&'a Cell<usize>);
    impl Drop for Count<'_> {
        fn drop(&mut self) {
            self.0.set(self.0.get() + 1);
        }
    }
    let config = Config { max_steps: Some(500), ..Config::pes(3) };
    let run = Simulation::new(config).unwrap().run(|pe| -> Result<()> {
        let _count = Count(&dropped);
        let word = pe.alloc_zeroed::<u64>(1)?;
        loop {
            pe.read(&word)?;
        }
    });
    assert!(matches!(run.unwrap().verdict.kind, VerdictKind::StepLimit { .. }));
    assert_eq!(dropped.get(), 3);
}

#[test]
fn a_program_may_catch_its_own_panics() {
    let program = |pe: &Pe<Sim>| {
        let panics = pe.my_pe() == 0;
        let caught = catch_unwind(move || {
            if panics {
                std::panic::panic_any(7u8)
            }
        });
        pe.host().barrier_all()?;
        Ok(caught.is_err())
    };
    assert_eq!(in_order(Config::pes(2), program), [true, false]);
    // uncaught, a payload that is no text has no message
    let verdict = verdict(1, |_: &Pe<Sim>| -> Result<()> { std::panic::panic_any(7u8) });
    let said = verdict.kind.to_string();
    assert!(said.starts_with("PE 0 panicked at ") && said.ends_with(": (no message)"), "{said}");
}

#[test]
fn a_program_that_catches_its_unwinding_is_refused_further_calls() {
    let refused = RefCell::new(String::new());
    let run = Simulation::new(Config::pes(2)).unwrap().run(|pe| {
        let flag = pe.alloc_zeroed::<u64>(1)?;
        if pe.my_pe() == 0 {
            // PE 1 is in its barrier when this ends
            pe.host().signal_wait_until(flag.signal(0), Cmp::Eq, 1)?;
            return Err(Error::wrong_result("over"));
        }
        pe.host().signal_op(flag.signal(0), 1, SignalOp::Set, 0)?;
        let caught = catch_unwind(AssertUnwindSafe(|| pe.host().barrier_all()));
        assert!(caught.is_err());
        *refused.borrow_mut() = pe.host().barrier_all().unwrap_err().to_string();
        Ok(())
    });
    assert!(matches!(run.unwrap().verdict.kind, VerdictKind::Failed { pe: 0, .. }));
    let refused = refused.take();
    assert!(refused.contains("the run is over"), "{refused}");
}

#[test]
fn a_program_that_panics_while_it_is_unwound_ends_with_its_verdict() {
    for _ in 0..2 {
        let run = Simulation::new(Config::pes(3)).unwrap().run(|pe| -> Result<()> {
            pe.host().sync_all()?;
            if pe.my_pe() == 1 {
                return Err(Error::wrong_result("over"));
            }
            let caught = catch_unwind(AssertUnwindSafe(|| pe.host().barrier_all()));
            panic!("PE {} panics again: {}", pe.my_pe(), caught.is_err())
        });
        assert!(matches!(run.unwrap().verdict.kind, VerdictKind::Failed { pe: 1, .. }));
    }
}

#[test]
fn a_program_that_goes_on_calling_ends_with_its_verdict() {
    let fails = |pe: &Pe<Sim>| {
        pe.host().sync_all()?;
        expect_eq(pe.my_pe() != 0, true, "the PE") // PE 1 is in its next call then
    };
    let calls = Cell::new(0);
    // errors are ignored
    let ignores = Simulation::new(Config::pes(2)).unwrap().run(|pe| -> Result<()> {
        fails(pe)?;
        let _ = catch_unwind(AssertUnwindSafe(|| pe.host().barrier_all()));
        loop {
            calls.set(calls.get() + 1);
            let _ = pe.host().quiet();
        }
    });
    assert!(matches!(ignores.unwrap().verdict.kind, VerdictKind::Failed { pe: 0, .. }));
    assert!(calls.get() > 0);
    // panics are caught
    let mut simulation = Simulation::new(Config::pes(2)).unwrap();
    let catches = simulation.run(|pe| -> Result<()> {
        fails(pe)?;
        loop {
            let _ = catch_unwind(AssertUnwindSafe(|| pe.host().barrier_all()));
        }
    });
    assert!(matches!(catches.unwrap().verdict.kind, VerdictKind::Failed { pe: 0, .. }));
    // and the simulation can be used again
    assert!(simulation.run(|pe| pe.host().barrier_all()).unwrap().is_ok());
}

#[test]
fn hosts_can_be_ended_by_errors_instead_of_unwinding() {
    let config = Config { ending: Ending::Error, ..Config::pes(3) };
    let ended = RefCell::new(Vec::new());
    let run = Simulation::new(config).unwrap().run(|pe| -> Result<()> {
        pe.host().sync_all()?;
        if pe.my_pe() == 1 {
            return Err(Error::wrong_result("over"));
        }
        let caught = catch_unwind(AssertUnwindSafe(|| pe.host().barrier_all()));
        let error = caught.expect("no panic crosses the host's frames").unwrap_err();
        let next = pe.host().quiet().unwrap_err();
        ended.borrow_mut().push((pe.my_pe(), error.call(), error.kind(), next.kind()));
        Err(error)
    });
    let verdict = run.unwrap().verdict;
    assert!(matches!(verdict.kind, VerdictKind::Failed { pe: 1, .. }), "{verdict}");
    let aborted = ErrorKind::Aborted;
    assert_eq!(ended.take(), [(0, "barrier", aborted, aborted), (2, "barrier", aborted, aborted)]);
}

#[test]
fn a_pe_that_outlives_its_run_is_refused() {
    let kept = RefCell::new(Vec::new());
    let mut simulation = Simulation::new(Config::pes(2)).unwrap();
    let run = simulation.run_process(|process| {
        let pe = process.init(InitMethod::Launcher)?;
        kept.borrow_mut().push(pe);
        Ok(())
    });
    assert!(run.unwrap().is_ok());
    for pe in kept.take() {
        let error = pe.host().barrier_all().unwrap_err();
        assert_eq!((error.kind(), error.call()), (ErrorKind::Aborted, "barrier"));
        assert_eq!(pe.alloc::<u8>(1).unwrap_err().kind(), ErrorKind::Aborted);
        assert_eq!(pe.finalize().unwrap_err().kind(), ErrorKind::Aborted);
    }
}

#[test]
fn a_pe_is_used_by_its_own_program_only() {
    let shared: OnceCell<Pe<Sim>> = OnceCell::new();
    let run = Simulation::new(Config::pes(2)).unwrap().run_process(|process: &SimProcess| {
        let pe = process.init(InitMethod::Launcher)?;
        if process.rank() == 0 {
            shared.get_or_init(|| pe).host().barrier_all()?;
            return Ok(String::new());
        }
        pe.host().barrier_all()?;
        Ok(shared.get().expect("PE 0 shared it before the barrier").host().quiet().unwrap_err().to_string())
    });
    let message = run.unwrap().results[1].clone().expect("PE 1 returned");
    assert!(message.contains("by the program that it was given to"), "{message}");
}

#[test]
fn simulations_one_after_the_other_and_side_by_side() {
    let program = |pe: &Pe<Sim>| {
        let x = pe.alloc_zeroed::<u64>(1)?;
        pe.host().atomic_add(&x, 1 + pe.my_pe() as u64, 0)?;
        pe.host().barrier_all()?;
        let sum = pe.host().g(&x, 0)?;
        pe.free(x)?;
        Ok(sum)
    };
    let (mut small, mut large) = (Simulation::new(Config::pes(2)).unwrap(), Simulation::new(Config::pes(4)).unwrap());
    for _ in 0..3 {
        assert_eq!(small.run(program).unwrap().into_results().unwrap(), [3; 2]);
        assert_eq!(large.run(program).unwrap().into_results().unwrap(), [10; 4]);
        // a failure in between leaves nothing behind
        assert!(!small.run(|pe| expect_eq(pe.my_pe(), 0, "the PE")).unwrap().is_ok());
    }
    let threads = [2, 3].map(|pes| std::thread::spawn(move || in_order(Config::pes(pes), program)));
    assert_eq!(threads.map(|thread| thread.join().unwrap()), [vec![3; 2], vec![6; 3]]);
}

#[test]
fn a_simulation_inside_a_pe_is_refused() {
    let inside = |start: fn(&mut Simulation) -> Result<()>| {
        verdict(1, |_: &Pe<Sim>| start(&mut Simulation::new(Config::pes(1)).unwrap())).kind.to_string()
    };
    let runs = inside(|inner| inner.run(|pe| Ok(pe.my_pe())).map(drop));
    let searches = inside(|inner| {
        inner.explore(Explore::All { limit: 9 }, |pe| Ok(pe.my_pe()), |_| std::ops::ControlFlow::Continue(())).map(drop)
    });
    for said in [runs, searches] {
        let expected = ": a simulation cannot be started inside a PE of another";
        assert!(
            said.starts_with("PE 0 panicked at backend-sim/tests/unwinding.rs:") && said.ends_with(expected),
            "{said}"
        );
    }
    // and the thread is free again
    assert_eq!(in_order(Config::pes(1), |pe| Ok(pe.my_pe())), [0]);
}

#[test]
fn a_visitor_may_run_other_simulations() {
    let mut inner = Simulation::new(Config::pes(1)).unwrap();
    let mut ran = 0;
    let mut outer = Simulation::new(Config::pes(2)).unwrap();
    let random = Explore::random(3, 0);
    let explored = outer.explore(
        random,
        |pe| pe.host().barrier_all(),
        |_| {
            ran += usize::from(inner.run(|pe| pe.host().quiet()).unwrap().is_ok());
            std::ops::ControlFlow::Continue(())
        },
    );
    assert_eq!((explored.unwrap().schedules, ran), (3, 3));
}

#[test]
fn two_hundred_pes() {
    const N: usize = 200;
    let program = |pe: &Pe<Sim>| {
        let (me, n) = (pe.my_pe(), pe.n_pes());
        let (src, dst) = (pe.alloc::<u32>(1)?, pe.alloc_zeroed::<u32>(1)?);
        let sum = pe.alloc_zeroed::<u32>(1)?;
        pe.write(&src, &[me as u32])?;
        pe.host().put(&dst, &src, (me + 1) % n)?;
        pe.host().barrier_all()?;
        pe.host().reduce(pe.world(), &sum, &dst, ReduceOp::Sum)?;
        let result = (pe.read(&dst)?[0], pe.read(&sum)?[0]);
        pe.free(sum)?;
        pe.free(dst)?;
        pe.free(src)?;
        Ok(result)
    };
    let expected: Vec<_> = (0..N as u32).map(|me| ((me + N as u32 - 1) % N as u32, (N * (N - 1) / 2) as u32)).collect();
    let mut simulation = Simulation::new(Config::pes(N)).unwrap();
    assert_eq!(simulation.run(program).unwrap().into_results().unwrap(), expected);
    let random = Explore::random(3, 9);
    let explored = simulation.explore(random, program, |run| {
        assert!(run.is_ok(), "{}", run.verdict);
        assert!(run.results.iter().flatten().eq(&expected));
        std::ops::ControlFlow::Continue(())
    });
    assert_eq!(explored.unwrap().schedules, 3);
}

#[test]
fn stacks_are_used_again() {
    let address = |_: &Pe<Sim>| {
        let local = 0u8;
        Ok(std::hint::black_box(&raw const local) as usize)
    };
    let mut simulation = Simulation::new(Config::pes(8)).unwrap();
    let mut run = |fails: bool| {
        let run = simulation.run(|pe| if fails { expect_eq(0, 1, "this").map(|()| 0) } else { address(pe) }).unwrap();
        let mut addresses: Vec<usize> = run.results.into_iter().flatten().collect();
        addresses.sort_unstable();
        addresses
    };
    let first = run(false);
    assert_eq!(first.len(), 8);
    run(true);
    assert_eq!(run(false), first, "the same eight stacks, in whatever order");
}

#[test]
fn stacks_have_the_size_that_was_asked_for() {
    let depth = |pe: &Pe<Sim>| {
        let big = [pe.my_pe() as u8; 200 << 10];
        Ok(std::hint::black_box(&big)[100 << 10])
    };
    assert_eq!(in_order(Config { stack: 1 << 20, ..Config::pes(2) }, depth), [0, 1]);
    let small = Simulation::new(Config { stack: 1 << 10, ..Config::default() }).unwrap_err();
    assert!(small.message().contains("at least 32 KiB"), "{small}");
}
