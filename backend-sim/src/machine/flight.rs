//! Transfers in flight, and the only place that knows which of them a fence orders.
//!
//! A transfer is issued, its source is read, it is delivered piece by piece. Each thing that may happen to it next is
//! a [`Unit`] in [`Flight::units`]: these are the choices of a schedule.

use std::collections::BTreeSet;

use onesided::At;
use onesided::backend::{Shape, Span};

use super::claim::Claimed;
use super::ids::{ClaimId, Id as _, PeId, ScopeId, Table, TransferId};
use super::past::Past;
use super::transfer::{Data, Kind, Rank, Store, Transfer, Unit, UnitStep};
use crate::race::Ticket;

/// Everything in flight.
#[derive(Debug, Default)]
pub(crate) struct Flight {
    transfers: Table<TransferId, Transfer>,
    /// Transfers that this run has used, from 0; those above are left over from earlier runs.
    used: usize,
    /// Used transfers that are free again.
    free: Vec<TransferId>,
    /// What may happen next, in no meaningful but a deterministic order.
    pub(crate) units: Vec<Unit>,
    scopes: Table<ScopeId, Scope>,
    /// Byte buffers of finished transfers, to be used again.
    buffers: Vec<Vec<u8>>,
}

/// What one issue scope has in flight.
#[derive(Debug, Default)]
struct Scope {
    live: Vec<TransferId>,
    /// Live transfers that wait for earlier ones.
    held: Vec<TransferId>,
    epoch: u32,
    /// Whether order is a matter of what threads come after, and something has been put in order: tickets know what that is.
    by_thread: bool,
    /// Transfers so far.
    number: u32,
    /// Operations so far that arrive in the order of issue.
    turns: u32,
    /// Those that have landed, while pasts are kept.
    landed: Vec<Landed>,
}

/// A transfer that has landed. While pasts are kept, fences order it and quiets learn of it as if it were in flight: neither may
/// depend on how early it landed.
#[derive(Debug)]
pub(crate) struct Landed {
    pub(crate) rank: Rank,
    pub(crate) nbi: bool,
    pub(crate) is_put: bool,
    pub(crate) claimed: Claimed,
    pub(crate) awaited: Vec<ClaimId>,
    /// Steps that come before its start, and those that come before whoever waits for it.
    pub(crate) issued: Past,
    pub(crate) past: Past,
    /// Whether a quiet has completed it.
    pub(crate) complete: bool,
    /// As of the transfer.
    pub(crate) ticket: Option<Ticket>,
}

/// What drafting a transfer needs: everything that every transfer has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Draft {
    pub(crate) key: u64,
    pub(crate) kind: Kind,
    pub(crate) dst: (PeId, Span),
    pub(crate) src: (PeId, Span),
    pub(crate) shape: Shape,
    pub(crate) call: &'static str,
    pub(crate) at: At,
}

impl Flight {
    pub(crate) fn reset(&mut self, n_scopes: usize) {
        for transfer in self.transfers.iter_mut().take(self.used) {
            self.buffers.extend(transfer.clear());
        }
        self.used = 0;
        self.buffers.truncate(64);
        self.free.clear();
        self.units.clear();
        self.scopes.resize_with(n_scopes, Scope::default);
        for scope in self.scopes.iter_mut() {
            scope.live.clear();
            scope.held.clear();
            (scope.epoch, scope.by_thread) = (0, false);
            (scope.number, scope.turns) = (0, 0);
            scope.landed.clear();
        }
    }

    #[inline]
    pub(crate) fn get(&self, id: TransferId) -> &Transfer {
        &self.transfers[id]
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, id: TransferId) -> &mut Transfer {
        &mut self.transfers[id]
    }

    /// A cleared buffer for captured bytes.
    pub(crate) fn buffer(&mut self) -> Vec<u8> {
        let mut bytes = self.buffers.pop().unwrap_or_default();
        bytes.clear();
        bytes
    }

    /// A buffer is used again.
    pub(crate) fn recycle(&mut self, bytes: Vec<u8>) {
        if self.buffers.len() < 64 {
            self.buffers.push(bytes);
        }
    }

