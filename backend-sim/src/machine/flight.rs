//! Transfers in flight, and the only place that knows what fence and quiet mean for them.
//!
//! A transfer is issued, its source is read, it is delivered piece by piece. Each thing that may happen to it next is
//! a [`Unit`] in [`Flight::units`]: these are the choices of a schedule.

use std::collections::BTreeSet;

use onesided::At;
use onesided::backend::{AmoOp, SignalUpdate, Span};

use crate::machine::agent::NONE;

/// One put, get, signal, atomic, or part of a collective, from issue to delivery.
#[derive(Debug)]
pub(crate) struct Transfer {
    /// The same in every schedule that issues it: the issuer, and a number among its transfers.
    pub(crate) key: u64,
    pub(crate) kind: Kind,
    pub(crate) dst_pe: u32,
    pub(crate) src_pe: u32,
    pub(crate) dst: Span,
    pub(crate) src: Span,
    pub(crate) shape: Shape,
    pub(crate) data: Data,
    pub(crate) signal: Option<SignalUpdate>,
    /// Pieces in all, not yet delivered, and whose source is not yet read.
    pub(crate) pieces: u16,
    pub(crate) undelivered: u16,
    pub(crate) unread: u16,
    /// Bit `i`: the source of piece `i` has been read.
    pub(crate) read: u64,
    /// The issue scope; `NONE` for parts of collectives, which no fence or quiet touches.
    pub(crate) scope: u32,
    /// Earlier transfers that a fence puts before this one.
    pub(crate) blockers: u32,
    epoch: u32,
    position: u32,
    /// The agent whose quiet waits for this.
    pub(crate) claim: u32,
    /// The agent whose call ends with this.
    pub(crate) waiter: u32,
    pub(crate) part: Option<Part>,
    /// The operation and line that asked for it.
    pub(crate) call: &'static str,
    pub(crate) at: At,
}

/// What a transfer does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Data, then perhaps a signal.
    Put,
    /// Remote data to local memory.
    Get,
    /// Remote data to the caller.
    Fetch,
    /// An atomic; the old value goes to the caller if it waits.
    Amo { op: AmoOp, value: u64, cond: u64 },
    /// The moment in which a reduction has read every source.
    Combine { team: u32, seq: u32 },
}

/// How the elements of a transfer lie.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub(crate) count: usize,
    pub(crate) size: usize,
    pub(crate) dst_stride: usize,
    pub(crate) src_stride: usize,
}

/// Where a put's data is.
#[derive(Debug)]
pub(crate) enum Data {
    /// Still in the source.
    Source,
    /// One element, captured.
    Word(u64),
    /// Captured, contiguous.
    Bytes(Vec<u8>),
}

/// Which part of which collective.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part {
    pub(crate) team: u32,
    pub(crate) seq: u32,
    pub(crate) from: u32,
    pub(crate) to: u32,
}

/// One thing that may happen to a transfer next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unit {
    pub(crate) slot: u32,
    pub(crate) piece: u16,
    pub(crate) step: Step,
}

/// What happens to the piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Its source is read.
    Read,
    /// It is delivered.
    Deliver,
    /// The signal behind all pieces is delivered.
    Signal,
}

/// Everything in flight.
#[derive(Debug, Default)]
pub(crate) struct Flight {
    slots: Vec<Transfer>,
    /// Slots that this run has used, from 0; those above are left over from earlier runs.
    used: usize,
    /// Used slots that are free again.
    free: Vec<u32>,
    /// What may happen next, in no meaningful but a deterministic order.
    pub(crate) units: Vec<Unit>,
    scopes: Vec<Scope>,
    /// Byte buffers of finished transfers, to be used again.
    buffers: Vec<Vec<u8>>,
}

/// What one issue scope has in flight.
#[derive(Debug, Default)]
struct Scope {
    live: Vec<u32>,
    /// Live transfers that wait for blockers.
    held: Vec<u32>,
    epoch: u32,
    /// Pieces of non-blocking puts whose source is not yet read.
    unread: u32,
}

impl Shape {
    pub(crate) fn contiguous(len: usize, size: usize) -> Shape {
        Shape { count: len / size, size, dst_stride: 1, src_stride: 1 }
    }

    pub(crate) fn is_contiguous(&self) -> bool {
        self.dst_stride == 1 && self.src_stride == 1
    }

    /// The elements of piece `piece` of `pieces`.
    #[inline]
    pub(crate) fn elements(&self, piece: u16, pieces: u16) -> std::ops::Range<usize> {
        let (piece, pieces) = (piece as usize, pieces as usize);
        if pieces == 1 {
            return 0..self.count; // the most frequent case, without its division
        }
        self.count * piece / pieces..self.count * (piece + 1) / pieces
    }
}

