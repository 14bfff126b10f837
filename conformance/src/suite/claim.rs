//! Who completes a non-blocking operation: it runs beside its stream, and the first quiet that is *called* claims it.
//!
//! In most cases PE 0 puts to PE 1 and sends a signal behind a quiet. PE 1 waits for the signal and reads. Where the put may
//! be missing, GPUs show that only with data that takes longer than a signal: so some of these cases have a twin with many
//! elements.

use onesided::{Backend, Cmp, Issue, Pe, Result, SignalOp, Stream, SymmetricBuf};

use super::rma::free_all;
use crate::case::{Case, Seen, cases, seen};

/// This part of the chapter `stream`.
pub(super) fn cases<B: Backend>() -> Vec<Case<B>> {
    cases![
        put_nbi_then_signal: 2 racy,
        put_nbi_of_many_then_signal: 2 racy,
        put_then_signal: 2 racy,
        put_nbi_then_quiet_and_signal: 2,
        host_nbi_claimed_by_a_stream: 2 racy,
        host_nbi_of_many_claimed_by_a_stream: 2 racy,
        host_nbi_claimed_by_a_stream_that_is_done: 2,
        host_put_claimed_by_no_stream: 2,
        nbi_claimed_by_a_blocked_stream: 2 racy,
        nbi_of_many_claimed_by_a_blocked_stream: 2 racy,
        put_claimed_by_no_blocked_stream: 2,
        nbi_claimed_by_a_fence: 2 racy,
        nbi_claimed_before_the_fence: 2 racy,
        nbi_claimed_after_the_fence: 2,
        flush_of_another_stream: 1 racy,
        flush_waits_for_what_came_before_it: 1 racy,
    ]
}

/// Elements that take longer to put than a signal takes to come.
const MANY: usize = 16 << 20;

/// The memory of a case. The last element of `data` is looked at.
pub(super) struct Words {
    data: SymmetricBuf<u8>,
    source: SymmetricBuf<u8>,
    flags: SymmetricBuf<u64>,
}

impl Words {
    /// With `len` elements to put, which are 1.
    pub(super) fn new<B: Backend>(pe: &Pe<B>, len: usize) -> Result<Words> {
        let words = Words { data: pe.alloc_zeroed(len)?, source: pe.alloc(len)?, flags: pe.alloc_zeroed(2)? };
        pe.write(&words.source, &vec![1; len])?;
        Ok(words)
    }

    /// A non-blocking put to a PE.
    pub(super) fn put_nbi<B: Backend>(&self, issue: &Issue<'_, B>, to: usize) -> Result<()> {
        issue.put_nbi(&self.data, &self.source, to)
    }

    /// The same, blocking.
    fn put<B: Backend>(&self, issue: &Issue<'_, B>) -> Result<()> {
        issue.put(&self.data, &self.source, 1)
    }

    /// Tells PE 1.
    fn tell<B: Backend>(&self, issue: &Issue<'_, B>) -> Result<()> {
        issue.signal_op(self.flags.signal(0), 1, SignalOp::Set, 1)
    }

    /// PE 1 waits until it is told, and reads.
    fn look<B: Backend>(&self, pe: &Pe<B>) -> Result<Seen> {
        pe.host().signal_wait_until(self.flags.signal(0), Cmp::Eq, 1)?;
        self.last(pe)
    }

    fn last<B: Backend>(&self, pe: &Pe<B>) -> Result<Seen> {
        Ok(seen("data", pe.read_one(self.data.at(self.data.len() - 1))?))
    }

    /// Makes a stream wait until it is let go.
    pub(super) fn hold<B: Backend>(&self, stream: &Issue<'_, B>) -> Result<()> {
        stream.signal_wait_until(self.flags.signal(1), Cmp::Eq, 1)
    }

    /// Lets a held stream of a PE go.
    pub(super) fn let_go<B: Backend>(&self, issue: &Issue<'_, B>, of: usize) -> Result<()> {
        issue.signal_op(self.flags.signal(1), 1, SignalOp::Set, of)
    }

    pub(super) fn free<B: Backend>(self, pe: &Pe<B>) -> Result<()> {
        free_all(pe, [self.data, self.source])?;
        pe.free(self.flags)
    }
}

/// What PE 0 does, with two streams.
type Send<B> = fn(&Pe<B>, &Words, [&Stream<B>; 2]) -> Result<()>;

