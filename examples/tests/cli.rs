//! The examples, as a user calls them: every one passes but the one that is broken on purpose, and the command line that
//! all share does what it says.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

/// Each example with its program.
const EXAMPLES: [(&str, &str); 12] = [
    ("allreduce", env!("CARGO_BIN_EXE_allreduce")),
    ("buffers", env!("CARGO_BIN_EXE_buffers")),
    ("halo", env!("CARGO_BIN_EXE_halo")),
    ("hello", env!("CARGO_BIN_EXE_hello")),
    ("histogram", env!("CARGO_BIN_EXE_histogram")),
    ("missing_fence", env!("CARGO_BIN_EXE_missing_fence")),
    ("peer", env!("CARGO_BIN_EXE_peer")),
    ("pipeline", env!("CARGO_BIN_EXE_pipeline")),
    ("put_signal", env!("CARGO_BIN_EXE_put_signal")),
    ("reduce", env!("CARGO_BIN_EXE_reduce")),
    ("ring", env!("CARGO_BIN_EXE_ring")),
    ("teams", env!("CARGO_BIN_EXE_teams")),
];

fn example(name: &str, arguments: &[&str]) -> Output {
    let (_, file) = EXAMPLES.iter().find(|(other, _)| *other == name).expect("an example's name");
    // On a machine with GPUs too, the backend on GPUs finds no library in these tests.
    let mut command = Command::new(file);
    command.args(arguments).env_remove("COLUMNS").env("ONESIDED_NVSHMEM_LIB", "/no/such/library").output().unwrap()
}

fn status(output: &Output) -> i32 {
    output.status.code().unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

fn path(path: &Path) -> &str {
    path.to_str().unwrap()
}

fn json(file: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap()
}

#[test]
fn every_example_passes_on_several_clusters() {
    for (name, _) in EXAMPLES.iter().filter(|(name, _)| *name != "missing_fence") {
        for cluster in [&[][..], &["--pes", "2"], &["-n", "5"], &["-n6", "--nodes", "2"], &["--profile", "nvlink"]] {
            let output = example(name, &[cluster, &["--schedules", "20", "--strict"]].concat());
            assert_eq!(status(&output), 0, "{name} {cluster:?}:\n{}{}", stdout(&output), stderr(&output));
            assert!(
                stdout(&output).contains(": nothing wrong in 20 schedules (1 in order, 19 random from seed 0: "),
                "{name}"
            );
        }
    }
}

/// What a search prints and writes does not depend on the number of cores.
#[test]
fn every_number_of_cores_has_the_same_result() {
    let folder = tempfile::tempdir().unwrap();
    for (name, arguments) in [
        ("teams", &["--all", "--pes", "4"][..]),
        ("allreduce", &["--schedules", "60", "--strategy", "pos"]),
        ("missing_fence", &[]),
        ("missing_fence", &["--strategy", "plain", "--explain"]),
        ("missing_fence", &["--profile", "all", "--all"]),
        ("ring", &["--pes", "2..4", "--all"]),
    ] {
        let with = |jobs: &str| {
            let file = folder.path().join("summary.json");
            let output = example(name, &[arguments, &["--jobs", jobs, "--json", path(&file)]].concat());
            let mut summary = json(&file);
            without_times(&mut summary);
            (status(&output), stdout(&output), stderr(&output), summary)
        };
        let alone = with("1");
        assert!(alone.0 < 2, "{name}: {}", alone.2);
        for jobs in ["2", "3"] {
            assert_eq!(with(jobs), alone, "{name} {arguments:?}");
        }
    }
    assert_eq!(status(&example("ring", &["--jobs", "0"])), 2);
}

fn without_times(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.remove("seconds");
            fields.values_mut().for_each(without_times);
        }
        Value::Array(values) => values.iter_mut().for_each(without_times),
        _ => {}
    }
}

/// Every example on two PEs is small enough for all its schedules.
#[test]
fn every_example_passes_on_all_schedules_of_two_pes() {
    for (name, _) in EXAMPLES.iter().filter(|(name, _)| *name != "missing_fence") {
        let output = example(name, &["--pes", "2", "--all", "--strict"]);
        assert_eq!(status(&output), 0, "{name}:\n{}{}", stdout(&output), stderr(&output));
        assert!(
            stdout(&output).contains(&format!("{name}: proved for 2 PEs under spec with ")),
            "{name}: {}",
            stdout(&output)
        );
    }
}

