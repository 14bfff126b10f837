//! The command line of a program: its own options, what it is held to, where it is replayed, and what is written where.
//!
//! As `harness.rs`, this test is its own programs.

use std::cell::RefCell;
use std::env;
use std::process::{Command, ExitCode, Stdio};

use libtest_mimic::Failed;
use onesided::{Backend, Pe, Result};
use onesided_harness::{Program, clap};

mod common;
use common::{Said, VARIABLE, arguments_of, program, run, tests};

tests! {
    play;
    a_program_has_options_and_a_precondition,
    the_short_help_has_a_line_for_each_option,
    an_option_that_all_programs_have_is_refused,
    a_program_that_is_not_sync_runs_on_one_core,
    what_gpus_lack_is_noted_and_refused_on_demand,
    a_program_elsewhere_is_replayed_where_it_is,
    output_that_cannot_be_written_is_an_error,
    a_file_on_standard_output_is_alone_there,
    a_finding_is_written_for_others_to_show,
    files_of_a_run_that_there_is_not_are_named,
    what_a_pe_says_in_several_lines_stands_together,
    a_schedule_without_a_fingerprint_is_not_taken_in_silence,
}

/// Runs the program of that name.
fn play(name: &str) -> ExitCode {
    match name {
        Pairs::NAME => onesided_harness::main_with_options::<Pairs>(),
        Greedy::NAME => onesided_harness::main_with_options::<Greedy>(),
        Diary::NAME => onesided_harness::main_on_one_core(Diary { days: RefCell::default() }),
        Dated::NAME => onesided_harness::main_with_options_on_one_core::<Dated>(),
        Counts::NAME => onesided_harness::main(Counts),
        Casts::NAME => onesided_harness::main(Casts),
        Endless::NAME => onesided_harness::main(Endless),
        Speaks::NAME => onesided_harness::main(Speaks),
        other => panic!("{other} is no program of this file"),
    }
}

/// PEs exchange an array, two by two.
#[derive(clap::Args)]
struct Pairs {
    /// Elements of the array
    #[arg(long, default_value_t = 4)]
    elements: usize,
    /// What to say
    #[arg(long, default_value = "")]
    words: String,
}

impl Program for Pairs {
    const NAME: &'static str = "pairs";
    const ABOUT: &'static str = "PEs exchange an array, two by two.";
    const CHECKS: &'static str = "it says something";
    const PES: usize = 2;

    fn precondition(&self, n_pes: usize) -> std::result::Result<(), String> {
        if n_pes.is_multiple_of(2) { Ok(()) } else { Err("it needs an even number".to_string()) }
    }

    fn run(&self, pe: &Pe<impl Backend>) -> Result<String> {
        let (mine, other) = (pe.alloc_zeroed::<u32>(self.elements)?, pe.alloc_zeroed::<u32>(self.elements)?);
        pe.host().put(&other, &mine, pe.my_pe() ^ 1)?;
        pe.host().barrier_all()?;
        pe.free(other)?;
        pe.free(mine)?;
        onesided::expect_eq(self.words == "nothing at all", false, "what it says")?;
        Ok(format!("PE {} says {:?} {} times", pe.my_pe(), self.words, self.elements))
    }
}

