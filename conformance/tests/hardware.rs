//! The suite on GPUs, without GPUs: this test is its own worker. Started with the word `play`, it says what PEs say, and
//! goes wrong in the ways in which PEs do.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode, exit};
use std::sync::Arc;
use std::thread::sleep;
use std::time::Duration;

use libtest_mimic::{Arguments, Failed, Trial};
use onesided_conformance::case::{Case, Seen};
use onesided_conformance::check::Status;
use onesided_conformance::expected::Folder;
use onesided_conformance::hardware::{self, Ran, Results, Settings};
use onesided_conformance::known::Known;
use onesided_harness::hardware::job::{End, Script, follow};
use onesided_harness::hardware::protocol::{Failure, Message, Missing, Panic, Ready};
use onesided_harness::launch::Job;
use onesided_harness::tool::interrupt;
use onesided_sim::Sim;

/// Runs of each case.
const RUNS: u64 = 3;
/// The case in which scripts go wrong; the one before it and the one after it must not suffer.
const WRONG: &str = "demo/two";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    if arguments.get(1).is_some_and(|word| word == "play") {
        play(&arguments[2], &arguments[3..]);
        return ExitCode::SUCCESS;
    }
    if arguments.get(1).is_some_and(|word| word == INTERRUPTED) {
        play_interrupted();
        return ExitCode::SUCCESS;
    }
    let trial = |name: &str, test: fn()| {
        Trial::test(name, move || {
            test();
            Ok::<(), Failed>(())
        })
    };
    let trials = vec![
        trial("cases_that_agree_pass", cases_that_agree_pass),
        trial("an_outcome_that_is_not_allowed_fails_its_case", an_outcome_that_is_not_allowed_fails_its_case),
        trial("an_error_and_a_panic_cost_one_case", an_error_and_a_panic_cost_one_case),
        trial("a_case_that_is_meant_to_break_passes_when_it_does", a_case_that_is_meant_to_break_passes_when_it_does),
        trial("a_hang_costs_one_case", a_hang_costs_one_case),
        trial("a_crash_costs_one_case_and_shows_what_was_printed", a_crash_costs_one_case_and_shows_what_was_printed),
        trial("an_exit_is_the_librarys_or_an_outcome", an_exit_is_the_librarys_or_an_outcome),
        trial("a_job_that_does_not_start_is_given_up", a_job_that_does_not_start_is_given_up),
        trial("pes_that_differ_do_not_run", pes_that_differ_do_not_run),
        trial("what_is_missing_is_not_run", what_is_missing_is_not_run),
        trial("a_case_that_takes_long_is_run_less_often", a_case_that_takes_long_is_run_less_often),
        trial("compiling_is_no_hang", compiling_is_no_hang),
        trial("an_end_that_goes_wrong_is_not_silent", an_end_that_goes_wrong_is_not_silent),
        trial("a_known_deviation_must_deviate", a_known_deviation_must_deviate),
        #[cfg(unix)]
        trial("after_an_interruption_nothing_is_started", after_an_interruption_nothing_is_started),
    ];
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

/// The word with which this test starts itself, to be interrupted.
const INTERRUPTED: &str = "interrupted";

/// Ends itself by a signal, as the user does, and runs cases then. Nothing can be started here, so whatever is tried fails: a job, and
/// on one GPU the service that two PEs need.
fn play_interrupted() {
    interrupt::watch();
    let me = std::process::id().to_string();
    assert!(Command::new("kill").args(["-TERM", &me]).status().unwrap().success());
    while !interrupt::is_wanted() {
        sleep(Duration::from_millis(1));
    }
    let folder = tempfile::tempdir().unwrap();
    for gpus in [&[0, 1][..], &[0]] {
        let settings = Settings { program: "/no/such/program".into(), ..settings("well", gpus, folder.path()) };
        let results = hardware::run(&cases(), &settings, &[], &mut |_| {});
        assert_eq!(results.cases.len(), 3);
        for ran in results.cases {
            let checked = ran.checked;
            assert_eq!((checked.status, checked.why.as_str()), (Status::NotRun, "interrupted"), "{}", checked.name);
        }
    }
    let limit = Duration::from_secs(1);
    let script = Script { names: &["demo/one"], start: limit, limit };
    assert_eq!(follow(&Job::new(2, "/no/such/program"), &script, &mut |_| {}), End::Interrupted);
}

