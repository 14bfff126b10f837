//! Accesses: what a step touches, by which two steps are known to commute or not.

use onesided::backend::{AllocId, Span};
use onesided::{At, Cmp, DType};
use onesided_ptx::{AtomicOp, View};

use super::Machine;
use super::ids::{AgentId, PeId, ScopeId, TeamName};

/// One access of a step that was chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Access {
    pub(crate) object: Object,
    pub(crate) touch: Touch,
    pub(crate) by: Actor,
}

/// Who made an access, and for which operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Actor {
    /// The agent, or the one that issued the transfer; `None` for parts of collectives, which belong to the team.
    pub(crate) agent: Option<AgentId>,
    /// The issue scope.
    pub(crate) scope: Option<ScopeId>,
    /// The operation.
    pub(crate) call: &'static str,
    /// The line that asked for it.
    pub(crate) at: Option<At>,
}

/// A block of a kernel: its PE, and its number among the PE's agents. It is the same in every schedule, in whatever order blocks begin.
pub(super) type BlockName = (PeId, u32);

/// A block's shared memory is named as an allocation of its PE: by the block's number, with this bit set, which no other allocation has.
/// Block numbers have 27 bits at most (`bits_of_ordinals`).
const OF_BLOCKS: u32 = 1 << 30;

/// Whether it is a block's shared memory.
pub(super) fn is_shared(alloc: AllocId) -> bool {
    alloc.external().is_none() && alloc.0 & OF_BLOCKS != 0
}

/// The shared memory of a block, as an allocation of its PE.
pub(super) fn shared_of((pe, block): BlockName) -> (PeId, AllocId) {
    (pe, AllocId(OF_BLOCKS | block))
}

/// A word of it, at a generic address, if that is one of shared memory.
pub(super) fn shared_at(block: BlockName, address: u64, bytes: u8) -> Option<(PeId, Span)> {
    let (pe, alloc) = shared_of(block);
    onesided_ptx::is_shared(address).then(|| (pe, Span { alloc, start: address as usize, len: bytes.into() }))
}

/// What is shared, so that the order of accesses can matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Object {
    /// Bytes of a PE's memory, or of its kernels' blocks' shared memory.
    Memory { pe: PeId, alloc: AllocId, start: usize, end: usize },
    /// Bytes of a PE's memory, as PEs see them that reach it on another path.
    Seen { pe: PeId, alloc: AllocId, start: usize, end: usize },
    /// What has arrived at a PE, where others may not see it yet.
    Arrivals(PeId),
    /// What a scope has issued. An issue adds to it; who fences or completes it without claiming anything looks at it.
    Scope(ScopeId),
    /// Who has claimed a PE's non-blocking operations.
    Claims(PeId),
    /// Whose turn it is in a team's collectives, among the agents of a PE.
    Turn { pe: PeId, team: TeamName },
    /// Whether a member has left a team's collective, so that another agent of its PE may enter the next.
    Leaving { pe: PeId, team: TeamName, seq: u32 },
    /// The team that is being made by `team_init` with a unique id.
    TeamInit(u64),
}

/// How an object is touched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Touch {
    /// Looked at.
    Read,
    /// Changed, by something that is not atomic against signals.
    Write,
    /// Changed by a signal or an atomic.
    Atomic,
    /// Added to, by something that does not look at it: a counter.
    Add {
        /// How much.
        by: u64,
    },
    /// Changed by something that does not look at it, and commutes with its like.
    Fold(Fold),
    /// Changed by an atomic of a kernel that asks whether it comes last, and gets the answer yes.
    Last(Arrival),
    /// An arrival ends the phase of an mbarrier, or the next one comes last. It touches the mbarrier, or the word, as an arrival, too.
    Ends,
}

/// Atomics of which two of a kind commute, on words of one size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fold {
    And,
    Or,
    Xor,
    Least,
    Greatest,
    /// Of signed numbers.
    LeastSigned,
    GreatestSigned,
    /// Arrivals at an mbarrier in one of its even phases: with those in the next phase they do not commute.
    ArrivalsEven,
    ArrivalsOdd,
    /// Bytes that are announced to an mbarrier in such a phase. What is announced after the last arrival is of the next phase.
    BytesEven,
    BytesOdd,
    /// Atomics of kernels that only ask whether somebody comes last, and get the answer no.
    Arrives(Arrival),
}

