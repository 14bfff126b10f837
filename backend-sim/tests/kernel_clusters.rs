//! Clusters of several blocks, in programs: what they do through each other's shared memory, beside what they send.

use onesided::{Argument, Grid, Pe, Result, Source, args, expect_eq};
use onesided_sim::{Config, Effort, Sim, Simulation, prove};

use crate::hand_over::run;

fn source() -> Source {
    Source::ptx("clusters.ptx", include_str!("../ptx/kernels/clusters.ptx"))
}

// As in clusters.cu.
const NO_MEETING: i32 = 1;
const BLOCK_MEETS: i32 = 2;
const NO_END: i32 = 4;
const NO_BEGIN: i32 = 8;
const NO_WAIT: i32 = 16;

/// Runs a kernel on `ins` numbers, from 0 on, and returns `outs` numbers that it leaves behind.
fn numbers(pe: &Pe<Sim>, name: &str, grid: &Grid, (outs, ins): (usize, usize), how: &[Argument]) -> Result<Vec<i32>> {
    let (out, from) = (pe.alloc_zeroed::<i32>(outs)?, pe.alloc::<i32>(ins)?);
    pe.write(&from, &(0..ins as i32).collect::<Vec<_>>())?;
    let arguments: Vec<Argument> = args![&out, &from].iter().chain(how).cloned().collect();
    run(pe, &source(), name, grid, &arguments)?;
    let result = pe.read(&out)?;
    pe.free(from)?;
    pe.free(out)?;
    Ok(result)
}

fn sums(pe: &Pe<Sim>, how: i32) -> Result<()> {
    let sums = numbers(pe, "sums", &Grid::new(8, 32), (2, 256), args![how])?;
    expect_eq(&sums[..], &[(0..128).sum(), (128..256).sum()], "the sums of the clusters")
}

fn puts(pe: &Pe<Sim>) -> Result<()> {
    let sent = numbers(pe, "puts", &Grid::new(2, 64), (128, 128), &[])?;
    let expected: Vec<i32> = (0..128).map(|i| if (32..64).contains(&i) { 0 } else { i }).collect();
    expect_eq(&sent[..], &expected, "what both blocks have sent")
}

fn multicast(pe: &Pe<Sim>, how: i32) -> Result<()> {
    let copied = numbers(pe, "multicast", &Grid::new(2, 32), (32, 16), args![how])?;
    let expected: Vec<i32> = (0..16).chain(100..116).collect();
    expect_eq(&copied[..], &expected, "what was copied to both blocks")
}

fn hand_over(pe: &Pe<Sim>, rounds: i32, how: i32) -> Result<()> {
    let out = pe.alloc_zeroed::<i32>(1)?;
    run(pe, &source(), "hand_over", &Grid::new(2, 1), args![&out, rounds, how])?;
    expect_eq(
        &[pe.read_one(&out)?][..],
        &[(0..rounds).map(|round| 10 + round).sum()],
        "the sum of what was handed over",
    )?;
    pe.free(out)
}

fn narrow(pe: &Pe<Sim>, to: i32) -> Result<()> {
    let (data, flag, seen) = (pe.alloc_zeroed::<i32>(1)?, pe.alloc_zeroed::<i32>(1)?, pe.alloc_zeroed::<i32>(1)?);
    run(pe, &source(), "narrow", &Grid::new(4, 1), args![&data, &flag, &seen, to])?;
    expect_eq(&[pe.read_one(&seen)?][..], &[42], "what the other block has seen")?;
    pe.free(seen)?;
    pe.free(flag)?;
    pe.free(data)
}

fn tells(pe: &Pe<Sim>, how: i32) -> Result<()> {
    let [out, given, seen] = [pe.alloc_zeroed::<i32>(2)?, pe.alloc_zeroed::<i32>(2)?, pe.alloc_zeroed::<i32>(2)?];
    let flag = pe.alloc_zeroed::<u64>(1)?;
    run(pe, &source(), "tells", &Grid::new(2, 1), args![&out, &flag, &given, &seen, how])?;
    expect_eq(&pe.read(&seen)?[..], &[11, 10], "what both blocks have seen")?;
    pe.free(flag)?;
    pe.free(seen)?;
    pe.free(given)?;
    pe.free(out)
}

/// What is wrong with it in order.
fn wrong(pes: usize, program: impl Fn(&Pe<Sim>) -> Result<()>) -> String {
    let run = Simulation::new(Config::pes(pes)).unwrap().run(program).unwrap();
    assert!(!run.is_ok());
    run.verdict.to_string()
}

