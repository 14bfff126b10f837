//! Where the bytes of a read come from: the write that brought them, however long ago, or none.
//!
//! The trace has every write, so one walk through it finds the last writer of each byte. Memory that was allocated and not zeroed has
//! no writer. If a transfer copies such memory, the copy counts as unwritten too, and the walk remembers that.
//!
//! A PE may see another value than the last one in the trace: a value on another path becomes visible later, and a PE sees its own store through a pointer
//! before the store arrives. If the values of both events are known and differ, the walk says nothing about the read.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::ops::Range;

use onesided::backend::{AllocId, AmoOp, Effect, Moves, Op, Span, Transfer, Until};
use onesided::{At, count};

use super::writes::{Parts, operation, parts, parts_of, written};
use super::{Event, EventKind};

/// Bytes of a read that nobody has written.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Unwritten {
    /// How many.
    pub bytes: usize,
    /// Of how many that were read.
    pub of: usize,
    /// The allocation whose content nobody has set.
    pub alloc: AllocId,
    /// The line that allocated it.
    pub made_at: Option<At>,
    /// Whether a transfer has brought them from there.
    pub copied: bool,
}

/// Something that a PE has read, and where it comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LastRead {
    /// The PE.
    pub pe: usize,
    /// The call.
    pub call: &'static str,
    /// Its line.
    pub at: At,
    /// The PE whose memory it is.
    pub of: usize,
    /// The bytes, in order; of many parts, the first few.
    pub parts: Vec<ReadPart>,
    /// How many parts there are besides.
    pub more: usize,
    /// Whether a kernel was launched before. Of its plain stores only the first few of each line are recorded:
    /// another one may have changed the bytes since.
    pub behind_a_kernel: bool,
}

/// Bytes that were written together.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReadPart {
    /// Which.
    pub span: Span,
    /// The line that allocated the memory.
    pub made_at: Option<At>,
    /// Who wrote them.
    pub by: Writer,
}

/// Who wrote some bytes last.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Writer {
    /// Nobody has.
    Nobody,
    /// The allocation, which zeroed them.
    Allocation,
    /// A call.
    Call {
        /// The PE that made it.
        pe: usize,
        /// The call.
        call: &'static str,
        /// Its line.
        at: At,
        /// The step in which the bytes were written, or delivered.
        step: u64,
        /// Whether a transfer delivered them.
        delivered: bool,
        /// The line that allocated what they were copied from, if nobody had written that.
        copied: Option<At>,
    },
}

/// What a heap knows of an allocation: the line that made it, and whether it was zeroed.
pub(crate) type Made<'a> = &'a dyn Fn(AllocId) -> (Option<At>, bool);

/// So many reads of the PE that failed are listed, and so many parts of each.
const READS: usize = 2;
const PARTS: usize = 6;

/// The bytes that a call moves although nobody has written them: their place among all that it moves, and the allocation that they come from.
type Copied = Vec<(Range<usize>, AllocId)>;

/// Notes for each read which part of it nobody has written. Returns what the PE `failed` has read last, the last call first.
pub(crate) fn name_origins(trace: &mut [Event], made: Made<'_>, failed: Option<usize>) -> Vec<LastRead> {
    let mut memory = Memory::default();
    let mut copied: BTreeMap<usize, Copied> = BTreeMap::new();
    let mut last: VecDeque<(usize, LastRead)> = VecDeque::new();
    let launch = trace.iter().position(|event| matches!(event.kind, EventKind::Call("launch")));
    for number in 0..trace.len() {
        let event = &trace[number];
        let call = event.of.unwrap_or(number);
        let (pe, Parts { mut start, spans }) = reads(trace, event);
        let mut found: Vec<Part> = Vec::new();
        spans.iter().for_each(|span| memory.read(pe, *span, &mut found));
        if let [whole] = spans[..]
            && !found.iter().all(|part| part.is_as_written(trace, number, whole, made))
        {
            found.clear();
        }
        let replaces = is_set(trace, event);
        for part in &found {
            if let Some((alloc, _)) = part.blank(made).filter(|_| !replaces) {
                copied.entry(call).or_default().push((start..start + part.span.len, alloc));
            }
            start += part.span.len;
        }
        if failed.is_some_and(|pe| event.pe as usize == pe) && !found.is_empty() && is_seen(trace, event) {
            note(&mut last, trace, number, &found, made);
            last[0].1.behind_a_kernel = launch.is_some_and(|launch| launch < number);
        }
        if let Some((pe, span)) = written(trace, event) {
            let Parts { mut start, spans } = parts(trace, event, span);
            for span in spans {
                memory.write(pe, span, number, None);
                for (bytes, alloc) in copied.get(&call).into_iter().flatten() {
                    let (from, to) = (bytes.start.max(start), bytes.end.min(start + span.len));
                    if from < to {
                        let part = Span { start: span.start + from - start, len: to - from, ..span };
                        memory.write(pe, part, number, Some(*alloc));
                    }
                }
                start += span.len;
            }
        }
        let behind_a_kernel = launch.is_some_and(|launch| launch < number);
        trace[number].unwritten = if behind_a_kernel { None } else { unwritten(&found, made) };
    }
    last.into_iter().map(|(_, read)| read).collect()
}

