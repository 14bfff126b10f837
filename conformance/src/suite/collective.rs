//! Collectives: what each moves, when a member may return, and that nobody waits for anybody on entry. Reductions by
//! operator and type are in `reduce.rs`.

use onesided::{Backend, Element, Host, Issue, Pe, ReduceOp, Result, SignalOp, SymmetricSlice, Team, TeamConfig};

use super::rma::kind;
use crate::case::{Case, Seen, cases, seen};

/// The chapter's cases, with those of `reduce.rs` and `large.rs`.
pub(super) fn cases<B: Backend>() -> Vec<Case<B>> {
    let mut cases = cases![
        barrier_exchange: 2,
        barrier_exchange_on_stream: 2,
        sync_shows_local_stores: 2,
        broadcast_from_the_first: 2,
        broadcast_from_the_last: 2,
        broadcast_on_stream: 2,
        broadcast_on_a_sub_team: 3,
        broadcast_may_return_early: 2,
        broadcast_source_is_reusable: 2,
        broadcasts_back_to_back: 2,
        fcollect: 2,
        fcollect_on_stream: 2,
        fcollect_on_a_strided_team: 3,
        alltoall: 2,
        alltoall_on_stream: 2,
        reduce_waits_for_all: 2,
        dst_written_before_entry: 2 racy,
        dst_reset_too_late: 2 racy,
        dst_reset_in_time: 2,
        collective_completes_no_put: 2 racy,
        alone: 1,
        length_errors: 2,
        overlap_errors: 2,
        root_error: 2,
    ];
    cases.extend(super::reduce::cases());
    cases.extend(super::large::cases());
    cases
}

/// Runs `step` from the host, or on a new stream that is then synchronized.
pub(super) fn by<B: Backend>(
    pe: &Pe<B>,
    on_stream: bool,
    step: impl FnOnce(&Issue<'_, B>) -> Result<()>,
) -> Result<()> {
    if !on_stream {
        return step(&pe.host());
    }
    let stream = pe.stream()?;
    step(&pe.on(&stream))?;
    pe.synchronize(&stream)
}

/// Runs one collective with `source` and a zeroed destination of `len` elements, and records the destination.
pub(super) fn collect<B: Backend, T: Element>(
    pe: &Pe<B>,
    on_stream: bool,
    len: usize,
    source: &[T],
    step: impl FnOnce(&Issue<'_, B>, SymmetricSlice<'_, T>, SymmetricSlice<'_, T>) -> Result<()>,
) -> Result<Seen> {
    let words = pe.alloc_zeroed::<T>(len + source.len())?;
    let (dst, src) = (words.slice(..len), words.slice(len..));
    pe.write(src, source)?;
    by(pe, on_stream, |issue| step(issue, dst, src))?;
    let saw = seen("dst", pe.read(dst)?);
    pe.free(words)?;
    Ok(saw)
}

/// My own values: 10 and 11 on PE 0, 20 and 21 on PE 1.
pub(super) fn mine<B: Backend>(pe: &Pe<B>) -> [u32; 2] {
    let tens = (pe.my_pe() as u32 + 1) * 10;
    [tens, tens + 1]
}

/// Each PE puts to the other and meets it in a barrier: both have their data.
fn barrier_exchange<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    exchange(pe, false)
}

/// The same with put and barrier on a stream.
fn barrier_exchange_on_stream<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    exchange(pe, true)
}

fn exchange<B: Backend>(pe: &Pe<B>, on_stream: bool) -> Result<Seen> {
    let x = pe.alloc_zeroed::<u32>(1)?;
    by(pe, on_stream, |issue| {
        issue.p(&x, mine(pe)[0], 1 - pe.my_pe())?;
        issue.barrier_all()
    })?;
    let saw = seen("x", pe.read(&x)?[0]);
    pe.free(x)?;
    Ok(saw)
}

