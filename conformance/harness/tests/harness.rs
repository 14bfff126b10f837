//! Programs that go wrong, each in its own way: what the harness prints, and with which status it ends.
//!
//! This test is its own program: started with a name in the environment, it runs that program instead of the tests.

use std::env;
use std::process::{Command, ExitCode, Stdio};

use libtest_mimic::Failed;
use onesided::{Backend, Cmp, Pe, Result, SignalOp, SymmetricSlice, expect_eq};
use onesided_harness::Program;

mod common;
use common::{Said, VARIABLE, arguments_of, program, run, tests};

tests! {
    play;
    a_panic_is_a_finding_and_is_printed_once,
    a_deadlock_names_who_waits,
    an_endless_run_is_given_up,
    a_loop_that_polls_is_no_finding_of_an_exhaustive_search,
    a_poll_that_nothing_ends_is_named_by_a_search_of_all,
    a_search_that_comes_to_a_limit_looks_at_random_schedules,
    an_endless_loop_bounds_a_search,
    a_lock_is_no_finding_of_an_exhaustive_search,
    a_search_that_is_bounded_is_not_complete,
    every_bound_ends_a_search,
    schedules_are_drawn_in_several_ways,
    a_full_heap_is_no_finding,
    an_exit_status_is_a_finding_unless_0,
    a_program_that_is_not_deterministic_is_refused,
    a_finding_can_need_a_random_schedule,
    #[cfg(unix)]
    ctrl_c_twice_ends_a_pe_that_makes_no_call,
    #[cfg(unix)]
    one_sigterm_ends_a_pe_that_makes_no_call,
    #[cfg(unix)]
    a_signal_ends_an_explanation,
    #[cfg(unix)]
    a_pe_that_ends_the_process_does_not_pass,
    #[cfg(unix)]
    a_stack_that_is_full_has_its_pe_named,
    the_race_that_changes_a_result_comes_first,
    results_that_differ_are_noted_and_no_finding,
}

/// Runs the program of that name.
fn play(name: &str) -> ExitCode {
    match name {
        Panics::NAME => onesided_harness::main(Panics),
        Deadlocks::NAME => onesided_harness::main(Deadlocks),
        Polls::NAME => onesided_harness::main(Polls),
        PollsForTheLast::NAME => onesided_harness::main(PollsForTheLast),
        ReadsAgain::NAME => onesided_harness::main(ReadsAgain),
        Hoards::NAME => onesided_harness::main(Hoards),
        Exits::NAME => onesided_harness::main(Exits),
        Changes::NAME => onesided_harness::main(Changes),
        Races::NAME => onesided_harness::main(Races),
        Spins::NAME => onesided_harness::main(Spins),
        Explains::NAME => onesided_harness::main(Explains),
        Leaves::NAME => onesided_harness::main(Leaves),
        Descends::NAME => onesided_harness::main(Descends),
        Unchecked::NAME => onesided_harness::main(Unchecked),
        Bulk::NAME => onesided_harness::main(Bulk),
        WaitsByPolling::NAME => onesided_harness::main(WaitsByPolling),
        SpinLock::NAME => onesided_harness::main(SpinLock),
        Tickets::NAME => onesided_harness::main(Tickets),
        TwoRaces::NAME => onesided_harness::main(TwoRaces),
        TicketLock::NAME => onesided_harness::main(TicketLock),
        other => panic!("{other} is no program of this file"),
    }
}

/// The line that says what would help next.
fn next(said: &Said) -> &str {
    said.out.split_once("\nNext: ").expect("an advice").1.lines().next().expect("a line")
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
    run("polls", &said.replay()).expect(3, "GIVEN UP again: step limit")?;
    if !next(&said).starts_with("--max-steps 10000 (a higher limit)") {
        return Err(format!("no higher limit is suggested: {}", next(&said)).into());
    }
    Ok(())
}

