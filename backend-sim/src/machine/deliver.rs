//! The steps of a transfer: its source is read, it is delivered, its signal follows.

use onesided::backend::Span;

use super::agent::{NONE, Phase};
use super::flight::{Data, Kind, Step, Transfer, Unit};
use super::issue::{element, part};
use super::{Machine, Reply};
use crate::trace::EventKind;

impl Machine {
    /// Takes the next step of a transfer.
    pub(super) fn step_transfer(&mut self, unit: Unit) {
        if self.trace.is_some() {
            self.trace_unit(unit);
        }
        match unit.step {
            Step::Read => self.read_source(unit),
            Step::Deliver => self.deliver(unit),
            Step::Signal => {
                let Transfer { dst_pe, signal, .. } = *self.flight.get(unit.slot);
                if let Some(update) = signal {
                    self.apply_signal(dst_pe, update);
                }
                self.land(unit.slot, 0);
            }
        }
    }

    fn read_source(&mut self, Unit { slot, piece, .. }: Unit) {
        let transfer = self.flight.get_mut(slot);
        let Transfer { src_pe, src, shape, pieces, scope, part: of, .. } = *transfer;
        let data = std::mem::replace(&mut transfer.data, Data::Source);
        let mut bytes = match data {
            Data::Bytes(bytes) => bytes,
            _ => {
                let mut bytes = self.flight.buffer();
                bytes.resize(shape.count * shape.size, 0);
                bytes
            }
        };
        let elements = shape.elements(piece, pieces);
        let (start, len) = (elements.start * shape.size, elements.len() * shape.size);
        let source = part(src, start, len);
        self.touch(src_pe, source, false);
        bytes[start..start + len].copy_from_slice(self.heap.bytes(src_pe, source));
        self.flight.get_mut(slot).data = Data::Bytes(bytes);
        let all_read = self.flight.note_read(slot, piece);
        if scope != NONE {
            self.source_read(scope);
        }
        if let (true, Some(of)) = (all_read, of) {
            self.part_read(of);
        }
    }

    fn deliver(&mut self, Unit { slot, piece, .. }: Unit) {
        let transfer = self.flight.get(slot);
        let Transfer { kind, dst_pe, src_pe, dst, src, shape, pieces, .. } = *transfer;
        let elements = shape.elements(piece, pieces);
        let value = match kind {
            Kind::Put => {
                self.deliver_put(slot, elements);
                0
            }
            Kind::Get => {
                self.copy_elements(shape, elements, (dst_pe, dst), (src_pe, src));
                0
            }
            Kind::Fetch => {
                self.touch(src_pe, src, false);
                self.heap.load(src_pe, src)
            }
            Kind::Amo { op, value, cond } => self.apply_amo(dst_pe, dst, op, value, cond),
            Kind::Combine { team, seq } => {
                self.combine(team, seq);
                0
            }
        };
        let transfer = self.flight.get_mut(slot);
        transfer.undelivered -= 1;
        if transfer.undelivered > 0 {
            return;
        }
        if transfer.signal.is_some() {
            self.flight.units.push(Unit { slot, piece: 0, step: Step::Signal });
            return;
        }
        self.land(slot, value);
    }

    pub(super) fn deliver_put(&mut self, slot: u32, elements: std::ops::Range<usize>) {
        let transfer = self.flight.get_mut(slot);
        let Transfer { dst_pe, dst, shape, .. } = *transfer;
        match std::mem::replace(&mut transfer.data, Data::Source) {
            Data::Word(value) => {
                let word = Span { len: shape.size, ..dst };
                self.touch(dst_pe, word, true);
                self.heap.store(dst_pe, word, value);
                self.wrote_plain(dst_pe, word);
            }
            Data::Bytes(bytes) => {
                if shape.dst_stride == 1 {
                    let (start, len) = (elements.start * shape.size, elements.len() * shape.size);
                    self.deliver_bytes(dst_pe, part(dst, start, len), &bytes[start..start + len]);
                } else {
                    for i in elements {
                        let to = element(dst, i * shape.dst_stride, shape.size);
                        self.deliver_bytes(dst_pe, to, &bytes[i * shape.size..(i + 1) * shape.size]);
                    }
                }
                self.flight.get_mut(slot).data = Data::Bytes(bytes);
            }
            Data::Source => unreachable!("a put is delivered after its source was read"),
        }
    }

    fn deliver_bytes(&mut self, pe: u32, dst: Span, bytes: &[u8]) {
        self.touch(pe, dst, true);
        self.heap.bytes_mut(pe, dst).copy_from_slice(bytes);
        self.wrote_plain(pe, dst);
    }

    /// Everything of the transfer has happened: whoever waits for it goes on.
    fn land(&mut self, slot: u32, value: u64) {
        let Transfer { scope, claim, waiter, part: of, .. } = *self.flight.get(slot);
        self.landed.note(self.flight.get(slot));
        self.flight.land(slot);
        if waiter != NONE {
            debug_assert_eq!(self.agents[waiter as usize].phase, Phase::Transfer);
            self.agents[waiter as usize].reply = Reply::Value(value);
            self.finish(waiter);
        }
        if claim != NONE {
            self.claimed_landed(claim);
        }
        if scope != NONE {
            self.fence_further(scope);
            self.drain_further(scope / 2);
        }
        if let Some(of) = of {
            self.part_landed(of);
        }
    }

    #[cold]
    fn trace_unit(&mut self, Unit { slot, piece, step }: Unit) {
        let transfer = self.flight.get(slot);
        let (pieces, at) = (transfer.pieces, transfer.at);
        let kind = match step {
            Step::Read => EventKind::SourceRead { from: transfer.src_pe, span: transfer.src, piece, pieces },
            Step::Signal => match transfer.signal {
                Some(update) => EventKind::Signaled { to: transfer.dst_pe, update },
                None => return,
            },
            Step::Deliver if matches!(transfer.kind, Kind::Combine { .. }) => EventKind::Call("reduction combined"),
            Step::Deliver => {
                let (to, span) = if transfer.kind == Kind::Fetch {
                    (transfer.src_pe, transfer.src)
                } else {
                    (transfer.dst_pe, transfer.dst)
                };
                EventKind::Delivered { to, span, piece, pieces }
            }
        };
        let issuer = transfer.issuer();
        self.record(issuer, kind, at);
    }
}
