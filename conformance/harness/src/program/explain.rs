//! Explains a finding: how its run differs from the run in order, the step after which the finding could not be avoided, what
//! repairs it, and whether a race changes a result.

use std::fmt::Write as _;
use std::sync::atomic::Ordering;
use std::time::Instant;

use onesided::{Error, Result, count};
use onesided_show as show;
use onesided_sim::{
    Budget, Critical, EventKind, Fixes, Minimized, MissingEdge, Race, Run, Simulation, VerdictKind, Witness,
};

use super::Main;
use super::plan::{LONGEST, Plan, Search};
use crate::tool::finding::{of_critical, of_fix};
use crate::tool::interrupt;

/// The explanation of the run that is reported.
#[derive(Debug, Default)]
pub(super) struct Explained {
    /// Each step that comes later than in order, and the step that it comes after, in words.
    exceptions: Vec<[String; 2]>,
    critical: Option<Critical>,
    fixes: Option<Fixes>,
    /// Whether the race changes a result. Only looked for if races are all that is wrong.
    witness: Option<Witness<String>>,
    /// Why no run of the simulator can show what the first race changes. For example, a kernel's load never sees data older
    /// than the word that it polls.
    never_shown: Option<&'static str>,
    /// Whether the program launches kernels. The search for a changed result keeps the order of their plain accesses.
    launches: bool,
    /// Why a part of the explanation is missing. The finding stands without it.
    failed: Option<Error>,
    /// The user ended it, or its time was over, so it tried less than it would have.
    is_cut: bool,
}

/// How many races are tried, one after the other, until one changes a result.
const RACES: usize = 4;

/// Explains a finding. Returns the run to report: the simplest one that ends alike.
pub(super) fn explain(
    plan: &Plan,
    simulation: &mut Simulation,
    run: Run<String>,
    main: Main<'_>,
) -> (Run<String>, Explained) {
    let effort = plan.effort();
    let mut explained = Explained::default();
    // if the user bounds the search, the explanation takes no longer than that bound
    let start = Instant::now();
    let bound = |simulation: &mut Simulation| {
        let time = plan.budget.time.map(|time| time.saturating_sub(start.elapsed()));
        simulation.set_budget(Budget { time, ..plan.budget });
    };
    // if the user replays a schedule, the report is about that schedule
    let is_wanted = |minimized: &Minimized<String>| match &plan.search {
        Search::Replay(schedule) => minimized.run.schedule.choices == schedule.choices,
        _ => true,
    };
    bound(simulation);
    let minimized = explained.kept(simulation.minimize(&run, effort, main)).flatten().filter(is_wanted);
    let run = match minimized {
        Some(minimized) => {
            explained.exceptions = minimized.exceptions;
            minimized.run
        }
        None => run,
    };
    bound(simulation);
    let critical = simulation.on_cores(plan.cores).critical(&run, effort, main);
    explained.critical = explained.kept(critical).flatten();
    bound(simulation);
    let fixes = simulation.on_cores(plan.cores).fix(&run, effort, main);
    explained.fixes = explained.kept(fixes);
    explained.launches = run.trace.iter().flatten().any(|event| matches!(event.kind, EventKind::Call("launch")));
    let mut run = run;
    if matches!(run.verdict.kind, VerdictKind::Race) && run.verdict.given_up.is_none() {
        for number in 0..run.verdict.races.len().min(RACES) {
            if never_shown(&run.verdict.races[number]).is_some() {
                continue;
            }
            bound(simulation);
            let witness = simulation.witness(&run.verdict.races[number], effort, main);
            let Some(witness) = explained.kept(witness) else { break };
            let changes = witness.run.is_some();
            if number == 0 || changes {
                explained.witness = Some(witness);
            }
            if changes {
                run.verdict.races[..=number].rotate_right(1); // what matters is read first
                break;
            }
        }
        let first = run.verdict.races.first().filter(|_| explained.witness.is_none());
        explained.never_shown = first.and_then(never_shown);
    }
    let is_over = plan.budget.time.is_some_and(|time| start.elapsed() >= time);
    explained.is_cut = is_over || interrupt::flag().load(Ordering::Relaxed);
    (run, explained)
}

/// Why no run here shows what a race changes.
fn never_shown(race: &Race) -> Option<&'static str> {
    match race.missing {
        MissingEdge::Wait { .. } => Some(
            "No run here shows what it changes: the data is always there when a kernel sees the signal. Over a network it may not be.",
        ),
        MissingEdge::PlainLoad { .. } => Some(
            "No run here shows what it changes: a read-only load always sees what is in memory. On a GPU it may see what a cache has kept.",
        ),
        MissingEdge::Copy { .. } => Some(
            "No run here shows what it changes: the bytes of a bulk copy are moved at once. On a GPU they are moved beside the threads.",
        ),
        _ => None,
    }
}

