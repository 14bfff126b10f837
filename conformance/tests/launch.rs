//! `onesided launch` and the module under it, with shells as PEs.
#![cfg(unix)]

mod common;

use std::ffi::OsString;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use common::{sorted, status, stderr};
use onesided_harness::launch::{Channel, Event, Job, PeStatus};

const LONG: Duration = Duration::from_secs(60);

fn launch(arguments: &[&str], script: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_onesided"));
    command.arg("launch").args(arguments).args(["--", "sh", "-c", script]);
    command.env_remove("ONESIDED_DEVICE").env_remove("CUDA_MPS_PIPE_DIRECTORY");
    command
}

fn job(pes: usize, script: &str) -> Job {
    Job { arguments: vec![OsString::from("-c"), script.into()], ..Job::new(pes, "sh") }
}

/// Whether a process runs; a zombie of somebody else does not.
fn runs(process: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, state)| !state.trim_start().starts_with('Z'))
}

/// Waits until a process has ended, for a while.
fn has_ended(process: &str) -> bool {
    let deadline = Instant::now() + Duration::from_secs(10);
    while runs(process) && Instant::now() < deadline {
        thread::sleep(Duration::from_millis(5));
    }
    !runs(process)
}

#[test]
fn lines_are_labelled_and_go_where_they_came_from() {
    let output = launch(&["-n", "3"], "echo out $ONESIDED_RANK; echo err >&2; printf 'no end'").output().unwrap();
    assert_eq!(status(&output), 0, "{}", stderr(&output));
    let expected = ["[0] no end", "[0] out 0", "[1] no end", "[1] out 1", "[2] no end", "[2] out 2"];
    assert_eq!(sorted(&output.stdout), expected);
    assert_eq!(sorted(&output.stderr), ["[0] err", "[1] err", "[2] err"]);
}

#[test]
fn every_pe_knows_who_it_is_and_keeps_the_users_environment() {
    let script = "echo $ONESIDED_PES $ONESIDED_LOCAL_RANK $ONESIDED_DEVICE $USERS ${ONESIDED_RENDEZVOUS%%:*}; \
                  echo ${ONESIDED_RENDEZVOUS#*:} >&2";
    let output = launch(&["-n", "4", "--gpus", "4,2"], script).env("USERS", "own").output().unwrap();
    let expected: Vec<String> =
        [4, 2, 4, 2].iter().zip(0..).map(|(gpu, pe)| format!("[{pe}] 4 {pe} {gpu} own 127.0.0.1")).collect();
    assert_eq!(sorted(&output.stdout), expected);
    let mut meetings: Vec<&str> = Vec::new();
    let errors = stderr(&output);
    assert!(errors.contains("2 PEs share a GPU") && errors.contains("--mps"), "{errors}");
    meetings
        .extend(errors.lines().filter_map(|line| line.strip_prefix('[')?.split_once("] ")).map(|(_, meeting)| meeting));
    meetings.dedup();
    assert!(meetings.len() == 1 && meetings[0].contains('/'), "{errors}"); // all meet at the same place
}

/// The key is in the environment of the PEs, and in no process's arguments, which everybody can read.
#[test]
fn the_pes_of_a_job_have_a_key_that_no_other_job_has() {
    let script = "echo key $ONESIDED_KEY; [ $ONESIDED_RANK = 1 ] || \
                  printf %s $ONESIDED_KEY | grep -F -l -s -f - /proc/[0-9]*/cmdline; exit 0";
    let keys = [0, 1].map(|_| {
        let output = launch(&["-n", "2"], script).env("ONESIDED_KEY", "what the user has set").output().unwrap();
        let lines = sorted(&output.stdout);
        let [one, other] = lines.as_slice() else { panic!("the key is an argument of a process: {lines:?}") };
        let key = |line: &str| line.split_once("] key ").unwrap().1.to_string();
        assert_eq!(key(one), key(other));
        assert!(key(one).len() == 64 && !stderr(&output).contains(&key(one)), "{lines:?}");
        key(one)
    });
    assert_ne!(keys[0], keys[1]);
}

