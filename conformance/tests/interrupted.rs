//! Commands that a signal ends: with what is known until then, and with the status of the signal.
#![cfg(unix)]

mod common;

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use common::stdout;
use serde_json::{Value, json};

/// Far more than any of them takes to end.
const LONG: Duration = Duration::from_secs(120);

fn onesided(arguments: &[&str]) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_onesided"));
    command.args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Sends a signal, and waits for the end. What does not end is killed, and the test fails.
fn end(mut child: Child, signal: &str) -> Output {
    assert!(Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap().success());
    let deadline = Instant::now() + LONG;
    while child.try_wait().unwrap().is_none() {
        if Instant::now() > deadline {
            child.kill().unwrap();
        }
        thread::sleep(Duration::from_millis(20));
    }
    child.wait_with_output().unwrap()
}

/// A program of the corpus with more schedules than anybody waits for is stopped, and not scored.
#[test]
fn a_score_ends_within_a_program() {
    for (signal, status) in [("-INT", 130), ("-TERM", 143)] {
        let child = onesided(&["score", "--schedules", "1000000000000"]);
        thread::sleep(Duration::from_secs(1));
        let output = end(child, signal);
        assert_eq!(output.status.code(), Some(status), "{output:?}");
        let said = stdout(&output);
        assert!(said.contains(" runs, ended by you, ") && !said.contains("is not found"), "{said}");
    }
}

/// What was stopped may have been about to find something: it does not count against it.
#[test]
fn a_command_that_is_ended_is_not_scored() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    fs::write(path("p.c"), "put();  // bug: first\nread(); // bug: second\n").unwrap();
    let program = r#"{ "name": "p", "class": "race", "pes": 2, "profiles": ["ours"], "source": "p.c", "fix": null }"#;
    fs::write(path("labels.json"), format!(r#"{{ "schema": "onesided-labels/1", "programs": [{program}] }}"#)).unwrap();
    fs::write(path("tool"), r#"kill -TERM $PPID; sleep 1; exit 0"#).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_onesided"));
    command.args(["score", "--json", &path("score.json"), "--labels", &path("labels.json")]);
    let output = command.args(["--", "sh", &path("tool"), "run"]).output().unwrap();
    let said = stdout(&output);
    assert_eq!(output.status.code(), Some(143), "{output:?}");
    assert!(said.contains("0 of 1 run, ended by you, ") && !said.contains("is not found"), "{said}");
    let score: Value = serde_json::from_str(&fs::read_to_string(path("score.json")).unwrap()).unwrap();
    assert_eq!((&score["complete"], &score["runs"], &score["programs"]), (&json!(false), &json!(1), &json!([])));
    let noted = String::from_utf8_lossy(&output.stderr);
    assert!(noted.contains("note: the JSON is not complete, and says so: it has 0 of 1 run\n"), "{noted}");
}

/// The rows until then are printed. A file would look like all of them.
#[test]
fn a_benchmark_prints_its_rows_until_then() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("bench.json");
    for (signal, status) in [("-INT", 130), ("-TERM", 143)] {
        let mut child = onesided(&["bench", "--json", file.to_str().unwrap()]);
        let mut said = BufReader::new(child.stderr.take().unwrap()).lines();
        assert!(said.any(|line| line.unwrap().starts_with("measuring for a few minutes")));
        let listens = thread::spawn(move || said.map_while(Result::ok).collect::<Vec<_>>().join("\n"));
        let output = end(child, signal);
        let said = listens.join().unwrap();
        assert_eq!(output.status.code(), Some(status), "{said}");
        assert!(stdout(&output).contains(" cores, "), "{}", stdout(&output));
        assert!(said.contains("ended by you: these are the rows until then, and no JSON is written"), "{said}");
        assert!(!Path::new(&file).exists() && fs::read_dir(&folder).unwrap().count() == 0);
    }
}
