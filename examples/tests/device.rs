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

/// On two PEs all but two are small enough for all their schedules: in those, many threads signal or count side by side.
#[test]
fn all_schedules_of_two_pes_are_right() {
    for (name, program) in EXAMPLES.into_iter().filter(|(name, _)| !["device_histogram", "device_moe"].contains(name)) {
        let (status, said) = run(program, &["--pes", "2", "--all", "--strict"]);
        assert_eq!(status, 0, "{name}:\n{said}");
        assert!(said.contains(&format!("{name}: proved for 2 PEs under spec with ")), "{said}");
    }
}