fn a_program_has_options_and_a_precondition() -> std::result::Result<(), Failed> {
    run("pairs", &["--elements", "7", "--words", "a b"]).expect(0, "PE 1 says \"a b\" 7 times")?;
    run("pairs", &["--help"])
        .expect(0, "The program:\n      --elements <ELEMENTS>\n          Elements of the array\n")?;
    run("pairs", &["--elements", "x"]).expect(2, "invalid value 'x' for '--elements <ELEMENTS>'")?;
    run("pairs", &["--pes", "3"]).expect(2, "error: pairs cannot run on 3 PEs: it needs an even number\n")?;
    run("pairs", &["--pes", "3", "--backend", "nvshmem"]).expect(2, "error: pairs cannot run on 3 PEs")?;
    // A number of PEs that it suggests is one with which it can run.
    run("pairs", &["--pes", "12", "--schedules", "2"])
        .expect(0, "\nNext: --all (every schedule), --pes 4 (fewer PEs), ")?;
    run("pairs", &["--schedules", "2"]).expect(0, "\nNext: --all (every schedule), --pes 8 (more PEs), ")?;

    // A finding comes back with the options of the program, which may have blanks, and with no others.
    let said = run("pairs", &["--words", "nothing at all", "--elements", "2"]);
    said.expect(1, "FINDING in order: PE ")?;
    let line = said.replay_line();
    assert!(line.ends_with(" --elements 2 --words 'nothing at all'"), "{line}");
    let schedule = arguments_of(line)[1];
    let replay = |own: &[&str]| run("pairs", &[&["--replay", schedule], own].concat());
    replay(&["--elements", "2", "--words", "nothing at all"]).expect(1, "FINDING again")?;
    for other in [&["--elements", "3", "--words", "nothing at all"][..], &["--words", "nothing at all"], &[]] {
        replay(other).expect(2, "was recorded with other options of pairs than are given here")?;
    }
    Ok(())
}

/// Each in one line, under the headings of the long help.
fn the_short_help_has_a_line_for_each_option() -> std::result::Result<(), Failed> {
    let (short, long) = (run("pairs", &["-h"]), run("pairs", &["--help"]));
    short.expect(0, "The program:\n      --elements <ELEMENTS>  Elements of the array [default: 4]\n")?;
    let is_option = |line: &&str| line.trim_start().starts_with('-') && !line.trim_start().starts_with("- ");
    let options = |help: &'_ str| help.lines().filter(is_option).count();
    let name = |line: &str| line.split("  ").map(str::trim).find(|word| !word.is_empty()).map(str::to_string);
    let names = |help: &str| help.lines().filter(is_option).filter_map(name).collect::<Vec<_>>();
    assert!(options(&short.out) > 30, "{}", short.out);
    assert_eq!(names(&short.out), names(&long.out));
    for line in short.out.lines() {
        let is_continued = line.starts_with("            ");
        assert!(!is_continued && line.len() <= 100, "{line}");
    }
    let headings = |help: &str| help.lines().filter(|line| line.ends_with(':')).map(str::to_string).collect::<Vec<_>>();
    let headings = [&short, &long].map(|said| headings(&said.out));
    assert!(headings[0].len() >= 5 && headings[0].iter().all(|heading| headings[1].contains(heading)), "{headings:?}");
    long.expect(0, "Number of nodes that the PEs are spread over [default: 1]. On GPUs they are made of\n")?;
    Ok(())
}

/// Its option has the name of one that all programs have.
#[derive(clap::Args)]
struct Greedy {
    #[arg(long)]
    trace: bool,
}

impl Program for Greedy {
    const NAME: &'static str = "greedy";
    const ABOUT: &'static str = "Takes an option that is not its own.";
    const CHECKS: &'static str = "nothing";

    fn run(&self, _: &Pe<impl Backend>) -> Result<String> {
        Ok(self.trace.to_string())
    }
}

fn an_option_that_all_programs_have_is_refused() -> std::result::Result<(), Failed> {
    run("greedy", &[]).expect(101, "greedy: its option trace has the name of --trace, which all programs have")
}

/// Keeps what its PEs did in a cell, which threads cannot share.
struct Diary {
    days: RefCell<Vec<usize>>,
}

impl Program for Diary {
    const NAME: &'static str = "diary";
    const ABOUT: &'static str = "Every PE takes a ticket, and notes that it ran.";
    const CHECKS: &'static str = "it has a ticket that there is";
    const PES: usize = 3;

    fn precondition(&self, n_pes: usize) -> std::result::Result<(), String> {
        if n_pes < 5 { Ok(()) } else { Err("it has four pages".to_string()) }
    }

    fn run(&self, pe: &Pe<impl Backend>) -> Result<String> {
        self.days.borrow_mut().push(pe.my_pe());
        let counter = pe.alloc_zeroed::<u64>(1)?;
        let ticket = pe.host().atomic_fetch_inc(&counter, 0)?;
        pe.free(counter)?;
        onesided::expect_eq(ticket < 2, true, "a ticket of the first two")?;
        Ok(format!("PE {} has a page", pe.my_pe()))
    }
}

