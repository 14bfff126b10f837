//! Several nodes: two fabrics, and what a third PE sees.
//!
//! PEs 0 and 1 are one node, PEs 2 and 3 another. A PE reaches its own node on one path, and others on another one. `x@2` is the
//! word `x` on PE 2, zero at first. All these cases have the same outcomes under every profile on one node.
//!
//! | property of a profile | case that tells |
//! |---|---|
//! | a blocking put has arrived when it returns | `order/put_then_sync` |
//! | a fence completes | `order/fence_then_sync`, `litmus/mp_across_targets_fenced` |
//! | transfers to one PE arrive in the order of issue | `litmus/mp`, `order/two_puts_unfenced`, `nodes/near_and_far` |
//! | what has arrived is visible to all PEs | `nodes/third_pe_told_by_the_writer`, `nodes/third_pe_behind_a_barrier` |
//!
//! By NVSHMEM's text a put that is complete is promised to its destination PE where there are both NVLink and a network. So under
//! `mixed-fabric` a PE that reads on another path may see 0, unless the destination has seen the new value and then synchronized with the
//! reader. Reading where that is missing is a race there.

use onesided::{Backend, Cmp, Pe, ReduceOp, Result, SignalOp, TeamConfig};

use super::litmus::{set, wait};
use super::order::Between;
use crate::case::{Case, Seen, cases, seen};

/// The chapter's cases.
pub(super) fn cases<B: Backend>() -> Vec<Case<B>> {
    let cases = cases![
        third_pe_told_by_the_writer: 4 => |case| case.racy_when_mixed(),
        third_pe_told_by_the_destination: 4,
        third_pe_told_by_an_atomic_of_the_destination: 4 => |case| case.needs_host_atomics(),
        third_pe_told_by_a_fourth: 4,
        third_pe_on_the_writers_path: 4,
        third_pe_far_from_a_near_writer: 4 => |case| case.racy_when_mixed(),
        third_pe_behind_a_barrier: 4 => |case| case.racy_when_mixed(),
        third_pe_behind_two_barriers: 4,
        third_pe_reads_twice: 4 => |case| case.racy_when_mixed(),
        third_pe_of_a_team: 4 => |case| case.racy_when_mixed(),
        near_and_far: 4 racy,
        near_and_far_fenced: 4,
        near_and_far_quiet: 4,
        put_signals_near_and_far: 4,
        barrier_over_both_paths: 4,
        quiet_over_both_paths: 4,
        signals_of_near_and_far_add_up: 4,
        team_barrier_across_nodes: 4,
        reduce_across_nodes: 4,
        broadcast_across_nodes: 4,
    ];
    cases.into_iter().map(|case| case.nodes(2)).collect()
}

/// PE 0 puts `x@2`, waits until that is complete and tells PE 3, who gets `x@2` over NVLink. Allowed: 1. Under `mixed-fabric` also 0:
/// PE 2 has told PE 3 nothing. Control: `third_pe_told_by_the_destination`.
fn third_pe_told_by_the_writer<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    told_by_the_writer(pe, [0, 2, 3], 1)
}

/// PE 1 is of the writer's node: it reads as PE 0 writes, over the network. 1 under every profile.
fn third_pe_on_the_writers_path<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    told_by_the_writer(pe, [0, 2, 1], 1)
}

/// PE 3 writes over NVLink, PE 0 reads over the network: another path too, so 0 and 1 under `mixed-fabric`.
fn third_pe_far_from_a_near_writer<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    told_by_the_writer(pe, [3, 2, 0], 1)
}

/// As `third_pe_told_by_the_writer`, reading twice: 0 is not read behind 1.
fn third_pe_reads_twice<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    told_by_the_writer(pe, [0, 2, 3], 2)
}

fn told_by_the_writer<B: Backend>(pe: &Pe<B>, [writer, home, reader]: [usize; 3], times: usize) -> Result<Seen> {
    let words = pe.alloc_zeroed::<u64>(2)?;
    let (x, told) = (words.at(0), words.signal(1));
    let mut saw = Seen::nothing();
    if pe.my_pe() == writer {
        pe.host().p(x, 1, home)?;
        pe.host().quiet()?;
        set(pe, told, reader)?;
    } else if pe.my_pe() == reader {
        wait(pe, told)?;
        let found = (0..times).map(|_| pe.host().g(x, home)).collect::<Result<Vec<u64>>>()?;
        saw = seen("x", found);
    }
    pe.free(words)?;
    Ok(saw)
}

