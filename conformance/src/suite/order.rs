//! Ordering: what fence, quiet and barriers promise, and what they do not.
//!
//! Most cases are a producer (PE 0) and a reader (PE 1) of zeroed words. Where one call makes the difference, the same
//! body runs with and without it, and each case names its control.

use onesided::{Backend, Cmp, Error, Pe, Result, SignalOp, SymmetricBuf, TeamConfig};

use crate::case::{Case, Seen, cases, seen};

/// The chapter's cases.
pub(super) fn cases<B: Backend>() -> Vec<Case<B>> {
    cases![
        two_puts_unfenced: 2 racy,
        two_puts_fenced: 2,
        put_then_barrier: 2,
        put_then_sync: 2 racy,
        fence_then_sync: 2 racy,
        flush_then_sync: 2 racy,
        fence_then_sync_behind_put_nbi: 2 racy,
        fence_then_sync_behind_a_signal: 2,
        quiet_then_sync: 2,
        quiet_of_the_reader: 2 racy,
        quiet_completes_everything: 3,
        team_barrier_completes_all_targets: 3,
        fence_covers_each_target: 3,
        put_unfenced: 2 racy,
        fence_orders_put: 2,
        put_nbi_unfenced: 2 racy,
        fence_orders_put_nbi: 2,
        fence_orders_iput: 2,
        fence_orders_signal: 2,
        fence_orders_put_signal: 2,
        fence_orders_atomic: 2 => |case| case.needs_host_atomics(),
        fence_orders_peer_store: 2 => |case| case.needs_peer_access(),
        peer_store_unfenced: 2 racy => |case| case.needs_peer_access(),
        fence_does_not_order_get: 2 racy,
        fetch_overtakes_put: 2 racy => |case| case.needs_host_atomics(),
        fence_orders_fetch: 2 => |case| case.needs_host_atomics(),
        put_overtakes_get_nbi: 2 racy,
        fence_does_not_order_get_nbi: 2 racy,
        quiet_orders_get_nbi: 2,
        nbi_source_overwritten: 2 racy,
        nbi_source_overwritten_fenced: 2 racy,
        nbi_source_flushed: 2,
        get_nbi_read_early: 2 racy,
    ]
}

/// The call between the two operations of a case.
#[derive(Clone, Copy, Debug)]
pub(super) enum Between {
    Nothing,
    Fence,
    Quiet,
    Flush,
}

impl Between {
    pub(super) fn call<B: Backend>(self, pe: &Pe<B>) -> Result<()> {
        match self {
            Between::Nothing => Ok(()),
            Between::Fence => pe.host().fence(),
            Between::Quiet => pe.host().quiet(),
            Between::Flush => pe.host().flush(),
        }
    }
}

/// Two puts of different values to the same element, no fence: either may arrive last.
fn two_puts_unfenced<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    two_puts(pe, Between::Nothing)
}

/// The same with a fence between: the second is never overtaken by the first. Control: `two_puts_unfenced`.
fn two_puts_fenced<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    two_puts(pe, Between::Fence)
}

fn two_puts<B: Backend>(pe: &Pe<B>, between: Between) -> Result<Seen> {
    let x = pe.alloc_zeroed::<u32>(1)?;
    if pe.my_pe() == 0 {
        pe.host().p(&x, 1, 1)?;
        between.call(pe)?;
        pe.host().p(&x, 2, 1)?;
    }
    pe.host().barrier_all()?;
    let saw = if pe.my_pe() == 1 { seen("x", pe.read(&x)?[0]) } else { Seen::nothing() };
    pe.free(x)?;
    Ok(saw)
}

/// A put, then a barrier, then the target reads: the barrier has completed the put.
fn put_then_barrier<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    put_then(pe, |pe| pe.host().barrier_all())
}

/// A put, then only a sync: arrival says nothing about the put, so the target may read the old value. Control:
/// `put_then_barrier`.
fn put_then_sync<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    put_then(pe, |pe| pe.host().sync_all())
}

/// A fence before the sync: it orders and does not complete, so the old value may still be read. Control:
/// `quiet_then_sync`.
fn fence_then_sync<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    put_then(pe, |pe| {
        pe.host().fence()?;
        pe.host().sync_all()
    })
}

/// The same after a non-blocking put. Under `nvlink` a fence is a quiet and completes the put.
fn fence_then_sync_behind_put_nbi<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    let words = pe.alloc_zeroed::<u32>(2)?;
    let (x, src) = (words.at(0), words.at(1));
    if pe.my_pe() == 0 {
        pe.write(src, &[1])?;
        pe.host().put_nbi(x, src, 1)?;
        pe.host().fence()?;
    }
    pe.host().sync_all()?;
    let saw = if pe.my_pe() == 1 { seen("x", pe.read_one(x)?) } else { Seen::nothing() };
    pe.free(words)?;
    Ok(saw)
}

