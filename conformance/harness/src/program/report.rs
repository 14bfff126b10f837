//! What a person reads after the program's own lines.

use onesided_sim::{Explore, Profile, Run};

use super::Facts;
use super::plan::{Plan, Search};
use super::run::{Done, End};
use crate::say;

/// Prints the finding if there is one, and a few lines about what was done.
pub(super) fn print(facts: &Facts, plan: &Plan, done: &Done) {
    match (&done.end, &done.recorded) {
        (End::Error(_), _) => {}
        (End::Finding | End::GivenUp, Some(run)) => {
            let what = if done.end == End::Finding { "FINDING" } else { "GIVEN UP" };
            say!("\n{what} {}", finding(facts, plan, done, run));
            say!("\n{}", what_ran(plan, done));
            say!("Every PE checks that {}.", facts.checks);
            say!("Next: {}", after_a_finding(plan));
        }
        _ => {
            say!("\n{}: {}", what_ran(plan, done), result(done));
            if let Some((count, run)) = &done.differing {
                say!(
                    "note: the PEs' results differ between schedules ({count} different ones); only what a program checks \
                     can fail. One that differs from the first: {}",
                    replay(facts, plan, run)
                );
            }
            say!("Every PE checked that {}.", facts.checks);
            say!("Next: {}", after_success(facts, plan, done));
        }
    }
}

/// The verdict, and how to see it again.
fn finding(facts: &Facts, plan: &Plan, done: &Done, run: &Run<String>) -> String {
    let which = match plan.search {
        Search::Replay(_) => "again".to_string(),
        Search::InOrder { .. } if done.schedules == 1 => "in order".to_string(),
        _ => format!("on schedule {}", done.schedules),
    };
    let replay = replay(facts, plan, run);
    format!("{which}: {}\n\nReplay it: {replay}", run.verdict)
}

/// The command that runs this run again.
pub(super) fn replay(facts: &Facts, plan: &Plan, run: &Run<String>) -> String {
    plan.replay_command(facts, &run.schedule)
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
        _ => "nothing wrong",
    }
}

fn after_success(facts: &Facts, plan: &Plan, done: &Done) -> String {
    let all = matches!(plan.search, Search::InOrder { then: Some(Explore::All { .. }) });
    let search = match all {
        true if !done.complete => "--schedules N (a higher limit), ",
        true => "",
        false => "--all (every schedule), ",
    };
    let (pes, fewest) = (plan.config.pes, facts.min_pes.max(2));
    let pes = match all {
        true if !done.complete && pes > fewest => format!("--pes {} (fewer PEs)", pes - 1),
        _ if pes >= 8 => format!("--pes {} (fewer PEs)", fewest.max(3)),
        _ => "--pes 8 (more PEs)".to_string(),
    };
    let profile = match plan.config.profile {
        Profile::Spec => "",
        _ => ", --profile spec (whatever the network)",
    };
    let trace = if plan.trace.is_some() { "" } else { ", --trace FILE (what happened)" };
    format!("{search}{pes}{profile}{trace}")
}

fn after_a_finding(plan: &Plan) -> String {
    let trace = match (&plan.trace, &plan.search) {
        (Some(_), _) => "",
        (None, Search::Replay(_)) => "--trace FILE (what happened, event by event), ",
        (None, _) => "the line above with --trace FILE (what happened, event by event), ",
    };
    let profile = match (plan.config.profile, &plan.search) {
        (Profile::Spec, Search::InOrder { .. } | Search::Random { .. }) => {
            "this line with --profile nvlink (would it show there?), "
        }
        _ => "",
    };
    format!("{trace}{profile}--help")
}

fn count(number: u64, thing: &str) -> String {
    format!("{number} {thing}{}", if number == 1 { "" } else { "s" })
}
