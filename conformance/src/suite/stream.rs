//! Streams and events: what runs in stream order, what runs beside it, and that host and streams are separate scopes.
//!
//! Many cases put to the PE itself: they are about the order on the issuing side, and one PE has the fewest schedules.

use onesided::{Backend, Cmp, Issue, Pe, ReduceOp, Result, SignalOp, Stream, SymmetricBuf, TeamConfig};

use super::rma::{free_all, seen_by};
use crate::case::{Case, Seen, cases, seen};

/// The chapter's cases, with those of `claim.rs`.
pub(super) fn cases<B: Backend>() -> Vec<Case<B>> {
    let mut cases = cases![
        verbs_in_stream_order: 1,
        write_takes_its_values_at_once: 1,
        host_read_before_synchronize: 1 racy,
        two_streams: 1 racy,
        event_orders_two_streams: 1,
        event_without_record: 1 racy,
        event_recorded_twice: 1,
        event_recorded_again_after_the_wait: 1 racy,
        synchronize_event: 1 racy,
        dropped_stream_runs_on: 1,
        put_source_overwritten: 1,
        put_nbi_source_overwritten: 1 racy,
        put_nbi_source_overwritten_after_flush: 1,
        put_source_overwritten_by_host: 1 racy,
        synchronize_does_not_complete_put_nbi: 1 racy,
        synchronize_does_not_complete_get_nbi: 1 racy,
        host_put_host_quiet: 2,
        host_put_stream_quiet: 2 racy,
        stream_put_stream_quiet: 2,
        stream_put_host_quiet: 2 racy,
        stream_put_host_barrier: 2 racy,
        stream_put_stream_barrier: 2,
        quiet_of_the_other_stream: 2,
        quiet_taken_over: 2 racy,
        wait_blocks_no_other_stream: 1,
        wait_blocks_no_host: 1,
        barriers_of_two_teams_on_two_streams: 2,
        wait_then_put: 2,
        reduce_then_put: 2,
    ];
    cases.extend(super::claim::cases());
    cases
}

/// Something that a PE does with a stream.
type OnStream<B> = fn(&Pe<B>, &Stream<B>) -> Result<()>;

/// The same, to a buffer.
type Step<B> = fn(&Pe<B>, &Stream<B>, &SymmetricBuf<u32>) -> Result<()>;

/// Completes what is in flight on the streams: `free` would not wait for it.
fn finish<B: Backend>(pe: &Pe<B>, streams: &[&Stream<B>]) -> Result<()> {
    for stream in streams {
        pe.on(stream).quiet()?;
        pe.synchronize(stream)?;
    }
    Ok(())
}

/// Each verb of a stream starts when the one before has ended: a value is written, put, made visible and fetched.
fn verbs_in_stream_order<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    let (a, b, c) = (pe.alloc_zeroed::<u32>(1)?, pe.alloc_zeroed::<u32>(1)?, pe.alloc_zeroed::<u32>(1)?);
    let stream = pe.stream()?;
    let on = pe.on(&stream);
    on.write(&a, &[1])?;
    on.put(&b, &a, 0)?;
    on.quiet()?;
    on.get(&c, &b, 0)?;
    pe.synchronize(&stream)?;
    let saw = seen("c", pe.read(&c)?[0]);
    free_all(pe, [a, b, c])?;
    Ok(saw)
}

/// A write on a stream takes its values when it is enqueued, not when it runs.
fn write_takes_its_values_at_once<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    let x = pe.alloc_zeroed::<u32>(1)?;
    let stream = pe.stream()?;
    let mut values = vec![1];
    pe.on(&stream).write(&x, &values)?;
    values.fill(2);
    pe.synchronize(&stream)?;
    let saw = seen("x", pe.read(&x)?[0]);
    pe.free(x)?;
    Ok(saw)
}

