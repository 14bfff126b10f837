//! A program on several numbers of PEs, or under several profiles: a search for each, and one table.

use std::process::ExitCode;

use onesided::{At, count};
use onesided_sim::{Config, Explored, IntendedRaces, Profile, Run, Standing, Verdict, VerdictKind};
use serde_json::{Value, json};

use super::compare::compared;
use super::options::Options;
use super::own::Own;
use super::plan::Plan;
use super::run::{self, Done, End};
use super::{Facts, Main, Precondition, json, report, wrote};
use crate::say;
use crate::tool::command::NOT_COMPLETE;
use crate::tool::number::Numbers;
use crate::tool::profiles::Profiles;
use crate::tool::say::is_terminal;
use crate::tool::{duration, interrupt};

/// Searches that are to be made one after the other.
#[derive(Debug)]
pub(super) struct Table {
    rows: Vec<Row>,
    has_pes: bool,
    has_profiles: bool,
}

/// One of them.
#[derive(Debug)]
struct Row {
    pes: usize,
    profile: Profile,
    /// What is to be run, or why that cannot be.
    plan: Result<Plan, String>,
    /// What is run in its place where a proof under `spec` covers the row.
    if_covered: Option<Plan>,
}

/// What came out of one.
#[derive(Debug)]
pub(super) struct Outcome<'a> {
    pub(super) pes: usize,
    pub(super) profile: Profile,
    pub(super) ran: Result<(&'a Plan, Done), String>,
    /// Whether the program was proved under `spec`, which promises no more than this profile.
    covered: bool,
}

/// So many lines are named in a row.
const LINES: usize = 3;
const NOT_RUN: &str = "not run: ended by you";

impl Table {
    /// The table that the options ask for; `None` if they ask for one search.
    ///
    /// # Errors
    /// A sentence for the user: options contradict each other, or no row can be run.
    pub(super) fn new(facts: &Facts, options: &Options, own: &Own) -> Result<Option<Table>, String> {
        let Options { machine, search, output } = options;
        let several_pes = machine.pes.as_ref().filter(|pes| pes.0.len() > 1);
        let several_profiles = machine.profile.filter(|profile| *profile == Profiles::All);
        let option = match (several_pes, several_profiles) {
            (None, None) => return Ok(None),
            (Some(pes), _) => format!("--pes {pes}"),
            (None, Some(_)) => "--profile all".to_string(),
        };
        if search.robust {
            return Err(format!("--robust is about one number of PEs and one profile: leave {option} out"));
        }
        if search.replay.is_some() {
            return Err(format!("--replay is about one run: leave {option} out"));
        }
        let of_one_run = output.given().map(|(option, _)| option).find(|option| *option != "--json");
        let flags = [("--events", search.events), ("--weaken", search.weaken), ("--explain", search.explain)];
        let flag = flags.into_iter().find_map(|(flag, is_given)| is_given.then_some(flag));
        if let Some(given) = of_one_run.or(flag) {
            return Err(format!("{given} is about one run: leave {option} out"));
        }
        let pes = machine.pes.as_ref().map_or_else(|| vec![facts.pes], |pes| pes.0.clone());
        let profiles = machine.profile.unwrap_or(Profiles::One(Profile::default())).each();
        let mut rows = Vec::new();
        for &pes in &pes {
            for &profile in &profiles {
                let mut options = options.clone();
                options.machine.pes = Some(Numbers(vec![pes]));
                options.machine.profile = Some(Profiles::One(profile));
                let plan = Plan::new(facts, options, own.clone());
                let plan =
                    plan.map(|plan| Plan { in_table: true, compares: profiles.len() > 1 && plan.is_all(), ..plan });
                let is_stronger = profile != Profile::Spec && profile.promises().include(&Profile::Spec.promises());
                let if_covered = plan.as_ref().ok().filter(|plan| is_stronger && plan.is_all()).map(Plan::if_covered);
                rows.push(Row { pes, profile, plan, if_covered });
            }
        }
        if let Some(Err(why)) =
            rows.iter().map(|row| &row.plan).find(|plan| plan.is_ok()).or(rows.first().map(|row| &row.plan))
        {
            return Err(why.clone());
        }
        Ok(Some(Table { rows, has_pes: pes.len() > 1, has_profiles: profiles.len() > 1 }))
    }