impl Transfer {
    /// What [`Flight::draft`] fills in; also what a landed transfer becomes.
    fn blank(at: At) -> Transfer {
        let nothing = Span { alloc: onesided::backend::AllocId(u32::MAX), start: 0, len: 0 };
        Transfer {
            key: 0,
            kind: Kind::Put,
            dst_pe: 0,
            src_pe: 0,
            dst: nothing,
            src: nothing,
            shape: Shape::contiguous(0, 1),
            data: Data::Source,
            signal: None,
            pieces: 0,
            undelivered: 0,
            unread: 0,
            read: 0,
            scope: NONE,
            blockers: 0,
            epoch: 0,
            position: NONE,
            claim: NONE,
            waiter: NONE,
            part: None,
            call: "",
            at,
        }
    }

    /// Makes it blank again, except for what `draft` and `launch` set; returns its buffer.
    #[inline]
    fn clear(&mut self) -> Option<Vec<u8>> {
        self.signal = None;
        self.read = 0;
        self.blockers = 0;
        self.claim = NONE;
        self.waiter = NONE;
        self.part = None;
        match std::mem::replace(&mut self.data, Data::Source) {
            Data::Bytes(bytes) => Some(bytes),
            Data::Source | Data::Word(_) => None,
        }
    }

    /// Gets are neither ordered by a fence nor do they order anything.
    fn is_orderable(&self) -> bool {
        !matches!(self.kind, Kind::Get | Kind::Fetch)
    }

    /// The PE whose memory a fence is about.
    fn target(&self) -> u32 {
        self.dst_pe
    }

    /// The PE that asked for it.
    pub(crate) fn issuer(&self) -> u32 {
        match self.kind {
            Kind::Get | Kind::Fetch => self.dst_pe,
            _ => self.src_pe,
        }
    }

    /// Whether its source is read at a time of its own choosing.
    pub(crate) fn is_late(&self) -> bool {
        self.kind == Kind::Put && matches!(self.data, Data::Source)
    }
}

impl Flight {
    pub(crate) fn reset(&mut self, n_scopes: usize) {
        for transfer in &mut self.slots[..self.used] {
            self.buffers.extend(transfer.clear());
        }
        self.used = 0;
        self.buffers.truncate(64);
        self.free.clear();
        self.units.clear();
        self.scopes.resize_with(n_scopes, Scope::default);
        for scope in &mut self.scopes {
            scope.live.clear();
            scope.held.clear();
            scope.epoch = 0;
            scope.unread = 0;
        }
    }

    #[inline]
    pub(crate) fn get(&self, slot: u32) -> &Transfer {
        &self.slots[slot as usize]
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, slot: u32) -> &mut Transfer {
        &mut self.slots[slot as usize]
    }

    /// A cleared buffer for captured bytes.
    pub(crate) fn buffer(&mut self) -> Vec<u8> {
        let mut bytes = self.buffers.pop().unwrap_or_default();
        bytes.clear();
        bytes
    }