#[cfg(unix)]
fn after_an_interruption_nothing_is_started() {
    let output = Command::new(std::env::current_exe().unwrap()).arg(INTERRUPTED).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// What a PE does in a script.
fn play(script: &str, cases: &[String]) {
    let rank: usize = std::env::var("ONESIDED_RANK").unwrap().parse().unwrap();
    let say = |message: Message| message.send();
    let (script, wrong_run) = script.strip_prefix("at once: ").map_or((script, 1), |script| (script, 0));
    let mut ready = Ready { library: "libdemo 1.0".into(), status: "initialized".into(), missing: Missing::default() };
    match script {
        "absent" => {
            let text = "init: no GPU (initialization, demo.rs:1)".to_string();
            say(Message::Failed(Failure { kind: "initialization".into(), operating: true, text }));
            exit(2);
        }
        "silent" if rank == 1 => sleep(Duration::from_secs(60)),
        "lacks" => ready.missing.host_atomics = Some("they are stubs".into()),
        "differs" if rank == 1 => ready.missing.multicast = Some("no NVLS".into()),
        _ => {}
    }
    say(Message::Ready(ready));
    if script == "differs" {
        sleep(Duration::from_secs(60)); // as if in the first collective
    }
    for case in cases.iter().filter(|case| script != "lacks" || case.as_str() != WRONG) {
        say(Message::Start { name: case.clone() });
        let less = case == WRONG && (script == "long" || script == "short" || (script == "split" && rank == 0));
        for run in 0..if less { 1 } else { RUNS } {
            let x = if case == WRONG && run == wrong_run && rank == 1 { go_wrong(script) } else { 1 };
            say(Message::Returned { text: if rank == 1 { format!("x={x}") } else { String::new() } });
            // The others now wait for PE 1, which never comes to the barrier.
            if case == WRONG
                && run == wrong_run
                && rank == 0
                && !["well", "noise", "odd", "late", "long", "short", "split", "compiles"].contains(&script)
            {
                sleep(Duration::from_secs(60));
            }
        }
        if less && script != "short" {
            say(Message::Enough);
        }
    }
    if script == "dies" {
        eprintln!("terminated in finalize");
        std::process::abort();
    }
    say(Message::Finalized);
    if script == "late" {
        exit(7);
    }
}

/// What PE 1 does in the second run of the case; returns what it saw, if it comes to that.
fn go_wrong(script: &str) -> u32 {
    match script {
        "odd" => return 9,
        "noise" => {
            println!("WARN: a library's line");
            print!("and one without an end ");
            eprintln!("on the other output too");
        }
        "fails" => {
            let text = "get: a CUDA error (device, demo.rs:2)".to_string();
            Message::Failed(Failure { kind: "device".into(), operating: true, text }).send();
            exit(2);
        }
        "panics" => {
            Message::Panicked(Panic { text: "at the disco".into(), at: Some("demo.rs:3".into()) }).send();
            exit(101);
        }
        "hangs" => sleep(Duration::from_secs(60)),
        "crashes" => {
            eprintln!("boom");
            std::process::abort();
        }
        "ended" => {
            eprintln!("demo.cu:12: non-zero status: 7, exiting...");
            exit(255);
        }
        "loses its peer" => {
            eprintln!("[vm:9 :0] ucp_ep.c:1 UCX  ERROR Connection reset by remote peer");
            exit(255);
        }
        "exits" => exit(3),
        "compiles" => {
            eprintln!("{}f once, for the cache", onesided_nvshmem::COMPILES);
            sleep(Duration::from_secs(3)); // longer than a hang may last
        }
        _ => {}
    }
    1
}

/// The cases, each of which PE 1 sees `x=1` or `x=2` in.
fn cases() -> Vec<Case<Sim>> {
    let body = |_: &onesided::Pe<Sim>| Ok(Seen::nothing());
    vec![
        Case::new("demo/one", 2, body),
        Case::new(WRONG, 2, body).needs_host_atomics(),
        Case::new("demo/three", 2, body),
    ]
}

/// Runs cases with a script as the PEs' program.
fn run(script: &str, cases: &[Case<Sim>], gpus: &[u32], known: &[Known]) -> (Results, Vec<Ran>) {
    run_where(script, cases, gpus, known, "1: x=1\n1: x=2\n")
}

/// The same, where the cases' files allow other outcomes.
fn run_where(script: &str, cases: &[Case<Sim>], gpus: &[u32], known: &[Known], allowed: &str) -> (Results, Vec<Ran>) {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("demo")).unwrap();
    for case in cases {
        fs::write(folder.path().join(format!("{}.txt", case.name)), format!("# a demo\n{allowed}")).unwrap();
    }
    let settings = settings(script, gpus, folder.path());
    let mut told = Vec::new();
    let results = hardware::run(cases, &settings, known, &mut |ran| told.push(ran.clone()));
    assert_eq!(told.len(), cases.len(), "each case is told of once");
    assert_eq!(results.cases.len(), cases.len());
    (results, told)
}

