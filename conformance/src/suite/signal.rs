//! Signals and waits: how the arrival of data is announced.
//!
//! What a signal says about data that *other* operations sent is in `litmus.rs`.

use onesided::{Backend, Cmp, Issue, Pe, Result, Signal, SignalOp, SymmetricBuf, SymmetricSlice, Waitable};

use super::collective::by;
use super::order::Between;
use crate::case::{Case, Seen, cases, seen};

/// The chapter's cases, with those of `wait.rs`.
pub(super) fn cases<B: Backend>() -> Vec<Case<B>> {
    let mut cases = cases![
        fetch_shows_the_data: 2 racy,
        add_from_several: 3,
        add_wraps: 2,
        set_and_add: 2,
        set_and_add_fenced: 2,
        signal_to_self: 1,
        ping_pong: 2,
        wait_eq: 2,
        wait_ne: 2,
        wait_gt: 2,
        wait_ge: 2,
        wait_lt: 2,
        wait_le: 2,
        wait_satisfied_at_once: 1,
        wait_eq_misses_a_passing_value: 2 => |case| case.ends_in_verdict(),
        wait_ge_misses_nothing: 2,
        wait_until_u64: 2,
        wait_until_i32: 2 => |case| case.needs_host_atomics(),
        wait_until_u32: 2 => |case| case.needs_host_atomics(),
        wait_until_i64: 2 => |case| case.needs_host_atomics(),
        wait_until_i16_by_put: 2,
        wait_until_all: 2,
        wait_until_all_with_skip: 2,
        wait_until_all_skipped: 1,
        wait_until_all_vector: 2,
        wait_until_all_vector_with_skip: 2,
        put_signals_add_up: 3,
        put_signal_nbi: 2,
        put_signal_nbi_pair: 2 racy,
        put_signal_nbi_pair_fenced: 2,
        put_signal_of_nothing: 2,
        stream_put_signal_to_host: 2,
        host_put_signal_to_stream: 2,
        relay_on_streams: 3,
    ];
    cases.extend(super::wait::cases());
    cases
}

/// A fetch without a wait may come before the signal or after it. Where it comes after, the signal's data is there:
/// never the signal without the data.
fn fetch_shows_the_data<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    let words = pe.alloc_zeroed::<u64>(3)?;
    let (data, source, flag) = (words.at(0), words.at(1), words.signal(2));
    let saw = if pe.my_pe() == 0 {
        pe.write(source, &[1])?;
        pe.host().put_signal(data, source, flag, 1, SignalOp::Set, 1)?;
        Seen::nothing()
    } else {
        seen("flag", pe.host().signal_fetch(flag)?).and("data", pe.read(data)?[0])
    };
    pe.free(words)?;
    Ok(saw)
}

/// Two PEs add to the word of a third: none is lost.
fn add_from_several<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    let words = pe.alloc_zeroed::<u64>(1)?;
    let flag = words.signal(0);
    let saw = if pe.my_pe() < 2 {
        pe.host().signal_op(flag, pe.my_pe() as u64 + 1, SignalOp::Add, 2)?;
        Seen::nothing()
    } else {
        pe.host().signal_wait_until(flag, Cmp::Eq, 3)?;
        seen("flag", pe.host().signal_fetch(flag)?)
    };
    pe.free(words)?;
    Ok(saw)
}

/// An add past the largest value wraps around.
fn add_wraps<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    two_signals(pe, Between::Fence, [(2, SignalOp::Set), (u64::MAX, SignalOp::Add)])
}

/// A set, then an add, unordered: the set may come last and wipe the add out.
fn set_and_add<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    two_signals(pe, Between::Nothing, [(5, SignalOp::Set), (1, SignalOp::Add)])
}

/// With a fence the add comes last. Control: `set_and_add`.
fn set_and_add_fenced<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    two_signals(pe, Between::Fence, [(5, SignalOp::Set), (1, SignalOp::Add)])
}

fn two_signals<B: Backend>(pe: &Pe<B>, between: Between, [first, second]: [(u64, SignalOp); 2]) -> Result<Seen> {
    let words = pe.alloc_zeroed::<u64>(1)?;
    let flag = words.signal(0);
    if pe.my_pe() == 0 {
        pe.host().signal_op(flag, first.0, first.1, 1)?;
        between.call(pe)?;
        pe.host().signal_op(flag, second.0, second.1, 1)?;
    }
    pe.host().barrier_all()?;
    let saw = if pe.my_pe() == 1 { seen("flag", pe.host().signal_fetch(flag)?) } else { Seen::nothing() };
    pe.free(words)?;
    Ok(saw)
}

