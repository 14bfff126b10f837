//! What the project's README shows of the examples is what they print.

use std::process::Command;

const README: &str = include_str!("../../README.md");

/// The lines of a program, without how it was built. A time at the end of a line is only printed on a terminal.
fn comparable(said: &str) -> String {
    let without_time = |line: &str| {
        let (before, time) = line.rsplit_once([',', ';'])?;
        let number = time.trim_start().strip_suffix(" ms").or_else(|| time.trim_start().strip_suffix(" s"))?;
        number.parse::<f64>().ok().map(|_| before.to_string())
    };
    let lines = said.trim().lines().map(|line| line.replace("--release ", ""));
    let lines = lines.map(|line| without_time(&line).unwrap_or(line));
    lines.collect::<Vec<_>>().join("\n")
}

/// The block of the README that begins so.
fn shown(begins: &str) -> String {
    let mut blocks = README.split("\n```");
    let block = blocks.find_map(|block| block.strip_prefix("text\n")?.strip_prefix(begins).map(str::to_string));
    block.unwrap_or_else(|| panic!("README.md has no block that begins with {begins:?}"))
}

#[track_caller]
fn expect_shown(begins: &str, program: &str, arguments: &[&str]) {
    let output = Command::new(program).args(arguments).env_remove("COLUMNS").output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    let shown = shown(begins);
    let (shown, said) = (comparable(&shown), comparable(said.strip_prefix(begins).unwrap_or(&said)));
    assert!(shown == said, "README.md shows\n{shown}\nand {program} prints\n{said}");
}

#[test]
fn what_ring_prints() {
    expect_shown("PE 0 received", env!("CARGO_BIN_EXE_ring"), &[]);
}

#[test]
fn what_a_proof_prints() {
    expect_shown("$ cargo run --release --bin ring -- --all\n", env!("CARGO_BIN_EXE_ring"), &["--all"]);
}

#[test]
fn what_a_table_prints() {
    let arguments = ["--all", "--profile", "all", "--races", "note"];
    let said = Command::new(env!("CARGO_BIN_EXE_missing_fence")).args(arguments).output().unwrap();
    let said = String::from_utf8(said.stdout).unwrap();
    // the column of times is only there on a terminal
    let words = |text: &str| -> Vec<Vec<String>> {
        let is_time =
            |words: &[&str], i: usize| words[i] == "time" || words[i] == "ms" || words.get(i + 1) == Some(&"ms");
        let line = |line: &str| {
            let words: Vec<&str> = line.split_whitespace().collect();
            (0..words.len()).filter(|&i| !is_time(&words, i)).map(|i| words[i].to_string()).collect()
        };
        text.lines().map(line).collect()
    };
    let shown = words(shown("$ cargo run --release --bin missing_fence -- --all --profile all --races note\n").trim());
    assert_eq!(shown, words(&said)[..shown.len()]);
}

#[test]
fn what_missing_fence_prints() {
    expect_shown("$ cargo run --release --bin missing_fence\n", env!("CARGO_BIN_EXE_missing_fence"), &[]);
}
