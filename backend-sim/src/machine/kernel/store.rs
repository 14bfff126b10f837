//! Stores of kernels to other PEs' memory: each is in flight until it is seen there. A sequential fence or a release of the system's scope and the end of
//! the block wait for those that their thread comes after. Behind another fence of that scope, what writes waits, and every call that moves data or meets
//! others. A load does not.
//!
//! Strong stores always are, and so are atomics whose old value nobody looks at, unless they compare. So a thread can go on, and load what another PE has
//! not stored yet, before that PE sees what the thread has stored (store buffering). GPUs do that, too, unless a fence stands between the store and the load.
//!
//! Plain stores are in flight where races are no findings. Where they are, a plain store happens at once: whoever could see the difference races with it.
//!
//! Whoever comes after a strong store, and accesses the same place, waits for its arrival. What a thread writes to another PE's memory behind
//! `nvshmem_fence`, plainly or strongly, comes after what the fence orders to that PE.

use onesided::At;
use onesided::backend::{Effect, Shape, Span};
use onesided_ptx::{Access, AccessKind, AtomicOp, Scope, Type};

use super::super::agent::{Agent, Task};
use super::super::claim::Completes;
use super::super::ids::{AgentId, BlockId, PeId, TransferId};
use super::super::transfer::{Data, Kind, NO_SPAN, element};
use super::super::{Machine, Object, Progress, Touch};
use super::Running;
use super::threads::fold_of;
use super::world::masked;
use crate::config::Races;
use crate::lint::{Notice, Strong};
use crate::race::{StrongWrite, Ticket};

impl Machine {
    /// Whether races of plain accesses of an agent are no findings: everywhere, or because its kernel was launched under a mark.
    pub(in crate::machine) fn may_race(&self, agent: AgentId) -> bool {
        self.config.races != Races::Find || self.races.mark(agent) != 0
    }

    /// Whether an access of an agent to memory of `pe` is a write that is in flight for a time.
    pub(super) fn arrives_later(&self, access: &Access, agent: AgentId, pe: PeId) -> bool {
        let is_sent = match access.kind {
            AccessKind::Store => access.order.is_strong() || self.may_race(agent),
            // what a compare-and-swap finds decides whether it writes
            AccessKind::Atomic(op) => !access.is_used && op != AtomicOp::CompareSwap,
            _ => false,
        };
        is_sent && pe != self.agents[agent].pe && self.mode.needs.relaxed && !self.config.sequential
    }
}

