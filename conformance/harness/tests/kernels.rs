//! Programs with kernels that compute for long, race, or do not load: what the harness prints, and with which status it ends.
//!
//! This test is its own program: started with a name in the environment, it runs that program instead of the tests.

use std::env;
use std::process::{Command, ExitCode};

use libtest_mimic::Failed;
use onesided::{Backend, Grid, Pe, Result, Source, SymmetricBuf, args, expect_eq};
use onesided_harness::Program;

mod common;
use common::{Said, VARIABLE, program, run, tests};

tests! {
    play;
    a_long_block_is_given_up,
    time_ends_a_run_while_a_kernel_computes,
    profiles_are_not_compared_where_a_kernel_races,
    a_kernel_that_does_not_load_is_no_finding,
    what_a_kernel_prints_says_who_printed_it,
    nobody_need_read_what_a_kernel_prints,
    a_quiet_is_the_pes_or_its_threads,
    loads_find_the_newest_values_or_the_oldest,
    #[cfg(unix)]
    one_signal_ends_a_kernel_that_computes,
}

/// Runs the program of that name.
fn play(name: &str) -> ExitCode {
    match name {
        Counts::NAME => onesided_harness::main(Counts),
        CountsForEver::NAME => onesided_harness::main(CountsForEver),
        ReadsEarly::NAME => onesided_harness::main(ReadsEarly),
        Broken::NAME => onesided_harness::main(Broken),
        QuietForOthers::NAME => onesided_harness::main(QuietForOthers),
        LooksAndLoads::NAME => onesided_harness::main(LooksAndLoads),
        Prints::NAME => onesided_harness::main(Prints),
        other => panic!("{other} is no program of this file"),
    }
}

/// Every round stores another value, so no look at the thread shows that nothing can end the loop.
const COUNT: &str = include_str!("../../../backend-sim/tests/count.ptx");

/// A kernel of one thread counts: four instructions a round.
fn count(pe: &Pe<impl Backend>, rounds: u32) -> Result<String> {
    let word = pe.alloc_zeroed::<u32>(1)?;
    launch_count(pe, &word, rounds)?;
    let counted = pe.read_one(&word)?;
    pe.free(word)?;
    Ok(format!("counted {counted}"))
}

fn launch_count(pe: &Pe<impl Backend>, word: &SymmetricBuf<u32>, rounds: u32) -> Result<()> {
    let module = pe.module(&Source::ptx("count.ptx", COUNT))?;
    let stream = pe.stream()?;
    // SAFETY: the kernel takes a pointer to a word, and a number.
    unsafe { pe.on(&stream).launch(&module.kernel("count")?, &Grid::new(1, 1), args![word, rounds])? };
    pe.synchronize(&stream)
}

program!(Counts, "counts", 2, |pe| { count(pe, 2000) });

/// What stands behind `Next: `.
fn next(said: &Said) -> &str {
    said.out.split_once("\nNext: ").map_or("", |(_, next)| next)
}

fn a_long_block_is_given_up() -> std::result::Result<(), Failed> {
    for all in [&[][..], &["--all"]] {
        let said = run("counts", &[all, &["--max-instructions", "4000"]].concat());
        said.expect(
            3,
            "GIVEN UP in order: instruction limit: given up after 4000 instructions of a block of kernel count on ",
        )?;
        said.expect(3, " --max-instructions 4000\n")?;
        if !next(&said).starts_with("--max-instructions 40000 (a higher limit), --report") {
            return Err(format!("no higher limit is suggested: {}", next(&said)).into());
        }
        run("counts", &said.replay()).expect(3, "GIVEN UP again: instruction limit")?;
        run("counts", all).expect(0, "counted 2000")?;
    }
    Ok(())
}

program!(CountsForEver, "counts for ever", 2, |pe| {
    eprintln!("PE {} counts", pe.my_pe());
    count(pe, u32::MAX)
});

/// The most that can be asked for.
const NO_LIMIT: [&str; 2] = ["--max-instructions", "18446744073709551615"];

