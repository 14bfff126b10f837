//! [`World`] under a real `mpirun`. Each test starts this test program again, once for each rank, to run the same test
//! there; what every rank checks stands in the first half of the test, and what the job must show in the second.

use std::io::Write as _;
use std::process::{Command, Output};

use super::*;

/// Set for the processes that a test starts.
const ROLE: &str = "ONESIDED_TEST_RANK";
/// Longer than any of these jobs takes, and shorter than the limit of the whole job.
const LONG: Duration = Duration::from_secs(30);

/// Whether this process was started by the test of the same name.
fn is_rank() -> bool {
    std::env::var_os(ROLE).is_some()
}

/// Says to the test that started this process that it came so far.
fn say(text: &str) {
    println!("said: {text}.");
}

/// Starts test `name` of this program with its output shown; under `mpirun` if `ranks` is not 0. `None` without mpirun.
fn start(name: &str, ranks: usize, set: &[(&str, &str)]) -> Option<(Output, Duration)> {
    if Command::new("mpirun").arg("--version").output().is_err() {
        std::io::stderr().write_all(b"not run: no mpirun\n").unwrap(); // eprintln is not shown when a test passes
        return None;
    }
    let mut command = Command::new("timeout");
    command.arg("60");
    if ranks > 0 {
        command.args(["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", &ranks.to_string()]);
    }
    command.arg(std::env::current_exe().unwrap());
    command.args(["--exact", &format!("mpi::tests::{name}"), "--nocapture", "--test-threads", "1"]);
    command.env(ROLE, "1").env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    for name in SIZES {
        command.env_remove(name);
    }
    command.envs(set.iter().copied());
    let started = Instant::now();
    let output = command.output().unwrap();
    Some((output, started.elapsed()))
}

/// What the ranks said, sorted.
fn said(output: &Output) -> Vec<String> {
    let text = String::from_utf8_lossy(&output.stdout);
    let mut said: Vec<_> = text
        .match_indices("said: ")
        .map(|(at, word)| text[at + word.len()..].split(".\n").next().unwrap().to_string())
        .collect();
    said.sort();
    said
}

#[track_caller]
fn expect_said(output: &Output, expected: &[String]) {
    assert!(output.status.success(), "{output:?}");
    assert_eq!(said(output), expected, "{output:?}");
}

#[test]
fn every_rank_learns_who_it_is_and_receives_the_id() {
    if is_rank() {
        let world = World::join(LONG).unwrap();
        let second = World::join(LONG).unwrap();
        let (rank, n_pes) = (second.rank(), second.n_pes());
        drop(world); // must not finalize: the second one still uses MPI
        for round in [1, 2] {
            let mut id = [if rank == 0 { round } else { 0 }; 128];
            second.broadcast(&mut id).unwrap();
            assert_eq!(id, [round; 128]);
        }
        assert!(!second.communicator().is_null() && second.communicator().is_aligned());
        return say(&format!("rank {rank} of {n_pes}, local {}", second.local_rank()));
    }
    for n in [2, 3] {
        let name = "every_rank_learns_who_it_is_and_receives_the_id";
        let Some((output, _)) = start(name, n, &[]) else { return };
        let expected: Vec<_> = (0..n).map(|rank| format!("rank {rank} of {n}, local {rank}")).collect();
        expect_said(&output, &expected);
    }
}

#[test]
fn without_mpirun_the_world_has_one_process() {
    if is_rank() {
        let world = World::join(LONG).unwrap();
        assert_eq!((world.rank(), world.n_pes(), world.local_rank()), (0, 1, 0));
        world.broadcast(&mut [7; 128]).unwrap();
        drop(world);
        let again = World::join(LONG).unwrap_err().to_string();
        return say(&again);
    }
    let Some((output, _)) = start("without_mpirun_the_world_has_one_process", 0, &[]) else { return };
    expect_said(&output, &["MPI_Init: MPI was finalized in this process, and cannot be started again".to_string()]);
}

