//! Deadlocks at a word that nothing was sent to: the report says so, and where an update went instead.

use onesided::{Cmp, Pe, Result, SignalOp};
use onesided_sim::{Config, Sim, Simulation, Standing, VerdictKind};

mod common;
use common::without_lines;

/// What PE 1 waits for at the end of the recorded run in order, from the value that it found on.
fn found_in_vain(pes: usize, program: impl Fn(&Pe<Sim>) -> Result<()>) -> String {
    let mut simulation = Simulation::new(Config::pes(pes)).unwrap();
    let run = simulation.run(&program).unwrap();
    let verdict = simulation.reproduce(&run, &program).unwrap().verdict;
    assert!(matches!(verdict.kind, VerdictKind::Deadlock), "{verdict}");
    let agent = verdict.agents.iter().find(|agent| agent.pe == 1).expect("every PE is listed");
    let Standing::Waits(text) = &agent.standing else { panic!("{agent:?}") };
    without_lines(text[text.find("found").expect("it found a value")..].to_string())
}

/// A signal to a wrong PE or slot, or to nobody: the report says so. Others' signals that somebody waits for are not meant for it.
#[test]
fn a_word_that_nothing_was_sent_to_is_named_with_what_went_elsewhere() {
    let ring = |to: fn(usize) -> Option<usize>, slot: usize| {
        found_in_vain(4, move |pe| {
            let flags = pe.alloc_zeroed::<u64>(2)?;
            if let Some(to) = to(pe.my_pe()) {
                let slot = if pe.my_pe() == 0 { slot } else { 0 };
                pe.host().signal_op(flags.signal(slot), 1, SignalOp::Set, to)?;
            }
            if pe.my_pe() != 3 {
                pe.host().signal_wait_until(flags.signal(0), Cmp::Eq, 1)?;
            }
            pe.free(flags)
        })
    };
    let nobody = ring(|pe| (pe > 0).then_some((pe + 1) % 4).filter(|to| *to != 3), 0);
    assert_eq!(nobody, "found 0 (u64); nothing was sent to it");
    let here = "at backend-sim/tests/unsent.rs:_ went to";
    let other_pe = ring(|pe| [Some(3), Some(2), None, Some(0)][pe], 0);
    assert_eq!(other_pe, format!("found 0 (u64); nothing was sent to it, but signal_op of PE 0 {here} PE 3's copy"));
    let other_slot = ring(|pe| [Some(1), Some(2), None, Some(0)][pe], 1);
    assert_eq!(other_slot, format!("found 0 (u64); nothing was sent to it, but signal_op of PE 0 {here} buf0+8"));

    // what was sent something is not said to be forgotten; and where a put wrote it plainly, a put may go astray
    let put = |value: u64, to: usize, clears: bool| {
        found_in_vain(3, move |pe| {
            let flag = pe.alloc_zeroed::<u64>(1)?;
            if clears {
                pe.write(&flag, &[0])?;
            }
            pe.host().barrier_all()?;
            match pe.my_pe() {
                0 => pe.host().p(&flag, value, to)?,
                1 => pe.host().wait_until(&flag, Cmp::Eq, 7)?,
                _ => {}
            }
            pe.free(flag)
        })
    };
    assert_eq!(put(6, 1, false), "found 6 (u64)");
    let astray = format!("found 0 (u64); nothing was sent to it, but p of PE 0 {here} PE 2's copy");
    assert_eq!([put(7, 2, false), put(7, 2, true)], [astray.clone(), astray]);
}
