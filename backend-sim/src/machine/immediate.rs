//! An operation happens at once: what an in-order run does with every one, and what a delivery does to memory.

use onesided::backend::{AmoOp, Moves, Shape, SignalUpdate, Span, Transfer};
use onesided::{At, DType, SignalOp};

use super::ids::{AgentId, PeId};
use super::tells::Tells;
use super::transfer::{element, part_of};
use super::{Fold, Machine, Progress, Touch};
use crate::race::How;
use crate::request::Reply;

impl Machine {
    /// The whole transfer: source, target and signal.
    #[inline(always)] // on the hottest path, where most of the description folds away
    pub(super) fn transfer_now(&mut self, agent: AgentId, transfer: &Transfer) -> Progress {
        let me = self.agents[agent].pe;
        let Transfer { moves, remote, shape, signal, .. } = *transfer;
        let peer = PeId(transfer.peer);
        match moves {
            Moves::Put { src } => {
                self.copy_all(shape, (peer, remote), (me, src));
                if let Some(update) = signal {
                    self.apply_signal(peer, update);
                }
                Progress::Done
            }
            Moves::Value(value) => {
                self.heap.store(peer, remote, value);
                self.wrote(peer, remote);
                Progress::Done
            }
            Moves::Nothing => {
                if let Some(update) = signal {
                    self.apply_signal(peer, update);
                }
                Progress::Done
            }
            Moves::Get { dst } => {
                self.copy_all(shape, (me, dst), (peer, remote));
                Progress::Done
            }
            Moves::Fetch => {
                let value = self.heap.load(peer, remote);
                self.call_has_read(agent, (peer, remote));
                self.answer(agent, Reply::Value(value))
            }
            Moves::Amo { op, value, cond } => {
                let old = self.apply_amo(peer, remote, op, (value, cond), true);
                if self.heap.load(peer, remote) == old {
                    self.call_has_read(agent, (peer, remote));
                }
                self.answer(agent, Reply::Value(old))
            }
        }
    }

    /// Copies all elements from memory to memory, in order.
    #[inline(always)] // as its caller
    fn copy_all(&mut self, shape: Shape, dst: (PeId, Span), src: (PeId, Span)) {
        if shape.is_contiguous() {
            self.heap.copy(dst.0, dst.1, src.0, src.1);
            return self.wrote(dst.0, dst.1);
        }
        self.copy_strided(shape, 0..shape.count, dst, src);
    }

    /// Copies elements from memory to memory and tells whoever waits there. The source is read before anything is written,
    /// also where both overlap.
    #[inline]
    pub(super) fn copy_elements(
        &mut self,
        shape: Shape,
        elements: std::ops::Range<usize>,
        dst: (PeId, Span),
        src: (PeId, Span),
    ) {
        if shape.is_contiguous() {
            let (start, len) = (elements.start * shape.size, elements.len() * shape.size);
            let (to, from) = (part_of(dst.1, start, len), part_of(src.1, start, len));
            self.touch_memory(src.0, from, Touch::Read);
            self.touch_memory(dst.0, to, Touch::Write);
            self.heap.copy(dst.0, to, src.0, from);
            return self.wrote(dst.0, to);
        }
        self.copy_strided(shape, elements, dst, src);
    }

    fn copy_strided(
        &mut self,
        shape: Shape,
        elements: std::ops::Range<usize>,
        (dst_pe, dst): (PeId, Span),
        (src_pe, src): (PeId, Span),
    ) {
        let mut bytes = self.flight.buffer();
        self.gather(src_pe, src, shape, elements.clone(), &mut bytes);
        for (i, value) in elements.zip(bytes.chunks_exact(shape.size)) {
            self.put_bytes(dst_pe, element(dst, i * shape.dst_stride, shape.size), value);
        }
        self.flight.recycle(bytes);
    }

    /// Stores bytes that were in transit.
    pub(super) fn put_bytes(&mut self, pe: PeId, dst: Span, bytes: &[u8]) {
        self.touch_memory(pe, dst, Touch::Write);
        self.heap.bytes_mut(pe, dst).copy_from_slice(bytes);
        self.wrote(pe, dst);
    }

    /// A PE stores to its own memory.
    #[inline(always)] // on a hot path
    pub(super) fn write(&mut self, pe: PeId, dst: Span, bytes: &[u8]) {
        self.touch_memory(pe, dst, Touch::Write);
        copy_bytes(self.heap.bytes_mut(pe, dst), bytes);
        self.wrote(pe, dst);
    }

