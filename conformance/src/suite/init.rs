//! What a PE finds when its program starts: ranks, versions, status, capabilities, and a working world team.

use onesided::{Backend, ErrorKind, InitStatus, Pe, Predefined, ReduceOp, Result, SignalOp, Support, VERSION};

use super::rma::free_all;
use crate::case::{Case, Seen, cases, seen};

/// The chapter's cases.
pub(super) fn cases<B: Backend>() -> Vec<Case<B>> {
    cases![
        ranks: 3,
        versions_and_name: 1,
        status_and_threads: 2,
        status_on_a_shared_gpu: 2 => |case| case.gpus(1),
        capabilities_hold: 1,
        world_is_everybody: 3,
        world_spans_nodes: 2 => |case| case.nodes(2),
        first_sync: 2,
        first_barrier: 2,
        alone: 1,
    ]
}

/// Every PE has its own number below the number of PEs.
fn ranks<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    Ok(seen("pe", pe.my_pe()).and("of", pe.n_pes()))
}

/// The backend and its library have names, the specification is OpenSHMEM 1.x, and the API's version is this crate's.
/// The numbers themselves differ between libraries and are not recorded.
fn versions_and_name<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    let version = pe.version();
    Ok(seen("backend_named", !pe.name().is_empty())
        .and("library_named", !version.library.is_empty())
        .and("spec_major", version.openshmem_spec.0)
        .and("api_is_this_crate", version.onesided == VERSION))
}

/// A program starts fully initialized, with a GPU of its own or one that it shares under MPS. One thread at a time may call.
fn status_and_threads<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    let ready = matches!(pe.init_status(), InitStatus::Initialized | InitStatus::FullMpg);
    Ok(seen("ready", ready).and("threads", pe.query_thread()))
}

/// Two PEs on one GPU know that they share it.
fn status_on_a_shared_gpu<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    Ok(seen("status", pe.init_status()))
}

/// What the capabilities promise works, and what they deny is refused as unsupported. That differs between libraries and is
/// not recorded.
fn capabilities_hold<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    let (can, me) = (pe.capabilities(), pe.my_pe());
    let words = pe.alloc_zeroed::<u64>(2)?;
    let stream = pe.stream()?;

    let atomic = pe.host().atomic_inc(words.at(0), me);
    let signal = pe.host().signal_op(words.signal(1), 1, SignalOp::Set, me);
    let fence = pe.on(&stream).fence();
    pe.synchronize(&stream)?;
    let external = pe.alloc_external::<u64>(1).and_then(|buf| pe.free_external(buf));
    let reaches_itself = pe.peer(&words, me)?.is_some();
    let has_multicast = pe.multicast(pe.world(), &words)?.is_some();

    pe.free(words)?;
    Ok(seen("host_atomics", holds(can.host_atomics, &atomic))
        .and("host_signals", holds(can.host_signals, &signal))
        .and("stream_fence", holds(can.stream_fence, &fence))
        .and("registration", holds(can.registration, &external))
        .and("peer_access", reaches_itself || !can.peer_access.is_available())
        .and("multicast", !has_multicast || can.multicast.is_available()))
}

/// Whether the result of a call agrees with the support of its family.
fn holds(support: Support, done: &Result<()>) -> bool {
    match done {
        Ok(()) => support.is_available(),
        Err(error) => !support.is_available() && error.kind() == ErrorKind::Unsupported,
    }
}

/// The world team has every PE, in the order of the world ranks.
fn world_is_everybody<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    let world = pe.world();
    Ok(seen("rank", world.my_pe())
        .and("members", world.members().iter().collect::<Vec<_>>())
        .and("is_predefined", world.id() == Predefined::World.id()))
}

/// The world does not end at the node: two PEs on two nodes are in one world and meet in its barrier.
fn world_spans_nodes<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    pe.host().barrier_all()?;
    Ok(seen("rank", pe.world().my_pe()).and("of", pe.world().n_pes()))
}

/// A sync works without anything before it but an allocation, and shows a PE's stores to its *own* memory to the
/// others: PE 0 writes, all sync, PE 1 gets.
fn first_sync<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    own_write_then(pe, |pe| pe.host().sync_all())
}

/// `first_sync` with a barrier, which contains a sync.
fn first_barrier<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    own_write_then(pe, |pe| pe.host().barrier_all())
}

fn own_write_then<B: Backend>(pe: &Pe<B>, meet: fn(&Pe<B>) -> Result<()>) -> Result<Seen> {
    let x = pe.alloc_zeroed::<u32>(1)?;
    if pe.my_pe() == 0 {
        pe.write(&x, &[1])?;
    }
    meet(pe)?;
    let saw = if pe.my_pe() == 1 { seen("x", pe.host().g(&x, 0)?) } else { Seen::nothing() };
    pe.free(x)?;
    Ok(saw)
}

/// A job of one PE: every call works with the PE itself.
fn alone<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    let (x, sum) = (pe.alloc_zeroed::<u32>(1)?, pe.alloc_zeroed::<u32>(1)?);
    pe.host().p(&x, 1, 0)?;
    pe.host().barrier_all()?;
    pe.host().sync_all()?;
    pe.host().reduce(pe.world(), &sum, &x, ReduceOp::Sum)?;
    let saw = seen("sum", pe.read(&sum)?[0]);
    free_all(pe, [sum, x])?;
    Ok(saw)
}