#[test]
fn a_finding_comes_with_the_command_that_replays_it() {
    let found = example("missing_fence", &[]);
    assert_eq!(status(&found), 1);
    let replayed = example("missing_fence", &replay_arguments(&stdout(&found)));
    assert_eq!(status(&replayed), 1, "{}", stderr(&replayed));
    assert_eq!(verdict(&stdout(&replayed)), verdict(&stdout(&found)));

    // Again with all schedules, where a schedule is written in another way.
    let found = example("missing_fence", &["--all"]);
    let replayed = example("missing_fence", &replay_arguments(&stdout(&found)));
    assert_eq!((status(&found), status(&replayed)), (1, 1));
    assert_eq!(verdict(&stdout(&replayed)), verdict(&stdout(&found)));
}

/// A finding of the kind that only some orders have names what comes later than in order, and so does its replay.
#[test]
fn a_finding_is_told_by_its_exceptions() {
    let found = example("missing_fence", &["--races", "note", "--json", "-"]);
    let said = stderr(&found);
    let (_, exceptions) = said.split_once("\n\nOther than in order:\n").expect("exceptions");
    let lines: Vec<&str> = exceptions.lines().take(3).collect();
    assert!(
        lines[0].contains("the delivery of put at examples/src/bin/missing_fence.rs:34 by PE 0 to PE 1 (piece "),
        "{said}"
    );
    assert!(lines[1].contains("comes after ") && lines[2].is_empty(), "{said}");
    let summary: Value = serde_json::from_str(&stdout(&found)).unwrap();
    let finding = &summary["finding"];
    assert_eq!((finding["exceptions"].as_array().unwrap().len(), &finding["fix"]["proved"]), (1, &Value::from(true)));
    let replayed = example("missing_fence", &["--races", "note", "--replay", finding["schedule"].as_str().unwrap()]);
    assert_eq!(verdict(&stdout(&replayed)), verdict(&said));
}

#[test]
fn a_right_program_is_tried_without_its_calls() {
    let output = example("ring", &["--weaken", "--pes", "3"]);
    let said = stdout(&output);
    assert_eq!(status(&output), 0, "{said}");
    assert!(said.contains("\nring: proved for 3 PEs under spec"), "{said}");
    assert!(said.contains(": needed for 3 PEs\nEvery PE checked that "), "{said}");
    let none = stdout(&example("put_signal", &["--weaken"]));
    assert!(
        none.contains("\n--weaken: it has no fence, flush, quiet, barrier or sync of its own outside of kernels\n"),
        "{none}"
    );
    assert_eq!(status(&example("missing_fence", &["--weaken"])), 1);
    let several = example("ring", &["--weaken", "--pes", "2..3"]);
    assert!(status(&several) == 2 && stderr(&several).contains("--weaken is about one run"), "{}", stderr(&several));
}

/// The arguments of the command that a finding prints.
fn replay_arguments(said: &str) -> Vec<&str> {
    let command = said.lines().find_map(|line| line.strip_prefix("Replay it: ")).expect("a command");
    let profile = if cfg!(debug_assertions) { "" } else { " --release" };
    let arguments = command.strip_prefix(&format!("cargo run{profile} --bin missing_fence -- "));
    arguments.expect("a command of cargo").split(' ').collect()
}

/// The finding without its schedule's number.
fn verdict(said: &str) -> &str {
    let (_, finding) = said.split_once("FINDING ").expect("a finding");
    let (_, verdict) = finding.split_once(": ").expect("a verdict");
    verdict.split_once("\nReplay it: ").expect("a command").0
}

#[test]
fn a_finding_reads_well() {
    insta::assert_snapshot!("finding", without_numbers(&stdout(&example("missing_fence", &[]))));
}

/// Leaves out what changes with the machine, and with the code: schedules, source lines, steps, seconds.
fn without_numbers(said: &str) -> String {
    let word = |word: &str| {
        let digits = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_digit() || c == '.');
        match word.rsplit_once(".rs:") {
            Some((file, rest)) => {
                let after: String = rest.chars().skip_while(char::is_ascii_digit).collect();
                format!("{file}.rs:[line]{after}")
            }
            None if word.starts_with("os2.") => "[schedule]".to_string(),
            None if digits(word) => "[number]".to_string(),
            None => word.to_string(),
        }
    };
    let line = |line: &str| {
        let is_counted = line.contains(" schedules (") || line.contains("Replay it") || line.contains(".rs:");
        let words = line.split(' ').map(|text| if is_counted { word(text) } else { text.to_string() });
        words.collect::<Vec<_>>().join(" ")
    };
    said.lines().map(|text| line(text) + "\n").collect()
}

