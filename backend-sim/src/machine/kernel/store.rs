//! Plain stores of kernels to other PEs' memory, where their races are no findings: each is in flight until it is seen there. A fence or a
//! release of the system's scope and the end of the block wait for those that their thread comes after.
//!
//! Where races are findings, a store happens at once: whoever could see the difference races with it.
//!
//! What a thread writes to another PE's memory behind `nvshmem_fence`, plainly or strongly, comes after what the fence orders to that PE.

use onesided::At;
use onesided::backend::{Shape, Span};
use onesided_ptx::{Access, AccessKind, Scope};

use super::super::agent::Agent;
use super::super::claim::Completes;
use super::super::ids::{AgentId, PeId};
use super::super::transfer::{Data, Kind, NO_SPAN};
use super::super::{Machine, Object, Progress, Touch};
use crate::config::Races;

impl Machine {
    /// Whether races of plain accesses of an agent are no findings: everywhere, or because its kernel was launched under a mark.
    pub(in crate::machine) fn may_race(&self, agent: AgentId) -> bool {
        self.config.races != Races::Find || self.races.mark(agent) != 0
    }

    /// Whether a store of an agent to memory of `pe` is in flight for a time.
    pub(super) fn stores_fly(&self, access: &Access, agent: AgentId, pe: PeId) -> bool {
        pe != self.agents[agent].pe
            && !access.order.is_strong()
            && access.kind == AccessKind::Store
            && self.may_race(agent)
            && self.mode.needs.relaxed
            && !self.config.sequential
    }

    /// A thread stores plainly to another PE's memory.
    pub(super) fn store_to_peer(
        &mut self,
        agent: AgentId,
        (pe, span): (PeId, Span),
        value: u64,
        asked: (&'static str, At),
    ) {
        let me = self.agents[agent].pe;
        let shape = Shape::whole(span.len);
        let id = self.draft(agent, Kind::Store, (pe, span), (me, NO_SPAN), shape, asked);
        let mut bytes = self.flight.buffer();
        bytes.extend_from_slice(&value.to_le_bytes()[..span.len]);
        self.flight.get_mut(id).data = Data::Bytes(bytes);
        if self.in_chosen_step {
            self.touch(Object::Scope(self.agents[agent].scope), Touch::Add { by: 1 });
            self.touch(Object::memory(pe, span), Touch::Write); // its own PE sees it from now on, and it is in order with others there
            self.keep_before(pe, span); // a wait there ends when it arrives, and not now
        }
        self.fly(agent, id);
        if self.races.is_on() {
            let by = Some((agent, self.races.last_step(agent)));
            self.flight.get_mut(id).rank.store.iter_mut().for_each(|store| store.by = by);
        }
    }

    /// What a block loads from another PE's memory: what is there, under what its own PE's kernels have stored.
    pub(super) fn load_from_peer(&mut self, agent: AgentId, pe: PeId, span: Span) -> u64 {
        let mut bytes = self.heap.load(pe, span).to_le_bytes();
        if self.mode.needs.relaxed {
            self.flight.lay_stores_over(self.agents[agent].scope, pe, span, &mut bytes[..span.len]);
        }
        u64::from_le_bytes(bytes)
    }

    /// Whether kernels of the agent's PE have stored plainly to other PEs' memory. In a search that counts also when the stores have arrived:
    /// the agent comes after that.
    pub(super) fn has_stored(&self, agent: AgentId) -> bool {
        self.mode.needs.relaxed && self.flight.stores(self.agents[agent].scope).next().is_some()
    }

    /// Whether an access comes after all stores of its PE: it releases, or changes what one of them writes.
    fn comes_after_stores(&self, agent: AgentId, access: &Access, spot: (PeId, Span)) -> bool {
        if !access.order.is_strong() || !self.has_stored(agent) {
            return false;
        }
        let same = |(pe, span): (PeId, Span)| {
            self.flight.stores(self.agents[agent].scope).any(|(to, stored)| to == pe && stored.span.overlaps(&span))
        };
        access.order.releases() && access.scope == Scope::Sys || same(spot)
    }

    /// Whether a fence of NVSHMEM puts something that is in flight before what a thread writes at once to a PE's memory. In a search that counts
    /// also when it has arrived.
    pub(super) fn comes_after_fenced(&self, agent: AgentId, access: &Access, to: PeId) -> bool {
        let Agent { pe: me, scope, .. } = self.agents[agent];
        // a store that flies comes after that by its own place in the order
        let writes = access.kind != AccessKind::Load && !self.stores_fly(access, agent, to);
        writes
            && to != me
            && self.mode.needs.relaxed
            && self.flight.any(scope, |rank, ticket| {
                rank.precedes_next(to, self.races.has_fenced(agent, ticket), access.order.is_strong())
            })
    }

    /// A thread is about to write: it goes on when what comes before that has arrived.
    pub(super) fn wait_before_write(&mut self, agent: AgentId, access: &Access) -> Progress {
        if access.kind == AccessKind::Load {
            return Progress::Done;
        }
        let Ok((to, span)) = self.at_address(self.agents[agent].pe, access.address, access.bytes.into()) else {
            return Progress::Done; // it fails when it is made
        };
        let stores = self.comes_after_stores(agent, access, (to, span));
        let fenced = self.comes_after_fenced(agent, access, to).then_some(to);
        match (stores, fenced) {
            (false, None) => Progress::Done,
            (true, None) => self.complete_stores(agent),
            (stores, Some(to)) => self.await_fenced(agent, to, (stores, access.order.is_strong())),
        }
    }

    /// The agent goes on when its PE's stores have arrived that it comes after.
    pub(super) fn complete_stores(&mut self, agent: AgentId) -> Progress {
        match self.has_stored(agent) {
            true => self.complete(agent, None, Completes::Stores, None),
            false => Progress::Done,
        }
    }
}
