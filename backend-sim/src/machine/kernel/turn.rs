//! A block's turn: its threads run until somebody else may act.

use onesided::At;
use onesided_ptx::{Access, AccessKind, AtomicOp, Order, Scope, Stop, Within};

use super::super::agent::{Pending, State};
use super::super::aim::Aim;
use super::super::ids::{AgentId, BlockId};
use super::super::{Machine, Object, Progress};
use super::ends_loop::Begins;
use super::world::KernelWorld;
use super::{Kernels, Running};
use crate::limits::Bound;
use crate::race::takes_in_blocks;
use crate::verdict::VerdictKind;

/// Turns of blocks after which the deadline is looked at: one may be a single access, or all that a kernel computes, which looks itself.
const TURNS: u32 = 1024;

/// Steps before the end at which the lines of calls are kept, for the report: a call takes fewer.
const CLOSE: u64 = 100;

impl Machine {
    /// A block goes on: each thread until it is stopped at its next step, or waits.
    pub(in crate::machine) fn run_block(&mut self, agent: AgentId) {
        let id = self.block_of(agent);
        self.take_turns(agent, id);
        for thread in std::mem::take(&mut self.kernels.blocks[id].answered) {
            self.call_of_thread_finished(thread);
        }
    }

    fn take_turns(&mut self, agent: AgentId, id: BlockId) {
        while self.finding.is_none() && self.steps <= self.until && matches!(self.agents[agent].state, State::Running) {
            if let Some(bound) = self.is_over_at_a_turn() {
                return self.found(VerdictKind::Stopped { bound });
            }
            if self.kernels.blocks[id].block.as_ref().is_some_and(|block| block.is_idle()) {
                // It was woken by something else than what it waits for.
                self.step();
                return self.block_waits(agent);
            }
            let Some(mut block) = self.kernels.blocks[id].block.take() else { return }; // it has ended
            let code = std::sync::Arc::clone(&self.kernels.blocks[id].launched.code);
            let mut world = KernelWorld::new(self, agent, id, &code);
            let stop = block.run(&mut world);
            self.kernels.ending = None;
            self.in_chosen_step = false; // what follows the access is no part of the step
            if self.mode.needs.tracking {
                let name = self.block_name(id);
                let Kernels { blocks, workspaces, .. } = &mut self.kernels;
                blocks[id].watches.parked(name, &block, workspaces);
            }
            self.kernels.blocks[id].block = Some(block);
            self.recheck_block(id);
            self.step();
            match stop {
                Stop::Call(call) => {
                    if self.steps.saturating_add(CLOSE) > self.until {
                        self.agents[agent].at = Some(code.at(call.place));
                    }
                    self.call_of_thread(agent, call);
                }
                Stop::Fence(thread, place) => {
                    let thread = self.thread_comes_to(id, thread, ("fence of a thread", code.at(place)));
                    if self.complete_stores(thread) == Progress::Done {
                        self.thread_stops(thread); // a step, whether or not something was left to wait for
                    }
                }
                Stop::Access(access) => {
                    let asked = (name_of(&access), code.at(access.place));
                    let thread = self.thread_comes_to(id, access.thread as usize, asked);
                    if self.awaits_phase(thread, id, &access) {
                        continue;
                    }
                    if let Some(looking) = self.ends_loop(thread, id, &access) {
                        self.kernels.blocks[id].loops.insert(thread, looking);
                    }
                    if self.mode.needs.aiming {
                        self.aim_thread(thread, id, &access);
                    }
                    if self.wait_before_access(thread, &access) == Progress::Done {
                        self.thread_stops(thread);
                    }
                }
                Stop::Looks => return self.woken.push_back(agent),
                Stop::Idle => return self.block_waits(agent),
                Stop::Finished => {
                    self.pasts_meet(id);
                    self.agents[agent].call = "end of the block";
                    if self.complete_stores(agent) == Progress::Done {
                        self.block_ended(id);
                    }
                    return;
                }
                Stop::Fault(fault) => {
                    self.kernel_failed(agent, &fault);
                    let block = self.kernels.blocks[id].block.as_mut().expect("its turn is over");
                    block.goes_on_without(&fault); // where the run goes on
                }
            }
        }
    }

    /// What ends the run from outside, as far as it is looked at: every so many turns of blocks.
    fn is_over_at_a_turn(&mut self) -> Option<Bound> {
        self.kernels.turns = (self.kernels.turns + 1) % TURNS;
        if self.kernels.turns == 0 { self.deadline.over() } else { None }
    }

    /// The run goes on behind a finding, by which blocks were interrupted.
    pub(crate) fn blocks_go_on(&mut self) {
        let live = self.kernels.live.iter().map(|&id| self.kernels.blocks[id].agent);
        let interrupted = live.filter(|&block| matches!(self.agents[block].state, State::Running));
        self.woken.extend(interrupted);
    }

