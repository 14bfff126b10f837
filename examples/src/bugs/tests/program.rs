//! The program `bugs`, as a user calls it.

use std::process::{Command, Output};

fn bugs(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bugs"));
    command.args(arguments).env_remove("COLUMNS").output().unwrap()
}

#[test]
fn a_bug_is_found_and_its_twin_is_right() {
    for (arguments, status, says) in [
        (&["put_signal_by_hand"][..], 1, "put_signal_by_hand.rs:"),
        (&["put_signal_by_hand_fixed"], 0, "nothing wrong"),
        (&["put_signal_by_hand", "--profile", "nvlink"], 0, "nothing wrong"),
        (&["team_rank_taken_for_a_pe", "--pes", "4"], 1, "deadlock"),
    ] {
        let output = bugs(arguments);
        let said = String::from_utf8(output.stdout).unwrap();
        assert_eq!(output.status.code(), Some(status), "{arguments:?}: {said}");
        assert!(said.contains(says), "{arguments:?}: {said}");
    }
}

#[test]
fn what_cannot_be_run_is_refused() {
    for (arguments, says) in [
        (&["put_signal"][..], "there is no bug \"put_signal\"; README.md of onesided-bugs lists them"),
        (&["put_signal_by_hand", "--pes", "3"], "put_signal_by_hand is about 2 PEs: --pes 2"),
        (&["barrier_used_twice_fixed"], "barrier_used_twice_fixed is about 4 PEs: --pes 4"),
        (&[], "<NAME>"),
    ] {
        let output = bugs(arguments);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
        assert!(said.contains(says), "{arguments:?}: {said}");
    }
}
