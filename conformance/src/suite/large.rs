//! Collectives of many elements: libraries take other algorithms for them, with limits of their own.
//!
//! What is seen is how many elements are wrong.

use onesided::{Backend, Issue, Pe, Predefined, ReduceOp, Result, SymmetricSlice, Team, TeamConfig};

use super::collective::by;
use crate::case::{Case, Seen, cases, seen};

/// Elements of a block. Three are more than the scratch that NVSHMEM has for a reducescatter, and one is more than it
/// sends at once in a reduction.
const BLOCK: usize = 25_000;

/// Elements of a block that reaches past the scratch, into the memory by which the next team synchronizes.
const BEYOND: usize = 450_000;

/// Reads by which a PE comes late: they take some milliseconds on a GPU, a barrier a hundredth of that.
const LATE: usize = 200;

/// This part of the chapter `collective`.
pub(super) fn cases<B: Backend>() -> Vec<Case<B>> {
    cases![
        broadcast_of_many: 2,
        reduce_of_many: 3,
        reduce_in_place_of_many: 3,
        reduce_in_place_of_many_on_stream: 3,
        reduce_in_place_of_many_on_a_sub_team: 4,
        reduce_in_place_of_many_bytes: 3,
        reducescatter_of_many: 3,
        reducescatter_of_many_on_stream: 3,
        reducescatters_of_growing_size: 2,
        teams_meet_after_a_large_reducescatter: 2 => |case| case.needs_peer_access(), // as a team of both
    ]
}

/// Element `i` of the source of a team's member.
fn element(member: usize, i: usize) -> u32 {
    (i * 7 + member * 100_003) as u32
}

/// Element `i` of the sum over the first so many members.
fn sum(members: usize, i: usize) -> u32 {
    (0..members).map(|member| element(member, i)).sum()
}

/// Runs one collective of `team`: from `sources` blocks to `targets` blocks. In place there is one block for both.
/// `expected` is each element of the target.
fn many<B: Backend>(
    pe: &Pe<B>,
    team: &Team,
    (on_stream, in_place): (bool, bool),
    [sources, targets]: [usize; 2],
    expected: impl Fn(usize) -> u32,
    step: impl FnOnce(&Issue<'_, B>, SymmetricSlice<'_, u32>, SymmetricSlice<'_, u32>) -> Result<()>,
) -> Result<usize> {
    let [source, target] = [sources, targets].map(|blocks| blocks * BLOCK);
    let words = pe.alloc_zeroed::<u32>(if in_place { source } else { source + target })?;
    let (dst, src) = (words.slice(..target), words.slice(if in_place { 0 } else { target }..));
    pe.write(src, &(0..source).map(|i| element(team.my_pe(), i)).collect::<Vec<_>>())?;
    by(pe, on_stream, |issue| step(issue, dst, src))?;
    let wrong = pe.read(dst)?.into_iter().enumerate().filter(|&(i, found)| found != expected(i)).count();
    pe.free(words)?;
    Ok(wrong)
}

/// From the first PE to all.
fn broadcast_of_many<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    let expected = |i| element(0, i);
    let wrong = many(pe, pe.world(), (false, false), [1, 1], expected, |issue, dst, src| {
        issue.broadcast(pe.world(), dst, src, 0)
    })?;
    Ok(seen("wrong", wrong))
}

/// Sums one block over a team.
fn reduce<B: Backend>(pe: &Pe<B>, team: &Team, on_stream: bool, in_place: bool) -> Result<usize> {
    let expected = |i| sum(team.n_pes(), i);
    many(pe, team, (on_stream, in_place), [1, 1], expected, |issue, dst, src| {
        issue.reduce(team, dst, src, ReduceOp::Sum)
    })
}

/// Into other memory. Control of the cases in place.
fn reduce_of_many<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    Ok(seen("wrong", reduce(pe, pe.world(), false, false)?))
}

/// In place: no PE may read a sum where it should read a source element.
fn reduce_in_place_of_many<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    Ok(seen("wrong", reduce(pe, pe.world(), false, true)?))
}

/// The same on a stream.
fn reduce_in_place_of_many_on_stream<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    Ok(seen("wrong", reduce(pe, pe.world(), true, true)?))
}

/// The same with elements of one byte, an odd number of them, that begin at an odd address. The sums wrap.
fn reduce_in_place_of_many_bytes<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    let byte = |member: usize, i: usize| element(member, i) as u8;
    let bytes = pe.alloc_zeroed::<u8>(BLOCK)?;
    let odd = bytes.slice(1..);
    pe.write(odd, &(0..odd.len()).map(|i| byte(pe.my_pe(), i)).collect::<Vec<_>>())?;
    pe.host().reduce(pe.world(), odd, odd, ReduceOp::Sum)?;
    let sum = |i| (0..pe.n_pes()).fold(0_u8, |sum, member| sum.wrapping_add(byte(member, i)));
    let wrong = pe.read(odd)?.into_iter().enumerate().filter(|&(i, found)| found != sum(i)).count();
    pe.free(bytes)?;
    Ok(seen("wrong", wrong))
}