/// The run in order comes to the step limit. A search of all takes no poll in vain.
fn a_poll_that_nothing_ends_is_named_by_a_search_of_all() -> std::result::Result<(), Failed> {
    let said = run("polls", &["--all", "--max-steps", "1000"]);
    said.expect(3, "GIVEN UP on schedule 2: polls bounded")?;
    said.expect(3, "PE 0: in signal_fetch at conformance/harness/tests/harness.rs:")?;
    said.expect(3, ", waits for a change of buf0+0..8 on PE 0")?;
    said.expect(
        3,
        "not proved for 2 PEs under spec with up to 4 pieces a transfer: nothing wrong in 1 class, polls bounded in 1",
    )
}

program!(ReadsAgain, "reads again", 2, |pe| {
    let words = pe.alloc_zeroed::<u64>(2)?;
    if pe.my_pe() == 1 {
        (1..=2).try_for_each(|value| pe.host().p(words.at(0), value, 0))?;
        pe.host().quiet()?;
    } else {
        for times in 1.. {
            if pe.read_one(words.at(0))? > 0 {
                break;
            }
            pe.write(words.at(1), &[times])?;
        }
        expect_eq(pe.read_one(words.at(0))?, 2, "the last value")?;
    }
    pe.free(words)?;
    Ok(String::new())
});

/// A loop that counts in memory is no poll: a search of all may repeat it for ever before anything else.
fn a_search_that_comes_to_a_limit_looks_at_random_schedules() -> std::result::Result<(), Failed> {
    let said = run("reads again", &["--all", "--races", "note", "--max-steps", "1000"]);
    said.expect(1, ", besides the search of all: PE 0 failed: check: the last value is 1, expected 2")?;
    said.expect(1, "1 given up at a limit of steps or instructions, ended there; besides, ")?;
    said.expect(1, " from seed 0: the last one fails")?;
    run("reads again", &said.replay()).expect(1, "FINDING again: PE 0 failed")
}

program!(WaitsByPolling, "waits by polling", 2, |pe| {
    let words = pe.alloc_zeroed::<u64>(1)?;
    if pe.my_pe() == 1 {
        pe.host().signal_op(words.signal(0), 1, SignalOp::Set, 0)?;
    } else {
        while pe.host().signal_fetch(words.signal(0))? == 0 {}
    }
    pe.free(words)?;
    Ok(String::new())
});

/// In order and at random its loop ends. Of all schedules, each poll is either too early, or it is not.
fn a_loop_that_polls_is_no_finding_of_an_exhaustive_search() -> std::result::Result<(), Failed> {
    run("waits by polling", &[]).expect(0, "nothing wrong")?;
    let said = run("waits by polling", &["--all"]);
    said.expect(0, "waits by polling: proved for 2 PEs under spec with up to 4 pieces a transfer: 2 classes")?;
    said.expect(0, "if no loop counts more than 32 polls")
}

program!(PollsForTheLast, "polls for the last", 2, |pe| {
    let words = pe.alloc_zeroed::<u64>(1)?;
    if pe.my_pe() == 1 {
        (1..=2).try_for_each(|value| pe.host().signal_op(words.signal(0), value, SignalOp::Set, 0))?;
    } else {
        while pe.host().signal_fetch(words.signal(0))? != 2 {}
    }
    pe.free(words)?;
    Ok(String::new())
});

/// Where the second signal arrives first, the loop may have no end. That is no deadlock, and no proof.
fn an_endless_loop_bounds_a_search() -> std::result::Result<(), Failed> {
    let said = run("polls for the last", &["--all"]);
    said.expect(3, "polls bounded: every PE that is left polls without a change")?;
    said.expect(3, "PE 0: in signal_fetch at conformance/harness/tests/harness.rs:")?;
    said.expect(
        3,
        "polls for the last: not proved for 2 PEs under spec with up to 4 pieces a transfer: nothing wrong in ",
    )?;
    run("polls for the last", &said.replay()).expect(3, "polls bounded")?;
    if said.out.contains("FINDING") || !next(&said).starts_with("the same without --all (a loop that gives up") {
        return Err(said.out.into());
    }
    Ok(())
}

