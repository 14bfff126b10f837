//! Bulk copies run beside the threads: until somebody waits for them, they may be reading their source and writing their destination.

use std::ops::ControlFlow;

use crate::common::missing_for_a_copy;
use onesided::{Grid, Pe, Result, Source, args};
use onesided_sim::{Config, Explore, Sim, Simulation, VerdictKind, prove};

const COPIES: &str = include_str!("../ptx/kernels/copies.ptx");

// As in copies.cu.
const NO_PHASE: i32 = 1;
const READ_ONLY: i32 = 2;
const NO_GROUP: i32 = 4;
const REUSE: i32 = 8;
const OVERWRITE: i32 = 16;
const BY_ALL: i32 = 32;
const ONE_LATE: i32 = 64;
const NO_FENCE: i32 = 128;
const REDUCE: i32 = 256;

fn copies(pe: &Pe<Sim>, how: i32) -> Result<i32> {
    let (from, to) = (pe.alloc_zeroed::<i32>(4)?, pe.alloc_zeroed::<i32>(8)?);
    let (flag, seen) = (pe.alloc_zeroed::<i32>(1)?, pe.alloc_zeroed::<i32>(1)?);
    pe.write(from.slice(..1), &[41])?;
    let module = pe.module(&Source::ptx("copies.ptx", COPIES))?;
    let stream = pe.stream()?;
    pe.host().barrier_all()?;
    // SAFETY: the kernel takes these arguments.
    unsafe {
        let arguments = args![&from, &to, &flag, &seen, how];
        pe.on(&stream).launch(&module.kernel("copies")?, &Grid::new(1, 2).collective(), arguments)?;
    }
    pe.on(&stream).barrier_all()?;
    pe.synchronize(&stream)?;
    let result = pe.read_one(&seen)?;
    pe.free(seen)?;
    pe.free(flag)?;
    pe.free(to)?;
    pe.free(from)?;
    Ok(result)
}

/// What is missing in the run in order, or what is wrong with it.
fn found(how: i32) -> String {
    missing_for_a_copy(2, |pe| copies(pe, how))
}

#[test]
fn a_copy_that_is_waited_for_is_over() {
    for how in [0, REUSE, BY_ALL, ONE_LATE, REDUCE, REDUCE | REUSE] {
        assert_eq!(found(how), "", "{how}");
    }
    prove(2, |pe: &Pe<Sim>| onesided::expect_eq(copies(pe, 0)?, 42 * pe.my_pe() as i32, "what was copied"));
}

/// A release tells nothing of a copy of its thread: what it writes must be waited for, and `.read` is about the source.
#[test]
fn what_a_copy_writes_is_told_by_whom_that_has_waited() {
    insta::assert_snapshot!(found(NO_GROUP), @"cp.async.bulk.wait_group (without .read, which waits for the source only) by the thread that copies, behind cp.async.bulk.commit_group, between copies.cu:43 and copies.cu:23");
    assert_eq!(found(READ_ONLY), found(NO_GROUP));
    for how in [NO_GROUP, READ_ONLY] {
        assert_eq!(found(REDUCE | how), found(NO_GROUP).replace("copies.cu:43", "copies.cu:42"));
    }
    let all = Explore::All { limit: 1_000 };
    let mut kinds = Vec::new();
    let mut simulation = Simulation::new(Config::pes(2)).unwrap();
    let explored = simulation.explore(
        all,
        |pe: &Pe<Sim>| copies(pe, READ_ONLY),
        |run| {
            kinds.push(run.verdict.races.len());
            ControlFlow::Continue(())
        },
    );
    assert!(explored.unwrap().complete && kinds.iter().all(|races| *races > 0), "{kinds:?}");
}

#[test]
fn shared_memory_is_in_use_until_the_copy_is_over() {
    insta::assert_snapshot!(found(NO_PHASE), @r"
    kernel copies on PE 0: race in shared memory: the read of 4 bytes at buffer+0 may come before a bulk copy that writes there is over (copies.cu:37, block 0, thread 1)
        the other: copies.cu:31, block 0, thread 0
        missing: a wait for the phase of its mbarrier, between copies.cu:31 and copies.cu:37
    ");
    for kind in [0, REDUCE] {
        let run =
            Simulation::new(Config::pes(2)).unwrap().run(|pe: &Pe<Sim>| copies(pe, kind | NO_GROUP | REUSE)).unwrap();
        assert!(matches!(run.verdict.kind, VerdictKind::Kernel { .. }), "{}", run.verdict);
        let text = run.verdict.to_string();
        assert!(
            text.contains("the write of 4 bytes at buffer+0 may come before a bulk copy that reads there is over"),
            "{text}"
        );
        assert!(text.contains("missing: cp.async.bulk.wait_group.read of its thread"), "{text}");
    }
}

/// What threads write in shared memory is not what a copy reads, without a fence between the proxies.
#[test]
fn a_copy_sees_what_was_written_behind_a_fence_only() {
    insta::assert_snapshot!(found(NO_FENCE), @r"
    kernel copies on PE 0: race in shared memory: a bulk copy reads 8 bytes at buffer+0 and may not see an earlier write there: nothing makes that write visible to the async proxy (copies.cu:43, block 0, thread 0)
        the other: copies.cu:37, block 0, thread 1
        missing: fence.proxy.async.shared::cta between copies.cu:37 and copies.cu:43, by each thread that writes, before they meet
    ");
    assert!(found(NO_FENCE | REDUCE).contains("missing: fence.proxy.async.shared::cta between"));
}

#[test]
fn the_source_in_global_memory_is_in_use_too() {
    insta::assert_snapshot!(found(OVERWRITE), @"a wait for the phase of the mbarrier that counts the bulk copy, between copies.cu:31 and copies.cu:35");
}

/// A reduction in bulk has the scope of its GPU, and no other can be asked for.
#[test]
fn a_reduction_in_bulk_is_no_atomic_to_another_pe() {
    let reduces = |pes: i32| {
        move |pe: &Pe<Sim>| -> Result<()> {
            let to = pe.alloc_zeroed::<i32>(4)?;
            let (module, stream) = (pe.module(&Source::ptx("copies.ptx", COPIES))?, pe.stream()?);
            // SAFETY: the kernel takes a pointer to four numbers, and a number.
            unsafe {
                pe.on(&stream).launch(&module.kernel("reduces")?, &Grid::new(1, 1).collective(), args![&to, pes])?
            };
            pe.on(&stream).barrier_all()?;
            pe.synchronize(&stream)?;
            let expected = if pe.my_pe() == 0 { pes } else { 0 };
            onesided::expect_eq(&pe.read(&to)?, &vec![expected; 4], "what was added")?;
            pe.free(to)
        }
    };
    prove(2, reduces(1));
    let race = &Simulation::new(Config::pes(2)).unwrap().run(reduces(2)).unwrap().verdict.races[0];
    insta::assert_snapshot!(format!("{}: {}", race.first.call, race.missing), @"reduction of a bulk copy: atomics of scope sys (atomicAdd_system, red.sys) in place of the reduction of a bulk copy at copies.cu:63: that has the scope of its GPU, so to another PE it is no atomic");
}
