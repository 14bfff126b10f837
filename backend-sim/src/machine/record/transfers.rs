//! Transfers, step by step, and collectives: entries, and the parts by which they move data.

use std::ops::Range;

use onesided::backend::{Shape, Span};
use onesided::{At, DType};

use super::super::ids::{AgentId, PeId, TeamIndex, TransferId};
use super::super::kernel::left_by;
use super::super::transfer::{Data, Kind, Part, Transfer, Unit, UnitStep, element, part_of};
use super::super::{Id as _, Machine};
use crate::trace::{EventKind, Moved};

/// # Where transfers come from
impl Machine {
    /// An agent's call issues a transfer of this name.
    #[cold]
    pub(in crate::machine) fn record_issued(&mut self, agent: AgentId, key: u64) {
        let record = self.recorded();
        let Some(of) = record.call_of(agent) else { return };
        let dtype = match (&record.trace[of].kind, &record.trace[of].moved) {
            (EventKind::Loads { dtype, .. } | EventKind::Write { dtype, .. }, _) => *dtype,
            (EventKind::Op { op, .. }, _) => op.dtype().unwrap_or(DType::U64),
            (_, moved) => moved.as_ref().map_or(DType::U8, |moved| moved.dtype),
        };
        record.issued.insert(key, (of, dtype));
    }

    /// A kernel's store becomes a transfer of this name. `event`: the access, and the type of its value.
    pub(in crate::machine) fn record_sent(&mut self, key: u64, event: (usize, DType)) {
        if let Some(record) = &mut self.record {
            record.issued.insert(key, event);
        }
    }

    /// A member enters a collective.
    #[cold]
    pub(in crate::machine) fn record_entry(&mut self, agent: AgentId, team: TeamIndex, seq: u32, member: u32, at: At) {
        let name = self.team_name(team);
        let record = self.recorded();
        let (of, here) = (record.call_of(agent), record.trace.len());
        let first = *record.meetings.entry((team, seq)).or_insert(here);
        record.entries.insert((team, seq, member), here);
        let event = self.note_by(agent, EventKind::Entered { team: name, number: seq, first }, at);
        (event.of, event.implied) = (of, true);
    }

    /// A part of a collective becomes a transfer of this name.
    #[cold]
    pub(in crate::machine) fn record_part(&mut self, part: Part, key: u64, dtype: DType) {
        let record = self.recorded();
        if let Some(&of) = record.entries.get(&(part.team, part.seq, part.from)) {
            record.issued.insert(key, (of, dtype));
        }
    }

    /// In order, a part of a collective arrives when its source's member enters.
    #[cold]
    pub(in crate::machine) fn record_part_now(&mut self, part: Part, to: (PeId, Span), bytes: &[u8], dtype: DType) {
        let from = PeId::new(self.teams.get(part.team).members.get(part.from as usize));
        let record = self.recorded();
        let Some(&of) = record.entries.get(&(part.team, part.seq, part.from)) else { return };
        let at = record.trace[of].at;
        let kind = EventKind::Delivered { to: to.0.0, span: to.1, piece: 0, pieces: 1 };
        let event = self.note(from, None, kind, at);
        (event.of, event.moved, event.implied) = (Some(of), Some(Moved::new(dtype, bytes)), true);
    }
}

/// # Steps of transfers
impl Machine {
    /// A transfer takes a step.
    #[cold]
    pub(in crate::machine) fn record_unit(&mut self, unit: Unit) {
        let transfer = self.flight.get(unit.transfer);
        let (key, at, issuer) = (transfer.key, transfer.at, transfer.issuing_pe());
        let issued = self.recorded().issued.get(&key).copied();
        let dtype = issued.map_or(DType::U8, |(_, dtype)| dtype);
        let Some((kind, moved)) = self.step_of_transfer(unit, dtype) else { return };
        let event = self.note(issuer, None, kind, at);
        (event.of, event.moved) = (issued.map(|(of, _)| of), moved);
    }