program!(SpinLock, "spin lock", 2, |pe| {
    let words = pe.alloc_zeroed::<u64>(2)?;
    while pe.host().atomic_compare_swap(words.at(0), 0, 1, 0)? != 0 {}
    count(pe, words.at(1))?;
    pe.host().atomic_set(words.at(0), 0, 0)?;
    both_counted(pe, words.at(1))?;
    pe.free(words)?;
    Ok(String::new())
});

program!(TicketLock, "ticket lock", 2, |pe| {
    let words = pe.alloc_zeroed::<u64>(3)?;
    let mine = pe.host().atomic_fetch_inc(words.at(2), 0)?;
    while pe.host().atomic_fetch(words.at(0), 0)? != mine {}
    count(pe, words.at(1))?;
    pe.host().atomic_inc(words.at(0), 0)?;
    both_counted(pe, words.at(1))?;
    pe.free(words)?;
    Ok(String::new())
});

/// What a lock protects: PE 0's word is read, and written one larger.
fn count(pe: &Pe<impl Backend>, word: SymmetricSlice<'_, u64>) -> Result<()> {
    let found = pe.host().g(word, 0)?;
    pe.host().p(word, found + 1, 0)?;
    pe.host().quiet()
}

fn both_counted(pe: &Pe<impl Backend>, word: SymmetricSlice<'_, u64>) -> Result<()> {
    pe.host().barrier_all()?;
    expect_eq(pe.host().g(word, 0)?, 2, "the count")
}

/// Locks poll too. Who fails to take one tries again when it has changed.
fn a_lock_is_no_finding_of_an_exhaustive_search() -> std::result::Result<(), Failed> {
    for name in ["spin lock", "ticket lock"] {
        run(name, &[]).expect(0, "nothing wrong")?;
        let said = run(name, &["--all"]);
        said.expect(0, ": proved for 2 PEs under spec with up to 4 pieces a transfer: 4 classes")?;
    }
    Ok(())
}

// All PEs put to the same array of PE 0: some put comes last.
program!(Bulk, "bulk", 4, |pe| {
    let (mine, target) = (pe.alloc::<u32>(4)?, pe.alloc_zeroed::<u32>(4)?);
    pe.write(&mine, &[pe.my_pe() as u32; 4])?;
    pe.host().put(&target, &mine, 0)?;
    pe.host().barrier_all()?;
    let found = pe.read(&target)?;
    pe.free(target)?;
    pe.free(mine)?;
    Ok(format!("{found:?}"))
});

fn a_search_that_is_bounded_is_not_complete() -> std::result::Result<(), Failed> {
    let said = run("unchecked", &["--races", "note", "--all", "--schedules", "1"]);
    let not_proved = "unchecked: not proved for 2 PEs under spec with up to 4 pieces a transfer: nothing wrong in 1 class of \
                      about 2, bounded by 1 schedule\n";
    said.expect(3, not_proved)?;
    // Its transfers are words: pieces would change nothing, and there cannot be fewer PEs.
    let limits = "--schedules 10 (a higher limit), --schedules 20000 instead of --all (random ones)";
    assert_eq!(next(&said), limits);
    let several = run("bulk", &["--races", "note", "--all", "--schedules", "1"]);
    let smaller = "--pieces 1 (transfers arrive whole: far fewer schedules), --pes 3 (fewer PEs)";
    assert_eq!(next(&several), format!("{smaller}, {limits}"));
    let proved = "unchecked: proved for 2 PEs under spec with up to 4 pieces a transfer: 2 classes, 2 of them with races, no deadlock, nothing else\n";
    run("unchecked", &["--races", "note", "--all"]).expect(0, proved)
}

