//! The steps of a transfer: its source is read, it is delivered, its signal follows.

use onesided::backend::{Span, Until};

use super::agent::State;
use super::ids::{AgentId, TransferId};
use super::past::Past;
use super::transfer::{Data, Kind, Transfer, Unit, UnitStep, element, part_of};
use super::{Machine, Reply, Touch};

impl Machine {
    /// Takes the next step of a transfer.
    #[inline]
    pub(super) fn step_transfer(&mut self, unit: Unit) {
        if self.mode.needs.tracking {
            self.begin_unit(unit);
        }
        if self.record.is_some() {
            self.record_unit(unit);
        }
        if self.races.is_on() {
            self.observe_unit(unit);
        }
        let arrival = if self.paths.matter() { self.before_arrival(unit) } else { None };
        self.take_unit(unit);
        if let Some(arrival) = arrival {
            self.arrived(arrival);
        }
    }

    #[inline]
    fn take_unit(&mut self, unit: Unit) {
        match unit.step {
            UnitStep::Read => self.read_source(unit),
            UnitStep::Deliver => self.deliver(unit),
            UnitStep::Signal => {
                let Transfer { dst_pe, signal, .. } = *self.flight.get(unit.transfer);
                if let Some(update) = signal {
                    self.apply_signal(dst_pe, update);
                }
                self.in_chosen_step = false;
                self.land(unit.transfer, 0);
            }
        }
    }

    fn read_source(&mut self, Unit { transfer: id, piece, .. }: Unit) {
        let transfer = self.flight.get_mut(id);
        let Transfer { src_pe, src, shape, .. } = *transfer;
        let (elements, range) = (transfer.elements(piece), transfer.bytes_of(piece));
        let data = std::mem::replace(&mut transfer.data, Data::Source);
        let mut bytes = match data {
            Data::Bytes(bytes) => bytes,
            Data::Source | Data::Word(_) => {
                let mut bytes = self.flight.buffer();
                bytes.resize(shape.count * shape.size, 0);
                bytes
            }
        };
        let mut read = self.flight.buffer();
        self.gather(src_pe, src, shape, elements, &mut read);
        self.in_chosen_step = false;
        bytes[range].copy_from_slice(&read);
        self.flight.recycle(read);
        self.flight.get_mut(id).data = Data::Bytes(bytes);
        let all_read = self.flight.note_read(id, piece);
        let Transfer { issuer, nbi, waiter, part, .. } = *self.flight.get(id);
        if let (true, Some(issuer)) = (nbi, issuer) {
            self.nbi_source_read(issuer, id, piece);
        }
        if !all_read {
            return;
        }
        if let Some((waiter, Until::SourceRead)) = waiter {
            self.learn(waiter, id);
            self.finish(waiter);
            self.flight.get_mut(id).waiter = None;
        }
        if let Some(part) = part {
            self.part_read(part, id);
        }
    }

    /// A source of a non-blocking put was read: its issuer's flush may end.
    fn nbi_source_read(&mut self, issuer: AgentId, id: TransferId, piece: u16) {
        let agent = &mut self.agents[issuer];
        agent.unread -= 1;
        if let Some(past) = &self.flight.get(id).past {
            agent.reads.join(&past.reads[piece as usize]);
        }
        if agent.unread == 0 && matches!(agent.state, State::Flushing) {
            self.flushed(issuer);
            self.finish(issuer);
        }
    }

    fn deliver(&mut self, Unit { transfer: id, piece, .. }: Unit) {
        let transfer = self.flight.get(id);
        let value = match transfer.kind {
            Kind::Put | Kind::Store => {
                let elements = transfer.elements(piece);
                self.deliver_put(id, elements);
                0
            }
            _ => self.deliver_other(id, piece),
        };
        self.in_chosen_step = false;
        let transfer = self.flight.get_mut(id);
        transfer.undelivered -= 1;
        transfer.delivered |= 1 << piece;
        if transfer.undelivered > 0 {
            return;
        }
        if transfer.signal.is_some() {
            self.flight.units.push(Unit { transfer: id, piece: 0, step: UnitStep::Signal });
            return;
        }
        self.land(id, value);
    }

    /// Delivers what is no put; returns what it fetches.
    fn deliver_other(&mut self, id: TransferId, piece: u16) -> u64 {
        let transfer = self.flight.get(id);
        let Transfer { kind, dst_pe, src_pe, dst, src, shape, waiter, .. } = *transfer;
        let elements = transfer.elements(piece);
        let value = match kind {
            Kind::Put | Kind::Store => unreachable!("it is no put"),
            Kind::Get if self.paths.matter() => {
                self.get_by_path(shape, elements, (dst_pe, dst), (src_pe, src));
                0
            }
            Kind::Get => {
                self.copy_elements(shape, elements, (dst_pe, dst), (src_pe, src));
                0
            }
            Kind::Strong { atomic } => {
                self.strong_write_arrives(id, atomic);
                0
            }
            Kind::Fetch => {
                if let Some((reader, _)) = waiter {
                    self.call_has_read(reader, (src_pe, src));
                }
                self.touch_memory(src_pe, src, Touch::Read);
                if let Some((reader, _)) = waiter {
                    self.has_read_plainly(reader, src_pe, src);
                }
                match self.paths.matter() {
                    true => self.fetch_by_path(dst_pe, src_pe, src),
                    false => self.heap.load(src_pe, src),
                }
            }
            Kind::Load { .. } => {
                self.deliver_load(id, piece);
                0
            }
            Kind::Amo { op, value, cond } => {
                let old = self.apply_amo(dst_pe, dst, op, (value, cond), waiter.is_some());
                if let Some((waiter, _)) = waiter {
                    let changes = old != self.heap.load(dst_pe, dst);
                    if !changes {
                        self.call_has_read(waiter, (dst_pe, dst));
                    }
                    self.has_polled(waiter, dst_pe, dst, changes);
                }
                old
            }
            Kind::Combine { team, seq } => {
                self.combine(team, seq);
                0
            }
            Kind::Spread => {
                self.spread(id);
                0
            }
        };
        self.in_chosen_step = false;
        if let (Kind::Get | Kind::Load { .. }, Some((reader, _))) = (kind, waiter) {
            self.has_read(reader, src_pe, src);
        }
        value
    }

