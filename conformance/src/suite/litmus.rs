//! Litmus tests: the small programs by which memory models are compared, under the names of the field. Those that need
//! three PEs are in `causality.rs`.
//!
//! `x` and `y` are words, zero at first; `x@1` is the copy on PE 1. A name without a suffix has nothing between
//! the two operations of each PE, `_fenced` a fence, `_quiet` a quiet, and all three share a body. Where a PE must
//! have seen something before it goes on, it waits for a signal. So every run says something.
//!
//! Words that are only ever signalled, waited for and fetched make a case free of races; reads of the others are races
//! where nothing orders them, which is what those cases are about.

use onesided::{Backend, Cmp, Pe, Result, Signal, SignalOp, SymmetricSlice};

use super::order::Between;
use crate::case::{Case, Seen, cases, seen};

/// The chapter's cases, with those of `causality.rs`.
pub(super) fn cases<B: Backend>() -> Vec<Case<B>> {
    let mut cases = cases![
        mp: 2 racy,
        mp_fenced: 2,
        mp_quiet: 2,
        mp_plain_flag_fenced: 2,
        mp_atomic_flag_fenced: 2 => |case| case.needs_host_atomics(),
        mp_across_targets: 3 racy,
        mp_across_targets_fenced: 3 racy,
        mp_across_targets_quiet: 3,
        mp_put_signal: 2,
        mp_put_signal_earlier_put: 2 racy,
        mp_put_signal_earlier_put_fenced: 2,
        coww: 2 racy,
        coww_fenced: 2 racy,
        two_plus_two_w: 2 racy,
        two_plus_two_w_fenced: 2 racy,
        s: 2 racy,
        s_fenced: 2,
        sb: 2,
        sb_fenced: 2,
        sb_quiet: 2,
        sb_one_target: 2 => |case| case.needs_host_atomics(),
        sb_one_target_fenced: 2 => |case| case.needs_host_atomics(),
        lb: 2,
        lb_fenced: 2,
        lb_nbi: 3 racy,
        lb_nbi_fenced: 3 racy,
        lb_nbi_quiet: 3 racy,
    ];
    cases.extend(super::causality::cases());
    cases
}

/// Sends `signal` to `pe`: it becomes 1.
pub(super) fn set<B: Backend>(pe: &Pe<B>, signal: Signal<'_>, to: usize) -> Result<()> {
    pe.host().signal_op(signal, 1, SignalOp::Set, to)
}

/// Waits until my `signal` is 1.
pub(super) fn wait<B: Backend>(pe: &Pe<B>, signal: Signal<'_>) -> Result<()> {
    pe.host().signal_wait_until(signal, Cmp::Eq, 1).map(drop)
}

/// Message passing: data, then a signal, to the same PE. Without a fence the data may be stale.
fn mp<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    message_passing(pe, 1, Between::Nothing)
}

/// With a fence the data is there. Control: `mp`.
fn mp_fenced<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    message_passing(pe, 1, Between::Fence)
}

/// With a quiet likewise. Control: `mp`.
fn mp_quiet<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    message_passing(pe, 1, Between::Quiet)
}

/// Data to PE 1, the signal to PE 2, which then reads PE 1's memory: the data may be stale.
fn mp_across_targets<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    message_passing(pe, 2, Between::Nothing)
}

/// A fence orders per target only: the data may still be stale. Control: `mp_across_targets_quiet`.
fn mp_across_targets_fenced<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    message_passing(pe, 2, Between::Fence)
}

/// A quiet orders across targets: the data is there. Control: `mp_across_targets_fenced`.
fn mp_across_targets_quiet<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    message_passing(pe, 2, Between::Quiet)
}

/// PE 0 puts `x@1` and signals `y` to `reader`, who then reads `x@1`.
fn message_passing<B: Backend>(pe: &Pe<B>, reader: usize, between: Between) -> Result<Seen> {
    let words = pe.alloc_zeroed::<u64>(2)?;
    let (x, y) = (words.at(0), words.signal(1));
    let mut saw = Seen::nothing();
    if pe.my_pe() == 0 {
        pe.host().p(x, 1, 1)?;
        between.call(pe)?;
        set(pe, y, reader)?;
    } else if pe.my_pe() == reader {
        wait(pe, y)?;
        saw = seen("x", if reader == 1 { pe.read(x)?[0] } else { pe.host().g(x, 1)? });
    }
    pe.free(words)?;
    Ok(saw)
}

/// The flag is written by a plain put. The fence orders it, so the data is there when the wait returns. But only signals and
/// atomics synchronize with a wait: by the text this is a race. Control: `mp_fenced`.
fn mp_plain_flag_fenced<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    mp_other_flag(pe, |pe, flag| pe.host().p(flag, 1, 1))
}