/// The same with an option.
#[derive(clap::Args)]
struct Dated {
    #[arg(long, default_value_t = 1)]
    year: u64,
    #[arg(skip)]
    days: RefCell<Vec<u64>>,
}

impl Program for Dated {
    const NAME: &'static str = "dated";
    const ABOUT: &'static str = "Every PE notes the year.";
    const CHECKS: &'static str = "it can";

    fn run(&self, pe: &Pe<impl Backend>) -> Result<String> {
        self.days.borrow_mut().push(self.year);
        pe.host().barrier_all()?;
        Ok(format!("the year {}", self.year))
    }
}

/// Searches, explanations and tables too.
fn a_program_that_is_not_sync_runs_on_one_core() -> std::result::Result<(), Failed> {
    let note = "note: diary is not Sync, so its schedules run on one core\n";
    run("diary", &["--pes", "2", "--all"]).expect(0, "proved for 2 PEs")?;
    run("diary", &["--pes", "2", "--robust"]).expect(0, note)?;
    run("diary", &["--all", "--explain"]).expect(1, note)?;
    run("diary", &["--pes", "2..3", "--all"]).expect(1, note)?;
    run("diary", &["--pes", "5"]).expect(2, "diary cannot run on 5 PEs: it has four pages")?;
    run("diary", &["--jobs", "1", "--pes", "2"]).expect(0, "PE 1 has a page")?;
    run("diary", &["--jobs", "2"]).expect(2, "--jobs 2: diary is not Sync and runs on one core; leave --jobs out")?;
    run("dated", &["--year", "7"]).expect(0, "the year 7")
}

program!(Counts, "counts", 2, |pe| {
    let words = pe.alloc_zeroed::<u64>(1)?;
    pe.host().atomic_inc(&words, 0)?;
    pe.free(words)?;
    Ok(String::new())
});

program!(Casts, "casts", 2, |pe| {
    let words = pe.alloc_zeroed::<u64>(1)?;
    let done = match pe.multicast(pe.world(), &words)? {
        Some(all) if pe.my_pe() == 0 => all.write(&[1]).map(|()| "multicast"),
        Some(_) => Ok("multicast by PE 0"),
        None => Ok("no multicast"),
    }?;
    pe.free(words)?;
    Ok(done.to_string())
});

fn what_gpus_lack_is_noted_and_refused_on_demand() -> std::result::Result<(), Failed> {
    let note = "note: it uses multicast, which --backend nvshmem does not have: multicast loads and stores are";
    let said = run("casts", &[]);
    said.expect(0, note)?;
    assert_eq!(said.out.matches("note: ").count(), 1);
    run("casts", &["--like", "nvshmem"]).expect(0, "no multicast")?;
    for arguments in [&[][..], &["--like", "nvshmem"]] {
        let without = run("pairs", arguments);
        without.expect(0, "nothing wrong")?;
        assert!(!without.out.contains("note: "), "{}", without.out);
    }

    let file = tempfile::NamedTempFile::new()?;
    run("casts", &["--json", file.path().to_str().expect("a path in UTF-8")]).expect(0, note)?;
    let json: serde_json::Value = serde_json::from_slice(&std::fs::read(file.path())?)?;
    assert_eq!((&json["unsupported"]["family"], &json["like"]), (&"multicast".into(), &serde_json::Value::Null));
    Ok(())
}

/// The command that a finding prints is how the program was started, in words that a shell reads.
#[cfg(unix)]
fn a_program_elsewhere_is_replayed_where_it_is() -> std::result::Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    let program = folder.path().join("my programs");
    std::os::unix::fs::symlink(env::current_exe()?, &program)?;
    let output = Command::new(&program).env(VARIABLE, Pairs::NAME).args(["--words", "nothing at all"]).output()?;
    let said = String::from_utf8(output.stdout)?;
    let line = said.split_once("Replay it: ").expect("a command").1.lines().next().expect("a line");
    assert!(line.starts_with(&format!("'{}' --replay os2.", program.display())), "{line}");
    let again = Command::new("sh").args(["-c", line]).env(VARIABLE, Pairs::NAME).output()?;
    assert_eq!(again.status.code(), Some(1), "{}", String::from_utf8_lossy(&again.stderr));
    assert!(String::from_utf8(again.stdout)?.contains("FINDING again"));
    Ok(())
}