/// The host sees a stream's work for certain only after it synchronized.
fn host_read_before_synchronize<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    let x = pe.alloc_zeroed::<u32>(1)?;
    let stream = pe.stream()?;
    pe.on(&stream).write(&x, &[1])?;
    let early = pe.read(&x)?[0];
    pe.synchronize(&stream)?;
    let late = pe.read(&x)?[0];
    pe.free(x)?;
    Ok(seen("early", early).and("late", late))
}

/// Two streams run concurrently: the write of either may be the last.
fn two_streams<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    written_by_two_streams(pe, |_, _, _| Ok(()))
}

/// `two_streams` with an event from the first to the second: the second's write is the last.
fn event_orders_two_streams<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    written_by_two_streams(pe, |pe, first, second| {
        let event = pe.event()?;
        pe.record(&event, first)?;
        pe.wait_event(&event, second)
    })
}

/// `event_orders_two_streams` without the record: waiting for an event that was never recorded neither blocks nor
/// orders.
fn event_without_record<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    written_by_two_streams(pe, |pe, _, second| {
        let event = pe.event()?;
        pe.synchronize_event(&event)?;
        pe.wait_event(&event, second)
    })
}

type Between<B> = fn(&Pe<B>, &Stream<B>, &Stream<B>) -> Result<()>;

fn written_by_two_streams<B: Backend>(pe: &Pe<B>, between: Between<B>) -> Result<Seen> {
    let x = pe.alloc_zeroed::<u32>(1)?;
    let (first, second) = (pe.stream()?, pe.stream()?);
    pe.on(&first).write(&x, &[1])?;
    between(pe, &first, &second)?;
    pe.on(&second).write(&x, &[2])?;
    finish(pe, &[&first, &second])?;
    let saw = seen("x", pe.read(&x)?[0]);
    pe.free(x)?;
    Ok(saw)
}

/// A wait is for the *last* record before it: after two records, the second stream copies the second value.
fn event_recorded_twice<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    copied_after_event(pe, true)
}

/// A record *after* the wait was enqueued does not concern it: the second stream may copy either value.
fn event_recorded_again_after_the_wait<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    copied_after_event(pe, false)
}

/// One stream writes twice and records after each; the other waits, after both were enqueued or between, and copies.
fn copied_after_event<B: Backend>(pe: &Pe<B>, wait_last: bool) -> Result<Seen> {
    let (x, copy) = (pe.alloc_zeroed::<u32>(1)?, pe.alloc_zeroed::<u32>(1)?);
    let (writer, copier, event) = (pe.stream()?, pe.stream()?, pe.event()?);
    pe.on(&writer).write(&x, &[1])?;
    pe.record(&event, &writer)?;
    if !wait_last {
        pe.wait_event(&event, &copier)?;
    }
    pe.on(&writer).write(&x, &[2])?;
    pe.record(&event, &writer)?;
    if wait_last {
        pe.wait_event(&event, &copier)?;
    }
    pe.on(&copier).get(&copy, &x, 0)?;
    finish(pe, &[&writer, &copier])?;
    let saw = seen("copy", pe.read(&copy)?[0]);
    free_all(pe, [x, copy])?;
    Ok(saw)
}

/// Synchronizing an event shows the host what the stream did before the record, and not for certain what it does
/// after.
fn synchronize_event<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    let (before, after) = (pe.alloc_zeroed::<u32>(1)?, pe.alloc_zeroed::<u32>(1)?);
    let (stream, event) = (pe.stream()?, pe.event()?);
    pe.on(&stream).write(&before, &[1])?;
    pe.record(&event, &stream)?;
    pe.on(&stream).write(&after, &[1])?;
    pe.synchronize_event(&event)?;
    let saw = seen("before", pe.read(&before)?[0]).and("after", pe.read(&after)?[0]);
    pe.synchronize(&stream)?;
    free_all(pe, [before, after])?;
    Ok(saw)
}

