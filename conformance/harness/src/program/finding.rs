//! What `--finding`, `--report` and `--events` write: everything that is known of the recorded run.

use onesided::At;
use onesided_show::{self as show, Finding};
use onesided_sim::{AgentState, Config, Run, Standing, Undelivered, Verdict, VerdictKind};

use super::Facts;
use super::plan::Plan;
use super::report::replay;
use super::sources;
use crate::tool::terminal::events_of;

/// All that is known of a recorded run.
pub(super) fn finding(facts: &Facts, plan: &Plan, run: &Run<String>) -> Finding {
    let Config { pes, nodes, gpus, pieces, profile, .. } = plan.config;
    let mut finding = Finding {
        program: facts.name.to_string(),
        checks: facts.checks.to_string(),
        arguments: plan.own.given.iter().map(|word| word.to_string_lossy().into_owned()).collect(),
        cluster: show::Cluster { pes, nodes, gpus, pieces },
        profile: profile.to_string(),
        schedule: run.schedule.to_string(),
        replay: replay(plan, run),
        verdict: verdict(&run.verdict),
        races: Vec::new(),
        agents: run.verdict.agents.iter().map(agent).collect(),
        undelivered: run.verdict.undelivered.iter().map(undelivered).collect(),
        events: events_of(run.trace.as_deref().unwrap_or_default()),
        sources: Vec::new(),
    };
    finding.sources = sources::of(&finding.files());
    finding
}

fn verdict(verdict: &Verdict) -> show::Verdict {
    let (pe, at) = match &verdict.kind {
        VerdictKind::Panicked { pe, at, .. } => (Some(*pe), *at),
        VerdictKind::Failed { pe, error } => (Some(*pe), Some(error.at())),
        VerdictKind::Exited { pe, .. } => {
            (Some(*pe), verdict.agents.iter().find(|agent| agent.pe == *pe).and_then(|a| a.at))
        }
        VerdictKind::Mismatch { calls, .. } => (None, calls.first().map(|call| call.at)),
        VerdictKind::CollectivesOutOfOrder { pe, calls, .. } => (Some(*pe), Some(calls[0].1)),
        VerdictKind::FreedInUse { pe, at, .. } => (Some(*pe), Some(*at)),
        VerdictKind::Leak { leaks } => (leaks.first().map(|(pe, _)| *pe), leaks.first().map(|(_, live)| live.at)),
        VerdictKind::ConcurrentCollectives { pe, .. } | VerdictKind::MixedAtomicity { pe, .. } => (Some(*pe), None),
        _ => (None, None),
    };
    show::Verdict { outcome: verdict.kind.outcome(), text: verdict.kind.to_string(), pe, at: at.map(place) }
}

fn place(at: At) -> show::Place {
    show::Place::from(at.to_string())
}

fn agent(state: &AgentState) -> show::Agent {
    let standing = match state.standing {
        Standing::Finished => show::Standing::Finished,
        Standing::Failed => show::Standing::Failed,
        Standing::Runs => show::Standing::Runs,
        Standing::Waits(_) => show::Standing::Waits,
    };
    let AgentState { pe, stream, call, at, .. } = *state;
    show::Agent { pe, stream, call: call.to_string(), at: at.map(place), standing, text: state.to_string() }
}

fn undelivered(transfer: &Undelivered) -> show::Undelivered {
    let Undelivered { pe, to, call, at, .. } = *transfer;
    show::Undelivered { pe, to, call: call.to_string(), at: place(at), text: transfer.to_string() }
}
