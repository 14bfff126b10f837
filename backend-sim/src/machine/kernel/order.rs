//! What strong accesses and fences of kernels tell (PTX's memory model): a release tells what its thread has done, an acquire learns it.
//!
//! A fence followed by a strong store releases; a strong load followed by a fence acquires. Here any thread of the block may be the one
//! that fences: `__threadfence(); __syncthreads();`, then a store by one thread, is common, and right on every GPU.

use std::collections::BTreeMap;

use onesided::At;
use onesided::backend::{AllocId, Span};
use onesided_ptx::{Access, AccessKind, Scope};

use super::super::ids::{AgentId, BlockId, PeId};
use super::super::{Machine, Touch};
use crate::race::{How, Narrow, Told};

/// What a block's relaxed accesses have brought, and what its next relaxed store tells.
#[derive(Debug, Default)]
pub(super) struct Heard {
    /// Read by strong loads since the last fence, and whether it takes a fence of the system's scope to learn it.
    pending: Vec<(Told, bool)>,
    /// What threads of the block had done when they came to their fences of the system.
    fenced: Option<Told>,
    /// The same, for fences of the GPU too: what a store tells others of the PE.
    fenced_on_gpu: Option<Narrow>,
    /// The same, for fences of any scope: what a store to shared memory tells.
    fenced_in_block: Option<Told>,
    /// What was released at addresses of shared memory.
    shared: BTreeMap<u64, Told>,
}

/// Memory of a PE.
type Spot = (PeId, Span);

/// What a block polled when nobody of it could go on, in a tracked run: its next poll depends on all of that.
#[derive(Debug, Default)]
pub(super) struct Watch {
    reads: Vec<(PeId, Span)>,
    /// Steps that changed some of it since then.
    changes: Vec<usize>,
    /// All changes of others since the block began, and their steps.
    all: Vec<((PeId, Span), usize)>,
}

impl Watch {
    /// A poll is made again, because something was changed since it was begun. Since then, others have made so many changes.
    pub(super) fn begin_behind(&mut self, reads: impl Iterator<Item = (PeId, Span)>, changes: u64) {
        self.begin(reads);
        let begin = self.all.len().saturating_sub(changes as usize);
        let read = self.all[begin..].iter().filter(|(at, _)| self.is_read(*at));
        self.changes = read.map(|(_, step)| *step).collect();
    }

    fn is_read(&self, (pe, span): (PeId, Span)) -> bool {
        self.reads.iter().any(|(of, read)| *of == pe && read.overlaps(&span))
    }

    pub(super) fn begin(&mut self, reads: impl Iterator<Item = (PeId, Span)>) {
        self.reads.clear();
        self.reads.extend(reads);
        self.changes.clear();
    }

    /// Memory has changed in a step, of others or of the block's own.
    pub(super) fn changed(&mut self, at: (PeId, Span), (step, of_others): (usize, bool)) {
        if of_others {
            self.all.push((at, step));
        }
        if self.is_read(at) {
            self.changes.push(step);
        }
    }

    /// At the first access to something that was polled, and has changed since then: what it was.
    fn polls(&mut self, at: (PeId, Span)) -> Option<(Vec<Spot>, Vec<usize>)> {
        let is_poll = self.is_read(at) && !self.changes.is_empty();
        is_poll.then(|| (std::mem::take(&mut self.reads), std::mem::take(&mut self.changes)))
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
pub(super) type Words = BTreeMap<(PeId, AllocId, usize), Strong>;

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
        let agent = self.thread_acts(id, access.thread as usize);
        let how = if access.kind == AccessKind::Load { How::AtomicRead } else { How::AtomicUpdate };
        self.observe(agent, pe, span, how, span.len, asked);
        if access.kind != AccessKind::Store
            && let Some((told, far)) = self.races.heard(agent, pe, span)
        {
            match access.order.acquires() {
                true => self.races.learn_told(agent, &told),
                false => self.kernels.blocks[id].heard.pending.push((told, far)),
            }
        }
        if access.kind != AccessKind::Load {
            let told = match access.order.releases() {
                true => (self.races.tell(agent), None),
                false => {
                    let heard = &self.kernels.blocks[id].heard;
                    (heard.fenced.clone(), heard.fenced_on_gpu.clone())
                }
            };
            self.races.update_by_kernel(agent, (pe, span), told, access.kind == AccessKind::Store);
        }
    }

    /// In a tracked run: a step that looks at what the block has polled in vain depends on all of that, and on what has changed it.
    pub(in crate::machine) fn depend_on_polled(&mut self, id: BlockId, at: (PeId, Span)) {
        if self.mode.tracking
            && self.noting
            && let Some((reads, changes)) = self.kernels.blocks[id].watch.polls(at)
        {
            reads.into_iter().for_each(|(pe, read)| self.touch_memory(pe, read, Touch::Read));
            self.step.enabled_by.extend(changes);
        }
    }

    /// A thread of a block comes to a fence.
    pub(super) fn kernel_fence(&mut self, id: BlockId, thread: usize, scope: Scope, at: At) {
        if !self.races.is_on() {
            return;
        }
        let agent = self.thread_acts(id, thread);
        for (told, far) in std::mem::take(&mut self.kernels.blocks[id].heard.pending) {
            if far && scope != Scope::Sys {
                self.races.misses(agent, &told, at);
                self.kernels.blocks[id].heard.pending.push((told, far)); // for a later fence
            } else {
                self.races.learn_told(agent, &told);
            }
        }
        let told = self.races.tell(agent);
        let heard = &mut self.kernels.blocks[id].heard;
        heard.fenced_in_block = self.races.tell_both(heard.fenced_in_block.take(), told.clone());
        if scope > Scope::Cta {
            let before = heard.fenced_on_gpu.take();
            let fence = if scope == Scope::Sys { before.as_ref().and_then(|before| before.fence) } else { Some(at) };
            let both = self.races.tell_both(before.map(|before| before.told), told.clone());
            heard.fenced_on_gpu = both.map(|told| Narrow { told, fence });
        }
        if scope == Scope::Sys {
            heard.fenced = self.races.tell_both(heard.fenced.take(), told);
        }
    }

    /// A thread writes to shared memory strongly: what that tells others of the block.
    pub(super) fn tells_in_block(&mut self, id: BlockId, agent: AgentId, address: u64, releases: bool, atomic: bool) {
        let heard = &self.kernels.blocks[id].heard;
        let told = if releases { self.races.tell(agent) } else { heard.fenced_in_block.clone() };
        let before = heard.shared.get(&address).filter(|_| atomic).cloned();
        let told = self.races.tell_both(before, told);
        let shared = &mut self.kernels.blocks[id].heard.shared;
        match told {
            Some(told) => _ = shared.insert(address, told),
            None => _ = shared.remove(&address),
        }
    }

    /// A thread reads shared memory strongly.
    pub(super) fn hears_in_block(&mut self, id: BlockId, agent: AgentId, address: u64, acquires: bool) {
        let heard = &mut self.kernels.blocks[id].heard;
        let Some(told) = heard.shared.get(&address).cloned() else { return };
        match acquires {
            true => self.races.learn_told(agent, &told),
            false => heard.pending.push((told, false)),
        }
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
