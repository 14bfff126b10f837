//! The program is right in every order of events that NVSHMEM allows.

use std::ops::ControlFlow;

use exchange::Exchange;
use onesided_harness::Program;
use onesided_sim::{Config, Explore, Run, Schedule, Simulation};

#[test]
fn every_order_is_right() {
    let program = Exchange { elements: 2 };
    let mut simulation = Simulation::new(Config::pes(2)).unwrap();
    let all = Explore::All { limit: 100_000 };
    let right = |run: &Run<String>| {
        assert!(run.is_ok(), "{}\nreplay: {}", run.verdict, run.schedule);
        ControlFlow::Continue(())
    };
    let explored = simulation.explore(all, |pe| program.run(pe), right).unwrap();
    assert!(explored.complete);
}

/// A schedule that failed once, kept as a test of what was repaired. Its fingerprint is left out (`none`): the program is
/// another one since.
#[test]
fn a_schedule_is_replayed() {
    let program = Exchange { elements: 2 };
    let schedule: Schedule = "os2.4x1.spec.p4.r2a.none".parse().unwrap();
    let mut simulation = Simulation::new(schedule.configure(&Config::default())).unwrap();
    let run = simulation.replay(&schedule, |pe| program.run(pe)).unwrap();
    assert!(run.is_ok(), "{}", run.verdict);
}
