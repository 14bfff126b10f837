//! [`example`]: runs the examples of the API's documentation.

use std::ops::ControlFlow;

use onesided::{Pe, Result};

use crate::config::Config;
use crate::pe::Sim;
use crate::search::Explore;
use crate::simulation::{Run, Simulation};

/// Random schedules that each example is run in, after the one in order.
const SCHEDULES: u64 = 20;

/// Runs an example on `pes` PEs: in order, then in random schedules.
///
/// # Panics
/// When a schedule ends in a finding: the panic is the verdict.
#[doc(hidden)]
#[track_caller]
pub fn example(pes: usize, program: impl Fn(&Pe<Sim>) -> Result<()>) {
    let mut simulation = Simulation::new(Config::pes(pes)).expect("a cluster");
    let check = |run: &Run<()>| assert!(run.is_ok(), "{}\nschedule {}", run.verdict, run.schedule);
    check(&simulation.run(&program).expect("a run"));
    let random = Explore::random(SCHEDULES, 0);
    let explored = simulation.explore(random, &program, |run| {
        check(run);
        ControlFlow::Continue(())
    });
    assert_eq!(explored.expect("an exploration").schedules, SCHEDULES);
}
