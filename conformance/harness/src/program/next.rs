//! What would help next: a few options, each with what it would show.

use onesided::backend::{Collective, CollectiveKind, Effect};
use onesided_sim::{Bound, Loads, Profile, VerdictKind};

use super::Facts;
use super::options::SCHEDULES;
use super::plan::{Plan, Search};
use super::run::{Done, End};

/// How much higher a limit is suggested.
const MORE: u64 = 10;

/// The options to try, or the advice.
pub(super) fn next(facts: &Facts, plan: &Plan, done: &Done) -> String {
    let tried: Vec<String> = match done.end {
        End::Finding => after_a_finding(plan),
        End::GivenUp => after_giving_up(plan, done),
        End::Bounded => smaller(facts, plan, done),
        _ => after_success(facts, plan, done),
    };
    tried.join(", ")
}

fn after_success(facts: &Facts, plan: &Plan, done: &Done) -> Vec<String> {
    let mut tried = Vec::new();
    if plan.is_all() && !done.explored.complete {
        return smaller(facts, plan, done); // the user ended it
    }
    if !plan.is_all() {
        tried.push("--all (every schedule)".to_string());
    }
    if done.explored.stale_loads && plan.config.loads == Loads::Newest {
        tried.push("--loads oldest (what strong loads can miss)".to_string());
    }
    tried.push(match plan.config.pes {
        8.. => fewer_pes(facts.min_pes.max(3)),
        // not every number of PEs can be on so many nodes
        pes if plan.config.nodes > 1 => format!("--pes {} (more PEs)", 2 * pes),
        _ if plan.is_all() => format!("--pes {}..8 (a proof for each)", facts.min_pes.max(2)),
        _ => "--pes 8 (more PEs)".to_string(),
    });
    // mixed-fabric promises less than spec
    if !matches!(plan.config.profile, Profile::Spec | Profile::MixedFabric) {
        tried.push("--profile spec (whatever the network)".to_string());
    }
    if !plan.needs_a_record() {
        tried.push("--report FILE (a picture of what happened)".to_string());
    }
    tried
}

/// After a search that did not complete: what makes it smaller, and what lets it go on.
fn smaller(facts: &Facts, plan: &Plan, done: &Done) -> Vec<String> {
    let mut tried = Vec::new();
    let (pes, fewest) = (plan.config.pes, facts.min_pes.max(2));
    if plan.is_all() && plan.config.pieces > 1 && done.sends_several_elements {
        tried.push("--pieces 1 (transfers arrive whole: far fewer schedules)".to_string());
    }
    if pes > fewest {
        tried.push(fewer_pes(pes - 1));
    }
    tried.extend(
        match done.explored.bound {
            Some(Bound::Schedules(limit)) => Some(format!("--schedules {}", limit.saturating_mul(MORE))),
            Some(Bound::Time(time)) => Some(format!("--time {}", time.as_secs().saturating_mul(MORE))),
            Some(Bound::Memory(bytes)) => Some(format!("--memory {}", in_units(bytes.saturating_mul(MORE as usize)))),
            _ => None,
        }
        .map(|option| format!("{option} (a higher limit)")),
    );
    if plan.is_all() {
        tried.push(format!("--schedules {} instead of --all (random ones)", 100 * SCHEDULES));
    }
    tried
}

/// After a run that was given up.
fn after_giving_up(plan: &Plan, done: &Done) -> Vec<String> {
    let mut tried = Vec::new();
    let kind = done.recorded.as_ref().map(|run| &run.verdict.kind);
    let higher = match kind {
        Some(&VerdictKind::StepLimit { steps }) => Some(("--max-steps", steps)),
        Some(&VerdictKind::InstructionLimit { instructions, .. }) => Some(("--max-instructions", instructions)),
        _ => None,
    };
    tried.extend(higher.map(|(option, limit)| format!("{option} {} (a higher limit)", limit.saturating_mul(MORE))));
    match kind {
        Some(VerdictKind::PollsBounded) => {
            tried.push("the same without --all (a loop that gives up polling after many polls ends there)".to_string());
        }
        Some(VerdictKind::StepLimit { .. }) if !plan.is_all() => {
            tried.push("--all (names a poll that nothing ends)".to_string());
        }
        _ => {}
    }
    tried.push("--report FILE (a picture of what happened)".to_string());
    tried
}

fn after_a_finding(plan: &Plan) -> Vec<String> {
    let mut tried = Vec::new();
    match (plan.needs_a_record(), &plan.search) {
        (true, _) => {}
        (false, Search::Replay(_)) => tried.push("--report FILE (a picture of what happened)".to_string()),
        (false, _) => tried.push("the line above with --report FILE (a picture of what happened)".to_string()),
    }
    if plan.config.profile == Profile::Spec && !matches!(plan.search, Search::Replay(_)) {
        tried.push("this line with --profile all (where would it show?)".to_string());
    }
    tried.push("--help".to_string());
    tried
}

/// A size as `--memory` reads it.
fn in_units(bytes: usize) -> String {
    let units = [(30, "G"), (20, "M"), (10, "K")];
    let fits = units.into_iter().find(|(bits, _)| bytes.is_multiple_of(1 << bits));
    fits.map_or_else(|| bytes.to_string(), |(bits, unit)| format!("{}{unit}", bytes >> bits))
}

fn fewer_pes(pes: usize) -> String {
    format!("--pes {pes} (fewer PEs)")
}

/// Whether an operation moves data that can arrive in several pieces.
pub(super) fn has_several_elements(effect: &Effect) -> bool {
    match effect {
        Effect::Transfer(transfer) => transfer.shape.count > 1,
        Effect::Collective(Collective { kind: CollectiveKind::Data(data), .. }) => data.src.len > data.dtype.size(),
        _ => false,
    }
}