/// The flag is set by an atomic, which does synchronize with the wait: the data is there.
fn mp_atomic_flag_fenced<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    mp_other_flag(pe, |pe, flag| pe.host().atomic_set(flag, 1, 1))
}

fn mp_other_flag<B: Backend>(
    pe: &Pe<B>,
    raise: impl Fn(&Pe<B>, SymmetricSlice<'_, u64>) -> Result<()>,
) -> Result<Seen> {
    let words = pe.alloc_zeroed::<u64>(2)?;
    let (x, flag) = (words.at(0), words.at(1));
    let saw = if pe.my_pe() == 0 {
        pe.host().p(x, 1, 1)?;
        pe.host().fence()?;
        raise(pe, flag)?;
        Seen::nothing()
    } else {
        pe.host().wait_until(flag, Cmp::Eq, 1)?;
        seen("x", pe.read(x)?[0])
    };
    pe.free(words)?;
    Ok(saw)
}

/// Data and signal in one put_signal: a PE that sees the signal sees all of the data.
fn mp_put_signal<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    let words = pe.alloc_zeroed::<u64>(5)?;
    let (x, source, y) = (words.slice(..2), words.slice(2..4), words.signal(4));
    let saw = if pe.my_pe() == 0 {
        pe.write(source, &[1, 2])?;
        pe.host().put_signal(x, source, y, 1, SignalOp::Set, 1)?;
        Seen::nothing()
    } else {
        wait(pe, y)?;
        seen("x", pe.read(x)?)
    };
    pe.free(words)?;
    Ok(saw)
}

/// A put of `a`, then a put_signal of `b`: the signal covers `b` alone, `a` may be stale.
fn mp_put_signal_earlier_put<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    earlier_put(pe, Between::Nothing)
}

/// With a fence between, `a` is there too. Control: `mp_put_signal_earlier_put`.
fn mp_put_signal_earlier_put_fenced<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    earlier_put(pe, Between::Fence)
}

fn earlier_put<B: Backend>(pe: &Pe<B>, between: Between) -> Result<Seen> {
    let words = pe.alloc_zeroed::<u64>(4)?;
    let (a, b, source, y) = (words.at(0), words.at(1), words.at(2), words.signal(3));
    let saw = if pe.my_pe() == 0 {
        pe.write(source, &[1])?;
        pe.host().p(a, 1, 1)?;
        between.call(pe)?;
        pe.host().put_signal(b, source, y, 1, SignalOp::Set, 1)?;
        Seen::nothing()
    } else {
        wait(pe, y)?;
        seen("a", pe.read(a)?[0]).and("b", pe.read(b)?[0])
    };
    pe.free(words)?;
    Ok(saw)
}

/// Coherence: two puts of 1 and 2 to `x@1`, which PE 1 reads twice. Unfenced, they arrive in either order, but one
/// after the other: no read goes back to 0.
fn coww<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    coherence(pe, Between::Nothing)
}

/// Fenced, they arrive in order: 1 is not read after 2. Control: `coww`.
fn coww_fenced<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    coherence(pe, Between::Fence)
}

fn coherence<B: Backend>(pe: &Pe<B>, between: Between) -> Result<Seen> {
    let x = pe.alloc_zeroed::<u64>(1)?;
    let saw = if pe.my_pe() == 0 {
        pe.host().p(&x, 1, 1)?;
        between.call(pe)?;
        pe.host().p(&x, 2, 1)?;
        Seen::nothing()
    } else {
        seen("first", pe.read(&x)?[0]).and("second", pe.read(&x)?[0])
    };
    pe.free(x)?;
    Ok(saw)
}

/// 2+2W: PE 0 puts `x@1` = 1, then `y@1` = 2; PE 1 puts `y@1` = 1, then `x@1` = 2. Unfenced, every mix may stay, also
/// both ones, the first puts of both.
fn two_plus_two_w<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    two_writers(pe, Between::Nothing)
}

/// Fenced, the first puts cannot both have arrived last. Control: `two_plus_two_w`.
fn two_plus_two_w_fenced<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    two_writers(pe, Between::Fence)
}

fn two_writers<B: Backend>(pe: &Pe<B>, between: Between) -> Result<Seen> {
    let words = pe.alloc_zeroed::<u64>(2)?;
    let (first, second) = if pe.my_pe() == 0 { (0, 1) } else { (1, 0) };
    pe.host().p(words.at(first), 1, 1)?;
    between.call(pe)?;
    pe.host().p(words.at(second), 2, 1)?;
    pe.host().barrier_all()?;
    let saw = if pe.my_pe() == 1 { seen("xy", pe.read(&words)?) } else { Seen::nothing() };
    pe.free(words)?;
    Ok(saw)
}

/// S: PE 0 puts `x@1` = 2 and signals; PE 1 waits and overwrites its `x` with 1. Unfenced, the put may arrive after
/// that and stay.
fn s<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    store_after_signal(pe, Between::Nothing)
}

