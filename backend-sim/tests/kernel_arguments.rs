//! What the arguments of a call point to: the thread that calls reads and writes there, as it does by an access.

use onesided::{Grid, Pe, Result, Source, args};
use onesided_sim::{Config, Races, Sim, Simulation, prove};

use crate::hand_over::run;

const ARGUMENTS: &str = include_str!("../ptx/kernels/arguments.ptx");

fn program(name: &str) -> impl Fn(&Pe<Sim>) -> Result<()> + '_ {
    move |pe| {
        let (data, signal) = (pe.alloc_zeroed::<i32>(2)?, pe.alloc_zeroed::<u64>(2)?);
        run(pe, &Source::ptx("arguments.ptx", ARGUMENTS), name, &Grid::new(1, 2).collective(), args![&data, &signal])?;
        pe.free(signal)?;
        pe.free(data)
    }
}

/// What is wrong in the run in order.
fn why(races: Races, name: &str) -> String {
    let mut simulation = Simulation::new(Config { races, ..Config::pes(2) }).unwrap();
    simulation.run(program(name)).unwrap().verdict.to_string()
}

#[test]
fn behind_a_barrier_a_call_may_read_and_write() {
    prove(2, program("left_out"));
    prove(2, program("found"));
}

#[test]
fn a_call_that_reads_what_another_thread_writes_is_a_race() {
    for (name, by) in
        [("left_out_racing", "nvshmem_uint64_wait_until_all"), ("left_out_in_global", "argument of a call")]
    {
        let why = why(Races::Find, name);
        assert!(why.contains("race") && why.contains(by) && why.contains("arguments.cu:"), "{name}: {why}");
    }
}

#[test]
fn a_call_that_writes_what_another_thread_reads_is_a_race() {
    let why = why(Races::Find, "found_racing");
    assert!(why.contains("race") && why.contains("nvshmem_uint64_test_some"), "{why}");
}

#[test]
fn a_call_that_reads_what_nobody_has_written_is_a_finding() {
    for races in [Races::Find, Races::Ignore] {
        let why = why(races, "left_out_by_chance");
        assert!(why.contains("nvshmem_uint64_test_all") && why.contains("written") && why.contains("status"), "{why}");
    }
}