/// Whether the host sees the values that the event reads. It does not see those that a put or a stream reads.
fn is_seen(trace: &[Event], event: &Event) -> bool {
    match &event.kind {
        EventKind::Read { .. } => true,
        EventKind::Op { op, .. } => event.stream.is_none() && matches!(op.effect(), Effect::FetchSignal { .. }),
        EventKind::Delivered { .. } => match operation(trace, event).map(Op::effect) {
            Some(Effect::Transfer(Transfer { moves, .. })) => matches!(moves, Moves::Fetch | Moves::Amo { .. }),
            _ => false,
        },
        _ => false,
    }
}

/// Whether it is an atomic that replaces the whole old value.
fn is_set(trace: &[Event], event: &Event) -> bool {
    let effect = operation(trace, event).map(Op::effect);
    matches!(effect, Some(Effect::Transfer(Transfer { moves: Moves::Amo { op: AmoOp::Set, .. }, .. })))
}

/// Adds a read to the last ones. Pieces of one call are added to the same read.
fn note(last: &mut VecDeque<(usize, LastRead)>, trace: &[Event], number: usize, found: &[Part], made: Made<'_>) {
    let event = &trace[number];
    let call = event.of.unwrap_or(number);
    let is_piece = event.of.is_some() && last.front().is_some_and(|(of, _)| *of == call);
    if !is_piece {
        last.retain(|(_, read)| read.at != event.at); // the same line again says what it says now
        let name = operation(trace, event).or_else(|| event.op()).map_or("read", Op::name);
        let of = found[0].pe as usize;
        let read = LastRead {
            pe: event.pe as usize,
            call: name,
            at: event.at,
            of,
            parts: Vec::new(),
            more: 0,
            behind_a_kernel: false,
        };
        last.push_front((call, read));
        last.truncate(READS);
    }
    let (_, read) = &mut last[0];
    for part in found {
        let (made_at, zeroed) = made(part.span.alloc);
        let by = match part.by {
            None if zeroed => Writer::Allocation,
            None => Writer::Nobody,
            Some((writer, origin)) => {
                let event = &trace[writer];
                let call = operation(trace, event).or_else(|| event.op()).map_or("write", Op::name);
                let delivered = matches!(event.kind, EventKind::Delivered { .. } | EventKind::Signaled { .. });
                let copied = origin.and_then(|alloc| made(alloc).0);
                Writer::Call { pe: event.pe as usize, call, at: event.at, step: event.step, delivered, copied }
            }
        };
        let neighbour = read.parts.iter().position(|other| other.by == by && other.touches(part.span));
        match neighbour {
            Some(index) => {
                let other = &mut read.parts[index];
                let end = (other.span.start + other.span.len).max(part.span.start + part.span.len);
                other.span.start = other.span.start.min(part.span.start);
                other.span.len = end - other.span.start;
            }
            None if read.parts.len() < PARTS => read.parts.push(ReadPart { span: part.span, made_at, by }),
            None => read.more += 1,
        }
    }
    read.parts.sort_by_key(|part| (part.span.alloc, part.span.start));
}

impl ReadPart {
    /// Whether it ends where a span begins, or the other way round.
    fn touches(&self, span: Span) -> bool {
        let Span { alloc, start, len } = self.span;
        alloc == span.alloc && (start + len == span.start || span.start + span.len == start)
    }
}

/// The part of a read that nobody has written, in the allocation that has most of these bytes. `None` if all bytes were written.
fn unwritten(found: &[Part], made: Made<'_>) -> Option<Unwritten> {
    let blank = |part: &&Part| part.blank(made).is_some();
    let (alloc, copied) = found.iter().find(blank)?.blank(made)?;
    let bytes = found.iter().filter(blank).map(|part| part.span.len).sum();
    let of = found.iter().map(|part| part.span.len).sum();
    Some(Unwritten { bytes, of, alloc, made_at: made(alloc).0, copied })
}

