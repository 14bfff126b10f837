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

/// Under `--strict` a lint is a finding, with a schedule that replays it; else it is a note, as is a read of unwritten memory.
#[test]
fn lints_and_unwritten_memory_are_noted() {
    let note = "note: 1 lint (--strict makes it a finding): plain-wait-on-signal: signal_op at ";
    for (arguments, status, says) in [
        (&["signal_waited_for_plainly"][..], 0, note),
        (&["signal_waited_for_plainly", "--all"], 0, note),
        (&["signal_waited_for_plainly", "--strict"], 1, "FINDING in order: lint plain-wait-on-signal: signal_op at "),
        (&["signal_waited_for_plainly", "--strict"], 1, " --strict -- signal_waited_for_plainly\n"),
        (&["signal_waited_for_plainly_fixed", "--strict", "--all"], 0, "proved for 2 PEs"),
        (&["signal_waited_for_plainly", "--strict", "--profile", "all"], 1, "fails: lint at "),
        (
            &["put_signal_by_hand", "--robust"],
            1,
            "not robust for 2 PEs under spec with up to 4 pieces a transfer: 1 of 2 outcomes",
        ),
        (&["put_signal_by_hand", "--robust"], 1, "put_signal_by_hand.rs:20 found [1, 2779096485]; in the nearest run"),
        (&["put_signal_by_hand", "--robust", "--time", "60", "--memory", "1G"], 1, "\nReplay it: "),
        (
            &["put_signal_by_hand", "--robust", "--schedules", "1"],
            3,
            "not every schedule was seen, bounded by 1 schedule",
        ),
        (
            &["put_signal_by_hand_fixed", "--robust"],
            0,
            "robust for 2 PEs under spec with up to 4 pieces a transfer: 1 outcome, ",
        ),
        (
            &["polled_behind_a_fence"],
            1,
            "\nNo run here shows what it changes: the data is always there when a kernel sees the signal.",
        ),
        (
            &["read_only_load"],
            1,
            "\nNo run here shows what it changes: a read-only load always sees what is in memory.",
        ),
        (&["flag_not_zeroed"], 1, "note: a read of memory that nobody has written: PE 1 at "),
        (&["flag_not_zeroed"], 1, ": 8 of 8 bytes that nobody has written (buf2, made at "),
        (
            &["flag_not_zeroed", "--events"],
            1,
            "signal_wait_until saw buf2+0..8: [11936128518282651045], 8 of 8 bytes that nobody has written (buf2, made at ",
        ),
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
        (&["put_signal"][..], "there is no such bug; there is put_signal_by_hand"),
        (&["nothing"], "there is no such bug; examples/src/bugs/README.md lists all"),
        (&["put_signal_by_hand", "--pes", "3"], "put_signal_by_hand is about 2 PEs: --pes 2"),
        (
            &["put_signal_by_hand", "--robust", "--memory", "1"],
            "give each PE more by --heap, or all of them by --memory",
        ),
        (&["barrier_used_twice_fixed"], "barrier_used_twice_fixed is about 4 PEs: --pes 4"),
        (&[], "<NAME>"),
    ] {
        let output = bugs(arguments);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
        assert!(said.contains(says), "{arguments:?}: {said}");
    }
}

/// The command that `--robust` prints shows the same outcome, without a note.
#[test]
fn what_is_not_robust_is_replayed() {
    let found = bugs(&["put_signal_by_hand", "--robust"]);
    let said = String::from_utf8(found.stdout).unwrap();
    let command = said.lines().find_map(|line| line.strip_prefix("Replay it: ")).expect("it is printed");
    let (_, arguments) = command.split_once(" --replay ").expect("it replays");
    let arguments: Vec<&str> = ["--replay"].into_iter().chain(arguments.split_whitespace()).collect();
    let again = bugs(&arguments);
    let said = String::from_utf8(again.stdout).unwrap();
    assert!(said.contains("FINDING again: PE 1 failed: check: the data is [1, 2779096485], expected [1, 2]"), "{said}");
    assert!(again.stderr.is_empty(), "{}", String::from_utf8_lossy(&again.stderr));
}
