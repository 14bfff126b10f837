//! Ctrl-C and SIGTERM in the middle of a long exploration.
#![cfg(unix)]

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Command, Stdio};

#[test]
fn a_signal_ends_a_long_exploration_in_good_order() {
    for (signal, code) in [("-INT", 130), ("-TERM", 143)] {
        let folder = tempfile::tempdir().unwrap();
        let summary = folder.path().join("run.json");
        let mut child = Command::new(env!("CARGO_BIN_EXE_halo"))
            .args(["--schedules", "1000000000", "--json", summary.to_str().unwrap()])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        out.read_line(&mut line).unwrap(); // the run in order is over
        assert!(line.starts_with("PE 0 at"), "{line}");

        let kill = Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap();
        assert!(kill.success());
        let mut rest = String::new();
        out.read_to_string(&mut rest).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(code), "{signal}");
        assert!(rest.contains(" for 4 PEs under spec with up to 4 pieces a transfer, ended by you; "), "{rest}");
        let summary: serde_json::Value = serde_json::from_slice(&std::fs::read(summary).unwrap()).unwrap();
        assert_eq!(summary["status"], "interrupted");
    }
}

/// What a table has until then is kept, with the row that was being made.
#[test]
fn a_signal_ends_a_table_in_good_order() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_teams"))
        .args(["--all", "--pes", "4,16,20"]) // 16 PEs have more classes than anybody waits for
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert!(lines.by_ref().any(|line| line.ends_with("  proved")), "the first row is over");
    let kill = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(kill.success());
    let rest: Vec<String> = lines.collect();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    // the signal may come before the second row is begun
    assert!(rest[0].starts_with("   16 ") && rest[0].ends_with("ended by you"), "{rest:?}");
    assert!(rest[1].starts_with("   20 ") && rest[1].ends_with("  not run: ended by you"), "{rest:?}");
}
