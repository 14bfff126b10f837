//! What a person reads of a program on GPUs, and its `--json`.

use std::io::{self, Write};
use std::time::SystemTime;

use onesided::{ErrorKind, count};
use serde_json::{Value, json};

use super::Facts;
use super::gpus::{Done, Place, Plan, is_wanted, sentence};
use crate::hardware::job::End;
use crate::hardware::protocol::Failure;
use crate::hardware::trouble::{Trouble, What};
use crate::launch::Fabric;
use crate::say;

/// Prints what the PEs returned, by rank, and how the run ended. The caller prints operating errors.
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
            trouble.meaning().into_iter().for_each(|meaning| say!("    {meaning}"));
            say!("\n{what_ran}");
            say!("Every PE checks that {}.", facts.checks);
            say!("Next: the same without --backend nvshmem (the simulator names what is wrong, and replays it)");
        }
        End::Interrupted => say!("\n{what_ran}: ended by you, nothing wrong until then"),
        End::Broke { .. } | End::NotStarted(_) => {}
    }
}

fn pes(done: &Done) -> String {
    count(done.pes, "PE")
}

/// The library, the GPUs, whether they are shared, and how PEs reach each other.
fn about(done: &Done) -> Vec<String> {
    let library = done.ready.as_ref().map_or("not initialized", |ready| &ready.library);
    let Place { machine, gpus, nodes, fabric, mps } = &done.place;
    let mut about = vec![library.to_string(), machine.gpus_in_words(gpus)];
    if *mps {
        about.push("MPS".to_string());
    }
    match (fabric, nodes) {
        (Fabric::P2p, _) => {}
        (fabric, 0 | 1) => about.push(fabric.to_string()),
        (fabric, nodes) => about.push(format!("{fabric}, {nodes} nodes")),
    }
    about
}

