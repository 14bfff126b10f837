//! What a person reads after the program's own lines.

use onesided_sim::{Explore, Run};

use super::Facts;
use super::next::next;
use super::plan::{Plan, Search};
use super::run::{Done, End};
use crate::say;
use crate::tool::count;

/// Prints the finding if there is one, and a few lines about what was done.
pub(super) fn print(facts: &Facts, plan: &Plan, done: &Done) {
    match (&done.end, &done.recorded) {
        (End::Error(_), _) => {}
        (End::Finding | End::GivenUp, Some(run)) => {
            let what = if done.end == End::Finding { "FINDING" } else { "GIVEN UP" };
            say!("\n{what} {}", finding(plan, done, run));
            say!("\n{}", what_ran(plan, done));
            note_unsupported(plan, done);
            say!("Every PE checks that {}.", facts.checks);
            say!("Next: {}", next(facts, plan, done));
        }
        _ => {
            say!("\n{}: {}", what_ran(plan, done), result(done));
            if let Some((count, run)) = &done.differing {
                say!(
                    "note: the PEs' results differ between schedules ({count} different ones); only what a program checks \
                     can fail. One that differs from the first: {}",
                    replay(plan, run)
                );
            }
            note_unsupported(plan, done);
            say!("Every PE checked that {}.", facts.checks);
            say!("Next: {}", next(facts, plan, done));
        }
    }
}

/// Notes what the program uses that GPUs do not have. With `--like`, the simulator has refused it already.
fn note_unsupported(plan: &Plan, done: &Done) {
    if let (Some((family, why)), None) = (done.unsupported, plan.like) {
        say!("note: it uses {family}, which --backend nvshmem does not have: {why} (--like nvshmem refuses it)");
    }
}

/// The verdict, and how to see it again.
fn finding(plan: &Plan, done: &Done, run: &Run<String>) -> String {
    let which = match plan.search {
        Search::Replay(_) => "again".to_string(),
        Search::InOrder { .. } if done.schedules == 1 => "in order".to_string(),
        _ => format!("on schedule {}", done.schedules),
    };
    let replay = replay(plan, run);
    format!("{which}: {}\n\nReplay it: {replay}", run.verdict)
}

/// The command that runs this run again.
pub(super) fn replay(plan: &Plan, run: &Run<String>) -> String {
    plan.replay_command(&run.schedule)
}

/// Schedules, cluster, profile, steps and seconds.
fn what_ran(plan: &Plan, done: &Done) -> String {
    let config = &plan.config;
    let schedules = count(done.schedules, "schedule");
    let how = match (&plan.search, done.schedules) {
        (Search::Replay(_), _) => "replayed".to_string(),
        (Search::Random { seed, .. }, _) => format!("random from seed {seed}"),
        (Search::InOrder { .. }, 1) => "in order".to_string(),
        (Search::InOrder { then: Some(Explore::Random { seed, .. }) }, n) => {
            format!("1 in order, {} random from seed {seed}", n - 1)
        }
        (Search::InOrder { .. }, n) => {
            let others = n - 1;
            let (redundant, also) = (done.redundant, "begun and found equivalent");
            let ended = match (done.complete, &done.end) {
                (true, _) => "complete",
                (false, End::Finding) => "up to the finding",
                (false, _) => "not complete",
            };
            let all =
                if done.complete { format!("all {others} up to equivalence") } else { format!("{others} of all") };
            match redundant {
                0 => format!("1 in order, {all}: {ended}"),
                _ => format!("1 in order, {all}, {redundant} {also}: {ended}"),
            }
        }
    };
    let nodes = if config.nodes > 1 { format!(" on {} nodes", config.nodes) } else { String::new() };
    let (pes, steps) = (count(config.pes as u64, "PE"), count(done.steps, "step"));
    let (profile, seconds) = (config.profile, done.time.as_secs_f64());
    format!("{schedules} ({how}), {pes}{nodes}, profile {profile}, {steps}, {seconds:.2} s")
}

fn result(done: &Done) -> &'static str {
    match done.end {
        End::Interrupted => "ended by you, nothing wrong until then",
        End::Bounded => "nothing wrong in those",
        _ => "nothing wrong",
    }
}
