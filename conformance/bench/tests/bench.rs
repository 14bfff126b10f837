//! The shape of what `onesided bench` writes. Never a time: they belong to a machine.

use std::process::ExitCode;

use onesided_bench::{Backend, Options};
use serde_json::Value;

#[test]
fn a_quick_run_writes_every_field_of_every_row() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("bench.json");
    let options = Options { json: Some(file.clone()), quick: true, only: Some("put 8 B".into()), ..Options::default() };
    assert_eq!(onesided_bench::run(&options), ExitCode::SUCCESS);

    let json: Value = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
    assert_eq!((&json["schema"], &json["quick"]), (&"onesided-bench/1".into(), &true.into()));
    assert!(json.get("date").is_none(), "no date unless it is given");
    let machine = &json["machine"];
    assert!(machine["cpu"].is_string() && machine["os"].is_string() && machine["build"].is_string(), "{machine}");
    assert!(machine["cores"].as_u64().is_some_and(|cores| cores > 0), "{machine}");

    let rows = json["rows"].as_array().unwrap();
    let names: Vec<&str> = rows.iter().filter_map(|row| row["name"].as_str()).collect();
    assert_eq!(
        names,
        [
            "put 8 B, in order",
            "put 8 B, in order, per event",
            "put 8 B and quiet, in order",
            "put 8 B, random order",
            "put 8 B, random order, per event",
        ]
    );
    for row in rows {
        assert!(row["ours"].as_f64().is_some_and(|ours| ours > 0.0), "{row}");
        assert!(row["unit"].is_string(), "{row}");
        assert_eq!(row["target"].is_string(), row["met"].is_boolean(), "a target is judged, nothing else is: {row}");
        assert_eq!(row["ratio"].is_number(), row["peer"].is_number(), "{row}");
        // Where the peer is not installed, the row says so.
        let named = row["peer_name"].is_string();
        let missing = row.get("peer_missing").is_some_and(Value::is_string);
        assert_eq!(named, row["peer"].is_number() || missing, "{row}");
    }
}

/// The children of a test are this test's own program, which plays no part: so it is said of each search that it failed.
#[test]
fn a_search_that_fails_is_told_and_ends_with_1() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("bench.json");
    let only = Some("search: counter of 3".into());
    let options = Options { json: Some(file.clone()), quick: true, only, ..Options::default() };
    assert_eq!(onesided_bench::run(&options), ExitCode::from(1));
    let json: Value = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
    assert_eq!(json["rows"].as_array().map(Vec::len), Some(0));
    let tools: Vec<&Value> = json["searches"].as_array().unwrap().iter().map(|search| &search["tool"]).collect();
    assert_eq!(tools, ["ours", "loom", "shuttle"]);
    for search in json["searches"].as_array().unwrap() {
        assert!(search["missing"].is_string() && search["begun"].is_null(), "{search}");
    }
}

#[test]
fn a_pattern_that_names_nothing_writes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("bench.json");
    let options = Options { json: Some(file.clone()), only: Some("parsec".into()), ..Options::default() };
    assert_eq!(onesided_bench::run(&options), ExitCode::from(2));
    assert!(!file.exists());
}

#[test]
fn a_pattern_without_a_benchmark_on_gpus_names_those_that_exist() {
    let options = Options { backend: Backend::Nvshmem, only: Some("parsec".into()), ..Options::default() };
    assert_eq!(onesided_bench::run(&options), ExitCode::from(2));
}
