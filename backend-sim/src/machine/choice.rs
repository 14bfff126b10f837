//! Choices: which steps wait to be chosen, and what taking one does.

use onesided::backend::{Effect, Listener, Op, TeamRequest, Until};

use super::access::Awaited;
use super::agent::{Agent, Pending, State};
use super::claim::Completes;
use super::ids::{AgentId, PeId};
use super::instance::Collective;
use super::relaxed::ISSUED;
use super::transfer::{Transfer, Unit};
use super::{Access, Actor, BlockedWait, Machine, Object, Touch};
use crate::request::Call;

/// Asks of an operation whether it touches something that others may touch.
struct IsChoice<'a> {
    machine: &'a Machine,
    agent: AgentId,
}

impl Listener for IsChoice<'_> {
    type Answer = bool;

    #[inline(always)]
    fn hear(self, effect: Effect) -> bool {
        self.machine.effect_is_choice(self.agent, effect)
    }
}

impl Machine {
    /// Whether the order of a host's call matters, because it touches what others may touch.
    #[inline(always)]
    pub(super) fn is_choice(&self, host: AgentId, call: &Call<'_>) -> bool {
        match call {
            Call::Issue { op, stream: None, .. } => self.op_is_choice(host, op),
            Call::Issue { op, stream: Some(_), .. } => self.may_be_lent(host) && self.completes(op.effect()).is_some(),
            // a load in pieces is issued at once; each piece is a choice
            Call::Read { src, dtype, .. } => !self.is_in_pieces(*src, *dtype),
            Call::Write { pe: of, .. } => PeId(*of) == self.agents[host].pe || self.config.sequential,
            Call::MulticastWrite { .. } | Call::MulticastRead { .. } => true,
            Call::UnregisterLocal(_) | Call::FreeExternal(_) => true,
            // the members of a new team are not known beforehand: who comes first can decide who is one
            Call::Team(TeamRequest::Init { .. }) => true,
            Call::Alloc(_) | Call::Free(_) | Call::UnregisterSymmetric(_) => self.may_be_lent(host),
            _ => false,
        }
    }

    /// Whether an operation touches something that others may touch, when its agent performs it.
    pub(super) fn op_is_choice(&self, agent: AgentId, op: &Op) -> bool {
        op.describe_to(IsChoice { machine: self, agent })
    }

    #[inline(always)] // as its caller
    fn effect_is_choice(&self, agent: AgentId, effect: Effect) -> bool {
        // a PE's streams share a scope, with streams too that are made later
        let shares = !self.agents[agent].is_host();
        match effect {
            Effect::Transfer(transfer) => {
                let reads = transfer.until == Until::SourceRead && transfer.reads_source();
                shares || reads && self.is_read_at_once(transfer.shape)
            }
            Effect::FetchSignal { .. } | Effect::Fill { .. } => true,
            Effect::Wait(_) => false, // its end is a step
            Effect::Order(_) | Effect::Collective(_) => match self.completes(effect) {
                // a flush, or an entry: a collective that completes something first is entered by a step of its own
                None => {
                    matches!(effect, Effect::Collective(collective) if self.enters_by_choice(agent, collective.team))
                }
                Some(Completes::Scope | Completes::Delivery | Completes::Nothing) => shares || self.may_be_lent(agent),
                Some(Completes::Stores) => false,
            },
        }
    }

    /// Whether streams of the agent's PE may hold what they need not deliver: who finds that matters.
    fn may_be_lent(&self, agent: AgentId) -> bool {
        self.pes[self.agents[agent].pe].lends
    }

    /// Number of steps to choose from.
    #[inline]
    pub(crate) fn choices(&self) -> usize {
        self.ready.len() + self.flight.units.len()
    }

    /// Of a choice that is no agent's, the place of its transfer in the order of issue: among those of its scope, then by issuer.
    pub(crate) fn issue_order(&self, index: usize) -> (u32, u64) {
        let transfer = self.flight.get(self.flight.units[index - self.ready.len()].transfer);
        (transfer.rank.number, transfer.key)
    }

    /// How many choices were taken until now.
    pub(crate) fn picked(&self) -> usize {
        self.taken
    }

    /// How many of the choices, counted from 0, are steps of agents; the others are steps of transfers.
    #[inline]
    pub(crate) fn agent_choices(&self) -> usize {
        self.ready.len()
    }

    /// The name of a choice: the same in every schedule in which this step can be taken.
    pub(crate) fn choice_key(&self, index: usize) -> u64 {
        match index.checked_sub(self.ready.len()) {
            None => self.agent_key(self.ready[index]),
            Some(index) => {
                let Unit { transfer, piece, step } = self.flight.units[index];
                self.flight.get(transfer).key << 8 | u64::from(piece) << 2 | step as u64
            }
        }
    }

    /// Who has issued the transfer whose step a choice is, as a number.
    pub(crate) fn issuer_of_choice(&self, index: usize) -> u64 {
        self.choice_key(index) >> (8 + ISSUED)
    }

    fn agent_key(&self, agent: AgentId) -> u64 {
        let agent = &self.agents[agent];
        1 << 63 | u64::from(agent.pe.0) << 32 | u64::from(agent.ordinal())
    }

    /// Waits that have not ended.
    pub(crate) fn blocked_waits(&mut self) -> Vec<BlockedWait> {
        let waits = |agent: &Agent| matches!(agent.state, State::Waiting(_) | State::AwaitingPhase(_));
        let waiting: Vec<AgentId> = self.agents.ids().filter(|&id| waits(&self.agents[id])).collect();
        let blocked = waiting.into_iter().filter_map(|id| {
            let (test, object) = self.awaited(id)?;
            let agent = &self.agents[id];
            let by = Actor { agent: Some(id), scope: Some(agent.scope), call: agent.call, at: agent.at };
            let access = Access { object, touch: Touch::Read, by };
            Some(BlockedWait { key: self.agent_key(id), past: agent.past.clone(), test, access })
        });
        blocked.collect()
    }

