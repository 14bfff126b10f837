//! The examples with kernels: each passes on several clusters, and each broken twin is found.

use std::process::{Command, Output};

/// Each example with its program.
const EXAMPLES: [(&str, &str); 9] = [
    ("device_allreduce", env!("CARGO_BIN_EXE_device_allreduce")),
    ("device_alltoall", env!("CARGO_BIN_EXE_device_alltoall")),
    ("device_histogram", env!("CARGO_BIN_EXE_device_histogram")),
    ("device_jacobi", env!("CARGO_BIN_EXE_device_jacobi")),
    ("device_moe", env!("CARGO_BIN_EXE_device_moe")),
    ("device_pipeline", env!("CARGO_BIN_EXE_device_pipeline")),
    ("device_put_block", env!("CARGO_BIN_EXE_device_put_block")),
    ("device_ring", env!("CARGO_BIN_EXE_device_ring")),
    ("device_ring_reduce", env!("CARGO_BIN_EXE_device_ring_reduce")),
];

/// Status, and what was said.
fn run(program: &str, arguments: &[&str]) -> (i32, String) {
    // On a machine with GPUs too, the backend on GPUs finds no library in these tests.
    let mut command = Command::new(program);
    let Output { status, stdout, stderr } =
        command.args(arguments).env_remove("COLUMNS").env("ONESIDED_NVSHMEM_LIB", "/no/such/library").output().unwrap();
    (status.code().unwrap(), String::from_utf8_lossy(&[stdout, stderr].concat()).into_owned())
}

#[test]
fn every_example_passes_on_several_clusters() {
    for (name, program) in EXAMPLES {
        for cluster in [&[][..], &["--pes", "1"], &["--pes", "2"], &["--pes", "3", "--profile", "nvlink"]] {
            let (status, said) = run(program, &[cluster, &["--schedules", "10", "--strict"]].concat());
            assert_eq!(status, 0, "{name} {cluster:?}:\n{said}");
            assert!(said.contains(": nothing wrong in 10 schedules (1 in order, 9 random from seed 0: "), "{said}");
        }
    }
}

#[test]
fn every_broken_twin_is_found() {
    for (name, program) in EXAMPLES {
        let (status, said) = run(program, &["--broken"]);
        assert_eq!(status, 1, "{name}:\n{said}");
        let source = said.lines().any(|line| line.contains(".cu:"));
        assert!(source, "{name}: no line of the kernel is named:\n{said}");
    }
}

#[test]
fn all_schedules_are_right() {
    for (name, program) in EXAMPLES {
        for pes in ["2", "4"] {
            // six threads that take tickets for two experts have 36 orders on each PE, and four have 4
            let tokens: &[&str] = if name == "device_moe" { &["--tokens", "4"] } else { &[] };
            let (status, said) = run(program, &[tokens, &["--pes", pes, "--all", "--strict"]].concat());
            assert_eq!(status, 0, "{name}:\n{said}");
            let program = [&[name], tokens].concat().join(" ");
            assert!(said.contains(&format!("{program}: proved for {pes} PEs under spec with ")), "{said}");
        }
    }
}

/// What Numba, NVSHMEM4Py, Triton and CuTe DSL make of a kernel is right in every order of two PEs, and in some of three and four.
#[test]
fn kernels_from_python_are_right() {
    for (front, kernel) in from_python() {
        let options = ["--front", front, "--kernel", kernel, "--strict"];
        let (status, said) = run(PYTHON, &[&options[..], &["--pes", "2", "--all"]].concat());
        assert_eq!(status, 0, "{options:?}:\n{said}");
        assert!(said.contains(": proved for 2 PEs under spec with "), "{said}");
        for pes in ["3", "4"] {
            let (status, said) = run(PYTHON, &[&options[..], &["--pes", pes, "--schedules", "10"]].concat());
            assert_eq!(status, 0, "{options:?}:\n{said}");
            assert!(said.contains(": nothing wrong in 10 schedules"), "{said}");
        }
    }
}

#[test]
fn broken_kernels_from_python_are_found_at_their_lines() {
    for (front, kernel) in from_python() {
        let (status, said) = run(PYTHON, &["--front", front, "--kernel", kernel, "--broken"]);
        assert_eq!(status, 1, "{front} {kernel}:\n{said}");
        let put = match (kernel, front) {
            ("exchange", "nvshmem4py" | "cute") => "put_nbi",
            ("exchange", _) => "p",
            _ => "put",
        };
        let line = format!("data race: delivery of {put} at {front}_kernels.py:");
        assert!(said.contains(&line) && said.contains(" and read of load at "), "{front} {kernel}:\n{said}");
        assert!(said.contains("missing: a "), "{front} {kernel}:\n{said}");
        assert!(said.contains("It matters: ") && said.contains("check: the sum["), "{front} {kernel}:\n{said}");
    }
}