#[test]
fn the_worst_status_is_returned_and_the_first_failure_told() {
    let script = "case $ONESIDED_RANK in 0) echo careful >&2; exit 3;; 1) kill -9 $$;; *) exit 0;; esac";
    let output = launch(&["-n", "3"], script).output().unwrap();
    assert_eq!(status(&output), 128 + 9);
    let last = stderr(&output).lines().last().unwrap().to_string();
    assert!(last.starts_with("onesided launch: PE ") && last.contains("failed too"), "{last}");
    assert!(!last.contains("careful"), "{last}"); // it stands above
    let script =
        "case $ONESIDED_RANK in 0) echo careful >&2; exit 3;; *) while echo not me >&2; do sleep 0.1; done;; esac";
    let last = stderr(&launch(&["-n", "2"], script).output().unwrap()).lines().last().unwrap().to_string();
    assert!(last.ends_with("; PE 0 last wrote to its standard error: careful"), "{last}");
}

#[test]
fn an_error_that_all_pes_write_is_printed_once_with_its_pes() {
    let script = "echo \"PE $ONESIDED_RANK failed: no library\" >&2; echo try the doctor >&2; exit 2";
    let output = launch(&["-n", "3"], script).output().unwrap();
    assert_eq!(status(&output), 2);
    let errors = stderr(&output);
    for words in ["failed: no library", "try the doctor"] {
        assert_eq!(errors.matches(words).count(), 1, "{errors}");
    }
    let last = errors.lines().last().unwrap();
    assert!(last.ends_with(" wrote the same to standard error"), "{errors}");

    // Where nothing fails, every line is printed.
    let output = launch(&["-n", "3"], "echo a warning >&2").output().unwrap();
    assert_eq!(sorted(&output.stderr), ["[0] a warning", "[1] a warning", "[2] a warning"]);
}

#[test]
fn when_one_fails_the_others_have_their_last_words_and_end() {
    let folder = tempfile::tempdir().unwrap();
    let script = "cd $FOLDER; if [ $ONESIDED_RANK = 1 ]; then until [ -e ready ]; do sleep 0.01; done; exit 7; fi; \
                  trap 'echo asked to end; exit 0' TERM; touch ready; sleep 0.1; echo I go on; sleep 300";
    let started = Instant::now();
    let output = launch(&["-n", "2"], script).env("FOLDER", folder.path()).output().unwrap();
    assert!(started.elapsed() < LONG);
    assert_eq!(status(&output), 7);
    assert_eq!(sorted(&output.stdout), ["[0] I go on", "[0] asked to end"]);
    assert_eq!(stderr(&output).lines().last(), Some("onesided launch: PE 1 ended with status 7"));

    let output = launch(&["-n", "2"], "[ $ONESIDED_RANK = 1 ] && exit 7; exec sleep 300").output().unwrap();
    assert_eq!(sorted(&output.stderr), ["onesided launch: PE 1 ended with status 7; PE 0 had to be ended"]);
}

#[test]
fn the_time_is_a_limit() {
    let started = Instant::now();
    let script = "[ $ONESIDED_RANK = 0 ] && exit 0; echo stuck >&2; exec sleep 300";
    let output = launch(&["-n", "3", "--timeout", "1"], script).output().unwrap();
    assert!(started.elapsed() < LONG);
    assert_eq!(status(&output), 124);
    let last = stderr(&output).lines().last().unwrap().to_string();
    assert!(last.starts_with("onesided launch: the time of 1 s is up, and PEs 1, 2 still ran"), "{last}");
    assert!(stderr(&output).contains("] stuck\n"), "{}", stderr(&output));
}

#[test]
fn nothing_is_left_behind_not_even_what_does_not_want_to_end() {
    // The shell and its child both ignore being asked.
    let stubborn = "trap '' TERM; sleep 300 & echo $! $$; [ $ONESIDED_RANK = 0 ] && exit 1; wait";
    let started = Instant::now();
    let output = launch(&["-n", "2"], stubborn).output().unwrap();
    assert!(started.elapsed() < LONG);
    assert_eq!(status(&output), 1);
    let lines = sorted(&output.stdout);
    let processes: Vec<&str> = lines.iter().flat_map(|line| line.split(' ').skip(1)).collect();
    assert_eq!(processes.len(), 4, "{lines:?}");
    for process in processes {
        assert!(has_ended(process), "{process} of {lines:?}");
    }
}