/// A sync completes no put. What a PE wrote to its own memory before the sync can be read by others after it.
fn sync_shows_local_stores<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    let x = pe.alloc_zeroed::<u32>(1)?;
    if pe.my_pe() == 1 {
        pe.write(&x, &[1])?;
    }
    pe.host().sync_all()?;
    let saw = if pe.my_pe() == 0 { seen("x", pe.host().g(&x, 1)?) } else { Seen::nothing() };
    pe.free(x)?;
    Ok(saw)
}

/// The root's source reaches every member, the root included.
fn broadcast_from_the_first<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    broadcast(pe, false, 0)
}

/// The same from the other root.
fn broadcast_from_the_last<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    broadcast(pe, false, 1)
}

/// The same on a stream.
fn broadcast_on_stream<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    broadcast(pe, true, 1)
}

fn broadcast<B: Backend>(pe: &Pe<B>, on_stream: bool, root: usize) -> Result<Seen> {
    collect(pe, on_stream, 1, &mine(pe)[..1], |issue, dst, src| issue.broadcast(pe.world(), dst, src, root))
}

/// The root is a rank of the team, not of the world: root 0 of the team of PEs 1 and 2 is PE 1. PE 0 gets nothing.
fn broadcast_on_a_sub_team<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    collect_in_pair(pe, [1, 2], 1, |host, team, dst, src| host.broadcast(team, dst, src, 0))
}

/// Runs one collective on a team of two of three PEs. At the end the third checks that it received nothing.
fn collect_in_pair<B: Backend>(
    pe: &Pe<B>,
    [first, second]: [usize; 2],
    len: usize,
    step: impl FnOnce(&Host<'_, B>, &Team, SymmetricSlice<'_, u32>, SymmetricSlice<'_, u32>) -> Result<()>,
) -> Result<Seen> {
    let words = pe.alloc_zeroed::<u32>(len + 1)?;
    let (dst, src) = (words.slice(..len), words.at(len));
    let team = pe.team_split_strided(pe.world(), first, second - first, 2, TeamConfig::default())?;
    let mut saw = None;
    if let Some(team) = team {
        pe.write(src, &mine(pe)[..1])?;
        step(&pe.host(), &team, dst, src)?;
        saw = Some(pe.read(dst)?);
        pe.team_destroy(team)?;
    }
    pe.host().barrier_all()?;
    let saw = match saw {
        Some(saw) => saw,
        None => pe.read(dst)?,
    };
    pe.free(words)?;
    Ok(seen("dst", saw))
}

/// The root may return from a broadcast before others have entered: PE 1 looks, before it enters, for the signal that
/// PE 0 sends after it returned. It need not find it.
fn broadcast_may_return_early<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    signal_after(pe, |pe, dst, src| pe.host().broadcast(pe.world(), dst, src, 0))
}

/// No member returns from a reduction before all have entered: PE 1 never finds the signal. Control:
/// `broadcast_may_return_early`.
fn reduce_waits_for_all<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    signal_after(pe, |pe, dst, src| pe.host().reduce(pe.world(), dst, src, ReduceOp::Sum))
}

fn signal_after<B: Backend>(
    pe: &Pe<B>,
    step: impl Fn(&Pe<B>, SymmetricSlice<'_, u64>, SymmetricSlice<'_, u64>) -> Result<()>,
) -> Result<Seen> {
    let words = pe.alloc_zeroed::<u64>(3)?;
    let (dst, src, flag) = (words.at(0), words.at(1), words.signal(2));
    let mut saw = Seen::nothing();
    if pe.my_pe() == 0 {
        step(pe, dst, src)?;
        pe.host().signal_op(flag, 1, SignalOp::Set, 1)?;
    } else {
        saw = seen("returned", pe.host().signal_fetch(flag)?);
        step(pe, dst, src)?;
    }
    pe.free(words)?;
    Ok(saw)
}