    /// A new transfer, not yet in flight: everything is unset that [`Flight::launch`] sets.
    #[inline]
    pub(crate) fn draft(
        &mut self,
        key: u64,
        kind: Kind,
        (dst_pe, dst): (u32, Span),
        (src_pe, src): (u32, Span),
        shape: Shape,
        (call, at): (&'static str, At),
    ) -> u32 {
        let slot = self.free.pop().unwrap_or_else(|| {
            if self.used == self.slots.len() {
                self.slots.push(Transfer::blank(at));
            }
            self.used += 1;
            self.used as u32 - 1
        });
        // field by field, because a transfer is too large to be built elsewhere and copied
        let transfer = &mut self.slots[slot as usize];
        transfer.key = key;
        transfer.kind = kind;
        transfer.dst_pe = dst_pe;
        transfer.dst = dst;
        transfer.src_pe = src_pe;
        transfer.src = src;
        transfer.shape = shape;
        transfer.call = call;
        transfer.at = at;
        slot
    }

    /// Puts a drafted transfer into flight, in at most `pieces` pieces.
    #[inline]
    pub(crate) fn launch(&mut self, slot: u32, scope: u32, pieces: usize, in_order: bool) {
        let transfer = &mut self.slots[slot as usize];
        let whole = matches!(transfer.kind, Kind::Fetch | Kind::Amo { .. } | Kind::Combine { .. });
        let pieces = if whole { 1 } else { transfer.shape.count.min(pieces) as u16 };
        let late = transfer.is_late();
        transfer.pieces = pieces;
        transfer.undelivered = pieces;
        transfer.unread = if late { pieces } else { 0 };
        transfer.scope = scope;
        if scope != NONE {
            self.join_scope(slot, scope, in_order);
        }
        if late {
            self.units.extend((0..pieces).map(|piece| Unit { slot, piece, step: Step::Read }));
        }
        let transfer = &self.slots[slot as usize];
        if transfer.blockers == 0 {
            release(&mut self.units, slot, transfer);
        }
    }

    /// Adds a transfer to what its scope has in flight, behind what fences put before it.
    #[inline]
    fn join_scope(&mut self, slot: u32, scope: u32, in_order: bool) {
        let scope = &mut self.scopes[scope as usize];
        if in_order {
            scope.epoch += 1;
        }
        let transfer = &mut self.slots[slot as usize];
        transfer.epoch = scope.epoch;
        transfer.position = scope.live.len() as u32;
        scope.unread += u32::from(transfer.unread);
        if scope.epoch > 0 && transfer.is_orderable() {
            let (target, epoch) = (transfer.target(), transfer.epoch);
            let before = |other: &&Transfer| other.is_orderable() && other.target() == target && other.epoch < epoch;
            let earlier = scope.live.iter().map(|&other| &self.slots[other as usize]).filter(before).count();
            self.slots[slot as usize].blockers = earlier as u32;
            if earlier > 0 {
                scope.held.push(slot);
            }
        }
        scope.live.push(slot);
    }

    /// Notes that the source of a piece was read; returns whether that was the last piece.
    pub(crate) fn note_read(&mut self, slot: u32, piece: u16) -> bool {
        let transfer = &mut self.slots[slot as usize];
        transfer.unread -= 1;
        transfer.read |= 1 << piece;
        let last = transfer.unread == 0;
        if transfer.blockers == 0 {
            self.units.push(Unit { slot, piece, step: Step::Deliver });
        }
        if transfer.scope != NONE {
            self.scopes[transfer.scope as usize].unread -= 1;
        }
        last
    }

    /// Takes a finished transfer out of flight and releases what a fence kept behind it.
    pub(crate) fn land(&mut self, slot: u32) {
        let transfer = &mut self.slots[slot as usize];
        self.buffers.extend(transfer.clear());
        self.free.push(slot);
        if transfer.scope == NONE {
            return;
        }
        let (target, epoch, orderable) = (transfer.target(), transfer.epoch, transfer.is_orderable());
        let (scope, position) = (transfer.scope as usize, transfer.position);
        let live = &mut self.scopes[scope];
        live.live.swap_remove(position as usize);
        if let Some(&moved) = live.live.get(position as usize) {
            self.slots[moved as usize].position = position;
        }
        let live = &mut self.scopes[scope];
        if live.live.is_empty() {
            live.epoch = 0; // nothing is left for later transfers to be ordered after
        }
        if !orderable || live.held.is_empty() {
            return;
        }
        let Flight { slots, units, scopes, .. } = self;
        scopes[scope].held.retain(|&other| {
            let transfer = &mut slots[other as usize];
            if transfer.target() == target && transfer.epoch > epoch {
                transfer.blockers -= 1;
            }
            if transfer.blockers == 0 {
                release(units, other, transfer);
            }
            transfer.blockers > 0
        });
    }

    /// A fence of the scope: what follows is delivered after what is in flight, per target.
    pub(crate) fn fence(&mut self, scope: u32) {
        let scope = &mut self.scopes[scope as usize];
        if !scope.live.is_empty() {
            scope.epoch += 1;
        }
    }

    /// A quiet of the scope by `agent`: claims what no other quiet has claimed; returns how many that are.
    pub(crate) fn claim(&mut self, scope: u32, agent: u32) -> u32 {
        let mut claimed = 0;
        for &slot in &self.scopes[scope as usize].live {
            let transfer = &mut self.slots[slot as usize];
            if transfer.claim == NONE {
                transfer.claim = agent;
                claimed += 1;
            }
        }
        claimed
    }

    /// Whether the scope has nothing in flight.
    pub(crate) fn is_quiet(&self, scope: u32) -> bool {
        self.scopes[scope as usize].live.is_empty()
    }

    /// Whether every source of the scope's non-blocking puts has been read.
    pub(crate) fn is_flushed(&self, scope: u32) -> bool {
        self.scopes[scope as usize].unread == 0
    }

    /// What the scope has in flight, for reports and the check at a free.
    pub(crate) fn live(&self, scope: u32) -> impl Iterator<Item = &Transfer> + '_ {
        self.scopes[scope as usize].live.iter().map(|&slot| &self.slots[slot as usize])
    }

    /// Everything in flight, by name. Parts of collectives are in no scope, so this looks at every slot.
    pub(crate) fn in_flight(&self) -> Vec<&Transfer> {
        let free: BTreeSet<usize> = self.free.iter().map(|&slot| slot as usize).collect();
        let mut all: Vec<&Transfer> =
            (0..self.used).filter(|slot| !free.contains(slot)).map(|slot| &self.slots[slot]).collect();
        all.sort_by_key(|transfer| transfer.key);
        all
    }
}

/// Makes what is left of a transfer deliverable.
#[inline]
fn release(units: &mut Vec<Unit>, slot: u32, transfer: &Transfer) {
    if transfer.pieces == 0 {
        // no data: only the signal, or nothing at all
        units.push(Unit { slot, piece: 0, step: Step::Signal });
        return;
    }
    let unread = transfer.is_late() || transfer.unread > 0;
    let pieces = (0..transfer.pieces).filter(|piece| !unread || transfer.read & (1 << piece) != 0);
    units.extend(pieces.map(|piece| Unit { slot, piece, step: Step::Deliver }));
}

#[cfg(test)]
mod tests;
