//! What strong accesses and fences of kernels tell (PTX's memory model): a release tells what its block has done, an acquire learns it.
//!
//! A fence followed by a strong store releases; a strong load followed by a fence acquires. The detector knows blocks, not threads: between the
//! threads of a block, the interpreter looks for races itself, in shared memory.

use onesided::At;
use onesided::backend::{AllocId, Span};
use onesided_ptx::{Access, AccessKind, Scope};

use super::super::ids::{BlockId, PeId};
use super::super::{Machine, Touch};
use crate::race::{How, Told};

/// What a block's relaxed accesses have brought, and what its next relaxed store tells.
#[derive(Debug, Default)]
pub(super) struct Heard {
    /// Read by strong loads since the last fence.
    pending: Vec<Told>,
    /// What the block had done when it came to its last fence.
    fenced: Option<Told>,
}

/// What a block polled when nobody of it could go on, in a tracked run: its next poll depends on all of that.
#[derive(Debug, Default)]
pub(super) struct Watch {
    reads: Vec<(PeId, Span)>,
    /// Steps that changed some of it since then.
    changes: Vec<usize>,
}

impl Watch {
    pub(super) fn begin(&mut self, reads: impl Iterator<Item = (PeId, Span)>) {
        self.reads.clear();
        self.reads.extend(reads);
        self.changes.clear();
    }

    pub(super) fn changed(&mut self, (pe, span): (PeId, Span), step: usize) {
        if self.reads.iter().any(|(of, read)| *of == pe && read.overlaps(&span)) {
            self.changes.push(step);
        }
    }

    /// At the first access to something that was polled, and has changed since then: what it was.
    fn polls(&mut self, (pe, span): (PeId, Span)) -> Option<Watch> {
        let is_poll = self.reads.iter().any(|(of, read)| *of == pe && read.overlaps(&span));
        (is_poll && !self.changes.is_empty()).then(|| std::mem::take(self))
    }
}

/// Who accesses a word strongly, and in which scope.
#[derive(Clone, Copy, Debug)]
pub(super) struct Strong {
    pe: PeId,
    narrow: bool,
    asked: (&'static str, At),
}

/// A word, by PE, allocation and offset.
pub(super) type Words = std::collections::BTreeMap<(PeId, AllocId, usize), Strong>;

impl Machine {
    /// A block accesses a word strongly.
    pub(super) fn strong_access(
        &mut self,
        id: BlockId,
        access: &Access,
        (pe, span): (PeId, Span),
        asked: (&'static str, At),
    ) {
        self.check_scope(id, access, (pe, span), asked);
        self.depend_on_polled(id, (pe, span));
        if !self.races.is_on() {
            return;
        }
        let agent = self.kernels.blocks[id].agent;
        let how = if access.kind == AccessKind::Load { How::AtomicRead } else { How::AtomicUpdate };
        self.observe(agent, pe, span, how, span.len, asked);
        if access.kind != AccessKind::Store
            && let Some(told) = self.races.told(pe, span)
        {
            match access.order.acquires() {
                true => self.races.learn_told(agent, &told),
                false => self.kernels.blocks[id].heard.pending.push(told),
            }
        }
        if access.kind != AccessKind::Load {
            let told = match access.order.releases() {
                true => self.races.tell(agent),
                false => self.kernels.blocks[id].heard.fenced.clone(),
            };
            self.races.update(agent, pe, span, told.as_ref(), access.kind == AccessKind::Store);
        }
    }

    /// In a tracked run: a step that looks at what the block has polled in vain depends on all of that, and on what has changed it.
    pub(super) fn depend_on_polled(&mut self, id: BlockId, at: (PeId, Span)) {
        if self.mode.tracking
            && self.noting
            && let Some(Watch { reads, changes }) = self.kernels.blocks[id].watch.polls(at)
        {
            reads.into_iter().for_each(|(pe, read)| self.touch_memory(pe, read, Touch::Read));
            self.step.enabled_by.extend(changes);
        }
    }

    /// A thread of a block comes to a fence.
    pub(super) fn kernel_fence(&mut self, id: BlockId, scope: Scope) {
        if scope <= Scope::Cta || !self.races.is_on() {
            return; // the interpreter orders the block's own threads
        }
        let agent = self.kernels.blocks[id].agent;
        for told in std::mem::take(&mut self.kernels.blocks[id].heard.pending) {
            self.races.learn_told(agent, &told);
        }
        self.kernels.blocks[id].heard.fenced = self.races.tell(agent);
    }

    /// Two PEs that access a word strongly synchronize only if the scope of each includes the other.
    fn check_scope(&mut self, id: BlockId, access: &Access, (pe, span): (PeId, Span), asked: (&'static str, At)) {
        let me = self.agents[self.kernels.blocks[id].agent].pe;
        let mine = Strong { pe: me, narrow: access.scope != Scope::Sys, asked };
        let known = self.kernels.strong.entry((pe, span.alloc, span.start)).or_insert(mine);
        let other = *known;
        if other.pe == me {
            known.narrow |= mine.narrow;
            return;
        }
        if other.narrow || mine.narrow {
            self.scope_too_narrow(id, span, mine.asked, (other.pe, other.asked));
        }
    }
}
