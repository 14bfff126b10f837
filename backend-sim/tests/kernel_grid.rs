//! Blocks that synchronize their grid: neither arrivals nor looks are steps, and who goes on comes after all that others did before.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use onesided::{Grid, Pe, Result, Source, args};
use onesided_sim::{Config, Explore, Sim, Simulation};

/// Every PE launches a kernel of grid_sync.cu with so many blocks, and returns what these have stored.
fn launch<'a>(name: &'a str, blocks: u32, threads: u32) -> impl Fn(&Pe<Sim>) -> Result<Vec<i32>> + use<'a> {
    move |pe| {
        let n = blocks as usize;
        let (first, second, stream) = (pe.alloc_zeroed::<i32>(n)?, pe.alloc_zeroed::<i32>(n)?, pe.stream()?);
        let module = pe.module(&Source::ptx("grid_sync.ptx", include_str!("../ptx/kernels/grid_sync.ptx")))?;
        let (kernel, grid) = (module.kernel(name)?, Grid::new(blocks, threads).cooperative());
        // SAFETY: the kernels take these three, and stay inside them.
        unsafe { pe.on(&stream).launch(&kernel, &grid, args![&first, &second, blocks as i32])? };
        pe.synchronize(&stream)?;
        let seen = pe.read(&second)?;
        pe.free(second)?;
        pe.free(first)?;
        Ok(seen)
    }
}

/// What the PEs return, in all schedules, and how many classes these have.
fn proof(pes: usize, program: impl Fn(&Pe<Sim>) -> Result<Vec<i32>>) -> (BTreeSet<Vec<i32>>, u64) {
    let mut seen = BTreeSet::new();
    let explored = Simulation::new(Config::pes(pes)).unwrap().explore(Explore::All { limit: 2000 }, program, |run| {
        assert!(run.verdict.is_ok(), "{}", run.verdict);
        seen.insert(run.results.iter().flatten().flatten().copied().collect());
        ControlFlow::Continue(())
    });
    let explored = explored.unwrap();
    assert!(explored.complete && explored.redundant == 0, "{explored:?}");
    (seen, explored.schedules)
}

#[test]
fn a_grid_that_synchronizes_has_one_class() {
    for (pes, blocks, threads) in [(1, 2, 1), (2, 3, 4), (2, 8, 1)] {
        let right: Vec<i32> = (0..blocks).map(|block| ((block + 1) % blocks + 1) * 10).collect();
        let all = right.repeat(pes);
        let found = proof(pes, launch("grid_sync", blocks as u32, threads));
        assert_eq!(found, (BTreeSet::from([all]), 1), "{pes} PEs, {blocks} blocks of {threads}");
    }
}

/// The orders before are all taken, and none across.
#[test]
fn what_blocks_do_before_they_meet_is_ordered_with_what_they_do_afterwards_only() {
    let (seen, classes) = proof(1, launch("tickets", 3, 1));
    let tickets = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];
    assert_eq!(seen, tickets.map(|tickets| tickets.map(|ticket| 10 * ticket + 3).to_vec()).into());
    assert_eq!(classes, 6);
    let random = Explore::random(300, 1);
    let mut drawn = BTreeSet::new();
    let visited = Simulation::new(Config::pes(1)).unwrap().explore(random, launch("tickets", 3, 1), |run| {
        assert!(run.verdict.is_ok(), "{}", run.verdict);
        drawn.insert(run.results[0].clone().unwrap());
        ControlFlow::Continue(())
    });
    assert_eq!((visited.unwrap().schedules, drawn), (300, seen));
}

#[test]
fn who_waits_for_a_block_that_does_not_come_is_named() {
    let run = Simulation::new(Config::pes(1)).unwrap().run(launch("one_stays_away", 3, 1)).unwrap();
    let text = run.verdict.to_string();
    assert!(text.starts_with("deadlock"), "{text}");
    assert!(text.contains("block 0, thread 0 waits for other blocks to synchronize the grid, at "), "{text}");
    assert!(text.contains("1 of 3 blocks have"), "{text}");
}
