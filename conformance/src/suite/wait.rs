//! Waits: what ends them, and when they begin.

use onesided::{Backend, Cmp, Pe, Result, SignalOp, SymmetricBuf};

use super::order::Between;
use crate::case::{Case, Seen, cases, seen};

/// This part of the chapter `signal`.
pub(super) fn cases<B: Backend>() -> Vec<Case<B>> {
    cases![
        wait_returns_a_value_that_ended_it: 2,
        wait_until_all_one_after_another: 2,
        wait_until_all_vector_one_after_another: 2,
        wait_ge_of_more_than_half_the_range: 2,
        wait_ge_of_more_than_half_the_range_on_a_stream: 2,
        wait_gt_of_more_than_half_the_range_on_a_stream: 2,
    ]
}

/// Two adds of 1 and a wait for at least 1: it returns the value that it saw, which a later fetch can find changed.
fn wait_returns_a_value_that_ended_it<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    let words = pe.alloc_zeroed::<u64>(1)?;
    let flag = words.signal(0);
    let mut saw = Seen::nothing();
    if pe.my_pe() == 0 {
        pe.host().signal_op(flag, 1, SignalOp::Add, 1)?;
        pe.host().signal_op(flag, 1, SignalOp::Add, 1)?;
    } else {
        saw = seen("waited", pe.host().signal_wait_until(flag, Cmp::Ge, 1)?);
        saw = saw.and("fetched", pe.host().signal_fetch(flag)?);
    }
    pe.free(words)?;
    Ok(saw)
}

/// A wait for several words looks at one after the other. Each must compare true at some time, not all at once. The first is 1,
/// then 0; only then the second becomes 1. (At the end the first is 1 again, so that a wait that came late
/// ends too.)
fn wait_until_all_one_after_another<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    first_word_changes(pe, [1, 0, 1], |pe, words| pe.host().wait_until_all(words, None, Cmp::Eq, 1))
}

/// The same where each word has a value of its own.
fn wait_until_all_vector_one_after_another<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    first_word_changes(pe, [2, 0, 2], |pe, words| pe.host().wait_until_all_vector(words, None, Cmp::Eq, &[2, 1]))
}

/// PE 0 sets PE 1's first word twice, its second to 1, and the first once more, in this order; PE 1 waits for both.
fn first_word_changes<B: Backend>(
    pe: &Pe<B>,
    first: [u64; 3],
    wait: impl Fn(&Pe<B>, &SymmetricBuf<u64>) -> Result<()>,
) -> Result<Seen> {
    let words = pe.alloc_zeroed::<u64>(2)?;
    let mut saw = Seen::nothing();
    if pe.my_pe() == 0 {
        for (word, value) in [(0, first[0]), (0, first[1]), (1, 1), (0, first[2])] {
            pe.host().signal_op(words.signal(word), value, SignalOp::Set, 1)?;
            Between::Fence.call(pe)?;
        }
    } else {
        wait(pe, &words)?;
        saw = seen("first", pe.host().signal_fetch(words.signal(0))?);
    }
    pe.free(words)?;
    Ok(saw)
}

/// The host compares as numbers: 0 is less than the largest number, so the wait ends with the signal.
fn wait_ge_of_more_than_half_the_range<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    waited_for_the_largest(pe, |pe, words| pe.host().signal_wait_until(words.signal(0), Cmp::Ge, u64::MAX).map(drop))
}

/// On a stream the CUDA driver may compare, and does so cyclically: 0 is the successor of the largest number, so the wait may
/// end without the signal.
fn wait_ge_of_more_than_half_the_range_on_a_stream<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    waited_for_the_largest(pe, |pe, words| on_a_stream(pe, words, Cmp::Ge, u64::MAX))
}

/// Only `>=` is cyclic.
fn wait_gt_of_more_than_half_the_range_on_a_stream<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    waited_for_the_largest(pe, |pe, words| on_a_stream(pe, words, Cmp::Gt, u64::MAX - 1))
}

fn on_a_stream<B: Backend>(pe: &Pe<B>, words: &SymmetricBuf<u64>, cmp: Cmp, wanted: u64) -> Result<()> {
    let stream = pe.stream()?;
    pe.on(&stream).signal_wait_until(words.signal(0), cmp, wanted)?;
    pe.synchronize(&stream)
}

/// PE 0 sets PE 1's word, which is 0, to the largest number; PE 1 waits and fetches.
fn waited_for_the_largest<B: Backend>(
    pe: &Pe<B>,
    wait: impl Fn(&Pe<B>, &SymmetricBuf<u64>) -> Result<()>,
) -> Result<Seen> {
    let words = pe.alloc_zeroed::<u64>(1)?;
    let mut saw = Seen::nothing();
    if pe.my_pe() == 0 {
        pe.host().signal_op(words.signal(0), u64::MAX, SignalOp::Set, 1)?;
    } else {
        wait(pe, &words)?;
        saw = seen("is_largest", pe.host().signal_fetch(words.signal(0))? == u64::MAX);
    }
    pe.free(words)?;
    Ok(saw)
}
