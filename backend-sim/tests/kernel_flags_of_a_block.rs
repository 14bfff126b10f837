//! Flags in shared memory: what a report says is missing between the threads of a block, and the fix that it proposes.

use crate::hand_over;
use onesided::{Grid, Pe, Result, Source, args, expect_eq};
use onesided_sim::{Config, Effort, MissingEdge, Reach, Sim, Simulation, Verdict, VerdictKind, prove};

const FLAGS: &str = include_str!("../ptx/kernels/flags_of_a_block.ptx");

/// A kernel of 64 threads, and what its second warp must have found.
fn program(pe: &Pe<Sim>, name: &str, release: bool, acquire: i32) -> Result<()> {
    let (out, data) = (pe.alloc_zeroed::<i32>(32)?, pe.alloc_zeroed::<i32>(32)?);
    let source = Source::ptx("flags_of_a_block.ptx", FLAGS);
    hand_over::run(pe, &source, name, &Grid::new(1, 64), args![&out, &data, i32::from(release), acquire])?;
    let expected: Vec<i32> = if name.ends_with("_data") { (1..=32).rev().collect() } else { (1..=32).collect() };
    expect_eq(&pe.read(&out)?[..], &expected, "what was handed over")?;
    pe.free(data)?;
    pe.free(out)
}

/// The verdict of the run in order, the edge that is missing, and the edits of the proposed fix.
fn explained(name: &str, release: bool, acquire: i32) -> (Verdict, Option<MissingEdge>, String) {
    let program = |pe: &Pe<Sim>| program(pe, name, release, acquire);
    let mut simulation = Simulation::new(Config::pes(1)).unwrap();
    let run = simulation.run(program).unwrap();
    let missing = match run.verdict.kind {
        VerdictKind::Kernel { missing, races_with: Some(_), .. } => missing,
        _ => Some(run.verdict.races[0].missing),
    };
    let fix = simulation.fix(&run, Effort::LITTLE, program).unwrap().fix.expect("a fix");
    (run.verdict, missing, fix.to_string())
}

#[test]
fn fences_on_both_sides_hand_over_what_a_block_has_stored() {
    for name in ["shared_data", "global_data", "pairs"] {
        prove(1, |pe| program(pe, name, true, 1));
    }
}

#[test]
fn a_flag_in_shared_memory_lacks_its_fences() {
    let [stored, flag, read, used] = [10, 13, 16, 21];
    for name in ["shared_data", "global_data"] {
        let line = |at: onesided::At| at.line();
        let (_, missing, fix) = explained(name, false, 1);
        let Some(MissingEdge::ReleasingFence { after, flag: at, reach }) = missing else { panic!("{missing:?}") };
        assert_eq!((line(after), line(at), reach), (stored, flag, Reach::Block));
        assert!(fix.starts_with(&format!("insert `__threadfence_block` after flags_of_a_block.cu:{stored}")));

        let (_, missing, fix) = explained(name, true, 0);
        let Some(MissingEdge::AcquiringFence { read: at, before, reach }) = missing else { panic!("{missing:?}") };
        assert_eq!((line(at), line(before), reach), (read, used, Reach::Block));
        assert!(fix.starts_with(&format!("insert `__threadfence_block` after flags_of_a_block.cu:{read}")));

        let (_, missing, fix) = explained(name, false, 0);
        assert!(matches!(missing, Some(MissingEdge::ReleasingFence { .. })), "{missing:?}");
        assert!(fix.contains(&format!("after flags_of_a_block.cu:{stored}, and insert")), "{fix}");
    }
    insta::assert_snapshot!(explained("pairs", false, 0).2, @"insert `__threadfence_block` after flags_of_a_block.cu:42, and insert `__threadfence_block` after flags_of_a_block.cu:46: proved");
    insta::assert_snapshot!(explained("pairs", true, 0).0.to_string().lines().nth(2).unwrap(), @"    missing: a fence (__threadfence_block), by the thread that reads the flag, between flags_of_a_block.cu:46 and flags_of_a_block.cu:48");
}

/// The lanes fence behind the barrier of their warp: that acquires nothing of what one of them has read before, though that one fences there, too.
#[test]
fn the_thread_that_reads_a_flag_fences_before_it_tells_others() {
    for name in ["shared_data", "global_data"] {
        let (verdict, missing, fix) = explained(name, true, 2);
        let Some(MissingEdge::ReadersFence { fence, read, reach: Reach::Block }) = missing else { panic!("{verdict}") };
        assert!(fence.line() == read.line() + 4, "{verdict}");
        assert!(fix.starts_with(&format!("insert `__threadfence_block` after {read}: proved")), "{fix}");
    }
    insta::assert_snapshot!(explained("shared_data", true, 2).1.unwrap(), @"a fence (__threadfence_block) by the thread that reads the flag, behind flags_of_a_block.cu:16 and before the barrier; the one at flags_of_a_block.cu:20 is behind it, and acquires only what its own thread has read");
}

/// A flag that nobody reads before says nothing of the two.
#[test]
fn where_no_flag_is_read_the_threads_must_meet() {
    let verdict = Simulation::new(Config::pes(1)).unwrap().run(|pe| program(pe, "no_flag", false, 0)).unwrap().verdict;
    assert!(matches!(verdict.kind, VerdictKind::Kernel { missing: None, races_with: Some(_), .. }), "{verdict}");
    assert!(verdict.to_string().contains("missing: a barrier of the block (__syncthreads) between"), "{verdict}");
}