/// Where time is over within the first run, nothing was seen.
fn time_ends_a_run_while_a_kernel_computes() -> std::result::Result<(), Failed> {
    for kind in [&[][..], &["--all"], &["--strategy", "plain"]] {
        let said = run("counts for ever", &[&NO_LIMIT[..], &["--time", "1"], kind].concat());
        said.expect(3, "nothing wrong in 0 schedules (")?;
        said.expect(3, ", bounded by 1 s; 0 steps")?;
        if !next(&said).contains("--time 10 (a higher limit)") {
            return Err(format!("no higher limit is suggested: {}", next(&said)).into());
        }
    }
    run("counts for ever", &[&NO_LIMIT[..], &["--time", "1", "--pes", "2,3"]].concat())
        .expect(3, "not complete: 0, bounded by 1 s")
}

// A kernel of PE 0 counts, and PE 1 does not wait for that.
program!(ReadsEarly, "reads early", 2, |pe| {
    let word = pe.alloc_zeroed::<u32>(1)?;
    if pe.my_pe() == 0 {
        launch_count(pe, &word, 3)?;
        pe.free(word)?;
        return Ok(String::new());
    }
    let found = pe.host().g(&word, 0)?;
    pe.free(word)?;
    Ok(format!("found {found}"))
});

/// Its stores are no steps of a proof: so what PE 1 can find is not known, and there is nothing to compare.
fn profiles_are_not_compared_where_a_kernel_races() -> std::result::Result<(), Failed> {
    let all = ["--all", "--profile", "all"];
    let said = run("reads early", &all);
    said.expect(1, "fails: race at count.ptx:")?;
    said.expect(1, "\nnot compared, because there is a race, and a proof does not look at every order behind one (--races note does): spec, ")?;
    if said.out.contains("the same") {
        return Err(format!("profiles are compared: {}", said.out).into());
    }
    run("reads early", &[&all[..], &["--races", "note"]].concat()).expect(0, ": the same 4 outcomes\n")
}

program!(Prints, "prints", 2, |pe| {
    let values = pe.alloc_zeroed::<i32>(2)?;
    let module = pe.module(&Source::ptx("report.cu", include_str!("../../../backend-sim/ptx/kernels/report.ptx")))?;
    let stream = pe.stream()?;
    // SAFETY: the kernel takes a pointer to a number for each thread, and a number.
    unsafe { pe.on(&stream).launch(&module.kernel("report")?, &Grid::new(1, 2), args![&values, 0.5_f64])? };
    pe.synchronize(&stream)?;
    pe.free(values)?;
    Ok(String::new())
});

/// Each line of `printf` once for each thread of each PE: the other schedules of a search print nothing.
fn what_a_kernel_prints_says_who_printed_it() -> std::result::Result<(), Failed> {
    for options in [&[][..], &["--all"], &["--schedules", "5"], &["--profile", "unordered-nic"]] {
        let said = run("prints", options);
        said.expect(0, "prints")?;
        for (pe, thread) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
            for line in
                [format!("thread {thread} of block 0:     0|7     |0000beef|"), "0.500000 5.000e-01 0.5 ".to_string()]
            {
                let line = format!("PE {pe}, report, block 0, thread {thread}: {line}");
                let found = said.out.lines().filter(|said| said.starts_with(&line)).count();
                if found != 1 {
                    return Err(format!("{options:?}: {found} times '{line}':\n{}", said.out).into());
                }
            }
        }
    }
    Ok(())
}

fn nobody_need_read_what_a_kernel_prints() -> std::result::Result<(), Failed> {
    let (reader, writer) = std::io::pipe()?;
    drop(reader);
    let status = Command::new(env::current_exe()?).env(VARIABLE, Prints::NAME).stdout(writer).status()?;
    if status.success() { Ok(()) } else { Err(format!("{status}").into()) }
}

// One thread completes what the other has put, of which it knows by a counter without fences.
program!(QuietForOthers, "quiet for others", 2, |pe| {
    let text = include_str!("../../../backend-sim/ptx/kernels/threads.broken.ptx");
    let module = pe.module(&Source::ptx("threads.cu", text))?;
    let (data, seen) = (pe.alloc_zeroed::<i32>(128)?, pe.alloc_zeroed::<i32>(64)?);
    let signal = pe.alloc_zeroed::<u64>(1)?;
    let stream = pe.stream()?;
    let arguments = args![&data, &signal, &seen];
    // SAFETY: the kernel takes these three, and stays inside them.
    unsafe { pe.on(&stream).launch(&module.kernel("quiet_for_others")?, &Grid::new(1, 2), arguments)? };
    pe.on(&stream).barrier_all()?;
    pe.synchronize(&stream)?;
    pe.free(signal)?;
    pe.free(seen)?;
    pe.free(data)?;
    Ok(String::new())
});