/// A PE signals itself and waits for it.
fn signal_to_self<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    let words = pe.alloc_zeroed::<u64>(3)?;
    let (data, source, flag) = (words.at(0), words.at(1), words.signal(2));
    pe.write(source, &[4])?;
    pe.host().put_signal(data, source, flag, 1, SignalOp::Set, 0)?;
    pe.host().signal_wait_until(flag, Cmp::Eq, 1)?;
    let saw = seen("data", pe.read(data)?[0]);
    pe.free(words)?;
    Ok(saw)
}

/// Two PEs wait for each other in turn, on one word each, whose value counts the rounds.
fn ping_pong<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    let words = pe.alloc_zeroed::<u64>(1)?;
    let (flag, other) = (words.signal(0), 1 - pe.my_pe());
    for round in 1..=2 {
        if pe.my_pe() == 0 {
            pe.host().signal_op(flag, round, SignalOp::Set, other)?;
            pe.host().signal_wait_until(flag, Cmp::Eq, round)?;
        } else {
            pe.host().signal_wait_until(flag, Cmp::Eq, round)?;
            pe.host().signal_op(flag, round, SignalOp::Set, other)?;
        }
    }
    let saw = seen("rounds", pe.host().signal_fetch(flag)?);
    pe.free(words)?;
    Ok(saw)
}

/// A wait for an equal value; the fetch behind it returns that value.
fn wait_eq<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    signal_and_wait(pe, 3, 5, Cmp::Eq, 5)
}

/// A wait for another value.
fn wait_ne<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    signal_and_wait(pe, 3, 5, Cmp::Ne, 3)
}

/// A wait for a greater value.
fn wait_gt<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    signal_and_wait(pe, 3, 5, Cmp::Gt, 3)
}

/// A wait for at least a value.
fn wait_ge<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    signal_and_wait(pe, 3, 5, Cmp::Ge, 5)
}

/// A wait for a smaller value; signals compare unsigned.
fn wait_lt<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    signal_and_wait(pe, u64::MAX, 5, Cmp::Lt, u64::MAX)
}

/// A wait for at most a value.
fn wait_le<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    signal_and_wait(pe, u64::MAX, 5, Cmp::Le, 5)
}

/// The word of PE 1 holds `start`, PE 0 sets it to `sent`, PE 1 waits and fetches.
fn signal_and_wait<B: Backend>(pe: &Pe<B>, start: u64, sent: u64, cmp: Cmp, wanted: u64) -> Result<Seen> {
    let words = pe.alloc_zeroed::<u64>(1)?;
    let flag = words.signal(0);
    if pe.my_pe() == 0 {
        pe.host().signal_op(flag, start, SignalOp::Set, 1)?;
    }
    pe.host().barrier_all()?;
    let saw = if pe.my_pe() == 0 {
        pe.host().signal_op(flag, sent, SignalOp::Set, 1)?;
        Seen::nothing()
    } else {
        pe.host().signal_wait_until(flag, cmp, wanted)?;
        seen("flag", pe.host().signal_fetch(flag)?)
    };
    pe.free(words)?;
    Ok(saw)
}

/// Waits whose comparison holds already return without a signal.
fn wait_satisfied_at_once<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    let words = pe.alloc_zeroed::<u64>(1)?;
    for (cmp, wanted) in [(Cmp::Eq, 0), (Cmp::Ne, 1), (Cmp::Ge, 0), (Cmp::Le, 0), (Cmp::Lt, 1)] {
        pe.host().signal_wait_until(words.signal(0), cmp, wanted)?;
    }
    pe.free(words)?;
    Ok(seen("returned", true))
}

/// Two adds of 1 and a wait for exactly 1: where both arrive before the wait looks, it never returns.
fn wait_eq_misses_a_passing_value<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    two_adds_and_wait(pe, Cmp::Eq)
}

/// The same with a wait for at least 1 always returns. Control: `wait_eq_misses_a_passing_value`.
fn wait_ge_misses_nothing<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    two_adds_and_wait(pe, Cmp::Ge)
}

fn two_adds_and_wait<B: Backend>(pe: &Pe<B>, cmp: Cmp) -> Result<Seen> {
    let words = pe.alloc_zeroed::<u64>(1)?;
    let flag = words.signal(0);
    let saw = if pe.my_pe() == 0 {
        pe.host().signal_op(flag, 1, SignalOp::Add, 1)?;
        pe.host().signal_op(flag, 1, SignalOp::Add, 1)?;
        Seen::nothing()
    } else {
        pe.host().signal_wait_until(flag, cmp, 1)?;
        seen("flag", pe.host().signal_fetch(flag)?)
    };
    pe.free(words)?;
    Ok(saw)
}

