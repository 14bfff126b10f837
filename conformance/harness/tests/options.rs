//! Options that change what a proof looks at: values that waits return, and races that are meant.
//!
//! This test is its own program: started with a name in the environment, it runs that program instead of the tests.

mod common;

use std::process::ExitCode;

use common::{program, run, tests};
use libtest_mimic::Failed;
use onesided::{Backend, Cmp, Pe, Result, SignalOp};
use onesided_harness::Program;

tests! {
    play;
    values_that_nobody_looks_at_are_ignored,
    a_race_that_is_meant_is_counted_and_no_finding,
    a_mark_that_stands_for_no_race_is_noted,
    a_search_can_leave_less_out,
    robustness_is_written_to_files,
    calls_that_are_not_needed_were_tried_alone,
    every_field_of_a_summary_is_documented,
}

/// Runs the program of that name.
fn play(name: &str) -> ExitCode {
    match name {
        LooksAtTheFirst::NAME => onesided_harness::main(LooksAtTheFirst),
        Buffers::NAME => onesided_harness::main(Buffers),
        FirstSignal::NAME => onesided_harness::main(FirstSignal),
        AnyWinner::NAME => onesided_harness::main(AnyWinner),
        NoRace::NAME => onesided_harness::main(NoRace),
        MeetsTwice::NAME => onesided_harness::main(MeetsTwice),
        other => panic!("{other} is no program of this file"),
    }
}

// PE 0 waits for the first of two signals: its word is 1 or 2 then, and it does not look.
program!(FirstSignal, "first signal", 2, |pe| {
    let signal = pe.alloc_zeroed::<u64>(1)?;
    match pe.my_pe() {
        0 => _ = pe.host().signal_wait_until(signal.signal(0), Cmp::Ge, 1)?,
        _ => {
            pe.host().signal_op(signal.signal(0), 1, SignalOp::Set, 0)?;
            pe.host().fence()?;
            pe.host().signal_op(signal.signal(0), 2, SignalOp::Set, 0)?;
        }
    }
    pe.host().barrier_all()?;
    pe.free(signal)?;
    Ok(String::new())
});

fn values_that_nobody_looks_at_are_ignored() -> std::result::Result<(), Failed> {
    run("first signal", &["--all"])
        .expect(0, "proved for 2 PEs under spec with up to 4 pieces a transfer: 2 classes")?;
    let said = run("first signal", &["--all", "--ignore-values"]);
    said.expect(0, "proved for 2 PEs under spec with up to 4 pieces a transfer: 1 class")?;
    said.expect(0, "nothing else, if no value that signal_wait_until returns matters")
}

/// All PEs write to one word of PE 0. With a mark, that is meant.
fn elect(pe: &Pe<impl Backend>) -> Result<String> {
    let winner = pe.alloc_zeroed::<u64>(1)?;
    let me = pe.my_pe() as u64;
    pe.intended_race("any PE may win", |pe| pe.host().p(&winner, me + 1, 0))?;
    pe.host().barrier_all()?;
    pe.free(winner)?;
    Ok(String::new())
}

program!(AnyWinner, "any winner", 3, |pe| { elect(pe) });

fn a_race_that_is_meant_is_counted_and_no_finding() -> std::result::Result<(), Failed> {
    for options in [&[][..], &["--all"], &["--schedules", "20"]] {
        let said = run("any winner", options);
        said.expect(0, "any winner: ")?;
        said.expect(0, " marked as intended: any PE may win (conformance/harness/tests/options.rs:")?;
    }
    Ok(())
}

// Nobody else writes to the word.
program!(NoRace, "no race", 2, |pe| {
    let word = pe.alloc_zeroed::<u64>(1)?;
    pe.intended_race("left over", |pe| pe.host().p(&word, 1, pe.my_pe()))?;
    pe.host().barrier_all()?;
    pe.free(word)?;
    Ok(String::new())
});

fn a_mark_that_stands_for_no_race_is_noted() -> std::result::Result<(), Failed> {
    run("no race", &["--all"]).expect(0, " has not raced: left over")
}

// The second signal can be there, too.
program!(LooksAtTheFirst, "looks at the first", 4, |pe| {
    let signal = pe.alloc_zeroed::<u64>(1)?;
    match pe.my_pe() {
        0 => {
            let found = pe.host().signal_wait_until(signal.signal(0), Cmp::Ge, 1)?;
            onesided::expect_eq(found < 3, true, "a signal is missing")?;
        }
        _ => pe.host().signal_op(signal.signal(0), 1, SignalOp::Add, 0)?,
    }
    pe.host().barrier_all()?;
    pe.free(signal)?;
    Ok(String::new())
});

