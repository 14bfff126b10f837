//! A block's turn: its threads run until somebody else may act.

use onesided_ptx::{Access, AccessKind, Order, Scope, Stop};

use super::super::agent::State;
use super::super::aim::Aim;
use super::super::ids::AgentId;
use super::super::{Machine, Object, Progress};
use super::world::KernelWorld;

/// Steps before the end at which the lines of calls are kept, for the report: a call takes fewer.
const CLOSE: u64 = 100;

impl Machine {
    /// A block goes on. If its step was chosen, that is the access which it stopped at.
    pub(in crate::machine) fn run_block(&mut self, agent: AgentId) {
        let id = self.block_of(agent);
        while self.finding.is_none() && self.steps <= self.until && matches!(self.agents[agent].state, State::Running) {
            if self.kernels.blocks[id].block.as_ref().is_some_and(|block| block.is_idle()) {
                // It was woken by something else than what it waits for.
                self.noting = false;
                self.step();
                return self.block_waits(agent);
            }
            let Some(mut block) = self.kernels.blocks[id].block.take() else { return }; // it has ended
            let code = std::sync::Arc::clone(&self.kernels.blocks[id].launched.code);
            let mut world = KernelWorld::new(self, agent, id, &code);
            let stop = block.run(&mut world);
            self.noting = false; // what follows the access is no part of the step
            if self.mode.tracking {
                self.kernels.blocks[id].watches.parked(&block);
            }
            self.kernels.blocks[id].block = Some(block);
            self.step();
            if !matches!(stop, Stop::Call(_) | Stop::Idle) {
                self.pasts_meet(id);
            }
            match stop {
                Stop::Call(call) => {
                    if self.steps.saturating_add(CLOSE) > self.until {
                        self.agents[agent].at = Some(code.at(call.place));
                    }
                    self.call_of_thread(agent, call);
                }
                Stop::Fence(place) => {
                    let state = &mut self.agents[agent];
                    (state.call, state.at) = ("fence of a thread", Some(code.at(place)));
                    if self.complete_stores(agent, false) == Progress::Blocked {
                        return;
                    }
                }
                Stop::Access(access) => {
                    let at = code.at(access.place);
                    let state = &mut self.agents[agent];
                    (state.call, state.at) = (name_of(&access), Some(at));
                    if self.comes_after_stores(agent, &access) && self.complete_stores(agent, true) == Progress::Blocked
                    {
                        return;
                    }
                    if self.mode.aiming {
                        self.aim_block(agent, &access);
                    }
                    return self.make_pending(agent);
                }
                Stop::Idle => return self.block_waits(agent),
                Stop::Finished => {
                    self.agents[agent].call = "end of the block";
                    if self.complete_stores(agent, false) == Progress::Done {
                        self.block_ended(id);
                    }
                    return;
                }
                Stop::Fault(fault) => return self.kernel_failed(agent, &fault),
            }
        }
    }

    /// Nobody of a block can go on.
    fn block_waits(&mut self, agent: AgentId) {
        let id = self.block_of(agent);
        let running = &mut self.kernels.blocks[id];
        running.is_idle = true;
        self.agents[agent].state = State::Parked;
    }

    fn aim_block(&mut self, agent: AgentId, access: &Access) {
        let me = self.agents[agent].pe;
        let spot = self.at_address(me, access.address, access.bytes.into()).ok();
        let aim = spot.map(|(pe, span)| Aim::new(Object::memory(pe, span), access.kind != AccessKind::Load));
        self.agents[agent].aim = aim;
    }
}

/// An access, as reports name it.
pub(super) fn name_of(access: &Access) -> &'static str {
    let narrow = access.scope != Scope::Sys;
    match (access.kind, access.order) {
        (AccessKind::Load, Order::Weak) | (AccessKind::Inspect, _) => "load",
        (AccessKind::Load, Order::Volatile) => "volatile load",
        (AccessKind::Load, order) if order.acquires() && narrow => "acquire load within the GPU",
        (AccessKind::Load, order) if order.acquires() => "acquire load",
        (AccessKind::Load, _) if narrow => "relaxed load within the GPU",
        (AccessKind::Load, _) => "relaxed load",
        (AccessKind::Store, Order::Weak) => "store",
        (AccessKind::Store, Order::Volatile) => "volatile store",
        (AccessKind::Store, order) if order.releases() && narrow => "release store within the GPU",
        (AccessKind::Store, order) if order.releases() => "release store",
        (AccessKind::Store, _) if narrow => "relaxed store within the GPU",
        (AccessKind::Store, _) => "relaxed store",
        (AccessKind::Atomic(_), _) if narrow => "atomic within the GPU",
        (AccessKind::Atomic(_), _) => "atomic of a kernel",
        (AccessKind::BulkLoad, _) => "load of a bulk copy",
        (AccessKind::BulkStore, _) => "store of a bulk copy",
    }
}