    /// Runs every row, and prints each as soon as it is known; then the findings.
    ///
    /// # Errors
    /// A file cannot be written, or no row could be run.
    pub(super) fn run(
        &self,
        facts: &Facts,
        (main, precondition): (Main<'_>, Precondition<'_>),
    ) -> Result<ExitCode, String> {
        let first = self.rows.iter().find_map(|row| row.plan.as_ref().ok()).expect("some row can be run");
        let [_, summary, ..] = first.output.prepare()?;
        say!("{}\n", self.caption(facts, first));
        say!("{}", self.line("PEs", "profile", if first.is_all() { "classes" } else { "schedules" }, "time", "result"));
        let mut outcomes = Vec::new();
        for Row { pes, profile, plan, if_covered } in &self.rows {
            let is_proof =
                |outcome: &Outcome<'_>| (outcome.pes, outcome.profile) == (*pes, Profile::Spec) && outcome.is_proof();
            let if_covered = if_covered.as_ref().filter(|_| outcomes.iter().any(is_proof));
            let plan = plan.as_ref().map(|plan| if_covered.unwrap_or(plan));
            let ran = plan.map_err(Clone::clone).and_then(|plan| match precondition(*pes) {
                Err(why) => Err(format!("cannot run: {why}")),
                Ok(()) if interrupt::is_wanted() => Err(NOT_RUN.to_string()),
                Ok(()) => Ok((plan, run::run(main, plan, self.first_finding(&outcomes)))),
            });
            let outcome = Outcome { pes: *pes, profile: *profile, ran, covered: if_covered.is_some() };
            self.print(&outcome);
            outcomes.push(outcome);
        }
        self.print_findings(&outcomes);
        let relations = match self.has_profiles {
            true if first.is_all() => compared(&outcomes),
            true => vec![
                "Whether one profile is stronger than another for this program is seen with --all only.".to_string(),
            ],
            false => Vec::new(),
        };
        say!("");
        let mut marks = IntendedRaces::default();
        outcomes.iter().filter_map(|outcome| outcome.ran.as_ref().ok()).for_each(|(_, done)| marks.join(&done.marks));
        report::note_marks(&marks);
        relations.iter().for_each(|relation| say!("{relation}"));
        say!("Every PE checks that {}.", facts.checks);
        let status = Status::of(&outcomes);
        if let Some(summary) = summary {
            let text = self.summary(facts, first, &outcomes, &relations, status);
            summary.finish(|out| writeln!(out, "{text:#}"))?;
            wrote(first.output.json.as_deref(), "a summary");
        }
        status.code(&outcomes)
    }

    /// What all rows have in common.
    fn caption(&self, facts: &Facts, plan: &Plan) -> String {
        let Config { nodes, gpus, profile, pieces, .. } = plan.config;
        let mut caption = plan.program(facts);
        if nodes > 1 {
            caption += &format!(" on {nodes} nodes");
        }
        if let Some(gpus) = gpus {
            caption += &format!(" with {}", count(gpus, "GPU"));
        }
        if !self.has_profiles {
            caption += &format!(" under {profile}");
        }
        caption + &format!(" with up to {} a transfer", count(pieces, "piece"))
    }

    /// A line of the table, in columns.
    fn line(&self, pes: &str, profile: &str, number: &str, time: &str, result: &str) -> String {
        let mut line = String::new();
        if self.has_pes {
            line += &format!("{pes:>5}  ");
        }
        if self.has_profiles {
            let width =
                Profile::ALL.into_iter().map(|profile| profile.name().len()).max().unwrap_or(0).max("profile".len());
            line += &format!("{profile:<width$}  ");
        }
        line += &format!("{number:>9}  ");
        if is_terminal() {
            line += &format!("{time:>7}  ");
        }
        line + result
    }

    fn print(&self, outcome: &Outcome<'_>) {
        let Outcome { pes, profile, ran, .. } = outcome;
        let (number, time) = match ran {
            Err(_) | Ok((_, Done { end: End::Error(_), .. })) => (String::new(), String::new()),
            Ok((plan, done)) => {
                let is_known = plan.is_all() && done.explored.schedules > 0; // else the one in order failed
                let number = if is_known { done.explored.schedules } else { done.schedules() };
                (number.to_string(), duration(done.time))
            }
        };
        say!("{}", self.line(&pes.to_string(), profile.name(), &number, &time, &outcome.result()));
    }