/// With less left out there are more classes, and the same findings, which replay without the option.
fn a_search_can_leave_less_out() -> std::result::Result<(), Failed> {
    for (reduce, classes) in [("nothing", "2 classes"), ("counters", "2 classes"), ("everything", "1 class")] {
        run("first signal", &["--all", "--ignore-values", "--reduce", reduce])
            .expect(0, &format!("a transfer: {classes}"))?;
        let said = run("looks at the first", &["--all", "--reduce", reduce]);
        said.expect(1, "check: a signal is missing")?;
        run("looks at the first", &said.replay()).expect(1, "check: a signal is missing")?;
    }
    run("first signal", &["--all", "--reduce", "waits"]).expect(2, "[possible values: nothing, counters, everything]")
}

// Store buffering: without delays one of the two finds the other's value.
program!(Buffers, "buffers", 2, |pe| {
    let x = pe.alloc_zeroed::<u64>(2)?;
    let (me, other) = (pe.my_pe(), 1 - pe.my_pe());
    pe.host().p(x.at(me), 1, other)?;
    let found = pe.read_one(x.at(other))?;
    pe.host().barrier_all()?;
    pe.free(x)?;
    Ok(format!("PE {me} found {found}"))
});

fn robustness_is_written_to_files() -> std::result::Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    let file = |name: &str| folder.path().join(name).to_str().expect("a name of letters").to_string();
    let (json, finding, report) = (file("robust.json"), file("finding.json"), file("report.html"));
    let files = ["--json", &json, "--finding", &finding, "--report", &report];
    let read =
        |file: &str| -> serde_json::Value { serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap() };

    let said = run("buffers", &[&["--robust"], &files[..]].concat());
    said.expect(1, "Not possible if every operation were complete at once:")?;
    let (summary, found) = (read(&json), read(&finding));
    assert_eq!((&summary["schema"], &summary["robust"]), (&"onesided-robust/1".into(), &false.into()));
    assert_eq!(summary["run"]["lines"], serde_json::json!(["PE 0 found 0", "PE 1 found 0"]));
    assert_eq!(summary["run"]["schedule"], found["schedule"]);
    assert_eq!(summary["run"]["exceptions"], found["exceptions"]);
    let page = std::fs::read_to_string(&report)?;
    assert!(page.starts_with("<!") && page.contains("PE 0 found 0"), "a page with the run");

    run("first signal", &[&["--robust"], &files[..]].concat()).expect(0, "first signal: robust for 2 PEs")?;
    let (summary, found) = (read(&json), read(&finding));
    assert_eq!((&summary["robust"], &summary["run"]), (&true.into(), &serde_json::Value::Null));
    assert_eq!(found["verdict"]["outcome"], "finished");
    Ok(())
}

// One of the barriers is enough.
program!(MeetsTwice, "meets twice", 2, |pe| {
    let word = pe.alloc_zeroed::<u64>(1)?;
    pe.host().p(&word, 7, 1 - pe.my_pe())?;
    pe.host().barrier_all()?;
    pe.host().barrier_all()?;
    onesided::expect_eq(pe.read_one(&word)?, 7, "the word")?;
    pe.free(word)?;
    Ok(String::new())
});

fn calls_that_are_not_needed_were_tried_alone() -> std::result::Result<(), Failed> {
    let note = "note: each was tried alone; without one of them, another may be needed\n";
    let said = run("meets twice", &["--weaken"]);
    said.expect(0, note)?;
    assert_eq!(said.out.matches(": removable for 2 PEs: proved\n").count(), 2, "{}", said.out);
    let needed = run("no race", &["--weaken"]); // its barrier is not needed, and there is no other call
    needed.expect(0, ": removable for 2 PEs: proved\n")?;
    assert!(!needed.out.contains(note), "{}", needed.out);
    Ok(())
}

/// The README has a table for each form of what `--json` writes.
fn every_field_of_a_summary_is_documented() -> std::result::Result<(), Failed> {
    let readme = include_str!("../README.md");
    let section = |schema: &str| {
        let (_, behind) = readme.split_once(&format!("**`{schema}`**")).expect("a section");
        behind.split("\n**`").next().expect("its text")
    };
    for (options, schema) in [
        (&["--all", "--races", "note"][..], "onesided-run/2"),
        (&["--robust"], "onesided-robust/1"),
        (&["--pes", "2..3"], "onesided-table/1"),
    ] {
        let said = run("buffers", &[options, &["--json", "-"]].concat());
        let summary: serde_json::Value = serde_json::from_str(&said.out)?;
        assert_eq!(summary["schema"], schema);
        for (form, fields) in [(schema, &summary), ("onesided-run/2", &summary["rows"][0])] {
            let names =
                fields.as_object().into_iter().flat_map(|fields| fields.keys()).filter(|name| *name != "schema");
            let unknown: Vec<_> = names.filter(|name| !section(form).contains(&format!("`{name}`"))).collect();
            assert!(unknown.is_empty(), "{form}: {unknown:?}");
        }
    }
    Ok(())
}
