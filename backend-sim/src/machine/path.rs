//! Paths: what has arrived at a PE, and is not yet visible to those who read its memory on another path.
//!
//! Where nodes have several PEs, a PE's memory is reached on two paths: from its own node, and from other nodes. A transport may promise
//! what it delivers to the destination PE alone ([`Promises::one_fabric`](crate::Promises)). Then a delivery has a second step: until it is
//! taken, PEs on the other path see what was there before. The PE itself and PEs on the writer's path see the new value at once.
//!
//! Everything that has arrived at a PE becomes visible when the PE synchronizes with somebody: when something that it issued is
//! delivered, or when it enters a collective that synchronizes. After that, the second step of a delivery changes nothing. It is taken all
//! the same, so that every run has the same steps.

use std::collections::BTreeMap;

use onesided::At;
use onesided::backend::{AllocId, Shape, Span};

use super::flight::Draft;
use super::ids::{PeId, TransferId};
use super::past::Past;
use super::transfer::{Kind, NO_SPAN, Transfer, TransferPast, Unit, UnitStep, element, part_of};
use super::{Fold, Machine, Object, Touch};

/// The paths of a cluster, and what is not visible on them.
#[derive(Debug, Default)]
pub(super) struct Paths {
    /// PEs on a node, where the path matters.
    pes_per_node: Option<u32>,
    /// In the order of their arrival.
    hidden: Vec<Hidden>,
    /// What each second step makes visible, if nothing else has.
    spreads: BTreeMap<TransferId, (PeId, Vec<Span>)>,
}

/// Bytes that have arrived at a PE, as they were before.
#[derive(Debug)]
struct Hidden {
    pe: PeId,
    span: Span,
    /// Who sees these: PEs of other nodes, or of the same node.
    from_far: bool,
    before: Vec<u8>,
    /// The second step of the delivery.
    spread: TransferId,
}

/// How a PE's synchronization touches what has arrived there. Two of them commute: the second finds nothing left.
const CLEARS: Touch = Touch::Fold(Fold::And);

/// Steps of a transfer that spreads another's delivery, or its signal, have names of their own: these bits of the key.
const SPREADS: u64 = 1 << 52;
const SPREADS_SIGNAL: u64 = 2 << 52;

/// A delivery, before it is made.
pub(super) struct Arrival {
    writer: PeId,
    pe: PeId,
    before: Vec<(Span, Vec<u8>)>,
    key: u64,
    piece: u16,
    asked: (&'static str, At),
}

impl Paths {
    /// A run begins. `pes_per_node`: where the path matters.
    pub(super) fn reset(&mut self, pes_per_node: Option<usize>) {
        self.pes_per_node = pes_per_node.map(|pes| pes as u32);
        self.hidden.clear();
        self.spreads.clear();
    }

    /// Whether the path matters.
    #[inline]
    pub(super) fn matter(&self) -> bool {
        self.pes_per_node.is_some()
    }

    /// Whether a PE reaches another from another node.
    fn is_far(&self, from: PeId, to: PeId) -> bool {
        self.pes_per_node.is_some_and(|pes| from.0 / pes != to.0 / pes)
    }

    /// The memory is gone.
    pub(super) fn freed(&mut self, alloc: AllocId) {
        self.hidden.retain(|hidden| hidden.span.alloc != alloc);
    }

    /// Lays over bytes of a PE's memory what `reader` sees in their place. Returns whether that is something else.
    fn lay_over(&self, reader: PeId, pe: PeId, span: Span, bytes: &mut [u8]) -> bool {
        let mut is_old = false;
        let far = self.is_far(reader, pe);
        // the one that arrived first says what is still seen
        for hidden in self.hidden.iter().rev().filter(|hidden| hidden.pe == pe && hidden.from_far == far) {
            if let Some((from, to)) = common(hidden.span, span) {
                let before = &hidden.before[from - hidden.span.start..to - hidden.span.start];
                let now = &mut bytes[from - span.start..to - span.start];
                is_old |= now != before;
                now.copy_from_slice(before);
            }
        }
        is_old
    }

