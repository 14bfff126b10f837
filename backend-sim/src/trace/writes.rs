//! What each event writes. Also the event that ended a wait, or whose value a strong load of a kernel has seen: the last update of the word in the
//! trace.

use std::collections::BTreeMap;

use onesided::backend::{AmoOp, Effect, Moves, Op, Span, Transfer};

use super::{Event, EventKind, Moved};

/// Names, in the end of each wait and in each strong load of a kernel, the last event before it that wrote the word.
pub(crate) fn name_what_ended_waits(trace: &mut [Event]) {
    let mut last: BTreeMap<(u32, Span), Option<usize>> = BTreeMap::new();
    last.extend(trace.iter_mut().filter_map(seen).map(|(word, _)| (word, None)));
    if last.is_empty() {
        return;
    }
    for number in 0..trace.len() {
        if let Some((word, by)) = seen(&mut trace[number]) {
            *by = last[&word];
            continue;
        }
        let event = &trace[number];
        let Some((pe, span)) = written(trace, event) else { continue };
        let parts = parts(trace, event, span);
        let of_alloc = (pe, Span { alloc: span.alloc, start: 0, len: 0 })..(pe, Span { start: usize::MAX, ..span });
        for ((_, variable), update) in last.range_mut(of_alloc) {
            if parts.spans.iter().any(|part| part.overlaps(variable)) {
                *update = Some(number);
            }
        }
    }
}

/// The word that a wait or a strong load has seen, and where the event stands that changed it last.
fn seen(event: &mut Event) -> Option<((u32, Span), &mut Option<usize>)> {
    let pe = event.pe;
    match &mut event.kind {
        EventKind::Returned { variable: Some(variable), by, .. } => Some(((pe, *variable), by)),
        EventKind::Access { of, span, writes: false, strong: true, older: false, by, .. } => Some(((*of, *span), by)),
        _ => None,
    }
}

/// The memory that an event writes: from its first byte to its last.
pub(super) fn written(trace: &[Event], event: &Event) -> Option<(u32, Span)> {
    match &event.kind {
        EventKind::Delivered { to, span, .. } => match operation(trace, event).map(Op::effect) {
            Some(Effect::Transfer(Transfer { moves: Moves::Fetch, .. })) => None,
            Some(Effect::Transfer(Transfer { moves: Moves::Amo { op: AmoOp::Fetch, .. }, .. })) => None,
            // a compare_swap that finds another value leaves it
            Some(Effect::Transfer(Transfer { moves: Moves::Amo { op: AmoOp::CompareSwap, .. }, .. }))
                if event.moved.as_ref().is_some_and(Moved::is_unchanged) =>
            {
                None
            }
            _ => Some((*to, *span)),
        },
        EventKind::Signaled { to, update } => Some((*to, update.word)),
        EventKind::Access { of, span, writes: true, .. } => Some((*of, *span)),
        // a store to another PE's memory has deliveries
        EventKind::Write { of, span, .. } if *of == event.pe => Some((*of, *span)),
        EventKind::Op { op, .. } => match op.effect() {
            Effect::Fill { dst } => Some((event.pe, dst)),
            _ => None,
        },
        _ => None,
    }
}

/// Memory of some elements, and where the first of them stands among all that a call moves, in bytes.
pub(super) struct Parts {
    pub(super) start: usize,
    pub(super) spans: Vec<Span>,
}

/// The memory that an event writes, of all that lies in `span`: that of its piece, where it delivers one.
pub(super) fn parts(trace: &[Event], event: &Event, span: Span) -> Parts {
    let all = || Parts { start: 0, spans: vec![span] };
    let EventKind::Delivered { piece, pieces: pieces @ 1.., .. } = event.kind else { return all() };
    let (size, stride) = match operation(trace, event) {
        Some(op) => match op.effect() {
            Effect::Transfer(transfer) => (transfer.shape.size, transfer.shape.dst_stride),
            _ => (op.dtype().map_or(1, |dtype| dtype.size()), 1),
        },
        None => return all(), // a store: each of its pieces has a span of its own
    };
    parts_of(span, size, stride, (piece, pieces))
}

/// The elements of one piece, of all elements in `span`.
pub(super) fn parts_of(span: Span, size: usize, stride: usize, (piece, pieces): (u16, u16)) -> Parts {
    let step = (size * stride.max(1)).max(1);
    let count = (span.len + step - size.min(step)) / step;
    let (piece, pieces) = (piece as usize, pieces.max(1) as usize);
    let (from, to) = (count * piece / pieces, count * (piece + 1) / pieces);
    let elements = |from: usize, len| Span { start: span.start + from * step, len, ..span };
    let spans = match stride {
        0 | 1 => vec![elements(from, (to - from) * step)],
        _ => (from..to).map(|i| elements(i, size)).collect(),
    };
    Parts { start: from * size, spans }
}

/// The operation that an event is a part of.
pub(super) fn operation<'a>(trace: &'a [Event], event: &Event) -> Option<&'a Op> {
    let mut of = event.of?;
    if let EventKind::Entered { .. } = trace[of].kind {
        of = trace[of].of?; // a part of a collective names the entry of the member that it comes from
    }
    trace[of].op()
}