/// What happened, and what would help.
pub(super) fn advised(trouble: &Trouble) -> String {
    let help = match &trouble.what {
        What::Failed(Failure { kind, .. }) if kind == ErrorKind::OutOfMemory.name() => {
            "; give each PE more by --heap, or free what is no longer needed"
        }
        _ => "",
    };
    let meaning = trouble.meaning().map(|meaning| format!("; {meaning}")).unwrap_or_default();
    format!("{trouble}{help}{meaning}")
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

/// What only the simulator knows of a run.
const OF_THE_SIMULATOR: [&str; 22] = [
    "like",
    "unsupported",
    "intended",
    "unwritten",
    "noted",
    "lints",
    "weaker",
    "profile",
    "pieces",
    "quiet",
    "loads",
    "max_steps",
    "search",
    "seed",
    "strategy",
    "steps",
    "classes",
    "estimated",
    "bound",
    "beside",
    "proof",
    "differing",
];

/// Writes what was run and what was found. The fields of the simulator are null.
pub(super) fn write_json(out: &mut dyn Write, facts: &Facts, plan: &Plan, done: &Done) -> io::Result<()> {
    let finding = |trouble: &Trouble| {
        json!({
            "verdict": name(trouble), "report": trouble.with_tail(), "schedule": null, "replay": null,
            "exceptions": null, "critical": null, "fix": null, "matters": null,
        })
    };
    let (status, error, finding) = match &done.end {
        End::Complete => ("ok", Value::Null, Value::Null),
        End::Interrupted => ("interrupted", Value::Null, Value::Null),
        End::NotStarted(trouble) => ("error", json!(advised(trouble)), Value::Null),
        End::Broke { trouble, .. } if trouble.is_operating() => ("error", json!(advised(trouble)), Value::Null),
        End::Broke { trouble, .. } if is_wanted(trouble) => ("ok", Value::Null, Value::Null),
        End::Broke { trouble, .. } => ("finding", Value::Null, finding(trouble)),
    };
    let Place { machine, gpus, nodes, fabric, mps } = &done.place;
    let machine = machine.to_json(gpus);
    let mut summary = json!({
        "schema": "onesided-run/2",
        "date": humantime::format_rfc3339_seconds(SystemTime::now()).to_string(),
        "program": facts.name,
        "backend": "nvshmem",
        "library": done.ready.as_ref().map(|ready| &ready.library),
        "pes": done.pes, "nodes": nodes, "gpus": gpus.len(), "heap": plan.heap,
        "gpu_names": machine["gpus"], "cuda": machine["cuda"], "driver": machine["driver"],
        "settings": machine["settings"], "mps": mps, "fabric": fabric.to_string(),
        "options": plan.own.given.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>(),
        "schedules": 1, "redundant": 0, "complete": false,
        "seconds": done.time.as_secs_f64(),
        "status": status, "error": error, "finding": finding,
        "checks": facts.checks,
        "lines": done.lines,
    });
    OF_THE_SIMULATOR.iter().for_each(|field| summary[*field] = Value::Null);
    writeln!(out, "{summary:#}")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::time::Duration;

    use super::super::Cores;
    use super::super::gpus::hear;
    use super::super::json::summary;
    use super::super::own::Own;
    use super::super::plan::test::plan_of;
    use super::super::run::run;
    use super::*;
    use crate::hardware::machine::Machine;
    use crate::hardware::protocol::{Message, Ready};
    use crate::launch::{FabricOptions, Job, Sharing};

    const FACTS: Facts =
        Facts { name: "demo", about: "", checks: "all is well", pes: 2, min_pes: 1, cores: Cores::All };

    /// A job of two PEs that say messages, then do what a shell's script says.
    fn done(messages: &[Message], script: &str) -> Done {
        let ready = Message::Ready(Ready { library: "libdemo 1.0".into(), ..Ready::default() });
        let start = Message::Start { name: "demo".into() };
        let lines = [&ready, &start].into_iter().chain(messages).map(|message| format!("echo '{}'\n", message.line()));
        let script = lines.collect::<String>() + script;
        let job = Job { arguments: vec!["-c".into(), script.into()], ..Job::new(2, "sh") };
        let machine = Machine { gpus: vec!["A".into()], cuda: "13.0".into(), ..Machine::default() };
        let place = Place { machine, gpus: vec![0], nodes: 1, mps: true, ..Place::default() };
        hear("demo", &job, Duration::from_secs(2), place)
    }

    fn json(done: &Done) -> Value {
        let fabric = FabricOptions::default();
        let (nodes, mps) = (None, Some(Sharing::Node));
        let own = Own::default();
        let plan = Plan { pes: None, gpus: None, heap: Some(64), nodes, fabric, mps, timeout: None, json: None, own };
        let mut text = Vec::new();
        write_json(&mut text, &FACTS, &plan, done).unwrap();
        serde_json::from_slice(&text).unwrap()
    }

    fn returned(text: &str) -> Message {
        Message::Returned { text: text.to_string() }
    }

    #[test]
    fn a_program_that_ends_well_is_ok() {
        let done = done(&[returned("fine"), Message::Finalized], "echo a line of its own");
        assert_eq!((&done.end, about(&done).join(", ")), (&End::Complete, "libdemo 1.0, A, MPS".to_string()));
        let json = json(&done);
        assert_eq!([&json["schema"], &json["status"], &json["library"]], ["onesided-run/2", "ok", "libdemo 1.0"]);
        assert_eq!((&json["gpus"], &json["mps"], &json["heap"]), (&json!(1), &json!(true), &json!(64)));
        assert_eq!((&json["gpu_names"], &json["lines"]), (&json!(["A"]), &json!(["fine", "fine"])));
    }

    #[test]
    fn what_goes_wrong_is_a_finding_with_a_short_name() {
        let wrong =
            Message::Failed(Failure { kind: "wrong result".into(), operating: false, text: "check: it is 1".into() });
        for (messages, script, verdict, report) in [
            (&[wrong][..], "exit 1", "failed: wrong result", "failed: check: it is 1"),
            (&[], "sleep 60", "hung", "no PE got further within 2 s: PEs 0, 1 in demo"),
            (&[], "kill -SEGV $$", "killed", "was killed by signal 11 (SIGSEGV)"),
            (&[], "echo no more >&2; exit 255", "ended by the library", "was ended by the library (status 255)"),
            (&[], "exit 3", "exited: 3", "ended the job with status 3"),
        ] {
            let json = json(&done(messages, script));
            assert_eq!([&json["status"], &json["finding"]["verdict"]], ["finding", verdict], "{json}");
            assert!(json["finding"]["report"].as_str().unwrap().contains(report), "{json}");
        }
    }

    #[test]
    fn both_backends_write_the_same_fields() {
        let wrong = Failure { kind: "wrong result".into(), operating: false, text: "check: it is 1".into() };
        let on_gpus = json(&done(&[Message::Failed(wrong)], "exit 1"));
        let plan = plan_of("");
        let simulated = summary(&FACTS, &plan, &run(&|_| Err(onesided::Error::wrong_result("it is 1")), &plan, None));
        let keys = |json: &Value| json.as_object().unwrap().keys().cloned().collect::<BTreeSet<String>>();
        assert_eq!(keys(&on_gpus["finding"]), keys(&simulated["finding"]));
        let of_gpus = ["date", "gpu_names", "cuda", "driver", "settings", "mps", "fabric"];
        let both = keys(&simulated).into_iter().chain(of_gpus.map(String::from)).collect::<BTreeSet<String>>();
        assert_eq!(keys(&on_gpus), both);
    }

    #[test]
    fn what_says_nothing_about_the_program_is_an_error() {
        let kind = ErrorKind::OutOfMemory.name().to_string();
        let full = Message::Failed(Failure { kind, operating: true, text: "alloc: the heap is full".into() });
        let json = json(&done(&[full], "exit 2"));
        assert_eq!(json["status"], "error");
        assert!(
            json["error"].as_str().unwrap().ends_with("give each PE more by --heap, or free what is no longer needed")
        );
    }

    #[test]
    fn a_job_that_is_ended_with_status_0_is_ok() {
        let done = done(&[], "exit 0");
        assert!(matches!(&done.end, End::Broke { trouble, .. } if is_wanted(trouble)), "{:?}", done.end);
        assert_eq!(json(&done)["status"], "ok");
    }
}
