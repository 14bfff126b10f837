//! The `onesided` command, as a user calls it.

mod common;

use std::fs;
use std::io::ErrorKind;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use common::{status, stderr, stdout};
use serde_json::Value;

fn onesided(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_onesided"));
    // On a machine with GPUs too, the backend on GPUs finds no library in these tests.
    command.args(arguments).env_remove("COLUMNS").env("ONESIDED_NVSHMEM_LIB", "/no/such/library").output().unwrap()
}

fn path(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[test]
fn help() {
    for (name, arguments) in [
        ("onesided", &["--help"][..]),
        ("list", &["list", "--help"]),
        ("suite", &["suite", "--help"]),
        ("litmus", &["litmus", "--help"]),
        ("launch", &["launch", "--help"]),
        ("compare", &["compare", "--help"]),
        ("compile", &["compile", "--help"]),
        ("score", &["score", "--help"]),
        ("show", &["show", "--help"]),
        ("doctor", &["doctor", "--help"]),
        ("hardware", &["hardware", "--help"]),
    ] {
        let output = onesided(arguments);
        assert_eq!(status(&output), 0);
        insta::assert_snapshot!(format!("help_{name}"), stdout(&output));
    }
}

#[test]
fn what_cannot_be_compiled_is_told() {
    let refused = |arguments: &[&str], why: &str| {
        let output = onesided(&[&["compile"], arguments].concat());
        assert!(status(&output) == 2 && stderr(&output).contains(why), "{arguments:?}: {}", stderr(&output));
    };
    refused(&[], "<FILES>");
    refused(&["--suite", "--for", "90"], "expected the architecture of a GPU, such as sm_90");
    refused(&["k.cu", "-D", "=3"], "expected NAME=VALUE");
    refused(&["--suite", "--for", "sm_90"], "remedy: "); // no NVSHMEM
}

/// A finding that a program has written.
const FINDING: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/show/tests/missing_fence.json");

#[test]
fn a_finding_is_shown_and_converted() {
    let shown = onesided(&["show", FINDING]);
    assert_eq!(status(&shown), 0, "{}", stderr(&shown));
    let said = stdout(&shown);
    assert!(said.starts_with("FINDING missing_fence: PE 1 failed") && said.contains("missing: a fence"), "{said}");
    assert!(!said.contains('\u{1b}'), "colours are for terminals");
    let with = |variables: &[(&str, &str)]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_onesided"));
        command.args(["show", FINDING]).env_remove("NO_COLOR").envs(variables.iter().copied());
        stdout(&command.output().unwrap()).contains('\u{1b}')
    };
    assert!(with(&[("CLICOLOR_FORCE", "1")]));
    assert!(!with(&[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")]), "whoever wants none has none");
    let events = stdout(&onesided(&["show", FINDING, "--events"]));
    assert_eq!(events.lines().count(), 41, "{events}");

    let folder = tempfile::tempdir().unwrap();
    for (option, begins) in
        [("--perfetto", "{\"displayTimeUnit\""), ("--shiviz", "(?<host>"), ("--sarif", "{\n  \"$schema\"")]
    {
        let file = folder.path().join("converted");
        let output = onesided(&["show", FINDING, option, path(&file)]);
        assert_eq!((status(&output), stdout(&output)), (0, format!("Wrote {}.\n", file.display())));
        let text = fs::read_to_string(file).unwrap();
        assert!(text.starts_with(begins), "{option}: {text}");
        assert_eq!(stdout(&onesided(&["show", FINDING, option, "-"])), text);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn what_is_shown_is_not_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    let [finding, link, labels] = ["f.json", "link.json", "labels.json"].map(|name| folder.path().join(name));
    fs::copy(FINDING, &finding).unwrap();
    fs::write(&labels, r#"{ "schema": "onesided-labels/1", "programs": [] }"#).unwrap();
    std::os::unix::fs::symlink(&finding, &link).unwrap();
    let roundabout = folder.path().join("../").join(folder.path().file_name().unwrap()).join("f.json");
    let (finding, link, labels, roundabout) = (path(&finding), path(&link), path(&labels), path(&roundabout));
    for arguments in [
        &["show", finding, "--html", finding][..],
        &["show", finding, "--perfetto", roundabout],
        &["show", finding, "--events", "--shiviz", link],
        &["show", link, "--html", "-", "--sarif", finding],
        &["score", "--labels", labels, "--json", labels, "--", "true"],
    ] {
        let output = onesided(arguments);
        let said = stderr(&output);
        assert_eq!((status(&output), stdout(&output).as_str()), (2, ""), "{arguments:?}: {said}");
        assert!(said.contains(", which is read: it would be replaced; name another file"), "{arguments:?}: {said}");
    }
    assert_eq!(fs::read(finding).unwrap(), fs::read(FINDING).unwrap());
    let mut command = Command::new(env!("CARGO_BIN_EXE_onesided"));
    let output = command.args(["show", "-", "--html", finding]).stdin(fs::File::open(finding).unwrap()).output();
    assert_eq!(status(&output.unwrap()), 2, "by way of standard input");
}

#[test]
fn what_cannot_be_shown_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let other = folder.path().join("other.json");
    fs::write(&other, "{ \"schema\": \"onesided-finding/9\" }").unwrap();
    for (arguments, why) in [
        (&["show", "/no/such/file"][..], "error: cannot read /no/such/file: No such file"),
        (&["show", path(&other)], "is a onesided-finding/9, and this version reads onesided-finding/1"),
        (&["show", FINDING, "--sarif", "/no/such/folder/x"], "error: cannot write /no/such/folder/x"),
        (&["show"], "required"),
    ] {
        let output = onesided(arguments);
        assert_eq!(status(&output), 2, "{arguments:?}");
        assert!(stderr(&output).contains(why), "{arguments:?}: {}", stderr(&output));
    }
}

#[test]
fn list_shows_cases_by_pattern() {
    insta::assert_snapshot!("list_of_patterns", stdout(&onesided(&["list", "mp_across", "init/status"])));
    let all = stdout(&onesided(&["list"]));
    assert!(all.lines().count() > 80 && all.ends_with(" cases\n"), "{all}");
}

#[test]
fn a_suite_that_agrees_ends_with_its_counts() {
    let output = onesided(&["suite", "order/two_puts_fenced", "sb_one_target"]);
    assert_eq!(status(&output), 0, "{}", stderr(&output));
    assert!(stdout(&output).ends_with("\n3 passed, 0 failed\n"), "{}", stdout(&output));

    let few = onesided(&["suite", "litmus", "--schedules", "5", "--seed", "7", "--profile", "nvlink"]);
    assert_eq!(status(&few), 0, "{}", stdout(&few));
}

#[test]
fn a_suite_that_differs_says_how_and_fails() {
    let folder = tempfile::tempdir().unwrap();
    let (expected, json) = (folder.path().join("expected"), folder.path().join("suite.json"));
    fs::create_dir_all(expected.join("litmus")).unwrap();
    fs::write(expected.join("litmus/mp.txt"), "# a wrong file\n1: x=1\n1: x=2\n").unwrap();
    let output = onesided(&["suite", "litmus/mp", "--expected", path(&expected), "--json", path(&json)]);
    assert_eq!(status(&output), 1);
    let said = stdout(&output);
    assert!(
        said.contains("under spec: seen, not in the file: 1: x=0")
            && said.contains("under nvlink: in the file, not seen: 1: x=2"),
        "{said}"
    );
    assert!(said.ends_with("\n0 passed, 1 failed\n"), "{said}");

    let suite: Value = serde_json::from_str(&fs::read_to_string(json).unwrap()).unwrap();
    let named = [&suite["schema"], &suite["backend"], &suite["profile"], &suite["library"]];
    assert_eq!(named, ["onesided-suite/1", "sim", "all", &format!("onesided-sim {}", onesided::VERSION)]);
    let case = &suite["cases"][0];
    assert_eq!([&case["name"], &case["profile"], &case["status"]], ["litmus/mp", "spec", "failed"]);
    assert_eq!([&case["pes"], &case["schedules"]], [2, 2]);
    assert_eq!(case["outcomes"], serde_json::json!({"1: x=0": 1, "1: x=1": 1}));
    assert!(case["why"].as_str().unwrap().contains("not in the file"), "{case}");

    // The difference comes with the command that shows it.
    let replay = said.split("cargo run --bin onesided -- ").nth(1).unwrap().lines().next().unwrap();
    let shown = onesided(&replay.split(' ').collect::<Vec<_>>());
    assert!(status(&shown) == 0 && stdout(&shown).contains("outcome: 1: x=0"), "{}", stdout(&shown));
}

#[test]
fn reports_are_compared() {
    let folder = tempfile::tempdir().unwrap();
    let [all, nvlink, text] = ["all.json", "nvlink.json", "text"].map(|name| folder.path().join(name));
    onesided(&["suite", "litmus", "--json", path(&all)]);
    onesided(&["suite", "litmus", "order/two_puts", "--profile", "nvlink", "--json", path(&nvlink)]);
    let same = onesided(&["compare", path(&all), path(&all)]);
    assert_eq!(status(&same), 0, "{}", stderr(&same));
    assert!(stdout(&same).ends_with("; different: 0, contradicting: 0\n"), "{}", stdout(&same));

    // A profile that promises more shows less, and nothing else.
    let less = stdout(&onesided(&["compare", path(&nvlink), path(&all)]));
    assert!(less.contains("differs  litmus/mp\n        only in B: 1: x=0\n"), "{less}");
    assert!(less.ends_with(", contradicting: 0\n"), "{less}");

    // What all schedules do not show cannot have been seen.
    let changed = fs::read_to_string(&all).unwrap().replace("\"1: x=0\": 1", "\"1: x=7\": 1");
    fs::write(&nvlink, changed.replace("\"complete\": true", "\"complete\": false")).unwrap();
    let more = onesided(&["compare", path(&all), path(&nvlink)]);
    assert!(status(&more) == 1 && stdout(&more).contains("CONTRADICTS  litmus/mp\n"), "{}", stdout(&more));

    fs::write(&text, "no JSON").unwrap();
    let wrong = onesided(&["compare", path(&all), path(&text)]);
    assert!(status(&wrong) == 2 && stderr(&wrong).contains("not a report of the suite"), "{}", stderr(&wrong));
}

/// A worker that is no PE, or has no library, says so as a PE says it, and does not hang.
#[test]
fn a_worker_without_a_library_says_so() {
    let output = onesided(&["worker", "--runs", "1", "litmus/mp"]);
    assert_eq!(status(&output), 2, "{}", stderr(&output));
    let said = stdout(&output);
    assert!(said.contains(r#""say":"failed","kind":"initialization","operating":true"#), "{said}");
}

#[test]
fn promoting_writes_what_is_missing_or_wrong() {
    let folder = tempfile::tempdir().unwrap();
    let promote = || stdout(&onesided(&["suite", "litmus/mp", "--promote", "--expected", path(folder.path())]));
    let written = promote();
    assert!(written.starts_with("written  litmus/mp.txt: 2 outcomes of 2 schedules\n"), "{written}");
    assert!(written.contains("\nwritten  litmus/mp.nvlink.txt: 1 outcome of 1 schedule\n"), "{written}");
    let unchanged = promote();
    assert!(unchanged.starts_with("unchanged  litmus/mp.txt") && !unchanged.contains("written"), "{unchanged}");
    let read = |name| fs::read_to_string(folder.path().join(name)).unwrap();
    assert_eq!(read("litmus/mp.txt"), "# litmus/mp\n# 2 PEs, profile spec\n1: x=0\n1: x=1\n");
    assert_eq!(read("litmus/mp.nvlink.txt"), "# litmus/mp\n# 2 PEs, profile nvlink\n1: x=1\n");
}

/// A profile's file is gone when it says nothing of its own, and a profile never allows what `spec` does not.
#[test]
fn a_profile_has_a_file_only_where_it_differs() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join("litmus").join(name);
    fs::create_dir(folder.path().join("litmus")).unwrap();
    fs::write(file("mp_fenced.nvlink.txt"), "# left over\n1: x=0\n").unwrap();
    let promote = ["suite", "litmus/mp_fenced", "--promote", "--expected", path(folder.path())];
    assert_eq!(status(&onesided(&promote)), 0);
    assert!(file("mp_fenced.txt").exists() && !file("mp_fenced.nvlink.txt").exists());

    // What a profile's file says counts, under that profile alone.
    fs::write(file("mp_fenced.nvlink.txt"), "# wrong\n1: x=0\n").unwrap();
    for (profile, fails) in [("spec", 0), ("nvlink", 1)] {
        let suite = ["suite", "litmus/mp_fenced", "--profile", profile, "--expected", path(folder.path())];
        assert_eq!(status(&onesided(&suite)), fails, "{profile}");
    }
}

#[test]
fn litmus_prints_outcomes_with_examples() {
    let output = onesided(&["litmus", "mp"]);
    assert_eq!(status(&output), 0, "{}", stderr(&output));
    let said = stdout(&output);
    assert!(said.contains("1: x=0") && said.contains("1: x=1") && said.contains("os2.2x1.spec.p4."), "{said}");
    assert!(said.ends_with("Equal to expected/litmus/mp.txt.\n"), "{said}");

    let nvlink = stdout(&onesided(&["litmus", "litmus/mp", "--profile", "nvlink"]));
    assert!(nvlink.ends_with("Equal to expected/litmus/mp.nvlink.txt.\n"), "{nvlink}");
    let fenced = stdout(&onesided(&["litmus", "litmus/mp_fenced", "--profile", "nvlink"]));
    assert!(fenced.ends_with("Equal to expected/litmus/mp_fenced.txt.\n"), "{fenced}");
    let few = stdout(&onesided(&["litmus", "litmus/mp", "--schedules", "1"]));
    assert!(few.ends_with("1 of 2 outcomes in expected/litmus/mp.txt.\n"), "{few}");
}

/// Where the summary is on standard output, it is alone there.
#[test]
fn a_report_on_standard_output_is_alone_there() {
    let output = onesided(&["suite", "litmus/mp", "--json", "-"]);
    assert_eq!(status(&output), 0, "{}", stderr(&output));
    let suite: Value = serde_json::from_str(&stdout(&output)).unwrap();
    assert_eq!(suite["cases"][0]["status"], "passed");
    assert!(stderr(&output).ends_with("\n1 passed, 0 failed\n"), "{}", stderr(&output));
}

#[test]
fn what_cannot_be_printed_is_an_error() {
    let full = || fs::File::options().write(true).open("/dev/full");
    if full().is_err() {
        return println!("not run: no /dev/full");
    }
    for arguments in
        [&["list"][..], &["litmus", "mp"], &["suite", "litmus/mp"], &["--help"], &["launch", "-n", "1", "echo"]]
    {
        let mut command = Command::new(env!("CARGO_BIN_EXE_onesided"));
        let output = command.args(arguments).stdout(full().unwrap()).output().unwrap();
        let said = stderr(&output);
        assert_eq!(status(&output), 2, "{arguments:?}: {said}");
        assert!(said.contains("error: cannot write to standard output: No space left"), "{arguments:?}: {said}");
    }
}

#[test]
fn doctor_finds_the_simulator() {
    let output = onesided(&["doctor", "--library", "/no/such/library"]);
    assert_eq!(status(&output), 0, "{}", stderr(&output));
    let said = stdout(&output);
    assert!(said.contains("/no/such/library") && said.contains("4 simulated PEs"), "{said}");
}

/// What the doctors say who are started with these ranks, as PEs of one job; and how long it took.
fn doctors(ranks: &[usize], n_pes: usize) -> (Vec<String>, Duration) {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let started = Instant::now();
    let start = |rank: &usize| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_onesided"));
        command.args(["doctor", "--library", "/no/such/library"]).stdout(Stdio::piped());
        command.env("ONESIDED_RANK", rank.to_string()).env("ONESIDED_PES", n_pes.to_string());
        command.env("ONESIDED_KEY", "a key for this test");
        command.env("ONESIDED_RENDEZVOUS", format!("127.0.0.1:{port}/job")).spawn().unwrap()
    };
    let children: Vec<_> = ranks.iter().map(start).collect();
    let outputs = children.into_iter().map(|child| child.wait_with_output().unwrap());
    let said = outputs.map(|output| {
        assert_eq!(status(&output), 0, "{output:?}");
        stdout(&output)
    });
    (said.collect(), started.elapsed())
}

#[test]
fn doctors_of_a_launched_job_meet() {
    let program = env!("CARGO_BIN_EXE_onesided");
    let output = onesided(&["launch", "-n", "2", "--", program, "doctor"]);
    assert_eq!(status(&output), 0, "{}", stderr(&output));
    for rank in 0..2 {
        let label = format!("[{rank}] ");
        let lines: Vec<_> =
            stdout(&output).lines().filter_map(|line| Some(line.strip_prefix(&label)?.to_string())).collect();
        let said = lines.join("\n");
        let place = said.split_once(&format!("as PE {rank} of 2\n")).unwrap_or_else(|| panic!("{said}")).1;
        assert!(place.trim_start().starts_with("all 2 PEs met at 127.0.0.1:"), "{said}");
        assert!(!said.contains("came to where they meet"), "{said}");
    }
}

/// The suite asks what this host lacks, and is started once for all PEs: it would wait for doctors that nobody starts.
#[test]
fn what_is_no_doctor_meets_none() {
    let place = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_onesided"));
    command.args(["suite", "litmus/mp", "--backend", "nvshmem"]).env("ONESIDED_NVSHMEM_LIB", "/no/such/library");
    command.env("ONESIDED_RANK", "1").env("ONESIDED_PES", "2");
    let output = command.env("ONESIDED_RENDEZVOUS", place.local_addr().unwrap().to_string()).output().unwrap();
    assert!(stderr(&output).contains("ONESIDED_NVSHMEM_LIB names /no/such/library"), "{}", stderr(&output));
    place.set_nonblocking(true).unwrap();
    assert_eq!(place.accept().unwrap_err().kind(), ErrorKind::WouldBlock);
}

#[test]
fn doctors_with_the_same_rank_are_told() {
    for ranks in [&[0, 0][..], &[0, 1, 1]] {
        let twice = ranks[ranks.len() - 1];
        for said in doctors(ranks, ranks.len()).0 {
            let why = format!("do not fit together: two PEs have rank {twice}; start each once and with its own rank");
            assert!(said.contains(&why) && said.contains("remedy: start the doctor in the same way"), "{said}");
            assert!(said.contains(", and the PEs that met do not fit together.\n"), "{said}");
        }
    }
}

#[test]
fn a_doctor_without_a_key_says_what_to_set() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_onesided"));
    command.args(["doctor", "--library", "/no/such/library"]).env("ONESIDED_RENDEZVOUS", "127.0.0.1:9");
    let output =
        command.env("ONESIDED_RANK", "1").env("ONESIDED_PES", "2").env_remove("ONESIDED_KEY").output().unwrap();
    let said = stdout(&output);
    assert!(
        said.contains("ONESIDED_KEY: not set") && said.contains("export ONESIDED_KEY=$(openssl rand -hex 32)"),
        "{said}"
    );
    assert!(said.contains("remedy: set this variable as it says"), "{said}");
    let output = command.env("ONESIDED_KEY", "hunter2").output().unwrap();
    assert!(stdout(&output).contains("ONESIDED_KEY: it has 7 characters"), "{}", stdout(&output));
    assert!(!stdout(&output).contains("hunter2"), "{}", stdout(&output));
}

#[test]
fn a_doctor_whose_peers_do_not_come_says_who_within_its_limit() {
    for (rank, why) in [(0, "PE 1 of 2 did not arrive within 5 s"), (1, "PE 1 waited 5 s for PE 0")] {
        let (said, took) = doctors(&[rank], 2);
        assert!(took < Duration::from_secs(30), "{took:?}");
        let told = said[0].contains(why) && said[0].contains("remedy: start the doctor in the same way");
        assert!(told && said[0].contains(", and not all PEs came to where they meet.\n"), "{}", said[0]);
    }
}

#[test]
fn what_cannot_run_is_an_error() {
    for (arguments, why) in [
        (&["suite", "no_such_case"][..], "no case matches"),
        (&["suite", "litmus/mp", "--require-hardware"], "--require-hardware needs --backend nvshmem"),
        (&["suite", "litmus/mp", "--backend", "nvshmem"], "ONESIDED_NVSHMEM_LIB names /no/such/library"),
        (&["suite", "litmus/mp", "--backend", "nvshmem", "--require-hardware"], "remedy: "),
        (&["suite", "no_such_case", "--backend", "nvshmem"], "no case matches"),
        (&["suite", "--backend", "nvshmem", "--schedules", "3"], "--schedules is about simulated schedules"),
        (&["suite", "--backend", "nvshmem", "--promote"], "--promote is about simulated schedules"),
        (&["suite", "--runs", "3"], "--runs is about GPUs"),
        (&["suite", "--gpus", "1"], "--gpus is about GPUs"),
        (&["suite", "--backend", "nvshmem", "--timeout", "0"], "expected a whole number"),
        (&["litmus", "litmus/mp", "--backend", "nvshmem"], "ONESIDED_NVSHMEM_LIB names /no/such/library"),
        (
            &["litmus", "litmus/mp", "--backend", "nvshmem", "--schedules", "2"],
            "--schedules is about simulated schedules",
        ),
        (&["litmus", "litmus/mp", "--seed", "2"], "--schedules <N>"),
        (&["suite", "litmus/mp", "--seed", "2"], "--schedules <N>"),
        (&["bootstrap", "--id", "file"], "--id is about --method uid"),
        (&["bench", "--rounds", "2"], "--rounds is about GPUs: it needs --backend nvshmem"),
        (&["launch", "-n", "1", "--gpus", "4294967295", "--", "true"], "expected at most 65535 GPUs"),
        (&["score", "--labels", "f.json", "--schedules", "5", "--", "true"], "cannot be used with"),
        (&["show", "f.json", "--html", "x", "--sarif", "./x"], "--html and --sarif both name "),
        (&["litmus", "litmus/mp", "--timeout", "2"], "--timeout is about GPUs"),
        (&["compare", "/no/such/a.json", "/no/such/b.json"], "/no/such/a.json"),
        (&["suite", "litmus/mp", "--schedules", "0"], "expected a whole number"),
        (&["suite", "litmus/mp", "--promote", "--profile", "nvlink"], "cannot be used with"),
        (&["suite", "litmus/mp", "--promote", "--schedules", "3"], "cannot be used with"),
        (&["suite", "litmus/mp", "--json", "/no/such/folder/suite.json"], "cannot write"),
        (&["suite", "litmus/mp", "--expected", "/no/such/folder"], "there is no folder /no/such/folder"),
        (&["litmus", "litmus/mp", "--expected", "/no/such/folder"], "there is no folder /no/such/folder"),
        (&["suite", "--backend", "nvshmem", "--expected", "/no/such/folder"], "there is no folder /no/such/folder"),
        (&["suite", "--schedules", "-1"], "'-1' for '--schedules <N>': expected a whole number from 1 to 1844"),
        (&["suite", "--runs", "1e6"], "'1e6' for '--runs <N>': expected a whole number from 1 to 1844"),
        (&["bench", "--rounds", "0"], "'0' for '--rounds <N>': expected a whole number from 1 to 255"),
        (&["litmus", "fenced"], "part of cases' names"),
        (&["litmus", "alone"], "several chapters"),
        (&["litmus", "litmus/mp", "--replay", "os2.2x1.spec.p4.o.00000001"], "recorded from a different program"),
        (&["litmus", "litmus/mp", "--replay", "os2.4x1.spec.p4.o.00000001"], "another cluster"),
        (&["list", "no_such_case"], "no case matches"),
        (&[], "Usage"),
        (&["unknown"], "unrecognized subcommand"),
    ] {
        let output = onesided(arguments);
        assert_eq!(status(&output), 2, "{arguments:?}: {}", stdout(&output));
        assert!(stderr(&output).contains(why), "{arguments:?}: {}", stderr(&output));
    }
}

#[test]
fn without_a_library_nothing_is_measured_on_gpus() {
    let output = onesided(&["bench", "--backend", "nvshmem", "--quick"]);
    let said = stderr(&output);
    assert_eq!(status(&output), 2, "{said}");
    assert!(said.starts_with("error: nothing can be measured on GPUs here: "), "{said}");
    assert!(said.ends_with("; see `onesided doctor`\n") && output.stdout.is_empty(), "{said}");
}

#[test]
fn an_id_file_that_exists_is_refused_by_pe_0() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("id");
    fs::write(&file, "of an earlier job").unwrap();
    for (rank, why) in
        [("0", "id exists already: another job uses it, or one that was killed left it"), ("1", "no such file")]
    {
        let mut command = Command::new(env!("CARGO_BIN_EXE_onesided"));
        command
            .args(["bootstrap", "--method", "uid", "--id", path(&file)])
            .env("ONESIDED_NVSHMEM_LIB", "/no/such/library");
        let output = command.env("ONESIDED_RANK", rank).env("ONESIDED_PES", "2").output().unwrap();
        assert_eq!(status(&output), 2, "{rank}");
        assert!(stderr(&output).contains(why), "{rank}: {}", stderr(&output));
        assert!(file.exists());
    }
}