/// PE 0 sends, PE 1 looks. What is left is completed by quiets on both streams.
fn sent<B: Backend>(pe: &Pe<B>, send: Send<B>) -> Result<Seen> {
    sent_of(pe, 1, false, send)
}

/// The same. When PE 1 has read, it lets a held stream of PE 0 go.
fn sent_and_let_go<B: Backend>(pe: &Pe<B>, send: Send<B>) -> Result<Seen> {
    sent_of(pe, 1, true, send)
}

fn sent_of<B: Backend>(pe: &Pe<B>, len: usize, lets_go: bool, send: Send<B>) -> Result<Seen> {
    let words = Words::new(pe, len)?;
    let streams = [pe.stream()?, pe.stream()?];
    let mut saw = Seen::nothing();
    if pe.my_pe() == 0 {
        send(pe, &words, [&streams[0], &streams[1]])?;
    } else {
        saw = words.look(pe)?;
        if lets_go {
            words.let_go(&pe.host(), 0)?;
        }
    }
    finish(pe, &streams)?;
    words.free(pe)?;
    Ok(saw)
}

fn finish<B: Backend>(pe: &Pe<B>, streams: &[Stream<B>]) -> Result<()> {
    for stream in streams {
        pe.synchronize(stream)?; // everything has started, and what was claimed is delivered
    }
    for stream in streams {
        pe.on(stream).quiet()?;
        pe.synchronize(stream)?;
    }
    Ok(())
}

/// A non-blocking put, then a signal on the same stream: the put starts first and the signal may overtake it, under `nvlink`
/// too. Control: `put_then_signal`.
fn put_nbi_then_signal<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    sent(pe, put_nbi_and_tell)
}

/// The same with many elements.
fn put_nbi_of_many_then_signal<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    sent_of(pe, MANY, false, put_nbi_and_tell)
}

fn put_nbi_and_tell<B: Backend>(pe: &Pe<B>, words: &Words, [stream, _]: [&Stream<B>; 2]) -> Result<()> {
    words.put_nbi(&pe.on(stream), 1)?;
    words.tell(&pe.on(stream))
}

/// A blocking put runs in stream order. The text lets the signal overtake it too; under `nvlink` it does not.
fn put_then_signal<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    sent(pe, |pe, words, [stream, _]| {
        words.put(&pe.on(stream))?;
        words.tell(&pe.on(stream))
    })
}

/// `put_nbi_then_signal` with a quiet between, which completes the put.
fn put_nbi_then_quiet_and_signal<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    sent(pe, |pe, words, [stream, _]| {
        words.put_nbi(&pe.on(stream), 1)?;
        pe.on(stream).quiet()?;
        words.tell(&pe.on(stream))
    })
}

/// A quiet on a stream claims the host's non-blocking put, so that the host's own quiet does not wait for it: the signal may
/// come first. Measured on an H200. Controls: `host_nbi_claimed_by_a_stream_that_is_done`, `host_put_claimed_by_no_stream`.
fn host_nbi_claimed_by_a_stream<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    sent(pe, claim_on_a_stream)
}

/// The same with many elements.
fn host_nbi_of_many_claimed_by_a_stream<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    sent_of(pe, MANY, false, claim_on_a_stream)
}

fn claim_on_a_stream<B: Backend>(pe: &Pe<B>, words: &Words, [stream, _]: [&Stream<B>; 2]) -> Result<()> {
    words.put_nbi(&pe.host(), 1)?;
    pe.on(stream).quiet()?;
    pe.host().quiet()?;
    words.tell(&pe.host())
}

/// The same, where the host waits for its stream first: what the stream's quiet has claimed is then delivered, or the
/// host's quiet waits for it.
fn host_nbi_claimed_by_a_stream_that_is_done<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    sent(pe, |pe, words, [stream, _]| {
        words.put_nbi(&pe.host(), 1)?;
        pe.on(stream).quiet()?;
        pe.synchronize(stream)?;
        pe.host().quiet()?;
        words.tell(&pe.host())
    })
}

/// `host_nbi_claimed_by_a_stream` with a blocking put: quiets claim those of their own scope only.
fn host_put_claimed_by_no_stream<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    sent(pe, |pe, words, [stream, _]| {
        words.put(&pe.host())?;
        pe.on(stream).quiet()?;
        pe.host().quiet()?;
        words.tell(&pe.host())
    })
}