/// Fenced, 1 stays. Control: `s`.
fn s_fenced<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    store_after_signal(pe, Between::Fence)
}

fn store_after_signal<B: Backend>(pe: &Pe<B>, between: Between) -> Result<Seen> {
    let words = pe.alloc_zeroed::<u64>(2)?;
    let (x, y) = (words.at(0), words.signal(1));
    if pe.my_pe() == 0 {
        pe.host().p(x, 2, 1)?;
        between.call(pe)?;
        set(pe, y, 1)?;
    } else {
        wait(pe, y)?;
        pe.write(x, &[1])?;
    }
    pe.host().barrier_all()?;
    let saw = if pe.my_pe() == 1 { seen("x", pe.read(x)?[0]) } else { Seen::nothing() };
    pe.free(words)?;
    Ok(saw)
}

/// Store buffering: each PE signals the other and then fetches its own word. Both may find 0.
fn sb<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    store_buffering(pe, Between::Nothing)
}

/// With a fence both may still find 0: it completes nothing. Control: `sb_quiet`.
fn sb_fenced<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    store_buffering(pe, Between::Fence)
}

/// With a quiet. Disputed: each signal is delivered before its sender goes on, so one of the fetches should find 1,
/// and here it does; but a formal model of the C11 flavour allows both to find 0, one of the LLVM flavour does not.
/// The outcome file holds what this model allows. Control: `sb_fenced`.
fn sb_quiet<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    store_buffering(pe, Between::Quiet)
}

fn store_buffering<B: Backend>(pe: &Pe<B>, between: Between) -> Result<Seen> {
    let words = pe.alloc_zeroed::<u64>(1)?;
    let word = words.signal(0); // x is PE 1's copy, y is PE 0's
    set(pe, word, 1 - pe.my_pe())?;
    between.call(pe)?;
    let saw = seen("r", pe.host().signal_fetch(word)?);
    pe.free(words)?;
    Ok(saw)
}

/// Store buffering with atomics and both words on PE 1: both fetches may find 0.
fn sb_one_target<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    sb_on_pe_1(pe, Between::Nothing)
}

/// Here a fence forbids it: the fetch is an atomic to the same target, so it stays behind the set. Control:
/// `sb_one_target`.
fn sb_one_target_fenced<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    sb_on_pe_1(pe, Between::Fence)
}

fn sb_on_pe_1<B: Backend>(pe: &Pe<B>, between: Between) -> Result<Seen> {
    let words = pe.alloc_zeroed::<u64>(2)?;
    let (mine, other) = (pe.my_pe(), 1 - pe.my_pe());
    pe.host().atomic_set(words.at(mine), 1, 1)?;
    between.call(pe)?;
    let saw = seen("r", pe.host().atomic_fetch(words.at(other), 1)?);
    pe.free(words)?;
    Ok(saw)
}

/// Load buffering: each PE fetches its own word and then signals the other. A fetch has its value before the signal
/// is sent, so at most one finds 1.
fn lb<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    load_buffering(pe, Between::Nothing)
}

/// The same with a fence.
fn lb_fenced<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    load_buffering(pe, Between::Fence)
}

fn load_buffering<B: Backend>(pe: &Pe<B>, between: Between) -> Result<Seen> {
    let words = pe.alloc_zeroed::<u64>(1)?;
    let word = words.signal(0);
    let saw = seen("r", pe.host().signal_fetch(word)?);
    between.call(pe)?;
    set(pe, word, 1 - pe.my_pe())?;
    pe.free(words)?;
    Ok(saw)
}

/// Load buffering by non-blocking gets from PE 2, each followed by a put there: the gets may read late, so both may
/// find 1.
fn lb_nbi<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    load_buffering_nbi(pe, Between::Nothing)
}

/// A fence does not order gets: both may still find 1. Control: `lb_nbi_quiet`.
fn lb_nbi_fenced<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    load_buffering_nbi(pe, Between::Fence)
}

/// With a quiet at most one finds 1. Control: `lb_nbi_fenced`.
fn lb_nbi_quiet<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    load_buffering_nbi(pe, Between::Quiet)
}

fn load_buffering_nbi<B: Backend>(pe: &Pe<B>, between: Between) -> Result<Seen> {
    let words = pe.alloc_zeroed::<u64>(3)?;
    let mut saw = Seen::nothing();
    if pe.my_pe() < 2 {
        let (read, write, got) = (words.at(pe.my_pe()), words.at(1 - pe.my_pe()), words.at(2));
        pe.host().get_nbi(got, read, 2)?;
        between.call(pe)?;
        pe.host().p(write, 1, 2)?;
        pe.host().quiet()?;
        saw = seen("r", pe.read(got)?[0]);
    }
    pe.free(words)?;
    Ok(saw)
}
