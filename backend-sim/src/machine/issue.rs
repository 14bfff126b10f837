//! Operations: what each does when its agent issues it.
//!
//! In order, the effect happens at once. Relaxed, it becomes a transfer (`flight.rs`), and the call ends when the memory model
//! says so: at once, when the source is read, or when the data is there.

use onesided::backend::{AmoOp, Op, SignalUpdate, Span, Values};
use onesided::{At, DType};

use super::agent::{OwnedValues, Phase};
use super::flight::{Data, Kind, Shape};
use super::{Collective, Condition, Machine, Progress, Touch};
use crate::request::Reply;

/// Names the word of an atomic or a scalar where a transfer wants a source.
const NO_SPAN: Span = Span { alloc: onesided::backend::AllocId(u32::MAX), start: 0, len: 0 };

/// Bits of a transfer's name that number its issuer's transfers; above them stands the issuer.
pub(super) const ISSUED: u32 = 26;

impl Machine {
    /// An agent, host or stream, performs an operation.
    #[inline]
    pub(super) fn issue(&mut self, agent: u32, op: &Op, values: &Values<'_>, at: At) -> Progress {
        if self.tracking {
            let orders = matches!(op, Op::Fence | Op::Quiet | Op::Flush) || op.team().is_some();
            self.touch_scope(agent, orders || self.rules.same_target_in_order);
        }
        let me = self.agents[agent as usize].pe;
        match *op {
            Op::Put { dst, src, dtype, pe, nbi, signal } => {
                let shape = Shape::contiguous(dst.len, dtype.size());
                if !self.relaxed {
                    self.heap.copy(pe, dst, me, src);
                    self.wrote_plain(pe, dst);
                    if let Some(update) = signal {
                        self.apply_signal(pe, update);
                    }
                    return Progress::Done;
                }
                if shape.count == 0 && signal.is_none() {
                    return Progress::Done;
                }
                let slot = self.draft(agent, Kind::Put, (pe, dst), (me, src), shape, (op.name(), at));
                self.flight.get_mut(slot).signal = signal;
                self.launch_put(agent, slot, nbi)
            }
            Op::IPut { dst, src, dst_stride, src_stride, count, dtype, pe } => {
                let (dst_stride, src_stride) = (dst_stride as usize, src_stride as usize);
                let shape = Shape { count: count as usize, size: dtype.size(), dst_stride, src_stride };
                let in_place = pe == me && dst.overlaps(&src);
                if !self.relaxed && !in_place {
                    self.copy_elements(shape, 0..shape.count, (pe, dst), (me, src));
                    return Progress::Done;
                }
                let slot = self.draft(agent, Kind::Put, (pe, dst), (me, src), shape, (op.name(), at));
                if !self.relaxed {
                    // the source is read before anything is written, also where both overlap
                    self.capture(slot);
                    self.deliver_put(slot, 0..shape.count);
                    self.flight.land(slot);
                    return Progress::Done;
                }
                self.launch_put(agent, slot, false)
            }
            Op::P { dst, dtype, value, pe } => {
                if !self.relaxed {
                    self.heap.store(pe, dst, value);
                    self.wrote_plain(pe, dst);
                    return Progress::Done;
                }
                let shape = Shape::contiguous(dst.len, dtype.size());
                let slot = self.draft(agent, Kind::Put, (pe, dst), (me, NO_SPAN), shape, (op.name(), at));
                self.flight.get_mut(slot).data = Data::Word(value);
                self.launch_put(agent, slot, false)
            }
            Op::Get { dst, src, dtype, pe, nbi } => {
                let shape = Shape::contiguous(dst.len, dtype.size());
                self.get(agent, (me, dst), (pe, src), shape, nbi, (op.name(), at))
            }
            Op::IGet { dst, src, dst_stride, src_stride, count, dtype, pe } => {
                let (dst_stride, src_stride) = (dst_stride as usize, src_stride as usize);
                let shape = Shape { count: count as usize, size: dtype.size(), dst_stride, src_stride };
                self.get(agent, (me, dst), (pe, src), shape, false, (op.name(), at))
            }
            Op::G { src, dtype, pe } => {
                if !self.relaxed {
                    let value = self.heap.load(pe, src);
                    return self.answer(agent, Reply::Value(value));
                }
                let shape = Shape::contiguous(src.len, dtype.size());
                let slot = self.draft(agent, Kind::Fetch, (me, NO_SPAN), (pe, src), shape, (op.name(), at));
                self.launch_and_wait(agent, slot)
            }
            Op::Signal { update, pe } => {
                if !self.relaxed {
                    self.apply_signal(pe, update);
                    return Progress::Done;
                }
                let shape = Shape::contiguous(0, 8);
                let slot = self.draft(agent, Kind::Put, (pe, update.word), (me, NO_SPAN), shape, (op.name(), at));
                self.flight.get_mut(slot).signal = Some(update);
                self.launch_put(agent, slot, true)
            }
            Op::SignalFetch { word } => {
                self.touch(me, word, false);
                let value = self.heap.load(me, word);
                self.answer(agent, Reply::Value(value))
            }
            Op::Wait { vars, dtype, cmp, against, signal } => {
                let values = OwnedValues::new(values);
                self.wait(agent, Condition { vars, dtype, cmp, against, values, signal })
            }
            Op::Amo { dst, dtype, op, value, cond, fetch, pe } => {
                if !self.relaxed {
                    let old = self.apply_amo(pe, dst, op, value, cond);
                    return self.answer(agent, Reply::Value(old));
                }
                let shape = Shape::contiguous(dst.len, dtype.size());
                let kind = Kind::Amo { op, value, cond };
                let slot = self.draft(agent, kind, (pe, dst), (me, NO_SPAN), shape, (op.name(), at));
                if fetch {
                    return self.launch_and_wait(agent, slot);
                }
                self.launch(agent, slot);
                Progress::Done
            }
            Op::Fill { dst, .. } => {
                self.touch(me, dst, true);
                self.heap.bytes_mut(me, dst).copy_from_slice(values.bytes);
                self.wrote(me, dst);
                Progress::Done
            }
            Op::Fence if !self.rules.fence_is_quiet => {
                self.flight.fence(self.agents[agent as usize].scope());
                Progress::Done
            }
            Op::Fence => self.fence_as_quiet(agent),
            Op::Quiet => self.quiet(agent, None),
            Op::Flush => self.flush(agent),
            Op::Barrier { team } => self.quiet(agent, Some(&Collective::Op(Op::Barrier { team }))),
            Op::Sync { team }
            | Op::Broadcast { team, .. }
            | Op::Fcollect { team, .. }
            | Op::Alltoall { team, .. }
            | Op::Reduce { team, .. }
            | Op::ReduceScatter { team, .. } => {
                let team = self.team_index(me, team);
                self.enter(agent, team, &Collective::Op(*op), at)
            }
        }
    }

