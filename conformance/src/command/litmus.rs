//! `onesided litmus`: one case and its outcomes; on the simulator each with a schedule that leads to it.

use std::path::PathBuf;
use std::process::ExitCode;

use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, Table};
use onesided::count;
use onesided_harness::tool::command::{Backend, failed};
use onesided_harness::tool::interrupt;
use onesided_harness::tool::number::whole;
use onesided_harness::tool::profiles;
use onesided_harness::tool::terminal::{events_of, terminal};
use onesided_harness::{complain, say};
use onesided_nvshmem::Nvshmem;
use onesided_sim::{Explore, Profile, Schedule, Sim, Simulation};

use super::gpus::{OnGpus, refuse};
use super::list;
use crate::case::Case;
use crate::check::{Checked, Status, replay_command};
use crate::expected::{Difference, Folder, Relation};
use crate::hardware;
use crate::outcome::{self, LIMIT, Visited};

/// What `onesided litmus` takes.
#[derive(Debug, clap::Args)]
pub(super) struct Options {
    /// The case, as `onesided list` prints it; the chapter can be left out
    case: String,
    /// Where the case runs
    #[arg(long, value_enum, default_value_t = Backend::Sim)]
    backend: Backend,
    #[arg(
        long,
        default_value_t = Profile::Spec,
        help = format!("What the simulated transport promises: {}", profiles::in_words())
    )]
    profile: Profile,
    /// Visit N random schedules instead of all
    #[arg(long, value_name = "N", value_parser = whole::<u64>(1, u64::MAX))]
    schedules: Option<u64>,
    /// Where random schedules start [default: 0]
    #[arg(long, value_name = "S", requires = "schedules", value_parser = whole::<u64>(0, u64::MAX))]
    seed: Option<u64>,
    /// Run this schedule alone and print what happened in it, event by event; @FILE reads it from a file
    #[arg(value_parser = onesided_harness::tool::schedule, long, value_name = "SCHEDULE", conflicts_with_all = ["profile", "schedules", "seed"])]
    replay: Option<Schedule>,
    /// Where the outcome files are, if not in the sources of this command
    #[arg(long, value_name = "DIR")]
    expected: Option<PathBuf>,
    #[command(flatten)]
    on_gpus: OnGpus,
}

pub(super) fn run(options: &Options) -> ExitCode {
    interrupt::watch();
    let done = match options.backend {
        Backend::Sim => on_sim(options),
        Backend::Nvshmem => on_gpus(options),
    };
    done.unwrap_or_else(failed)
}

fn on_sim(options: &Options) -> Result<ExitCode, String> {
    if let Some(option) = options.on_gpus.given() {
        return Err(format!("{option} is about GPUs: it needs --backend nvshmem"));
    }
    let case = one_case(&options.case)?;
    match &options.replay {
        Some(schedule) => replay(&case, schedule),
        None => explore(&case, options),
    }
}

/// Runs the case on GPUs and prints how often each outcome was seen. Status 1 if its file does not allow them.
fn on_gpus(options: &Options) -> Result<ExitCode, String> {
    refuse(&[
        ("--profile", options.profile != Profile::Spec),
        ("--schedules", options.schedules.is_some()),
        ("--seed", options.seed.is_some()),
        ("--replay", options.replay.is_some()),
    ])?;
    let case = one_case::<Nvshmem>(&options.case)?;
    Folder::new(options.expected.as_deref()).check()?;
    let (machine, settings) = options.on_gpus.settings(options.expected.as_deref())?;
    let results = hardware::run(std::slice::from_ref(&case), &settings, &[], &mut |_| {});
    let place = hardware::report::place(&results, &machine, &settings);
    let [ran] = &results.cases[..] else { return Err(results.problems.join("; ")) };
    let Checked { status, visits, outcomes, why, .. } = &ran.checked;
    if *status == Status::NotRun {
        return Err(format!("{} cannot run here: {why}", case.name));
    }
    say!("{case:?}, {place}: {}\n", count(*visits, "run"));
    let mut table = Table::new();
    table.load_preset(NOTHING).set_header(["outcome", "runs"]);
    table.add_rows(outcomes.iter().map(|(outcome, runs)| [outcome.clone(), runs.to_string()]));
    right_align(&mut table);
    say!("{}\n", table.trim_fmt());
    match (status, ran.coverage) {
        _ if interrupt::is_wanted() => return Ok(interrupt::status()),
        (Status::Failed, _) => {
            say!("{}", why.replace("; ", "\n"));
            return Ok(ExitCode::from(1));
        }
        (_, Some([seen, allowed])) => {
            let file = settings.expected.name(&case.name, settings.profile());
            say!("{seen} of {} in expected/{file}.", count(allowed, "outcome"));
        }
        (_, None) => {}
    }
    Ok(ExitCode::SUCCESS)
}

