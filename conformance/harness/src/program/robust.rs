//! `--robust`: whether every outcome under the profile is one of sequential consistency.

use std::process::ExitCode;

use onesided::{Error, Pe};
use onesided_sim::{Explore, OddRun, Sim, Simulation, VerdictKind};

use super::explain::later_than_in_order;
use super::options::LIMIT;
use super::plan::{Plan, Search};
use super::run::{advise, is_operating};
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
    let told = |why: Error| why.message().to_string();
    let limit = match plan.search {
        Search::InOrder { then: Some(Explore::All { limit }) } => limit,
        _ => LIMIT,
    };
    let main = |pe: &Pe<Sim>| program.run(pe);
    let mut simulation = Simulation::new(plan.config.clone()).map_err(told)?;
    simulation.stop_when(interrupt::flag());
    simulation.set_budget(plan.budget);
    let _watch = Watch::start(simulation.pulse());
    if let VerdictKind::Failed { pe, error } = simulation.run(main).map_err(told)?.verdict.kind
        && is_operating(&error)
    {
        return Err(advise(pe, &error)); // no outcome of the program
    }
    let found = simulation.on_cores(plan.cores).robustness(limit, main).map_err(told)?;
    say!("{}: {found}", plan.program(facts));
    if let Some(odd) = simulation.odd_run(&found, plan.effort(), main).map_err(told)? {
        show(&odd);
        say!("\nReplay it: {}", plan.replay_command(&odd.run.schedule));
        return Ok(ExitCode::from(1));
    }
    Ok(match found.is_complete() {
        true => ExitCode::SUCCESS,
        false if interrupt::is_wanted() => interrupt::status(),
        false => ExitCode::from(NOT_COMPLETE),
    })
}

fn show(OddRun { run, exceptions, difference, .. }: &OddRun<String>) {
    let not_possible = "Not possible if every operation were complete at once:";
    match &run.verdict.kind {
        VerdictKind::Finished => {
            say!("\n{not_possible}");
            let lines = run.results.iter().flatten().filter(|text| !text.is_empty());
            lines.for_each(|line| say!("    {line}"));
        }
        kind @ (VerdictKind::Failed { .. } | VerdictKind::Panicked { .. }) => say!("\n{not_possible} {kind}"),
        _ => say!("\n{not_possible} {}", run.verdict),
    }
    if let Some(difference) = difference {
        say!("{difference}");
    }
    if let [_, ..] = exceptions[..] {
        say!("\n{}", later_than_in_order(exceptions));
    }
}
