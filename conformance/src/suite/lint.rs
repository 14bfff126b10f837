//! Lints: programs that work by luck or without a promise, each before its twin, which does not depend on either.
//!
//! The label of a case is what the simulator notes of its run in order. Where the lint comes with a race, the twin has only the
//! outcome that was meant.

use onesided::{Backend, Cmp, Pe, Result, SignalOp, SymmetricBuf};

use crate::case::{Case, Seen, cases, seen};

/// The chapter's cases.
pub(super) fn cases<B: Backend>() -> Vec<Case<B>> {
    cases![
        counter_of_two_transfers: 2 racy => |case| case.lints(&["counter-overtaken"]),
        counter_of_two_fenced_transfers: 2 => |case| case.lints(&[]),
        equality_of_a_growing_value: 2 => |case| case.ends_in_verdict().lints(&["equality-passed"]),
        growth_of_a_growing_value: 2 => |case| case.lints(&[]),
        wait_for_a_put: 2 => |case| case.lints(&["wait-on-plain-data"]),
        wait_for_a_signal: 2 => |case| case.lints(&[]),
        signal_by_the_plain_wait: 2 => |case| case.lints(&["plain-wait-on-signal"]),
        signal_by_a_plain_read: 2 racy => |case| case.lints(&["signal-polled"]),
        signal_by_its_fetch: 2 => |case| case.lints(&[]),
        slot_filled_again: 2 => |case| case.lints(&["destination-reused"]),
        slot_filled_again_after_an_answer: 2 => |case| case.lints(&[]),
        quiet_of_the_host_behind_a_stream: 2 racy => |case| case.lints(&["wrong-scope"]),
        quiet_of_the_stream: 2 => |case| case.lints(&[]),
        fence_before_a_flag_elsewhere: 3 racy => |case| case.lints(&["fence-to-another-pe"]),
        quiet_before_a_flag_elsewhere: 3 => |case| case.lints(&[]),
        read_of_fresh_memory: 2 => |case| case.lints(&["unwritten-read"]),
        read_of_zeroed_memory: 2 => |case| case.lints(&[]),
    ]
}

/// Two chunks count up one word, and nothing orders them: the count of one may be the second chunk's.
fn counter_of_two_transfers<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    two_chunks(pe, false)
}

/// With a fence the first chunk is there when the count is one.
fn counter_of_two_fenced_transfers<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    two_chunks(pe, true)
}

fn two_chunks<B: Backend>(pe: &Pe<B>, fenced: bool) -> Result<Seen> {
    let words = pe.alloc_zeroed::<u64>(4)?;
    let (source, count) = (words.at(2), words.signal(3));
    let mut saw = Seen::nothing();
    if pe.my_pe() == 0 {
        pe.write(source, &[7])?;
        pe.host().put_signal(words.at(0), source, count, 1, SignalOp::Add, 1)?;
        if fenced {
            pe.host().fence()?;
        }
        pe.host().put_signal(words.at(1), source, count, 1, SignalOp::Add, 1)?;
    } else {
        pe.host().signal_wait_until(count, Cmp::Ge, 1)?;
        saw = seen("first", pe.read_one(words.at(0))?);
        pe.host().signal_wait_until(count, Cmp::Ge, 2)?;
        saw = saw.and("second", pe.read_one(words.at(1))?);
    }
    pe.free(words)?;
    Ok(saw)
}

/// A stage is one and then two, and PE 1 waits for exactly one: it hangs where it looks too late.
fn equality_of_a_growing_value<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    growing_value(pe, Cmp::Eq)
}

/// Who waits for at least one misses nothing.
fn growth_of_a_growing_value<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    growing_value(pe, Cmp::Ge)
}

fn growing_value<B: Backend>(pe: &Pe<B>, cmp: Cmp) -> Result<Seen> {
    let words = pe.alloc_zeroed::<u64>(1)?;
    let stage = words.signal(0);
    if pe.my_pe() == 0 {
        pe.host().signal_op(stage, 1, SignalOp::Set, 1)?;
        pe.host().fence()?;
        pe.host().signal_op(stage, 2, SignalOp::Set, 1)?;
    } else {
        pe.host().signal_wait_until(stage, cmp, 1)?;
    }
    pe.free(words)?;
    Ok(Seen::nothing())
}

/// A flag that a plain put sets: NVSHMEM's examples wait for one, and OpenSHMEM 1.6 no longer names it.
fn wait_for_a_put<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    let words = pe.alloc_zeroed::<u64>(2)?;
    let mut saw = Seen::nothing();
    if pe.my_pe() == 0 {
        pe.host().p(words.at(0), 1, 1)?;
        pe.host().fence()?;
        pe.host().p(words.at(1), 1, 1)?;
    } else {
        pe.host().wait_until(words.at(1), Cmp::Eq, 1)?;
        saw = seen("data", pe.read_one(words.at(0))?);
    }
    pe.free(words)?;
    Ok(saw)
}

/// The same with a signal.
fn wait_for_a_signal<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    data_and_signal(pe, |pe, words| {
        pe.host().signal_wait_until(words.signal(1), Cmp::Eq, 1)?;
        Ok(seen("data", pe.read_one(words.at(0))?))
    })
}

/// A signal, and the wait for any variable. Its twin is `wait_for_a_signal`.
fn signal_by_the_plain_wait<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    data_and_signal(pe, |pe, words| {
        pe.host().wait_until(words.at(1), Cmp::Eq, 1)?;
        Ok(seen("data", pe.read_one(words.at(0))?))
    })
}