/// A script as the PEs' program, and the folder of the cases' files.
fn settings(script: &str, gpus: &[u32], expected: &Path) -> Settings {
    Settings {
        program: std::env::current_exe().unwrap(),
        arguments: vec!["play".into(), script.into()],
        gpus: gpus.to_vec(),
        runs: RUNS,
        limit: Duration::from_secs(2),
        start: Duration::from_secs(2),
        expected: Folder::new(Some(expected)),
        rig: Arc::default(),
        sharing: None,
    }
}

/// The three cases, of which only the middle one may fail: why it did.
fn costs_one(script: &str) -> String {
    let (results, _) = run(script, &cases(), &[0, 1], &[]);
    let [one, two, three] = &results.cases[..] else { panic!("{results:?}") };
    for ran in [one, three] {
        let checked = &ran.checked;
        assert_eq!((checked.status, checked.visits), (Status::Passed, RUNS), "{script}: {checked:?}");
    }
    assert_eq!(two.checked.status, Status::Failed, "{script}: {:?}", two.checked);
    two.checked.why.clone()
}

fn outcomes(ran: &Ran) -> BTreeMap<&str, u64> {
    ran.checked.outcomes.iter().map(|(outcome, runs)| (outcome.as_str(), *runs)).collect()
}

fn cases_that_agree_pass() {
    for script in ["well", "noise"] {
        let (results, told) = run(script, &cases(), &[0, 1], &[]);
        for ran in &results.cases {
            assert_eq!((ran.checked.status, ran.checked.why.as_str()), (Status::Passed, ""), "{script}");
            assert_eq!(outcomes(ran), BTreeMap::from([("1: x=1", RUNS)]));
            assert_eq!((ran.gpus, ran.coverage), (Some(2), Some([1, 2])));
        }
        let order: Vec<&str> = told.iter().map(|ran| ran.checked.name.as_str()).collect();
        assert_eq!(order, ["demo/one", WRONG, "demo/three"]);
        assert_eq!((results.library.as_deref(), results.mps), (Some("libdemo 1.0"), false));
    }
}

fn an_outcome_that_is_not_allowed_fails_its_case() {
    assert_eq!(costs_one("odd"), "seen, not in the file: 1: x=9");
}

fn an_error_and_a_panic_cost_one_case() {
    let error = "seen, not in the file: failed: device; PE 1 failed: get: a CUDA error (device, demo.rs:2)";
    assert_eq!(costs_one("fails"), error);
    assert_eq!(costs_one("panics"), "seen, not in the file: panicked; PE 1 panicked at demo.rs:3: at the disco");
}

fn a_case_that_is_meant_to_break_passes_when_it_does() {
    let cases = [Case::new(WRONG, 2, |_: &onesided::Pe<Sim>| Ok(Seen::nothing())).breaks()];
    let status = |script, allowed| {
        let (results, _) = run_where(script, &cases, &[0, 1], &[], allowed);
        let checked = &results.cases[0].checked;
        (checked.status, checked.visits, checked.why.clone())
    };
    for (script, verdict) in [
        ("at once: panics", "panicked\n"),
        ("at once: fails", "failed: device\n"),
        ("at once: exits", "exited: 3\n"),
        ("at once: hangs", "deadlock\n"),
    ] {
        assert_eq!(status(script, verdict), (Status::Passed, 1, String::new()), "{script}");
    }
    let (failed, _, why) = status("at once: panics", "deadlock\n");
    assert_eq!(
        (failed, &*why),
        (Status::Failed, "seen, not in the file: panicked; PE 1 panicked at demo.rs:3: at the disco")
    );
    let (failed, _, why) = status("at once: crashes", "panicked\n");
    assert!(failed == Status::Failed && why.starts_with("PE 1 was killed by signal 6"), "{why}");
    let (failed, visits, why) = status("well", "panicked\n");
    assert_eq!((failed, visits, &*why), (Status::Failed, RUNS, "seen, not in the file: 1: x=1"));
}

fn a_hang_costs_one_case() {
    let places = "PE 0 in demo/two after 2 runs, PE 1 in demo/two after 1 run";
    assert_eq!(costs_one("hangs"), format!("no PE got further within 2 s: {places}"));
}

fn a_crash_costs_one_case_and_shows_what_was_printed() {
    assert_eq!(costs_one("crashes"), "PE 1 was killed by signal 6 (SIGABRT); | PE 1: boom");
}

fn an_exit_is_the_librarys_or_an_outcome() {
    let why = "PE 1 was ended by the library (status 255); | PE 1: demo.cu:12: non-zero status: 7, exiting...";
    assert_eq!(costs_one("ended"), why);
    let why = costs_one("loses its peer");
    let meaning =
        "PE 1 was ended by the library (status 255); a PE that this one talked to over the network is gone: see how";
    assert!(
        why.starts_with(meaning)
            && why.ends_with("| PE 1: [vm:9 :0] ucp_ep.c:1 UCX  ERROR Connection reset by remote peer"),
        "{why}"
    );
    assert_eq!(costs_one("exits"), "seen, not in the file: exited: 3; PE 1 ended the job with status 3");
}