/// The same after a signal for which no PE waits.
fn fence_then_sync_behind_a_signal<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    let x = pe.alloc_zeroed::<u64>(1)?;
    if pe.my_pe() == 0 {
        pe.host().signal_op(x.signal(0), 1, SignalOp::Set, 1)?;
        pe.host().fence()?;
    }
    pe.host().sync_all()?;
    let saw = if pe.my_pe() == 1 { seen("x", pe.host().signal_fetch(x.signal(0))?) } else { Seen::nothing() };
    pe.free(x)?;
    Ok(saw)
}

/// A flush before the sync: it makes sources reusable and completes nothing. Control: `quiet_then_sync`.
fn flush_then_sync<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    put_then(pe, |pe| {
        pe.host().flush()?;
        pe.host().sync_all()
    })
}

/// A quiet and then a sync are what a barrier is: the target reads the new value. Control: `put_then_sync`.
fn quiet_then_sync<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    put_then(pe, |pe| {
        pe.host().quiet()?;
        pe.host().sync_all()
    })
}

/// The quiet is called by the reader after the sync: it completes the reader's own transfers, not the producer's, so
/// the old value may be read. Control: `quiet_then_sync`.
fn quiet_of_the_reader<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    put_then(pe, |pe| {
        pe.host().sync_all()?;
        if pe.my_pe() == 1 { pe.host().quiet() } else { Ok(()) }
    })
}

fn put_then<B: Backend>(pe: &Pe<B>, meet: impl Fn(&Pe<B>) -> Result<()>) -> Result<Seen> {
    let x = pe.alloc_zeroed::<u32>(1)?;
    if pe.my_pe() == 0 {
        pe.host().p(&x, 1, 1)?;
    }
    meet(pe)?;
    let saw = if pe.my_pe() == 1 { seen("x", pe.read(&x)?[0]) } else { Seen::nothing() };
    pe.free(x)?;
    Ok(saw)
}

/// A put to one PE, a signal to another and a non-blocking get are all complete after one quiet: both targets see
/// their word after a sync, and the issuer its data.
fn quiet_completes_everything<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    let words = pe.alloc_zeroed::<u64>(2)?;
    if pe.my_pe() == 2 {
        pe.write(words.at(1), &[3])?;
    }
    pe.host().sync_all()?;
    if pe.my_pe() == 0 {
        pe.host().p(words.at(0), 1, 1)?;
        pe.host().signal_op(words.signal(0), 2, SignalOp::Set, 2)?;
        pe.host().get_nbi(words.at(0), words.at(1), 2)?;
        pe.host().quiet()?;
    }
    pe.host().sync_all()?;
    let saw = seen("word", pe.read(words.at(0))?[0]);
    pe.free(words)?;
    Ok(saw)
}

/// A barrier of a team completes its members' transfers to *all* PEs, also to those outside the team: PE 0 puts to
/// PE 2, meets PE 1, and PE 1 then tells PE 2.
fn team_barrier_completes_all_targets<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    let words = pe.alloc_zeroed::<u64>(2)?;
    let (data, flag) = (words.at(0), words.signal(1));
    let pair = pe.team_split_strided(pe.world(), 0, 1, 2, TeamConfig::default())?;
    if pe.my_pe() == 0 {
        pe.host().p(data, 1, 2)?;
    }
    if let Some(pair) = pair {
        pe.host().barrier(&pair)?;
        pe.team_destroy(pair)?;
    }
    let saw = match pe.my_pe() {
        0 => Seen::nothing(),
        1 => {
            pe.host().signal_op(flag, 1, SignalOp::Set, 2)?;
            Seen::nothing()
        }
        _ => {
            pe.host().signal_wait_until(flag, Cmp::Eq, 1)?;
            seen("data", pe.read(data)?[0])
        }
    };
    pe.free(words)?;
    Ok(saw)
}