impl Fold {
    /// How many kinds there are.
    pub(crate) const KINDS: usize = 12;

    /// The number of the kind.
    pub(crate) fn kind(self) -> usize {
        match self {
            Fold::And => 0,
            Fold::Or => 1,
            Fold::Xor => 2,
            Fold::Least => 3,
            Fold::Greatest => 4,
            Fold::LeastSigned => 5,
            Fold::GreatestSigned => 6,
            Fold::ArrivalsEven => 7,
            Fold::ArrivalsOdd => 8,
            Fold::BytesEven => 9,
            Fold::BytesOdd => 10,
            Fold::Arrives(_) => 11,
        }
    }
}

/// How an atomic of a kernel counts, and the old value for which it asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Arrival {
    pub(crate) op: AtomicOp,
    pub(crate) by: u32,
    pub(crate) asks: u32,
}

/// What kind of object: accesses of different kinds never conflict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ObjectKind {
    Memory(PeId, AllocId),
    Seen(PeId, AllocId),
    Arrivals,
    Scope,
    Claims,
    Turn,
    Leaving,
    TeamInit,
}

/// What a wait looks at: a variable of a PE, and what its value is compared with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Test {
    pub(crate) pe: PeId,
    pub(crate) variable: Span,
    pub(crate) comparison: Comparison,
    pub(crate) wanted: u64,
    /// Whether the value that is seen may matter.
    pub(crate) returns: bool,
}

/// How a wait compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Comparison {
    pub(crate) cmp: Cmp,
    pub(crate) dtype: DType,
    /// Whether `>=` may be the driver's too, which is true where the difference, as a signed number, is not negative.
    pub(crate) or_cyclic: bool,
    /// The part of the variable that is compared: all of it, or what a kernel's loop takes.
    pub(crate) view: Option<View>,
}

impl Comparison {
    /// The opposite comparison, of one that is not cyclic too.
    pub(crate) fn negated(self) -> Comparison {
        debug_assert!(!self.or_cyclic, "its opposite is no comparison of this kind");
        let cmp = match self.cmp {
            Cmp::Eq => Cmp::Ne,
            Cmp::Ne => Cmp::Eq,
            Cmp::Lt => Cmp::Ge,
            Cmp::Le => Cmp::Gt,
            Cmp::Gt => Cmp::Le,
            Cmp::Ge => Cmp::Lt,
        };
        Comparison { cmp, ..self }
    }

    pub(crate) fn holds(&self, found: u64, wanted: u64) -> bool {
        let of_part = |view: View| view.of(found) & (u64::MAX >> (64 - 8 * self.dtype.size()));
        let found = self.view.map_or(found, of_part);
        let cyclic = || self.or_cyclic && self.cmp == Cmp::Ge && found.wrapping_sub(wanted) as i64 >= 0;
        self.cmp.holds_bits(self.dtype, found, wanted) || cyclic()
    }
}

/// What a wait waits for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Awaited {
    Word(Test),
    /// A phase of an mbarrier, of this parity, to be over.
    Phase {
        mbarrier: Object,
        is_odd: bool,
    },
}

impl Test {
    /// Whether it holds once something has been added to a value.
    pub(crate) fn holds_after(&self, value: u64, added: u64) -> bool {
        let bits = 8 * self.variable.len as u32;
        self.comparison.holds(value.wrapping_add(added) & (u64::MAX >> (64 - bits)), self.wanted)
    }

    /// How much an access adds to the variable.
    pub(crate) fn added_by(&self, access: &Access) -> u64 {
        match access.touch {
            Touch::Add { by } if access.object == Object::memory(self.pe, self.variable) => by,
            _ => 0,
        }
    }

    /// The variable's value, in bytes of an object that has all of it.
    pub(crate) fn value_in(&self, object: &Object, bytes: &[u8]) -> Option<u64> {
        let Object::Memory { pe, alloc, start, end } = *object else { return None };
        let Span { start: from, len, .. } = self.variable;
        if pe != self.pe || alloc != self.variable.alloc || from < start || from + len > end {
            return None;
        }
        let mut word = [0; 8];
        word[..len].copy_from_slice(&bytes[from - start..from - start + len]);
        Some(u64::from_le_bytes(word))
    }
}

