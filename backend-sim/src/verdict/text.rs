//! Verdicts in words.

use std::fmt;

use onesided::backend::{Live, LiveKind};
use onesided::count;

use super::{AgentState, Entered, Repeated, Standing, Undelivered, Verdict, VerdictKind};
use crate::lint::Lint;

/// How many undelivered transfers, or calls of a loop, a report lists. It counts the others.
const LISTED: usize = 8;

impl fmt::Display for VerdictKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            VerdictKind::Finished => f.write_str("finished"),
            VerdictKind::Deadlock => f.write_str("deadlock: nothing can happen any more, and somebody waits"),
            VerdictKind::Mismatch { team, number, field, calls } => {
                write!(f, "collective mismatch: collective #{number} of {team} differs in {field}")?;
                calls.iter().try_for_each(|Entered { pe, call, at }| write!(f, "\n    PE {pe} called {call} at {at}"))
            }
            VerdictKind::ConcurrentCollectives { team, pe, calls: [first, second] } => {
                write!(
                    f,
                    "concurrent collectives: PE {pe} entered {second} on {team} while it was still in {first}; "
                )?;
                f.write_str("a team has one collective at a time, so order the two by an event or use two teams")
            }
            VerdictKind::CollectivesOutOfOrder { team, pe, calls: [(later, at), (earlier, before)] } => {
                write!(
                    f,
                    "collectives out of order: PE {pe} entered {later} on {team} (called at {at}), while {earlier} (called \
                     before it, at {before}) has not begun; "
                )?;
                f.write_str("between GPUs, a team's collectives must run in the order of their calls: ")?;
                f.write_str("call them in that order, order the two by an event, or use two teams")
            }
            VerdictKind::FreedInUse { call, alloc, made_at, pe, at } => {
                let made = made_at.map(|at| format!(", made at {at},")).unwrap_or_default();
                write!(f, "{call} of memory in use: {alloc}{made} ")?;
                write!(f, "is still used by what PE {pe} issued at {at}; ")?;
                f.write_str("complete it first (quiet and synchronize the stream)")
            }
            VerdictKind::Kernel { pe, kernel, thread, message, at, details, .. } => {
                write!(f, "kernel {kernel} on PE {pe}: {message} ({at:#}, {thread})")?;
                details.iter().try_for_each(|line| write!(f, "\n    {line}"))
            }
            VerdictKind::Race => f.write_str("data race"),
            VerdictKind::Lint => f.write_str("lint"),
            VerdictKind::Leak { leaks } => {
                f.write_str("leak: not given back before finalize")?;
                leaks.iter().try_for_each(|(pe, live)| write!(f, "\n    PE {pe} holds {}", held(live)))
            }
            VerdictKind::StepLimit { steps } => {
                let steps = count(*steps, "step");
                write!(f, "step limit: given up after {steps}, and whether the run would have ended is not known")
            }
            VerdictKind::InstructionLimit { pe, kernel, thread, instructions, at } => {
                write!(
                    f,
                    "instruction limit: given up after {instructions} instructions of a block of kernel {kernel} on PE {pe}, and whether it \
                     would have ended is not known ({at:#}, {thread})"
                )
            }
            VerdictKind::Stopped { bound } => write!(f, "stopped before its end: {bound}"),
            VerdictKind::PollsBounded => {
                f.write_str(
                    "polls bounded: every PE that is left polls without a change, or waits for one that does; ",
                )?;
                f.write_str("the search does not know what happens if a loop gives up polling")
            }
            VerdictKind::Panicked { pe, message, at: Some(at) } => write!(f, "PE {pe} panicked at {at}: {message}"),
            VerdictKind::Panicked { pe, message, at: None } => write!(f, "PE {pe} panicked: {message}"),
            VerdictKind::Failed { pe, error } => write!(f, "PE {pe} failed: {error}"),
            VerdictKind::Exited { pe, status, kernel } => {
                write!(f, "PE {pe} ended the job with status {status}")?;
                kernel.as_ref().map_or(Ok(()), |(who, at)| write!(f, " ({at:#}, {who})"))
            }
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.kind, &self.races[..]) {
            (VerdictKind::Race, [first, ..]) => write!(f, "{first}")?,
            (VerdictKind::Lint, _) => return write_lints(f, &self.lints),
            (kind, [first, ..]) if !kind.is_ok() => write!(f, "{kind}\n  besides, {first}")?,
            (kind, _) => write!(f, "{kind}")?,
        }
        match self.races.len() {
            0 | 1 => {}
            _ if f.alternate() => self.races[1..].iter().try_for_each(|race| write!(f, "\n  {race}"))?,
            2 => {
                f.write_str("\n    one more pair of calls races")?;
                let [first, second] = [0, 1].map(|race| self.races[race].missing_in_words());
                if first == second { Ok(()) } else { write!(f, "; missing there: {second}") }?
            }
            more => write!(f, "\n    {} more pairs of calls race", more - 1)?,
        }
        self.given_up.iter().try_for_each(|why| write!(f, "\n  besides, {why}"))?;
        self.reads.iter().try_for_each(|read| write!(f, "\n  {}", read.to_string().replace('\n', "\n  ")))?;
        write_agents(f, &self.agents)?;
        let Some(first) = self.undelivered.first() else { return Ok(()) };
        match self.kind.failed_pe() {
            Some(pe) if pe == first.to => write!(f, "\n  not yet delivered to PE {pe}:")?,
            _ => f.write_str("\n  not yet delivered:")?,
        }
        self.undelivered.iter().take(LISTED).try_for_each(|transfer| write!(f, "\n    {transfer}"))?;
        match self.undelivered.len().saturating_sub(LISTED) {
            0 => Ok(()),
            more => write!(f, "\n    and {more} more"),
        }
    }
}