/// A wait on a variable of 64 bits that a signal sets. Both have the same type, so they synchronize.
fn wait_until_u64<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    change_and_wait(pe, |pe, x| pe.host().signal_op(x.signal(0), u64::MAX, SignalOp::Set, 1), Cmp::Gt, 1 << 63)
}

/// An atomic set wakes a wait; signed variables compare signed.
fn wait_until_i32<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    change_and_wait(pe, |pe, x| pe.host().atomic_set(x, -5_i32, 1), Cmp::Lt, 0)
}

/// The same, unsigned: the largest value is not below zero.
fn wait_until_u32<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    change_and_wait(pe, |pe, x| pe.host().atomic_set(x, u32::MAX, 1), Cmp::Gt, 1 << 31)
}

/// The same, signed with 64 bits.
fn wait_until_i64<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    change_and_wait(pe, |pe, x| pe.host().atomic_set(x, i64::MIN, 1), Cmp::Le, -1)
}

/// A variable of 16 bits has no atomics: only a put can change it. The wait returns. By the text it races with the put, so it says
/// nothing about other data.
fn wait_until_i16_by_put<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    change_and_wait(pe, |pe, x| pe.host().p(x, -1_i16, 1), Cmp::Lt, 0)
}

/// PE 0 changes PE 1's `x`, which is zero at first; PE 1 waits and reads it.
fn change_and_wait<B: Backend, T: Waitable>(
    pe: &Pe<B>,
    change: impl Fn(&Pe<B>, &SymmetricBuf<T>) -> Result<()>,
    cmp: Cmp,
    wanted: T,
) -> Result<Seen> {
    let x = pe.alloc_zeroed::<T>(1)?;
    let saw = if pe.my_pe() == 0 {
        change(pe, &x)?;
        Seen::nothing()
    } else {
        pe.host().wait_until(&x, cmp, wanted)?;
        seen("x", pe.read(&x)?[0])
    };
    pe.free(x)?;
    Ok(saw)
}

/// A wait for several words returns when the last of them was signalled.
fn wait_until_all<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    signal_two_and_wait(pe, |pe, words| pe.host().wait_until_all(words.slice(..2), None, Cmp::Ne, 0))
}

/// Words to be skipped need no signal.
fn wait_until_all_with_skip<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    signal_two_and_wait(pe, |pe, words| pe.host().wait_until_all(words, Some(&[false, false, true]), Cmp::Ne, 0))
}

/// A wait that skips every word returns at once.
fn wait_until_all_skipped<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    let words = pe.alloc_zeroed::<u64>(2)?;
    pe.host().wait_until_all(&words, Some(&[true, true]), Cmp::Eq, 1)?;
    pe.host().wait_until_all_vector(&words, Some(&[true, true]), Cmp::Eq, &[1, 2])?;
    pe.free(words)?;
    Ok(seen("returned", true))
}

/// A wait for several words, for each its own value.
fn wait_until_all_vector<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    signal_two_and_wait(pe, |pe, words| pe.host().wait_until_all_vector(words.slice(..2), None, Cmp::Eq, &[1, 2]))
}

/// The value of a word to be skipped is not looked at.
fn wait_until_all_vector_with_skip<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    let skip = [false, false, true];
    signal_two_and_wait(pe, |pe, words| pe.host().wait_until_all_vector(words, Some(&skip), Cmp::Eq, &[1, 2, 3]))
}

/// PE 0 signals the first two of PE 1's three words, with 1 and 2; PE 1 waits and reads all.
fn signal_two_and_wait<B: Backend>(
    pe: &Pe<B>,
    wait: impl Fn(&Pe<B>, SymmetricSlice<'_, u64>) -> Result<()>,
) -> Result<Seen> {
    let words = pe.alloc_zeroed::<u64>(3)?;
    let saw = if pe.my_pe() == 0 {
        pe.host().signal_op(words.signal(0), 1, SignalOp::Set, 1)?;
        pe.host().signal_op(words.signal(1), 2, SignalOp::Set, 1)?;
        Seen::nothing()
    } else {
        wait(pe, words.slice(..))?;
        seen("words", pe.read(&words)?)
    };
    pe.free(words)?;
    Ok(saw)
}

/// Two PEs send data and add to one signal: when it counts both, both data are there.
fn put_signals_add_up<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    let words = pe.alloc_zeroed::<u64>(4)?;
    let (source, flag) = (words.at(2), words.signal(3));
    let saw = if pe.my_pe() < 2 {
        pe.write(source, &[pe.my_pe() as u64 + 1])?;
        pe.host().put_signal(words.at(pe.my_pe()), source, flag, 1, SignalOp::Add, 2)?;
        Seen::nothing()
    } else {
        pe.host().signal_wait_until(flag, Cmp::Eq, 2)?;
        seen("data", pe.read(words.slice(..2))?)
    };
    pe.free(words)?;
    Ok(saw)
}