/// A stream that its program has dropped runs what was enqueued; an event tells when.
fn dropped_stream_runs_on<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    let x = pe.alloc_zeroed::<u32>(1)?;
    let event = pe.event()?;
    let stream = pe.stream()?;
    pe.on(&stream).write(&x, &[1])?;
    pe.record(&event, &stream)?;
    drop(stream);
    pe.synchronize_event(&event)?;
    let saw = seen("x", pe.read(&x)?[0]);
    pe.free(x)?;
    Ok(saw)
}

/// A blocking put has read its source when the stream goes on: later work of the stream may overwrite it.
fn put_source_overwritten<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    source_overwritten(pe, |on, x, src| on.put(x, src, 0), by_stream)
}

/// `put_source_overwritten` with a non-blocking put: it *starts* in stream order, and later work of the stream may
/// overtake it.
fn put_nbi_source_overwritten<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    source_overwritten(pe, |on, x, src| on.put_nbi(x, src, 0), by_stream)
}

/// `put_nbi_source_overwritten` with a flush, after which the source may be overwritten.
fn put_nbi_source_overwritten_after_flush<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    let put_and_flush: Transfer<B> = |on, x, src| {
        on.put_nbi(x, src, 0)?;
        on.flush()
    };
    source_overwritten(pe, put_and_flush, by_stream)
}

/// `put_source_overwritten` by the host. The host writes after it has enqueued, and nothing orders that with the stream, so the put
/// may read either value.
fn put_source_overwritten_by_host<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    source_overwritten(pe, |on, x, src| on.put(x, src, 0), |pe, _, src| pe.write(src, &[2]))
}

fn by_stream<B: Backend>(pe: &Pe<B>, stream: &Stream<B>, src: &SymmetricBuf<u32>) -> Result<()> {
    pe.on(stream).write(src, &[2])
}

/// A transfer that a stream starts, between two buffers.
type Transfer<B> = fn(&Issue<'_, B>, &SymmetricBuf<u32>, &SymmetricBuf<u32>) -> Result<()>;

fn source_overwritten<B: Backend>(pe: &Pe<B>, put: Transfer<B>, overwrite: Step<B>) -> Result<Seen> {
    let (x, src) = (pe.alloc_zeroed::<u32>(1)?, pe.alloc_zeroed::<u32>(1)?);
    let stream = pe.stream()?;
    pe.write(&src, &[1])?;
    put(&pe.on(&stream), &x, &src)?;
    overwrite(pe, &stream, &src)?;
    finish(pe, &[&stream])?;
    let saw = seen("x", pe.read(&x)?[0]);
    free_all(pe, [x, src])?;
    Ok(saw)
}

/// After a synchronize a non-blocking put has only started. After a quiet on the stream it is delivered.
fn synchronize_does_not_complete_put_nbi<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    synchronized_nbi(pe, |on, x, src| on.put_nbi(x, src, 0))
}

/// The same for a non-blocking get.
fn synchronize_does_not_complete_get_nbi<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    synchronized_nbi(pe, |on, x, src| on.get_nbi(x, src, 0))
}

fn synchronized_nbi<B: Backend>(pe: &Pe<B>, transfer: Transfer<B>) -> Result<Seen> {
    let (x, src) = (pe.alloc_zeroed::<u32>(1)?, pe.alloc_zeroed::<u32>(1)?);
    let stream = pe.stream()?;
    pe.write(&src, &[1])?;
    transfer(&pe.on(&stream), &x, &src)?;
    pe.synchronize(&stream)?;
    let early = pe.read(&x)?[0];
    finish(pe, &[&stream])?;
    let late = pe.read(&x)?[0];
    free_all(pe, [x, src])?;
    Ok(seen("early", early).and("late", late))
}

/// A quiet of the host covers what the host issued.
fn host_put_host_quiet<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    put_then(pe, host_put, host_quiet_and_sync)
}

/// A quiet on a stream does not: the host's put may still be on its way.
fn host_put_stream_quiet<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    put_then(pe, host_put, stream_quiet_and_sync)
}

/// A quiet on a stream covers what the stream issued.
fn stream_put_stream_quiet<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    put_then(pe, stream_put, stream_quiet_and_sync)
}