/// One fence orders transfers to each target separately: data and flag to PE 1, data and flag to PE 2. Both PEs see their
/// data with their flag. (Across targets it does not: `litmus/mp_across_targets_fenced`.)
fn fence_covers_each_target<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    let words = pe.alloc_zeroed::<u64>(2)?;
    let (data, flag) = (words.at(0), words.signal(1));
    let saw = if pe.my_pe() == 0 {
        pe.host().p(data, 1, 1)?;
        pe.host().p(data, 1, 2)?;
        pe.host().fence()?;
        pe.host().signal_op(flag, 1, SignalOp::Set, 1)?;
        pe.host().signal_op(flag, 1, SignalOp::Set, 2)?;
        Seen::nothing()
    } else {
        pe.host().signal_wait_until(flag, Cmp::Eq, 1)?;
        seen("data", pe.read(data)?[0])
    };
    pe.free(words)?;
    Ok(saw)
}

/// A put of a buffer, then a signal: the signal may come first, but not under `nvlink`.
fn put_unfenced<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    update_then_signal(pe, Between::Nothing, put)
}

/// With a fence between, a PE that sees the signal sees the data. Control: `put_unfenced`.
fn fence_orders_put<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    update_then_signal(pe, Between::Fence, put)
}

fn put<B: Backend>(pe: &Pe<B>, words: &SymmetricBuf<u64>) -> Result<()> {
    pe.write(words.at(SOURCE), &[1])?;
    pe.host().put(words.at(DATA), words.at(SOURCE), 1)
}

/// A non-blocking put of the host runs beside it: the signal may come first under `nvlink` too.
fn put_nbi_unfenced<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    update_then_signal(pe, Between::Nothing, put_nbi)
}

/// The fence does not complete the put, but orders it. Control: `put_nbi_unfenced`.
fn fence_orders_put_nbi<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    update_then_signal(pe, Between::Fence, put_nbi)
}

fn put_nbi<B: Backend>(pe: &Pe<B>, words: &SymmetricBuf<u64>) -> Result<()> {
    pe.write(words.at(SOURCE), &[1])?;
    pe.host().put_nbi(words.at(DATA), words.at(SOURCE), 1)
}

/// The same for a strided put.
fn fence_orders_iput<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    update_then_signal(pe, Between::Fence, |pe, words| {
        pe.write(words.at(SOURCE), &[1])?;
        pe.host().iput(words.at(DATA), words.at(SOURCE), 1, 1, 1, 1)
    })
}

/// The same for another signal.
fn fence_orders_signal<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    update_then_signal(pe, Between::Fence, |pe, words| pe.host().signal_op(words.signal(DATA), 1, SignalOp::Add, 1))
}

/// The same for a put with its own signal.
fn fence_orders_put_signal<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    update_then_signal(pe, Between::Fence, |pe, words| {
        pe.write(words.at(SOURCE), &[1])?;
        pe.host().put_signal(words.at(DATA), words.at(SOURCE), words.signal(SPARE), 1, SignalOp::Set, 1)
    })
}

/// The same for an atomic that does not fetch.
fn fence_orders_atomic<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    update_then_signal(pe, Between::Fence, |pe, words| pe.host().atomic_add(words.at(DATA), 1, 1))
}

/// The same for a store through a peer's pointer.
fn fence_orders_peer_store<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    update_then_signal(pe, Between::Fence, peer_store)
}

/// A store through a peer's pointer, then a signal without a fence: the signal may come first. Control:
/// `fence_orders_peer_store`.
fn peer_store_unfenced<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    update_then_signal(pe, Between::Nothing, peer_store)
}

fn peer_store<B: Backend>(pe: &Pe<B>, words: &SymmetricBuf<u64>) -> Result<()> {
    let peer = pe.peer(words.at(DATA), 1)?.ok_or_else(|| Error::wrong_result("PE 1 is out of reach"))?;
    peer.write(&[1])
}

/// Words of the cases in which PE 0 updates `DATA` and then signals `FLAG`.
const DATA: usize = 0;
const FLAG: usize = 1;
const SOURCE: usize = 2;
const SPARE: usize = 3;

fn update_then_signal<B: Backend>(
    pe: &Pe<B>,
    between: Between,
    update: impl Fn(&Pe<B>, &SymmetricBuf<u64>) -> Result<()>,
) -> Result<Seen> {
    let words = pe.alloc_zeroed::<u64>(4)?;
    let saw = if pe.my_pe() == 0 {
        update(pe, &words)?;
        between.call(pe)?;
        pe.host().signal_op(words.signal(FLAG), 1, SignalOp::Set, 1)?;
        Seen::nothing()
    } else {
        pe.host().signal_wait_until(words.signal(FLAG), Cmp::Eq, 1)?;
        seen("data", pe.read(words.at(DATA))?[0])
    };
    pe.free(words)?;
    Ok(saw)
}

