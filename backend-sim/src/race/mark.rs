//! [`Mark`]: one access, as shadow memory keeps it.

use onesided_ptx::Scope;

use super::how::How;
use super::scope::takes_in_blocks;
use super::{Lane, View};
use crate::machine::{AgentId, PeId, Table};

/// One access, as shadow memory keeps it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    /// When it was made, or its transfer issued. 0: no access.
    pub(super) time: u64,
    /// Agent and lane.
    pub(super) owner: u32,
    /// Source line, whether it writes what it has written before or is the source of a transfer, whether its scope is that of a block or of a GPU, kind of access, and size of a
    /// word.
    pub(super) what: u32,
}

impl Mark {
    pub(super) const BLANK: Mark = Mark { time: 0, owner: 0, what: 0 };

    #[inline]
    pub(super) fn new(agent: AgentId, lane: Lane, time: u64, site: u32, how: How, size: usize) -> Mark {
        let what = site << 8 | (how as u32) << 2 | size.trailing_zeros().min(3);
        Mark { time, owner: agent.0 << 3 | lane as u32, what }
    }

    /// The same, atomic in a scope only: to what agents beyond it do, it is no atomic.
    pub(super) fn within(self, scope: Scope) -> Mark {
        let narrow = match scope {
            Scope::Sys => 0,
            scope if takes_in_blocks(scope) => WITHIN_GPU,
            _ => WITHIN_BLOCK,
        };
        Mark { what: self.what | narrow, ..self }
    }

    #[inline]
    pub(super) fn is_narrow(&self) -> bool {
        self.what & NARROW != 0
    }

    /// The same, of a write to where this one was the last.
    #[inline(always)] // on the hottest path
    pub(super) fn over(self, last: &Mark) -> Mark {
        let again = self.owner == last.owner && (self.what ^ last.what) & !AGAIN == 0;
        Mark { what: self.what | (u32::from(again) * AGAIN), ..self }
    }

    /// Whether the same call of the same agent has written there before, and nobody else since.
    pub(super) fn is_again(&self) -> bool {
        self.what & AGAIN != 0
    }

    /// The same, whatever was there before.
    pub(super) fn once(self) -> Mark {
        Mark { what: self.what & !AGAIN, ..self }
    }

    #[inline]
    pub(super) fn is_within_block(&self) -> bool {
        self.what & WITHIN_BLOCK != 0
    }

    #[inline]
    pub(super) fn is_blank(&self) -> bool {
        self.time == 0
    }

    #[inline]
    pub(super) fn agent(&self) -> AgentId {
        AgentId(self.owner >> 3)
    }

    #[inline]
    pub(super) fn lane(&self) -> Lane {
        Lane::ALL[(self.owner & 7) as usize]
    }

    #[inline]
    pub(super) fn how(&self) -> How {
        How::from_bits(self.what >> 2 & 7)
    }

    pub(super) fn site(&self) -> u32 {
        self.what >> 8
    }

    /// Whether two accesses conflict, whoever makes them.
    #[inline(always)] // three times an access
    pub(super) fn conflicts(&self, other: &Mark) -> bool {
        !other.is_blank() && How::conflicts(self.what >> 2, other.what >> 2, self.what & 3 == other.what & 3)
    }

    /// Whether two accesses conflict if the scope of one does not take in the agent of the other.
    #[inline(always)] // likewise
    pub(super) fn conflicts_afar(&self, other: &Mark) -> bool {
        self.conflicts(other)
            || (self.what | other.what) & NARROW != 0
                && !other.is_blank()
                && (self.how().writes() || other.how().writes())
    }

    /// Whether everything that conflicts with `self` conflicts with `later` too, if their scopes, where they have any, are of one block or GPU. A read that
    /// says more of the write before it stays.
    #[inline(always)] // likewise
    pub(super) fn stands_for(&self, later: &Mark) -> bool {
        (self.what & 0x7f == later.what & 0x7f || self.how() == How::Read && later.how() == How::Read)
            && !self.is_source()
    }

    /// The same read, of a transfer that a kernel makes from its own PE's memory.
    pub(super) fn of_source(self) -> Mark {
        Mark { what: self.what | SOURCE, ..self }
    }

    #[inline(always)] // as its callers
    pub(super) fn is_source(&self) -> bool {
        self.what & (SOURCE | HOW) == SOURCE | (How::Read as u32) << 2
    }

    /// Whether this access to memory of a PE is a store or an atomic by a kernel of that PE.
    pub(super) fn is_own_store(&self, pe: PeId, agents: &Table<AgentId, View>) -> bool {
        let by = &agents[self.agent()];
        self.lane() == Lane::Steps && self.how().writes() && by.pe == pe && by.is_in_kernel()
    }

    /// What an agent has to know of this access to memory of a PE. A kernel's store to its own PE's memory is there at once for kernels
    /// of that PE. For the others it is a store like one to another PE.
    pub(super) fn lane_to(&self, reader: &View, pe: PeId, agents: &Table<AgentId, View>) -> Lane {
        let is_near = reader.pe == pe && reader.is_in_kernel();
        if !is_near && self.is_own_store(pe, agents) { Lane::Stores } else { self.lane() }
    }
}

/// Of [`Mark::what`]: the scope is that of a GPU.
const WITHIN_GPU: u32 = 1 << 5;
/// The same: of a block.
const WITHIN_BLOCK: u32 = 1 << 6;
const NARROW: u32 = WITHIN_GPU | WITHIN_BLOCK;
/// The same, of a write: the write before it was of the same call and agent.
const AGAIN: u32 = 1 << 7;
/// The same, of a read: it is the first since the last write by a transfer that a kernel makes from its own PE's memory.
const SOURCE: u32 = 1 << 7;
/// The same: the kind of access.
const HOW: u32 = 7 << 2;