/// A quiet claims when it is called, also on a stream that cannot reach it yet. The quiet of the stream that put then waits
/// for nothing, and the data may be missing. Measured on an H200. Control: `put_claimed_by_no_blocked_stream`.
fn nbi_claimed_by_a_blocked_stream<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    sent_and_let_go(pe, claim_on_a_held_stream)
}

/// The same with many elements.
fn nbi_of_many_claimed_by_a_blocked_stream<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    sent_of(pe, MANY, true, claim_on_a_held_stream)
}

fn claim_on_a_held_stream<B: Backend>(pe: &Pe<B>, words: &Words, [held, stream]: [&Stream<B>; 2]) -> Result<()> {
    words.hold(&pe.on(held))?;
    words.put_nbi(&pe.on(stream), 1)?;
    pe.on(held).quiet()?;
    pe.on(stream).quiet()?;
    words.tell(&pe.on(stream))
}

/// The same with a blocking put. A quiet claims those when its turn comes, and here the quiet of the put's own stream comes
/// first.
fn put_claimed_by_no_blocked_stream<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    sent_and_let_go(pe, |pe, words, [held, stream]| {
        words.hold(&pe.on(held))?;
        words.put(&pe.on(stream))?;
        pe.on(held).quiet()?;
        pe.on(stream).quiet()?;
        words.tell(&pe.on(stream))
    })
}

/// A fence can be composed as a quiet, as libnvshmem's own is: then it claims the put, and a quiet on another stream waits for
/// nothing. (The backend for GPUs gives back what a fence on a stream has claimed.) Control: `quiet_of_the_other_stream`.
fn nbi_claimed_by_a_fence<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    sent(pe, |pe, words, [stream, other]| {
        words.put_nbi(&pe.on(stream), 1)?;
        pe.synchronize(stream)?; // it has started
        pe.on(stream).fence()?;
        pe.on(other).quiet()?;
        words.tell(&pe.on(other))
    })
}

/// Such a fence does not order what another call has claimed before it: the signal may overtake the put.
/// Control: `nbi_claimed_after_the_fence`.
fn nbi_claimed_before_the_fence<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    sent_and_let_go(pe, |pe, words, [held, stream]| {
        words.hold(&pe.on(held))?;
        words.put_nbi(&pe.on(stream), 1)?;
        pe.on(held).quiet()?;
        pe.on(stream).fence()?;
        words.tell(&pe.on(stream))
    })
}

/// The fence is called first. It claims the put and orders it before the signal, whatever quiet follows.
fn nbi_claimed_after_the_fence<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    sent_and_let_go(pe, |pe, words, [held, stream]| {
        words.hold(&pe.on(held))?;
        words.put_nbi(&pe.on(stream), 1)?;
        pe.on(stream).fence()?;
        pe.on(held).quiet()?;
        words.tell(&pe.on(stream))
    })
}

/// A flush makes the sources of its own stream's puts reusable, and no others. Here another stream put, and an event orders the put
/// before the flush: either value may arrive. Control: `put_nbi_source_overwritten_after_flush`.
fn flush_of_another_stream<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    let words = Words::new(pe, 1)?;
    let streams = [pe.stream()?, pe.stream()?];
    let ([stream, other], event) = ([&streams[0], &streams[1]], pe.event()?);
    words.put_nbi(&pe.on(stream), 0)?;
    pe.record(&event, stream)?;
    pe.wait_event(&event, other)?;
    pe.on(other).flush()?;
    pe.on(other).write(&words.source, &[2])?;
    finish(pe, &streams)?;
    let saw = words.last(pe)?;
    words.free(pe)?;
    Ok(saw)
}

/// A flush waits for what was issued before it, not for everything in flight. Another stream may put the value that is written
/// after the flush.
fn flush_waits_for_what_came_before_it<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    let words = Words::new(pe, 1)?;
    let [passed_on, copy] = [pe.alloc_zeroed::<u32>(1)?, pe.alloc_zeroed::<u32>(1)?];
    let streams = [pe.stream()?, pe.stream()?];
    let [stream, other] = [&streams[0], &streams[1]];
    words.put_nbi(&pe.on(stream), 0)?;
    pe.on(stream).flush()?;
    pe.on(stream).p(&passed_on, 7, 0)?;
    pe.on(other).put_nbi(&copy, &passed_on, 0)?;
    finish(pe, &streams)?;
    let saw = seen("copy", pe.read(&copy)?[0]);
    free_all(pe, [passed_on, copy])?;
    words.free(pe)?;
    Ok(saw)
}
