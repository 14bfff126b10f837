//! What a verdict of the simulator says, as a finding says it.

use onesided::At;
use onesided_show::{self as show, Finding};
use onesided_sim::{
    Access, AgentState, Beside, Critical, Edit, Fix, KernelChange, Lint, NoWayBack, Ordering, Part, Race, Shown,
    Standing, Undelivered, Verdict, VerdictKind,
};

/// The finding of a verdict: how the run ended, and what each PE was doing then. It has neither the program nor the events.
pub fn of_verdict(verdict: &Verdict) -> Finding {
    Finding {
        verdict: end(verdict),
        races: verdict.races.iter().map(race).collect(),
        lints: verdict.lints.iter().map(lint).collect(),
        agents: verdict.agents.iter().map(agent).collect(),
        undelivered: verdict.undelivered.iter().map(undelivered).collect(),
        ..Finding::default()
    }
}

/// A change that makes a program right.
pub fn of_fix(fix: &Fix) -> show::Fix {
    let edit = |(edit, before): (&Edit, &Option<At>)| {
        let side = match *edit {
            Edit::InKernel { change: KernelChange::Insert(_, beside), .. } => match beside {
                Beside::Behind | Beside::BehindCondition => show::Side::Behind,
                Beside::InFront | Beside::InFrontOfCondition => show::Side::InFront,
            },
            Edit::InKernel { .. } | Edit::Replace { .. } => show::Side::Instead,
            _ => show::Side::Behind,
        };
        let (call, after, stream) = match *edit {
            Edit::Insert { call, after, on_stream } => (call.name(), after, on_stream),
            Edit::InKernel { at, change } => (name_of(change), at, false),
            Edit::PutSignal { put, .. } => ("put_signal", put, false),
            Edit::Meet { call, after, .. } => (call.name(), after, false),
            Edit::Synchronize { after, .. } => (Ordering::Synchronize.name(), after, false),
            Edit::Replace { at, by } => (by.map_or("", |by| by.name()), at, false),
        };
        show::Edit { call: call.to_string(), after: place(after), side, before: before.map(place), stream }
    };
    show::Fix {
        text: fix.to_string(),
        proved: matches!(fix.shown, Shown::Proved { .. }),
        weakest: fix.is_weakest,
        edits: fix.edits.iter().zip(&fix.before).map(edit).collect(),
    }
}

/// What a changed kernel has at the line.
fn name_of(change: KernelChange) -> &'static str {
    match change {
        KernelChange::Insert(call, _) => call.name(),
        KernelChange::Gpu => "scope gpu",
        KernelChange::System => "scope sys",
        KernelChange::Volatile => "volatile access",
        KernelChange::Plain => "plain load",
        KernelChange::SignalFetch => "nvshmem_signal_fetch",
    }
}

/// The step after which every schedule fails, in a run with these events.
pub fn of_critical(critical: &Critical, events: &[show::Event]) -> show::Critical {
    let at = critical.at.map(place);
    let is_it = |event: &show::Event| {
        event.pe == critical.pe && event.step >= critical.time && at.as_ref().is_some_and(|at| event.at == *at)
    };
    show::Critical {
        text: critical.to_string(),
        step: critical.step.clone(),
        instead: critical.instead.clone(),
        proved: matches!(critical.shown, NoWayBack::Proved { .. }),
        event: events.iter().position(is_it),
    }
}

fn end(verdict: &Verdict) -> show::Verdict {
    let (pe, at) = match &verdict.kind {
        VerdictKind::Panicked { pe, at, .. } => (Some(*pe), *at),
        VerdictKind::Failed { pe, error } => (Some(*pe), Some(error.at())),
        VerdictKind::Exited { pe, kernel: Some((_, at)), .. } => (Some(*pe), Some(*at)),
        VerdictKind::Exited { pe, .. } => {
            (Some(*pe), verdict.agents.iter().find(|agent| agent.pe == *pe).and_then(|a| a.at))
        }
        VerdictKind::Mismatch { calls, .. } => (None, calls.first().map(|call| call.at)),
        VerdictKind::CollectivesOutOfOrder { pe, calls, .. } => (Some(*pe), Some(calls[0].1)),
        VerdictKind::FreedInUse { pe, at, .. } | VerdictKind::Kernel { pe, at, .. } => (Some(*pe), Some(*at)),
        VerdictKind::Leak { leaks } => (leaks.first().map(|(pe, _)| *pe), leaks.first().map(|(_, live)| live.at)),
        VerdictKind::ConcurrentCollectives { pe, .. } => (Some(*pe), None),
        VerdictKind::Lint => (None, verdict.lints.first().map(|lint| lint.first.at)),
        _ => (None, None),
    };
    let text = match (&verdict.kind, verdict.lints.first()) {
        (VerdictKind::Lint, Some(lint)) => format!("lint {}", lint.to_string().lines().next().unwrap_or_default()),
        (kind, _) => kind.to_string(),
    };
    show::Verdict { outcome: verdict.kind.outcome(), text, pe, at: at.map(place) }
}

fn lint(lint: &Lint) -> show::Lint {
    show::Lint {
        lint: lint.kind.name().to_string(),
        text: lint.to_string(),
        first: place(lint.first.at),
        second: place(lint.second.at),
        between: lint.between.map(|between| place(between.at)),
    }
}

fn race(race: &Race) -> show::Race {
    let Race { first, second, pe, span, made_at, missing, times, .. } = race;
    let (call, after, before) = missing.call();
    show::Race {
        first: access(first),
        second: access(second),
        pe: *pe,
        memory: span.to_string(),
        made_at: made_at.map(place),
        missing: show::Missing {
            text: race.missing_in_words(),
            call: call.to_string(),
            after: place(after),
            before: place(before),
        },
        times: *times,
        known: race.known(),
    }
}

fn access(access: &Access) -> show::Access {
    let Access { pe, stream, thread, call, at, part, writes, atomic, step, .. } = *access;
    let how = match (atomic, writes) {
        (false, false) => "read",
        (false, true) => "write",
        (true, false) => "atomic read",
        (true, true) => "atomic write",
    };
    let part = match part {
        Part::Itself => show::Part::Itself,
        Part::SourceRead => show::Part::SourceRead,
        _ if atomic => show::Part::Signal,
        _ => show::Part::Delivery,
    };
    let (thread, call) = (thread.map(|thread| thread.to_string()), call.to_string());
    let inlined_at = std::iter::successors(at.inlined_at(), At::inlined_at).map(place).collect();
    show::Access { pe, stream, thread, call, at: place(at), inlined_at, part, how: how.to_string(), step }
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
