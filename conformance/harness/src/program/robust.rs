//! `--robust`: whether every outcome under the profile is one of sequential consistency.

use std::process::ExitCode;

use onesided::Error;
use onesided_sim::{Explore, Odd, Robustness, Simulation};

use super::options::LIMIT;
use super::plan::{Plan, Search};
use super::{Facts, Program};
use crate::say;
use crate::tool::command::NOT_COMPLETE;
use crate::tool::interrupt;
use crate::tool::stall::Watch;

/// Compares both sets of outcomes, and shows the first that only the profile has.
///
/// # Errors
/// The program could not be run.
pub(super) fn run<P: Program>(facts: &Facts, program: &P, plan: &Plan) -> Result<ExitCode, String> {
    let limit = match plan.search {
        Search::InOrder { then: Some(Explore::All { limit }) } => limit,
        _ => LIMIT,
    };
    let found = search(program, plan, limit).map_err(|why| why.message().to_string())?;
    say!("{}: {found}", plan.program(facts));
    match &found.odd[..] {
        _ if !found.is_complete() => Ok(ExitCode::from(NOT_COMPLETE)),
        [] => Ok(ExitCode::SUCCESS),
        [first, ..] => {
            show(first);
            say!("\nReplay it: {}", plan.replay_command(&first.schedule));
            Ok(ExitCode::from(1))
        }
    }
}

fn search<P: Program>(program: &P, plan: &Plan, limit: u64) -> Result<Robustness<String>, Error> {
    let mut simulation = Simulation::new(plan.config.clone())?;
    simulation.stop_when(interrupt::flag());
    let _watch = Watch::start(simulation.pulse());
    simulation.on_cores(plan.cores).robustness(limit, |pe| program.run(pe))
}

fn show(Odd { results, ended, .. }: &Odd<String>) {
    let lines: Vec<&String> = results.iter().flatten().filter(|text| !text.is_empty()).collect();
    match lines.is_empty() {
        true => say!("\nNot possible if every operation were complete at once: {ended}"),
        false => {
            say!("\nNot possible if every operation were complete at once:");
            lines.iter().for_each(|line| say!("    {line}"));
        }
    }
}