fn a_quiet_is_the_pes_or_its_threads() -> std::result::Result<(), Failed> {
    for pe in [&[][..], &["--quiet", "pe"]] {
        run("quiet for others", &[pe, &["--all"]].concat()).expect(0, ": proved for 2 PEs under spec")?;
    }
    let said = run("quiet for others", &["--all", "--quiet", "thread"]);
    said.expect(1, "data race: delivery of p at threads.cu:135 by PE ")?;
    said.expect(1, "under spec, where a kernel's quiet is its thread's, with")?; // so says the schedule, too
    run("quiet for others", &said.replay()).expect(1, "FINDING again: data race")?;
    run("quiet for others", &["--quiet", "warp"]).expect(2, "[possible values: pe, thread]")
}

// A load stands behind a relaxed look at a flag, without a fence.
program!(LooksAndLoads, "looks and loads", 2, |pe| {
    let text = include_str!("../../../backend-sim/ptx/kernels/stale.ptx");
    let module = pe.module(&Source::ptx("stale.cu", text))?;
    let (words, seen) = (pe.alloc_zeroed::<u64>(2)?, pe.alloc_zeroed::<u64>(1)?);
    let stream = pe.stream()?;
    // SAFETY: the kernel takes two words and one, and stays inside them.
    unsafe { pe.on(&stream).launch(&module.kernel("looks")?, &Grid::new(1, 1).collective(), args![&words, &seen])? };
    pe.on(&stream).barrier_all()?;
    pe.synchronize(&stream)?;
    expect_eq(&[pe.read_one(&seen)?], &[pe.my_pe() as u64], "what the load has found")?;
    pe.free(seen)?;
    pe.free(words)?;
    Ok(String::new())
});

fn loads_find_the_newest_values_or_the_oldest() -> std::result::Result<(), Failed> {
    let said = run("looks and loads", &["--all"]);
    said.expect(0, "if the strong accesses of each thread keep their order (lint stale-load)")?;
    said.expect(0, "Next: --loads oldest (what strong loads can miss)")?;
    let said = run("looks and loads", &["--all", "--loads", "oldest"]);
    said.expect(1, "what the load has found is [0], expected [1]")?;
    said.expect(1, "under spec, where strong loads find the oldest values that PTX allows, with")?; // so says the schedule, too
    run("looks and loads", &said.replay()).expect(1, "what the load has found is [0], expected [1]")?;
    run("looks and loads", &["--loads", "any"]).expect(2, "[possible values: newest, oldest]")
}

program!(Broken, "broken", 2, |pe| {
    pe.module(&Source::ptx("broken.ptx", COUNT.replace("add.u32", "odd.u32")))?;
    Ok(String::new())
});

/// The program could not run, as with a precondition that does not hold.
fn a_kernel_that_does_not_load_is_no_finding() -> std::result::Result<(), Failed> {
    for options in [&[][..], &["--all"], &["--robust"]] {
        let said = run("broken", options);
        said.expect(2, "error: PE ")?;
        said.expect(2, "module: broken.ptx: ")?;
        if said.out.contains("FINDING") {
            return Err(said.out.into());
        }
    }
    Ok(())
}

/// It need not be ended by force, and prints its summary.
#[cfg(unix)]
fn one_signal_ends_a_kernel_that_computes() -> std::result::Result<(), Failed> {
    use std::io::{BufRead as _, BufReader, Read as _};
    use std::process::{Command, Stdio};
    for (signal, status) in [("-INT", 130), ("-TERM", 143)] {
        let mut counts = Command::new(env::current_exe().expect("the path of this test"));
        counts.env(VARIABLE, CountsForEver::NAME).args(NO_LIMIT);
        let mut child = counts.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
        let mut err = BufReader::new(child.stderr.take().expect("it is piped"));
        err.read_line(&mut String::new())?; // it has begun
        let kill = Command::new("kill").args([signal, &child.id().to_string()]).status()?;
        let mut said = String::new();
        child.stdout.take().expect("it is piped").read_to_string(&mut said)?;
        let end = Said { status: child.wait()?.code(), out: said, err: format!("{kill}") };
        end.expect(status, "nothing wrong in 0 schedules (in order)")?;
        end.expect(status, ", ended by you; 0 steps")?;
    }
    Ok(())
}
