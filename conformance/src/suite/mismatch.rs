//! Collectives in which the members disagree: each ends in a verdict that names what differs and every member's line.
//! Hardware hangs, or corrupts memory, and says nothing.

use onesided::{Backend, Element, Pe, ReduceOp, Result, SymmetricBuf, TeamConfig, TeamUniqueId};

use super::misuse::everyone;
use super::rma::free_all;
use crate::case::{Case, Seen, cases};

/// This part of the chapter `misuse`, whose `cases` marks them all as ending in a verdict.
pub(super) fn cases<B: Backend>() -> Vec<Case<B>> {
    cases![
        barrier_skipped: 2,
        barrier_against_sync: 2,
        reduce_against_broadcast: 2,
        count_differs: 2,
        dtype_differs: 2,
        reduce_op_differs: 2,
        root_differs: 2,
        dst_differs: 2,
        src_differs: 2,
        order_differs_on_streams: 2,
        alloc_size_differs: 2,
        alloc_zeroed_on_one: 2,
        alloc_against_barrier: 2,
        free_order_differs: 2,
        freed_by_one: 2,
        split_differs: 2,
        split_2d_differs: 2,
        destroyed_by_one: 2,
        team_init_duplicate_index: 2,
        team_init_size_differs: 3,
    ]
}

/// One PE calls a barrier, the other goes on to the next collective.
fn barrier_skipped<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    let x = pe.alloc_zeroed::<u32>(1)?;
    if pe.my_pe() == 0 {
        pe.host().barrier_all()?;
    }
    pe.free(x)?;
    Ok(Seen::nothing())
}

/// A barrier meets a sync.
fn barrier_against_sync<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    if pe.my_pe() == 0 {
        pe.host().barrier_all()?
    } else {
        pe.host().sync_all()?
    }
    Ok(Seen::nothing())
}

/// Runs a collective that differs between PEs, on words of a `u32` buffer.
fn differing<B: Backend>(pe: &Pe<B>, call: impl Fn(&Pe<B>, &SymmetricBuf<u32>) -> Result<()>) -> Result<Seen> {
    let words = pe.alloc_zeroed::<u32>(4)?;
    call(pe, &words)?;
    pe.free(words)?;
    Ok(Seen::nothing())
}

/// A reduction meets a broadcast.
fn reduce_against_broadcast<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    differing(pe, |pe, words| match pe.my_pe() {
        0 => pe.host().reduce(pe.world(), words.at(0), words.at(1), ReduceOp::Sum),
        _ => pe.host().broadcast(pe.world(), words.at(0), words.at(1), 0),
    })
}

/// One PE reduces one element, the other two.
fn count_differs<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    differing(pe, |pe, words| {
        let count = pe.my_pe() + 1;
        pe.host().reduce(pe.world(), words.slice(..count), words.slice(2..2 + count), ReduceOp::Sum)
    })
}

/// One PE reduces a `u32`, the other an `f32`, in the same place.
fn dtype_differs<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    // The same allocation on both: it is a number of bytes, and has no type.
    if pe.my_pe() == 0 { reduce_own_type::<B, u32>(pe) } else { reduce_own_type::<B, f32>(pe) }
}

fn reduce_own_type<B: Backend, T: Element>(pe: &Pe<B>) -> Result<Seen> {
    let words = pe.alloc_zeroed::<T>(2)?;
    pe.host().reduce(pe.world(), words.at(0), words.at(1), ReduceOp::Sum)?;
    pe.free(words)?;
    Ok(Seen::nothing())
}

/// One PE asks for the sum, the other for the maximum.
fn reduce_op_differs<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    let op = [ReduceOp::Sum, ReduceOp::Max][pe.my_pe()];
    differing(pe, |pe, words| pe.host().reduce(pe.world(), words.at(0), words.at(1), op))
}

/// Each PE names itself as the root.
fn root_differs<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    differing(pe, |pe, words| pe.host().broadcast(pe.world(), words.at(0), words.at(1), pe.my_pe()))
}

/// The PEs pass different destinations.
fn dst_differs<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    differing(pe, |pe, words| pe.host().reduce(pe.world(), words.at(pe.my_pe()), words.at(2), ReduceOp::Sum))
}

