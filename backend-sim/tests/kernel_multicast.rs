//! Multicast addresses in kernels, and the barrier of a cluster of one block.

use onesided::{Argument, Grid, Pe, Result, Source, Support, args, expect_eq};
use onesided_sim::{Config, MissingEdge, Profile, Reach, Sim, Simulation, Verdict, VerdictKind, prove, refute};

const MULTICAST: &str = include_str!("../ptx/kernels/multicast.ptx");

/// What a kernel that takes numbers, a word and how it is to work leaves in the two.
fn run(pe: &Pe<Sim>, name: &str, threads: u32, how: i32) -> Result<(Vec<f32>, u64)> {
    let (x, arrived) = (pe.alloc_zeroed::<f32>(64)?, pe.alloc_zeroed::<u64>(1)?);
    let module = pe.module(&Source::ptx("multicast.ptx", MULTICAST))?;
    let stream = pe.stream()?;
    let arguments: &[Argument] = args![&x, &arrived, how];
    // SAFETY: the kernels take 64 numbers, a word and how they are to work.
    unsafe { pe.on(&stream).launch(&module.kernel(name)?, &Grid::new(1, threads).collective(), arguments)? };
    pe.synchronize(&stream)?;
    let result = (pe.read(&x)?, pe.read_one(&arrived)?);
    pe.free(arrived)?;
    pe.free(x)?;
    Ok(result)
}

fn verdict(config: Config, name: &str, threads: u32, how: i32) -> Verdict {
    Simulation::new(config).unwrap().run(|pe| run(pe, name, threads, how)).unwrap().verdict
}

fn fault(name: &str, threads: u32, how: i32) -> String {
    let verdict = verdict(Config::pes(1), name, threads, how);
    assert!(matches!(verdict.kind, VerdictKind::Kernel { .. }), "{verdict}");
    verdict.to_string()
}

/// A reduction by multicast adds what all copies hold, a store reaches all, and a counter tells each PE of all others.
#[test]
fn an_all_reduce_of_two_shots_is_right_in_every_order() {
    for config in [Config::pes(2), Config { profile: Profile::Nvlink, ..Config::pes(2) }] {
        prove(config, |pe: &Pe<Sim>| run(pe, "two_shots", 1, 3));
    }
    let verdict = verdict(Config::pes(4), "two_shots", 1, 3);
    assert!(verdict.is_ok(), "{verdict}");
}

/// Each copy is an access of its own, which a relaxed counter does not order.
#[test]
fn a_counter_that_does_not_release_orders_nothing() {
    for (release, line) in [(2, 25), (1, 30)] {
        let run = refute(2, move |pe: &Pe<Sim>| run(pe, "two_shots", 1, release));
        let race = run.verdict.races.first().unwrap_or_else(|| panic!("{}", run.verdict));
        let MissingEdge::ReleasingFence { after, flag, reach: Reach::System } = race.missing else { panic!("{race}") };
        assert_eq!([race.first.at.line(), after.line(), flag.line()], [line, line, 9], "{race}");
    }
}

#[test]
fn a_multicast_address_is_for_multicast_instructions_only() {
    let text = fault("addresses", 1, 1);
    assert!(text.contains("is a multicast address, which only multimem instructions access"), "{text}");
    let text = fault("addresses", 1, 2);
    assert!(text.contains("is no multicast address, as nvshmemx_mc_ptr gives it"), "{text}");
}

/// Where not all PEs reach each other by pointers, or nothing has multicast, the address is null.
#[test]
fn without_multicast_the_address_is_null() {
    let is_there = |config: Config, there: u64| {
        prove(config, move |pe: &Pe<Sim>| {
            expect_eq(run(pe, "addresses", 1, 0)?.1, there, "whether there is an address")
        });
    };
    is_there(Config::pes(2), 1);
    let two = Config { nodes: 2, ..Config::pes(2) };
    is_there(two, 0);
    let mut none = Config::pes(2);
    none.capabilities.multicast = Support::Missing("no switch");
    is_there(none, 0);
}

#[test]
fn a_cluster_of_one_block_meets_at_its_barrier() {
    prove(1, |pe: &Pe<Sim>| {
        let expected: Vec<f32> = (0..64).map(|i| 63.0 - i as f32).collect();
        expect_eq(run(pe, "cluster", 64, 0)?.0, expected, "what the other thread has written")
    });
    for (how, wrong) in [
        (1, "waits at the barrier of the cluster, and has not arrived there"),
        (2, "arrives at the barrier of the cluster again, and has not waited there"),
        (3, "a read of 4 bytes of shared memory at words+252, which nobody has written in full"),
        (4, "block 1 of the cluster, which has one block"),
    ] {
        let text = fault("cluster", 64, how);
        assert!(text.contains(wrong), "{how}: {text}");
    }
}
