//! Atomics of the host: every operation on every type, and what PEs that update one word at once may see.
//!
//! All cases need the capability of host atomics.

use onesided::{AtomicBits, AtomicSwap, Backend, Cmp, Pe, Result};

use super::order::Between;
use crate::case::{Case, Seen, cases, seen};

/// The chapter's cases.
pub(super) fn cases<B: Backend>() -> Vec<Case<B>> {
    let cases = cases![
        fetching_i32: 2,
        fetching_u32: 2,
        fetching_i64: 2,
        fetching_u64: 2,
        fetching_f32: 2,
        fetching_f64: 2,
        plain_i32: 2,
        plain_u32: 2,
        plain_i64: 2,
        plain_u64: 2,
        plain_f32: 2,
        plain_f64: 2,
        add_wraps_u32: 2,
        add_wraps_i64: 2,
        neighbours_are_left_alone: 2,
        tickets: 3,
        adds_are_never_lost: 3,
        compare_swap_has_one_winner: 3,
        swaps_form_a_chain: 2,
        or_collects_bits: 3,
        two_adds: 2,
        two_adds_fenced: 2,
        set_then_add: 2,
        set_then_add_fenced: 2,
        fetch_after_own_add: 2,
        fetch_after_own_add_fenced: 2,
        fetching_is_visible_at_once: 2,
    ];
    cases.into_iter().map(Case::needs_host_atomics).collect()
}

/// Every fetching atomic in turn, each returning what the one before it left.
fn fetching_i32<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    fetching::<B, i32>(pe)
}

/// The same on `u32`.
fn fetching_u32<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    fetching::<B, u32>(pe)
}

/// The same on `i64`.
fn fetching_i64<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    fetching::<B, i64>(pe)
}

/// The same on `u64`.
fn fetching_u64<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    fetching::<B, u64>(pe)
}

/// PE 0 on PE 1's word. Each call blocks, so there is one schedule. The operands are chosen so that each operation leaves
/// another value.
fn fetching<B: Backend, T: AtomicBits>(pe: &Pe<B>) -> Result<Seen> {
    let word = pe.alloc_zeroed::<T>(1)?;
    let mut saw = Seen::nothing();
    if pe.my_pe() == 0 {
        let (host, n) = (pe.host(), T::from_f64);
        saw = seen("swap", host.atomic_swap(&word, n(12.0), 1)?)
            .and("add", host.atomic_fetch_add(&word, n(3.0), 1)?)
            .and("inc", host.atomic_fetch_inc(&word, 1)?)
            .and("or", host.atomic_fetch_or(&word, n(10.0), 1)?)
            .and("and", host.atomic_fetch_and(&word, n(24.0), 1)?)
            .and("xor", host.atomic_fetch_xor(&word, n(17.0), 1)?)
            .and("lost", host.atomic_compare_swap(&word, n(1.0), n(2.0), 1)?)
            .and("won", host.atomic_compare_swap(&word, n(9.0), n(5.0), 1)?)
            .and("fetch", host.atomic_fetch(&word, 1)?);
    }
    pe.free(word)?;
    Ok(saw)
}

/// Swap and fetch on `f32`: floats have no other fetching atomics.
fn fetching_f32<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    fetching_float::<B, f32>(pe)
}

/// Swap and fetch on `f64`.
fn fetching_f64<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    fetching_float::<B, f64>(pe)
}

fn fetching_float<B: Backend, T: AtomicSwap>(pe: &Pe<B>) -> Result<Seen> {
    let word = pe.alloc_zeroed::<T>(1)?;
    let mut saw = Seen::nothing();
    if pe.my_pe() == 0 {
        saw = seen("first", pe.host().atomic_swap(&word, T::from_f64(-0.5), 1)?)
            .and("second", pe.host().atomic_swap(&word, T::from_f64(2.5), 1)?)
            .and("fetch", pe.host().atomic_fetch(&word, 1)?);
    }
    pe.free(word)?;
    Ok(saw)
}

/// Every atomic that does not fetch, each completed by a quiet and then fetched.
fn plain_i32<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    plain::<B, i32>(pe)
}

/// The same on `u32`.
fn plain_u32<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    plain::<B, u32>(pe)
}

/// The same on `i64`.
fn plain_i64<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    plain::<B, i64>(pe)
}

/// The same on `u64`.
fn plain_u64<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    plain::<B, u64>(pe)
}