#[cfg(not(unix))]
fn a_program_elsewhere_is_replayed_where_it_is() -> std::result::Result<(), Failed> {
    println!("not run: no symbolic links");
    Ok(())
}

/// Nothing panics, and what a full disk lost is not passed over. A reader that has gone changes nothing.
fn output_that_cannot_be_written_is_an_error() -> std::result::Result<(), Failed> {
    run("counts", &["--json", "/dev/full"]).expect(2, "error: cannot write /dev/full: No space left")?;
    let start = |program: &str, arguments: &[&str], out: Stdio| {
        let mut command = Command::new(env::current_exe()?);
        command.args(arguments).env(VARIABLE, program).stdout(out).stderr(Stdio::piped());
        let output = command.spawn()?.wait_with_output()?;
        let err = String::from_utf8_lossy(&output.stderr).into_owned();
        Ok::<Said, Failed>(Said { status: output.status.code(), out: String::new(), err })
    };
    match std::fs::File::options().write(true).open("/dev/full") {
        Ok(full) => start(Counts::NAME, &[], full.into())?.expect(2, "error: cannot write to standard output: ")?,
        Err(_) => println!("not run: no /dev/full"),
    }
    let cases: [(&str, &[&str], i32); 4] = [
        (Counts::NAME, &[], 0),
        (Counts::NAME, &["--json", "-"], 0),
        (Counts::NAME, &["--help"], 0),
        (Pairs::NAME, &["--words", "nothing at all"], 1),
    ];
    for (program, arguments, status) in cases {
        let (reader, writer) = std::io::pipe()?;
        drop(reader);
        let said = start(program, arguments, writer.into())?;
        said.expect(status, "")?;
        if said.err.contains("error: ") || said.err.contains("panicked") {
            return Err(said.err.into());
        }
    }
    Ok(())
}

/// The file has what the program printed, what happened, and the program's own lines.
fn a_finding_is_written_for_others_to_show() -> std::result::Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("found.json");
    let path = file.to_str().expect("a path in UTF-8");
    let written = || onesided_show::Finding::read("found.json", &std::fs::read_to_string(&file)?).map_err(Failed::from);

    let said = run("pairs", &["--words", "nothing at all", "--finding", path]);
    said.expect(1, "Wrote all that is known of the run to ")?;
    let finding = written()?;
    assert_eq!((finding.program.as_str(), finding.cluster.pes, finding.is_ok()), ("pairs", 2, false));
    assert_eq!(finding.arguments, ["--words", "nothing at all"]);
    assert_eq!(
        (finding.replay.as_str(), finding.verdict.outcome.as_str()),
        (said.replay_line(), "failed: wrong result")
    );
    assert!(said.out.contains(&finding.verdict.text), "{}", finding.verdict.text);
    let at = finding.verdict.at.as_ref().expect("a line");
    let line = finding.source(&at.file).expect("this file").lines().nth(at.line - 1);
    assert!(line.is_some_and(|line| line.contains("self.words == \"nothing at all\"")), "{line:?}");
    assert!(finding.events.iter().any(|event| event.op == "put" && event.to.is_some()));
    let undelivered = finding.agents.iter().map(|agent| agent.text.as_str()).collect::<Vec<_>>();
    assert!(undelivered.iter().all(|text| said.out.contains(text)), "{undelivered:?}");

    let page = folder.path().join("found.html");
    run("pairs", &["--words", "nothing at all", "--report", page.to_str().expect("a path in UTF-8")])
        .expect(1, "Wrote a picture of the run to ")?;
    let json = folder.path().join("summary.json");
    let files = ["--json", json.to_str().expect("a path in UTF-8"), "--finding", path];
    let out = run("pairs", &[&["--words", "nothing at all"], &files[..]].concat()).out;
    assert!(out.find("Wrote a summary") < out.find("Wrote all that is known"), "the small file first: {out}");
    let at_file = format!("@{path}");
    run("pairs", &["--words", "nothing at all", "--replay", &at_file]).expect(1, "FINDING again: PE ")?;
    let page = std::fs::read_to_string(page)?;
    assert!(page.starts_with("<!doctype html>") && page.contains("nothing at all"));

    // without a finding, it is the first run
    run("counts", &["--finding", path, "--events"]).expect(0, "alloc")?;
    assert!(written()?.is_ok());
    run("counts", &["--events"]).expect(0, "  op           atomic")?;
    std::fs::create_dir(folder.path().join("sub"))?;
    let roundabout = folder.path().join("sub/../found.json");
    for other in [path, roundabout.to_str().expect("a path in UTF-8")] {
        run("counts", &["--finding", path, "--trace", other]).expect(2, "--trace and --finding both name ")?;
    }
    run("counts", &["--finding", path, "--backend", "nvshmem"]).expect(2, "--finding is about the simulator")?;
    run("counts", &["--events", "--backend", "nvshmem"]).expect(2, "--events is about the simulator")
}