#[test]
fn a_pe_that_left_the_group_is_ended_too() {
    if Command::new("setsid").arg("true").status().is_err() {
        return println!("not run: no setsid");
    }
    // Under setsid the shell becomes a session of its own, by the same number.
    let leave = "exec setsid sh -c \"$SCRIPT\"";
    for (script, arguments, code) in [
        ("echo $$; exec sleep 300", &["-n", "1", "--timeout", "1"][..], 124),
        ("echo $$; [ $ONESIDED_RANK = 0 ] && exit 3; exec sleep 300", &["-n", "2"], 3),
    ] {
        let started = Instant::now();
        let output = launch(arguments, leave).env("SCRIPT", script).output().unwrap();
        assert!(started.elapsed() < LONG);
        assert_eq!(status(&output), code, "{}", stderr(&output));
        for line in sorted(&output.stdout) {
            assert!(has_ended(line.split_once("] ").unwrap().1), "{line}");
        }
    }
    let (mut launcher, processes) = waiting_pes(launch(&["-n", "2"], leave).env("SCRIPT", "echo $$; exec sleep 300"));
    assert!(Command::new("kill").args(["-INT", &launcher.id().to_string()]).status().unwrap().success());
    assert_eq!(launcher.wait().unwrap().code(), Some(130));
    assert!(processes.iter().all(|process| has_ended(process)), "{processes:?}");
}

#[test]
fn what_cannot_start_is_an_error() {
    for (arguments, why) in [
        (&["-n", "2", "--", "/no/such/program"][..], "/no/such/program cannot be started: No such file"),
        (&["-n", "2", "--", "Cargo.toml"], "on PATH; the one of this folder is ./Cargo.toml"),
        (&["-n", "2", "--", "/"], "/ cannot be started: Permission denied (os error 13) (it is a folder)"),
        (&["--", "true"], "how many PEs?"),
        (&["-n", "0", "--", "true"], "expected a whole number from 1 to 65535"),
        (&["-n", "1", "--timeout", "18446744073709551615", "--", "true"], "expected a whole number from 1 to 31536000"),
        (&["-n", "2"], "PROGRAM"),
        (&["-n", "2", "--gpus", "none", "true"], "'none' is not the number of a GPU"),
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_onesided")).arg("launch").args(arguments).output().unwrap();
        assert_eq!(status(&output), 2, "{arguments:?}");
        assert!(stderr(&output).contains(why), "{arguments:?}: {}", stderr(&output));
    }
    assert!(Job { devices: vec![0], ..job(2, "exit 0") }.start().unwrap_err().contains("1 GPU for 2 PEs"));
}

/// Starts PEs that print their process numbers and wait; gives these.
fn waiting_pes(command: &mut Command) -> (Child, Vec<String>) {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines().take(2);
    let processes = lines.map(|line| line.unwrap().split_once("] ").unwrap().1.to_string()).collect();
    (child, processes)
}

#[test]
fn pes_end_with_the_launcher_however_it_ends() {
    for (signal, code) in [("-INT", Some(130)), ("-TERM", Some(143)), ("-KILL", None)] {
        let (mut launcher, processes) =
            waiting_pes(&mut launch(&["-n", "2"], "echo $$; trap '' INT; sleep 300; sleep 300"));
        assert!(processes.iter().all(|process| runs(process)), "{processes:?}");
        assert!(Command::new("kill").args([signal, &launcher.id().to_string()]).status().unwrap().success());
        assert_eq!(launcher.wait().unwrap().code(), code, "{signal}");
        assert!(processes.iter().all(|process| has_ended(process)), "{signal}: {processes:?}");
    }
}