    /// A PE has written: those on its path see that.
    fn wrote(&mut self, writer: PeId, pe: PeId, span: Span, bytes: &[u8]) {
        let far = self.is_far(writer, pe);
        for hidden in self.hidden.iter_mut().filter(|hidden| hidden.pe == pe && hidden.from_far == far) {
            if let Some((from, to)) = common(hidden.span, span) {
                let before = &mut hidden.before[from - hidden.span.start..to - hidden.span.start];
                before.copy_from_slice(&bytes[from - span.start..to - span.start]);
            }
        }
    }
}

/// The bytes that two spans have in common.
fn common(a: Span, b: Span) -> Option<(usize, usize)> {
    let (from, to) = (a.start.max(b.start), (a.start + a.len).min(b.start + b.len));
    (a.alloc == b.alloc && from < to).then_some((from, to))
}

/// # Writing
impl Machine {
    /// A transfer takes a step: what it is going to change in another PE's memory, if the path matters.
    pub(super) fn before_arrival(&mut self, Unit { transfer: id, piece, step }: Unit) -> Option<Arrival> {
        let transfer = self.flight.get(id);
        let Transfer { kind, dst_pe: pe, dst, shape, signal, part, key, call, at, .. } = *transfer;
        let writer = transfer.issuing_pe();
        let spans: Vec<Span> = match (step, kind) {
            _ if part.is_some() => return None, // a collective's target is its member's business
            (UnitStep::Signal, _) => signal.into_iter().map(|update| update.word).collect(),
            (UnitStep::Deliver, Kind::Put | Kind::Store | Kind::Strong { .. }) if shape.dst_stride == 1 => {
                let range = transfer.bytes_of(piece);
                vec![part_of(dst, range.start, range.len())]
            }
            (UnitStep::Deliver, Kind::Put | Kind::Store) => {
                transfer.elements(piece).map(|i| element(dst, i * shape.dst_stride, shape.size)).collect()
            }
            (UnitStep::Deliver, Kind::Amo { .. }) => vec![dst],
            _ => return None,
        };
        // whatever it brings, somebody can synchronize with it
        self.synchronizes(writer);
        if writer == pe {
            return None;
        }
        if spans.first().is_some_and(|span| self.path_matters(pe, span.alloc)) {
            self.touch(Object::Arrivals(pe), Touch::Read);
        }
        let before = spans.into_iter().map(|span| (span, self.heap.bytes(pe, span).to_vec())).collect();
        let key = key | if step == UnitStep::Signal { SPREADS_SIGNAL } else { SPREADS };
        Some(Arrival { writer, pe, before, key, piece, asked: (call, at) })
    }

    /// The delivery has been made: those on the other path see it by a step of its own.
    pub(super) fn arrived(&mut self, Arrival { writer, pe, before, key, piece, asked: (call, at) }: Arrival) {
        let shape = Shape::contiguous(0, 1);
        let id = self.flight.draft(Draft {
            key,
            kind: Kind::Spread,
            dst: (pe, NO_SPAN),
            src: (writer, NO_SPAN),
            shape,
            call,
            at,
        });
        let past = self.mode.needs.tracking.then(|| {
            let mut issued: Past = self.step.past.clone();
            issued.add(self.taken);
            Box::new(TransferPast { issued, ..TransferPast::default() })
        });
        let spread = self.flight.get_mut(id);
        (spread.pieces, spread.undelivered, spread.unread, spread.scope, spread.past) = (1, 1, 0, None, past);
        self.flight.units.push(Unit { transfer: id, piece, step: UnitStep::Deliver });
        let from_far = !self.paths.is_far(writer, pe);
        self.paths.spreads.insert(id, (pe, before.iter().map(|(span, _)| *span).collect()));
        for (span, before) in before {
            let now = self.heap.bytes(pe, span).to_vec();
            self.paths.wrote(writer, pe, span, &now);
            self.paths.hidden.push(Hidden { pe, span, from_far, before, spread: id });
        }
    }

