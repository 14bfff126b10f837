//! What another thread can see of a run: asked here on the same thread, by the PEs themselves, so that the answers are exact.

use std::cell::Cell;
use std::ops::ControlFlow;

use onesided::{Cmp, Pe, Result, SignalOp, expect_eq};
use onesided_sim::{Config, Effort, Explore, Pulse, Sim, Simulation};

/// Looks after each call: it is this PE that has the processor, and the line is that of the call, whoever ran meanwhile.
fn looks(pe: &Pe<Sim>, pulse: &Pulse) -> Result<()> {
    let mut calls = pulse.look().calls;
    let mut expect_call_at = |line: u32| {
        let beat = pulse.look();
        assert_eq!(beat.pe, Some(pe.my_pe()));
        let at = beat.at.expect("a call was made");
        assert_eq!((at.file(), at.line()), (file!(), line));
        assert!(beat.calls > std::mem::replace(&mut calls, beat.calls));
    };
    let word = pe.alloc_zeroed::<u64>(1)?;
    expect_call_at(line!() - 1);
    pe.host().p(&word, 1, (pe.my_pe() + 1) % pe.n_pes())?;
    expect_call_at(line!() - 1);
    pe.host().barrier_all()?;
    expect_call_at(line!() - 1);
    pe.read(&word)?;
    expect_call_at(line!() - 1);
    pe.free(word)
}

#[test]
fn a_look_shows_the_pe_and_the_line_of_its_last_call() {
    let mut simulation = Simulation::new(Config::pes(3)).unwrap();
    let pulse = simulation.pulse();
    assert_eq!((pulse.look().pe, pulse.look().calls), (None, 0));
    assert!(simulation.run(|pe| looks(pe, &pulse)).unwrap().is_ok());
    assert_eq!(pulse.look().pe, None);
    let random = Explore::random(20, 1);
    let visit = |run: &onesided_sim::Run<()>| {
        assert!(run.is_ok(), "{}", run.verdict);
        assert_eq!(pulse.look().pe, None);
        ControlFlow::Continue(())
    };
    simulation.explore(random, |pe| looks(pe, &pulse), visit).unwrap();
}

#[test]
fn nobody_has_the_processor_after_a_panic_or_before_the_first_call() {
    let mut simulation = Simulation::new(Config::pes(2)).unwrap();
    let pulse = simulation.pulse();
    let run = simulation.run_process::<()>(|process| {
        let beat = pulse.look();
        assert_eq!((beat.pe, beat.at), (Some(process.rank()), None));
        panic!("on purpose")
    });
    assert!(run.unwrap().verdict.to_string().starts_with("PE 0 panicked at backend-sim/tests/pulse.rs:"));
    assert_eq!(pulse.look().pe, None);
}

/// Other simulations make these runs, and who watches the one that is asked sees their PEs.
#[test]
fn a_look_shows_the_pes_of_the_runs_that_explain_a_finding() {
    let mut simulation = Simulation::new(Config::pes(2)).unwrap();
    let (pulse, runs) = (simulation.pulse(), Cell::new(0));
    let program = |pe: &Pe<Sim>| {
        runs.set(runs.get() + 1);
        assert_eq!(pulse.look().pe, Some(pe.my_pe()));
        let (data, flag) = (pe.alloc_zeroed::<u64>(1)?, pe.alloc_zeroed::<u64>(1)?);
        if pe.my_pe() == 0 {
            pe.host().p(&data, 7, 1)?; // a fence is missing behind it
            pe.host().signal_op(flag.signal(0), 1, SignalOp::Set, 1)?;
        } else {
            pe.host().signal_wait_until(flag.signal(0), Cmp::Eq, 1)?;
            expect_eq(pe.read_one(&data)?, 7, "the data")?;
        }
        pe.free(flag)?;
        pe.free(data)
    };
    let found = simulation.run(program).unwrap();
    assert!(!found.is_ok());
    let mut so_far = runs.get();
    let mut expect = |what: &str, is_right: bool| {
        assert!(is_right, "{what}");
        assert!(runs.get() > std::mem::replace(&mut so_far, runs.get()), "{what} runs it");
        assert_eq!(pulse.look().pe, None, "{what}");
    };
    expect("minimize", simulation.minimize(&found, Effort::LITTLE, program).is_ok());
    expect("critical", simulation.critical(&found, Effort::LITTLE, program).is_ok());
    expect("fix", simulation.fix(&found, Effort::LITTLE, program).unwrap().fix.is_some());
    let witness = simulation.witness(&found.verdict.races[0], Effort::LITTLE, program).unwrap();
    expect("witness", witness.run.is_some());
    expect("weaken", simulation.weaken(Effort::LITTLE, program).is_ok());
}
