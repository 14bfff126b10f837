//! Loops of kernels that only test an mbarrier until a phase is over: waits, as if by a call.
//!
//! A look in vain leaves nothing behind, so it is no step. In a proof, the look that ends the loop is taken as soon as it can be
//! ([`Phases`](super::super::phases::Phases)).

use onesided::count;
use onesided_ptx::{Access, AccessKind, Block, Phase};

use super::super::access::{Awaited, BlockName};
use super::super::agent::State;
use super::super::ids::{AgentId, BlockId};
use super::super::{Machine, Object};

impl Machine {
    /// A thread comes to the test of an mbarrier. If it is in a loop that does nothing else, it waits for the phase. Returns whether it does.
    pub(super) fn awaits_phase(&mut self, thread: AgentId, id: BlockId, access: &Access) -> bool {
        let block = self.kernels.blocks[id].block.as_ref().expect("its turn is over");
        let Some(phase) = block.awaits(access) else { return false };
        let is_over = block.is_over(phase);
        let mbarrier = object(self.block_name(id), phase);
        if !self.kernels.blocks[id].watches.is_over(access.thread as usize, &mbarrier) {
            return false; // a change of what the thread has polled, in a loop around this one, has woken it
        }
        let agent = &mut self.agents[thread];
        agent.call = "wait at an mbarrier";
        agent.set(State::AwaitingPhase(phase));
        self.kernels.blocks[id].awaiting.push(thread);
        if is_over {
            self.make_ready(thread);
        }
        true
    }

    /// An mbarrier has changed: whose phase is over can go on, and if the next one is over too, not any more.
    pub(super) fn mbarrier_changed(&mut self, id: BlockId, access: &Access) {
        let (ended, is_valid) = match access.kind {
            AccessKind::Arrive { odd, ends: true } => (odd, true),
            AccessKind::Store => (false, false), // it is none any more, and tests of it fault
            _ => return,
        };
        for at in 0..self.kernels.blocks[id].awaiting.len() {
            let thread = self.kernels.blocks[id].awaiting[at];
            let State::AwaitingPhase(phase) = self.agents[thread].state else { unreachable!("it waits") };
            if phase.mbarrier == access.address {
                let is_over = phase.is_odd == ended || !is_valid;
                match (is_over, self.agents[thread].ready.is_some()) {
                    (true, false) => self.make_ready(thread),
                    (false, true) => self.unready(thread),
                    (true, true) | (false, false) => {}
                }
            }
        }
    }

    /// In a search: somebody has arrived at an mbarrier.
    pub(super) fn arrived_at(&mut self, id: BlockId, access: &Access, ends: bool) {
        let agent = self.agent_of_thread(id, access.thread as usize);
        let (step, mbarrier) = (self.number(), (self.block_name(id), access.address));
        if let Some(assumed) = &mut self.assumed {
            assumed.phases.arrive(mbarrier, (step, &self.agents[agent].past), ends);
        }
    }

    /// The step was chosen by which a thread sees that its phase is over.
    pub(in crate::machine) fn sees_phase(&mut self, thread: AgentId, phase: Phase) {
        let id = self.block_of(thread);
        let (name, step) = (self.block_name(id), self.number());
        let is_steady = self.is_steady_phase(thread, phase);
        if self.mode.needs.tracking
            && let Some(assumed) = &mut self.assumed
        {
            match is_steady {
                true => {
                    let past = assumed.phases.see((name, phase.mbarrier), step, &self.step.past);
                    self.step.past.join(&past);
                    self.agents[thread].past.join(&past);
                }
                false => self.step.test = Some(awaited(name, phase)),
            }
        }
        self.kernels.blocks[id].awaiting.retain(|&other| other != thread);
        self.kernels.sees_steady_phase = is_steady;
        self.thread_goes_on(thread);
    }

    /// Whether it does not matter when a thread sees that a phase is over, as far as is known.
    pub(in crate::machine) fn is_steady_phase(&self, thread: AgentId, phase: Phase) -> bool {
        let mbarrier = (self.block_name(self.block_of(thread)), phase.mbarrier);
        self.assumed.as_ref().is_some_and(|assumed| assumed.is_steady_phase(mbarrier))
    }

    /// What a thread waits for, if it matters when it sees that.
    pub(in crate::machine) fn awaited_phase(&mut self, thread: AgentId, phase: Phase) -> Option<(Awaited, Object)> {
        let name = self.block_name(self.block_of(thread));
        if self.is_steady_phase(thread, phase) {
            let past = &self.agents[thread].past;
            let assumed = self.assumed.as_mut().expect("it is steady");
            assumed.phases.waits((name, phase.mbarrier), past);
            return None; // it waits for an end that no schedule of this class has
        }
        Some((awaited(name, phase), object(name, phase)))
    }

    /// What a thread that waits for a phase waits for, in words.
    pub(in crate::machine) fn phase_report(&self, thread: AgentId, phase: Phase) -> String {
        let block = self.kernels.blocks[self.block_of(thread)].block.as_ref();
        let missing = block.map(|block| format!(": {}", missing_in(block, phase))).unwrap_or_default();
        format!("an mbarrier's {} phase to end{missing}", name_of(phase))
    }
}

pub(super) fn name_of(phase: Phase) -> &'static str {
    if phase.is_odd { "odd" } else { "even" }
}

/// What is missing until a phase is over, in words.
pub(super) fn missing_in(block: &Block, phase: Phase) -> String {
    let (missing, bytes) = block.missing_in(phase);
    let (arrivals, copied) = (count(missing, "arrival"), count(bytes.unsigned_abs(), "byte"));
    match (missing, bytes) {
        (_, 0) => format!("{arrivals} missing"),
        (0, 1..) => format!("{copied} of copies missing"),
        (_, 1..) => format!("{arrivals} and {copied} of copies missing"),
        (_, ..0) => format!("{arrivals} missing, and {copied} have come that nobody has announced"),
    }
}

fn object(name: BlockName, phase: Phase) -> Object {
    Object::shared(name, phase.mbarrier, 8).expect("an mbarrier lies in shared memory")
}

fn awaited(name: BlockName, phase: Phase) -> Awaited {
    Awaited::Phase { mbarrier: object(name, phase), is_odd: phase.is_odd }
}
