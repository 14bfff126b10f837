//! Programs that go wrong, each in its own way: what the harness prints, and with which status it ends.
//!
//! This test is its own program: started with a name in the environment, it runs that program instead of the tests.

use std::env;
use std::process::{Command, ExitCode, Output, Stdio};

use libtest_mimic::{Arguments, Failed, Trial};
use onesided::{Backend, Cmp, Pe, Result, SignalOp};
use onesided_harness::Program;

const VARIABLE: &str = "ONESIDED_TEST_PROGRAM";

fn main() -> ExitCode {
    if let Ok(name) = env::var(VARIABLE) {
        return play(&name);
    }
    let trial = |name: &str, test: fn() -> std::result::Result<(), Failed>| Trial::test(name, test);
    let trials = vec![
        trial("a_panic_is_a_finding_and_is_printed_once", a_panic_is_a_finding_and_is_printed_once),
        trial("a_deadlock_names_who_waits", a_deadlock_names_who_waits),
        trial("an_endless_run_is_given_up", an_endless_run_is_given_up),
        trial("a_full_heap_is_no_finding", a_full_heap_is_no_finding),
        trial("an_exit_status_is_a_finding_unless_0", an_exit_status_is_a_finding_unless_0),
        trial("a_program_that_is_not_deterministic_is_refused", a_program_that_is_not_deterministic_is_refused),
        trial("a_finding_can_need_a_random_schedule", a_finding_can_need_a_random_schedule),
        #[cfg(unix)]
        trial("ctrl_c_twice_ends_a_pe_that_makes_no_call", ctrl_c_twice_ends_a_pe_that_makes_no_call),
        trial("results_that_differ_are_noted_and_no_finding", results_that_differ_are_noted_and_no_finding),
    ];
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

/// Runs the program of that name.
fn play(name: &str) -> ExitCode {
    match name {
        Panics::NAME => onesided_harness::main::<Panics>(),
        Deadlocks::NAME => onesided_harness::main::<Deadlocks>(),
        Polls::NAME => onesided_harness::main::<Polls>(),
        Hoards::NAME => onesided_harness::main::<Hoards>(),
        Exits::NAME => onesided_harness::main::<Exits>(),
        Changes::NAME => onesided_harness::main::<Changes>(),
        Races::NAME => onesided_harness::main::<Races>(),
        Spins::NAME => onesided_harness::main::<Spins>(),
        Unchecked::NAME => onesided_harness::main::<Unchecked>(),
        other => panic!("{other} is no program of this file"),
    }
}

/// What a program printed, and its exit status.
struct Said {
    status: Option<i32>,
    out: String,
    err: String,
}

fn run(name: &str, arguments: &[&str]) -> Said {
    let program = env::current_exe().expect("the path of this test");
    let output: Output = Command::new(program).env(VARIABLE, name).args(arguments).output().expect("it can be started");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
    Said { status: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
}

impl Said {
    /// The arguments of the command that replays the finding.
    fn replay(&self) -> Vec<&str> {
        let (_, command) = self.out.split_once("\nReplay it: ").expect("a command");
        let (_, arguments) = command.lines().next().and_then(|line| line.split_once(" -- ")).expect("its arguments");
        arguments.split(' ').collect()
    }

    fn expect(&self, status: i32, text: &str) -> std::result::Result<(), Failed> {
        if self.status == Some(status) && (self.out.contains(text) || self.err.contains(text)) {
            return Ok(());
        }
        let Said { status: found, out, err } = self;
        Err(format!("expected status {status} and {text:?}; found {found:?}, standard output and error:\n{out}\n{err}")
            .into())
    }
}

macro_rules! program {
    ($name:ident, $text:literal, $pes:literal, |$pe:ident| $body:block) => {
        struct $name;

        impl Program for $name {
            const NAME: &'static str = $text;
            const ABOUT: &'static str = "Goes wrong on purpose.";
            const CHECKS: &'static str = "it goes wrong";
            const PES: usize = $pes;

            fn run<B: Backend>($pe: &Pe<B>) -> Result<String> $body
        }
    };
}

program!(Panics, "panics", 2, |pe| {
    let x = pe.alloc_zeroed::<u32>(1)?;
    if pe.my_pe() == 0 {
        pe.host().p(&x, 1, 1)?;
    } else if pe.read(&x)?[0] == 0 {
        panic!("nothing came yet");
    }
    pe.free(x)?;
    Ok(String::new())
});

fn a_panic_is_a_finding_and_is_printed_once() -> std::result::Result<(), Failed> {
    let said = run("panics", &[]);
    said.expect(1, "PE 1 panicked at conformance/harness/tests/harness.rs:")?;
    let printed = |said: &Said| (said.out.matches("nothing came yet").count(), said.err.as_str()) == (1, "");
    let again = run("panics", &said.replay());
    again.expect(1, "FINDING again: PE 1 panicked at conformance/harness/tests/harness.rs:")?;
    if !printed(&said) || !printed(&again) {
        return Err(format!("the panic is not printed once:\n{}\n{}", said.err, again.err).into());
    }
    Ok(())
}

program!(Deadlocks, "deadlocks", 2, |pe| {
    let words = pe.alloc_zeroed::<u64>(1)?;
    pe.host().signal_wait_until(words.signal(0), Cmp::Eq, 1)?;
    pe.host().signal_op(words.signal(0), 1, SignalOp::Set, 1 - pe.my_pe())?;
    pe.free(words)?;
    Ok(String::new())
});

fn a_deadlock_names_who_waits() -> std::result::Result<(), Failed> {
    let said = run("deadlocks", &[]);
    said.expect(1, "FINDING in order: deadlock")?;
    said.expect(1, "PE 1: in signal_wait_until at ")?;
    run("deadlocks", &said.replay()).expect(1, "FINDING again: deadlock")
}

program!(Polls, "polls", 2, |pe| {
    let words = pe.alloc_zeroed::<u64>(1)?;
    while pe.host().signal_fetch(words.signal(0))? == 0 {}
    pe.free(words)?;
    Ok(String::new())
});

fn an_endless_run_is_given_up() -> std::result::Result<(), Failed> {
    let said = run("polls", &["--max-steps", "1000"]);
    said.expect(3, "GIVEN UP in order: step limit: given up after 1000 steps")?;
    said.expect(3, " --max-steps 1000\n")?;
    run("polls", &said.replay()).expect(3, "GIVEN UP again: step limit")
}

program!(Hoards, "hoards", 2, |pe| {
    let much = pe.alloc::<u8>(1 << 20)?;
    let n = much.len();
    pe.free(much)?;
    Ok(format!("PE {} had {n} bytes", pe.my_pe()))
});

fn a_full_heap_is_no_finding() -> std::result::Result<(), Failed> {
    run("hoards", &["--heap", "2M"]).expect(0, "PE 1 had 1048576 bytes")?;
    run("hoards", &["--heap", "64K"]).expect(2, "--heap")
}

program!(Exits, "exits", 2, |pe| { pe.global_exit(if pe.n_pes() > 2 { 3 } else { 0 }) });

fn an_exit_status_is_a_finding_unless_0() -> std::result::Result<(), Failed> {
    run("exits", &[]).expect(0, "nothing wrong")?;
    run("exits", &["--pes", "3"]).expect(1, "ended the job with status 3")
}

program!(Changes, "changes", 2, |pe| {
    use std::sync::atomic::{AtomicU32, Ordering};
    static RUNS: AtomicU32 = AtomicU32::new(0);
    let x = pe.alloc_zeroed::<u32>(1)?;
    for _ in 0..RUNS.fetch_add(1, Ordering::Relaxed) {
        pe.host().p(&x, 1, 0)?;
        pe.read(&x)?;
    }
    pe.free(x)?;
    Ok(String::new())
});

fn a_program_that_is_not_deterministic_is_refused() -> std::result::Result<(), Failed> {
    run("changes", &["--all"]).expect(2, "not deterministic")
}

/// PE 0 puts twice to PE 1, without a fence between: either may come last.
fn found_after_two_puts<B: Backend>(pe: &Pe<B>) -> Result<u32> {
    let x = pe.alloc_zeroed::<u32>(1)?;
    if pe.my_pe() == 0 {
        pe.host().p(&x, 1, 1)?;
        pe.host().p(&x, 2, 1)?;
    }
    pe.host().barrier_all()?;
    let found = pe.read(&x)?[0];
    pe.free(x)?;
    Ok(found)
}

program!(Races, "races", 2, |pe| {
    let found = found_after_two_puts(pe)?;
    onesided::expect_eq(found != 1, true, "the second put coming last")?;
    Ok(format!("PE {} found {found}", pe.my_pe()))
});

fn a_finding_can_need_a_random_schedule() -> std::result::Result<(), Failed> {
    run("races", &["--schedules", "1"]).expect(0, "PE 1 found 2")?;
    run("races", &["--profile", "nvlink", "--all"]).expect(0, ": complete)")?;
    let said = run("races", &[]);
    said.expect(1, "FINDING on schedule ")?;
    said.expect(1, "PE 1 found 2")?;
    run("races", &said.replay()).expect(1, "FINDING again: PE 1 failed")
}

program!(Spins, "spins", 2, |pe| {
    eprintln!("PE {} spins", pe.my_pe());
    loop {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
});

/// Nothing else can end it: it holds the processor that the simulator would notice the first Ctrl-C on.
#[cfg(unix)]
fn ctrl_c_twice_ends_a_pe_that_makes_no_call() -> std::result::Result<(), Failed> {
    use std::io::{BufRead as _, BufReader};
    let program = env::current_exe().expect("the path of this test");
    let mut child = Command::new(program).env(VARIABLE, Spins::NAME).stderr(Stdio::piped()).spawn()?;
    let mut lines = BufReader::new(child.stderr.take().expect("it is piped")).lines();
    for awaited in [" spins", "ending; once more to end at once"] {
        let said = lines.by_ref().map_while(std::result::Result::ok).any(|line| line.ends_with(awaited));
        let kill = Command::new("kill").args(["-INT", &child.id().to_string()]).status()?;
        if !said || !kill.success() {
            return Err(format!("it never said {awaited:?}, or could not be interrupted").into());
        }
    }
    match child.wait()?.code() {
        Some(130) => Ok(()),
        other => Err(format!("it ended with {other:?}").into()),
    }
}

program!(Unchecked, "unchecked", 2, |pe| {
    let found = found_after_two_puts(pe)?;
    Ok(format!("PE {} found {found}", pe.my_pe()))
});

fn results_that_differ_are_noted_and_no_finding() -> std::result::Result<(), Failed> {
    for arguments in [&[][..], &["--all"], &["--strategy", "random"]] {
        let said = run("unchecked", arguments);
        said.expect(0, "nothing wrong")?;
        said.expect(0, "note: the PEs' results differ between schedules (2 different ones)")?;
        let (_, replay) = said.out.split_once("One that differs from the first: ").expect("a command");
        let replay = replay.lines().next().and_then(|line| line.split_once(" -- ")).expect("its arguments").1;
        let first = said.out.lines().find(|line| line.starts_with("PE 1")).expect("its line");
        let other = if first == "PE 1 found 1" { "PE 1 found 2" } else { "PE 1 found 1" };
        run("unchecked", &replay.split(' ').collect::<Vec<_>>()).expect(0, other)?;
    }
    let file = tempfile::NamedTempFile::new()?;
    let path = file.path().to_str().expect("a path in UTF-8");
    run("unchecked", &["--json", path]).expect(0, "nothing wrong")?;
    let json: serde_json::Value = serde_json::from_slice(&std::fs::read(path)?)?;
    let differing = &json["differing"];
    assert_eq!((&json["status"], &differing["results"]), (&"ok".into(), &"2".into()));
    assert!(differing["lines"][1] != json["lines"][1] && differing["replay"].is_string(), "{differing}");
    let same = run("unchecked", &["--profile", "nvlink", "--all"]);
    same.expect(0, "nothing wrong")?;
    if same.out.contains("note: ") {
        return Err(format!("nothing differs:\n{}", same.out).into());
    }
    Ok(())
}