#[test]
fn a_running_job_that_is_dropped_leaves_no_zombie() {
    let mut running = job(2, "echo $$; trap '' TERM; sleep 300; sleep 300").start().unwrap();
    let mut processes = Vec::new();
    while processes.len() < 2 {
        if let Event::Line { text, .. } = running.next(LONG) {
            processes.push(text);
        }
    }
    assert_eq!(running.next(Duration::from_millis(20)), Event::Quiet);
    assert_eq!(running.statuses(), [None, None]);
    drop(running);
    for process in processes {
        assert!(!Path::new("/proc").join(&process).exists(), "{process} is a zombie of this process, or runs");
    }
}

#[test]
fn events_come_in_order_to_the_end() {
    // PE 1 is asked to end, and says so; its child holds the output open after it.
    let script = "[ $ONESIDED_RANK = 0 ] && printf 'a\\r\\n\\377\\nb' && exit 5; \
                  (trap '' TERM; sleep 300) & trap 'echo bye; exit 0' TERM; echo ready; wait";
    let mut running = job(2, script).start().unwrap();
    let mut events = [Vec::new(), Vec::new()];
    loop {
        match running.next(LONG) {
            Event::Line { pe, channel, text } => {
                assert_eq!(channel, Channel::Out);
                events[pe].push(text);
            }
            Event::Ended { pe, status } => events[pe].push(status.to_string()),
            Event::AllEnded => break,
            Event::Quiet | Event::Stuck { .. } => panic!("nothing happens: {events:?}"),
        }
        if events[0].len() == 4 && events[1].len() == 1 {
            running.kill();
        }
    }
    assert_eq!(events[0], ["a", "\u{fffd}", "b", "ended with status 5"]);
    assert_eq!(events[1], ["ready", "bye", "ended with status 0"]);
    assert_eq!(running.statuses()[1], Some(PeStatus::Exited(0)));
    assert_eq!(running.next(LONG), Event::AllEnded);
}

#[test]
fn a_line_without_end_is_given_in_pieces() {
    let mut running = job(1, "head -c 200000 /dev/zero | tr '\\0' x").start().unwrap();
    let mut lengths = Vec::new();
    loop {
        match running.next(LONG) {
            Event::Line { text, .. } => lengths.push(text.len()),
            Event::AllEnded => break,
            Event::Ended { .. } | Event::Stuck { .. } | Event::Quiet => {}
        }
    }
    assert_eq!(lengths, [65_536, 65_536, 65_536, 3_392]);
}

/// A program that says who it is told to be.
const WHO: &str =
    "echo $ONESIDED_RANK of $ONESIDED_PES, $ONESIDED_LOCAL_RANK here, GPU $ONESIDED_DEVICE, $ONESIDED_RENDEZVOUS";

fn under_open_mpi(arguments: &[&str]) -> Command {
    in_open_mpi(launch(arguments, WHO))
}

fn in_open_mpi(mut command: Command) -> Command {
    command.env("OMPI_COMM_WORLD_RANK", "1").env("OMPI_COMM_WORLD_SIZE", "2");
    command.env("OMPI_COMM_WORLD_LOCAL_RANK", "1").env("OMPI_COMM_WORLD_LOCAL_SIZE", "2").env("PMIX_NAMESPACE", "x");
    command.env("ONESIDED_KEY", "a key for this test");
    command
}

#[test]
fn under_another_launcher_it_becomes_the_program() {
    for arguments in [&["--gpus", "5,6"][..], &["-n", "2", "--gpus", "5,6"]] {
        let output = under_open_mpi(arguments).output().unwrap();
        assert_eq!(status(&output), 0, "{}", stderr(&output));
        let said = String::from_utf8(output.stdout).unwrap();
        assert!(said.starts_with("1 of 2, 1 here, GPU 6, 127.0.0.1:") && said.ends_with("/x\n"), "{said}");
    }
    let key = in_open_mpi(launch(&[], "echo $ONESIDED_KEY")).output().unwrap();
    assert_eq!(String::from_utf8(key.stdout).unwrap(), "a key for this test\n");
    let told = under_open_mpi(&[]).env("ONESIDED_RENDEZVOUS", "head:5000").output().unwrap();
    assert_eq!(String::from_utf8(told.stdout).unwrap(), "1 of 2, 1 here, GPU , head:5000\n");
}

