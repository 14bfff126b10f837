//! One transfer in flight: what it moves, how far it has come, and what may happen to it next.

use std::ops::Range;

use onesided::backend::{AllocId, AmoOp, Shape, SignalUpdate, Span, Until};
use onesided::{At, DType};
use onesided_ptx::{AtomicOp, Type};

use super::claim::Claimed;
use super::ids::{AgentId, ClaimId, PeId, ScopeId, TeamIndex, TransferId};
use super::past::Past;
use crate::race::{StrongWrite, Ticket};

/// One put, get, signal, atomic, store, load, or part of a collective, from issue to delivery.
#[derive(Debug)]
pub(crate) struct Transfer {
    /// The same in every schedule that issues it: the issuer, and a number among its transfers.
    pub(crate) key: u64,
    pub(crate) kind: Kind,
    pub(crate) dst_pe: PeId,
    pub(crate) src_pe: PeId,
    pub(crate) dst: Span,
    pub(crate) src: Span,
    pub(crate) shape: Shape,
    pub(crate) data: Data,
    pub(crate) signal: Option<SignalUpdate>,
    /// Pieces in all, not yet delivered, and whose source is not yet read.
    pub(crate) pieces: u16,
    pub(crate) undelivered: u16,
    pub(crate) unread: u16,
    /// Bit `i`: the source of piece `i` has been read; piece `i` has been delivered.
    pub(crate) read: u64,
    pub(crate) delivered: u64,
    /// The agent that issued it; `None` for parts of collectives.
    pub(crate) issuer: Option<AgentId>,
    /// The issue scope; `None` for loads and for parts of collectives, which no fence or quiet touches.
    pub(crate) scope: Option<ScopeId>,
    /// Whether it is one of the `_nbi` operations.
    pub(crate) nbi: bool,
    /// Whether it is a further piece of what the transfer before it began: a store's.
    pub(crate) continues: bool,
    /// Its place in the order that fences and program order demand.
    pub(crate) rank: Rank,
    /// Earlier transfers that come before this one.
    pub(crate) blockers: u32,
    /// Where it stands in its scope's list.
    pub(crate) position: u32,
    /// Who has claimed it.
    pub(crate) claimed: Claimed,
    /// Who else waits for its delivery.
    pub(crate) awaited: Vec<ClaimId>,
    /// The agent whose call it ends, and when.
    pub(crate) waiter: Option<(AgentId, Until)>,
    pub(crate) part: Option<Part>,
    /// The operation and line that asked for it.
    pub(crate) call: &'static str,
    pub(crate) at: At,
    /// Kept while pasts are.
    pub(crate) past: Option<Box<TransferPast>>,
    /// The race detector's, while races are looked for.
    pub(crate) ticket: Option<Ticket>,
    /// The same of the elements of a strong write.
    pub(crate) elements: Vec<StrongWrite>,
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
    /// A plain store through a peer pointer.
    Store,
    /// A strong store of a kernel to another PE's memory, or an atomic there whose old value nobody looks at. All of its elements arrive at once.
    Strong { atomic: Option<(AtomicOp, Type)> },
    /// A load of several elements, of the host's own memory or through a peer pointer, to the caller.
    Load { dtype: DType },
    /// The moment in which a reduction has read every source.
    Combine { team: TeamIndex, seq: u32 },
    /// What another transfer has delivered becomes visible on another path.
    Spread,
}

/// Where a put's data is; or what a load has read.
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
    pub(crate) team: TeamIndex,
    pub(crate) seq: u32,
    pub(crate) from: u32,
    pub(crate) to: u32,
}

/// What decides which of two transfers of a scope is delivered first, if anything does.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rank {
    /// The PE whose memory a fence is about.
    pub(crate) target: PeId,
    /// Whether fences order it.
    pub(crate) fenced: bool,
    /// Number of fences before it.
    pub(crate) epoch: u32,
    /// The first fence that puts it before what follows.
    pub(crate) covered: Option<u32>,
    /// Its operation's turn, where those of the scope to one PE arrive in the order of issue.
    pub(crate) turn: Option<u32>,
    /// Number of transfers of the scope before it.
    pub(crate) number: u32,
    /// If it is a store through a peer pointer.
    pub(crate) store: Option<Store>,
}