/// Bytes that one event wrote, or none.
struct Part {
    pe: u32,
    span: Span,
    by: Option<(usize, Option<AllocId>)>,
}

impl Part {
    /// Whether the event that read the bytes, as a part of `whole`, has found what was written last. True also if one of the two values is not known.
    fn is_as_written(&self, trace: &[Event], read: usize, whole: Span, made: Made<'_>) -> bool {
        let bytes = |event: usize, all: Span, found: bool| {
            let from = self.span.start - all.start;
            trace[event].moved.as_ref()?.bytes(all.len, from..from + self.span.len, found)
        };
        let left = match self.by {
            None => made(self.span.alloc).1.then(|| vec![0; self.span.len]),
            Some((writer, _)) => written(trace, &trace[writer]).and_then(|(_, span)| {
                let [left] = parts(trace, &trace[writer], span).spans[..] else { return None };
                bytes(writer, left, false)
            }),
        };
        bytes(read, whole, true).zip(left).is_none_or(|(found, left)| found == left)
    }

    /// The allocation whose content nobody has set, and whether a transfer has brought the bytes from there. `None` if somebody has written them, or the allocation zeroed them.
    fn blank(&self, made: Made<'_>) -> Option<(AllocId, bool)> {
        match self.by {
            None => (!made(self.span.alloc).1).then_some((self.span.alloc, false)),
            Some((_, origin)) => origin.map(|alloc| (alloc, true)),
        }
    }
}

/// The last writer of all bytes. For each PE and allocation it has intervals: the first byte, with the byte behind the last one.
#[derive(Default)]
struct Memory(BTreeMap<(u32, AllocId), BTreeMap<usize, Interval>>);

#[derive(Clone, Copy)]
struct Interval {
    end: usize,
    by: (usize, Option<AllocId>),
}

impl Memory {
    fn write(&mut self, pe: u32, span: Span, event: usize, origin: Option<AllocId>) {
        let (start, end) = (span.start, span.start + span.len);
        let intervals = self.0.entry((pe, span.alloc)).or_default();
        if let Some((&from, &before)) = intervals.range(..start).next_back()
            && before.end > start
        {
            intervals.insert(from, Interval { end: start, ..before });
            if before.end > end {
                intervals.insert(end, before);
            }
        }
        let covered: Vec<usize> = intervals.range(start..end).map(|(&from, _)| from).collect();
        for from in covered {
            let old = intervals.remove(&from);
            if let Some(old) = old.filter(|old| old.end > end) {
                intervals.insert(end, old);
            }
        }
        intervals.insert(start, Interval { end, by: (event, origin) });
    }

    fn read(&self, pe: u32, span: Span, found: &mut Vec<Part>) {
        let (mut at, end) = (span.start, span.start + span.len);
        let part = |from: usize, to: usize, by| Part { pe, span: Span { start: from, len: to - from, ..span }, by };
        let intervals = self.0.get(&(pe, span.alloc));
        if let Some(intervals) = intervals {
            let first = intervals.range(..=at).next_back().map_or(at, |(&from, _)| from);
            for (&from, interval) in intervals.range(first..end) {
                if interval.end <= at {
                    continue;
                }
                if from > at {
                    found.push(part(at, from, None));
                }
                let (from, to) = (from.max(at), interval.end.min(end));
                found.push(part(from, to, Some(interval.by)));
                at = to;
            }
        }
        if at < end {
            found.push(part(at, end, None));
        }
    }
}