    /// What a finding's row is called.
    fn name(&self, Outcome { pes, profile, .. }: &Outcome<'_>) -> String {
        match (self.has_pes, self.has_profiles) {
            (true, true) => format!("with {} under {profile}", count(*pes as u64, "PE")),
            (true, false) => format!("with {}", count(*pes as u64, "PE")),
            (false, _) => format!("under {profile}"),
        }
    }

    /// The first finding in full.
    fn first_finding(&self, outcomes: &[Outcome<'_>]) -> Option<String> {
        let (outcome, (plan, run)) = found(outcomes).next()?;
        let (name, replay) = (self.name(outcome), outcome.replay(plan, run));
        Some(format!("FINDING {name}: {}\n\nReplay it: {replay}", report::verdict(plan, &run.verdict)))
    }

    /// The first finding in full, and how to see the others.
    fn print_findings(&self, outcomes: &[Outcome<'_>]) {
        if let Some(first) = self.first_finding(outcomes) {
            say!("\n{first}");
        }
        for (outcome, (plan, run)) in found(outcomes).skip(1) {
            say!("Replay the one {}: {}", self.name(outcome), outcome.replay(plan, run));
        }
    }

    fn summary(
        &self,
        facts: &Facts,
        plan: &Plan,
        outcomes: &[Outcome<'_>],
        relations: &[String],
        status: Status,
    ) -> Value {
        let rows = outcomes.iter().map(|Outcome { pes, profile, ran, covered }| match ran {
            Ok((plan, done)) => {
                let mut row = json::summary(facts, plan, done);
                if *covered {
                    row["covered_by"] = Profile::Spec.name().into();
                }
                row
            }
            Err(why) => json!({ "pes": pes, "profile": profile.name(), "status": "not run", "error": why }),
        });
        json!({
            "schema": "onesided-table/1",
            "program": facts.name,
            "options": plan.own.given.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>(),
            "status": status.name(),
            "rows": rows.collect::<Vec<_>>(),
            "compared": relations,
            "checks": facts.checks,
        })
    }
}

impl<'a> Outcome<'a> {
    /// The plan and the recorded run, if it has a finding.
    fn finding(&self) -> Option<(&'a Plan, &Run<String>)> {
        let (plan, done) = self.ran.as_ref().ok()?;
        Some((plan, done.recorded.as_ref().filter(|_| done.end == End::Finding)?))
    }

    /// How its finding is run again. A table writes no finding to a file: a search of its own does.
    fn replay(&self, plan: &Plan, run: &Run<String>) -> String {
        plan.replay_line(&run.schedule, &format!("--pes {} --profile {} --finding", self.pes, self.profile))
    }

    /// Whether the program was proved, without an assumption.
    fn is_proof(&self) -> bool {
        let is_all = |(plan, done): &(&Plan, Done)| {
            let Explored { complete, polls, .. } = done.explored;
            plan.is_all() && done.end == End::Fine && complete && !polls && !done.has_more_outcomes
        };
        self.ran.as_ref().is_ok_and(is_all)
    }

    /// What came out, in a few words.
    fn result(&self) -> String {
        let (plan, done) = match &self.ran {
            Ok(ran) => ran,
            Err(why) => return why.clone(),
        };
        let explored = &done.explored;
        let of = explored.estimated.filter(|&estimate| estimate > explored.schedules);
        let of = of.map(|estimate| format!(" of about {}", Explored::in_words(estimate))).unwrap_or_default();
        match (&done.end, &done.recorded) {
            (End::Error(why), _) => format!("error: {why}"),
            (End::Finding, Some(run)) => {
                let headline = headline(&run.verdict);
                format!("fails: {}", headline.strip_prefix("failed: ").unwrap_or(&headline))
            }
            (End::GivenUp, Some(run)) => format!("not complete: {}", headline(&run.verdict)),
            (End::Bounded | End::Interrupted, _) => {
                let bound = explored.bound.map(|bound| format!(", {bound}")).unwrap_or_default();
                let covered = if self.covered { "; the proof under spec covers it" } else { "" };
                format!("not complete: {}{of}{bound}{covered}", explored.schedules)
            }
            _ if plan.is_all() => "proved".to_string(),
            _ => match explored.classes {
                Some(n) => format!("nothing wrong in {}", count(n, "class")),
                None => "nothing wrong".to_string(),
            },
        }
    }
}

/// The rows with a finding.
fn found<'o, 'a>(outcomes: &'o [Outcome<'a>]) -> impl Iterator<Item = (&'o Outcome<'a>, (&'a Plan, &'o Run<String>))> {
    outcomes.iter().filter_map(|outcome| Some((outcome, outcome.finding()?)))
}

/// The verdict in short, with the lines that it is about.
fn headline(verdict: &Verdict) -> String {
    let mut lines: Vec<String> = Vec::new();
    for line in places(verdict).iter().map(At::to_string) {
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    let more = lines.len().saturating_sub(LINES);
    lines.truncate(LINES);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let at = if lines.is_empty() { String::new() } else { format!(" at {}{more}", lines.join(", ")) };
    format!("{}{at}", verdict.kind.outcome())
}

/// The lines that a verdict is about: those of the mistake, else those where somebody waits.
fn places(verdict: &Verdict) -> Vec<At> {
    match &verdict.kind {
        VerdictKind::Race => verdict.races.iter().take(1).flat_map(|race| [race.first.at, race.second.at]).collect(),
        VerdictKind::Lint => verdict.lints.iter().take(1).flat_map(|lint| [lint.first.at, lint.second.at]).collect(),
        VerdictKind::Failed { error, .. } => vec![error.at()],
        VerdictKind::Panicked { at: Some(at), .. } => vec![*at],
        VerdictKind::Mismatch { calls, .. } => calls.iter().map(|call| call.at).collect(),
        VerdictKind::CollectivesOutOfOrder { calls, .. } => calls.iter().map(|(_, at)| *at).collect(),
        VerdictKind::FreedInUse { at, made_at, .. } => std::iter::once(*at).chain(*made_at).collect(),
        VerdictKind::Kernel { at, .. } => vec![*at],
        VerdictKind::Leak { leaks } => leaks.iter().map(|(_, live)| live.at).collect(),
        _ => {
            let waits = |standing: &Standing| matches!(standing, Standing::Waits(_));
            verdict.agents.iter().filter(|agent| waits(&agent.standing)).filter_map(|agent| agent.at).collect()
        }
    }
}

/// How all of it ended: as the row does that matters most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Status {
    Ok,
    NotComplete,
    Interrupted,
    Error,
    Finding,
}

impl Status {
    fn of(outcomes: &[Outcome<'_>]) -> Status {
        let of = |outcome: &Outcome<'_>| match &outcome.ran {
            Err(why) if why == NOT_RUN => Status::Interrupted,
            Err(_) => Status::Ok, // the program says itself that it is not for so many PEs
            Ok((_, done)) => match done.end {
                End::Fine => Status::Ok,
                End::Bounded if outcome.covered => Status::Ok,
                End::Bounded | End::GivenUp => Status::NotComplete,
                End::Interrupted => Status::Interrupted,
                End::Error(_) => Status::Error,
                End::Finding => Status::Finding,
            },
        };
        outcomes.iter().map(of).max().unwrap_or(Status::Ok)
    }

    fn name(self) -> &'static str {
        match self {
            Status::Ok => "ok",
            Status::NotComplete => "not complete",
            Status::Interrupted => "interrupted",
            Status::Error => "error",
            Status::Finding => "finding",
        }
    }

    /// The exit status.
    ///
    /// # Errors
    /// The first operating error; or why nothing was run.
    fn code(self, outcomes: &[Outcome<'_>]) -> Result<ExitCode, String> {
        let error = outcomes.iter().find_map(|outcome| match &outcome.ran {
            Ok((_, Done { end: End::Error(why), .. })) => Some(why.clone()),
            _ => None,
        });
        match (self, error) {
            (Status::Finding, _) => Ok(ExitCode::from(1)),
            (Status::Error, why) => Err(why.unwrap_or_default()),
            (Status::Interrupted, _) => Ok(interrupt::status()),
            (Status::NotComplete, _) => Ok(ExitCode::from(NOT_COMPLETE)),
            (Status::Ok, _) if outcomes.iter().any(|outcome| outcome.ran.is_ok()) => Ok(ExitCode::SUCCESS),
            (Status::Ok, _) => Err("no row of the table could be run".to_string()),
        }
    }
}