const PYTHON: &str = env!("CARGO_BIN_EXE_device_python");

fn from_python() -> impl Iterator<Item = (&'static str, &'static str)> {
    let fronts = ["numba", "nvshmem4py", "triton", "cute"];
    fronts.into_iter().flat_map(|front| ["ring", "exchange"].map(|kernel| (front, kernel)))
}

#[test]
fn a_finding_names_the_call_that_inlined_a_line_and_has_the_kernels_text() {
    let program = env!("CARGO_BIN_EXE_device_ring_reduce");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("finding.json");
    let (status, said) = run(program, &["--broken", "--finding", file.to_str().unwrap()]);
    assert_eq!(status, 1, "{said}");
    let text = include_str!("../src/kernels/ring_reduce.cu");
    let line = |words: &str| 1 + text.lines().position(|line| line.contains(words)).expect(words);
    let [put, first, second] = ["put_nbi_block(dst", "send(now, before", "send(newest, newest"].map(line);
    let lines =
        [first, second].map(|call| format!("put_nbi at ring_reduce.cu:{put}, inlined at ring_reduce.cu:{call} by"));
    assert!(lines.iter().any(|lines| said.contains(lines)), "{said}");

    let finding: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
    let inlined_at = finding["races"][0]["first"]["inlined_at"].as_array().unwrap();
    assert_eq!(inlined_at.len(), 1, "{inlined_at:?}");
    let sources = finding["sources"].as_array().unwrap();
    let source = sources.iter().find(|source| source["file"] == "ring_reduce.cu").unwrap();
    assert_eq!(source["text"], text);
}

#[test]
fn a_race_in_shared_memory_names_the_array_and_the_barrier() {
    let (status, said) = run(env!("CARGO_BIN_EXE_device_moe"), &["--broken"]);
    assert_eq!(status, 1, "{said}");
    let text = include_str!("../src/kernels/moe_dispatch.cu");
    assert!(text.contains("extern __shared__ int sent[];"), "{text}");
    let race = "race in shared memory: nothing orders the read of 4 bytes at sent+0 and an earlier write there (moe_dispatch.cu:";
    assert!(said.contains(race), "{said}");
    assert!(said.contains("\n    the other: moe_dispatch.cu:"), "{said}");
    let missing = "\n    missing: a barrier of the block (__syncthreads) ";
    assert!(said.contains(missing), "{said}");
}

#[test]
fn all_races_are_shown_if_they_are_asked_for() {
    let program = env!("CARGO_BIN_EXE_device_ring_reduce");
    let races = |said: &str| said.lines().filter(|line| line.contains("data race: ")).count();
    let (status, few) = run(program, &["--broken"]);
    assert_eq!((status, races(&few)), (1, 1), "{few}");
    let more = few.lines().find_map(|line| line.trim().strip_suffix(" more pairs of calls race")).expect("more races");
    let (status, all) = run(program, &["--broken", "--all-races"]);
    assert_eq!((status, races(&all)), (1, 1 + more.parse::<usize>().unwrap()), "{all}");
    assert!(!all.contains("more pairs of calls race"), "{all}");
}

/// The kernel's store is no step of its own, so the run in which it matters has no exception.
#[test]
fn the_only_race_matters_if_the_results_differ() {
    let (status, said) = run(env!("CARGO_BIN_EXE_device_put_block"), &["--broken"]);
    assert_eq!(status, 1, "{said}");
    assert!(said.contains("\nIt matters: PE "), "{said}");
}

/// The text of a kernel, as a user has edited it, is compiled on the machine. Where there is no compiler, the error says how to get one.
#[test]
fn the_source_is_compiled_where_a_compiler_is() {
    for (name, program) in EXAMPLES {
        let (status, said) = run(program, &["--compile", "--pes", "2"]);
        if status == 2 && said.contains("NVRTC, which compiles kernels, is not here") {
            assert!(said.contains("remedy: pip install nvidia-cuda-nvrtc"), "{said}");
            println!("skipped: {name} --compile, as NVRTC is not here");
            continue;
        }
        assert_eq!(status, 0, "{name}:\n{said}");
        let (status, said) = run(program, &["--compile", "--broken"]);
        assert!(status == 1 && said.contains(".cu:"), "{name}:\n{said}");
    }
}