#[test]
fn alone_although_the_launcher_started_more_is_an_error() {
    if is_rank() {
        return say(&World::join(LONG).unwrap_err().to_string());
    }
    for name in ["ONESIDED_PES", "SLURM_STEP_NUM_TASKS"] {
        let test = "alone_although_the_launcher_started_more_is_an_error";
        let Some((output, _)) = start(test, 0, &[(name, "4")]) else { return };
        let said = said(&output).concat();
        assert!(said.contains(&format!("{name} is 4")) && said.contains("srun --mpi=pmix"), "{said}\n{output:?}");
    }
}

#[test]
fn an_applications_mpi_stays_its_own() {
    if is_rank() {
        let universe = mpi::initialize().unwrap();
        let world = World::join(LONG).unwrap();
        let mut id = [world.rank() as u8 + 1; 128];
        world.broadcast(&mut id).unwrap();
        assert_eq!(id, [1; 128]);
        drop(world);
        assert!(!mpi::is_finalized());
        assert_eq!(World::join(LONG).unwrap().n_pes(), 2);
        drop(universe);
        assert!(mpi::is_finalized());
        return say("finalized by the application");
    }
    let Some((output, _)) = start("an_applications_mpi_stays_its_own", 2, &[]) else { return };
    expect_said(&output, &["finalized by the application".to_string(), "finalized by the application".to_string()]);
}

#[test]
fn a_rank_that_leaves_before_the_broadcast_ends_the_job() {
    if is_rank() {
        let world = World::join(LONG).unwrap();
        if world.rank() == 0 {
            say("left");
            std::process::exit(0);
        }
        world.broadcast(&mut [0; 128]).unwrap_err();
        panic!("the job went on until the limit");
    }
    let name = "a_rank_that_leaves_before_the_broadcast_ends_the_job";
    let Some((output, took)) = start(name, 2, &[]) else { return };
    assert!(!output.status.success() && took < LONG, "{took:?} {output:?}");
    assert_eq!(said(&output), ["left"], "{output:?}");
}

#[test]
fn a_rank_that_is_late_is_an_error_within_the_limit() {
    let short = Duration::from_secs(1);
    let late = |world: Result<World, Problem>, in_what: &str| {
        let problem = world.map(drop).unwrap_err();
        assert!(matches!(&problem, Problem::NoAnswer { call, .. } if call.starts_with(in_what)), "{problem}");
        say(&problem.to_string());
        std::process::exit(3); // mpirun must end the one that hangs
    };
    if is_rank() {
        let hangs = || thread::sleep(2 * LONG);
        let is_first = std::env::var("OMPI_COMM_WORLD_RANK").unwrap() == "0";
        match std::env::var(ROLE).unwrap().as_str() {
            "joining" if is_first => hangs(),
            "joining" => late(World::join(short), "MPI_Init"),
            _ => {
                let world = World::join(LONG).unwrap();
                if is_first {
                    return hangs();
                }
                let world = World { limit: short, ..world };
                late(world.broadcast(&mut [0; 128]).map(|()| world), "MPI_Ibcast");
            }
        }
        return;
    }
    for role in ["joining", "receiving"] {
        let name = "a_rank_that_is_late_is_an_error_within_the_limit";
        let Some((output, took)) = start(name, 2, &[(ROLE, role)]) else { return };
        assert!(took < LONG, "{role}: {took:?} {output:?}");
        assert_eq!(output.status.code(), Some(3), "{role}: {output:?}");
        let said = said(&output).concat();
        assert!(said.contains("every process of the job") && said.contains("no answer within 1 s"), "{role}: {said}");
    }
}

#[test]
fn abandoning_does_not_wait_for_the_others() {
    if is_rank() {
        let world = World::join(LONG).unwrap();
        if world.rank() == 0 {
            world.abandon();
            drop(world);
            say("gone");
            std::process::exit(5);
        }
        return thread::sleep(2 * LONG);
    }
    let Some((output, took)) = start("abandoning_does_not_wait_for_the_others", 2, &[]) else { return };
    assert!(took < LONG, "{took:?} {output:?}");
    assert_eq!((output.status.code(), said(&output)), (Some(5), vec!["gone".to_string()]), "{output:?}");
}