    fn deliver_put(&mut self, id: TransferId, elements: std::ops::Range<usize>) {
        let transfer = self.flight.get_mut(id);
        let Transfer { dst_pe, dst, shape, .. } = *transfer;
        match std::mem::replace(&mut transfer.data, Data::Source) {
            Data::Word(value) => {
                let word = Span { len: shape.size, ..dst };
                self.touch_memory(dst_pe, word, Touch::Write);
                self.heap.store(dst_pe, word, value);
                self.wrote(dst_pe, word);
            }
            Data::Bytes(bytes) => {
                if shape.dst_stride == 1 {
                    let (start, len) = (elements.start * shape.size, elements.len() * shape.size);
                    self.put_bytes(dst_pe, part_of(dst, start, len), &bytes[start..start + len]);
                } else {
                    for i in elements {
                        let to = element(dst, i * shape.dst_stride, shape.size);
                        self.put_bytes(dst_pe, to, &bytes[i * shape.size..(i + 1) * shape.size]);
                    }
                }
                self.flight.get_mut(id).data = Data::Bytes(bytes);
            }
            Data::Source => unreachable!("a put is delivered after its source was read"),
        }
    }

    /// A piece of a load: what is there, under what the host itself has stored.
    fn deliver_load(&mut self, id: TransferId, piece: u16) {
        let transfer = self.flight.get_mut(id);
        let (of, me) = (transfer.src_pe, transfer.dst_pe);
        let range = transfer.bytes_of(piece);
        let span = part_of(transfer.src, range.start, range.len());
        let Data::Bytes(mut bytes) = std::mem::replace(&mut transfer.data, Data::Source) else {
            unreachable!("a load has a buffer")
        };
        self.touch_memory(of, span, Touch::Read);
        let into = &mut bytes[range];
        into.copy_from_slice(self.heap.bytes(of, span));
        if of != me {
            self.see(me, of, span, into);
            self.flight.lay_stores_over(self.pes[me].host_scope, of, span, into);
        }
        self.flight.get_mut(id).data = Data::Bytes(bytes);
    }

    /// Everything of the transfer has happened: whoever waits for it goes on.
    fn land(&mut self, id: TransferId, value: u64) {
        let transfer = self.flight.get_mut(id);
        let Transfer { kind, scope, claimed, waiter, part, dst_pe, .. } = *transfer;
        let awaited = if transfer.awaited.is_empty() { Vec::new() } else { transfer.awaited.clone() };
        let loaded = match (kind, &mut transfer.data) {
            (Kind::Load { .. }, Data::Bytes(bytes)) => Some(std::mem::take(bytes)),
            _ => None,
        };
        if kind != Kind::Spread {
            self.landed.note(self.flight.get(id));
        }
        if let Some((waiter, _)) = waiter {
            self.learn(waiter, id);
            if let Some(ticket) = &self.flight.get(id).ticket {
                self.races.put_returns(waiter, ticket, dst_pe);
            }
        }
        if let Some(part) = part {
            let past = self.flight.get(id).past.as_ref().map(|past| past.done.clone());
            let ticket = self.flight.get(id).ticket.clone();
            self.part_landed(part, past.as_ref(), ticket.as_ref());
        }
        self.flight.land(id);
        if let Some((waiter, _)) = waiter {
            self.agents[waiter].answer(loaded.map_or(Reply::Value(value), Reply::Bytes));
            self.finish(waiter);
        }
        self.claimed_landed(claimed, &awaited);
        if let Some(scope) = scope {
            self.drain_further(self.scopes[scope]);
        }
    }

    /// An agent learns what has happened to a transfer that it waited for.
    fn learn(&mut self, agent: AgentId, id: TransferId) {
        if let Some(past) = &self.flight.get(id).past {
            let agent = &mut self.agents[agent].past;
            match past.reads.is_empty() || self.flight.get(id).undelivered == 0 {
                true => agent.join(&past.done),
                false => past.reads.iter().for_each(|read| agent.join(read)),
            }
        }
    }

    /// What comes before a step of a transfer, and what comes after it.
    fn begin_unit(&mut self, Unit { transfer: id, piece, step }: Unit) {
        let mut before = match step {
            UnitStep::Read => Past::default(),
            UnitStep::Deliver | UnitStep::Signal => self.flight.ordered_before(id),
        };
        let number = self.taken;
        let transfer = self.flight.get_mut(id);
        let pieces = transfer.pieces as usize;
        let Some(past) = &mut transfer.past else { unreachable!("pasts are kept") };
        match step {
            UnitStep::Signal => {
                before.join(&past.issued);
                before.join(&past.done);
            }
            UnitStep::Deliver if !past.reads.is_empty() => before.join(&past.reads[piece as usize]),
            UnitStep::Read | UnitStep::Deliver => before.join(&past.issued),
        }
        let mut with = before.clone();
        with.add(number);
        past.done.join(&with);
        if step == UnitStep::Read {
            past.reads.resize_with(pieces, Past::default);
            past.reads[piece as usize] = with;
        }
        self.step.past = before;
        if let Some(part) = self.flight.get(id).part {
            self.touch_part(part, step != UnitStep::Read);
        }
    }
}
