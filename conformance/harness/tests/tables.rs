//! Several numbers of PEs or profiles at once: the table, the findings behind it, and what is written.
//!
//! As `harness.rs`, this test is its own programs.

use std::process::ExitCode;
#[cfg(unix)]
use std::process::{Command, Stdio};

use libtest_mimic::Failed;
use onesided::{Backend, Pe, Result, expect_eq};
use onesided_harness::{Program, clap};
use onesided_sim::Profile;

mod common;
#[cfg(unix)]
use common::{Said, VARIABLE};
use common::{arguments_of, program, run, tests};

tests! {
    play;
    a_proof_for_each_number_of_pes,
    a_failing_row_names_its_lines_and_replays,
    all_races_of_a_finding_are_printed_on_demand,
    profiles_are_compared,
    a_proof_under_spec_covers_stronger_profiles,
    random_rows_have_no_proof,
    a_summary_has_every_row,
    a_bound_counts_the_schedule_in_order,
    #[cfg(unix)]
    a_finding_is_kept_where_a_pe_of_a_later_row_is_stuck,
    what_is_about_one_run_is_refused,
}

/// Runs the program of that name.
fn play(name: &str) -> ExitCode {
    match name {
        Tickets::NAME => onesided_harness::main_with_options::<Tickets>(),
        Message::NAME => onesided_harness::main(Message),
        Crowd::NAME => onesided_harness::main(Crowd),
        Streams::NAME => onesided_harness::main(Streams),
        SpinsAmongThree::NAME => onesided_harness::main(SpinsAmongThree),
        other => panic!("{other} is no program of this file"),
    }
}

/// Every PE takes a ticket: n! classes.
#[derive(clap::Args)]
struct Tickets {
    /// Tickets that there are
    #[arg(long, default_value_t = 9)]
    tickets: u64,
}

impl Program for Tickets {
    const NAME: &'static str = "tickets";
    const ABOUT: &'static str = "Every PE takes a ticket.";
    const CHECKS: &'static str = "it got one";
    const MIN_PES: usize = 2;

    fn precondition(&self, n_pes: usize) -> std::result::Result<(), String> {
        if n_pes == 5 { Err("five are too many or too few".to_string()) } else { Ok(()) }
    }

    fn run(&self, pe: &Pe<impl Backend>) -> Result<String> {
        let counter = pe.alloc_zeroed::<u64>(1)?;
        let mine = pe.host().atomic_fetch_inc(&counter, 0)?;
        expect_eq(mine < self.tickets, true, "a ticket")?; // LINE
        pe.free(counter)?;
        Ok(format!("PE {} is one of them", pe.my_pe()))
    }
}

/// PE 0 puts twice to the last PE, without a fence between: either may come last.
struct Message;

impl Program for Message {
    const NAME: &'static str = "message";
    const ABOUT: &'static str = "PE 0 puts twice to the last PE.";
    const CHECKS: &'static str = "nothing";
    const PES: usize = 2;

    fn run(&self, pe: &Pe<impl Backend>) -> Result<String> {
        let x = pe.alloc_zeroed::<u32>(1)?;
        if pe.my_pe() == 0 {
            pe.host().p(&x, 1, pe.n_pes() - 1)?;
            pe.host().p(&x, 2, pe.n_pes() - 1)?;
        }
        pe.host().barrier_all()?;
        let found = pe.read(&x)?[0];
        pe.free(x)?;
        Ok(format!("PE {} found {found}", pe.my_pe()))
    }
}

