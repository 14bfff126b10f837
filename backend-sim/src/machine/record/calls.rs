//! Calls of hosts, and operations of hosts and streams: what each moves, and what of it happens with the call.

use onesided::backend::{AmoOp, Effect, Moves, Op, SignalUpdate, Span, Transfer, Values};
use onesided::{At, DType};

use super::super::Machine;
use super::super::ids::{AgentId, PeId};
use crate::request::Call;
use crate::trace::{EventKind, Moved, compared};

impl Machine {
    /// A host performs a call.
    #[cold]
    pub(in crate::machine) fn record_call(&mut self, host: AgentId, call: &Call<'_>, at: At) {
        let me = self.agents[host].pe;
        match call {
            Call::Issue { op, values, stream: None } => self.record_op(host, op, values, None, at),
            Call::Issue { op, values, stream: Some(stream) } => {
                let kind = EventKind::Enqueued { stream: *stream, op: **op, values: compared(op, values) };
                self.note_call(host, kind, at, None);
                self.note_enqueued(me, *stream);
            }
            Call::Read { src, pe: of, dtype, .. } if self.is_in_pieces(*src, *dtype) => {
                let kind = EventKind::Loads { of: *of, span: *src, dtype: *dtype };
                self.note_call(host, kind, at, None).implied = true; // its pieces are events
            }
            Call::Read { src, pe: of, dtype, .. } => {
                let kind = EventKind::Read { of: *of, span: *src, dtype: *dtype, piece: 0, pieces: 1 };
                let bytes = self.loaded(me, PeId(*of), *src);
                self.note_call(host, kind, at, Some(Moved::new(*dtype, &bytes)));
            }
            Call::Write { dst, pe: of, dtype, from } => {
                let kind = EventKind::Write { of: *of, span: *dst, dtype: *dtype };
                self.note_call(host, kind, at, Some(Moved::new(*dtype, from)));
                if PeId(*of) != me {
                    self.record_store(host, *of, *dst, Moved::new(*dtype, from), at);
                }
            }
            Call::MulticastWrite { team, dst, dtype, from } => {
                self.note_call(host, EventKind::Call(call.name()), at, Some(Moved::new(*dtype, from)));
                for of in self.team_members(me, *team).iter() {
                    self.record_store(host, of as u32, *dst, Moved::new(*dtype, from), at);
                }
            }
            Call::Record { stream, .. } | Call::WaitEvent { stream, .. } => {
                self.note_call(host, EventKind::Call(call.name()), at, None);
                self.note_enqueued(me, *stream);
            }
            other => {
                self.note_call(host, EventKind::Call(other.name()), at, None);
            }
        }
    }

    /// In order, a store to another PE's memory arrives with its call.
    fn record_store(&mut self, host: AgentId, to: u32, span: Span, moved: Moved, at: At) {
        if !self.mode.needs.relaxed {
            self.note_at_once(host, EventKind::Delivered { to, span, piece: 0, pieces: 1 }, at, moved);
        }
    }

    /// A host, or a stream for the call `of`, performs an operation.
    pub(super) fn record_op(&mut self, agent: AgentId, op: &Op, values: &Values<'_>, of: Option<usize>, at: At) {
        let effect = op.effect();
        let moved = self.moved_by_call(self.agents[agent].pe, op, effect, values);
        self.note_call(agent, EventKind::Op { op: *op, values: compared(op, values) }, at, moved).of = of;
        if let (Effect::Transfer(transfer), false) = (effect, self.mode.needs.relaxed) {
            self.record_transfer_now(agent, &transfer, at);
        }
    }

    /// What an operation of a PE reads while its call lasts, or is given.
    fn moved_by_call(&self, pe: PeId, op: &Op, effect: Effect, values: &Values<'_>) -> Option<Moved> {
        match effect {
            Effect::FetchSignal { word } => Some(Moved::one(DType::U64, self.heap.load(pe, word))),
            Effect::Fill { .. } => op.dtype().map(|dtype| Moved::new(dtype, values.bytes)),
            Effect::Transfer(Transfer { moves, shape, dtype, nbi, .. }) => match moves {
                Moves::Value(value) => Some(Moved::one(dtype, value)),
                Moves::Put { src } if !self.mode.needs.relaxed || self.is_read_at_once(shape) && !nbi => {
                    Some(Moved::new(dtype, &self.gathered(pe, src, shape, 0..shape.count)))
                }
                _ => None,
            },
            _ => None,
        }
    }

    /// The steps of a transfer that happens with its call.
    fn record_transfer_now(&mut self, agent: AgentId, transfer: &Transfer, at: At) {
        if let Some((to, span, moved)) = self.delivered_now(self.agents[agent].pe, transfer) {
            self.note_at_once(agent, EventKind::Delivered { to, span, piece: 0, pieces: 1 }, at, moved);
        }
        if let Transfer { signal: Some(update), peer, .. } = *transfer {
            let moved = self.signal_update(PeId(peer), update);
            self.note_at_once(agent, EventKind::Signaled { to: peer, update }, at, moved);
        }
    }

    /// A thread's atomic changes the word that its loop has waited for.
    pub(in crate::machine) fn record_taken(
        &mut self,
        thread: AgentId,
        (pe, span): (PeId, Span),
        dtype: DType,
        (op, value, cond): (AmoOp, u64, u64),
    ) {
        let Some(at) = self.agents[thread].at.filter(|_| self.record.is_some()) else { return };
        let old = self.heap.load(pe, span);
        let moved = Moved::update(dtype, old, op.apply(old, value, cond, span.len));
        self.note_at_once(thread, EventKind::Delivered { to: pe.0, span, piece: 0, pieces: 1 }, at, moved);
    }

    /// What a PE's transfer delivers, and where, if that happens now.
    fn delivered_now(&self, me: PeId, transfer: &Transfer) -> Option<(u32, Span, Moved)> {
        let Transfer { moves, remote, shape, dtype, peer, .. } = *transfer;
        if shape.count == 0 {
            return None;
        }
        let all_of = |pe, src| Moved::new(dtype, &self.gathered(pe, src, shape, 0..shape.count));
        Some(match moves {
            Moves::Put { src } => (peer, remote, all_of(me, src)),
            Moves::Value(value) => (peer, remote, Moved::one(dtype, value)),
            Moves::Get { dst } => (me.0, dst, all_of(PeId(peer), remote)),
            Moves::Fetch => (peer, remote, all_of(PeId(peer), remote)),
            Moves::Amo { op, value, cond } => {
                let old = self.heap.load(PeId(peer), remote);
                (peer, remote, Moved::update(dtype, old, op.apply(old, value, cond, remote.len)))
            }
            Moves::Nothing => return None,
        })
    }

    /// What a signal makes of its word, as the word is now.
    pub(super) fn signal_update(&self, pe: PeId, SignalUpdate { word, value, op }: SignalUpdate) -> Moved {
        let old = self.heap.load(pe, word);
        Moved::update(DType::U64, old, op.apply(old, value))
    }
}