    /// A thread is stopped at an access or a fence.
    fn thread_comes_to(&mut self, id: BlockId, thread: usize, (call, at): (&'static str, At)) -> AgentId {
        let agent = self.thread_acts(id, thread); // what it waits for is about what it comes after
        let past = self.past_of_threads(id, &[thread]);
        let state = &mut self.agents[agent];
        state.past.join(&past);
        (state.call, state.at, state.aim) = (call, Some(at), None);
        agent
    }

    /// The thread's access, fence or call is its next step.
    pub(in crate::machine) fn thread_stops(&mut self, thread: AgentId) {
        let id = self.block_of(thread);
        let loops = &mut self.kernels.blocks[id].loops;
        let issues = loops.get(&thread).is_some_and(|looking| matches!(looking.begins, Begins::Issuing));
        if !issues
            && let Some(looking) = loops.remove(&thread)
            && self.says_nothing(&looking.besides)
        {
            return self.waits_in_loop(thread, id, looking);
        }
        let pending = if self.calls(thread) { Pending::Call } else { Pending::Access };
        self.agents[thread].set(State::Pending(pending));
        self.make_ready(thread);
    }

    /// The access or fence of a thread was chosen. It makes it, and goes on.
    pub(in crate::machine) fn thread_goes_on(&mut self, thread: AgentId) {
        self.agents[thread].set(State::Running);
        self.let_go_on(thread);
        let id = self.block_of(thread);
        let Running { agent: block, ref mut is_idle, .. } = self.kernels.blocks[id];
        *is_idle = false;
        self.agents[block].set(State::Running);
        self.run_block(block);
    }

    fn let_go_on(&mut self, thread: AgentId) {
        let id = self.block_of(thread);
        let number = self.first_of(id, thread);
        if self.mode.needs.tracking {
            let past = &self.agents[thread].past;
            self.kernels.blocks[id].pasts.entry(number).or_default().join(past);
        }
        self.kernels.blocks[id].block.as_mut().expect("it is between two turns").go_on(number);
    }

    /// Nobody of a block can go on.
    fn block_waits(&mut self, agent: AgentId) {
        let id = self.block_of(agent);
        let running = &mut self.kernels.blocks[id];
        running.is_idle = true;
        self.agents[agent].state = State::Parked;
    }

    fn aim_thread(&mut self, agent: AgentId, id: BlockId, access: &Access) {
        let me = self.agents[agent].pe;
        let (address, bytes) = match access.goes_on(self.promises.whole_words) {
            true if access.within == Within::Low => (access.address, 16),
            true => (access.address & !7, 8),
            false => (access.address, access.bytes),
        };
        let object = match Object::shared(self.block_name(id), address, bytes) {
            None => self.at_address(me, address, bytes.into()).ok().map(|(pe, span)| Object::memory(pe, span)),
            shared => shared,
        };
        self.agents[agent].aim = object.map(|object| Aim::new(object, access.kind != AccessKind::Load));
    }
}

/// An access, as reports name it.
pub(super) fn name_of(access: &Access) -> &'static str {
    let scope = usize::from(takes_in_blocks(access.scope)) + usize::from(access.scope == Scope::Sys);
    match (access.kind, access.order) {
        (AccessKind::Load, Order::Weak) | (AccessKind::Inspect, _) => "load",
        (AccessKind::Load, Order::ReadOnly) => "read-only load",
        (AccessKind::Load, Order::Volatile) => "volatile load",
        (AccessKind::Load, order) if order.acquires() => {
            ["acquire load within the block", "acquire load within the GPU", "acquire load"][scope]
        }
        (AccessKind::Load, _) => {
            ["relaxed load within the block", "relaxed load within the GPU", "relaxed load"][scope]
        }
        (AccessKind::Store, Order::Weak) => "store",
        (AccessKind::Store, Order::Volatile) => "volatile store",
        (AccessKind::Store, order) if order.releases() => {
            ["release store within the block", "release store within the GPU", "release store"][scope]
        }
        (AccessKind::Store, _) => {
            ["relaxed store within the block", "relaxed store within the GPU", "relaxed store"][scope]
        }
        (AccessKind::Atomic(op), _) => name_of_atomic(op)[scope],
        (AccessKind::Arrive { .. }, _) => "arrival at an mbarrier",
        (AccessKind::BulkLoad, _) => "load of a bulk copy",
        (AccessKind::BulkStore, _) => "store of a bulk copy",
    }
}

/// An atomic as CUDA C++ names it, in the scopes of a block, of a GPU and of the system.
fn name_of_atomic(op: AtomicOp) -> [&'static str; 3] {
    match op {
        AtomicOp::Add => ["atomicAdd_block", "atomicAdd", "atomicAdd_system"],
        AtomicOp::Inc => ["atomicInc_block", "atomicInc", "atomicInc_system"],
        AtomicOp::Dec => ["atomicDec_block", "atomicDec", "atomicDec_system"],
        AtomicOp::Min => ["atomicMin_block", "atomicMin", "atomicMin_system"],
        AtomicOp::Max => ["atomicMax_block", "atomicMax", "atomicMax_system"],
        AtomicOp::And => ["atomicAnd_block", "atomicAnd", "atomicAnd_system"],
        AtomicOp::Or => ["atomicOr_block", "atomicOr", "atomicOr_system"],
        AtomicOp::Xor => ["atomicXor_block", "atomicXor", "atomicXor_system"],
        AtomicOp::Exchange => ["atomicExch_block", "atomicExch", "atomicExch_system"],
        AtomicOp::CompareSwap => ["atomicCAS_block", "atomicCAS", "atomicCAS_system"],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::race::call::{compares_and_swaps_in_cuda, counts};

    /// Advice about races asks the names ([`crate::race::call`]).
    #[test]
    fn the_names_of_atomics_say_what_they_do() {
        use AtomicOp::{Add, And, CompareSwap, Dec, Exchange, Inc, Max, Min, Or, Xor};
        for op in [Add, Inc, Dec, Min, Max, And, Or, Xor, Exchange, CompareSwap] {
            for name in name_of_atomic(op) {
                let says = (counts(name), compares_and_swaps_in_cuda(name));
                assert_eq!(says, (!matches!(op, Exchange | CompareSwap), op == CompareSwap), "{name}");
            }
        }
    }
}