fn a_proof_for_each_number_of_pes() -> std::result::Result<(), Failed> {
    let said = run("tickets", &["--all", "--pes", "1..6", "--schedules", "100"]);
    let expected = "\
tickets under spec with up to 4 pieces a transfer

  PEs    classes  result
    1             tickets needs at least 2 PEs, not 1
    2          2  proved
    3          6  proved
    4         24  proved
    5             cannot run: five are too many or too few
    6        100  not complete: 100 of about ";
    if !said.out.starts_with(expected) {
        return Err(said.out.into());
    }
    said.expect(3, ", bounded by 100 schedules\n\nEvery PE checks that it got one.\n")?;
    run("tickets", &["--all", "--pes", "2..4"]).expect(0, "    4         24  proved\n\nEvery PE checks")?;
    run("tickets", &["--all", "--pes", "4,2", "--nodes", "2"])
        .expect(0, "tickets on 2 nodes under spec with up to 4")?;
    run("tickets", &["--all", "--pes", "2,5", "--heap", "1"])
        .expect(2, "    2             error: PE 1: alloc_zeroed: there is no room for 8 bytes in")?;
    run("tickets", &["--all", "--pes", "0..3"])
        .expect(2, "expected a whole number from 1 to 32000, or several: 2..8")?;
    run("tickets", &["--all", "--pes", "2,3", "--nodes", "7"])
        .expect(2, "error: 2 PEs cannot be spread evenly over 7 nodes")
}

fn a_failing_row_names_its_lines_and_replays() -> std::result::Result<(), Failed> {
    let said = run("tickets", &["--all", "--pes", "2..4", "--tickets", "2"]);
    let line = include_str!("tables.rs").lines().position(|line| line.ends_with("// LINE")).expect("it is there") + 1;
    said.expect(1, "tickets --tickets 2 under spec with")?;
    for row in
        ["    2          2  proved", "    3          1  fails: wrong result at ", "    4          1  fails: wrong"]
    {
        said.expect(1, row)?;
    }
    said.expect(1, &format!("conformance/harness/tests/tables.rs:{line}\n"))?;
    said.expect(1, "\nFINDING with 3 PEs: PE 1 failed: check: a ticket is false, expected true")?;
    run("tickets", &said.replay()).expect(1, "FINDING again: PE 1 failed")?;
    let (_, other) = said.out.split_once("\nReplay the one with 4 PEs: ").expect("a command");
    run("tickets", &arguments_of(other.lines().next().expect("a line"))).expect(1, "FINDING again: PE 1 failed")
}

// Two words of PE 0, and two races on each side of them.
program!(Crowd, "crowd", 2, |pe| {
    let x = pe.alloc_zeroed::<u32>(2)?;
    pe.host().p(x.at(0), 1, 0)?; // FIRST
    pe.host().p(x.at(1), 1, 0)?; // SECOND
    pe.host().barrier_all()?;
    pe.free(x)?;
    Ok(String::new())
});

fn all_races_of_a_finding_are_printed_on_demand() -> std::result::Result<(), Failed> {
    let races = |options: &[&str]| {
        let said = run("crowd", &[&["--pes", "2..3", "--schedules", "1"], options].concat());
        said.expect(1, "\nFINDING with 2 PEs: ")?;
        let (_, finding) = said.out.split_once("FINDING with 2 PEs: ").expect("it is there");
        let finding = finding.split_once("Replay it: ").expect("a command").0;
        Ok::<usize, Failed>(finding.matches("nothing orders them").count())
    };
    assert_eq!((races(&[])?, races(&["--all-races"])?), (1, 2));
    Ok(())
}