/// The memory that an event reads, and its PE.
fn reads(trace: &[Event], event: &Event) -> (u32, Parts) {
    let one = |pe: u32, span: Span| (pe, Parts { start: 0, spans: vec![span] });
    match &event.kind {
        EventKind::Read { of, span, dtype, piece, pieces } => {
            return (*of, parts_of(*span, dtype.size(), 1, (*piece, *pieces)));
        }
        EventKind::SourceRead { from, span, piece, pieces } => {
            let (size, stride) = match operation(trace, event).map(Op::effect) {
                Some(Effect::Transfer(transfer)) => (transfer.shape.size, transfer.shape.src_stride),
                _ => (operation(trace, event).and_then(Op::dtype).map_or(1, |dtype| dtype.size()), 1),
            };
            return (*from, parts_of(*span, size, stride, (*piece, *pieces)));
        }
        // if a put reads its source within its call, the event of the call has the values
        EventKind::Op { op, .. } => match op.effect() {
            Effect::FetchSignal { word } => return one(event.pe, word),
            Effect::Transfer(Transfer { moves: Moves::Put { src }, shape, .. }) if event.moved.is_some() => {
                return (event.pe, parts_of(src, shape.size, shape.src_stride, (0, 1)));
            }
            _ => {}
        },
        EventKind::Delivered { to, span, piece, pieces } => match operation(trace, event).map(Op::effect) {
            Some(Effect::Transfer(Transfer { until, .. })) if is_set(trace, event) && until != Until::Delivered => {}
            Some(Effect::Transfer(Transfer { moves: Moves::Fetch | Moves::Amo { .. }, .. })) => return one(*to, *span),
            Some(Effect::Transfer(Transfer { moves: Moves::Get { .. }, remote, peer, shape, .. })) => {
                return (peer, parts_of(remote, shape.size, shape.src_stride, (*piece, *pieces)));
            }
            _ => {}
        },
        EventKind::Returned { variable: Some(variable), .. } => return one(event.pe, *variable),
        _ => {}
    }
    (event.pe, Parts { start: 0, spans: Vec::new() })
}

/// `4 of 16 bytes that nobody has written (buf1, made at app.rs:12)`.
impl fmt::Display for Unwritten {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Unwritten { bytes, of, alloc, made_at, copied } = self;
        write!(f, "{bytes} of {} that ", count(*of, "byte"))?;
        f.write_str(if *copied { "were copied from memory that nobody has written" } else { "nobody has written" })?;
        match made_at {
            Some(at) => write!(f, " ({alloc}, made at {at})"),
            None => write!(f, " ({alloc})"),
        }
    }
}

impl fmt::Display for LastRead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let LastRead { pe, call, at, of, parts, more, behind_a_kernel } = self;
        write!(f, "PE {pe} last read at {at} ({call}")?;
        if of != pe {
            write!(f, " from PE {of}")?;
        }
        f.write_str("):")?;
        for ReadPart { span, made_at, by } in parts {
            write!(f, "\n    bytes {}..{} of {}", span.start, span.start + span.len, span.alloc)?;
            if let Some(at) = made_at {
                write!(f, " (made at {at})")?;
            }
            write!(f, ": {by}")?;
        }
        if *more > 0 {
            write!(f, "\n    and {more} more parts")?;
        }
        match behind_a_kernel {
            true => f.write_str("\n    or by a plain store of a kernel: only the first few of a line are recorded"),
            false => Ok(()),
        }
    }
}

impl fmt::Display for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Writer::Nobody => f.write_str("nobody has written them"),
            Writer::Allocation => f.write_str("zero, as they were allocated"),
            Writer::Call { pe, call, at, step, delivered, copied } => {
                let verb = if *delivered { ", delivered" } else { "" };
                write!(f, "written by {call} of PE {pe} at {at}{verb} in step {step}")?;
                match copied {
                    Some(at) => write!(f, ", from memory that nobody had written (made at {at})"),
                    None => Ok(()),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(start: usize, len: usize) -> Span {
        Span { alloc: AllocId(0), start, len }
    }

    /// Of each part that is read: its bytes and the event that wrote it.
    fn read(memory: &Memory, of: Span) -> Vec<(usize, usize, Option<usize>)> {
        let mut found = Vec::new();
        memory.read(0, of, &mut found);
        found.iter().map(|part| (part.span.start, part.span.len, part.by.map(|(event, _)| event))).collect()
    }

    #[test]
    fn the_last_write_of_each_byte_is_known() {
        let mut memory = Memory::default();
        assert_eq!(read(&memory, span(0, 4)), [(0, 4, None)]);
        memory.write(0, span(2, 6), 1, None);
        assert_eq!(read(&memory, span(0, 10)), [(0, 2, None), (2, 6, Some(1)), (8, 2, None)]);
        memory.write(0, span(4, 2), 2, None); // inside
        assert_eq!(read(&memory, span(3, 4)), [(3, 1, Some(1)), (4, 2, Some(2)), (6, 1, Some(1))]);
        memory.write(0, span(0, 5), 3, None); // over an end and a beginning
        assert_eq!(read(&memory, span(0, 8)), [(0, 5, Some(3)), (5, 1, Some(2)), (6, 2, Some(1))]);
        memory.write(0, span(0, 64), 4, None); // over all
        assert_eq!(read(&memory, span(7, 3)), [(7, 3, Some(4))]);
        memory.write(1, span(0, 64), 5, None); // another PE
        assert_eq!(read(&memory, span(7, 3)), [(7, 3, Some(4))]);
    }
}
