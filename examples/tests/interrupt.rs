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
