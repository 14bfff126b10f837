//! The memory model's verdicts on tiny programs: the exact set of outcomes, over all schedules.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use onesided::{Cmp, Pe, Result, SignalOp};
use onesided_sim::{Config, Explore, Explored, Profile, Races, Sim, Simulation};

/// What the PEs returned on every schedule.
fn outcomes(pes: usize, program: impl Fn(&Pe<Sim>) -> Result<Vec<u64>>) -> (BTreeSet<Vec<u64>>, Explored) {
    outcomes_under(Config::pes(pes), program)
}

fn outcomes_under(config: Config, program: impl Fn(&Pe<Sim>) -> Result<Vec<u64>>) -> (BTreeSet<Vec<u64>>, Explored) {
    let mut simulation = Simulation::new(Config { races: Races::Note, ..config }).unwrap();
    let mut seen = BTreeSet::new();
    let explored = simulation
        .explore(Explore::All { limit: 1_000_000 }, program, |run| {
            assert!(run.is_ok(), "{}", run.verdict);
            seen.insert(run.results.iter().flatten().flatten().copied().collect());
            ControlFlow::Continue(())
        })
        .unwrap();
    assert!(explored.complete);
    (seen, explored)
}

fn set<const N: usize, const M: usize>(outcomes: [[u64; M]; N]) -> BTreeSet<Vec<u64>> {
    outcomes.into_iter().map(Vec::from).collect()
}

/// data, then flag; the other PE waits for the flag and reads the data.
fn message_passing(pe: &Pe<Sim>, fence: bool) -> Result<Vec<u64>> {
    let data = pe.alloc_zeroed::<u64>(1)?;
    let flag = pe.alloc_zeroed::<u64>(1)?;
    let mut saw = vec![];
    if pe.my_pe() == 0 {
        pe.host().p(&data, 42, 1)?;
        if fence {
            pe.host().fence()?;
        }
        pe.host().signal_op(flag.signal(0), 1, SignalOp::Set, 1)?;
    } else {
        pe.host().signal_wait_until(flag.signal(0), Cmp::Eq, 1)?;
        saw = pe.read(&data)?;
    }
    pe.free(flag)?;
    pe.free(data)?;
    Ok(saw)
}

#[test]
fn message_passing_without_a_fence_may_be_stale() {
    let (seen, explored) = outcomes(2, |pe| message_passing(pe, false));
    assert_eq!(seen, set([[0], [42]]));
    // the delivery of the data against the read is all that matters
    assert_eq!(explored.schedules, 2);
}

#[test]
fn message_passing_with_a_fence_is_never_stale() {
    let (seen, explored) = outcomes(2, |pe| message_passing(pe, true));
    assert_eq!(seen, set([[42]]));
    assert_eq!(explored.schedules, 1);
}

#[test]
fn nvlink_hides_the_missing_fence() {
    let config = Config { profile: Profile::Nvlink, ..Config::pes(2) };
    let (seen, _) = outcomes_under(config, |pe| message_passing(pe, false));
    assert_eq!(seen, set([[42]]));
}

#[test]
fn a_bulk_put_arrives_element_by_element() {
    let (seen, _) = outcomes(2, |pe| {
        let x = pe.alloc_zeroed::<u32>(2)?;
        let src = pe.alloc::<u32>(2)?;
        let mut saw = vec![];
        if pe.my_pe() == 0 {
            pe.write(&src, &[1, 1])?;
            pe.host().put(&x, &src, 1)?;
        } else {
            saw = pe.read(&x)?.into_iter().map(u64::from).collect();
        }
        pe.host().barrier_all()?;
        pe.free(src)?;
        pe.free(x)?;
        Ok(saw)
    });
    assert_eq!(seen, set([[0, 0], [0, 1], [1, 0], [1, 1]]));
}

#[test]
fn iriw_is_allowed() {
    let (seen, _) = outcomes(4, |pe| {
        let xy = pe.alloc_zeroed::<u64>(2)?;
        let saw = match pe.my_pe() {
            0 => pe.host().atomic_set(xy.at(0), 1, 2).map(|()| vec![])?,
            1 => pe.host().atomic_set(xy.at(1), 1, 3).map(|()| vec![])?,
            2 => vec![pe.host().atomic_fetch(xy.at(0), 2)?, pe.host().atomic_fetch(xy.at(1), 3)?],
            _ => vec![pe.host().atomic_fetch(xy.at(1), 3)?, pe.host().atomic_fetch(xy.at(0), 2)?],
        };
        pe.free(xy)?;
        Ok(saw)
    });
    // a fetch by the host returns before the caller goes on, so that this order is never seen
    assert_eq!(seen.len(), 15, "{seen:?}");
}