fn profiles_are_compared() -> std::result::Result<(), Failed> {
    let said = run("message", &["--races", "note", "--all", "--profile", "all"]);
    insta::assert_snapshot!("table_of_profiles", said.out);
    if said.out.contains("PE 0 found") {
        return Err(format!("lines of PEs in a table:\n{}", said.out).into());
    }
    // where there is a race, a proof does not look at every order
    let races = run("message", &["--all", "--profile", "all"]);
    races.expect(1, "network                1  proved\n")?;
    races.expect(1, "\nnetwork, nvlink: the same 1 outcome\n")?;
    races.expect(1, " (--races note does): spec, unordered-nic, mixed-fabric, ibgda\n")?;
    let both = run("message", &["--races", "note", "--all", "--profile", "all", "--pes", "1..2"]);
    insta::assert_snapshot!("table_of_profiles_and_pes", both.out);
    // Outcomes behind a finding count too: the search goes on.
    let fails = run("tickets", &["--all", "--profile", "all", "--pes", "3", "--tickets", "2"]);
    fails.expect(1, "6  fails: wrong result at ")?;
    let names = Profile::ALL.map(Profile::name).join(", ");
    fails.expect(1, &format!("\n{names}: the same 1 outcome\n"))?;
    fails.expect(1, "\nFINDING under spec: PE 1 failed")?;
    let bounded = run("tickets", &["--all", "--profile", "all", "--schedules", "3"]);
    bounded.expect(3, &format!("\nnot compared, because not complete: {names}\n"))?;
    // and a bound holds behind a finding
    let both = run("tickets", &["--all", "--profile", "all", "--pes", "6", "--tickets", "2", "--schedules", "30"]);
    both.expect(1, "30  fails: wrong result at ")?;
    both.expect(1, &format!("\nnot compared, because not complete: {names}\n"))
}

// Two streams put at the same time, each to a place of its own: which is first matters where transfers to a PE keep their order.
program!(Streams, "streams", 2, |pe| {
    let x = pe.alloc_zeroed::<u32>(4)?;
    let streams = [pe.stream()?, pe.stream()?];
    for i in 0..4 {
        pe.on(&streams[i % 2]).p(x.at(i), 1, 0)?;
    }
    pe.synchronize(&streams[1])?;
    pe.on(&streams[0]).barrier_all()?;
    pe.synchronize(&streams[0])?;
    pe.free(x)?;
    Ok(String::new())
});

fn a_proof_under_spec_covers_stronger_profiles() -> std::result::Result<(), Failed> {
    let streams = |options: &[&str]| run("streams", &[&["--pes", "1", "--all"], options].concat());
    let alone = streams(&["--profile", "nvlink", "--schedules", "2"]);
    alone.expect(3, "not proved for 1 PE under nvlink")?;
    let file = tempfile::NamedTempFile::new()?;
    let path = file.path().to_str().expect("a path in UTF-8");
    let said = streams(&["--profile", "all", "--schedules", "2", "--json", path]);
    said.expect(0, "spec                   1  proved\n")?;
    said.expect(0, ", bounded by 2 schedules; the proof under spec covers it\n")?;
    let summary: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(path)?)?;
    let covered = |row: &serde_json::Value| row["covered_by"] == "spec";
    let covered: Vec<bool> = summary["rows"].as_array().expect("rows").iter().map(covered).collect();
    assert_eq!((&summary["status"], covered), (&"ok".into(), vec![false, true, false, true, true, true]));
    Ok(())
}

fn random_rows_have_no_proof() -> std::result::Result<(), Failed> {
    let said = run("message", &["--races", "note", "--profile", "all", "--schedules", "20"]);
    insta::assert_snapshot!("table_of_random_schedules", said.out);
    said.expect(0, "Whether one profile is stronger than another for this program is seen with --all only.")
}

/// What can be seen of the message.
const COMPARED: [&str; 2] = [
    "spec, unordered-nic, mixed-fabric, ibgda: the same 2 outcomes",
    "network, nvlink: the same 1 outcome; stronger than spec, which has 1 more",
];

fn a_summary_has_every_row() -> std::result::Result<(), Failed> {
    let file = tempfile::NamedTempFile::new()?;
    let path = file.path().to_str().expect("a path in UTF-8");
    run("tickets", &["--all", "--pes", "3..5", "--tickets", "3", "--json", path]).expect(1, "Wrote a summary to ")?;
    let json: serde_json::Value = serde_json::from_slice(&std::fs::read(path)?)?;
    assert_eq!((&json["schema"], &json["status"]), (&"onesided-table/1".into(), &"finding".into()));
    assert_eq!(json["options"], serde_json::json!(["--tickets", "3"]));
    let rows = json["rows"].as_array().expect("rows");
    let told: Vec<_> = rows.iter().map(|row| (&row["pes"], &row["status"])).collect();
    let [three, four, five] = [3, 4, 5].map(serde_json::Value::from);
    assert_eq!(told, [(&three, &"ok".into()), (&four, &"finding".into()), (&five, &"not run".into())]);
    assert_eq!((&rows[0]["schema"], &rows[0]["schedules"]), (&"onesided-run/2".into(), &7.into()));
    assert!(rows[1]["finding"]["replay"].is_string() && rows[2]["error"] == "cannot run: five are too many or too few");

    run("message", &["--races", "note", "--all", "--profile", "all", "--json", path]).expect(0, "Wrote a summary")?;
    let json: serde_json::Value = serde_json::from_slice(&std::fs::read(path)?)?;
    assert_eq!(json["compared"], serde_json::json!(COMPARED));
    Ok(())
}

