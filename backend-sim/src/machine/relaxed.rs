//! An operation becomes a transfer, and its call ends when the memory model says so: at once, when the source is read, or
//! when the data is there.

use onesided::backend::{Moves, Shape, Span, Transfer, Until};
use onesided::{At, DType};

use super::agent::State;
use super::flight::Draft;
use super::ids::{AgentId, PeId, TransferId};
use super::transfer::{Data, Kind, NO_SPAN, TransferPast, element, part_of};
use super::{Machine, Progress, Touch};
use crate::lint::Notice;
use crate::race::{How, Lane};

/// Bits of a transfer's name that number its issuer's transfers; above them stands the issuer.
pub(super) const ISSUED: u32 = 26;

/// The names of transfers of kernels have this bit, and more bits for their issuers.
const IN_KERNEL: u64 = 1 << 53;

/// Bits that are left to number a PE's agents in kernels, where so many PEs take theirs.
pub(super) fn bits_of_ordinals(n_pes: usize) -> u32 {
    let pes = usize::BITS - n_pes.leading_zeros();
    (IN_KERNEL.trailing_zeros() - ISSUED).saturating_sub(pes)
}

/// The operation that asks, and its line.
pub(super) type Asked = (&'static str, At);

impl Machine {
    /// An agent issues a transfer.
    #[inline(always)] // on a hot path, where most of the description folds away
    pub(super) fn launch(&mut self, agent: AgentId, transfer: &Transfer, asked: Asked) -> Progress {
        let me = self.agents[agent].pe;
        let Transfer { moves, remote, shape, signal, until, nbi, .. } = *transfer;
        if shape.count == 0 && signal.is_none() {
            return Progress::Done;
        }
        let remote = (PeId(transfer.peer), remote);
        let (kind, dst, src) = match moves {
            Moves::Put { src } => (Kind::Put, remote, (me, src)),
            Moves::Value(_) => (Kind::Put, remote, (me, NO_SPAN)),
            // its target is that of its signal
            Moves::Nothing => (Kind::Put, (remote.0, signal.map_or(remote.1, |update| update.word)), (me, NO_SPAN)),
            Moves::Get { dst } => (Kind::Get, (me, dst), remote),
            Moves::Fetch => (Kind::Fetch, (me, NO_SPAN), remote),
            Moves::Amo { op, value, cond } => (Kind::Amo { op, value, cond }, remote, (me, NO_SPAN)),
        };
        let ticket = if self.races.is_on() { Some(self.observe_flying(agent, transfer, asked)) } else { None };
        let id = self.draft(agent, kind, dst, src, shape, asked);
        let flying = self.flight.get_mut(id);
        flying.signal = signal;
        flying.nbi = nbi;
        flying.ticket = ticket;
        match moves {
            Moves::Value(value) => flying.data = Data::Word(value),
            Moves::Put { .. } if until == Until::SourceRead && self.is_read_at_once(shape) => self.capture(id),
            _ => {}
        }
        // a blocking put under a profile in which it has arrived when it returns
        let arrives = self.promises.put_arrives && until == Until::SourceRead && shape.count > 0;
        let late = self.flight.get(id).is_late();
        match until {
            _ if self.config.sequential => self.launch_and_wait(agent, id, Until::Delivered),
            Until::Delivered => self.launch_and_wait(agent, id, Until::Delivered),
            Until::SourceRead if arrives => self.launch_and_wait(agent, id, Until::Delivered),
            Until::SourceRead if late => self.launch_and_wait(agent, id, Until::SourceRead),
            Until::SourceRead | Until::Issued => {
                self.fly(agent, id);
                Progress::Done
            }
        }
    }

    /// Whether a blocking put reads its source in one step, by which its call ends.
    pub(super) fn is_read_at_once(&self, shape: Shape) -> bool {
        shape.count.min(self.config.pieces) <= 1
    }

    /// Whether a load of several elements is several steps.
    #[inline]
    pub(super) fn is_in_pieces(&self, src: Span, dtype: DType) -> bool {
        self.mode.needs.relaxed && src.len > dtype.size() && self.config.pieces > 1
    }

    /// A load becomes a transfer to the host's private memory; its reply carries the bytes.
    pub(super) fn load_in_pieces(&mut self, host: AgentId, src: (PeId, Span), dtype: DType, at: At) -> Progress {
        let me = self.agents[host].pe;
        let shape = Shape::contiguous(src.1.len, dtype.size());
        let mut bytes = self.flight.buffer();
        bytes.resize(src.1.len, 0);
        let id = self.draft(host, Kind::Load { dtype }, (me, NO_SPAN), src, shape, ("read", at));
        let ticket = self.races.issue(host, src.0, Lane::Steps, false, ("read", at));
        let load = self.flight.get_mut(id);
        load.ticket = ticket;
        load.data = Data::Bytes(bytes);
        load.waiter = Some((host, Until::Delivered));
        self.begin_past(host, id);
        self.flight.launch(id, None, self.config.pieces, false);
        self.block(host, State::Transferring)
    }

    /// A store of values to another PE's memory: ordinary stores, which others see at times of their own. Each piece is a
    /// transfer of its own, because it is ordered with other stores to the same bytes only.
    pub(super) fn store(&mut self, host: AgentId, pe: PeId, dst: Span, dtype: DType, bytes: &[u8], at: At) {
        self.lint(|| Notice::Changed { pe, span: dst }); // its own PE sees it from now on
        if !self.mode.needs.relaxed || self.config.sequential {
            if let Some(ticket) = self.races.issue(host, pe, Lane::Stores, false, ("write", at)) {
                self.races.transfer(&ticket, pe, dst, How::Write, dtype.size());
            }
            return self.write(pe, dst, bytes);
        }
        let me = self.agents[host].pe;
        let count = Shape::contiguous(dst.len, dtype.size()).count;
        let pieces = count.min(self.config.pieces);
        for piece in 0..pieces {
            let [start, end] = [piece, piece + 1].map(|piece| count * piece / pieces * dtype.size());
            let mut buffer = self.flight.buffer();
            buffer.extend_from_slice(&bytes[start..end]);
            let dst = part_of(dst, start, end - start);
            // one step: its elements are delivered together
            let shape = Shape::whole(end - start);
            let id = self.draft(host, Kind::Store, (pe, dst), (me, NO_SPAN), shape, ("write", at));
            let ticket = self.races.issue(host, pe, Lane::Stores, false, ("write", at));
            let store = self.flight.get_mut(id);
            store.ticket = ticket;
            (store.data, store.continues) = (Data::Bytes(buffer), piece > 0);
            self.fly(host, id);
        }
    }

    /// A transfer of an agent, named by its issuer and its number among that issuer's.
    #[inline(always)] // on a hot path, where the kind is known
    pub(super) fn draft(
        &mut self,
        agent: AgentId,
        kind: Kind,
        dst: (PeId, Span),
        src: (PeId, Span),
        shape: Shape,
        (call, at): Asked,
    ) -> TransferId {
        let issuer = &mut self.agents[agent];
        let name = match issuer.is_in_kernel() {
            false => u64::from(issuer.pe.0) << 11 | u64::from(issuer.ordinal()),
            true => IN_KERNEL >> ISSUED | u64::from(issuer.pe.0) << self.ordinals | u64::from(issuer.ordinal()),
        };
        let key = name << ISSUED | (u64::from(issuer.issued) & ((1 << ISSUED) - 1));
        issuer.issued += 1;
        if self.record.is_some() {
            self.record_issued(agent, key);
        }
        let id = self.flight.draft(Draft { key, kind, dst, src, shape, call, at });
        self.flight.get_mut(id).issuer = Some(agent);
        id
    }

    fn launch_and_wait(&mut self, agent: AgentId, id: TransferId, until: Until) -> Progress {
        self.flight.get_mut(id).waiter = Some((agent, until));
        self.fly(agent, id);
        let state = if until == Until::SourceRead { State::Reading } else { State::Transferring };
        self.block(agent, state)
    }

    /// The transfer is in flight, in its issuer's scope.
    #[inline]
    pub(super) fn fly(&mut self, agent: AgentId, id: TransferId) {
        self.begin_past(agent, id);
        let scope = self.agents[agent].scope;
        let is_store = matches!(self.flight.get(id).kind, Kind::Store | Kind::Strong { .. });
        let stores_in_kernel = is_store && self.agents[agent].is_in_kernel();
        let takes_turn = self.promises.in_order && !stores_in_kernel && !self.flight.get(id).nbi;
        if takes_turn && self.takes_turns_by_thread(agent) {
            self.flight.order_by_thread(scope);
        }
        self.flight.launch(id, Some(scope), self.config.pieces, takes_turn);
        let transfer = self.flight.get_mut(id);
        if transfer.nbi {
            self.agents[agent].unread += u32::from(transfer.unread);
            if let Some(claimed) = self.starting.take() {
                transfer.claimed = claimed;
            }
        }
    }

    #[inline]
    fn begin_past(&mut self, agent: AgentId, id: TransferId) {
        if self.mode.needs.tracking {
            let issued = self.agents[agent].past.clone();
            self.flight.get_mut(id).past = Some(Box::new(TransferPast { issued, ..TransferPast::default() }));
        }
    }

    /// Reads the source of a put of one piece, now.
    #[inline(always)] // as its caller
    fn capture(&mut self, id: TransferId) {
        let transfer = self.flight.get(id);
        let (pe, src, shape) = (transfer.src_pe, transfer.src, transfer.shape);
        if let Some(ticket) = transfer.ticket.clone() {
            self.observe_read(&ticket, (pe, src), shape, 0..shape.count);
        }
        if shape.count == 1 {
            let src = element(src, 0, shape.size);
            self.touch_memory(pe, src, Touch::Read);
            self.flight.get_mut(id).data = Data::Word(self.heap.load(pe, src));
            return;
        }
        let mut bytes = self.flight.buffer();
        self.gather(pe, src, shape, 0..shape.count, &mut bytes);
        self.flight.get_mut(id).data = Data::Bytes(bytes);
    }

    /// Reads elements of a source, and appends them to `bytes`.
    pub(super) fn gather(
        &mut self,
        pe: PeId,
        src: Span,
        shape: Shape,
        elements: std::ops::Range<usize>,
        bytes: &mut Vec<u8>,
    ) {
        if shape.src_stride == 1 {
            let source = part_of(src, elements.start * shape.size, elements.len() * shape.size);
            self.touch_memory(pe, source, Touch::Read);
            return bytes.extend_from_slice(self.heap.bytes(pe, source));
        }
        for i in elements {
            let element = element(src, i * shape.src_stride, shape.size);
            self.touch_memory(pe, element, Touch::Read);
            bytes.extend_from_slice(self.heap.bytes(pe, element));
        }
    }
}
