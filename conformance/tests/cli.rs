//! The `onesided` command, as a user calls it.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

fn onesided(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_onesided"));
    command.args(arguments).env_remove("COLUMNS").output().unwrap()
}

fn status(output: &Output) -> i32 {
    output.status.code().unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

fn path(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[test]
fn help() {
    for (name, arguments) in [
        ("onesided", &["--help"][..]),
        ("list", &["list", "--help"]),
        ("suite", &["suite", "--help"]),
        ("litmus", &["litmus", "--help"]),
        ("launch", &["launch", "--help"]),
        ("doctor", &["doctor", "--help"]),
    ] {
        let output = onesided(arguments);
        assert_eq!(status(&output), 0);
        insta::assert_snapshot!(format!("help_{name}"), stdout(&output));
    }
}

#[test]
fn list_shows_cases_by_pattern() {
    insta::assert_snapshot!("list_of_patterns", stdout(&onesided(&["list", "mp_across", "init/status"])));
    let all = stdout(&onesided(&["list"]));
    assert!(all.lines().count() > 80 && all.ends_with(" cases\n"), "{all}");
}

#[test]
fn a_suite_that_agrees_ends_with_its_counts() {
    let output = onesided(&["suite", "order/two_puts_fenced", "sb_one_target"]);
    assert_eq!(status(&output), 0, "{}", stderr(&output));
    assert!(stdout(&output).ends_with("\n3 passed, 0 failed\n"), "{}", stdout(&output));

    let few = onesided(&["suite", "litmus", "--schedules", "5", "--seed", "7", "--profile", "nvlink"]);
    assert_eq!(status(&few), 0, "{}", stdout(&few));
}

#[test]
fn a_suite_that_differs_says_how_and_fails() {
    let folder = tempfile::tempdir().unwrap();
    let (expected, json) = (folder.path().join("expected"), folder.path().join("suite.json"));
    fs::create_dir_all(expected.join("litmus")).unwrap();
    fs::write(expected.join("litmus/mp.txt"), "# a wrong file\n1: x=1\n1: x=2\n").unwrap();
    let output = onesided(&["suite", "litmus/mp", "--expected", path(&expected), "--json", path(&json)]);
    assert_eq!(status(&output), 1);
    let said = stdout(&output);
    assert!(said.contains("seen, not in the file: 1: x=0") && said.contains("in the file, not seen: 1: x=2"), "{said}");
    assert!(said.ends_with("\n0 passed, 1 failed\n"), "{said}");

    let suite: Value = serde_json::from_str(&fs::read_to_string(json).unwrap()).unwrap();
    let named = [&suite["schema"], &suite["backend"], &suite["profile"], &suite["library"]];
    assert_eq!(named, ["onesided-suite/1", "sim", "spec", &format!("onesided-sim {}", onesided::VERSION)]);
    let case = &suite["cases"][0];
    assert_eq!([&case["name"], &case["status"]], ["litmus/mp", "failed"]);
    assert_eq!([&case["pes"], &case["schedules"]], [2, 2]);
    assert_eq!(case["outcomes"], serde_json::json!({"1: x=0": 1, "1: x=1": 1}));
    assert!(case["why"].as_str().unwrap().contains("not in the file"), "{case}");

    // The difference comes with the command that shows it.
    let replay = said.split("cargo run --release --bin onesided -- ").nth(1).unwrap().lines().next().unwrap();
    let shown = onesided(&replay.split(' ').collect::<Vec<_>>());
    assert!(status(&shown) == 0 && stdout(&shown).contains("outcome: 1: x=0"), "{}", stdout(&shown));
}

#[test]
fn promoting_writes_what_is_missing_or_wrong() {
    let folder = tempfile::tempdir().unwrap();
    let promote = || stdout(&onesided(&["suite", "litmus/mp", "--promote", "--expected", path(folder.path())]));
    assert!(promote().starts_with("written  litmus/mp: 2 outcomes of 2 schedules\n"));
    assert!(promote().starts_with("unchanged  litmus/mp"));
    let written = fs::read_to_string(folder.path().join("litmus/mp.txt")).unwrap();
    assert_eq!(written, "# litmus/mp\n# 2 PEs, profile spec\n1: x=0\n1: x=1\n");
}

#[test]
fn litmus_prints_outcomes_with_examples() {
    let output = onesided(&["litmus", "mp"]);
    assert_eq!(status(&output), 0, "{}", stderr(&output));
    let said = stdout(&output);
    assert!(said.contains("1: x=0") && said.contains("1: x=1") && said.contains("os1.2x1.spec.p4."), "{said}");
    assert!(said.ends_with("Equal to expected/litmus/mp.txt.\n"), "{said}");

    let nvlink = stdout(&onesided(&["litmus", "litmus/mp", "--profile", "nvlink"]));
    assert!(nvlink.ends_with("1 of the 2 outcomes in expected/litmus/mp.txt.\n"), "{nvlink}");
}

#[test]
fn doctor_finds_the_simulator() {
    let output = onesided(&["doctor", "--library", "/no/such/library"]);
    assert_eq!(status(&output), 0, "{}", stderr(&output));
    let said = stdout(&output);
    assert!(said.contains("/no/such/library") && said.contains("4 simulated PEs"), "{said}");
}

#[test]
fn what_cannot_run_is_an_error() {
    for (arguments, why) in [
        (&["suite", "no_such_case"][..], "no case matches"),
        (&["suite", "litmus/mp", "--require-hardware"], "hardware is required"),
        (&["suite", "litmus/mp", "--backend", "nvshmem"], "no backend for GPUs"),
        (&["suite", "litmus/mp", "--schedules", "0"], "0 is not in 1.."),
        (&["suite", "litmus/mp", "--promote", "--profile", "nvlink"], "belong to the profile spec"),
        (&["suite", "litmus/mp", "--promote", "--schedules", "3"], "cannot be used with"),
        (&["suite", "litmus/mp", "--json", "/no/such/folder/suite.json"], "cannot write"),
        (&["litmus", "fenced"], "part of cases' names"),
        (&["litmus", "alone"], "several chapters"),
        (&["litmus", "litmus/mp", "--replay", "os1.2x1.spec.p4.o.1"], "recorded from a different program"),
        (&["litmus", "litmus/mp", "--replay", "os1.4x1.spec.p4.o.1"], "another cluster"),
        (&["list", "no_such_case"], "no case matches"),
        (&[], "Usage"),
        (&["unknown"], "unrecognized subcommand"),
    ] {
        let output = onesided(arguments);
        assert_eq!(status(&output), 2, "{arguments:?}: {}", stdout(&output));
        assert!(stderr(&output).contains(why), "{arguments:?}: {}", stderr(&output));
    }
}