    fn get(
        &mut self,
        agent: u32,
        (me, dst): (u32, Span),
        (pe, src): (u32, Span),
        shape: Shape,
        nbi: bool,
        asked: (&'static str, At),
    ) -> Progress {
        if !self.relaxed {
            self.copy_elements(shape, 0..shape.count, (me, dst), (pe, src));
            return Progress::Done;
        }
        if shape.count == 0 {
            return Progress::Done;
        }
        let slot = self.draft(agent, Kind::Get, (me, dst), (pe, src), shape, asked);
        if nbi {
            self.launch(agent, slot);
            return Progress::Done;
        }
        self.launch_and_wait(agent, slot)
    }

    /// A store of values to another PE's memory: to the model, a put whose source is private.
    pub(super) fn store_remote(
        &mut self,
        agent: u32,
        pe: u32,
        dst: Span,
        dtype: DType,
        bytes: &[u8],
        at: At,
    ) -> Progress {
        if !self.relaxed {
            self.heap.bytes_mut(pe, dst).copy_from_slice(bytes);
            self.wrote_plain(pe, dst);
            return Progress::Done;
        }
        let me = self.agents[agent as usize].pe;
        let shape = Shape::contiguous(dst.len, dtype.size());
        let mut buffer = self.flight.buffer();
        buffer.extend_from_slice(bytes);
        let slot = self.draft(agent, Kind::Put, (pe, dst), (me, NO_SPAN), shape, ("write", at));
        self.flight.get_mut(slot).data = Data::Bytes(buffer);
        self.launch(agent, slot);
        Progress::Done
    }

    /// A transfer of an agent, named by its issuer and its number among that issuer's.
    #[inline]
    fn draft(
        &mut self,
        agent: u32,
        kind: Kind,
        dst: (u32, Span),
        src: (u32, Span),
        shape: Shape,
        asked: (&'static str, At),
    ) -> u32 {
        let issuer = &mut self.agents[agent as usize];
        let stream = u64::from(issuer.stream.wrapping_add(1)); // 0 for the host
        let key = (u64::from(issuer.pe) << 11 | stream) << ISSUED | (u64::from(issuer.issued) & ((1 << ISSUED) - 1));
        issuer.issued += 1;
        self.flight.draft(key, kind, dst, src, shape, asked)
    }

    /// Launches a put: blocking ones read their source first, non-blocking ones at a time of their own.
    #[inline]
    fn launch_put(&mut self, agent: u32, slot: u32, nbi: bool) -> Progress {
        let transfer = self.flight.get(slot);
        let moves = transfer.shape.count > 0;
        if !nbi && transfer.is_late() {
            self.capture(slot);
        }
        if !nbi && self.rules.put_returns_delivered && moves {
            return self.launch_and_wait(agent, slot);
        }
        self.launch(agent, slot);
        Progress::Done
    }

    #[inline]
    fn launch(&mut self, agent: u32, slot: u32) {
        let scope = self.agents[agent as usize].scope();
        self.flight.launch(slot, scope, self.config.pieces, self.rules.same_target_in_order);
    }

    fn launch_and_wait(&mut self, agent: u32, slot: u32) -> Progress {
        self.flight.get_mut(slot).waiter = agent;
        self.launch(agent, slot);
        self.block(agent, Phase::Transfer)
    }

    /// Reads the whole source of a put, now.
    fn capture(&mut self, slot: u32) {
        let transfer = self.flight.get(slot);
        let (pe, src, shape) = (transfer.src_pe, transfer.src, transfer.shape);
        if shape.count == 1 {
            self.touch(pe, src, false);
            self.flight.get_mut(slot).data = Data::Word(self.heap.load(pe, src));
            return;
        }
        let mut bytes = self.flight.buffer();
        if shape.is_contiguous() {
            self.touch(pe, src, false);
            bytes.extend_from_slice(self.heap.bytes(pe, src));
        } else {
            for i in 0..shape.count {
                let element = element(src, i * shape.src_stride, shape.size);
                self.touch(pe, element, false);
                bytes.extend_from_slice(self.heap.bytes(pe, element));
            }
        }
        self.flight.get_mut(slot).data = Data::Bytes(bytes);
    }

    /// Copies elements from memory to memory and tells whoever waits there.
    pub(super) fn copy_elements(
        &mut self,
        shape: Shape,
        elements: std::ops::Range<usize>,
        (dst_pe, dst): (u32, Span),
        (src_pe, src): (u32, Span),
    ) {
        if shape.is_contiguous() {
            let (start, len) = (elements.start * shape.size, elements.len() * shape.size);
            let (dst, src) = (part(dst, start, len), part(src, start, len));
            self.touch(src_pe, src, false);
            self.touch(dst_pe, dst, true);
            self.heap.copy(dst_pe, dst, src_pe, src);
            return self.wrote_plain(dst_pe, dst);
        }
        for i in elements {
            let dst = element(dst, i * shape.dst_stride, shape.size);
            let src = element(src, i * shape.src_stride, shape.size);
            self.touch(src_pe, src, false);
            self.touch(dst_pe, dst, true);
            self.heap.copy(dst_pe, dst, src_pe, src);
            self.wrote_plain(dst_pe, dst);
        }
    }

    pub(super) fn apply_signal(&mut self, pe: u32, SignalUpdate { word, value, op }: SignalUpdate) {
        self.touch_as(pe, word, Touch::Atomic);
        let new = op.apply(self.heap.load(pe, word), value);
        self.heap.store(pe, word, new);
        self.wrote(pe, word);
    }

    /// Does an atomic and returns the old value.
    pub(super) fn apply_amo(&mut self, pe: u32, word: Span, op: AmoOp, value: u64, cond: u64) -> u64 {
        self.touch_as(pe, word, if op == AmoOp::Fetch { Touch::Read } else { Touch::Atomic });
        let old = self.heap.load(pe, word);
        if op != AmoOp::Fetch {
            self.heap.store(pe, word, op.apply(old, value, cond, word.len));
            self.wrote(pe, word);
        }
        old
    }
}

/// Bytes `start..start + len` of a span.
pub(super) fn part(span: Span, start: usize, len: usize) -> Span {
    debug_assert!(start + len <= span.len);
    Span { start: span.start + start, len, ..span }
}

/// The `i`-th element of a span.
pub(super) fn element(span: Span, i: usize, size: usize) -> Span {
    part(span, i * size, size)
}