/// How PE 3 learns of `x@2`, behind PE 2's wait.
#[derive(Clone, Copy, Debug)]
enum Tells {
    Signal,
    Atomic,
    ThroughPe1,
}

/// PE 2 waits for PE 0's signal behind the put, and signals PE 3: 1 under every profile. Control: `third_pe_told_by_the_writer`.
fn third_pe_told_by_the_destination<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    told_by_the_destination(pe, Tells::Signal)
}

/// The same with an atomic of PE 2 in the place of its signal.
fn third_pe_told_by_an_atomic_of_the_destination<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    told_by_the_destination(pe, Tells::Atomic)
}

/// PE 2 signals PE 1, and that one PE 3: 1 under every profile, because PE 1 knows it from PE 2.
fn third_pe_told_by_a_fourth<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    told_by_the_destination(pe, Tells::ThroughPe1)
}

fn told_by_the_destination<B: Backend>(pe: &Pe<B>, tells: Tells) -> Result<Seen> {
    let words = pe.alloc_zeroed::<u64>(2)?;
    let (x, told) = (words.at(0), words.signal(1));
    let mut saw = Seen::nothing();
    match (pe.my_pe(), tells) {
        (0, _) => {
            pe.host().p(x, 1, 2)?;
            pe.host().fence()?;
            set(pe, told, 2)?;
        }
        (2, _) => {
            wait(pe, told)?;
            match tells {
                Tells::Signal => set(pe, told, 3)?,
                Tells::Atomic => pe.host().atomic_set(words.at(1), 1, 3)?,
                Tells::ThroughPe1 => set(pe, told, 1)?,
            }
        }
        (1, Tells::ThroughPe1) => {
            wait(pe, told)?;
            set(pe, told, 3)?;
        }
        (3, _) => {
            wait(pe, told)?;
            saw = seen("x", pe.host().g(x, 2)?);
        }
        _ => {}
    }
    pe.free(words)?;
    Ok(saw)
}

/// A put, then a barrier of all: it promises the put to PE 2. PE 3 may find 0 under `mixed-fabric`, because PE 2 may have entered before
/// the put arrived. Control: `third_pe_behind_two_barriers`.
fn third_pe_behind_a_barrier<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    behind_barriers(pe, 1)
}

/// PE 2 enters the second barrier behind the first, which has promised it the put: 1 under every profile.
fn third_pe_behind_two_barriers<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    behind_barriers(pe, 2)
}

fn behind_barriers<B: Backend>(pe: &Pe<B>, barriers: usize) -> Result<Seen> {
    let x = pe.alloc_zeroed::<u64>(1)?;
    if pe.my_pe() == 0 {
        pe.host().p(&x, 1, 2)?;
    }
    (0..barriers).try_for_each(|_| pe.host().barrier_all())?;
    let saw = if pe.my_pe() == 3 { seen("x", pe.host().g(&x, 2)?) } else { Seen::nothing() };
    pe.free(x)?;
    Ok(saw)
}

/// As `third_pe_behind_a_barrier`, with a barrier of a team that has the writer and the reader, and not the destination.
fn third_pe_of_a_team<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    let x = pe.alloc_zeroed::<u64>(1)?;
    let team = pe.team_split_strided(pe.world(), 0, 3, 2, TeamConfig::default())?;
    if pe.my_pe() == 0 {
        pe.host().p(&x, 1, 2)?;
    }
    let mut saw = Seen::nothing();
    if let Some(team) = &team {
        pe.host().barrier(team)?;
        if pe.my_pe() == 3 {
            saw = seen("x", pe.host().g(&x, 2)?);
        }
    }
    pe.free(x)?;
    team.map_or(Ok(()), |team| pe.team_destroy(team))?;
    Ok(saw)
}

/// PE 0 puts to PE 1 of its node and to PE 2 of another, and then signals both. Each may find 0, unless transfers to one PE arrive in
/// order or puts have arrived when they return.
fn near_and_far<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    to_both(pe, Between::Nothing)
}

/// With a fence both find 1: it is about each target. Control: `near_and_far`.
fn near_and_far_fenced<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    to_both(pe, Between::Fence)
}

/// With a quiet likewise: it completes what went over both fabrics. Control: `near_and_far`.
fn near_and_far_quiet<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    to_both(pe, Between::Quiet)
}