    /// One more transfer than before, about to be drafted. `at`: a place for one that is new.
    fn another(&mut self, at: At) -> TransferId {
        if self.used == self.transfers.len() {
            self.transfers.push(Transfer::blank(at));
        }
        self.used += 1;
        TransferId::new(self.used - 1)
    }

    /// A new transfer, not yet in flight: what is unset is set by [`Flight::launch`].
    #[inline(always)] // on a hot path
    pub(crate) fn draft(&mut self, draft: Draft) -> TransferId {
        let id = match self.free.pop() {
            Some(id) => id,
            None => self.another(draft.at),
        };
        // field by field, because a transfer is too large to be built elsewhere and copied
        let transfer = &mut self.transfers[id];
        transfer.key = draft.key;
        transfer.kind = draft.kind;
        (transfer.dst_pe, transfer.dst) = draft.dst;
        (transfer.src_pe, transfer.src) = draft.src;
        transfer.shape = draft.shape;
        transfer.call = draft.call;
        transfer.at = draft.at;
        id
    }

    /// Puts a drafted transfer into flight, in at most `pieces` pieces. `in_order`: transfers of the scope to one PE are
    /// delivered in the order of issue, non-blocking ones excepted.
    #[inline(always)] // on a hot path
    pub(crate) fn launch(&mut self, id: TransferId, scope: Option<ScopeId>, pieces: usize, in_order: bool) {
        let transfer = &mut self.transfers[id];
        let pieces = transfer.pieces_of(pieces);
        let late = transfer.is_late();
        transfer.pieces = pieces;
        transfer.undelivered = pieces;
        transfer.unread = if late { pieces } else { 0 };
        transfer.scope = scope;
        if let Some(scope) = scope {
            self.join_scope(id, scope, in_order);
        }
        if late {
            self.units.extend((0..pieces).map(|piece| Unit { transfer: id, piece, step: UnitStep::Read }));
        }
        let transfer = &self.transfers[id];
        if transfer.blockers == 0 {
            release(&mut self.units, id, transfer);
        }
    }

    /// Adds a transfer to what its scope has in flight, behind what comes before it.
    #[inline(always)] // as its caller
    fn join_scope(&mut self, id: TransferId, scope: ScopeId, in_order: bool) {
        let scope = &mut self.scopes[scope];
        let transfer = &mut self.transfers[id];
        let fenced = transfer.is_ordered_by_fence();
        let turn = (in_order && fenced && !transfer.nbi).then(|| {
            scope.turns += u32::from(!transfer.continues);
            scope.turns
        });
        scope.number += 1;
        let (epoch, number) = (scope.epoch, scope.number);
        let store = match transfer.kind {
            Kind::Store => Some(Store { span: transfer.dst, is_strong: false }),
            Kind::Strong { .. } => Some(Store { span: transfer.dst, is_strong: true }),
            _ => None,
        };
        transfer.rank = Rank { target: transfer.dst_pe, fenced, epoch, covered: None, turn, number, store };
        transfer.position = scope.live.len() as u32;
        if (epoch > 0 || scope.by_thread) && fenced || turn.is_some() || store.is_some_and(|store| !store.is_strong) {
            let transfer = &self.transfers[id];
            let precedes = |other: &&TransferId| {
                let other = &self.transfers[**other];
                other.rank.precedes(&transfer.rank, tickets(scope.by_thread, &other.ticket, &transfer.ticket))
            };
            let earlier = scope.live.iter().filter(precedes).count();
            self.transfers[id].blockers = earlier as u32;
            if earlier > 0 {
                scope.held.push(id);
            }
        }
        scope.live.push(id);
    }

    /// Notes that the source of a piece was read; returns whether that was the last piece.
    pub(crate) fn note_read(&mut self, id: TransferId, piece: u16) -> bool {
        let transfer = &mut self.transfers[id];
        transfer.unread -= 1;
        transfer.read |= 1 << piece;
        if transfer.blockers == 0 {
            self.units.push(Unit { transfer: id, piece, step: UnitStep::Deliver });
        }
        transfer.unread == 0
    }

