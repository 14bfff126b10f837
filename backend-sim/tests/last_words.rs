//! PEs that end the whole process are named before it ends.
#![cfg(unix)]

use std::ops::ControlFlow;
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;

use onesided::Pe;
use onesided_sim::{Config, Ending, Explore, Sim, Simulation, prove};

mod again;
use again::{again, is_again};

/// How the test of this name ends where its PEs do it, and what is printed on standard error.
fn end_of(test: &str) -> (ExitStatus, String) {
    let output = again(test).output().unwrap();
    (output.status, String::from_utf8(output.stderr).unwrap())
}

/// There, PE 1 ends the process after its call at this line.
fn assert_exits(test: &str, line: u32) {
    let (status, said) = end_of(test);
    let place = format!("{}:{line}", file!());
    let expected = format!(
        "PE 1 ended the process (std::process::exit, or C's exit) after its call at {place}; a PE ends by returning, or \
         with pe.global_exit\n"
    );
    assert!(said.contains(&expected), "{said}");
    assert_eq!(status.code(), Some(2), "{said}");
}

#[test]
fn a_pe_that_exits_the_process_is_named_and_does_not_pass() {
    let line = line!() + 3;
    if is_again() {
        let exits = |pe: &Pe<Sim>| {
            pe.host().barrier_all()?;
            if pe.my_pe() == 1 { std::process::exit(0) } else { Ok(()) }
        };
        let _ = prove(2, exits);
        return;
    }
    assert_exits("a_pe_that_exits_the_process_is_named_and_does_not_pass", line);
}

/// The run is over when it does that: another PE has failed.
#[test]
fn a_destructor_that_exits_the_process_is_named_too() {
    struct Exits;
    impl Drop for Exits {
        fn drop(&mut self) {
            std::process::exit(0);
        }
    }
    let line = line!() + 7;
    if is_again() {
        let unwound = |pe: &Pe<Sim>| {
            if pe.my_pe() == 0 {
                panic!("so that the other is unwound");
            }
            let _exits = Exits;
            pe.host().barrier_all()
        };
        let config = Config { ending: Ending::Unwind, ..Config::pes(2) };
        let _ = Simulation::new(config).unwrap().explore(Explore::random(9, 0), unwound, |_| ControlFlow::Continue(()));
        return;
    }
    assert_exits("a_destructor_that_exits_the_process_is_named_too", line);
}

#[test]
fn an_exit_that_is_no_pes_is_as_ever() {
    if is_again() {
        // on another thread, while a PE runs
        let other = |_: &Pe<Sim>| Ok(std::thread::spawn(|| std::process::exit(7)).join().is_ok());
        drop(Simulation::new(Config::pes(1)).unwrap().run(other));
        return;
    }
    let (status, said) = end_of("an_exit_that_is_no_pes_is_as_ever");
    assert!(!said.contains("ended the process"), "{said}");
    assert_eq!(status.code(), Some(7), "{said}");
}

#[test]
fn an_exit_between_runs_is_as_ever() {
    if is_again() {
        let _ = prove(2, |pe| pe.host().barrier_all());
        std::process::exit(7);
    }
    let (status, said) = end_of("an_exit_between_runs_is_as_ever");
    assert!(!said.contains("ended the process"), "{said}");
    assert_eq!(status.code(), Some(7), "{said}");
}

/// Needs more stack for each level.
#[inline(never)]
fn descend(levels: u64) -> u64 {
    let room = std::hint::black_box([levels; 64]);
    if levels == 0 { 0 } else { descend(levels - 1) + room[1] }
}

fn assert_overflows(test: &str, message: &str) {
    let (status, said) = end_of(test);
    assert!(said.contains(message), "expected {message}; found {said}");
    let signal = status.signal().expect("it ends by a signal");
    assert!([11, 10, 7].contains(&signal), "SIGSEGV, or a SIGBUS: {signal}");
}

#[test]
fn a_pe_whose_recursion_is_too_deep_is_named() {
    let line = line!() + 3;
    if is_again() {
        let recurses = |pe: &Pe<Sim>| {
            pe.host().barrier_all()?;
            if pe.my_pe() == 1 { Ok(descend(1_000_000)) } else { Ok(0) }
        };
        let _ = prove(2, |pe| recurses(pe).map(drop));
        return;
    }
    let message = format!(
        "PE 1 overflowed its stack of 256 KiB; its last call was at {}:{line}; give PEs more with --stack 4M \
         (Config::stack)\n",
        file!()
    );
    assert_overflows("a_pe_whose_recursion_is_too_deep_is_named", &message);
}

#[test]
fn a_pe_with_a_local_that_is_too_large_is_named() {
    if is_again() {
        let config = Config { stack: 8 << 20, ..Config::pes(1) };
        let large = |_: &onesided_sim::SimProcess| Ok(std::hint::black_box([1_u8; 9 << 20])[5]);
        drop(Simulation::new(config).unwrap().run_process(large));
        return;
    }
    let message =
        "PE 0 overflowed its stack of 8192 KiB; it has made no call; give PEs more with --stack 32M (Config::stack)\n";
    assert_overflows("a_pe_with_a_local_that_is_too_large_is_named", message);
}

/// Not a PE's: whoever handled such faults before does.
#[test]
fn a_full_stack_of_a_thread_is_reported_by_std() {
    if is_again() {
        let _ = prove(1, |pe| pe.host().barrier_all());
        let other = |_: &Pe<Sim>| Ok(std::thread::spawn(|| descend(100_000_000)).join().is_ok());
        drop(Simulation::new(Config::pes(1)).unwrap().run(other));
        return;
    }
    let (status, said) = end_of("a_full_stack_of_a_thread_is_reported_by_std");
    assert!(said.contains("has overflowed its stack") && !said.contains("PE 0"), "{said}");
    assert!(status.signal().is_some(), "{status}");
}