impl Object {
    pub(crate) fn kind(&self) -> ObjectKind {
        match *self {
            Object::Memory { pe, alloc, .. } => ObjectKind::Memory(pe, alloc),
            Object::Seen { pe, alloc, .. } => ObjectKind::Seen(pe, alloc),
            Object::Arrivals(_) => ObjectKind::Arrivals,
            Object::Scope(_) => ObjectKind::Scope,
            Object::Claims(_) => ObjectKind::Claims,
            Object::Turn { .. } => ObjectKind::Turn,
            Object::Leaving { .. } => ObjectKind::Leaving,
            Object::TeamInit(_) => ObjectKind::TeamInit,
        }
    }

    pub(crate) fn memory(pe: PeId, span: Span) -> Object {
        Object::Memory { pe, alloc: span.alloc, start: span.start, end: span.start.saturating_add(span.len) }
    }

    pub(crate) fn seen(pe: PeId, span: Span) -> Object {
        Object::Seen { pe, alloc: span.alloc, start: span.start, end: span.start.saturating_add(span.len) }
    }

    /// Shared memory of a block at a generic address, if that is one.
    pub(super) fn shared(block: BlockName, address: u64, bytes: u8) -> Option<Object> {
        shared_at(block, address, bytes).map(|(pe, span)| Object::memory(pe, span))
    }

    pub(crate) fn overlaps(&self, other: &Object) -> bool {
        match (*self, *other) {
            (
                Object::Memory { pe, alloc, start, end },
                Object::Memory { pe: other_pe, alloc: other_alloc, start: other_start, end: other_end },
            )
            | (
                Object::Seen { pe, alloc, start, end },
                Object::Seen { pe: other_pe, alloc: other_alloc, start: other_start, end: other_end },
            ) => pe == other_pe && alloc == other_alloc && start < other_end && other_start < end,
            (object, other) => object == other,
        }
    }
}

/// The old values of a write are kept up to this many bytes, for waits that look at one of its words.
const MOST_KEPT: usize = 64 << 10;

impl Access {
    /// Whether the order of the two matters.
    #[inline]
    pub(crate) fn conflicts(&self, other: &Access) -> bool {
        let matters = match (self.touch, other.touch) {
            (Touch::Read, Touch::Read) | (Touch::Ends, _) | (_, Touch::Ends) => false,
            // of words that differ and overlap, one carries into the other: `Assumptions` know such words
            (Touch::Add { .. }, Touch::Add { .. }) => false,
            (Touch::Fold(one), Touch::Fold(other)) => one != other,
            (Touch::Read | Touch::Write | Touch::Atomic | Touch::Last(_) | Touch::Add { .. } | Touch::Fold(_), _) => {
                true
            }
        };
        matters && self.object.overlaps(&other.object)
    }

    /// The parity of the phase in which an mbarrier was before this, if that is known.
    pub(crate) fn phase_before(&self, mbarrier: &Object) -> Option<bool> {
        match self.touch {
            _ if !self.object.overlaps(mbarrier) => None,
            Touch::Fold(Fold::ArrivalsEven | Fold::BytesEven) => Some(false),
            Touch::Fold(Fold::ArrivalsOdd | Fold::BytesOdd) => Some(true),
            _ => None,
        }
    }

    /// Whether this is an arrival that does not come last.
    pub(crate) fn is_refused(&self) -> bool {
        matches!(self.touch, Touch::Fold(Fold::Arrives(_)))
    }

    /// The same, if it came last.
    pub(crate) fn answered(&self) -> Access {
        match self.touch {
            Touch::Fold(Fold::Arrives(arrival)) => Access { touch: Touch::Last(arrival), ..*self },
            _ => *self,
        }
    }

    /// Whether this arrival, which comes last, would not come last without `other`.
    pub(crate) fn is_last_behind(&self, other: &Access) -> bool {
        match (self.touch, other.touch) {
            (Touch::Last(own), Touch::Fold(Fold::Arrives(arrival))) => own == arrival && self.object == other.object,
            _ => false,
        }
    }