    /// Takes a finished transfer out of flight and releases what waited for it.
    pub(crate) fn land(&mut self, id: TransferId) {
        let transfer = &mut self.transfers[id];
        let (position, scope) = (transfer.position, transfer.scope);
        let ticket = transfer.ticket.take();
        let landed = transfer.past.take().map(|past| Landed {
            rank: transfer.rank,
            nbi: transfer.nbi,
            is_put: transfer.kind == Kind::Put,
            claimed: transfer.claimed,
            awaited: transfer.awaited.clone(),
            issued: past.issued,
            past: past.done,
            complete: false,
            ticket: ticket.clone(),
        });
        self.buffers.extend(transfer.clear());
        self.free.push(id);
        let Some(scope) = scope else { return };
        let Flight { transfers, units, scopes, .. } = self;
        let scope = &mut scopes[scope];
        scope.live.swap_remove(position as usize);
        if let Some(&moved) = scope.live.get(position as usize) {
            transfers[moved].position = position;
        }
        if let Some(landed) = landed {
            scope.landed.push(landed);
        } else if scope.live.is_empty() {
            scope.epoch = 0; // nothing is left for later transfers to be ordered after
        }
        if scope.held.is_empty() {
            return;
        }
        let (rank, by_thread) = (transfers[id].rank, scope.by_thread);
        scope.held.retain(|&other| {
            let transfer = &mut transfers[other];
            let tickets = tickets(by_thread, &ticket, &transfer.ticket);
            transfer.blockers -= u32::from(rank.precedes(&transfer.rank, tickets));
            if transfer.blockers == 0 {
                release(units, other, transfer);
            }
            transfer.blockers > 0
        });
    }

    /// A fence of the scope: what follows is delivered after what was issued before, per target. Of the non-blocking operations
    /// that is said of those that the fence itself has claimed (`claim`), or, if a host waits for it, that nobody has.
    pub(crate) fn fence(&mut self, scope: ScopeId, claim: Option<ClaimId>, is_host: bool) {
        let Flight { scopes, transfers, .. } = self;
        let scope = &mut scopes[scope];
        if scope.live.is_empty() && scope.landed.is_empty() {
            return;
        }
        scope.epoch += 1;
        let epoch = scope.epoch;
        let cover = |rank: &mut Rank, nbi: bool, claimed: Claimed| {
            let is_mine = is_host && claimed.by.is_none() || claim.is_some() && claimed.by == claim;
            if rank.fenced && rank.covered.is_none() && (!nbi || is_mine) {
                rank.covered = Some(epoch);
            }
        };
        for &id in &scope.live {
            let transfer = &mut transfers[id];
            cover(&mut transfer.rank, transfer.nbi, transfer.claimed);
        }
        for landed in &mut scope.landed {
            // what a quiet has completed is over, whoever had claimed it
            let claimed = if landed.complete { Claimed { by: claim, owed: false } } else { landed.claimed };
            cover(&mut landed.rank, landed.nbi && !landed.complete, claimed);
        }
    }

    /// Something of the scope is put in order with what its thread comes after, and with nothing else.
    pub(crate) fn order_by_thread(&mut self, scope: ScopeId) {
        self.scopes[scope].by_thread = true;
    }

    /// Whether a condition holds for a transfer of a scope that is in flight or, while pasts are kept, has landed.
    pub(crate) fn any(&self, scope: ScopeId, is_so: impl Fn(&Rank, Option<&Ticket>) -> bool) -> bool {
        self.live(scope).any(|transfer| is_so(&transfer.rank, transfer.ticket.as_ref()))
            || self.scopes[scope].landed.iter().any(|landed| is_so(&landed.rank, landed.ticket.as_ref()))
    }

    /// Steps of transfers that have landed and that come before this one's deliveries.
    pub(crate) fn ordered_before(&self, id: TransferId) -> Past {
        let mut past = Past::default();
        let transfer = &self.transfers[id];
        if let Some(scope) = transfer.scope {
            let scope = &self.scopes[scope];
            let precedes = |landed: &&Landed| {
                let tickets = tickets(scope.by_thread, &landed.ticket, &transfer.ticket);
                landed.rank.precedes(&transfer.rank, tickets)
            };
            let before = scope.landed.iter().filter(precedes);
            before.for_each(|landed| past.join(&landed.past));
        }
        past
    }

