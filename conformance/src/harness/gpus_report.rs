//! What a person reads of a program on GPUs, and its `--json`.

use std::io::{self, Write};
use std::time::SystemTime;

use onesided::ErrorKind;
use serde_json::{Value, json};

use super::Facts;
use super::gpus::{Done, Plan, is_wanted, sentence};
use crate::hardware::job::End;
use crate::hardware::trouble::{Trouble, What};
use crate::tool::say::say;

/// Prints what the PEs returned, by rank, and how it ended. Operating errors are left to the caller.
pub(super) fn print(facts: &Facts, done: &Done) {
    done.lines.iter().flatten().filter(|text| !text.is_empty()).for_each(|text| say!("{text}"));
    let seconds = done.time.as_secs_f64();
    let what_ran = format!("{} on nvshmem ({}), {seconds:.2} s", pes(done), about(done).join(", "));
    match &done.end {
        End::Complete => {
            say!("\n{}", sentence(facts, done.pes, &about(done).iter().map(String::as_str).collect::<Vec<_>>()));
            say!("Next: the same without --backend nvshmem (the simulator, in other orders)");
        }
        End::Broke { trouble, .. } if is_wanted(trouble) => say!("\n{what_ran}: a PE ended the job with status 0"),
        End::Broke { trouble, .. } if !trouble.is_operating() => {
            say!("\nFINDING on nvshmem: {trouble}");
            say!("\n{what_ran}");
            say!("Every PE checks that {}.", facts.checks);
            say!("Next: the same without --backend nvshmem (the simulator names what is wrong, and replays it)");
        }
        End::Interrupted => say!("\n{what_ran}: ended by you, nothing wrong until then"),
        End::Broke { .. } | End::NotStarted(_) => {}
    }
}

fn pes(done: &Done) -> String {
    format!("{} PE{}", done.pes, if done.pes == 1 { "" } else { "s" })
}

/// The library, the GPUs, and whether they are shared.
fn about(done: &Done) -> Vec<String> {
    let library = done.ready.as_ref().map_or("not initialized", |ready| &ready.library);
    let mut about = vec![library.to_string(), done.machine.gpus_in_words(&done.gpus)];
    if is_shared(done) {
        about.push("MPS".to_string());
    }
    about
}

fn is_shared(done: &Done) -> bool {
    done.pes > done.gpus.len()
}

/// What happened, and what would help.
pub(super) fn advised(trouble: &Trouble) -> String {
    let help = match &trouble.what {
        What::Failed { kind, .. } if kind == ErrorKind::OutOfMemory.name() => {
            "; give each PE more by --heap, or free what is no longer needed"
        }
        _ => "",
    };
    format!("{trouble}{help}")
}

/// The verdict's short name.
fn name(trouble: &Trouble) -> String {
    trouble.outcome().unwrap_or_else(|| {
        match trouble.what {
            What::Hung { .. } => "hung",
            What::Killed(_) => "killed",
            _ => "ended by the library",
        }
        .to_string()
    })
}

/// Writes what was run and what was found. The fields of the simulator are null.
pub(super) fn write_json(out: &mut dyn Write, facts: &Facts, plan: &Plan, done: &Done) -> io::Result<()> {
    let finding = |trouble: &Trouble| json!({ "verdict": name(trouble), "report": trouble.with_tail(), "schedule": null, "replay": null });
    let (status, error, finding) = match &done.end {
        End::Complete => ("ok", Value::Null, Value::Null),
        End::Interrupted => ("interrupted", Value::Null, Value::Null),
        End::NotStarted(trouble) => ("error", json!(advised(trouble)), Value::Null),
        End::Broke { trouble, .. } if trouble.is_operating() => ("error", json!(advised(trouble)), Value::Null),
        End::Broke { trouble, .. } if is_wanted(trouble) => ("ok", Value::Null, Value::Null),
        End::Broke { trouble, .. } => ("finding", Value::Null, finding(trouble)),
    };
    let nothing = Value::Null;
    let machine = done.machine.to_json(&done.gpus);
    let summary = json!({
        "schema": "onesided-run/1",
        "date": humantime::format_rfc3339_seconds(SystemTime::now()).to_string(),
        "program": facts.name,
        "backend": "nvshmem",
        "library": done.ready.as_ref().map(|ready| &ready.library),
        "pes": done.pes, "nodes": 1, "gpus": done.gpus.len(), "heap": plan.heap,
        "gpu_names": machine["gpus"], "cuda": machine["cuda"], "driver": machine["driver"], "mps": is_shared(done),
        "profile": nothing, "pieces": nothing, "max_steps": nothing, "search": nothing, "seed": nothing,
        "schedules": 1, "redundant": 0, "complete": false, "steps": nothing,
        "seconds": done.time.as_secs_f64(),
        "status": status, "error": error, "finding": finding,
        "checks": facts.checks,
        "lines": done.lines,
    });
    writeln!(out, "{summary:#}")
}
