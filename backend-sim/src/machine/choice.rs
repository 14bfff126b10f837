//! Choices: which steps wait to be chosen, and what taking one does.

use onesided::backend::{Op, TeamRequest};

use super::agent::{Agent, NONE, Phase};
use super::flight::Unit;
use super::{Machine, TURN};
use crate::request::Call;

impl Machine {
    /// Whether a host's call touches memory that others may touch, so that its order matters.
    #[inline(always)]
    pub(super) fn is_choice(&self, pe: u32, call: &Call<'_>) -> bool {
        match call {
            Call::Issue { op, stream: None, .. } => self.op_is_choice(pe, op),
            Call::Read { .. } | Call::MulticastRead { .. } => true,
            Call::Write { pe: of, .. } => *of == pe,
            // the members of a new team are not known beforehand: who comes first can decide who is one
            Call::Team(TeamRequest::Init { .. }) => true,
            _ => false,
        }
    }

    /// Whether an operation touches memory, or anything else that other agents touch, when it is issued.
    pub(super) fn op_is_choice(&self, agent: u32, op: &Op) -> bool {
        match op {
            Op::Put { nbi: false, src, .. } => src.len > 0 || self.shares_scope(agent),
            Op::IPut { .. } | Op::SignalFetch { .. } | Op::Fill { .. } => true,
            Op::Wait { .. } => false,
            _ => self.shares_scope(agent),
        }
    }

    /// Whether other agents may issue in the same scope: other streams of the PE, also such as are made later.
    pub(super) fn shares_scope(&self, agent: u32) -> bool {
        !self.agents[agent as usize].is_host()
    }

    /// Number of steps to choose from.
    #[inline]
    pub(crate) fn choices(&self) -> usize {
        self.ready.len() + self.flight.units.len()
    }

    /// How many of the choices, counted from 0, are steps of agents; the others are steps of transfers.
    #[inline]
    pub(crate) fn agent_choices(&self) -> usize {
        self.ready.len()
    }

    /// The name of a choice: the same in every schedule in which this step can be taken.
    pub(crate) fn choice_key(&self, index: usize) -> u64 {
        match index.checked_sub(self.ready.len()) {
            None => {
                let agent = &self.agents[self.ready[index] as usize];
                1 << 63 | u64::from(agent.pe) << 32 | u64::from(agent.stream)
            }
            Some(index) => {
                let Unit { slot, piece, step } = self.flight.units[index];
                self.flight.get(slot).key << 8 | u64::from(piece) << 2 | step as u64
            }
        }
    }

    /// Takes a choice. Returns the host that is to be resumed for it, if it is one's.
    #[inline]
    pub(crate) fn take(&mut self, index: usize) -> Option<u32> {
        self.steps += 1;
        self.touched.clear();
        if let Some(index) = index.checked_sub(self.ready.len()) {
            let unit = self.flight.units.swap_remove(index);
            self.step_transfer(unit);
            return None;
        }
        let agent = self.ready[index];
        self.unready(agent);
        let Agent { phase, stream, pe, .. } = self.agents[agent as usize];
        match phase {
            Phase::Memory => self.end_wait(agent),
            Phase::Pending if stream == NONE => {
                self.agents[agent as usize].phase = Phase::Running;
                self.agents[agent as usize].chosen = true;
                self.turn_ends = self.steps + TURN;
                return Some(pe);
            }
            Phase::Pending => {
                self.agents[agent as usize].phase = Phase::Running;
                self.perform_stream_op(agent);
            }
            other => unreachable!("an agent that is {other:?} is no choice"),
        }
        None
    }

    #[inline]
    pub(super) fn make_ready(&mut self, agent: u32, phase: Phase) {
        let state = &mut self.agents[agent as usize];
        debug_assert_eq!(state.ready, NONE);
        state.phase = phase;
        state.ready = self.ready.len() as u32;
        self.ready.push(agent);
    }

    #[inline]
    pub(super) fn unready(&mut self, agent: u32) {
        let at = std::mem::replace(&mut self.agents[agent as usize].ready, NONE);
        self.ready.swap_remove(at as usize);
        if let Some(&moved) = self.ready.get(at as usize) {
            self.agents[moved as usize].ready = at;
        }
    }
}