fn a_job_that_does_not_start_is_given_up() {
    for (script, why) in [
        ("absent", "the job did not start: PE 0 failed: init: no GPU (initialization, demo.rs:1)"),
        ("silent", "the job did not start: no PE got further within 2 s: PE 1 not initialized"),
    ] {
        let (results, _) = run(script, &cases(), &[0, 1], &[]);
        for ran in &results.cases {
            assert_eq!(ran.checked.status, Status::Failed);
            let found = ran.checked.why.replace("PE 1 failed", "PE 0 failed"); // whoever is first
            assert!(found.starts_with(why), "{script}: {found}");
        }
        assert_eq!(results.library, None);
    }
}

fn pes_that_differ_do_not_run() {
    let (results, _) = run("differs", &cases(), &[0, 1], &[]);
    let checked = &results.cases[0].checked;
    assert_eq!(checked.status, Status::Failed);
    assert!(checked.why.contains("differs from PE 0") && checked.why.contains("no NVLS"), "{}", checked.why);
}

fn what_is_missing_is_not_run() {
    let (results, _) = run("lacks", &cases(), &[0, 1], &[]);
    let statuses: Vec<Status> = results.cases.iter().map(|ran| ran.checked.status).collect();
    assert_eq!(statuses, [Status::Passed, Status::NotRun, Status::Passed]);
    assert_eq!(results.cases[1].checked.why, "needs atomics issued by the host: they are stubs");

    let body = |_: &onesided::Pe<Sim>| Ok(Seen::nothing());
    let cases = [
        Case::new("demo/verdict", 2, body).ends_in_verdict(),
        Case::new("demo/nodes", 2, body).nodes(2),
        Case::new("demo/gpus", 4, body).gpus(2),
        Case::new("demo/here", 2, body),
    ];
    let (results, _) = run("well", &cases, &[0], &[]);
    let why: Vec<&str> = results.cases.iter().map(|ran| ran.checked.why.as_str()).collect();
    assert_eq!(why[..3], ["ends in a verdict: for the simulator", "needs 2 nodes", "needs 2 GPUs with 2 PEs on each"]);
    assert!(results.cases[..3].iter().all(|ran| ran.checked.status == Status::NotRun));
    // Two PEs on one GPU need MPS. Where that is installed, the case ran under it; it failed for its lack elsewhere.
    let here = &results.cases[3].checked;
    assert_eq!(here.status == Status::Passed, results.mps, "{here:?}");
    assert!(results.mps || here.why.contains("several PEs on one GPU need MPS"), "{}", here.why);
}

/// All PEs must say that it was enough: fewer runs are a failure otherwise.
fn a_case_that_takes_long_is_run_less_often() {
    let (results, _) = run("long", &cases(), &[0, 1], &[]);
    let checked = &results.cases[1].checked;
    assert_eq!((checked.status, checked.visits), (Status::Passed, 1), "{checked:?}");
    for script in ["short", "split"] {
        assert!(costs_one(script).contains("after 1 of"), "{script}");
    }
}

fn compiling_is_no_hang() {
    let (results, _) = run("compiles", &cases(), &[0, 1], &[]);
    let checked = &results.cases[1].checked;
    assert_eq!((checked.status, checked.visits), (Status::Passed, RUNS), "{checked:?}");
}

fn an_end_that_goes_wrong_is_not_silent() {
    for (script, why) in [("dies", "was killed by signal 6 (SIGABRT); | PE"), ("late", "ended the job with status 7")] {
        let one = &cases()[..1];
        let (results, _) = run(script, one, &[0, 1], &[]);
        let checked = &results.cases[0].checked;
        assert_eq!((checked.status, checked.visits >= RUNS), (Status::Failed, true), "{script}: {checked:?}");
        assert!(checked.why.contains(why), "{script}: {}", checked.why);
    }
}

fn a_known_deviation_must_deviate() {
    let known = [Known { backend: "nvshmem".into(), case: WRONG.into(), reason: "for a reason".into() }];
    let (results, _) = run("odd", &cases(), &[0, 1], &known);
    let two = &results.cases[1].checked;
    assert_eq!((two.status, two.why.as_str()), (Status::Passed, "known deviation: for a reason"));
    let (results, _) = run("well", &cases(), &[0, 1], &known);
    let two = &results.cases[1].checked;
    assert!(two.status == Status::Failed && two.why.contains("remove its line"), "{two:?}");
}
