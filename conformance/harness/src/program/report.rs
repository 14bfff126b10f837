//! What a person reads after the program's own lines.

use std::time::Duration;

use onesided::count;
use onesided_sim::{
    Bound, Enough, Explore, Explored, IntendedRaces, Lint, LintKind, Run, Strategy, Verdict, VerdictKind,
};

use super::colour::coloured;
use super::next::next;
use super::plan::{Plan, Search};
use super::run::{Done, End};
use super::{Facts, Precondition};
use crate::say;
use crate::tool::duration;
use crate::tool::say::is_terminal;
use crate::tool::terminal::terminal;

/// Prints a line for people, with the colours that their terminal shows.
macro_rules! show {
    ($($text:tt)*) => { say!("{}", coloured(&format!($($text)*), terminal())) };
}

/// Prints the finding if there is one, and a few lines about what was done.
pub(super) fn print(facts: &Facts, precondition: Precondition<'_>, plan: &Plan, done: &Done) {
    // below the lines of the PEs, if they have said something
    let apart = if done.lines.iter().flatten().any(|line| !line.is_empty()) { "\n" } else { "" };
    match (&done.end, &done.recorded) {
        (End::Error(_), _) => {}
        (End::Finding | End::GivenUp, Some(run)) => {
            let what = if done.end == End::Finding { "FINDING" } else { "GIVEN UP" };
            show!("{apart}{what} {}", finding(plan, done, run));
            show!("\n{}", summary(facts, plan, done));
            note_unsupported(plan, done);
            note_marks(&done.marks);
            note_unwritten(done);
            note_races(plan, done);
            note_lints(plan, done);
            say!("Every PE checks that {}.", facts.checks);
            show!("Next: {}", next(facts, precondition, plan, done));
        }
        _ => {
            show!("{apart}{}", summary(facts, plan, done));
            if let Some((count, run)) = &done.differing {
                show!(
                    "note: the PEs' results differ between schedules ({count} different ones); only what a program checks \
                     can fail. One that differs from the first: {}",
                    plan.replay_line(&run.schedule, "--json")
                );
            }
            weakened(plan, done);
            note_unsupported(plan, done);
            note_marks(&done.marks);
            note_unwritten(done);
            note_races(plan, done);
            note_lints(plan, done);
            let checks = if done.explored.schedules > 0 { "checked" } else { "checks" }; // none has ended
            say!("Every PE {checks} that {}.", facts.checks);
            show!("Next: {}", next(facts, precondition, plan, done));
        }
    }
}

/// Says of each call that orders others whether it is needed.
fn weakened(plan: &Plan, done: &Done) {
    if !plan.weaken || done.end != End::Fine {
        return;
    }
    if done.weaker.is_empty() {
        say!("--weaken: it has no fence, flush, quiet, barrier or sync of its own outside of kernels");
        return;
    }
    done.weaker.iter().for_each(|weaker| say!("{}", weaker.in_words(plan.config.pes)));
    if done.weaker.iter().filter(|weaker| matches!(weaker.enough, Enough::Nothing(_) | Enough::Call(..))).count() > 1 {
        say!("note: each was tried alone; without one of them, another may be needed");
    }
}

/// Notes what the program uses that GPUs do not have. With `--like`, the simulator has refused it already.
fn note_unsupported(plan: &Plan, done: &Done) {
    if let (Some((family, why)), None) = (done.unsupported, plan.like) {
        show!("note: it uses {family}, which --backend nvshmem does not have: {why} (--like nvshmem refuses it)");
    }
}

/// Counts the races that the program means, and notes marks that stand for none.
pub(super) fn note_marks(marks: &IntendedRaces) {
    marks.to_string().lines().for_each(|line| show!("note: {line}"));
}

/// Notes reads of memory that nobody has written.
fn note_unwritten(done: &Done) {
    match &done.unwritten {
        None => {}
        Some((1, first)) => show!("note: a read of memory that nobody has written: {first}"),
        Some((n, first)) => show!("note: {n} reads of memory that nobody has written; the first: {first}"),
    }
}

/// Notes races that are no findings.
fn note_races(plan: &Plan, done: &Done) {
    let [first, others @ ..] = &done.noted[..] else { return };
    show!("note: accesses race, which is no finding with --races note: {first}");
    match others {
        others if plan.all_races => others.iter().for_each(|race| show!("  {race}")),
        [] => {}
        [_] => show!("    one more pair of calls races (--all-races prints both)"),
        others => show!("    {} more pairs of calls race (--all-races prints all)", others.len()),
    }
}