    /// What a step of a transfer does, and what it moves. `dtype`: of what the transfer moves.
    fn step_of_transfer(&self, unit: Unit, dtype: DType) -> Option<(EventKind, Option<Moved>)> {
        let Unit { transfer: id, piece, step } = unit;
        let transfer = self.flight.get(id);
        let Transfer { src_pe, src, dst_pe, signal, pieces, .. } = *transfer;
        Some(match step {
            UnitStep::Read => {
                let bytes = self.gathered(src_pe, src, transfer.shape, transfer.elements(piece));
                let kind = EventKind::SourceRead { from: src_pe.0, span: src, piece, pieces };
                (kind, Some(Moved::new(dtype, &bytes)))
            }
            UnitStep::Deliver => self.delivery(id, piece, dtype),
            UnitStep::Signal => {
                let update = signal?;
                (EventKind::Signaled { to: dst_pe.0, update }, Some(self.signal_update(dst_pe, update)))
            }
        })
    }

    /// The same of a delivery.
    fn delivery(&self, id: TransferId, piece: u16, dtype: DType) -> (EventKind, Option<Moved>) {
        let Transfer { src_pe, src, dst_pe, dst, pieces, kind, .. } = *self.flight.get(id);
        let delivered = |to: PeId, span| EventKind::Delivered { to: to.0, span, piece, pieces };
        let arriving = |dtype| Some(Moved::new(dtype, &self.arriving(id, piece)));
        match kind {
            Kind::Combine { .. } => (EventKind::Call("reduction combined"), None),
            Kind::Spread => (EventKind::Call("visible on the other path"), None),
            Kind::Load { dtype } => {
                (EventKind::Read { of: src_pe.0, span: src, dtype, piece, pieces }, arriving(dtype))
            }
            Kind::Fetch => (delivered(src_pe, src), arriving(dtype)),
            Kind::Amo { op, value, cond } => {
                let old = self.heap.load(dst_pe, dst);
                let new = op.apply(old, value, cond, dst.len);
                (delivered(dst_pe, dst), Some(Moved::update(dtype, old, new)))
            }
            Kind::Strong { atomic: atomic @ Some(_) } => {
                let old = self.heap.load(dst_pe, dst);
                let (new, _) = left_by(atomic, (old, dst), &self.arriving(id, piece));
                (delivered(dst_pe, dst), Some(Moved::update(dtype, old, new)))
            }
            Kind::Put | Kind::Get | Kind::Store | Kind::Strong { atomic: None } => {
                (delivered(dst_pe, dst), arriving(dtype))
            }
        }
    }

    /// What a piece of a transfer brings, as it arrives now.
    fn arriving(&self, id: TransferId, piece: u16) -> Vec<u8> {
        let transfer = self.flight.get(id);
        let (src_pe, src, range) = (transfer.src_pe, transfer.src, transfer.bytes_of(piece));
        match (transfer.kind, &transfer.data) {
            (Kind::Load { .. }, _) => self.loaded(transfer.dst_pe, src_pe, part_of(src, range.start, range.len())),
            (Kind::Put | Kind::Store, Data::Word(value)) => value.to_le_bytes()[..transfer.shape.size.min(8)].to_vec(),
            (Kind::Put | Kind::Store | Kind::Strong { .. }, Data::Bytes(bytes)) => bytes[range].to_vec(),
            (kind, _) => {
                let (shape, elements) = (transfer.shape, transfer.elements(piece));
                let mut bytes = self.gathered(src_pe, src, shape, elements.clone());
                if let Kind::Get | Kind::Fetch = kind {
                    for (i, value) in elements.zip(bytes.chunks_exact_mut(shape.size)) {
                        self.show(transfer.dst_pe, src_pe, element(src, i * shape.src_stride, shape.size), value);
                    }
                }
                bytes
            }
        }
    }
}

/// # Memory, as it is before the step
impl Machine {
    /// What a host loads from memory of a PE.
    pub(super) fn loaded(&self, reader: PeId, of: PeId, span: Span) -> Vec<u8> {
        let mut bytes = self.heap.bytes(of, span).to_vec();
        if self.mode.needs.relaxed && of != reader {
            self.show(reader, of, span, &mut bytes);
            self.flight.lay_stores_over(self.pes[reader].host_scope, of, span, &mut bytes);
        }
        bytes
    }

    /// Elements of a source, one behind the other.
    pub(super) fn gathered(&self, pe: PeId, src: Span, shape: Shape, elements: Range<usize>) -> Vec<u8> {
        if shape.src_stride == 1 {
            let all = part_of(src, elements.start * shape.size, elements.len() * shape.size);
            return self.heap.bytes(pe, all).to_vec();
        }
        let each = elements.map(|i| element(src, i * shape.src_stride, shape.size));
        each.flat_map(|element| self.heap.bytes(pe, element).iter().copied()).collect()
    }
}