fn plain<B: Backend, T: AtomicBits>(pe: &Pe<B>) -> Result<Seen> {
    let word = pe.alloc_zeroed::<T>(1)?;
    let mut saw = Seen::nothing();
    if pe.my_pe() == 0 {
        let (host, n) = (pe.host(), T::from_f64);
        let now = || {
            host.quiet()?;
            host.atomic_fetch(&word, 1)
        };
        host.atomic_set(&word, n(12.0), 1)?;
        saw = seen("set", now()?);
        host.atomic_add(&word, n(3.0), 1)?;
        saw = saw.and("add", now()?);
        host.atomic_inc(&word, 1)?;
        saw = saw.and("inc", now()?);
        host.atomic_or(&word, n(10.0), 1)?;
        saw = saw.and("or", now()?);
        host.atomic_and(&word, n(24.0), 1)?;
        saw = saw.and("and", now()?);
        host.atomic_xor(&word, n(17.0), 1)?;
        saw = saw.and("xor", now()?);
    }
    pe.free(word)?;
    Ok(saw)
}

/// Set on `f32`: floats have no other atomic that does not fetch.
fn plain_f32<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    plain_float::<B, f32>(pe)
}

/// Set on `f64`.
fn plain_f64<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    plain_float::<B, f64>(pe)
}

fn plain_float<B: Backend, T: AtomicSwap>(pe: &Pe<B>) -> Result<Seen> {
    let word = pe.alloc_zeroed::<T>(1)?;
    if pe.my_pe() == 0 {
        pe.host().atomic_set(&word, T::from_f64(-0.5), 1)?;
    }
    pe.host().barrier_all()?;
    let saw = if pe.my_pe() == 1 { seen("word", pe.read(&word)?[0]) } else { Seen::nothing() };
    pe.free(word)?;
    Ok(saw)
}

/// An add past the largest value wraps inside its 32 bits.
fn add_wraps_u32<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    add_wraps(pe, u32::MAX, 2)
}

/// A signed add wraps likewise.
fn add_wraps_i64<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    add_wraps(pe, i64::MAX, 1)
}

fn add_wraps<B: Backend, T: AtomicBits>(pe: &Pe<B>, start: T, more: T) -> Result<Seen> {
    let word = pe.alloc_zeroed::<T>(1)?;
    let mut saw = Seen::nothing();
    if pe.my_pe() == 0 {
        saw = seen("start", pe.host().atomic_fetch_add(&word, start, 1)?)
            .and("before", pe.host().atomic_fetch_add(&word, more, 1)?)
            .and("after", pe.host().atomic_fetch(&word, 1)?);
    }
    pe.free(word)?;
    Ok(saw)
}

/// An atomic on 32 bits leaves the words beside it alone, also where it wraps.
fn neighbours_are_left_alone<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    let words = pe.alloc_zeroed::<u32>(3)?;
    if pe.my_pe() == 0 {
        pe.host().atomic_add(words.at(1), u32::MAX, 1)?;
        pe.host().quiet()?;
        pe.host().atomic_add(words.at(1), 2, 1)?;
    }
    pe.host().barrier_all()?;
    let saw = if pe.my_pe() == 1 { seen("words", pe.read(&words)?) } else { Seen::nothing() };
    pe.free(words)?;
    Ok(saw)
}

/// Three PEs draw tickets from one counter: all different, in any order.
fn tickets<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    let counter = pe.alloc_zeroed::<u64>(1)?;
    let saw = seen("ticket", pe.host().atomic_fetch_inc(&counter, 0)?);
    pe.free(counter)?;
    Ok(saw)
}

/// Three PEs add without fetching: the sum is complete after a barrier.
fn adds_are_never_lost<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    let sum = pe.alloc_zeroed::<u32>(1)?;
    pe.host().atomic_add(&sum, 1 << pe.my_pe(), 0)?;
    pe.host().barrier_all()?;
    let saw = if pe.my_pe() == 0 { seen("sum", pe.read(&sum)?[0]) } else { Seen::nothing() };
    pe.free(sum)?;
    Ok(saw)
}

/// Three PEs try to replace 0 by their own number: one finds 0, the others find the winner's number.
fn compare_swap_has_one_winner<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    let lock = pe.alloc_zeroed::<u64>(1)?;
    let saw = seen("found", pe.host().atomic_compare_swap(&lock, 0, pe.my_pe() as u64 + 1, 0)?);
    pe.free(lock)?;
    Ok(saw)
}

