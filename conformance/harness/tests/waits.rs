//! Programs that wait for something outside of the simulator, which nobody brings: one SIGTERM ends them, as `timeout` sends it in CI.
//!
//! As `harness.rs`, this test is its own programs.
#![cfg_attr(not(unix), allow(unused, reason = "there are no such signals"))]

use std::env;
use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, ChildStderr, Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};

use libtest_mimic::Failed;
use onesided::{Backend, Pe, Result};
use onesided_harness::Program;

mod common;
use common::{Said, VARIABLE, program, run, tests};

tests! {
    play;
    #[cfg(unix)]
    one_sigterm_ends_a_pe_that_reads_and_prints_what_was_found,
    #[cfg(unix)]
    one_sigterm_ends_a_wait_for_the_reader_of_a_file,
    #[cfg(unix)]
    one_sigterm_ends_a_wait_for_the_reader_of_what_is_printed,
}

/// Runs the program of that name.
fn play(name: &str) -> ExitCode {
    match name {
        Asks::NAME => onesided_harness::main(Asks),
        Talks::NAME => onesided_harness::main_on_one_core(Talks),
        other => panic!("{other} is no program of this file"),
    }
}

/// After how many runs a program begins to read.
const RUNS_BEFORE: &str = "ONESIDED_TEST_RUNS";
static RUNS: AtomicU64 = AtomicU64::new(0);

// It races, and it reads from standard input, which is open and stays empty.
program!(Asks, "asks", 2, |pe| {
    let before: u64 = env::var(RUNS_BEFORE).map_or(0, |text| text.parse().expect("a number"));
    if pe.my_pe() == 0 && RUNS.fetch_add(1, Ordering::Relaxed) >= before {
        eprintln!("PE 0 reads");
        let _ = std::io::stdin().read(&mut [0]); // what comes does not matter
    }
    let word = pe.alloc_zeroed::<u64>(1)?;
    pe.host().p(&word, 1, 1 - pe.my_pe())?;
    pe.host().sync_all()?;
    pe.read_one(&word)?;
    pe.free(word)?;
    Ok(String::new())
});

// More than a pipe holds. On one core: the note that says so comes when signals are listened for.
program!(Talks, "talks", 2, |pe| { Ok(format!("PE {} says {}", pe.my_pe(), "much ".repeat(100_000))) });

/// Starts a program, with all three streams as pipes.
fn start(name: &str, options: &[&str], runs: u64) -> std::result::Result<(Child, BufReader<ChildStderr>), Failed> {
    let mut command = Command::new(env::current_exe()?);
    command.env(VARIABLE, name).env(RUNS_BEFORE, runs.to_string()).args(options);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let err = BufReader::new(child.stderr.take().ok_or("it is piped")?);
    Ok((child, err))
}

/// Sends a SIGTERM when it has said something that ends so.
fn terminate(child: &Child, err: &mut BufReader<ChildStderr>, after: &str) -> std::result::Result<(), Failed> {
    let mut line = String::new();
    while !line.ends_with(after) {
        line.clear();
        if err.read_line(&mut line)? == 0 {
            return Err(format!("it never said {after:?}").into());
        }
    }
    let kill = Command::new("kill").args(["-TERM", &child.id().to_string()]).status()?;
    if kill.success() { Ok(()) } else { Err("it could not be interrupted".into()) }
}

/// What it says until its end.
fn end(mut child: Child, mut err: BufReader<ChildStderr>) -> std::result::Result<Said, Failed> {
    let (mut said, mut out) = (String::new(), String::new());
    err.read_to_string(&mut said)?;
    let status = child.wait()?.code(); // before its output is read, which would let it go on
    child.stdout.take().ok_or("it is piped")?.read_to_string(&mut out)?;
    Ok(Said { status, out, err: said })
}

/// In the first run there is nothing to print yet; then there is a finding, which is recorded, and explained in many more runs, on one core or two.
fn one_sigterm_ends_a_pe_that_reads_and_prints_what_was_found() -> std::result::Result<(), Failed> {
    let cases = [(0, "1"), (1, "1"), (3, "1"), (30, "1"), (30, "2")];
    let started = cases.map(|(runs, jobs)| {
        let (child, mut err) = start(Asks::NAME, &["--explain", "--jobs", jobs], runs)?;
        terminate(&child, &mut err, "PE 0 reads\n").map(|()| (child, err))
    });
    for ((runs, _), started) in cases.into_iter().zip(started) {
        let (child, err) = started?;
        let said = end(child, err)?;
        said.expect(143, "PE 0 has made no call for ")?;
        if runs > 0 {
            said.expect(143, "FINDING in order: data race: delivery of p at ")?;
            run(Asks::NAME, &said.replay()).expect(1, "FINDING again: data race: delivery of p at ")?;
        }
    }
    Ok(())
}

/// The note of a program on one core.
const LISTENS: &str = " is not Sync, so its schedules run on one core\n";

/// A FIFO opens for writing when somebody reads it.
fn one_sigterm_ends_a_wait_for_the_reader_of_a_file() -> std::result::Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    let fifo = folder.path().join("fifo").display().to_string();
    if !Command::new("mkfifo").arg(&fifo).status()?.success() {
        return Err("no mkfifo".into());
    }
    let (child, mut err) = start(Talks::NAME, &["--json", &fifo], 0)?;
    terminate(&child, &mut err, LISTENS)?;
    let expected = format!("It waits to open {fifo}, and nobody has let it for 5 s, so the program ends here.");
    end(child, err)?.expect(143, &expected)
}

/// Nobody reads what it prints.
fn one_sigterm_ends_a_wait_for_the_reader_of_what_is_printed() -> std::result::Result<(), Failed> {
    let (child, mut err) = start(Talks::NAME, &["--schedules", "1"], 0)?;
    terminate(&child, &mut err, LISTENS)?;
    end(child, err)?.expect(143, "It waits to write to standard output, and nobody has let it for 5 s")
}