/// The root may overwrite its source when its broadcast has returned. The other PE gets the first value, even if it enters
/// late.
fn broadcast_source_is_reusable<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    let words = pe.alloc_zeroed::<u32>(2)?;
    let (dst, src) = (words.at(0), words.at(1));
    if pe.my_pe() == 0 {
        pe.write(src, &[1])?;
    }
    pe.host().broadcast(pe.world(), dst, src, 0)?;
    let mut saw = Seen::nothing();
    if pe.my_pe() == 0 {
        pe.write(src, &[2])?;
    } else {
        saw = seen("dst", pe.read(dst)?[0]);
    }
    pe.free(words)?;
    Ok(saw)
}

/// Two broadcasts from different roots to different destinations need no barrier between them: they are matched in
/// order.
fn broadcasts_back_to_back<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    collect(pe, false, 2, &mine(pe)[..1], |issue, dst, src| {
        issue.broadcast(pe.world(), dst.slice(..1), src, 0)?;
        issue.broadcast(pe.world(), dst.slice(1..), src, 1)
    })
}

/// Every member's source, in team order, on every member.
fn fcollect<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    collect(pe, false, 2, &mine(pe)[..1], |issue, dst, src| issue.fcollect(pe.world(), dst, src))
}

/// The same on a stream.
fn fcollect_on_stream<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    collect(pe, true, 2, &mine(pe)[..1], |issue, dst, src| issue.fcollect(pe.world(), dst, src))
}

/// On the team of PEs 0 and 2, PE 2's source is the second part. PE 1 gets nothing.
fn fcollect_on_a_strided_team<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    collect_in_pair(pe, [0, 2], 2, |host, team, dst, src| host.fcollect(team, dst, src))
}

/// Block `j` of member `i` becomes block `i` of member `j`.
fn alltoall<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    collect(pe, false, 2, &mine(pe), |issue, dst, src| issue.alltoall(pe.world(), dst, src))
}

/// The same on a stream.
fn alltoall_on_stream<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    collect(pe, true, 2, &mine(pe), |issue, dst, src| issue.alltoall(pe.world(), dst, src))
}

/// A peer may write a destination before its owner has entered: PE 1 looks at it first and may find the new value.
fn dst_written_before_entry<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    let words = pe.alloc_zeroed::<u32>(2)?;
    let (dst, src) = (words.at(0), words.at(1));
    let mut saw = Seen::nothing();
    if pe.my_pe() == 0 {
        pe.write(src, &[1])?;
    } else {
        saw = seen("before", pe.read(dst)?[0]);
    }
    pe.host().broadcast(pe.world(), dst, src, 0)?;
    if pe.my_pe() == 1 {
        saw = saw.and("after", pe.read(dst)?[0]);
    }
    pe.free(words)?;
    Ok(saw)
}

/// The owner writes to its destination right before it enters. The data may be there already, and is overwritten.
fn dst_reset_too_late<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    reset_and_broadcast(pe, false)
}

/// With a barrier between, the destination is free before anyone enters. Control: `dst_reset_too_late`.
fn dst_reset_in_time<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    reset_and_broadcast(pe, true)
}

fn reset_and_broadcast<B: Backend>(pe: &Pe<B>, barrier: bool) -> Result<Seen> {
    let words = pe.alloc_zeroed::<u32>(2)?;
    let (dst, src) = (words.at(0), words.at(1));
    if pe.my_pe() == 0 {
        pe.write(src, &[1])?;
    } else {
        pe.write(dst, &[9])?;
    }
    if barrier {
        pe.host().barrier_all()?;
    }
    pe.host().broadcast(pe.world(), dst, src, 0)?;
    let saw = if pe.my_pe() == 1 { seen("dst", pe.read(dst)?[0]) } else { Seen::nothing() };
    pe.free(words)?;
    Ok(saw)
}

/// A collective that moves data completes no put: a put before it may still be in flight after it.
fn collective_completes_no_put<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    let words = pe.alloc_zeroed::<u32>(3)?;
    if pe.my_pe() == 0 {
        pe.host().p(words.at(0), 1, 1)?;
    }
    pe.host().reduce(pe.world(), words.at(1), words.at(2), ReduceOp::Sum)?;
    let saw = if pe.my_pe() == 1 { seen("x", pe.read(words.at(0))?[0]) } else { Seen::nothing() };
    pe.free(words)?;
    Ok(saw)
}