/// The run in order is one of the schedules that were asked for.
fn a_bound_counts_the_schedule_in_order() -> std::result::Result<(), Failed> {
    let file = tempfile::NamedTempFile::new()?;
    let path = file.path().to_str().expect("a path in UTF-8");
    for options in [&[][..], &["--strategy", "plain"]] {
        run("tickets", &[options, &["--pes", "2", "--schedules", "20", "--json", path]].concat())
            .expect(0, "nothing")?;
        let json: serde_json::Value = serde_json::from_slice(&std::fs::read(path)?)?;
        assert_eq!((&json["schedules"], &json["bound"]), (&20.into(), &"bounded by 20 schedules".into()));
    }
    Ok(())
}

// Two PEs fail a check, and any other number makes no call for ever.
program!(SpinsAmongThree, "spins_among_three", 2, |pe| {
    if pe.n_pes() == 2 {
        expect_eq(1, 2, "one")?;
    }
    eprintln!("PE {} spins", pe.my_pe());
    loop {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
});

/// The findings stand behind the table, which is never complete here.
#[cfg(unix)]
fn a_finding_is_kept_where_a_pe_of_a_later_row_is_stuck() -> std::result::Result<(), Failed> {
    use std::io::{BufRead as _, BufReader, Read as _};
    let mut program = Command::new(std::env::current_exe()?);
    program.env(VARIABLE, SpinsAmongThree::NAME).args(["--pes", "2,3"]);
    let mut child = program.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let mut stderr = BufReader::new(child.stderr.take().expect("it is piped"));
    stderr.read_line(&mut String::new())?; // it spins
    if !Command::new("kill").args(["-TERM", &child.id().to_string()]).status()?.success() {
        return Err("it could not be interrupted".into());
    }
    let (mut out, mut err) = (String::new(), String::new());
    stderr.read_to_string(&mut err)?;
    child.stdout.take().expect("it is piped").read_to_string(&mut out)?;
    let said = Said { status: child.wait()?.code(), out, err };
    said.expect(143, "PE 0 has made no call for ")?;
    said.expect(143, "\nFINDING with 2 PEs: PE 0 failed: ")?;
    said.expect(143, "\nReplay it: ")
}

fn what_is_about_one_run_is_refused() -> std::result::Result<(), Failed> {
    for (arguments, why) in [
        (&["--pes", "2..3", "--trace", "t.json"][..], "--trace is about one run: leave --pes 2..3 out"),
        (&["--profile", "all", "--finding", "f.json"], "--finding is about one run: leave --profile all out"),
        (&["--pes", "2..3", "--explain"], "--explain is about one run: leave --pes 2..3 out"),
        (&["--pes", "2,4", "--events"], "--events is about one run: leave --pes 2,4 out"),
        (&["--pes", "2,4", "--replay", "os2.4x1.spec.p4.o.none"], "--replay is about one run: leave --pes 2,4 out"),
        (&["--pes", "2,4", "--backend", "nvshmem"], "several numbers of PEs are about the simulator"),
        (
            &["--profile", "none"],
            "\"none\" is not a profile; there are spec, unordered-nic, mixed-fabric, ibgda, network, nvlink, and all of them: all",
        ),
    ] {
        run("message", arguments).expect(2, why)?;
    }
    Ok(())
}