/// What comes later than in order, in words.
pub(super) fn later_than_in_order(exceptions: &[[String; 2]]) -> String {
    let one = |[late, after]: &[String; 2]| format!("\n    {late}\n        comes after {after}");
    format!("Other than in order:{}", exceptions.iter().map(one).collect::<String>())
}

impl Explained {
    /// Of a run of which only this is known: what comes later than in order.
    pub(super) fn later(exceptions: &[[String; 2]]) -> Explained {
        Explained { exceptions: exceptions.to_vec(), ..Explained::default() }
    }

    /// A part of the explanation, unless it failed.
    fn kept<P>(&mut self, part: Result<P>) -> Option<P> {
        part.map_err(|error| self.failed = Some(error)).ok()
    }

    /// What a person reads behind the verdict.
    pub(super) fn text(&self, plan: &Plan) -> String {
        let mut text = String::new();
        if let [_, ..] = self.exceptions[..] {
            let _ = write!(text, "\n\n{}", later_than_in_order(&self.exceptions));
        }
        if let Some(critical) = &self.critical {
            let _ = write!(text, "\n\nCritical step: {critical}");
        }
        if let Some(fix) = self.fix(plan) {
            let _ = write!(text, "\n\nFix: {fix}");
        }
        if let Some(matters) = self.matters(plan) {
            let _ = write!(text, "\n\n{}", matters.text);
            match matters.replay {
                Some(replay) if replay.len() > LONGEST => {
                    text.push_str("\n    (--json FILE has the command in finding.matters.replay: no shell takes it)");
                }
                Some(replay) => text.push_str(&format!("\n    {replay}")),
                None => {}
            }
        }
        if let Some(error) = &self.failed {
            let _ = write!(text, "\n\nA part of the explanation is missing: {}", error.message());
        }
        text
    }

    /// What repairs it, or what was tried in vain.
    fn fix(&self, plan: &Plan) -> Option<String> {
        match self.fixes.as_ref()? {
            Fixes { fix: Some(fix), .. } => Some(fix.to_string()),
            Fixes { tried, .. } if *tried > 0 => {
                let more = if plan.explain { "" } else { " (--explain tries more)" };
                let tried = if *tried == 1 { "1 edit was".into() } else { format!("{tried} edits were") };
                let cut = if self.is_cut { ", until it was ended" } else { "" };
                Some(format!("none found: {tried} tried, of one or two calls{cut}{more}"))
            }
            _ => None,
        }
    }

    /// Whether the race changes a result, and how.
    pub(super) fn matters(&self, plan: &Plan) -> Option<show::Matters> {
        if let Some(text) = self.never_shown {
            return Some(show::Matters { text: text.to_string(), changes: false, replay: None });
        }
        let Witness { in_order, run, other, tried, .. } = self.witness.as_ref()?;
        let Some(run) = run.as_ref().map(|minimized| &minimized.run) else {
            let runs = count(*tried, "run");
            let text = match other {
                None if self.launches => format!(
                    "It changed no result in {runs} that were tried. They have the plain accesses of kernels in one order: \
                     --races note tries others."
                ),
                None if self.is_cut => {
                    format!("Whether it changes a result is not known: it was ended after {runs}.")
                }
                None => format!("It changed no result in {runs} that were tried."),
                Some(_) => "Whether it changes a result is not known: results differ from run to run, but no run was found that \
                            differs by a step of these two calls. A run that ends otherwise:"
                    .to_string(),
            };
            let replay = other.as_ref().map(|other| plan.replay_command(&other.run.schedule));
            return Some(show::Matters { text, changes: false, replay });
        };
        let other = in_order.iter().zip(&run.results).enumerate().find(|(_, (usual, found))| usual != found);
        let text = match (&run.verdict.kind, other) {
            (VerdictKind::Race | VerdictKind::Finished, Some((pe, (usual, found)))) => {
                let said = |text: &Option<String>| text.as_deref().unwrap_or("nothing").to_string();
                format!("It matters: PE {pe} returns {:?} instead of {:?}:", said(found), said(usual))
            }
            (kind, _) => format!("It matters: {kind}:"),
        };
        Some(show::Matters { text, changes: true, replay: Some(plan.replay_command(&run.schedule)) })
    }

    /// What a finding has of it.
    pub(super) fn add_to(&self, plan: &Plan, finding: &mut show::Finding) {
        finding.exceptions.clone_from(&self.exceptions);
        finding.critical = self.critical.as_ref().map(|critical| of_critical(critical, &finding.events));
        finding.fix = self.fixes.as_ref().and_then(|fixes| fixes.fix.as_ref()).map(of_fix);
        finding.matters = self.matters(plan);
    }
}