    /// Whether `other`, which was possible before this step, may do something else behind it. An arrival at an mbarrier does, once the phase
    /// has ended: then it is one of the next phase. So does an arrival that now comes last.
    pub(crate) fn changes(&self, other: &Access) -> bool {
        let is_arrival =
            other.phase_before(&self.object).is_some() || matches!(other.touch, Touch::Fold(Fold::Arrives(_)));
        self.conflicts(other) || self.touch == Touch::Ends && is_arrival && self.object.overlaps(&other.object)
    }
}

impl Machine {
    /// Notes memory that the chosen step touches.
    #[inline]
    pub(super) fn touch_memory(&mut self, pe: PeId, span: Span, touch: Touch) {
        if self.in_chosen_step {
            self.note_memory(pe, span, touch);
        }
    }

    fn note_memory(&mut self, pe: PeId, span: Span, touch: Touch) {
        if touch == Touch::Write
            && let Some(mut assumed) = self.assumed.take()
        {
            // behind a race that is meant, a wait may have ended that nothing orders with this
            let disturbs = self.step.by_transfer
                || self.is_waited_for(pe, span)
                || self.is_beside(pe, span)
                || self.races.has_intended();
            assumed.write(pe, span, disturbs);
            self.assumed = Some(assumed);
        }
        let mut written = if touch == Touch::Read { span } else { self.keep_before(pe, span) };
        if touch != Touch::Read
            && let Some(assumed) = &mut self.assumed
        {
            written = assumed.writes(pe, span);
        }
        self.touch(Object::memory(pe, written), touch);
    }

    /// In a search: notes what is in memory before the chosen step. Returns which memory that is: waits may look at any of it.
    pub(super) fn keep_before(&mut self, pe: PeId, span: Span) -> Span {
        if !self.mode.needs.tracking || span.len > MOST_KEPT {
            return span;
        }
        // a wait may look at more of its words
        let end = (span.start + span.len).next_multiple_of(8);
        let start = span.start / 8 * 8;
        let len = self.heap.len(pe, span.alloc).map_or(span.len, |len| end.min(len) - start);
        let words = Span { start, len, ..span };
        self.step.before.push((Object::memory(pe, words), self.heap.bytes(pe, words).into()));
        words
    }

    /// In a search: notes what was in shared memory before the chosen step.
    pub(super) fn keep_shared(&mut self, (pe, words): (PeId, Span), before: u64) {
        if self.mode.needs.tracking {
            self.step.before.push((Object::memory(pe, words), before.to_le_bytes().into()));
        }
    }

    /// Notes that the chosen step touches something that others may touch.
    pub(super) fn touch(&mut self, object: Object, touch: Touch) {
        if self.in_chosen_step {
            self.step.touched.push(Access { object, touch, by: self.step.by });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access(object: Object, touch: Touch) -> Access {
        Access { object, touch, by: Actor { agent: None, scope: None, call: "put", at: None } }
    }

    fn bytes(start: usize, len: usize) -> Object {
        Object::memory(PeId(0), Span { alloc: AllocId(0), start, len })
    }

    #[test]
    fn overlapping_bytes_conflict_if_one_access_writes() {
        let conflict = |a, b, touches: [Touch; 2]| access(a, touches[0]).conflicts(&access(b, touches[1]));
        use Touch::{Atomic, Read, Write};
        assert!(conflict(bytes(0, 8), bytes(4, 8), [Write, Read]));
        assert!(!conflict(bytes(0, 8), bytes(8, 8), [Write, Write]));
        assert!(!conflict(bytes(0, 8), bytes(0, 8), [Read, Read]));
        assert!(conflict(bytes(0, 8), bytes(0, 8), [Atomic, Read]));
    }

    #[test]
    fn objects_of_different_kinds_never_conflict() {
        let turn = |team| Object::Turn { pe: PeId(0), team: TeamName(team) };
        assert!(access(turn(1), Touch::Write).conflicts(&access(turn(1), Touch::Read)));
        assert!(!access(turn(1), Touch::Write).conflicts(&access(turn(2), Touch::Write)));
        assert!(!access(Object::Claims(PeId(0)), Touch::Write).conflicts(&access(bytes(0, 8), Touch::Write)));
    }
}
