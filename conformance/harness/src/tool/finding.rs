//! What a verdict of the simulator says, as a finding says it.

use onesided::At;
use onesided_show::{self as show, Finding};
use onesided_sim::{AgentState, Standing, Undelivered, Verdict, VerdictKind};

/// How a run ended, and who did what then. What ran, and what happened before, is left out.
pub fn of_verdict(verdict: &Verdict) -> Finding {
    Finding {
        verdict: end(verdict),
        races: Vec::new(),
        agents: verdict.agents.iter().map(agent).collect(),
        undelivered: verdict.undelivered.iter().map(undelivered).collect(),
        ..Finding::default()
    }
}

fn end(verdict: &Verdict) -> show::Verdict {
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