/// A signal that is looked at by a plain read.
fn signal_by_a_plain_read<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    data_and_signal(pe, |pe, words| Ok(seen("flag", pe.read_one(words.at(1))?)))
}

/// A signal that is looked at as a signal.
fn signal_by_its_fetch<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    data_and_signal(pe, |pe, words| Ok(seen("flag", pe.host().signal_fetch(words.signal(1))?)))
}

/// PE 1 sends data and behind a fence a signal; `receive` is what PE 0 does.
fn data_and_signal<B: Backend>(
    pe: &Pe<B>,
    receive: impl Fn(&Pe<B>, &SymmetricBuf<u64>) -> Result<Seen>,
) -> Result<Seen> {
    let words = pe.alloc_zeroed::<u64>(2)?;
    let mut saw = Seen::nothing();
    if pe.my_pe() == 1 {
        pe.host().p(words.at(0), 1, 0)?;
        pe.host().fence()?;
        pe.host().signal_op(words.signal(1), 1, SignalOp::Set, 0)?;
    } else {
        saw = receive(pe, &words)?;
    }
    pe.free(words)?;
    Ok(saw)
}

/// PE 1 is told of a first value, and the second is put over it: no race, and the first value is lost.
fn slot_filled_again<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    filled_again(pe, false)
}

/// PE 0 waits until PE 1 has been told.
fn slot_filled_again_after_an_answer<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    filled_again(pe, true)
}

fn filled_again<B: Backend>(pe: &Pe<B>, answers: bool) -> Result<Seen> {
    let words = pe.alloc_zeroed::<u64>(5)?;
    let (slot, full, answer) = (words.at(0), words.signal(1), words.signal(2));
    let mut saw = Seen::nothing();
    if pe.my_pe() == 0 {
        pe.write(words.slice(3..), &[10, 20])?;
        pe.host().put_signal(slot, words.at(3), full, 1, SignalOp::Set, 1)?;
        match answers {
            true => drop(pe.host().signal_wait_until(answer, Cmp::Eq, 1)?),
            false => pe.host().fence()?,
        }
        pe.host().put_signal(slot, words.at(4), full, 2, SignalOp::Set, 1)?;
    } else {
        pe.host().signal_wait_until(full, Cmp::Ge, 1)?;
        if answers {
            saw = seen("first", pe.read_one(slot)?);
            pe.host().signal_op(answer, 1, SignalOp::Set, 0)?;
        }
        pe.host().signal_wait_until(full, Cmp::Ge, 2)?;
        saw = saw.and("second", pe.read_one(slot)?);
    }
    pe.free(words)?;
    Ok(saw)
}

/// The data goes by a stream, and the host's quiet is not about it.
fn quiet_of_the_host_behind_a_stream<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    by_stream(pe, false)
}

/// The stream's own quiet is.
fn quiet_of_the_stream<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    by_stream(pe, true)
}

fn by_stream<B: Backend>(pe: &Pe<B>, own_quiet: bool) -> Result<Seen> {
    let words = pe.alloc_zeroed::<u64>(3)?;
    let mut saw = Seen::nothing();
    if pe.my_pe() == 0 {
        pe.write(words.at(1), &[7])?;
        let stream = pe.stream()?;
        pe.on(&stream).put(words.at(0), words.at(1), 1)?;
        if own_quiet {
            pe.on(&stream).quiet()?;
        }
        pe.synchronize(&stream)?;
        if !own_quiet {
            pe.host().quiet()?;
        }
        pe.host().signal_op(words.signal(2), 1, SignalOp::Set, 1)?;
    } else {
        pe.host().signal_wait_until(words.signal(2), Cmp::Eq, 1)?;
        saw = seen("data", pe.read_one(words.at(0))?);
    }
    pe.host().barrier_all()?;
    if pe.my_pe() == 0 {
        // before the memory is freed
        let stream = pe.stream()?;
        pe.on(&stream).quiet()?;
        pe.synchronize(&stream)?;
    }
    pe.free(words)?;
    Ok(saw)
}

/// Data to PE 1, a fence, and a flag to PE 2, which looks at PE 1.
fn fence_before_a_flag_elsewhere<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    flag_elsewhere(pe, false)
}

/// A quiet completes whatever goes wherever.
fn quiet_before_a_flag_elsewhere<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    flag_elsewhere(pe, true)
}

fn flag_elsewhere<B: Backend>(pe: &Pe<B>, quiet: bool) -> Result<Seen> {
    let words = pe.alloc_zeroed::<u64>(2)?;
    let mut saw = Seen::nothing();
    match pe.my_pe() {
        0 => {
            pe.host().p(words.at(0), 1, 1)?;
            if quiet {
                pe.host().quiet()?
            } else {
                pe.host().fence()?
            }
            pe.host().signal_op(words.signal(1), 1, SignalOp::Set, 2)?;
        }
        1 => {}
        _ => {
            pe.host().signal_wait_until(words.signal(1), Cmp::Eq, 1)?;
            saw = seen("data", pe.host().g(words.at(0), 1)?);
        }
    }
    pe.free(words)?;
    Ok(saw)
}

/// What fresh memory holds can be anything, so nothing is said of the value.
fn read_of_fresh_memory<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    let words = pe.alloc::<u64>(1)?;
    pe.read_one(words.at(0))?;
    pe.free(words)?;
    Ok(Seen::nothing())
}

/// Memory that is asked for zeroed has a value.
fn read_of_zeroed_memory<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    let words = pe.alloc_zeroed::<u64>(1)?;
    let saw = seen("word", pe.read_one(words.at(0))?);
    pe.free(words)?;
    Ok(saw)
}
