//! What another thread can see of a run: asked here on the same thread, by the PEs themselves, so that the answers are exact.

use std::ops::ControlFlow;

use onesided::{Pe, Result};
use onesided_sim::{Config, Explore, Pulse, Sim, Simulation};

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
