//! What would help next: a few options, each with what it would show.

use onesided::backend::{Collective, CollectiveKind, Effect};
use onesided_sim::{Bound, Loads, Profile, VerdictKind};

use super::options::{MOST_MEMORY, MOST_TIME, SCHEDULES};
use super::plan::{Plan, Search};
use super::run::{Done, End};
use super::{Facts, Precondition};

/// How much higher a limit is suggested.
const MORE: u64 = 10;
/// The most PEs that are suggested.
const MORE_PES: usize = 64;

/// The options to try, or the advice. Numbers of PEs are those with which the program can run.
pub(super) fn next(facts: &Facts, precondition: Precondition<'_>, plan: &Plan, done: &Done) -> String {
    let tried: Vec<String> = match done.end {
        End::Finding => after_a_finding(plan),
        End::GivenUp => after_giving_up(plan, done),
        End::Bounded => smaller(facts, precondition, plan, done),
        _ => after_success(facts, precondition, plan, done),
    };
    tried.join(", ")
}

fn after_success(facts: &Facts, precondition: Precondition<'_>, plan: &Plan, done: &Done) -> Vec<String> {
    let mut tried = Vec::new();
    if plan.is_all() && !done.explored.complete {
        return smaller(facts, precondition, plan, done); // the user ended it
    }
    let can_run = |pes: &usize| precondition(*pes).is_ok();
    if !plan.is_all() {
        tried.push("--all (every schedule)".to_string());
    }
    if done.explored.stale_loads && plan.config.loads == Loads::Newest {
        tried.push("--loads oldest (what strong loads can miss)".to_string());
    }
    let more_pes = |pes: usize| format!("--pes {pes} (more PEs)");
    tried.extend(match plan.config.pes {
        pes @ 8.. => (facts.min_pes.max(3)..pes).find(can_run).map(fewer_pes),
        // not every number of PEs can be on so many nodes
        pes if plan.config.nodes > 1 => Some(2 * pes).filter(can_run).map(more_pes),
        _ if plan.is_all() => Some(format!("--pes {}..8 (a proof for each)", facts.min_pes.max(2))),
        _ => (8..=MORE_PES).find(can_run).map(more_pes),
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
fn smaller(facts: &Facts, precondition: Precondition<'_>, plan: &Plan, done: &Done) -> Vec<String> {
    let mut tried = Vec::new();
    let (pes, fewest) = (plan.config.pes, facts.min_pes.max(2));
    if plan.is_all() && plan.config.pieces > 1 && done.sends_several_elements {
        tried.push("--pieces 1 (transfers arrive whole: far fewer schedules)".to_string());
    }
    let fewer = (fewest..pes).rev().find(|pes| precondition(*pes).is_ok());
    tried.extend(fewer.map(fewer_pes));
    tried.extend(done.explored.bound.and_then(higher).map(|option| format!("{option} (a higher limit)")));
    if plan.is_all() {
        tried.push(format!("--schedules {} instead of --all (random ones)", 100 * SCHEDULES));
    }
    tried
}

/// The option that lets a search go on behind its bound, if a higher one is taken.
fn higher(bound: Bound) -> Option<String> {
    match bound {
        Bound::Schedules(limit) => Some(format!("--schedules {}", limit.saturating_mul(MORE))),
        Bound::Time(time) if time.as_secs() < MOST_TIME => {
            let millis = (time.as_millis() * u128::from(MORE)).clamp(1, u128::from(MOST_TIME) * 1000);
            Some(format!("--time {}", millis as f64 / 1000.0))
        }
        Bound::Memory(bytes) if bytes < MOST_MEMORY => {
            Some(format!("--memory {}", in_units(bytes.saturating_mul(MORE as usize).min(MOST_MEMORY))))
        }
        _ => None,
    }
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// The option's own reader takes what is suggested, also near its limit.
    #[test]
    fn a_higher_limit_can_be_given() {
        let seconds = |seconds| higher(Bound::Time(Duration::from_secs_f64(seconds)));
        let times = [0.5, 0.007, 0.0001, 30.0, 31_000_000.0].map(|time| seconds(time).unwrap());
        assert_eq!(times, ["--time 5", "--time 0.07", "--time 0.001", "--time 300", "--time 31536000"]);
        assert_eq!(seconds(31_536_000.0), None);
        let memory = [9 << 10, 1 << 39].map(|bytes| higher(Bound::Memory(bytes)).unwrap());
        assert_eq!(memory, ["--memory 90K", "--memory 1024G"]);
        assert_eq!(higher(Bound::Memory(MOST_MEMORY)), None);
    }
}