#[test]
fn blocks_of_a_cluster_work_together() {
    prove(2, |pe| sums(pe, 0));
    prove(2, puts);
    prove(1, |pe| multicast(pe, 0));
    for rounds in [1, 2, 5] {
        prove(1, |pe| hand_over(pe, rounds, 0));
        prove(1, |pe| hand_over(pe, rounds, NO_END)); // each block ends behind what the other one does in its memory
    }
}

#[test]
fn what_does_not_wait_for_the_other_block() {
    insta::assert_snapshot!(wrong(1, |pe| sums(pe, NO_MEETING)), @r"
    kernel sums on PE 0: race in shared memory: the read of 4 bytes at sum+0 of block 1 of the cluster may come before that block has begun (clusters.cu:27, block 0, thread 0)
        missing: a barrier of the cluster (cluster.sync()) before clusters.cu:27
      PE 0: in synchronize at backend-sim/tests/hand_over/mod.rs:13, waits for its stream 0 to finish
      PE 0 stream 0: in launch at backend-sim/tests/hand_over/mod.rs:26, waits for kernel sums to end: 0 of 8 blocks have
    ");
    insta::assert_snapshot!(wrong(1, |pe| sums(pe, BLOCK_MEETS)), @r"
    kernel sums on PE 0: race in shared memory: the read of 4 bytes at sum+0 of block 1 of the cluster may come before that block has begun (clusters.cu:27, block 0, thread 0)
        missing: a barrier of the cluster (cluster.sync()) before clusters.cu:27
      PE 0: in synchronize at backend-sim/tests/hand_over/mod.rs:13, waits for its stream 0 to finish
      PE 0 stream 0: in launch at backend-sim/tests/hand_over/mod.rs:26, waits for kernel sums to end: 0 of 8 blocks have
    ");
    insta::assert_snapshot!(wrong(1, |pe| sums(pe, NO_END)), @r"
    kernel sums on PE 0: race in shared memory: the read of 4 bytes at sum+0 of block 3 of the cluster comes when that block has ended (clusters.cu:27, block 0, thread 0)
        missing: a barrier of the cluster (cluster.sync()) behind clusters.cu:27, before the block ends
      PE 0: in synchronize at backend-sim/tests/hand_over/mod.rs:13, waits for its stream 0 to finish
      PE 0 stream 0: in launch at backend-sim/tests/hand_over/mod.rs:26, waits for kernel sums to end: 0 of 8 blocks have
    ");
    insta::assert_snapshot!(wrong(1, |pe| multicast(pe, NO_BEGIN)), @r"
    kernel multicast on PE 0: race in shared memory: the write of 8 bytes at data+0 of block 1 of the cluster may come before that block has begun (clusters.cu:68, block 0, thread 0)
        missing: a barrier of the cluster (cluster.sync()) before clusters.cu:68
      PE 0: in synchronize at backend-sim/tests/hand_over/mod.rs:13, waits for its stream 0 to finish
      PE 0 stream 0: in launch at backend-sim/tests/hand_over/mod.rs:26, waits for kernel multicast to end: 0 of 2 blocks have
    ");
    insta::assert_snapshot!(wrong(1, |pe| multicast(pe, NO_WAIT)), @r"
    kernel multicast on PE 0: a read of 4 bytes of shared memory at data+0 of block 1 of the cluster, which nobody has written in full (clusters.cu:71, block 1, thread 0)
      PE 0: in synchronize at backend-sim/tests/hand_over/mod.rs:13, waits for its stream 0 to finish
      PE 0 stream 0: in launch at backend-sim/tests/hand_over/mod.rs:26, waits for kernel multicast to end: 0 of 2 blocks have
    ");
    insta::assert_snapshot!(wrong(1, |pe| hand_over(pe, 2, NO_WAIT)), @r"
    deadlock: nothing can happen any more, and somebody waits
      PE 0: in synchronize at backend-sim/tests/hand_over/mod.rs:13, waits for its stream 0 to finish
      PE 0 stream 0: in launch at backend-sim/tests/hand_over/mod.rs:26, waits for kernel hand_over to end: 0 of 2 blocks have
      PE 0 stream 0: in start at backend-sim/tests/hand_over/mod.rs:26, waits for hand_over: block 1, thread 0 polls the mbarrier full+0 of block 1 of the cluster, in its even phase (1 arrival missing), at clusters.cu:50, inlined at clusters.cu:96, and 1 more of its threads
    ");
}

/// The scope of a cluster has its blocks, and no others.
#[test]
fn the_scope_of_a_cluster() {
    prove(1, |pe| narrow(pe, 1));
    insta::assert_snapshot!(wrong(1, |pe| narrow(pe, 2)), @r"
    data race: atomic write of release store within the block at clusters.cu:109 by PE 0 stream 0 (block 0, thread 0) and atomic read of acquire load within the block at clusters.cu:113 by PE 0 stream 0 (block 2, thread 0), on buf1+0..4 of PE 0 (made at backend-sim/tests/kernel_clusters.rs:60)
        nothing orders them; missing: scope gpu (atomicAdd, cuda::thread_scope_device, ld.acquire.gpu) in place of the narrower one at clusters.cu:109 and clusters.cu:113: to another block such an access is no atomic
        issued in steps 8 and 9
    ");
}

/// A barrier of the block is there. It takes one of the cluster, between two blocks, before one of them tells others, and behind its wait.
#[test]
fn blocks_of_a_cluster_meet_around_what_one_of_them_tells() {
    prove(2, |pe| tells(pe, 0));
    let advice = |how: i32| {
        let mut simulation = Simulation::new(Config::pes(2)).unwrap();
        let run = simulation.run(|pe| tells(pe, how)).unwrap();
        let fix = simulation.fix(&run, Effort::LITTLE, |pe| tells(pe, how)).unwrap().fix;
        let fix = fix.map_or("no fix".to_string(), |fix| fix.to_string());
        format!("missing: {}\n{fix}", run.verdict.races[0].missing)
    };
    insta::assert_snapshot!(advice(NO_BEGIN), @r"
    missing: a barrier of the cluster (cluster.sync()) between clusters.cu:139 and clusters.cu:136
    insert `cluster.sync` after clusters.cu:136: proved; nothing weaker is enough
    ");
    insta::assert_snapshot!(advice(BLOCK_MEETS), @r"
    missing: a barrier of the cluster (cluster.sync()) behind clusters.cu:139, before the call by which a thread of another of its blocks tells the reader at clusters.cu:151
    insert `cluster.sync` after clusters.cu:139: proved; nothing weaker is enough
    ");
    insta::assert_snapshot!(advice(NO_WAIT), @r"
    missing: a barrier of the cluster (cluster.sync()) before clusters.cu:151, behind the wait by which a thread of another of its blocks knows of clusters.cu:139
    insert `cluster.sync` before clusters.cu:151: proved; nothing weaker is enough
    ");
}

/// The kernel was not compiled for clusters.
#[test]
fn a_launch_makes_clusters() {
    let launched = |clusters: Option<u32>, expected: [i32; 4]| {
        move |pe: &Pe<Sim>| {
            let grid = Grid::new(4, 32);
            let grid = clusters.map_or(grid, |blocks| grid.clusters(blocks));
            let seen = numbers(pe, "of_launch", &grid, (4, 4), &[])?;
            expect_eq(&seen[..], &expected, "blocks of a cluster, and the first one's number")
        }
    };
    prove(2, launched(None, [100, 101, 102, 103]));
    prove(2, launched(Some(2), [200, 200, 202, 202]));
    prove(2, launched(Some(4), [400; 4]));
}

#[test]
fn launches_that_make_no_clusters() {
    let refused = |name: &'static str, blocks: (u32, u32), clusters: (u32, u32)| {
        wrong(1, move |pe| numbers(pe, name, &Grid::new(blocks, 32).clusters(clusters), (1, 1), &[]).map(drop))
            .lines()
            .next()
            .unwrap()
            .split(" (invalid")
            .next()
            .unwrap()
            .to_string()
    };
    let all = [
        refused("of_launch", (3, 2), (1, 4)),
        refused("of_launch", (16, 1), (16, 1)),
        refused("of_launch", (4, 1), (0, 1)),
        refused("puts", (4, 1), (4, 1)),
    ];
    insta::assert_snapshot!(all.join("\n"), @r"
    PE 0 failed: launch: of_launch: a grid of 3 x 2 x 1 blocks in clusters of 1 x 4 x 1: in each dimension, it has a multiple of a cluster's blocks
    PE 0 failed: launch: of_launch: clusters of 16 x 1 x 1 blocks; they have 1 to 8 in all
    PE 0 failed: launch: of_launch: clusters of 0 x 1 x 1 blocks; they have 1 to 8 in all
    PE 0 failed: launch: puts: clusters of 4 x 1 x 1 blocks; it was compiled for clusters of 2 x 1 x 1 blocks
    ");
}

#[test]
fn grids_that_are_no_clusters() {
    let refused = wrong(1, |pe| numbers(pe, "puts", &Grid::new(3, 32), (1, 1), &[]).map(drop));
    insta::assert_snapshot!(refused, @r"
    PE 0 failed: launch: puts: a grid of 3 x 1 x 1 blocks in clusters of 2 x 1 x 1: in each dimension, it has a multiple of a cluster's blocks (invalid argument, backend-sim/tests/hand_over/mod.rs:26)
      PE 0: failed here; its last call was at backend-sim/tests/hand_over/mod.rs:24
    ");
}
