//! The panic of a PE is in its verdict, with its line, and is not printed. Panics of others are printed as ever.
//!
//! The hook belongs to the whole process, so only one test here has panics in this one.

use std::panic::{self, AssertUnwindSafe};
use std::sync::atomic::{AtomicU32, Ordering};

use onesided::{Pe, Result};
use onesided_sim::{Config, Sim, Simulation, VerdictKind, prove};

mod again;
use again::{again, is_again};

type Program = fn(&Pe<Sim>) -> Result<()>;

static PRINTED: AtomicU32 = AtomicU32::new(0);

#[test]
fn only_panics_of_pes_are_taken_from_the_hook() {
    panic::set_hook(Box::new(|info| {
        PRINTED.fetch_add(1, Ordering::Relaxed);
        eprintln!("{info}"); // among them those of this test itself
    }));
    let printed_by = |work: &mut dyn FnMut()| {
        PRINTED.store(0, Ordering::Relaxed);
        let ended = panic::catch_unwind(AssertUnwindSafe(work));
        (PRINTED.load(Ordering::Relaxed), ended.is_ok())
    };

    // A PE's own panic, and one from deep inside what it calls.
    let here = line!();
    let programs: [Program; 2] = [
        |_| panic!("lost"),
        |pe| pe.alloc::<u8>(pe.my_pe().checked_sub(2).expect("lost")).and_then(|buf| pe.free(buf)),
    ];
    for (program, line) in programs.into_iter().zip(here + 2..) {
        let mut kind = None;
        let run = &mut || kind = Some(Simulation::new(Config::pes(2)).unwrap().run(program).unwrap().verdict.kind);
        assert_eq!(printed_by(run), (0, true));
        let Some(VerdictKind::Panicked { message, at: Some(at), .. }) = kind else { panic!("{kind:?}") };
        assert_eq!((message.as_str(), at.line()), ("lost", line));
        assert!(at.file().ends_with("panics.rs"), "{at}");
    }

    // What is no PE's: outside of a run, in a visitor of runs, and in another thread while a PE runs.
    assert_eq!(printed_by(&mut || panic!("outside")), (1, false));
    let visitor = &mut || {
        let how = onesided_sim::Explore::random(1, 0);
        drop(Simulation::new(Config::pes(1)).unwrap().explore(how, |_| Ok(()), |_| panic!("in a visitor")));
    };
    assert_eq!(printed_by(visitor), (1, false));
    let beside = &mut || {
        let program = |_: &Pe<Sim>| Ok(std::thread::spawn(|| panic!("beside")).join().is_err());
        assert_eq!(Simulation::new(Config::pes(1)).unwrap().run(program).unwrap().results, [Some(true)]);
    };
    assert_eq!(printed_by(beside), (1, true));

    // A PE that catches its panic and panics again: the second is printed, because the process might be about to abort.
    let again = &mut || {
        let program = |_: &Pe<Sim>| -> Result<()> {
            assert!(panic::catch_unwind(|| panic!("the first")).is_err());
            panic!("the second")
        };
        let run = Simulation::new(Config::pes(1)).unwrap().run(program).unwrap();
        assert!(run.verdict.to_string().contains("the second"), "{}", run.verdict);
    };
    assert_eq!(printed_by(again), (1, true));
}

/// Each PE catches one panic, which is nobody else's: nothing is printed.
#[test]
fn every_pe_may_catch_a_panic_in_silence() {
    if is_again() {
        let catches = |pe: &Pe<Sim>| {
            assert!(panic::catch_unwind(|| panic!("mine")).is_err());
            pe.host().barrier_all()
        };
        let _ = prove(3, catches);
        return;
    }
    let output = again("every_pe_may_catch_a_panic_in_silence").output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success() && !said.contains("mine"), "{said}");
}

/// What a panic would print may be lost, as with `prog 2>&1 | head`.
#[test]
fn a_panic_that_nobody_reads_ends_nothing() {
    if is_again() {
        let catches = |_: &Pe<Sim>| {
            for _ in 0..3 {
                assert!(panic::catch_unwind(|| panic!("mine")).is_err());
            }
            Ok(())
        };
        let _ = prove(2, catches);
        return;
    }
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let status = again("a_panic_that_nobody_reads_ends_nothing").stderr(writer).status().unwrap();
    assert!(status.success(), "{status}");
}
