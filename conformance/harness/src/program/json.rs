//! What `--trace` and `--json` write. The formats are documented in the crate's README; a change that a reader would
//! notice gets a new number.

use std::io::{self, Write};

use onesided_sim::{Config, Explore, Lint, LintSite, Run};
use serde_json::{Value, json};

use super::Facts;
use super::options::{LoadsFind, QuietIs};
use super::plan::{Plan, Search};
use super::report::replay;
use super::run::{Done, End};

/// Writes every event of a run, one a line: the same bytes for the same schedule.
pub(super) fn write_trace(out: &mut dyn Write, facts: &Facts, run: &Run<String>) -> io::Result<()> {
    writeln!(out, "{{")?;
    writeln!(out, "\"schema\": \"onesided-trace/2\",")?;
    writeln!(out, "\"program\": {},", json!(facts.name))?;
    writeln!(out, "\"schedule\": {},", json!(run.schedule.to_string()))?;
    writeln!(out, "\"verdict\": {},", json!(run.verdict.kind.outcome()))?;
    writeln!(out, "\"events\": [")?;
    let mut events = run.trace.iter().flatten().peekable();
    while let Some(event) = events.next() {
        writeln!(out, "{}{}", event.to_json(), if events.peek().is_some() { "," } else { "" })?;
    }
    writeln!(out, "]\n}}")
}

fn lint(lint: &Lint) -> Value {
    let site =
        |site: &LintSite| json!({ "call": site.call, "at": site.at.to_string(), "pe": site.pe, "stream": site.stream });
    json!({
        "lint": lint.kind.name(), "text": lint.to_string(), "times": lint.times,
        "first": site(&lint.first), "second": site(&lint.second), "between": lint.between.as_ref().map(site),
    })
}

/// What was run and what was found.
pub(super) fn summary(facts: &Facts, plan: &Plan, done: &Done) -> Value {
    let Config { pes, nodes, gpus, heap, profile, pieces, quiet, loads, max_steps, .. } = plan.config;
    let (status, error) = match &done.end {
        End::Fine => ("ok", Value::Null),
        End::Finding => ("finding", Value::Null),
        End::GivenUp | End::Bounded => ("not complete", Value::Null),
        End::Interrupted => ("interrupted", Value::Null),
        End::Error(why) => ("error", json!(why)),
    };
    let finding = done.recorded.as_ref().filter(|_| matches!(done.end, End::Finding | End::GivenUp));
    let finding = finding.map(|run| {
        let mut explained = onesided_show::Finding::default();
        done.explained.iter().for_each(|all| all.add_to(plan, &mut explained));
        json!({
            "verdict": run.verdict.kind.outcome(),
            "report": run.verdict.to_string(),
            "schedule": run.schedule.to_string(),
            "replay": replay(plan, run),
            "exceptions": explained.exceptions, "critical": explained.critical, "fix": explained.fix, "matters": explained.matters,
        })
    });
    let differing = done.differing.as_ref().map(|(count, run)| {
        json!({
            "results": count,
            "lines": run.results,
            "schedule": run.schedule.to_string(),
            "replay": replay(plan, run),
        })
    });
    let (search, explore) = match plan.search {
        Search::Replay(_) => ("replay", None),
        Search::Only(explore) => ("random", Some(explore)),
        Search::InOrder { then: None } => ("in order", None),
        Search::InOrder { then: Some(explore @ Explore::Random { .. }) } => ("in order, random", Some(explore)),
        Search::InOrder { then: Some(explore @ Explore::All { .. }) } => ("in order, all", Some(explore)),
    };
    let (seed, strategy) = match explore {
        Some(Explore::Random { seed, strategy, .. }) => (Some(seed), Some(strategy.to_string())),
        _ => (None, None),
    };
    json!({
        "schema": "onesided-run/2",
        "program": facts.name,
        "backend": "sim",
        "library": format!("onesided-sim {}", onesided::VERSION),
        "pes": pes, "nodes": nodes, "gpus": gpus, "heap": heap,
        "profile": profile.name(), "pieces": pieces,
        "quiet": QuietIs::from(quiet).to_string(), "loads": LoadsFind::from(loads).to_string(), "max_steps": max_steps,
        "like": plan.like.map(|_| "nvshmem"),
        "options": plan.own.given.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>(),
        "unsupported": done.unsupported.map(|(family, why)| json!({ "family": family, "why": why })),
        "intended": done.marks.marks().map(|mark| json!({ "reason": mark.reason, "at": mark.at.to_string(), "races": mark.races })).collect::<Vec<_>>(),
        "unwritten": done.unwritten.as_ref().map(|(reads, first)| json!({ "reads": reads, "first": first })),
        "noted": done.noted.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "lints": done.lints.iter().map(lint).collect::<Vec<_>>(),
        "search": search, "seed": seed, "strategy": strategy,
        "schedules": done.schedules(), "steps": done.steps(),
        "redundant": done.explored.redundant, "complete": done.explored.complete,
        "classes": done.explored.classes, "estimated": done.explored.estimated, "bound": done.bound(plan).map(|bound| bound.to_string()),
        "beside": done.beside.map(|beside| json!({ "schedules": beside.schedules, "findings": beside.findings, "given_up": beside.given_up })),
        "proof": plan.is_all().then(|| done.explored.proof(&plan.config)),
        "weaker": done.weaker.iter().map(|weaker| weaker.in_words(pes)).collect::<Vec<_>>(),
        "seconds": done.time.as_secs_f64(),
        "status": status, "error": error, "finding": finding, "differing": differing,
        "checks": facts.checks,
        "lines": done.lines,
    })
}