    /// What an agent waits for, unless no schedule of this class has what would end that.
    fn awaited(&mut self, id: AgentId) -> Option<(Awaited, Object)> {
        let agent = &self.agents[id];
        match &agent.state {
            State::Waiting(condition) => {
                let test = condition.test();
                let matters = !self.is_steady_wait(condition);
                matters.then(|| (Awaited::Word(test), Object::memory(test.pe, test.variable)))
            }
            &State::AwaitingPhase(phase) => self.awaited_phase(id, phase),
            _ => None,
        }
    }

    /// Takes a choice. Returns the PE whose host is to be resumed for it, if it is one's.
    #[inline]
    pub(crate) fn take(&mut self, index: usize) -> Option<PeId> {
        self.step();
        self.begun = self.taken + 1;
        if self.mode.needs.noting {
            self.begin_step(index);
        }
        let host = match index.checked_sub(self.ready.len()) {
            Some(unit) => {
                let unit = self.flight.units.swap_remove(unit);
                self.step_transfer(unit);
                self.in_chosen_step = false;
                None
            }
            None => self.take_agent(self.ready[index]),
        };
        self.taken += 1;
        host
    }

    /// Takes the step of an agent.
    #[inline(always)] // as its only caller
    fn take_agent(&mut self, agent: AgentId) -> Option<PeId> {
        self.unready(agent);
        let state = &mut self.agents[agent];
        if state.is_host() && matches!(state.state, State::Pending(Pending::Call)) {
            state.set(State::Running);
            state.chosen = true;
            let pe = state.pe;
            self.turn_ends = self.turn_end();
            return Some(pe); // it notes until its call is performed
        }
        self.take_step(agent);
        self.in_chosen_step = false;
        None
    }

    /// Takes the step of an agent that is not a host's call.
    fn take_step(&mut self, agent: AgentId) {
        let state = &mut self.agents[agent];
        match &state.state {
            State::Pending(Pending::Access) => self.thread_goes_on(agent),
            State::Pending(Pending::Call) => {
                state.set(State::Running);
                self.perform_stream_op(agent);
            }
            State::Pending(Pending::Enter(_)) => {
                let entering = std::mem::replace(&mut state.state, State::Running);
                let State::Pending(Pending::Enter(collective)) = entering else { unreachable!("just looked at") };
                self.enter_pending(agent, &collective);
            }
            State::Waiting(_) => self.end_wait(agent),
            &State::AwaitingPhase(phase) => self.sees_phase(agent, phase),
            State::Completing { .. } => self.end_by_choice(agent),
            other => unreachable!("an agent that is {other:?} is no choice"),
        }
    }

    /// The number of the choice whose step is taken, or was taken last.
    #[inline]
    pub(super) fn number(&self) -> usize {
        self.begun.saturating_sub(1)
    }

    /// From here on, what is touched belongs to this step.
    fn begin_step(&mut self, index: usize) {
        self.in_chosen_step = true;
        self.step.by_transfer = index >= self.ready.len();
        self.step.touched.clear();
        if !self.mode.needs.tracking {
            return;
        }
        self.step.before.clear();
        self.step.meets.clear();
        self.step.test = None;
        self.step.enabled_by.clear();
        let Some(unit) = index.checked_sub(self.ready.len()) else {
            let id = self.ready[index];
            let agent = &mut self.agents[id];
            self.step.past.clone_from(&agent.past);
            agent.past.add(self.taken);
            let (call, at) = match agent.queue.front() {
                Some(work) if !agent.is_host() && matches!(agent.state, State::Pending(Pending::Call)) => {
                    (work.what.name(), Some(work.at))
                }
                _ => (agent.call, agent.at),
            };
            self.step.by = Actor { agent: Some(id), scope: Some(agent.scope), call, at };
            return;
        };
        let transfer = self.flight.get(self.flight.units[unit].transfer);
        let Transfer { issuer, scope, call, at, .. } = *transfer;
        self.step.by = Actor { agent: issuer, scope, call, at: Some(at) };
    }

    /// The agent's next step is a choice.
    #[inline]
    pub(super) fn make_pending(&mut self, agent: AgentId) {
        self.agents[agent].set(State::Pending(Pending::Call));
        self.make_ready(agent);
    }

    /// A host that was kept from its call makes it.
    pub(super) fn goes_on_with_call(&mut self, host: AgentId, is_choice: bool) {
        if is_choice {
            return self.make_pending(host);
        }
        let agent = &mut self.agents[host];
        agent.set(State::Running);
        agent.chosen = true;
        self.woken.push_back(host);
    }

    /// Entering the collective is the agent's next step, and a choice.
    pub(super) fn make_entering(&mut self, agent: AgentId, collective: &Collective) {
        self.agents[agent].state = State::Pending(Pending::Enter(Box::new(collective.clone())));
        self.make_ready(agent);
    }

    #[inline]
    pub(super) fn make_ready(&mut self, agent: AgentId) {
        let state = &mut self.agents[agent];
        debug_assert_eq!(state.ready, None);
        state.ready = Some(self.ready.len() as u32);
        self.ready.push(agent);
    }

    #[inline]
    pub(super) fn unready(&mut self, agent: AgentId) {
        let at = self.agents[agent].ready.take().expect("it is ready");
        self.ready.swap_remove(at as usize);
        if let Some(&moved) = self.ready.get(at as usize) {
            self.agents[moved].ready = Some(at);
        }
    }
}