    /// What a delivery has brought becomes visible on the other path.
    pub(super) fn spread(&mut self, id: TransferId) {
        self.paths.hidden.retain(|hidden| hidden.spread != id);
        // also where it changes nothing any more: earlier it would have
        let (pe, spans) = self.paths.spreads.remove(&id).expect("it was issued with them");
        for span in spans {
            if self.path_matters(pe, span.alloc) {
                self.touch(Object::seen(pe, span), Touch::Write);
            }
        }
    }

    /// Whether it matters when what arrives in an allocation of a PE becomes visible on the other path: a read may see the old value, and
    /// is no finding.
    fn path_matters(&self, pe: PeId, alloc: AllocId) -> bool {
        self.assumed.as_ref().is_none_or(|assumed| assumed.fabric.matters((pe, alloc)))
    }

    /// Whether a step of a transfer makes something visible of which it does not matter when.
    pub(super) fn is_spread_at_once(&self, unit: Unit) -> bool {
        let Some((pe, spans)) = self.paths.spreads.get(&unit.transfer) else { return false };
        spans.first().is_none_or(|span| !self.path_matters(*pe, span.alloc))
    }

    /// A PE synchronizes with others: what has arrived there is visible to everybody.
    pub(super) fn synchronizes(&mut self, pe: PeId) {
        if self.paths.matter() {
            if self.assumed.as_ref().is_none_or(|assumed| assumed.fabric.matters_at(pe)) {
                self.touch(Object::Arrivals(pe), CLEARS);
            }
            self.paths.hidden.retain(|hidden| hidden.pe != pe);
        }
    }
}

/// # Reading
impl Machine {
    /// A PE reads another's memory: what it sees, in the place of what is there.
    pub(super) fn see(&mut self, reader: PeId, pe: PeId, span: Span, bytes: &mut [u8]) {
        if !self.paths.matter() || reader == pe {
            return;
        }
        if let Some(assumed) = &mut self.assumed {
            assumed.fabric.read((pe, span.alloc));
        }
        if self.path_matters(pe, span.alloc) {
            self.touch(Object::Arrivals(pe), Touch::Read);
            self.touch(Object::seen(pe, span), Touch::Read);
        }
        let is_old = self.paths.lay_over(reader, pe, span, bytes);
        debug_assert!(!is_old || !self.races.is_on() || self.races.has_found(), "a read of an old value is a race");
    }

    /// The same, for a trace: it is no read.
    pub(super) fn show(&self, reader: PeId, pe: PeId, span: Span, bytes: &mut [u8]) {
        if self.paths.matter() && reader != pe {
            self.paths.lay_over(reader, pe, span, bytes);
        }
    }

    /// A word of another PE, where the path matters.
    pub(super) fn fetch_by_path(&mut self, reader: PeId, pe: PeId, word: Span) -> u64 {
        let mut bytes = [0; 8];
        bytes[..word.len].copy_from_slice(self.heap.bytes(pe, word));
        self.see(reader, pe, word, &mut bytes[..word.len]);
        u64::from_le_bytes(bytes)
    }

    /// A get of elements, where the path matters.
    pub(super) fn get_by_path(
        &mut self,
        shape: Shape,
        elements: std::ops::Range<usize>,
        (dst_pe, dst): (PeId, Span),
        (src_pe, src): (PeId, Span),
    ) {
        let mut bytes = self.flight.buffer();
        self.gather(src_pe, src, shape, elements.clone(), &mut bytes);
        for (i, value) in elements.zip(bytes.chunks_exact_mut(shape.size)) {
            self.see(dst_pe, src_pe, element(src, i * shape.src_stride, shape.size), value);
            self.put_bytes(dst_pe, element(dst, i * shape.dst_stride, shape.size), value);
        }
        self.flight.recycle(bytes);
    }
}