/// A search of more classes than anybody waits for ends by each of its bounds, and says which of them would let it go on.
fn every_bound_ends_a_search() -> std::result::Result<(), Failed> {
    for (bound, said_so, more) in [
        (["--schedules", "30"], "bounded by 30 schedules", "--schedules 300 (a higher limit)"),
        (["--time", "1"], "bounded by 1 s", "--time 10 (a higher limit)"),
        (["--memory", "9K"], "bounded by 9 KiB", "--memory 90K (a higher limit)"),
    ] {
        let said = run("tickets", &[&["--all", "--pes", "12"][..], &bound].concat());
        said.expect(3, "tickets: not proved for 12 PEs under spec with up to 4 pieces a transfer: nothing wrong in ")?;
        said.expect(3, said_so)?;
        said.expect(3, more)?;
    }
    let random = run("tickets", &["--time", "1"]);
    random.expect(
        0,
        " random from seed 0: 6 classes) for 3 PEs under spec with up to 4 pieces a transfer, bounded by 1 s; ",
    )?;
    let file = tempfile::NamedTempFile::new()?;
    let path = file.path().to_str().expect("a path in UTF-8");
    run("tickets", &["--all", "--schedules", "5", "--json", path]).expect(3, "bounded by 5 schedules")?;
    let json: serde_json::Value = serde_json::from_slice(&std::fs::read(path)?)?;
    assert_eq!((&json["status"], &json["bound"]), (&"not complete".into(), &"bounded by 5 schedules".into()));
    assert_eq!((&json["complete"], &json["estimated"]), (&false.into(), &6.into()));
    assert!(json["proof"].as_str().is_some_and(|proof| proof.starts_with("not proved for 3 PEs")), "{json}");
    Ok(())
}

/// Each strategy says how it draws and how many classes it visits; a finding by it comes back.
fn schedules_are_drawn_in_several_ways() -> std::result::Result<(), Failed> {
    for (strategy, how) in [
        ("plain", "100 schedules (random from seed 3: 6 classes)"),
        ("pos", "100 schedules (random by pos from seed 3: 6 classes)"),
        ("pct", "100 schedules (random by pct:3 from seed 3: 6 classes)"),
        ("pct:2", "100 schedules (random by pct:2 from seed 3: 6 classes)"),
    ] {
        let said = run("tickets", &["--strategy", strategy, "--schedules", "100", "--seed", "3"]);
        said.expect(0, &format!("tickets: nothing wrong in {how} for 3 PEs under spec"))?;
        let found = run("races", &["--races", "note", "--strategy", strategy]);
        found.expect(1, "FINDING on schedule ")?;
        run("races", &found.replay()).expect(1, "FINDING again: PE 1 failed")?;
    }
    let file = tempfile::NamedTempFile::new()?;
    let path = file.path().to_str().expect("a path in UTF-8");
    run("tickets", &["--strategy", "pct:2", "--json", path]).expect(0, "nothing wrong")?;
    let json: serde_json::Value = serde_json::from_slice(&std::fs::read(path)?)?;
    assert_eq!((&json["search"], &json["strategy"], &json["classes"]), (&"random".into(), &"pct:2".into(), &6.into()));
    Ok(())
}