    /// A host loads its own memory, or a peer's that it reaches: several elements in pieces, if that makes a difference.
    #[inline]
    pub(super) fn load(
        &mut self,
        host: AgentId,
        of: PeId,
        src: Span,
        dtype: DType,
        into: &mut [u8],
        at: At,
    ) -> Progress {
        if self.is_in_pieces(src, dtype) {
            return self.load_in_pieces(host, (of, src), dtype, at);
        }
        self.observe(host, of, src, How::Read, dtype.size(), ("read", at));
        self.touch_memory(of, src, Touch::Read);
        self.has_read_plainly(host, of, src);
        copy_bytes(into, self.heap.bytes(of, src));
        if self.mode.needs.relaxed && of != self.agents[host].pe {
            self.see(self.agents[host].pe, of, src, into);
            self.flight.lay_stores_over(self.agents[host].scope, of, src, into);
        }
        Progress::Done
    }

    pub(super) fn apply_signal(&mut self, pe: PeId, SignalUpdate { word, value, op }: SignalUpdate) {
        let old = self.heap.load(pe, word);
        let new = op.apply(old, value);
        if self.in_chosen_step {
            let adds = (op == SignalOp::Add).then_some(value);
            self.touch_atomically(pe, word, (old, new), (adds, None));
        }
        self.heap.store(pe, word, new);
        self.wrote(pe, word);
    }

    /// Does an atomic and returns the old value. `fetches`: somebody gets that.
    pub(super) fn apply_amo(
        &mut self,
        pe: PeId,
        word: Span,
        op: AmoOp,
        (value, cond): (u64, u64),
        fetches: bool,
    ) -> u64 {
        let old = self.heap.load(pe, word);
        if op == AmoOp::Fetch {
            self.touch_memory(pe, word, Touch::Read);
            return old;
        }
        let new = op.apply(old, value, cond, word.len);
        if self.in_chosen_step {
            let adds = (op == AmoOp::Add && !fetches).then_some(value);
            let fold = match op {
                AmoOp::And => Some(Fold::And),
                AmoOp::Or => Some(Fold::Or),
                AmoOp::Xor => Some(Fold::Xor),
                _ => None,
            };
            self.touch_atomically(pe, word, (old, new), (adds, fold.filter(|_| !fetches)));
        }
        if new != old {
            self.heap.store(pe, word, new);
            self.wrote(pe, word);
        }
        old
    }

    /// Notes that a word is updated atomically. `commutes`: how much is added, or which of its like it commutes with, where nothing else
    /// is done with the word.
    pub(super) fn touch_atomically(
        &mut self,
        pe: PeId,
        word: Span,
        replaced: (u64, u64),
        (adds, fold): (Option<u64>, Option<Fold>),
    ) {
        let touch = self.touch_of_update((pe, word), replaced, (adds, fold), None);
        self.touch_memory(pe, word, touch);
    }

    /// How an atomic update touches its word. `tells`: what that tells from now on, in place of what the race detector knows of memory that others
    /// reach.
    pub(super) fn touch_of_update(
        &mut self,
        (pe, word): (PeId, Span),
        replaced: (u64, u64),
        (adds, fold): (Option<u64>, Option<Fold>),
        tells: Option<Tells>,
    ) -> Touch {
        let number = self.number();
        match (&mut self.assumed, adds) {
            (None, _) => Touch::Atomic,
            (Some(assumed), Some(by)) => assumed.add(pe, word, by, replaced.1, number),
            (Some(assumed), None) => {
                let tells = tells.unwrap_or_else(|| Tells::of(&mut self.races, pe, word));
                let by_kernel = self.step.by.agent.is_some_and(|agent| self.agents[agent].is_in_kernel());
                assumed.update(pe, word, replaced, fold, (number, tells), by_kernel)
            }
        }
    }
}

/// Copies bytes; a single word without calling memcpy.
#[inline]
fn copy_bytes(to: &mut [u8], from: &[u8]) {
    match (<&mut [u8; 8]>::try_from(&mut *to), <&[u8; 8]>::try_from(from)) {
        (Ok(to), Ok(from)) => *to = *from,
        _ => to.copy_from_slice(from),
    }
}