/// Two PEs swap in their numbers: one finds 0, the other the first one's number, and its own number stays.
fn swaps_form_a_chain<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    let word = pe.alloc_zeroed::<u64>(1)?;
    let saw = seen("found", pe.host().atomic_swap(&word, pe.my_pe() as u64 + 1, 0)?);
    pe.host().barrier_all()?;
    let saw = if pe.my_pe() == 0 { saw.and("stays", pe.read(&word)?[0]) } else { saw };
    pe.free(word)?;
    Ok(saw)
}

/// Two PEs set their bits in the word of a third, which waits for both.
fn or_collects_bits<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    let bits = pe.alloc_zeroed::<u32>(1)?;
    let mut saw = Seen::nothing();
    if pe.my_pe() < 2 {
        pe.host().atomic_or(&bits, 1 << pe.my_pe(), 2)?;
    } else {
        pe.host().wait_until(&bits, Cmp::Eq, 3)?;
        saw = seen("bits", pe.read(&bits)?[0]);
    }
    pe.free(bits)?;
    Ok(saw)
}

/// Two adds of one PE to two words of another, unfenced: the second may be seen without the first.
fn two_adds<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    add_to_two_words(pe, Between::Nothing)
}

/// With a fence between, the second is not seen without the first. Control: `two_adds`.
fn two_adds_fenced<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    add_to_two_words(pe, Between::Fence)
}

fn add_to_two_words<B: Backend>(pe: &Pe<B>, between: Between) -> Result<Seen> {
    let words = pe.alloc_zeroed::<u64>(2)?;
    let (first, second) = (words.at(0), words.at(1));
    let mut saw = Seen::nothing();
    if pe.my_pe() == 0 {
        pe.host().atomic_add(first, 1, 1)?;
        between.call(pe)?;
        pe.host().atomic_add(second, 1, 1)?;
    } else {
        saw = seen("second", pe.host().atomic_fetch(second, 1)?).and("first", pe.host().atomic_fetch(first, 1)?);
    }
    pe.free(words)?;
    Ok(saw)
}

/// A set, then an add, unordered: the set may come last and wipe the add out.
fn set_then_add<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    set_and_add(pe, Between::Nothing)
}

/// With a fence the add comes last. Control: `set_then_add`.
fn set_then_add_fenced<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    set_and_add(pe, Between::Fence)
}

fn set_and_add<B: Backend>(pe: &Pe<B>, between: Between) -> Result<Seen> {
    let word = pe.alloc_zeroed::<u32>(1)?;
    if pe.my_pe() == 0 {
        pe.host().atomic_set(&word, 5, 1)?;
        between.call(pe)?;
        pe.host().atomic_add(&word, 1, 1)?;
    }
    pe.host().barrier_all()?;
    let saw = if pe.my_pe() == 1 { seen("word", pe.read(&word)?[0]) } else { Seen::nothing() };
    pe.free(word)?;
    Ok(saw)
}

/// A fetching add after an add of the same PE to the same word: it may overtake. The sum is right in the end.
fn fetch_after_own_add<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    fetch_after_add(pe, Between::Nothing)
}

/// With a fence it may not. Control: `fetch_after_own_add`.
fn fetch_after_own_add_fenced<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    fetch_after_add(pe, Between::Fence)
}

fn fetch_after_add<B: Backend>(pe: &Pe<B>, between: Between) -> Result<Seen> {
    let word = pe.alloc_zeroed::<u32>(1)?;
    let mut saw = Seen::nothing();
    if pe.my_pe() == 0 {
        pe.host().atomic_add(&word, 1, 1)?;
        between.call(pe)?;
        saw = seen("found", pe.host().atomic_fetch_add(&word, 2, 1)?);
    }
    pe.host().barrier_all()?;
    if pe.my_pe() == 1 {
        saw = seen("sum", pe.read(&word)?[0]);
    }
    pe.free(word)?;
    Ok(saw)
}

/// A fetching atomic is visible when it returns: after a sync, without any quiet, the target reads its effect.
fn fetching_is_visible_at_once<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    let word = pe.alloc_zeroed::<u32>(1)?;
    if pe.my_pe() == 0 {
        pe.host().atomic_fetch_add(&word, 1, 1)?;
    }
    pe.host().sync_all()?;
    let saw = if pe.my_pe() == 1 { seen("word", pe.read(&word)?[0]) } else { Seen::nothing() };
    pe.free(word)?;
    Ok(saw)
}