/// The case of that name, with its chapter or without.
fn one_case<B: onesided::Backend>(name: &str) -> Result<Case<B>, String> {
    let mut cases = list::chosen::<B>(&[name.to_string()])?;
    cases.retain(|case| case.name == name || case.name.split_once('/').is_some_and(|(_, short)| short == name));
    match cases.len() {
        1 => Ok(cases.remove(0)),
        0 => Err(format!("{name:?} is a part of cases' names; `onesided list {name}` shows them")),
        _ => Err(format!("{name:?} is a case of several chapters: {cases:?}")),
    }
}

/// Prints what happens on one schedule.
fn replay(case: &Case<Sim>, schedule: &Schedule) -> Result<ExitCode, String> {
    if schedule.fingerprint.is_none() {
        complain!("note: the schedule has no fingerprint, so nothing tells whether it is of this version of the case");
    }
    let cluster = outcome::cluster(case, schedule.profile);
    let mut simulation = Simulation::new(cluster).map_err(|error| error.message().to_string())?;
    let run = simulation.replay(schedule, case.body).map_err(|error| error.message().to_string())?;
    let events = events_of(run.trace.as_deref().unwrap_or_default());
    say!("{}", onesided_show::events(&events, terminal()).trim_end());
    say!("\noutcome: {}\n{}", outcome::outcome(&run), run.verdict);
    Ok(ExitCode::SUCCESS)
}

fn explore(case: &Case<Sim>, options: &Options) -> Result<ExitCode, String> {
    Folder::new(options.expected.as_deref()).check()?;
    let how = match options.schedules {
        Some(schedules) => Explore::random(schedules, options.seed.unwrap_or(0)),
        None => Explore::All { limit: LIMIT },
    };
    let visited = outcome::visit(case, options.profile, how).map_err(|error| error.to_string())?;
    print(case, options.profile, &visited);
    if interrupt::is_wanted() {
        return Ok(interrupt::status());
    }
    compare(case, options, &visited)
}

fn print(case: &Case<Sim>, profile: Profile, visited: &Visited) {
    let Visited { outcomes, schedules, complete, race } = visited;
    let all = if *complete { "all" } else { "not all" };
    say!("{case:?}, profile {profile}: {} ({all})\n", count(*schedules, "schedule"));
    let mut table = Table::new();
    table.load_preset(NOTHING).set_header(["outcome", "schedules", "an example"]);
    for (outcome, sighting) in outcomes {
        table.add_row([outcome.clone(), sighting.schedules.to_string(), sighting.example.to_string()]);
    }
    right_align(&mut table);
    say!("{}\n", table.trim_fmt());
    if let Some((race, schedule)) = race {
        say!("{race}\nWhere it was seen: {}\n", replay_command(&case.name, &schedule.to_string()));
    }
    if let Some(sighting) = outcomes.values().next() {
        say!("What happens in one: {}", replay_command(&case.name, &sighting.example.to_string()));
    }
}

/// Puts the numbers below each other.
fn right_align(table: &mut Table) {
    if let Some(column) = table.column_mut(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
}

/// Says how the outcomes relate to the reviewed file. Status 1 if they do not agree with it.
fn compare(case: &Case<Sim>, options: &Options, visited: &Visited) -> Result<ExitCode, String> {
    let folder = Folder::new(options.expected.as_deref());
    let expected = folder.read(&case.name, options.profile)?;
    let relation = if visited.complete { Relation::Equal } else { Relation::Subset };
    let difference = Difference::new(visited.outcomes.keys(), &expected, relation);
    let file = format!("expected/{}", folder.name(&case.name, options.profile));
    if !difference.is_empty() {
        say!("Differs from {file}: {difference}");
        return Ok(ExitCode::from(1));
    }
    match relation {
        Relation::Equal => say!("Equal to {file}."),
        Relation::Subset => say!("{} of {} in {file}.", visited.outcomes.len(), count(expected.len(), "outcome")),
    }
    Ok(ExitCode::SUCCESS)
}