/// A line for each agent. If many blocks or threads of a kernel are at one line, only the first is listed, with the number of the others.
fn write_agents(f: &mut fmt::Formatter<'_>, agents: &[AgentState]) -> fmt::Result {
    for alike in agents.chunk_by(|one, other| one.is_beside(other)) {
        let shown = if alike.len() > LISTED { &alike[..LISTED / 2] } else { alike };
        shown.iter().try_for_each(|agent| write!(f, "\n  {agent}"))?;
        if let more @ 1.. = alike.len() - shown.len() {
            let at = alike[0].at.map(|at| format!(" at {at:#}")).unwrap_or_default();
            write!(f, "\n    and {more} more of this kernel{at}")?;
        }
    }
    Ok(())
}

/// The first lint and the number of the others; all of them in `{:#}`.
fn write_lints(f: &mut fmt::Formatter<'_>, lints: &[Lint]) -> fmt::Result {
    for (number, lint) in lints.iter().enumerate().take(if f.alternate() { lints.len() } else { 1 }) {
        write!(f, "{}lint {lint}", if number > 0 { "\n  " } else { "" })?;
    }
    match lints.len() {
        2.. if f.alternate() => Ok(()),
        0 | 1 => Ok(()),
        2 => f.write_str("\n    one more lint"),
        more => write!(f, "\n    {} more lints", more - 1),
    }
}

impl fmt::Display for Undelivered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Undelivered { pe, call, at, to, span, bytes, missing, pieces, overtaken_by } = self;
        write!(f, "{call} by PE {pe} at {at}: {} of {span} on PE {to}", count(*bytes, "byte"))?;
        if missing < pieces && *missing > 0 {
            write!(f, ", {missing} of {}", count(*pieces, "piece"))?;
        }
        match overtaken_by {
            Some((call, at)) => write!(f, ", overtaken by {call} at {at}"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for AgentState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let AgentState { pe, stream, thread, call, at, loops, standing } = self;
        write!(f, "PE {pe}")?;
        if let Some(stream) = stream {
            write!(f, " stream {stream}")?;
        }
        if let Some(thread) = thread {
            write!(f, ", {thread}")?;
        }
        let stands = match standing {
            Standing::Waits(_) => "",
            Standing::Finished => "has returned",
            Standing::Failed => "failed here",
            Standing::Runs => "could go on",
        };
        match (standing, at) {
            (Standing::Waits(what), Some(at)) => write!(f, ": in {call} at {at:#}, waits for {what}")?,
            (Standing::Waits(what), None) => write!(f, ": in {call}, waits for {what}")?,
            (_, Some(at)) => write!(f, ": {stands}; its last call was at {at:#}")?,
            (_, None) => write!(f, ": {stands}; it made no call")?,
        }
        for (number, Repeated { call, at, .. }) in loops.iter().take(LISTED).enumerate() {
            write!(f, "{} {call} at {at:#}", if number == 0 { "; it goes on calling" } else { "," })?;
        }
        match loops.len().saturating_sub(LISTED) {
            0 => Ok(()),
            more => write!(f, " and {more} more"),
        }
    }
}

fn held(live: &Live) -> String {
    let what = match live.what {
        LiveKind::Buffer(alloc) => format!("{alloc} of {}", count(live.bytes, "byte")),
        LiveKind::ExternalMemory(alloc) => format!("{alloc} outside the heap, of {}", count(live.bytes, "byte")),
        LiveKind::Registered(alloc) => format!("a local registration of {alloc}"),
        LiveKind::RegisteredSymmetric(alloc) => format!("a symmetric registration, {alloc}"),
        LiveKind::Team(team) => team.to_string(),
    };
    format!("{what}, made at {}", live.at)
}
