//! The tables of the README have a row for everything that a backend does.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use onesided::backend::Op;

/// Under which name the README has what the trait and the operations call otherwise: programs know it by this one.
const KNOWN_AS: [(&str, &str); 10] = [
    ("issue", "put"),
    ("team", "team_split_strided"),
    ("has_multicast", "multicast"),
    ("multicast_read", "multicast"),
    ("multicast_write", "multicast"),
    ("stream_synchronize", "synchronize"),
    ("event_record", "record"),
    ("event_wait", "wait_event"),
    ("event_synchronize", "synchronize_event"),
    ("fill", "write"),
];

fn text(file: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(file)).unwrap()
}

/// The names in the first column of the README's tables.
fn rows() -> BTreeSet<String> {
    let readme = text("README.md");
    let first = readme.lines().filter_map(|line| line.strip_prefix("| ")?.split(" | ").next());
    let names = first.flat_map(|cell| cell.split('`').skip(1).step_by(2));
    names.map(|name| name.trim_end_matches("()").to_string()).collect()
}

/// What stands between two texts, on each line that has both.
fn between<'a>(text: &'a str, before: &'a str, after: &'a str) -> impl Iterator<Item = &'a str> {
    text.lines().filter_map(move |line| Some(line.split_once(before)?.1.split_once(after)?.0))
}

fn known_as(name: &str) -> &str {
    KNOWN_AS.into_iter().find(|(other, _)| *other == name).map_or(name, |(_, known)| known)
}

#[track_caller]
fn expect_rows<'a>(names: impl Iterator<Item = &'a str>, at_least: usize) {
    let rows = rows();
    let names: BTreeSet<&str> = names.collect();
    assert!(names.len() >= at_least, "these are not all: {names:?}");
    let absent: Vec<&&str> = names.iter().filter(|name| !rows.contains(known_as(name))).collect();
    assert!(absent.is_empty(), "no row of a table in README.md is about {absent:?}");
}

#[test]
fn every_method_of_a_backend_has_a_row() {
    let api = text("../api/src/backend.rs");
    let methods = api.split_once("pub trait Backend").unwrap().1.split_once("\n}\n").unwrap().0;
    expect_rows(between(methods, "    fn ", "("), 30);
}

#[test]
fn every_operation_has_a_row() {
    // one row is about all atomics
    let names = Op::NAMES.into_iter().map(|name| if name.starts_with("atomic_") { "atomic_add" } else { name });
    expect_rows(names, 26);
}
