//! `--robust`: whether every outcome under the profile is one of sequential consistency.

use std::process::ExitCode;

use onesided::Error;
use onesided_sim::{Config, Explore, OddRun, Robustness, Simulation, VerdictKind};
use serde_json::{Value, json};

use super::explain::{Explained, later_than_in_order};
use super::options::{LIMIT, LoadsFind, QuietIs};
use super::plan::{Plan, Search};
use super::run::advise;
use super::{Facts, Main, record, wrote};
use crate::say;
use crate::tool::command::NOT_COMPLETE;
use crate::tool::interrupt;
use crate::tool::stall::Watch;

/// Compares both sets of outcomes, and shows the first that only the profile has.
///
/// # Errors
/// The program could not be run.
pub(super) fn run(facts: &Facts, main: Main<'_>, plan: &Plan) -> Result<ExitCode, String> {
    let told = |why: Error| why.message().to_string();
    // Before the long run, so that no result is lost to a wrong path.
    let [trace, summary, finding, report] = plan.output.prepare()?;
    let limit = match plan.search {
        Search::InOrder { then: Some(Explore::All { limit }) } => limit,
        _ => LIMIT,
    };
    let mut simulation = Simulation::new(plan.config.clone()).map_err(told)?;
    simulation.stop_when(interrupt::flag());
    simulation.set_budget(plan.budget);
    let _watch = Watch::start(simulation.pulse());
    let in_order = simulation.run(main).map_err(told)?;
    if let VerdictKind::Failed { pe, error } = &in_order.verdict.kind
        && error.is_operating()
    {
        return Err(advise(*pe, error)); // no outcome of the program
    }
    let found = simulation.on_cores(plan.cores).robustness(limit, main).map_err(told)?;
    say!("{}: {found}", plan.program(facts));
    let odd = simulation.odd_run(&found, plan.effort(), main).map_err(told)?;
    if let Some(odd) = &odd {
        show(odd);
        say!("\nReplay it: {}", plan.replay_line(&odd.run.schedule, "--finding"));
    }
    // The small file first: a second signal ends the process within a long one.
    if let Some(summary) = summary {
        summary.finish(|out| writeln!(out, "{:#}", json(facts, plan, &found, odd.as_ref())))?;
        wrote(plan.output.json.as_deref(), "a summary");
    }
    if plan.needs_a_record() {
        let files = [trace, finding, report];
        match &odd {
            Some(odd) => record(facts, plan, Some(&Explained::later(&odd.exceptions)), &odd.run, files)?,
            None => record(facts, plan, None, &simulation.reproduce(&in_order, main).map_err(told)?, files)?,
        }
    }
    Ok(match found.is_complete() {
        _ if odd.is_some() => ExitCode::from(1),
        true => ExitCode::SUCCESS,
        false if interrupt::is_wanted() => interrupt::status(),
        false => ExitCode::from(NOT_COMPLETE),
    })
}

/// What was compared, and what was found.
fn json(facts: &Facts, plan: &Plan, found: &Robustness<String>, odd: Option<&OddRun<String>>) -> Value {
    let Config { pes, nodes, gpus, profile, pieces, quiet, loads, .. } = plan.config;
    let odd = odd.map(|OddRun { run, exceptions, difference, .. }| {
        json!({
            "verdict": run.verdict.kind.outcome(), "lines": run.results,
            "difference": difference.as_ref().map(ToString::to_string), "exceptions": exceptions,
            "schedule": run.schedule.to_string(), "replay": plan.replay_command(&run.schedule),
        })
    });
    json!({
        "schema": "onesided-robust/1",
        "program": facts.name,
        "library": format!("onesided-sim {}", onesided::VERSION),
        "pes": pes, "nodes": nodes, "gpus": gpus, "profile": profile.name(), "pieces": pieces,
        "quiet": QuietIs::from(quiet).to_string(), "loads": LoadsFind::from(loads).to_string(),
        "options": plan.own.given.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>(),
        "text": found.to_string(),
        // what is not complete may have other outcomes
        "robust": (found.is_complete() || !found.odd.is_empty()).then(|| found.is_robust()),
        "complete": found.is_complete(), "outcomes": found.outcomes, "odd": found.odd.len(),
        "run": odd,
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