/// A store through a peer pointer, or an atomic.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Store {
    pub(crate) span: Span,
    pub(crate) is_strong: bool,
}

/// Which steps come before those of a transfer.
#[derive(Debug, Default)]
pub(crate) struct TransferPast {
    /// Before its issue.
    pub(crate) issued: Past,
    /// With the source read of each piece.
    pub(crate) reads: Vec<Past>,
    /// With everything that has happened to it.
    pub(crate) done: Past,
}

/// One thing that may happen to a transfer next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unit {
    pub(crate) transfer: TransferId,
    pub(crate) piece: u16,
    pub(crate) step: UnitStep,
}

/// What happens to the piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UnitStep {
    /// Its source is read.
    Read,
    /// It is delivered.
    Deliver,
    /// The signal behind all pieces is delivered.
    Signal,
}

/// No memory: where a transfer has no source or target of its own.
pub(crate) const NO_SPAN: Span = Span { alloc: AllocId(u32::MAX), start: 0, len: 0 };

impl Rank {
    pub(crate) const NONE: Rank =
        Rank { target: PeId(0), fenced: false, epoch: 0, covered: None, turn: None, number: 0, store: None };

    /// Whether this one is delivered before a later one: a fence stands between them, they arrive in the order of issue, or both are
    /// plain stores to one place. (A thread that comes after a strong one waits for its arrival before it accesses that place.)
    ///
    /// `tickets`: of the two, where it is a matter of what threads come after: a fence orders that alone, and only issues that follow each other
    /// for the threads arrive in their order.
    pub(crate) fn precedes(&self, later: &Rank, tickets: Option<[&Ticket; 2]>) -> bool {
        if self.target != later.target || self.number >= later.number {
            return false;
        }
        let by_thread = || tickets.is_some_and(|[own, later]| self.fenced && own.is_fenced_before(later));
        let fence = self.covered.is_some_and(|fence| fence <= later.epoch) || by_thread();
        let ordered = || tickets.is_none_or(|[own, later]| own.is_issued_before(later));
        let in_order = || self.turn.zip(later.turn).is_some_and(|(turn, later)| turn < later) && ordered();
        let plain = |rank: &Rank| rank.store.filter(|store| !store.is_strong);
        let overlap = || Some(plain(self)?.span.overlaps(&plain(later)?.span));
        fence && later.fenced || in_order() || overlap().unwrap_or(false)
    }

    /// Whether a fence puts this one before whatever is done next to a PE's memory. `by_thread`: whether the thread comes after a fence that does.
    /// `strongly`: whether it is a strong access, or a call. A plain access is no step, so no search tries it before and behind other fences: it comes
    /// behind those only.
    pub(crate) fn precedes_next(&self, to: PeId, by_thread: bool, strongly: bool) -> bool {
        self.target == to && self.fenced && (strongly && self.covered.is_some() || by_thread)
    }
}

impl Transfer {
    /// A transfer before anything is known of it; also what a landed one becomes.
    pub(crate) fn blank(at: At) -> Transfer {
        Transfer {
            key: 0,
            kind: Kind::Put,
            dst_pe: PeId(0),
            src_pe: PeId(0),
            dst: NO_SPAN,
            src: NO_SPAN,
            shape: Shape::contiguous(0, 1),
            data: Data::Source,
            signal: None,
            pieces: 0,
            undelivered: 0,
            unread: 0,
            read: 0,
            delivered: 0,
            issuer: None,
            scope: None,
            nbi: false,
            continues: false,
            rank: Rank::NONE,
            blockers: 0,
            position: u32::MAX,
            claimed: Claimed::default(),
            awaited: Vec::new(),
            waiter: None,
            part: None,
            call: "",
            at,
            past: None,
            ticket: None,
            elements: Vec::new(),
        }
    }

    /// Makes it blank again, except for what drafting and launching set; returns its buffer.
    #[inline]
    pub(crate) fn clear(&mut self) -> Option<Vec<u8>> {
        self.signal = None;
        self.read = 0;
        self.delivered = 0;
        self.issuer = None;
        self.nbi = false;
        self.continues = false;
        self.blockers = 0;
        self.claimed = Claimed::default();
        self.awaited.clear();
        self.waiter = None;
        self.part = None;
        self.past = None;
        self.ticket = None;
        self.elements.clear();
        match std::mem::replace(&mut self.data, Data::Source) {
            Data::Bytes(bytes) => Some(bytes),
            Data::Source | Data::Word(_) => None,
        }
    }