#[test]
fn kernels_are_loaded_early_unless_the_user_says_otherwise() {
    let script = "echo $CUDA_MODULE_LOADING";
    for (mut command, set, expected) in [
        (launch(&["-n", "1"], script), None, "[0] EAGER\n"),
        (launch(&["-n", "1"], script), Some("LAZY"), "[0] LAZY\n"),
        (in_open_mpi(launch(&[], script)), None, "EAGER\n"),
        (in_open_mpi(launch(&[], script)), Some("LAZY"), "LAZY\n"),
    ] {
        command.env_remove("CUDA_MODULE_LOADING").envs(set.map(|value| ("CUDA_MODULE_LOADING", value)));
        assert_eq!(String::from_utf8(command.output().unwrap().stdout).unwrap(), expected);
    }
}

#[test]
fn what_contradicts_the_other_launcher_is_an_error() {
    for (mut command, why) in [
        (under_open_mpi(&["-n", "3"]), "Open MPI's mpirun started 2 PE(s), which -n contradicts"),
        (under_open_mpi(&["--mps"]), "--mps is for PEs that are started here"),
        (under_open_mpi(&["--timeout", "5"]), "--timeout is for PEs"),
    ] {
        let output = command.output().unwrap();
        assert!(status(&output) == 2 && stderr(&output).contains(why), "{}", stderr(&output));
    }
    let elsewhere =
        under_open_mpi(&[]).env("OMPI_COMM_WORLD_LOCAL_SIZE", "1").env("OMPI_COMM_WORLD_LOCAL_RANK", "0").output();
    assert!(stderr(&elsewhere.unwrap()).contains("set it, the same for all, to host:port"));
    let keyless = under_open_mpi(&[]).env_remove("ONESIDED_KEY").output().unwrap();
    assert!(stderr(&keyless).contains("ONESIDED_KEY: not set, and Open MPI's mpirun passes no secret"));
    let half = under_open_mpi(&[]).env_remove("OMPI_COMM_WORLD_SIZE").output().unwrap();
    assert!(stderr(&half).contains("OMPI_COMM_WORLD_RANK=1: OMPI_COMM_WORLD_SIZE is not set beside it"));
}

#[test]
fn under_the_real_mpirun_else_not_run() {
    let mut mpirun = Command::new("mpirun");
    mpirun.args(["--allow-run-as-root", "--oversubscribe", "--timeout", "60", "-n", "2"]);
    mpirun.args([env!("CARGO_BIN_EXE_onesided"), "launch", "--", "sh", "-c", WHO]);
    let output = match mpirun.output() {
        Ok(output) => output,
        Err(why) => return println!("not run: no mpirun ({why})"),
    };
    assert!(output.status.success(), "{}", stderr(&output));
    let lines = sorted(&output.stdout);
    let place = lines[0].rsplit(", ").next().unwrap();
    assert!(place.starts_with("127.0.0.1:"), "{lines:?}");
    assert_eq!(lines, [0, 1].map(|rank| format!("{rank} of 2, {rank} here, GPU , {place}")));
}

#[test]
fn a_value_of_mps_is_not_taken_for_the_program() {
    let output = launch(&["-n", "2", "--mps", "one"], "exit 0").output().unwrap();
    assert_eq!(status(&output), 2);
    assert!(
        stderr(&output).contains("the program would be one; --mps takes its value behind an equals sign: --mps=one")
    );
}

#[test]
fn without_a_gpu_a_service_for_gpus_is_refused() {
    let output = launch(&["-n", "2", "--mps"], "exit 0").env("CUDA_VISIBLE_DEVICES", "").output().unwrap();
    assert_eq!(status(&output), 2);
    assert!(stderr(&output).contains("--mps is for GPUs, and there is none to use"), "{}", stderr(&output));
}