/// A quiet of the host does not, even after the host synchronized the stream.
fn stream_put_host_quiet<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    put_then(pe, stream_put, |pe, stream| {
        pe.synchronize(stream)?;
        host_quiet_and_sync(pe, stream)
    })
}

/// A barrier of the host does not wait for streams: a put that was only enqueued may not have run at all.
fn stream_put_host_barrier<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    put_then(pe, stream_put, |pe, _| pe.host().barrier_all())
}

/// `stream_put_host_barrier` with the barrier on the stream, which completes what the stream issued.
fn stream_put_stream_barrier<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    put_then(pe, stream_put, |pe, stream| {
        pe.on(stream).barrier_all()?;
        pe.synchronize(stream)
    })
}

fn host_put<B: Backend>(pe: &Pe<B>, _: &Stream<B>, x: &SymmetricBuf<u32>) -> Result<()> {
    pe.host().p(x, 1, 1)
}

fn stream_put<B: Backend>(pe: &Pe<B>, stream: &Stream<B>, x: &SymmetricBuf<u32>) -> Result<()> {
    pe.on(stream).p(x, 1, 1)
}

fn host_quiet_and_sync<B: Backend>(pe: &Pe<B>, _: &Stream<B>) -> Result<()> {
    pe.host().quiet()?;
    pe.host().sync_all()
}

fn stream_quiet_and_sync<B: Backend>(pe: &Pe<B>, stream: &Stream<B>) -> Result<()> {
    pe.on(stream).quiet()?;
    pe.synchronize(stream)?;
    pe.host().sync_all()
}

/// PE 0 puts, both meet, PE 1 reads.
fn put_then<B: Backend>(pe: &Pe<B>, put: Step<B>, meet: OnStream<B>) -> Result<Seen> {
    let x = pe.alloc_zeroed::<u32>(1)?;
    let stream = pe.stream()?;
    if pe.my_pe() == 0 {
        put(pe, &stream, &x)?;
    }
    meet(pe, &stream)?;
    let saw = seen_by(pe, 1, &x)?;
    finish(pe, &[&stream])?;
    pe.free(x)?;
    Ok(saw)
}

/// A quiet on one stream completes what another stream of the same PE has started.
fn quiet_of_the_other_stream<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    put_and_quiet_on_two_streams(pe, false)
}

/// `quiet_of_the_other_stream` after a quiet on the issuing stream, not waited for, took the transfer over: the
/// second quiet does not wait for it again.
fn quiet_taken_over<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    put_and_quiet_on_two_streams(pe, true)
}

fn put_and_quiet_on_two_streams<B: Backend>(pe: &Pe<B>, taken_over: bool) -> Result<Seen> {
    let (x, src) = (pe.alloc_zeroed::<u32>(1)?, pe.alloc_zeroed::<u32>(1)?);
    let (issuer, other) = (pe.stream()?, pe.stream()?);
    if pe.my_pe() == 0 {
        pe.write(&src, &[1])?;
        pe.on(&issuer).put_nbi(&x, &src, 1)?;
        pe.synchronize(&issuer)?; // it has started
        if taken_over {
            pe.on(&issuer).quiet()?;
        }
        pe.on(&other).quiet()?;
        pe.synchronize(&other)?;
    }
    pe.host().sync_all()?;
    let saw = seen_by(pe, 1, &x)?;
    finish(pe, &[&issuer, &other])?;
    free_all(pe, [x, src])?;
    Ok(saw)
}

/// A stream that waits for a signal does not block another stream: the other one writes, and then sends the signal.
fn wait_blocks_no_other_stream<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    beside_a_wait(pe, |pe, beside, x| {
        pe.on(beside).write(x, &[1])?;
        pe.synchronize(beside)
    })
}

/// `wait_blocks_no_other_stream` with work of the host: a put, a quiet and local access go on beside the wait.
fn wait_blocks_no_host<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    beside_a_wait(pe, |pe, _, x| {
        pe.host().p(x, 1, 0)?;
        pe.host().quiet()
    })
}

