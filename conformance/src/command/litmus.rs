//! `onesided litmus`: one case, its outcomes, and a schedule that leads to each.

use std::path::PathBuf;
use std::process::ExitCode;

use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, Table};
use onesided_sim::{Explore, Profile, Schedule, Sim, Simulation};

use super::{failed, list};
use crate::case::Case;
use crate::check::replay_command;
use crate::expected::{Difference, Folder, Relation};
use crate::outcome::{self, LIMIT, Visited};
use crate::tool::say::say;
use crate::tool::{interrupt, quiet};

/// What `onesided litmus` takes.
#[derive(Debug, clap::Args)]
pub(super) struct Options {
    /// The case, as `onesided list` prints it; the chapter can be left out
    case: String,
    /// What the simulated transport guarantees: spec (nothing beyond the text) or nvlink
    #[arg(long, default_value_t = Profile::Spec)]
    profile: Profile,
    /// Visit N random schedules instead of all
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    schedules: Option<u64>,
    /// Where random schedules start
    #[arg(long, value_name = "S", default_value_t = 0)]
    seed: u64,
    /// Run this schedule alone and print what happened in it, event by event
    #[arg(value_parser = crate::tool::schedule, long, value_name = "SCHEDULE", conflicts_with_all = ["profile", "schedules", "seed"])]
    replay: Option<Schedule>,
    /// Where the outcome files are, if not in the sources of this command
    #[arg(long, value_name = "DIR")]
    expected: Option<PathBuf>,
}

pub(super) fn run(options: &Options) -> ExitCode {
    interrupt::watch();
    let done = one_case(&options.case).and_then(|case| match &options.replay {
        Some(schedule) => replay(&case, schedule),
        None => explore(&case, options),
    });
    done.unwrap_or_else(failed)
}

/// The case of that name, with its chapter or without.
fn one_case(name: &str) -> Result<Case<Sim>, String> {
    let mut cases = list::chosen(&[name.to_string()])?;
    cases.retain(|case| case.name == name || case.name.split_once('/').is_some_and(|(_, short)| short == name));
    match cases.len() {
        1 => Ok(cases.remove(0)),
        0 => Err(format!("{name:?} is a part of cases' names; `onesided list {name}` shows them")),
        _ => Err(format!("{name:?} is a case of several chapters: {cases:?}")),
    }
}

/// Prints what happens on one schedule.
fn replay(case: &Case<Sim>, schedule: &Schedule) -> Result<ExitCode, String> {
    let cluster = outcome::cluster(case, schedule.profile);
    let mut simulation = Simulation::new(cluster).map_err(|error| error.message().to_string())?;
    let run = simulation.replay(schedule, case.body).map_err(|error| error.message().to_string())?;
    for event in run.trace.iter().flatten() {
        let event = event.to_json();
        let text = |key: &str| event[key].as_str().unwrap_or_default().to_string();
        let agent = match event["stream"].as_u64() {
            Some(stream) => format!("PE {} stream {stream}", event["pe"]),
            None => format!("PE {}", event["pe"]),
        };
        say!("{:>4}  {agent:<14}  {:<11}  {}  ({})", event["step"], text("event"), text("text"), text("at"));
    }
    say!("\noutcome: {}\n{}", outcome::outcome(&run), run.verdict);
    Ok(ExitCode::SUCCESS)
}

fn explore(case: &Case<Sim>, options: &Options) -> Result<ExitCode, String> {
    let how = match options.schedules {
        Some(schedules) => Explore::Random { schedules, seed: options.seed },
        None => Explore::All { limit: LIMIT },
    };
    let visited = quiet::panics(|| outcome::visit(case, options.profile, how)).map_err(|error| error.to_string())?;
    print(case, options.profile, &visited);
    if interrupt::is_wanted() {
        return Ok(interrupt::status());
    }
    compare(case, options, &visited)
}

fn print(case: &Case<Sim>, profile: Profile, visited: &Visited) {
    let Visited { outcomes, schedules, complete } = visited;
    let all = if *complete { "all" } else { "not all" };
    say!("{case:?}, profile {profile}: {schedules} schedules ({all})\n");
    let mut table = Table::new();
    table.load_preset(NOTHING).set_header(["outcome", "schedules", "an example"]);
    for (outcome, sighting) in outcomes {
        table.add_row([outcome.clone(), sighting.schedules.to_string(), sighting.example.to_string()]);
    }
    if let Some(column) = table.column_mut(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    say!("{}\n", table.trim_fmt());
    if let Some(sighting) = outcomes.values().next() {
        say!("What happens in one: {}", replay_command(&case.name, &sighting.example.to_string()));
    }
}

/// Says how the outcomes relate to the reviewed file. Status 1 if they do not agree with it.
fn compare(case: &Case<Sim>, options: &Options, visited: &Visited) -> Result<ExitCode, String> {
    let folder = Folder::new(options.expected.as_deref());
    let expected = folder.read(&case.name)?;
    let all = visited.complete && options.profile == Profile::Spec;
    let relation = if all { Relation::Equal } else { Relation::Subset };
    let difference = Difference::new(visited, &expected, relation);
    let file = format!("expected/{}.txt", case.name);
    if !difference.is_empty() {
        say!("Differs from {file}: {difference}");
        return Ok(ExitCode::from(1));
    }
    match relation {
        Relation::Equal => say!("Equal to {file}."),
        Relation::Subset => say!("{} of the {} outcomes in {file}.", visited.outcomes.len(), expected.len()),
    }
    Ok(ExitCode::SUCCESS)
}