#[test]
fn help() {
    insta::assert_snapshot!("help", stdout(&example("ring", &["--help"])));
}

#[test]
fn traces_are_the_same_byte_for_byte() {
    let folder = tempfile::tempdir().unwrap();
    let trace = |name: &str, arguments: &[&str]| {
        let file = folder.path().join(name);
        example("missing_fence", &[arguments, &["--trace", path(&file)]].concat());
        fs::read(file).unwrap()
    };
    let first = trace("first", &["--seed", "7", "--races", "note"]);
    assert!(first == trace("second", &["--seed", "7", "--races", "note"]));

    let trace: Value = serde_json::from_slice(&first).unwrap();
    assert_eq!([&trace["schema"], &trace["program"]], ["onesided-trace/2", "missing_fence"]);
    assert_eq!(trace["verdict"], "failed: wrong result");
    let replayed = folder.path().join("replayed");
    let schedule = trace["schedule"].as_str().unwrap();
    example("missing_fence", &["--replay", schedule, "--races", "note", "--trace", path(&replayed)]);
    assert!(fs::read(replayed).unwrap() == first, "the trace of the replay is that of the finding");
    let steps: Vec<u64> =
        trace["events"].as_array().unwrap().iter().map(|event| event["step"].as_u64().unwrap()).collect();
    assert!(steps.len() > 10 && steps.is_sorted(), "{steps:?}");
}

#[test]
fn without_a_finding_the_trace_is_of_the_first_schedule() {
    let folder = tempfile::tempdir().unwrap();
    for (arguments, choices) in
        [(&[][..], ".o."), (&["--strategy", "plain"], ".r0."), (&["--all", "--pieces", "1"], ".o.")]
    {
        let file = folder.path().join("trace.json");
        let trace = ["--pes", "2", "--schedules", "200", "--trace", path(&file)];
        let output = example("ring", &[arguments, &trace].concat());
        assert_eq!(status(&output), 0, "{}", stderr(&output));
        assert!(json(&file)["schedule"].as_str().unwrap().contains(choices), "{}", json(&file)["schedule"]);
    }
}

#[test]
fn a_summary_says_what_was_run_and_found() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("run.json");
    example("ring", &["--pes", "3", "--schedules", "9", "--seed", "5", "--json", path(&file)]);
    let run = json(&file);
    assert_eq!([&run["schema"], &run["program"], &run["status"]], ["onesided-run/2", "ring", "ok"]);
    assert_eq!([&run["pes"], &run["schedules"], &run["seed"]], [3, 9, 5]);
    assert_eq!(run["lines"].as_array().unwrap().len(), 3);

    example("missing_fence", &["--races", "note", "--json", path(&file)]);
    let finding = &json(&file)["finding"];
    assert_eq!(finding["verdict"], "failed: wrong result");
    let replay = format!("{} --races note", finding["schedule"].as_str().unwrap());
    assert!(finding["replay"].as_str().unwrap().ends_with(&replay), "{finding}");

    example("ring", &["--heap", "8", "--json", path(&file)]);
    assert_eq!(json(&file)["status"], "error");
}

#[test]
fn races_that_are_no_findings_are_noted() {
    let note = "note: accesses race, which is no finding with --races note: data race: ";
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("run.json");
    let in_order = example("missing_fence", &["--races", "note", "--schedules", "1", "--json", path(&file)]);
    assert_eq!(status(&in_order), 0, "{}", stderr(&in_order));
    assert!(stdout(&in_order).contains(note), "{}", stdout(&in_order));
    assert!(json(&file)["noted"][0].as_str().unwrap().starts_with("data race: "), "{}", json(&file)["noted"]);
    let right = example("ring", &["--races", "note", "--all", "--pes", "2"]);
    let said = stdout(&right);
    assert!(said.contains("1 class, no race, no deadlock, nothing else") && !said.contains(note), "{said}");
}