/// A put, a fence, and a get of the same element: fences do not order gets, so it may return the old value. Controls:
/// `rma/g_after_p` (nothing between) and `rma/g_after_p_and_quiet`.
fn fence_does_not_order_get<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    put_then_fetch(pe, Between::Fence, |pe, x| pe.host().g(x, 1))
}

/// A put, then an atomic fetch of the same element: the fetch blocks, and may still overtake the put.
fn fetch_overtakes_put<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    put_then_fetch(pe, Between::Nothing, |pe, x| pe.host().atomic_fetch(x, 1))
}

/// An atomic fetch is an atomic, not a get, so the fence orders it after the put. Control: `fetch_overtakes_put`.
fn fence_orders_fetch<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    put_then_fetch(pe, Between::Fence, |pe, x| pe.host().atomic_fetch(x, 1))
}

fn put_then_fetch<B: Backend>(
    pe: &Pe<B>,
    between: Between,
    fetch: impl Fn(&Pe<B>, &SymmetricBuf<u64>) -> Result<u64>,
) -> Result<Seen> {
    let x = pe.alloc_zeroed::<u64>(1)?;
    let saw = if pe.my_pe() == 0 {
        pe.host().p(&x, 1, 1)?;
        between.call(pe)?;
        seen("x", fetch(pe, &x)?)
    } else {
        Seen::nothing()
    };
    pe.free(x)?;
    Ok(saw)
}

/// A non-blocking get, then a put to the element it reads: the get may return what the *later* put wrote.
fn put_overtakes_get_nbi<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    get_nbi_then_put(pe, Between::Nothing)
}

/// A fence between them changes nothing. Control: `quiet_orders_get_nbi`.
fn fence_does_not_order_get_nbi<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    get_nbi_then_put(pe, Between::Fence)
}

/// After a quiet the get has its data, the value before the put. Control: `put_overtakes_get_nbi`.
fn quiet_orders_get_nbi<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    get_nbi_then_put(pe, Between::Quiet)
}

fn get_nbi_then_put<B: Backend>(pe: &Pe<B>, between: Between) -> Result<Seen> {
    let words = pe.alloc_zeroed::<u64>(2)?;
    let (x, got) = (words.at(0), words.at(1));
    let saw = if pe.my_pe() == 0 {
        pe.host().get_nbi(got, x, 1)?;
        between.call(pe)?;
        pe.host().p(x, 1, 1)?;
        pe.host().quiet()?;
        seen("got", pe.read(got)?[0])
    } else {
        Seen::nothing()
    };
    pe.free(words)?;
    Ok(saw)
}

/// The source of a non-blocking put is overwritten before it is complete: the target may get either value.
fn nbi_source_overwritten<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    overwrite_source(pe, Between::Nothing)
}

/// A fence before overwriting changes nothing: it completes nothing, not even locally. Control:
/// `nbi_source_flushed`.
fn nbi_source_overwritten_fenced<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    overwrite_source(pe, Between::Fence)
}

/// A flush before overwriting makes the source reusable: the target gets the first value. Control:
/// `nbi_source_overwritten`.
fn nbi_source_flushed<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    overwrite_source(pe, Between::Flush)
}

fn overwrite_source<B: Backend>(pe: &Pe<B>, between: Between) -> Result<Seen> {
    let words = pe.alloc_zeroed::<u32>(2)?;
    let (dst, src) = (words.at(0), words.at(1));
    if pe.my_pe() == 0 {
        pe.write(src, &[1])?;
        pe.host().put_nbi(dst, src, 1)?;
        between.call(pe)?;
        pe.write(src, &[2])?;
    }
    pe.host().barrier_all()?;
    let saw = if pe.my_pe() == 1 { seen("dst", pe.read(dst)?[0]) } else { Seen::nothing() };
    pe.free(words)?;
    Ok(saw)
}

/// The destination of a non-blocking get, read before the quiet, may still be as it was; after the quiet it holds the
/// data. (The text calls it undefined before: what a program may rely on is the second value alone.)
fn get_nbi_read_early<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    let words = pe.alloc_zeroed::<u32>(2)?;
    let (dst, src) = (words.at(0), words.at(1));
    if pe.my_pe() == 1 {
        pe.write(src, &[1])?;
    }
    pe.host().barrier_all()?;
    let saw = if pe.my_pe() == 0 {
        pe.host().get_nbi(dst, src, 1)?;
        let early = pe.read(dst)?[0];
        pe.host().quiet()?;
        seen("early", early).and("late", pe.read(dst)?[0])
    } else {
        Seen::nothing()
    };
    pe.free(words)?;
    Ok(saw)
}