fn beside_a_wait<B: Backend>(pe: &Pe<B>, work: Step<B>) -> Result<Seen> {
    let (x, behind, flag) = (pe.alloc_zeroed::<u32>(1)?, pe.alloc_zeroed::<u32>(1)?, pe.alloc_zeroed::<u64>(1)?);
    let (waiting, beside) = (pe.stream()?, pe.stream()?);
    pe.on(&waiting).signal_wait_until(flag.signal(0), Cmp::Eq, 1)?;
    pe.on(&waiting).write(&behind, &[1])?;
    work(pe, &beside, &x)?;
    let saw = seen("x", pe.read(&x)?[0]).and("behind_before", pe.read(&behind)?[0]);
    pe.on(&beside).signal_op(flag.signal(0), 1, SignalOp::Set, 0)?;
    finish(pe, &[&beside, &waiting])?;
    let saw = saw.and("behind_after", pe.read(&behind)?[0]);
    free_all(pe, [x, behind])?;
    pe.free(flag)?;
    Ok(saw)
}

/// Two teams of the same PEs meet on two streams, enqueued in opposite order: neither barrier waits for the other, and
/// the host passes the first to enqueue the second.
fn barriers_of_two_teams_on_two_streams<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    let (row, column) = pe.team_split_2d(pe.world(), 2, TeamConfig::default(), TeamConfig::default())?;
    let (of_world, of_row) = (pe.stream()?, pe.stream()?);
    if pe.my_pe() == 0 {
        pe.on(&of_world).barrier_all()?;
        pe.on(&of_row).barrier(&row)?;
    } else {
        pe.on(&of_row).barrier(&row)?;
        pe.synchronize(&of_row)?;
        pe.on(&of_world).barrier_all()?;
    }
    pe.synchronize(&of_world)?;
    pe.synchronize(&of_row)?;
    pe.team_destroy(row)?;
    pe.team_destroy(column)?;
    Ok(seen("met", true))
}

/// A stream passes on what it waited for, without its host: the data goes to PE 1 and comes back.
fn wait_then_put<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    let (x, y, flag) = (pe.alloc_zeroed::<u32>(1)?, pe.alloc_zeroed::<u32>(1)?, pe.alloc_zeroed::<u64>(1)?);
    let stream = pe.stream()?;
    let on = pe.on(&stream);
    if pe.my_pe() == 0 {
        pe.write(&y, &[1])?;
        on.put_signal(&x, &y, flag.signal(0), 1, SignalOp::Set, 1)?;
        on.signal_wait_until(flag.signal(0), Cmp::Eq, 1)?;
    } else {
        on.signal_wait_until(flag.signal(0), Cmp::Eq, 1)?;
        on.put_signal(&x, &x, flag.signal(0), 1, SignalOp::Set, 0)?;
    }
    pe.synchronize(&stream)?;
    let saw = seen_by(pe, 0, &x)?;
    finish(pe, &[&stream])?;
    free_all(pe, [x, y])?;
    pe.free(flag)?;
    Ok(saw)
}

/// A collective on a stream starts after what was enqueued before it, and what was enqueued after it has its result:
/// two values are written, their sum is put to PE 1.
fn reduce_then_put<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    let (x, sum, one) = (pe.alloc_zeroed::<u32>(1)?, pe.alloc_zeroed::<u32>(1)?, pe.alloc_zeroed::<u32>(1)?);
    let stream = pe.stream()?;
    let on = pe.on(&stream);
    on.write(&one, &[1])?;
    on.reduce(pe.world(), &sum, &one, ReduceOp::Sum)?;
    if pe.my_pe() == 0 {
        on.put(&x, &sum, 1)?;
    }
    on.barrier_all()?;
    pe.synchronize(&stream)?;
    let saw = seen_by(pe, 1, &x)?;
    free_all(pe, [x, sum, one])?;
    Ok(saw)
}