/// The same among three PEs of four. Allocations are collective over the world, so the fourth PE allocates too.
fn reduce_in_place_of_many_on_a_sub_team<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    let team = pe.team_split_strided(pe.world(), 1, 1, 3, TeamConfig::default())?;
    let Some(team) = team else {
        let words = pe.alloc_zeroed::<u32>(BLOCK)?;
        pe.free(words)?;
        return Ok(seen("wrong", 0));
    };
    let wrong = reduce(pe, &team, false, true)?;
    pe.team_destroy(team)?;
    Ok(seen("wrong", wrong))
}

/// Sums a block for each PE.
fn reducescatter<B: Backend>(pe: &Pe<B>, on_stream: bool) -> Result<usize> {
    let expected = |i| sum(pe.n_pes(), pe.my_pe() * BLOCK + i);
    many(pe, pe.world(), (on_stream, false), [pe.n_pes(), 1], expected, |issue, dst, src| {
        issue.reducescatter(pe.world(), dst, src, ReduceOp::Sum)
    })
}

/// From the host.
fn reducescatter_of_many<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    Ok(seen("wrong", reducescatter(pe, false)?))
}

/// On a stream.
fn reducescatter_of_many_on_stream<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    Ok(seen("wrong", reducescatter(pe, true)?))
}

/// What a PE gets of each of some reducescatters of the world: `sizes` are their blocks, in the order of the targets.
/// `issue` issues them, from sources that all begin at the same element, and waits.
fn reducescatters<B: Backend>(
    pe: &Pe<B>,
    sizes: &[usize],
    issue: impl FnOnce(&[(SymmetricSlice<'_, u32>, SymmetricSlice<'_, u32>)]) -> Result<()>,
) -> Result<usize> {
    let n = pe.n_pes();
    let src = pe.alloc_zeroed::<u32>(n * sizes.iter().max().expect("a size"))?;
    let dst = pe.alloc_zeroed::<u32>(sizes.iter().sum())?;
    pe.write(&src, &(0..src.len()).map(|i| element(pe.my_pe(), i)).collect::<Vec<_>>())?;
    let starts = sizes.iter().scan(0, |next, size| Some(std::mem::replace(next, *next + size)));
    let operands = starts.zip(sizes).map(|(start, &size)| (dst.slice(start..start + size), src.slice(..n * size)));
    issue(&operands.collect::<Vec<_>>())?;
    let expected = sizes.iter().flat_map(|&size| (0..size).map(move |i| sum(n, pe.my_pe() * size + i)));
    let wrong = pe.read(&dst)?.into_iter().zip(expected).filter(|(found, expected)| found != expected).count();
    pe.free(dst)?;
    pe.free(src)?;
    Ok(wrong)
}

/// A small one, a larger one, a small one: a backend that keeps memory for them must have enough each time.
fn reducescatters_of_growing_size<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    let stream = pe.stream()?;
    let wrong = reducescatters(pe, &[2 * BLOCK, 3 * BLOCK, 2 * BLOCK], |operands| {
        for &(dst, src) in operands {
            pe.on(&stream).reducescatter(pe.world(), dst, src, ReduceOp::Sum)?;
        }
        pe.synchronize(&stream)
    })?;
    Ok(seen("wrong", wrong))
}

/// A collective of the world does not disturb another team: that team's barrier still waits for the put of a PE that comes late.
fn teams_meet_after_a_large_reducescatter<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    let shared = pe.team(Predefined::Shared).expect("every PE is a member");
    let words = pe.alloc_zeroed::<u32>(3 * BEYOND + 1)?;
    let (src, dst, flag) = (words.slice(..2 * BEYOND), words.slice(2 * BEYOND..3 * BEYOND), words.at(3 * BEYOND));
    pe.write(src, &vec![0x7000_0000; 2 * BEYOND])?;
    pe.host().reducescatter(pe.world(), dst, src, ReduceOp::Max)?;
    if pe.my_pe() == 1 {
        for _ in 0..LATE {
            pe.read(dst.slice(..1))?;
        }
        pe.host().p(flag, 1, 0)?;
    }
    pe.host().barrier(shared)?;
    let saw = seen("flag", pe.read(flag)?[0]);
    pe.free(words)?;
    Ok(saw)
}