    /// Gets are neither ordered by a fence nor do they order anything.
    pub(crate) fn is_ordered_by_fence(&self) -> bool {
        match self.kind {
            Kind::Put | Kind::Amo { .. } | Kind::Store | Kind::Strong { .. } => true,
            Kind::Get | Kind::Fetch | Kind::Load { .. } | Kind::Combine { .. } | Kind::Spread => false,
        }
    }

    /// The PE that asked for it.
    pub(crate) fn issuing_pe(&self) -> PeId {
        match self.kind {
            Kind::Get | Kind::Fetch | Kind::Load { .. } => self.dst_pe,
            Kind::Put | Kind::Amo { .. } | Kind::Store | Kind::Strong { .. } => self.src_pe,
            Kind::Combine { .. } | Kind::Spread => self.src_pe,
        }
    }

    /// Whether its source is read at a time of its own.
    pub(crate) fn is_late(&self) -> bool {
        self.kind == Kind::Put && matches!(self.data, Data::Source) && self.shape.count > 0
    }

    /// Whether something of its source is still to be read.
    pub(crate) fn reads_later(&self) -> bool {
        match self.kind {
            Kind::Put => self.is_late() || self.unread > 0,
            Kind::Get | Kind::Fetch | Kind::Load { .. } => true,
            Kind::Amo { .. } | Kind::Store | Kind::Strong { .. } | Kind::Combine { .. } | Kind::Spread => false,
        }
    }

    /// In how many pieces it moves, of at most `most`: atomics, single elements and reductions in one.
    pub(crate) fn pieces_of(&self, most: usize) -> u16 {
        match self.kind {
            Kind::Put | Kind::Get | Kind::Store | Kind::Load { .. } => self.shape.count.min(most) as u16,
            Kind::Fetch | Kind::Amo { .. } | Kind::Strong { .. } | Kind::Combine { .. } | Kind::Spread => 1,
        }
    }

    /// The elements of one of its pieces.
    #[inline]
    pub(crate) fn elements(&self, piece: u16) -> std::ops::Range<usize> {
        let (count, piece, pieces) = (self.shape.count, piece as usize, self.pieces as usize);
        if pieces == 1 {
            return 0..count; // the most frequent case, without its division
        }
        count * piece / pieces..count * (piece + 1) / pieces
    }

    /// The bytes of one of its pieces, within a contiguous whole.
    pub(crate) fn bytes_of(&self, piece: u16) -> std::ops::Range<usize> {
        let elements = self.elements(piece);
        elements.start * self.shape.size..elements.end * self.shape.size
    }

    /// What may happen to it now, once nothing comes before it.
    pub(crate) fn deliverable(&self) -> impl Iterator<Item = (u16, UnitStep)> {
        // no data: only the signal, or nothing at all
        let signal = (self.pieces == 0).then_some((0, UnitStep::Signal));
        let unread = self.is_late() || self.unread > 0;
        let read = self.read;
        let pieces = (0..self.pieces).filter(move |piece| !unread || read & (1 << piece) != 0);
        signal.into_iter().chain(pieces.map(|piece| (piece, UnitStep::Deliver)))
    }
}

/// Bytes `start..start + len` of a span.
pub(crate) fn part_of(span: Span, start: usize, len: usize) -> Span {
    debug_assert!(start + len <= span.len);
    Span { start: span.start + start, len, ..span }
}

/// The `i`-th element of a span.
pub(crate) fn element(span: Span, i: usize, size: usize) -> Span {
    part_of(span, i * size, size)
}

/// The bytes of some elements: all together where they lie side by side.
#[inline(always)] // as its callers
pub(crate) fn parts(span: Span, size: usize, stride: usize, elements: Range<usize>) -> impl Iterator<Item = Span> {
    let (parts, len) = if stride == 1 { (1, elements.len()) } else { (elements.len(), 1) };
    (0..parts).map(move |i| part_of(span, (elements.start + i) * stride * size, len * size))
}