#[test]
fn schedules_are_chosen_as_asked() {
    for (arguments, ends, said) in [
        (&["--schedules", "1"][..], 0, "in 1 schedule (in order) for 4 PEs under spec"),
        (&["--strategy", "in-order"], 0, "in 1 schedule (in order) for 4 PEs under spec"),
        (&["--strategy", "plain", "--schedules", "3", "--seed", "4"], 0, "3 schedules (random from seed 4: 1 class)"),
        (
            &["--all", "--pes", "3"],
            0,
            "pipeline: proved for 3 PEs under spec with up to 4 pieces a transfer: 1 class, no race, no deadlock, nothing else\n",
        ),
        (&["--pes", "8", "--nodes", "2"], 0, "for 8 PEs on 2 nodes under spec with up to 4 pieces a transfer; "),
        (&["--chunks", "3", "--slots", "1"], 0, "PE 0 received [300, 301, 310, 311, 320, 321] from PE 3"),
        (&["--slots", "0"], 2, "pipeline cannot run on 4 PEs: it needs a chunk and a slot"),
    ] {
        let output = example("pipeline", arguments);
        assert_eq!(status(&output), ends, "{}", stderr(&output));
        let stdout = |output| stdout(output) + &stderr(output);
        assert!(stdout(&output).contains(said), "{arguments:?}: {}", stdout(&output));
    }
    let many = example("teams", &["--all", "--schedules", "2"]);
    assert!(status(&many) == 3 && stdout(&many).contains("teams: not proved for 4 PEs under spec with up to 4 pieces a transfer: nothing wrong in 2 classes of about "), "{}", stdout(&many));
}

#[test]
fn what_cannot_run_is_an_error() {
    let of_hello = schedule_of("hello");
    for (arguments, why) in [
        (&["--schedules", "0"][..], "expected a whole number from 1 to 1844"),
        (&["--unknown"], "unexpected argument"),
        (&["--pes", "0"], "'0' for '--pes <N>': expected a whole number from 1 to 32000"),
        (&["--pes", "40000"], "expected a whole number from 1 to 32000"),
        (&["--nodes", "3"], "3 nodes"),
        (&["--pieces", "0"], "'0' for '--pieces <N>'"),
        (&["--heap", "much"], "expected a size from 1 to 1T"),
        (&["--heap", "8"], "--heap"),
        (&["--strategy", "random"], "there are in-order, plain, pos and pct"),
        (&["--backend", "nvshmem"], "ONESIDED_NVSHMEM_LIB names /no/such/library"),
        (&["--backend", "nvshmem"], "remedy: name the file libnvshmem_host.so.3"),
        (&["--backend", "nvshmem", "--all"], "--all is about the simulator"),
        (&["--backend", "nvshmem", "--trace", "trace.json"], "--trace is about the simulator"),
        (&["--backend", "nvshmem", "--like", "nvshmem"], "--like is about the simulator"),
        (&["--backend", "nvshmem", "--timeout", "0"], "expected a whole number from 1 to 86400"),
        (&["--mps"], "--mps is about GPUs: it needs --backend nvshmem"),
        (&["--gpus", "0,1"], "a list of GPUs needs --backend nvshmem"),
        (&["--trace", "/no/such/folder/trace.json"], "cannot write"),
        (&["--trace", "a.json", "--json", "a.json"], "--trace and --json both name a.json"),
        (&["--replay", "nonsense"], "is not a schedule"),
        (&["--replay", &of_hello], "recorded from a different program"),
        (&["--replay", &of_hello, "--pes", "2"], "contradicts the schedule"),
        (&["--replay", &of_hello, "--seed", "2"], "cannot be used with"),
    ] {
        let output = example("ring", arguments);
        assert_eq!(status(&output), 2, "{arguments:?}: {}", stdout(&output));
        assert!(stderr(&output).contains(why), "{arguments:?}: {}", stderr(&output));
    }
    let kernel = |argument| Command::new(env!("CARGO_BIN_EXE_kernel")).arg(argument).output().unwrap();
    assert_eq!((status(&kernel("--pes")), status(&kernel("--help"))), (2, 0));
    let few = example("put_signal", &["--pes", "1"]);
    assert!(status(&few) == 2 && stderr(&few).contains("put_signal needs at least 2 PEs"), "{}", stderr(&few));
}

/// It has a command line of its own, and prints as the others do: nobody need read that.
#[test]
fn the_help_of_kernel_needs_no_reader() {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let output = Command::new(env!("CARGO_BIN_EXE_kernel")).arg("--help").stdout(writer).output().unwrap();
    assert_eq!((status(&output), stderr(&output).as_str()), (0, ""));
}