fn to_both<B: Backend>(pe: &Pe<B>, between: Between) -> Result<Seen> {
    let words = pe.alloc_zeroed::<u64>(2)?;
    let (x, y) = (words.at(0), words.signal(1));
    let mut saw = Seen::nothing();
    match pe.my_pe() {
        0 => {
            pe.host().p(x, 1, 1)?;
            pe.host().p(x, 1, 2)?;
            between.call(pe)?;
            set(pe, y, 1)?;
            set(pe, y, 2)?;
        }
        1 | 2 => {
            wait(pe, y)?;
            saw = seen("x", pe.read(x)?[0]);
        }
        _ => {}
    }
    pe.free(words)?;
    Ok(saw)
}

/// A put_signal to each: its data is there with the signal, whichever way it came.
fn put_signals_near_and_far<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    let words = pe.alloc_zeroed::<u64>(3)?;
    let (x, source, y) = (words.at(0), words.at(1), words.signal(2));
    let mut saw = Seen::nothing();
    match pe.my_pe() {
        0 => {
            pe.write(source, &[1])?;
            [1, 2].into_iter().try_for_each(|to| pe.host().put_signal(x, source, y, 1, SignalOp::Set, to))?;
        }
        1 | 2 => {
            wait(pe, y)?;
            saw = seen("x", pe.read(x)?[0]);
        }
        _ => {}
    }
    pe.free(words)?;
    Ok(saw)
}

/// A barrier promises both puts to their destinations.
fn barrier_over_both_paths<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    complete_on_both(pe, |pe| pe.host().barrier_all())
}

/// A quiet completes both, and a sync tells of it.
fn quiet_over_both_paths<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    complete_on_both(pe, |pe| {
        pe.host().quiet()?;
        pe.host().sync_all()
    })
}

fn complete_on_both<B: Backend>(pe: &Pe<B>, complete: impl Fn(&Pe<B>) -> Result<()>) -> Result<Seen> {
    let x = pe.alloc_zeroed::<u64>(1)?;
    if pe.my_pe() == 0 {
        pe.host().p(&x, 1, 1)?;
        pe.host().p(&x, 1, 2)?;
    }
    complete(pe)?;
    let saw = if [1, 2].contains(&pe.my_pe()) { seen("x", pe.read(&x)?[0]) } else { Seen::nothing() };
    pe.free(x)?;
    Ok(saw)
}

/// PE 0 waits for one signal of its node and one of another, added to one counter. Both senders' data is there.
fn signals_of_near_and_far_add_up<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    let words = pe.alloc_zeroed::<u64>(4)?;
    let (source, counter) = (words.at(0), words.signal(1));
    let mut saw = Seen::nothing();
    match pe.my_pe() {
        0 => {
            pe.host().signal_wait_until(counter, Cmp::Ge, 2)?;
            saw = seen("x", pe.read(words.slice(2..))?);
        }
        me @ (1 | 2) => {
            pe.write(source, &[me as u64])?;
            pe.host().put_signal(words.at(me + 1), source, counter, 1, SignalOp::Add, 0)?;
        }
        _ => {}
    }
    pe.free(words)?;
    Ok(saw)
}

/// PEs 1 and 2, a team across the nodes, put to each other and meet in the team's barrier.
fn team_barrier_across_nodes<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    let x = pe.alloc_zeroed::<u64>(1)?;
    let team = pe.team_split_strided(pe.world(), 1, 1, 2, TeamConfig::default())?;
    let mut saw = Seen::nothing();
    if let Some(team) = &team {
        pe.host().p(&x, 1 + pe.my_pe() as u64, 3 - pe.my_pe())?;
        pe.host().barrier(team)?;
        saw = seen("x", pe.read(&x)?[0]);
    }
    pe.free(x)?;
    team.map_or(Ok(()), |team| pe.team_destroy(team))?;
    Ok(saw)
}

/// A sum over both nodes: every PE has it.
fn reduce_across_nodes<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    let words = pe.alloc_zeroed::<u64>(2)?;
    let (sum, mine) = (words.at(0), words.at(1));
    pe.write(mine, &[1 << pe.my_pe()])?;
    pe.host().reduce(pe.world(), sum, mine, ReduceOp::Sum)?;
    let saw = seen("sum", pe.read(sum)?[0]);
    pe.free(words)?;
    Ok(saw)
}

/// PE 1 sends to its node and to the other.
fn broadcast_across_nodes<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    let words = pe.alloc_zeroed::<u64>(2)?;
    let (dst, src) = (words.at(0), words.at(1));
    pe.write(src, &[pe.my_pe() as u64])?;
    pe.host().broadcast(pe.world(), dst, src, 1)?;
    let saw = seen("got", pe.read(dst)?[0]);
    pe.free(words)?;
    Ok(saw)
}