/// Notes what works by luck or without a promise, unless it is the finding. Reads of memory that nobody has written have a note of their own.
fn note_lints(plan: &Plan, done: &Done) {
    let is_noted = |lint: &Lint| lint.kind == LintKind::UnwrittenRead && done.unwritten.is_some();
    let all: Vec<&Lint> = done.lints.iter().filter(|lint| !is_noted(lint)).collect();
    let (false, [first, ..]) = (plan.config.strict, &all[..]) else { return };
    let lints = count(all.len(), "lint");
    let strict = if all.len() == 1 { "--strict makes it a finding" } else { "--strict makes them findings" };
    match plan.all_races {
        true => {
            show!("note: {lints} ({strict})");
            all.iter().for_each(|lint| show!("  {lint}"));
        }
        false => show!("note: {lints} ({strict}): {first}"),
    }
}

/// The verdict, and how to see it again.
pub(super) fn finding(plan: &Plan, done: &Done, run: &Run<String>) -> String {
    let which = match plan.search {
        Search::Replay(_) => "again".to_string(),
        _ if let (Some(beside), End::Finding) = (&done.beside, &done.end) => {
            format!("on random schedule {}, besides the search of all", beside.schedules)
        }
        Search::InOrder { .. } if done.schedules() == 1 => "in order".to_string(),
        _ => format!("on schedule {}", done.schedules()),
    };
    let replay = plan.replay_line(&run.schedule, "--finding");
    let explained = done.explained.as_ref().map(|explained| explained.text(plan)).unwrap_or_default();
    format!("{which}: {}{explained}\n\nReplay it: {replay}", verdict(plan, &run.verdict))
}

/// The verdict with as many races as are asked for. All lines of what a PE says stand below the first.
pub(super) fn verdict(plan: &Plan, verdict: &Verdict) -> String {
    let text = if plan.all_races { format!("{verdict:#}") } else { verdict.to_string() };
    let said = match &verdict.kind {
        VerdictKind::Failed { error, .. } => error.message(),
        VerdictKind::Panicked { message, .. } => message,
        _ => return text,
    };
    text.replacen(said, &said.trim_end().replace('\n', "\n    "), 1)
}

/// The command that runs this run again.
pub(super) fn replay(plan: &Plan, run: &Run<String>) -> String {
    plan.replay_command(&run.schedule)
}

/// The result in one sentence: the program, what was done on which cluster, and what came out.
fn summary(facts: &Facts, plan: &Plan, done: &Done) -> String {
    let program = plan.program(facts);
    if plan.is_all() && done.explored.schedules > 0 {
        let time = timed(done.time).map(|time| format!("; {time}")).unwrap_or_default();
        let beside = beside(done).unwrap_or_default();
        return format!("{program}: {}{beside}{time}", done.explored.proof(&plan.config));
    }
    let result = match done.end {
        End::Finding | End::GivenUp => "",
        _ => "nothing wrong in ",
    };
    let bound = done.explored.bound.filter(|bound| matches!(bound, Bound::Time(_) | Bound::Stopped));
    let bound = bound.map(|bound| format!(", {bound}")).unwrap_or_default();
    let schedules = count(done.schedules(), "schedule");
    let how = match (&plan.search, done.schedules()) {
        (Search::Replay(_), _) => "replayed".to_string(),
        (Search::Only(explore), _) => drawn(*explore, done),
        (Search::InOrder { then: Some(explore) }, n @ 2..) => {
            format!("1 in order, {} {}", n - 1, drawn(*explore, done))
        }
        (Search::InOrder { .. }, _) => "in order".to_string(),
    };
    let time = timed(done.time).map(|time| format!(", {time}")).unwrap_or_default();
    let (cluster, steps) = (plan.config.in_words(), count(done.steps(), "step"));
    format!("{program}: {result}{schedules} ({how}) for {cluster}{bound}; {steps}{time}")
}

/// What random schedules have shown besides a search of all.
fn beside(done: &Done) -> Option<String> {
    let Explored { schedules, given_up, findings, .. } = done.beside?;
    let given_up = if given_up > 0 { format!(", {given_up} given up") } else { String::new() };
    let came = if findings > 0 { "the last one fails" } else { "nothing wrong" };
    Some(format!("; besides, {} from seed 0: {came}{given_up}", count(schedules, "random schedule")))
}

/// How schedules were drawn, and how many were different.
fn drawn(explore: Explore, done: &Done) -> String {
    let classes = done.explored.classes.map(|n| format!(": {}", count(n, "class")));
    let classes = classes.unwrap_or_default();
    match explore {
        Explore::Random { seed, strategy: Strategy::Plain, .. } => format!("random from seed {seed}{classes}"),
        Explore::Random { seed, strategy, .. } => format!("random by {strategy} from seed {seed}{classes}"),
        Explore::All { .. } => "of all".to_string(),
    }
}

/// How long it took, where a person reads it. Elsewhere the same command prints the same text every time.
fn timed(time: Duration) -> Option<String> {
    is_terminal().then(|| duration(time))
}