    /// What the scope has in flight no more, while pasts are kept.
    pub(crate) fn for_each_landed(&mut self, scope: ScopeId, f: impl FnMut(&mut Landed)) {
        self.scopes[scope].landed.iter_mut().for_each(f);
    }

    /// Whether the scope has nothing in flight.
    #[inline]
    pub(crate) fn is_quiet(&self, scope: ScopeId) -> bool {
        self.scopes[scope].live.is_empty()
    }

    /// What the scope has in flight.
    pub(crate) fn live(&self, scope: ScopeId) -> impl Iterator<Item = &Transfer> {
        self.scopes[scope].live.iter().map(|&id| &self.transfers[id])
    }

    /// The scope's stores through peer pointers that are in flight, or, while pasts are kept, that have landed.
    pub(crate) fn stores(&self, scope: ScopeId) -> impl Iterator<Item = (PeId, Store, Option<&Ticket>)> {
        let landed = self.scopes[scope].landed.iter().map(|landed| (landed.rank, landed.ticket.as_ref()));
        let live = self.live(scope).map(|transfer| (transfer.rank, transfer.ticket.as_ref()));
        live.chain(landed).filter_map(|(rank, ticket)| Some((rank.target, rank.store?, ticket)))
    }

    /// The same, to be changed.
    pub(crate) fn for_each_live(&mut self, scope: ScopeId, mut f: impl FnMut(&mut Transfer)) {
        let Flight { scopes, transfers, .. } = self;
        scopes[scope].live.iter().for_each(|&id| f(&mut transfers[id]));
    }

    /// Lays over `bytes`, which were loaded from `span` on `pe`, what the scope has stored there plainly and is not yet delivered: an
    /// agent sees its own stores.
    pub(crate) fn lay_stores_over(&self, scope: ScopeId, pe: PeId, span: Span, bytes: &mut [u8]) {
        let mut stores: Vec<&Transfer> = (self.live(scope))
            .filter(|transfer| transfer.kind == Kind::Store && transfer.dst_pe == pe && transfer.dst.overlaps(&span))
            .collect();
        stores.sort_by_key(|transfer| transfer.rank.number);
        for store in stores {
            let Data::Bytes(stored) = &store.data else { unreachable!("a store carries its data") };
            for piece in (0..store.pieces).filter(|piece| store.delivered & (1 << piece) == 0) {
                let piece = store.bytes_of(piece);
                let (start, end) = (store.dst.start + piece.start, store.dst.start + piece.end);
                let (from, to) = (start.max(span.start), end.min(span.start + span.len));
                if from < to {
                    let source = &stored[from - store.dst.start..to - store.dst.start];
                    bytes[from - span.start..to - span.start].copy_from_slice(source);
                }
            }
        }
    }

    /// Everything in flight, by name. Parts of collectives are in no scope, so this looks at every transfer.
    pub(crate) fn in_flight(&self) -> Vec<&Transfer> {
        let free: BTreeSet<TransferId> = self.free.iter().copied().collect();
        let used = (0..self.used).map(TransferId::new).filter(|id| !free.contains(id));
        let mut all: Vec<&Transfer> = used.map(|id| &self.transfers[id]).collect();
        all.sort_by_key(|transfer| transfer.key);
        all
    }
}

/// The tickets of two transfers, if fences of threads have to be looked at.
#[inline]
fn tickets<'a>(by_thread: bool, one: &'a Option<Ticket>, other: &'a Option<Ticket>) -> Option<[&'a Ticket; 2]> {
    if by_thread { Some([one.as_ref()?, other.as_ref()?]) } else { None }
}

/// Makes what is left of a transfer deliverable.
#[inline]
fn release(units: &mut Vec<Unit>, id: TransferId, transfer: &Transfer) {
    if transfer.pieces == 1 && transfer.unread == 0 {
        // the most frequent case
        return units.push(Unit { transfer: id, piece: 0, step: UnitStep::Deliver });
    }
    units.extend(transfer.deliverable().map(|(piece, step)| Unit { transfer: id, piece, step }));
}

#[cfg(test)]
mod tests;
