//! A word that is waited for in vain, and that nothing was sent to: where an update went that was perhaps meant for it.

use onesided::At;
use onesided::backend::{Effect, Moves, Op, Span, Transfer, Wait};

use super::Machine;
use super::ids::PeId;
use crate::trace::{Event, EventKind};

impl Machine {
    /// For a word of a PE: `; nothing was sent to it, but signal_op of PE 2 at ring.rs:7 went to PE 3's copy, where nobody has looked`. Empty if
    /// something was sent to the word, if a step is still possible, or if the run is not recorded; also if a kernel has written to that memory by a
    /// pointer, because not all such stores are recorded.
    pub(super) fn unsent_report(&self, pe: PeId, word: Span, is_signal: bool) -> String {
        let can_go_on = !self.ready.is_empty() || !self.flight.units.is_empty() || self.kernels.can_go_on();
        let Some(record) = self.record.as_ref().filter(|_| !can_go_on) else { return String::new() };
        let trace = &record.trace;
        let is_here = |to: u32, span: &Span| to == pe.0 && span.overlaps(&word);
        let is_sent = |event: &Event| sent(trace, event).is_some_and(|(to, span)| is_here(to, &span));
        if self.accessed_by_pointer(pe, word.alloc) == Some(true) || trace.iter().any(is_sent) {
            return String::new();
        }
        let astray = trace.iter().find_map(|event| {
            let (to, span) = sent(trace, event).filter(|(_, span)| span.alloc == word.alloc && span.len == word.len)?;
            let (call, at) = update(trace, event, is_signal)?;
            let other_copy = to != pe.0 && span == word;
            let other_place = to == pe.0;
            let is_seen = self.accessed_by_pointer(PeId(to), span.alloc).is_some();
            let is_missed = !is_seen && !trace.iter().any(|event| event.pe == to && looks_at(event, &span));
            if !is_missed || !(other_copy || other_place) {
                return None;
            }
            let place = if other_copy { format!("PE {to}'s copy") } else { format!("{}+{}", span.alloc, span.start) };
            Some(format!(", but {call} of PE {} at {at} went to {place}, where nobody has looked", event.pe))
        });
        format!("; nothing was sent to it{}", astray.unwrap_or_default())
    }
}

/// What another agent than the memory's own host has written.
fn sent(trace: &[Event], event: &Event) -> Option<(u32, Span)> {
    let fetches = |of: usize| {
        matches!(trace[of].op().map(Op::effect), Some(Effect::Transfer(Transfer { moves: Moves::Fetch, .. })))
    };
    match event.kind {
        EventKind::Signaled { to, update } => Some((to, update.word)),
        EventKind::Delivered { .. } if event.of.is_some_and(fetches) => None,
        EventKind::Delivered { to, span, .. } => Some((to, span)),
        EventKind::Write { of, span, .. } if of != event.pe => Some((of, span)),
        EventKind::Op { op, .. } => match op.effect() {
            Effect::Fill { dst } => Some((event.pe, dst)),
            _ => None,
        },
        _ => None,
    }
}

/// The call of an update of one word, by which a PE may tell another something.
fn update(trace: &[Event], event: &Event, of_a_signal: bool) -> Option<(&'static str, At)> {
    let op = trace[event.of?].op()?;
    let is_update = match (op.effect(), &event.kind) {
        (_, EventKind::Signaled { .. }) => true,
        (Effect::Transfer(Transfer { moves: Moves::Amo { .. }, .. }), _) => true,
        (Effect::Transfer(Transfer { moves: Moves::Value(_), .. }), _) => !of_a_signal,
        _ => false,
    };
    is_update.then(|| (op.name(), event.at))
}

/// Whether a PE waits for some memory of its own, or reads it.
fn looks_at(event: &Event, span: &Span) -> bool {
    let by = |op: &Op| match op.effect() {
        Effect::Wait(Wait { vars, .. }) => vars.overlaps(span),
        Effect::FetchSignal { word } => word.overlaps(span),
        _ => false,
    };
    match &event.kind {
        EventKind::Op { op, .. } | EventKind::Enqueued { op, .. } => by(op),
        EventKind::Read { of, span: read, .. } | EventKind::Loads { of, span: read, .. } => {
            *of == event.pe && read.overlaps(span)
        }
        _ => false,
    }
}