/// # Issue and arrival
impl Machine {
    /// A thread stores plainly to another PE's memory, as the race detector and the lints see it.
    pub(super) fn plain_store_to_peer(
        &mut self,
        thread: AgentId,
        (pe, span): (PeId, Span),
        asked: (&'static str, At),
    ) -> Option<Ticket> {
        let ticket = self.races.store_to_peer(thread, pe, span, asked);
        self.lint(|| Notice::Written { pe, span });
        ticket
    }

    /// A thread's plain store to another PE's memory is on its way.
    pub(super) fn sends_plainly(
        &mut self,
        (id, thread): (BlockId, AgentId),
        access: &Access,
        (pe, span): (PeId, Span),
        value: u64,
        asked: (&'static str, At),
    ) -> TransferId {
        let ticket = match self.races.is_on() {
            true => {
                self.thread_acts(id, access.thread as usize);
                self.plain_store_to_peer(thread, (pe, span), asked)
            }
            false => None,
        };
        let store = self.draft_store(thread, Kind::Store, (pe, span), value, asked);
        self.flight.get_mut(store).ticket = ticket;
        if self.in_chosen_step {
            self.touch(Object::Scope(self.agents[thread].scope), Touch::Add { by: 1 });
            self.touch(Object::memory(pe, span), Touch::Write); // its own PE sees it from now on, and it is in order with others there
            self.keep_before(pe, span); // a wait there ends when it arrives, and not now
        }
        self.fly(thread, store);
        store
    }

    /// A thread's strong write to another PE's memory is about to be on its way. `begun`: with elements before this one.
    /// `known`: what the race detector knows of this one.
    pub(super) fn sends_strongly(
        &mut self,
        thread: AgentId,
        (begun, atomic): (Option<TransferId>, Option<(AtomicOp, Type)>),
        (pe, span): (PeId, Span),
        (value, known): (u64, Option<StrongWrite>),
        asked: (&'static str, At),
    ) -> TransferId {
        let id = begun.unwrap_or_else(|| self.draft_store(thread, Kind::Strong { atomic }, (pe, span), value, asked));
        let store = self.flight.get_mut(id);
        if begun.is_some() {
            let Data::Bytes(bytes) = &mut store.data else { unreachable!("a store carries its data") };
            bytes.extend_from_slice(&value.to_le_bytes()[..span.len]);
            store.dst.len += span.len;
            store.shape = Shape::contiguous(store.dst.len, span.len);
        }
        if let Some(known) = known {
            store.ticket = Some(known.ticket.clone());
            store.elements.push(known);
        }
        id
    }

    fn draft_store(
        &mut self,
        thread: AgentId,
        kind: Kind,
        (pe, span): (PeId, Span),
        value: u64,
        asked: (&'static str, At),
    ) -> TransferId {
        let me = self.agents[thread].pe;
        let id = self.draft(thread, kind, (pe, span), (me, NO_SPAN), Shape::whole(span.len), asked);
        let mut bytes = self.flight.buffer();
        bytes.extend_from_slice(&value.to_le_bytes()[..span.len]);
        self.flight.get_mut(id).data = Data::Bytes(bytes);
        id
    }

    /// A strong store arrives, or an atomic.
    pub(in crate::machine) fn strong_write_arrives(&mut self, id: TransferId, atomic: Option<(AtomicOp, Type)>) {
        let write = self.flight.get_mut(id);
        let (pe, dst, shape) = (write.dst_pe, write.dst, write.shape);
        let elements = std::mem::take(&mut write.elements);
        let Data::Bytes(bytes) = std::mem::replace(&mut write.data, Data::Source) else {
            unreachable!("a store carries its data")
        };
        for (i, bytes) in bytes.chunks_exact(shape.size).enumerate() {
            let word = element(dst, i, shape.size);
            let old = self.heap.load(pe, word);
            if let Some(known) = elements.get(i) {
                self.lint(|| Notice::Strong(Strong::arrival(&known.ticket, (pe, word), known.replaces, old)));
                self.races.strong_write_arrives(known, (pe, word));
            }
            let (new, value) = left_by(atomic, (old, word), bytes);
            if self.in_chosen_step {
                let whole = atomic.filter(|(_, ty)| !ty.is_float()); // sums of floating-point numbers do not commute
                let adds = whole.is_some_and(|(op, _)| op == AtomicOp::Add).then_some(value);
                let fold = whole.and_then(|(op, ty)| fold_of(op, ty));
                self.touch_atomically(pe, word, (old, new), (adds, fold));
            }
            self.write_word(pe, word, new);
        }
        self.flight.recycle(bytes);
    }

    /// A word gets a value. Returns whether it changes.
    pub(super) fn write_word(&mut self, pe: PeId, word: Span, value: u64) -> bool {
        let changes = self.heap.load(pe, word) != value;
        if changes {
            self.heap.store(pe, word, value);
            self.wrote(pe, word);
        } else {
            self.lint(|| Notice::Changed { pe, span: word }); // what fresh memory happens to hold is written, too
        }
        changes
    }

    /// What a block loads from another PE's memory: what is there, under what its own PE's kernels have stored plainly.
    pub(super) fn load_from_peer(&mut self, agent: AgentId, pe: PeId, span: Span) -> u64 {
        let mut bytes = self.heap.load(pe, span).to_le_bytes();
        if self.mode.needs.relaxed {
            self.flight.lay_stores_over(self.agents[agent].scope, pe, span, &mut bytes[..span.len]);
        }
        u64::from_le_bytes(bytes)
    }
}

/// # What comes after stores
///
/// In a search, stores also count that have arrived: an agent comes after that, and what it does next must not depend on how early it was.
impl Machine {
    /// Whether kernels of the agent's PE have issued anything.
    pub(super) fn has_issued(&self, agent: AgentId) -> bool {
        self.mode.needs.relaxed && self.flight.any(self.agents[agent].scope, |_, _| true)
    }

    /// Whether an agent of a kernel comes after stores of its PE's kernels to other PEs' memory.
    pub(super) fn comes_after_stores(&self, agent: AgentId) -> bool {
        let mut stores = self.flight.stores(self.agents[agent].scope);
        self.mode.needs.relaxed && stores.any(|(_, _, ticket)| self.races.comes_after_store(agent, ticket))
    }

    /// Whether an access to another PE's memory comes after a store of its own PE there. A load sees plain stores without waiting for them, and
    /// a plain store is behind other plain ones by its own place in the order.
    pub(super) fn comes_after_store_there(&self, agent: AgentId, access: &Access, (pe, span): (PeId, Span)) -> bool {
        let also_plain = access.order.is_strong() && access.kind != AccessKind::Load;
        self.mode.needs.relaxed
            && self.flight.stores(self.agents[agent].scope).any(|(to, store, ticket)| {
                to == pe
                    && store.span.overlaps(&span)
                    && if store.is_strong { self.races.comes_after_store(agent, ticket) } else { also_plain }
            })
    }

    /// Whether a fence of NVSHMEM puts something that is in flight before what a thread writes at once to a PE's memory. In a search that counts
    /// also when it has arrived.
    pub(super) fn comes_after_fenced(&self, agent: AgentId, access: &Access, to: PeId) -> bool {
        let Agent { pe: me, scope, .. } = self.agents[agent];
        // what arrives later comes after that by its own place in the order
        let writes = access.kind != AccessKind::Load && !self.arrives_later(access, agent, to);
        writes
            && to != me
            && self.mode.needs.relaxed
            && self.flight.any(scope, |rank, ticket| {
                rank.precedes_next(to, self.races.has_fenced(agent, ticket), access.order.is_strong())
            })
    }

    /// A thread is about to access memory: it goes on when what comes before that has arrived.
    pub(super) fn wait_before_access(&mut self, agent: AgentId, access: &Access) -> Progress {
        let me = self.agents[agent].pe;
        let Ok((to, span)) = self.at_address(me, access.address, access.bytes.into()) else {
            return Progress::Done; // it fails when it is made
        };
        let writes = !matches!(access.kind, AccessKind::Load | AccessKind::BulkLoad);
        let stores = writes && access.order.releases() && access.scope == Scope::Sys && self.comes_after_stores(agent);
        let behind_fence = writes && self.is_told_of_stores(&[agent]);
        let there = self.comes_after_store_there(agent, access, (to, span));
        let fenced = self.comes_after_fenced(agent, access, to);
        if !(stores || behind_fence || there || fenced) {
            return Progress::Done;
        }
        if stores {
            self.races.complete(agent, Completes::Stores);
        }
        let strongly = access.order.is_strong();
        let also_plain = strongly && writes;
        self.await_issued(agent, |races, rank, ticket| {
            let store = rank.store.is_some_and(|store| {
                let is_there = there && rank.target == to && store.span.overlaps(&span);
                let comes_before = is_there && store.is_strong || stores;
                comes_before && races.comes_after_store(agent, ticket)
                    || is_there && !store.is_strong && also_plain
                    || behind_fence && races.is_told_of_arrival(agent, ticket, rank.target)
            });
            store || fenced && rank.precedes_next(to, races.has_fenced(agent, ticket), strongly)
        })
    }

    /// Whether agents of a kernel come after a fence of the system's scope, of whichever thread, that has stores of their PE's kernels in front of it.
    fn is_told_of_stores(&self, agents: &[AgentId]) -> bool {
        let is_told = |to, ticket| agents.iter().any(|&agent| self.races.is_told_of_arrival(agent, ticket, to));
        self.mode.needs.relaxed
            && self.races.is_on()
            && self.flight.stores(self.agents[agents[0]].scope).any(|(to, _, ticket)| is_told(to, ticket))
    }

    /// Threads are about to make a call, as `caller`. One that moves data or meets others begins when the stores have arrived that a fence puts before it.
    pub(super) fn wait_before_call(
        &mut self,
        id: BlockId,
        (caller, threads): (AgentId, &[usize]),
        (what, at): (&Task, At),
    ) -> Progress {
        let Task::Op { op, .. } = what else { return Progress::Done };
        let waits = matches!(op.effect(), Effect::Transfer(_) | Effect::Collective(_));
        if !waits || !self.has_issued(caller) {
            return Progress::Done;
        }
        let Running { agent: block, threads: ref agents, .. } = self.kernels.blocks[id];
        // who has not acted knows what its block knows
        let threads: Vec<AgentId> = threads.iter().map(|&thread| agents[thread].unwrap_or(block)).collect();
        threads.iter().for_each(|&thread| self.races.thread_acts(thread));
        if !self.is_told_of_stores(&threads) {
            return Progress::Done;
        }
        (self.agents[caller].call, self.agents[caller].at) = (what.name(), Some(at));
        self.await_issued(caller, |races, rank, ticket| {
            let is_told = |&agent: &AgentId| races.is_told_of_arrival(agent, ticket, rank.target);
            rank.store.is_some() && threads.iter().any(is_told)
        })
    }

    /// The agent goes on when its PE's stores have arrived that it comes after.
    pub(super) fn complete_stores(&mut self, agent: AgentId) -> Progress {
        match self.comes_after_stores(agent) {
            true => self.complete(agent, None, Completes::Stores, None),
            false => Progress::Done,
        }
    }
}

/// What a strong write leaves in a word that holds `old`, and the value that it carries.
pub(in crate::machine) fn left_by(
    atomic: Option<(AtomicOp, Type)>,
    (old, word): (u64, Span),
    carried: &[u8],
) -> (u64, u64) {
    let mut value = [0; 8];
    value[..carried.len()].copy_from_slice(carried);
    let value = u64::from_le_bytes(value);
    (atomic.map_or(value, |(op, ty)| masked(op.apply(ty, old, value, 0), word)), value)
}