/// A non-blocking put_signal: a PE that sees the signal sees the data, as with the blocking one.
fn put_signal_nbi<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    send_and_wait(pe, [false, false], |issue, [data, source], flag| {
        issue.put_signal_nbi(data, source, flag, 1, SignalOp::Set, 1)
    })
}

/// A put_signal on a stream, waited for by a host: the data is there.
fn stream_put_signal_to_host<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    send_and_wait(pe, [true, false], put_signal)
}

/// A put_signal of a host, waited for on a stream: after synchronizing, the data is there.
fn host_put_signal_to_stream<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    send_and_wait(pe, [false, true], put_signal)
}

fn put_signal<B: Backend>(
    issue: &Issue<'_, B>,
    [data, source]: [SymmetricSlice<'_, u64>; 2],
    flag: Signal<'_>,
) -> Result<()> {
    issue.put_signal(data, source, flag, 1, SignalOp::Set, 1)
}

/// PE 0 sends 1, from a stream if `on_stream[0]`; PE 1 waits, on a stream if `on_stream[1]`, and reads.
fn send_and_wait<B: Backend>(
    pe: &Pe<B>,
    on_stream: [bool; 2],
    send: impl Fn(&Issue<'_, B>, [SymmetricSlice<'_, u64>; 2], Signal<'_>) -> Result<()>,
) -> Result<Seen> {
    let words = pe.alloc_zeroed::<u64>(3)?;
    let (data, source, flag) = (words.at(0), words.at(1), words.signal(2));
    let mut saw = Seen::nothing();
    if pe.my_pe() == 0 {
        pe.write(source, &[1])?;
        by(pe, on_stream[0], |issue| {
            send(issue, [data, source], flag)?;
            issue.quiet()
        })?;
    } else {
        by(pe, on_stream[1], |issue| issue.signal_wait_until(flag, Cmp::Eq, 1))?;
        saw = seen("data", pe.read(data)?[0]);
    }
    pe.free(words)?;
    Ok(saw)
}

/// Two non-blocking put_signals: the second signal says nothing about the first data.
fn put_signal_nbi_pair<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    nbi_pair(pe, Between::Nothing)
}

/// With a fence between it does. Control: `put_signal_nbi_pair`.
fn put_signal_nbi_pair_fenced<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    nbi_pair(pe, Between::Fence)
}

fn nbi_pair<B: Backend>(pe: &Pe<B>, between: Between) -> Result<Seen> {
    let words = pe.alloc_zeroed::<u64>(5)?;
    let (data, source, first, second) = (words.slice(..2), words.at(2), words.signal(3), words.signal(4));
    let saw = if pe.my_pe() == 0 {
        pe.write(source, &[1])?;
        pe.host().put_signal_nbi(data.slice(..1), source, first, 1, SignalOp::Set, 1)?;
        between.call(pe)?;
        pe.host().put_signal_nbi(data.slice(1..), source, second, 1, SignalOp::Set, 1)?;
        Seen::nothing()
    } else {
        pe.host().signal_wait_until(second, Cmp::Eq, 1)?;
        seen("data", pe.read(data)?)
    };
    pe.free(words)?;
    Ok(saw)
}

/// A put_signal of no data still signals.
fn put_signal_of_nothing<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    let words = pe.alloc_zeroed::<u64>(1)?;
    let (none, flag) = (words.slice(..0), words.signal(0));
    let saw = if pe.my_pe() == 0 {
        pe.host().put_signal(none, none, flag, 6, SignalOp::Set, 1)?;
        Seen::nothing()
    } else {
        pe.host().signal_wait_until(flag, Cmp::Ne, 0)?;
        seen("flag", pe.host().signal_fetch(flag)?)
    };
    pe.free(words)?;
    Ok(saw)
}

/// PE 1 waits and hands on, all on one stream: its put starts only after its wait, so PE 2 gets PE 0's data.
fn relay_on_streams<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    let words = pe.alloc_zeroed::<u64>(2)?;
    let (data, flag) = (words.at(0), words.signal(1));
    let next = pe.my_pe() + 1;
    if pe.my_pe() == 0 {
        pe.write(data, &[1])?;
    }
    by(pe, true, |issue| {
        if pe.my_pe() > 0 {
            issue.signal_wait_until(flag, Cmp::Eq, 1)?;
        }
        if next < pe.n_pes() {
            issue.put_signal(data, data, flag, 1, SignalOp::Set, next)?;
        }
        issue.quiet()
    })?;
    let saw = seen("data", pe.read(data)?[0]);
    pe.free(words)?;
    Ok(saw)
}