fn a_file_on_standard_output_is_alone_there() -> std::result::Result<(), Failed> {
    for (option, schema) in
        [("--json", "onesided-run/2"), ("--trace", "onesided-trace/2"), ("--finding", "onesided-finding/1")]
    {
        let said = run("counts", &[option, "-"]);
        let json: serde_json::Value = serde_json::from_str(&said.out)?;
        assert_eq!(json["schema"], schema);
        said.expect(0, "nothing wrong")?; // on standard error
    }
    run("counts", &["--json", "-", "--trace", "-"]).expect(2, "--trace and --json both name -")
}

program!(Endless, "endless", 2, |pe| {
    let words = pe.alloc_zeroed::<u64>(1)?;
    loop {
        pe.host().p(&words, 1, 1 - pe.my_pe())?;
        pe.host().quiet()?;
    }
});

/// Time is over before the first run is.
fn files_of_a_run_that_there_is_not_are_named() -> std::result::Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    let file = |name: &str| folder.path().join(name).to_str().expect("a path in UTF-8").to_string();
    let (report, json) = (file("report.html"), file("summary.json"));
    let endless = ["--strategy", "plain", "--time", "1", "--max-steps", "18446744073709551615"];
    let said = run("endless", &[&endless[..], &["--report", &report, "--json", &json]].concat());
    said.expect(3, &format!("note: {report} is not written (--report): time was over within the first schedule"))?;
    said.expect(3, &format!("Wrote a summary to {json}."))?;
    assert_eq!(std::fs::read_dir(&folder)?.count(), 1, "and no hidden file");
    Ok(())
}

program!(Speaks, "speaks", 1, |pe| {
    pe.host().barrier_all()?;
    panic!("first line\nsecond line");
});

/// Nothing stands above the finding of a PE that has returned nothing, and all that it says stands together.
fn what_a_pe_says_in_several_lines_stands_together() -> std::result::Result<(), Failed> {
    let said = run("speaks", &[]);
    said.expect(1, "first line\n    second line")?;
    if said.out.starts_with("FINDING in order: PE 0 panicked") { Ok(()) } else { Err(said.out.into()) }
}

fn a_schedule_without_a_fingerprint_is_not_taken_in_silence() -> std::result::Result<(), Failed> {
    let said = run("counts", &["--replay", "os2.2x1.spec.p4.o.none"]);
    said.expect(0, "note: the schedule has no fingerprint")?;
    let recorded = run("pairs", &["--words", "nothing at all"]);
    let own = ["--words", "nothing at all"];
    let replayed = run("pairs", &[&recorded.replay()[..2], &own].concat());
    replayed.expect(1, "FINDING again")?;
    if replayed.err.contains("note: ") { Err(replayed.err.into()) } else { Ok(()) }
}