/// A team of one PE is a team: each collective copies.
fn alone<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    let (dst, src) = (pe.alloc_zeroed::<u32>(5)?, pe.alloc_zeroed::<u32>(1)?);
    pe.write(&src, &[7])?;
    let (host, world) = (pe.host(), pe.world());
    host.broadcast(world, dst.at(0), &src, 0)?;
    host.fcollect(world, dst.at(1), &src)?;
    host.alltoall(world, dst.at(2), &src)?;
    host.reduce(world, dst.at(3), &src, ReduceOp::Prod)?;
    host.reducescatter(world, dst.at(4), &src, ReduceOp::Min)?;
    host.barrier(world)?;
    host.sync(world)?;
    let saw = seen("dst", pe.read(&dst)?);
    pe.free(dst)?;
    pe.free(src)?;
    Ok(saw)
}

/// Operands with a wrong length, or without elements, are refused before any PE waits.
fn length_errors<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    let (dst, src) = (pe.alloc_zeroed::<u32>(4)?, pe.alloc_zeroed::<u32>(4)?);
    let (host, world) = (pe.host(), pe.world());
    let (three, two, none) = (src.slice(..3), src.slice(..2), src.slice(..0));
    let saw = seen("broadcast", kind(host.broadcast(world, &dst, two, 0)))
        .and("fcollect", kind(host.fcollect(world, &dst, three)))
        .and("alltoall", kind(host.alltoall(world, &dst, two)))
        .and("alltoall_blocks", kind(host.alltoall(world, dst.slice(..3), three)))
        .and("reduce", kind(host.reduce(world, &dst, two, ReduceOp::Sum)))
        .and("reducescatter", kind(host.reducescatter(world, &dst, two, ReduceOp::Sum)))
        .and("broadcast_none", kind(host.broadcast(world, dst.slice(..0), none, 0)))
        .and("fcollect_none", kind(host.fcollect(world, dst.slice(..0), none)))
        .and("alltoall_none", kind(host.alltoall(world, dst.slice(..0), none)))
        .and("reduce_none", kind(host.reduce(world, dst.slice(..0), none, ReduceOp::Sum)))
        .and("reducescatter_none", kind(host.reducescatter(world, dst.slice(..0), none, ReduceOp::Sum)));
    pe.free(dst)?;
    pe.free(src)?;
    Ok(saw)
}

/// Operands that overlap are refused; exactly the same ones too, except by reduce.
fn overlap_errors<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    let words = pe.alloc_zeroed::<u32>(4)?;
    let (host, world) = (pe.host(), pe.world());
    let (front, middle) = (words.slice(..2), words.slice(1..3));
    let saw = seen("broadcast", kind(host.broadcast(world, front, middle, 0)))
        .and("broadcast_in_place", kind(host.broadcast(world, front, front, 0)))
        .and("fcollect", kind(host.fcollect(world, front, words.at(1))))
        .and("alltoall", kind(host.alltoall(world, front, front)))
        .and("reduce", kind(host.reduce(world, front, middle, ReduceOp::Sum)))
        .and("reducescatter", kind(host.reducescatter(world, words.at(1), front, ReduceOp::Sum)));
    pe.free(words)?;
    Ok(saw)
}

/// A root outside the team is refused, also where the world has such a PE.
fn root_error<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    let words = pe.alloc_zeroed::<u32>(2)?;
    let (dst, src) = (words.at(0), words.at(1));
    let mut saw = seen("world", kind(pe.host().broadcast(pe.world(), dst, src, 2)));
    let first = pe.team_split_strided(pe.world(), 0, 1, 1, TeamConfig::default())?;
    if let Some(team) = first {
        saw = saw.and("sub_team", kind(pe.host().broadcast(&team, dst, src, 1)));
        pe.team_destroy(team)?;
    }
    pe.free(words)?;
    Ok(saw)
}