/// A process that a launcher started is a PE: it starts no others, and takes no options of the one that does.
#[test]
fn a_process_that_was_started_as_a_pe_is_that_pe() {
    let (_, ring) = EXAMPLES.iter().find(|(name, _)| *name == "ring").unwrap();
    let pe = |arguments: &[&str]| {
        let mut command = Command::new(ring);
        command.args(["--backend", "nvshmem"]).args(arguments).env("ONESIDED_NVSHMEM_LIB", "/no/such/library");
        command.env("ONESIDED_RANK", "1").env("ONESIDED_PES", "2").env("ONESIDED_RENDEZVOUS", "127.0.0.1:9");
        let output = command.output().unwrap();
        assert_eq!(status(&output), 2, "{}", stdout(&output));
        stderr(&output)
    };
    assert!(pe(&[]).starts_with("PE 1 failed: open: ONESIDED_NVSHMEM_LIB names /no/such/library"), "{}", pe(&[]));
    assert!(pe(&[]).contains("no such file; remedy: name the file libnvshmem_host.so.3"), "{}", pe(&[]));
    assert!(pe(&[]).contains("`onesided doctor`, started in the same way"), "{}", pe(&[]));
    for (arguments, why) in [
        (["--pes", "3"], "--pes 3 contradicts the launcher, which started 2"),
        (["--gpus", "1"], "--gpus is for the process that starts the PEs"),
        (["--json", "run.json"], "--json is for the process that starts the PEs"),
        (["--heap", "1M"], "set NVSHMEM_SYMMETRIC_SIZE"),
    ] {
        let said = pe(&arguments);
        assert!(said.contains(why), "{arguments:?}: {said}");
    }
}

/// Before there is a PE, every error is an operating one.
#[test]
fn a_pe_whose_environment_is_wrong_is_no_finding() {
    let (_, ring) = EXAMPLES.iter().find(|(name, _)| *name == "ring").unwrap();
    let mut command = Command::new(ring);
    command.args(["--backend", "nvshmem"]).env("ONESIDED_TIMEOUT", "abc");
    command.env("ONESIDED_RANK", "0").env("ONESIDED_PES", "2").env("ONESIDED_RENDEZVOUS", "127.0.0.1:9");
    let output = command.output().unwrap();
    assert_eq!(status(&output), 2, "{}", stdout(&output));
    assert!(stderr(&output).contains("ONESIDED_TIMEOUT"), "{}", stderr(&output));
}

#[test]
fn a_launcher_that_starts_simulations_is_told() {
    let (_, ring) = EXAMPLES.iter().find(|(name, _)| *name == "ring").unwrap();
    for (rank, note) in [("0", "note: a launcher started 2 processes, and each simulates all PEs"), ("1", "")] {
        let mut command = Command::new(ring);
        command.env("ONESIDED_RANK", rank).env("ONESIDED_PES", "2").env("ONESIDED_RENDEZVOUS", "127.0.0.1:9");
        let output = command.output().unwrap();
        assert_eq!(status(&output), 0);
        assert!(
            stderr(&output).starts_with(note) && stderr(&output).is_empty() == note.is_empty(),
            "{}",
            stderr(&output)
        );
    }
}

#[test]
fn an_exploration_that_is_too_large_advises_fewer_pes() {
    let output = example("teams", &["--all", "--schedules", "2", "--pes", "4"]);
    assert_eq!(status(&output), 3);
    assert!(
        stdout(&output).contains("bounded by 2 schedules") && stdout(&output).contains("--pes 3 (fewer PEs)"),
        "{}",
        stdout(&output)
    );
}

/// The schedule in order of an example.
fn schedule_of(name: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("trace.json");
    example(name, &["--schedules", "1", "--trace", path(&file)]);
    json(&file)["schedule"].as_str().unwrap().to_string()
}

#[test]
fn a_report_has_colours_where_they_are_wanted() {
    let (_, file) = EXAMPLES.iter().find(|(name, _)| *name == "missing_fence").unwrap();
    let said = |variables: &[(&str, &str)]| {
        let mut command = Command::new(file);
        command.env_remove("NO_COLOR").env("ONESIDED_NVSHMEM_LIB", "/no/such/library").envs(variables.iter().copied());
        stdout(&command.output().unwrap())
    };
    let coloured = said(&[("CLICOLOR_FORCE", "1")]);
    for words in
        ["\u{1b}[31mFINDING\u{1b}[0m ", "\u{1b}[32mFix:\u{1b}[0m ", "\u{1b}[36mexamples/src/bin/missing_fence.rs:"]
    {
        assert!(coloured.contains(words), "{coloured:?}");
    }
    let plain = said(&[]);
    assert!(!plain.contains('\u{1b}'), "{plain:?}");
    assert_eq!(said(&[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")]), plain);
    let painted = ["[0m", "[1m", "[31m", "[32m", "[36m"]
        .iter()
        .fold(coloured, |text, code| text.replace(&format!("\u{1b}{code}"), ""));
    assert_eq!(painted, plain, "the words are the same");
}
