//! Initialization through MPI with the genuine library under a real `mpirun`, on a machine without a GPU: the PEs meet,
//! and each says that it lacks a device. (With GPUs, `ci/hardware` does this and more.)
//!
//! A test starts this program again, once for each rank, to run the same test there.
#![cfg(feature = "mpi")]

use std::env;
use std::io::Write as _;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use mpi::Threading;
use mpi::traits::CommunicatorCollectives as _;
use onesided::{Bootstrap, ErrorKind, InitMethod};
use onesided_nvshmem::{Process, Settings, driver, host_library};

/// Set for the processes that a test starts: how the rank behaves.
const ROLE: &str = "ONESIDED_TEST_ROLE";
/// Longer than any of these jobs takes.
const LONG: Duration = Duration::from_secs(40);

/// What a rank prints: how initialization ended here.
fn rank(method: InitMethod, limit: Duration) {
    let mut settings = Settings::default();
    settings.limit = limit;
    let process = Process::open(settings).unwrap();
    let error = process.init(method).map(drop).unwrap_err();
    assert_eq!(error.call(), "init");
    println!("said: {}: {}", error.kind(), error.message());
    std::process::exit(4); // as a program does that reports an error: without finalizing anything
}

/// Runs test `name` in `ranks` processes; `None` where something is missing, which it says.
fn start(name: &str, ranks: usize, role: &str) -> Option<Output> {
    let missing = if let Err(problem) = host_library(None) {
        assert!(env::var_os("ONESIDED_NVSHMEM_LIB").is_none(), "{problem}");
        "no library"
    } else if driver().is_ok_and(|driver| !driver.gpus.is_empty()) {
        "this machine has a GPU: see ci/hardware"
    } else if Command::new("mpirun").arg("--version").output().is_err() {
        "no mpirun"
    } else {
        ""
    };
    if !missing.is_empty() {
        let text = format!("not run: {missing}\n"); // not by eprintln, which is not shown when a test passes
        std::io::stderr().write_all(text.as_bytes()).unwrap();
        return None;
    }
    let mut command = Command::new("timeout");
    command.args(["80", "mpirun", "--allow-run-as-root", "--oversubscribe", "-n", &ranks.to_string()]);
    command.arg(env::current_exe().unwrap()).args(["--exact", name, "--nocapture", "--test-threads", "1"]);
    Some(command.env(ROLE, role).output().unwrap())
}

/// The lines that the ranks said, sorted.
fn said(output: &Output) -> Vec<String> {
    let text = String::from_utf8_lossy(&output.stdout);
    let mut lines: Vec<_> = text.lines().filter_map(|line| Some(line.split_once("said: ")?.1.to_string())).collect();
    lines.sort();
    lines
}

fn every_rank_lacks_a_gpu(name: &str, method: InitMethod) {
    if env::var_os(ROLE).is_some() {
        return rank(method, LONG);
    }
    for n in [2, 3] {
        let started = Instant::now();
        let Some(output) = start(name, n, "all") else { return };
        assert!(started.elapsed() < LONG, "it waited for the limit: {output:?}");
        assert_eq!(output.status.code(), Some(4), "{output:?}");
        // mpirun may end the others as soon as the first has ended; those that spoke say the same.
        let said = said(&output);
        assert!(!said.is_empty(), "{output:?}");
        for line in &said {
            assert!(line.starts_with("initialization: PE ") && line.contains("has no GPU"), "{line}\n{output:?}");
        }
    }
}

#[test]
fn by_emulated_mpi_every_rank_says_that_it_lacks_a_gpu() {
    every_rank_lacks_a_gpu("by_emulated_mpi_every_rank_says_that_it_lacks_a_gpu", InitMethod::EmulatedMpi);
}

#[test]
fn by_mpi_every_rank_says_that_it_lacks_a_gpu() {
    every_rank_lacks_a_gpu("by_mpi_every_rank_says_that_it_lacks_a_gpu", InitMethod::Mpi);
}

#[test]
fn a_rank_that_never_initializes_is_an_error_within_the_limit() {
    let name = "a_rank_that_never_initializes_is_an_error_within_the_limit";
    if let Ok(role) = env::var(ROLE) {
        if env::var("OMPI_COMM_WORLD_RANK").unwrap() == "0" {
            return std::thread::sleep(2 * LONG);
        }
        let method = if role == "mpi" { InitMethod::Mpi } else { InitMethod::EmulatedMpi };
        return rank(method, Duration::from_secs(1));
    }
    for role in ["mpi", "emulated_mpi"] {
        let started = Instant::now();
        let Some(output) = start(name, 2, role) else { return };
        assert!(started.elapsed() < LONG, "{role}: {output:?}");
        assert_eq!(output.status.code(), Some(4), "{role}: {output:?}");
        let said = said(&output).concat();
        assert!(said.starts_with(ErrorKind::Timeout.name()) && said.contains("MPI_Init"), "{role}: {said}");
        assert!(said.contains("; remedy: see whether one mpirun started all of them"), "{role}: {said}");
    }
}

/// All ranks have met by MPI, and one goes no further.
#[test]
fn a_rank_that_stops_between_mpi_and_nvshmem_is_an_error_within_the_limit() {
    let name = "a_rank_that_stops_between_mpi_and_nvshmem_is_an_error_within_the_limit";
    if let Ok(role) = env::var(ROLE) {
        if env::var("OMPI_COMM_WORLD_RANK").unwrap() == "0" {
            let (universe, _) = mpi::initialize_with_threading(Threading::Serialized).unwrap();
            let mut hosts = [0_u64; 2]; // what `init` exchanges, to learn who is on this host
            mpi::request::scope(|scope| {
                universe.world().immediate_all_gather_into(scope, &1_u64, &mut hosts[..]).wait_without_status();
            });
            return std::thread::sleep(2 * LONG);
        }
        let _universe = (role == "single").then(|| mpi::initialize_with_threading(Threading::Single).unwrap());
        return rank(InitMethod::Mpi, Duration::from_secs(3));
    }
    let why = "PE 1 of 2: init: nvshmemx_hostlib_init_attr: no answer within 3 s: a PE may be missing";
    for role in ["serialized", "single"] {
        let started = Instant::now();
        let Some(output) = start(name, 2, role) else { return };
        assert!(started.elapsed() < LONG && !output.status.success(), "{role}: {output:?}");
        if role == "single" {
            // Calls of its thread only: nothing but the end of the process ends them.
            assert!(String::from_utf8_lossy(&output.stderr).contains(why), "{output:?}");
        } else {
            assert_eq!(output.status.code(), Some(4), "{output:?}");
            let said = said(&output).concat();
            let why = why.replacen(" init:", "", 1);
            assert!(said.starts_with(ErrorKind::Timeout.name()) && said.contains(&why), "{said}");
        }
    }
}