program!(Tickets, "tickets", 3, |pe| {
    let counter = pe.alloc_zeroed::<u64>(1)?;
    let mine = pe.host().atomic_fetch_inc(&counter, 0)?;
    pe.free(counter)?;
    expect_eq(mine < pe.n_pes() as u64, true, "a ticket for each")?;
    Ok(String::new())
});

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
fn found_after_two_puts(pe: &Pe<impl Backend>) -> Result<u32> {
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
    run("races", &["--races", "note", "--schedules", "1"]).expect(0, "PE 1 found 2")?;
    run("races", &["--profile", "nvlink", "--all"]).expect(0, "races: proved for 2 PEs under nvlink")?;
    let said = run("races", &["--races", "note"]);
    said.expect(1, "FINDING on schedule ")?;
    said.expect(1, "PE 1 found 2")?;
    run("races", &said.replay()).expect(1, "FINDING again: PE 1 failed")?;
    run("races", &["--schedules", "1"]).expect(1, "FINDING in order: data race: delivery of p at ")
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

/// As `timeout` ends a program that hangs in CI.
#[cfg(unix)]
fn one_sigterm_ends_a_pe_that_makes_no_call() -> std::result::Result<(), Failed> {
    use std::io::{BufRead as _, BufReader, Read as _};
    let program = env::current_exe().expect("the path of this test");
    let start = |options: &[&str]| {
        let mut spins = Command::new(&program);
        let mut child = spins.env(VARIABLE, Spins::NAME).args(options).stderr(Stdio::piped()).spawn()?;
        let mut err = BufReader::new(child.stderr.take().expect("it is piped"));
        err.read_line(&mut String::new())?; // it spins
        let kill = Command::new("kill").args(["-TERM", &child.id().to_string()]).status()?;
        if kill.success() { Ok((child, err)) } else { Err(Failed::from("it could not be interrupted")) }
    };
    let started = [&[][..], &["--all"], &["--robust"]].map(start); // they all wait at the same time
    for started in started {
        let (mut child, mut err) = started?;
        let mut said = String::new();
        err.read_to_string(&mut said)?;
        let end = Said { status: child.wait()?.code(), out: String::new(), err: said };
        end.expect(143, "PE 0 has made no call for 5 s, since it was started. It cannot be interrupted")?;
    }
    Ok(())
}

// What repairs the race leaves 9! classes, so that it takes long to try it.
program!(Explains, "explains", 9, |pe| {
    let (data, counter) = (pe.alloc_zeroed::<u64>(1)?, pe.alloc_zeroed::<u64>(1)?);
    if pe.my_pe() == 0 {
        pe.host().p(&data, 7, 1)?;
    }
    pe.host().sync_all()?; // completes no put
    if pe.my_pe() == 1 {
        pe.read_one(&data)?;
    }
    pe.host().atomic_fetch_inc(&counter, 0)?;
    pe.free(counter)?;
    pe.free(data)?;
    Ok(format!("PE {} is here", pe.my_pe()))
});

/// The finding is kept, and printed.
#[cfg(unix)]
fn a_signal_ends_an_explanation() -> std::result::Result<(), Failed> {
    use std::io::{BufRead as _, BufReader, Read as _};
    for (signal, status) in [("-INT", 130), ("-TERM", 143)] {
        let mut explains = Command::new(env::current_exe().expect("the path of this test"));
        let mut child = explains.env(VARIABLE, Explains::NAME).arg("--explain").stdout(Stdio::piped()).spawn()?;
        let mut out = BufReader::new(child.stdout.take().expect("it is piped"));
        out.read_line(&mut String::new())?; // the run in order is over, and it races
        let kill = Command::new("kill").args([signal, &child.id().to_string()]).status()?;
        let mut said = String::new();
        out.read_to_string(&mut said)?;
        let end = Said { status: child.wait()?.code(), out: said, err: format!("{kill}") };
        end.expect(status, "FINDING in order: data race: delivery of p at ")?;
        end.expect(status, "Replay it: ")?;
    }
    Ok(())
}

program!(Leaves, "leaves", 2, |pe| {
    let word = pe.alloc_zeroed::<u64>(1)?;
    if pe.my_pe() == 1 {
        std::process::exit(0);
    }
    pe.free(word)?;
    Ok(String::new())
});

#[cfg(unix)]
fn a_pe_that_ends_the_process_does_not_pass() -> std::result::Result<(), Failed> {
    for options in [&[][..], &["--all"], &["--json", "-"], &["--schedules", "9"]] {
        run("leaves", options)
            .expect(2, "PE 1 ended the process (std::process::exit, or C's exit) after its call at ")?;
    }
    Ok(())
}

// In some orders only, which another thread of the search may be the first to run.
program!(Descends, "descends", 2, |pe| {
    fn descend(levels: usize) -> usize {
        let room = std::hint::black_box([levels; 64]);
        if levels == 0 { 0 } else { descend(levels - 1) + room[1] }
    }
    let found = found_after_two_puts(pe)?;
    Ok(descend(if found == 1 { 1_000_000 } else { 1 }).to_string())
});

#[cfg(unix)]
fn a_stack_that_is_full_has_its_pe_named() -> std::result::Result<(), Failed> {
    let run = |options: &[&str]| run("descends", &[&["--races", "note", "--stack", "64K"], options].concat());
    run(&["--schedules", "1"]).expect(0, "nothing wrong")?;
    for options in [&["--all"][..], &["--all", "--jobs", "4"], &["--schedules", "100"]] {
        let said = run(options);
        let named = said.err.contains("PE 1 overflowed its stack of 64 KiB; its last call was at ");
        if !named || said.status.is_some() {
            return Err(format!("{options:?} ended with {:?}:\n{}", said.status, said.err).into());
        }
    }
    Ok(())
}

program!(Unchecked, "unchecked", 2, |pe| {
    let found = found_after_two_puts(pe)?;
    Ok(format!("PE {} found {found}", pe.my_pe()))
});

fn results_that_differ_are_noted_and_no_finding() -> std::result::Result<(), Failed> {
    for arguments in [&[][..], &["--all"], &["--strategy", "plain"]] {
        let said = run("unchecked", &[&["--races", "note"], arguments].concat());
        said.expect(0, "note: the PEs' results differ between schedules (2 different ones)")?;
        let (_, replay) = said.out.split_once("One that differs from the first: ").expect("a command");
        let replay = arguments_of(replay.lines().next().expect("a line"));
        let first = said.out.lines().find(|line| line.starts_with("PE 1")).expect("its line");
        let other = if first == "PE 1 found 1" { "PE 1 found 2" } else { "PE 1 found 1" };
        run("unchecked", &replay).expect(0, other)?;
    }
    let file = tempfile::NamedTempFile::new()?;
    let path = file.path().to_str().expect("a path in UTF-8");
    run("unchecked", &["--races", "note", "--json", path]).expect(0, "nothing wrong")?;
    let json: serde_json::Value = serde_json::from_slice(&std::fs::read(path)?)?;
    let differing = &json["differing"];
    assert_eq!((&json["status"], &differing["results"]), (&"ok".into(), &"2".into()));
    assert!(differing["lines"][1] != json["lines"][1] && differing["replay"].is_string(), "{differing}");
    let same = run("unchecked", &["--profile", "nvlink", "--all"]);
    same.expect(0, "proved for 2 PEs under nvlink")?;
    if same.out.contains("note: ") {
        return Err(format!("nothing differs:\n{}", same.out).into());
    }
    Ok(())
}

// The first race is of two puts of the same value. The second one is read.
program!(TwoRaces, "two races", 2, |pe| {
    let (same, value) = (pe.alloc_zeroed::<u64>(1)?, pe.alloc_zeroed::<u64>(1)?);
    let mut found = 0;
    if pe.my_pe() == 0 {
        pe.host().p(&same, 7, 1)?;
        pe.host().p(&same, 7, 1)?;
        pe.host().p(&value, 7, 1)?;
    } else {
        found = pe.read_one(&value)?; // READ
    }
    pe.free(value)?;
    pe.free(same)?;
    Ok(format!("found {found}"))
});

fn the_race_that_changes_a_result_comes_first() -> std::result::Result<(), Failed> {
    let line = include_str!("harness.rs").lines().position(|line| line.ends_with("// READ")).expect("it is there") + 1;
    let said = run("two races", &[]);
    let first = said.out.lines().find(|line| line.starts_with("FINDING")).unwrap_or_default();
    if !first.contains(&format!("read at conformance/harness/tests/harness.rs:{line} by PE 1")) {
        return Err(said.out.into());
    }
    said.expect(1, "one more pair of calls races")?;
    let noted = run("two races", &["--races", "note", "--schedules", "1"]);
    noted.expect(0, "\nnote: accesses race, which is no finding with --races note: data race: ")?;
    noted.expect(0, "\n    one more pair of calls races (--all-races prints both)\n")?;
    said.expect(1, "It matters: PE 1 returns \"found 0\" instead of \"found 7\"")
}