/// The PEs pass different sources.
fn src_differs<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    differing(pe, |pe, words| pe.host().reduce(pe.world(), words.at(2), words.at(pe.my_pe()), ReduceOp::Sum))
}

/// Barrier and sync on a stream, in the other order on the other PE.
fn order_differs_on_streams<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    let stream = pe.stream()?;
    if pe.my_pe() == 0 {
        pe.on(&stream).barrier_all()?;
        pe.on(&stream).sync_all()?;
    } else {
        pe.on(&stream).sync_all()?;
        pe.on(&stream).barrier_all()?;
    }
    pe.synchronize(&stream)?;
    Ok(Seen::nothing())
}

/// The PEs allocate different sizes.
fn alloc_size_differs<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    let x = pe.alloc::<u32>(1 + pe.my_pe())?;
    pe.free(x)?;
    Ok(Seen::nothing())
}

/// One PE asks for zeroed memory, the other for any.
fn alloc_zeroed_on_one<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    let x = if pe.my_pe() == 0 { pe.alloc_zeroed::<u32>(1)? } else { pe.alloc::<u32>(1)? };
    pe.free(x)?;
    Ok(Seen::nothing())
}

/// One PE allocates and then calls a barrier. The other does both in the opposite order.
fn alloc_against_barrier<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    if pe.my_pe() == 1 {
        pe.host().barrier_all()?;
    }
    let x = pe.alloc::<u32>(1)?;
    if pe.my_pe() == 0 {
        pe.host().barrier_all()?;
    }
    pe.free(x)?;
    Ok(Seen::nothing())
}

/// The PEs free two buffers in opposite orders.
fn free_order_differs<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    let (a, b) = (pe.alloc::<u32>(1)?, pe.alloc::<u32>(1)?);
    let (first, second) = if pe.my_pe() == 0 { (a, b) } else { (b, a) };
    pe.free(first)?;
    pe.free(second)?;
    Ok(Seen::nothing())
}

/// One PE frees a buffer, the other drops its handle. A drop communicates nothing, so the free meets another call.
fn freed_by_one<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    let x = pe.alloc::<u32>(1)?;
    if pe.my_pe() == 0 {
        pe.free(x)?;
    }
    Ok(Seen::nothing())
}

/// The PEs split off different teams.
fn split_differs<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    let team = pe.team_split_strided(pe.world(), 0, 1, 1 + pe.my_pe(), TeamConfig::default())?;
    if let Some(team) = team {
        pe.team_destroy(team)?;
    }
    Ok(Seen::nothing())
}

/// The PEs ask for rows of different lengths.
fn split_2d_differs<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    let (x, y) = pe.team_split_2d(pe.world(), 1 + pe.my_pe(), TeamConfig::default(), TeamConfig::default())?;
    pe.team_destroy(x)?;
    pe.team_destroy(y)?;
    Ok(Seen::nothing())
}

/// One PE destroys a team, the other forgets to.
fn destroyed_by_one<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    let team = everyone(pe)?;
    if pe.my_pe() == 0 {
        pe.team_destroy(team)?;
    }
    Ok(Seen::nothing())
}

/// Two members of a new team claim the same index.
fn team_init_duplicate_index<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    init_team(pe, 2, 0)
}

/// The members of a new team name different sizes, each greater than one.
fn team_init_size_differs<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    init_team(pe, if pe.my_pe() == 0 { 2 } else { 3 }, pe.my_pe())
}

fn init_team<B: Backend>(pe: &Pe<B>, n_pes: usize, index: usize) -> Result<Seen> {
    let (mine, shared) = (pe.alloc_zeroed::<u64>(1)?, pe.alloc_zeroed::<u64>(1)?);
    if pe.my_pe() == 0 {
        pe.write(&mine, &[pe.team_unique_id()?.0])?;
    }
    pe.host().broadcast(pe.world(), &shared, &mine, 0)?;
    let unique_id = Some(TeamUniqueId(pe.read(&shared)?[0]));
    let team = pe.team_init(TeamConfig { unique_id, ..TeamConfig::default() }, n_pes, index)?;
    pe.team_destroy(team)?;
    free_all(pe, [shared, mine])?;
    Ok(Seen::nothing())
}
