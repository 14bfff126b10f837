//! The reference: a transition system on a few words, as plainly as it can be said.
//!
//! It shares nothing with the simulator. Every call is begun by a step of its own, every piece of a transfer is read and
//! delivered by steps of its own, and all orders of all steps are visited.

use std::collections::{BTreeMap, BTreeSet};

use onesided::Cmp;

use super::claims::Claim;
use super::fabrics::OnPath;
use super::plan::{Place, Plan, Task};
use super::profiles::Rules;
use super::program::{Op, Program};
use super::races::{self, Access};
use super::transfers::Transfer;

/// How a run of a program ends.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Outcome {
    /// What each host saw, then every PE's memory.
    Finished(Vec<Vec<u64>>),
    /// Somebody waits, and nothing can happen.
    Deadlock,
}

impl Outcome {
    /// What the first `hosts` hosts saw, one after another; or how else it ended.
    pub(crate) fn in_words(&self, hosts: usize) -> String {
        match self {
            Outcome::Finished(saw) => saw[..hosts].concat().iter().map(u64::to_string).collect::<Vec<_>>().join(" "),
            Outcome::Deadlock => "deadlock".into(),
        }
    }
}

/// Where everything stands. Transfers leave the list when they are complete.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct State {
    pub(crate) memory: Vec<u64>,
    pub(crate) agents: Vec<Progress>,
    /// Collectives of each team that each PE has entered.
    pub(crate) entered: Vec<usize>,
    /// What each host has seen.
    pub(crate) saw: Vec<Vec<u64>>,
    /// Fences of each scope so far.
    pub(crate) fences: Vec<u8>,
    pub(crate) flying: Vec<Transfer>,
    /// Non-blocking operations that are not complete, and who has claimed them.
    pub(crate) claims: BTreeMap<Place, Claim>,
    /// Values of words that the readers of a path still see, the first of them now.
    pub(crate) older: BTreeMap<OnPath, Vec<u64>>,
}

/// How far an agent is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Progress {
    /// Things that it has begun. The last of them may not be done.
    pub(crate) begun: usize,
    /// In a wait: the variable that it looks at.
    pub(crate) looks_at: Option<usize>,
}

/// One step.
pub(crate) struct Step {
    pub(crate) to: State,
    /// What it touches.
    pub(crate) accesses: Vec<Access>,
}

/// What all interleavings show.
pub(crate) struct Allowed {
    pub(crate) outcomes: BTreeSet<Outcome>,
    /// Whether one of them has a race.
    pub(crate) racy: bool,
    /// Whether the simulator may have one all the same: it knows of fewer orders.
    pub(crate) may_race: bool,
}

/// What is allowed; `None` when there are more than `limit` states.
pub(crate) fn allowed(program: &Program, rules: Rules, limit: usize) -> Option<Allowed> {
    let plan = Plan::new(program, rules);
    let start = State {
        memory: plan.start(program),
        agents: vec![Progress { begun: 0, looks_at: None }; plan.agents.len()],
        entered: vec![0; plan.teams.len() * plan.pes],
        saw: vec![Vec::new(); plan.pes],
        fences: vec![0; 2 * plan.pes],
        flying: Vec::new(),
        claims: BTreeMap::new(),
        older: BTreeMap::new(),
    };
    let mut allowed = Allowed { outcomes: BTreeSet::new(), racy: false, may_race: false };
    let mut visited = BTreeSet::from([start.clone()]);
    let mut to_visit = vec![start];
    while let Some(state) = to_visit.pop() {
        let next = plan.next(&state);
        if next.iter().all(|step| polls_on(&state, &step.to)) && plan.is_stuck(&state) {
            allowed.outcomes.insert(plan.outcome(&state));
        }
        allowed.racy |= races::have_a_race(&next);
        for Step { to: mut state, .. } in next {
            plan.forget_order(&mut state);
            if visited.insert(state.clone()) {
                to_visit.push(state);
            }
        }
        if visited.len() > limit {
            return None;
        }
    }
    allowed.may_race = allowed.racy || races::waits_for_a_put(program);
    if (plan.awaits_starts() || rules.plain_polls_wait && program.polls_plainly()) && !allowed.may_race {
        let unordered = Rules { awaits_starts: false, plain_polls_wait: false, ..rules };
        allowed.may_race = self::allowed(program, unordered, limit)?.racy;
    }
    Some(allowed)
}

impl Plan {
    /// What memory holds at the start.
    fn start(&self, program: &Program) -> Vec<u64> {
        let words = (0..self.pes).flat_map(|pe| (0..program.words).map(move |word| program.start(pe, word)));
        words.flat_map(|word| (0..self.of_word).map(move |part| self.part(word, part))).collect()
    }

    /// Every step that can come next.
    fn next(&self, state: &State) -> Vec<Step> {
        let mut next = Vec::new();
        for agent in 0..self.agents.len() {
            self.step_of_agent(state, agent, &mut next);
        }
        for index in 0..state.flying.len() {
            self.steps_of_transfer(state, index, &mut next);
        }
        self.pass(state, &mut next);
        next
    }

    /// Whether nothing can happen any more but that pollers look at what they have looked at before.
    fn is_stuck(&self, state: &State) -> bool {
        let (mut visited, mut to_visit) = (BTreeSet::from([state.clone()]), vec![state.clone()]);
        while let Some(state) = to_visit.pop() {
            for Step { to: next, .. } in self.next(&state) {
                if !polls_on(&state, &next) {
                    return false;
                }
                if visited.insert(next.clone()) {
                    to_visit.push(next);
                }
            }
        }
        true
    }

    /// What the end of a run, after which nothing can happen, amounts to.
    fn outcome(&self, state: &State) -> Outcome {
        assert!(state.flying.iter().all(|flying| self.is_locked_out(state, flying)), "what is in flight arrives");
        let done = |agent: usize| self.has_done(state, agent, self.agents[agent].work.len());
        if !(0..self.agents.len()).all(done) {
            return Outcome::Deadlock;
        }
        let memory = state.memory.chunks(self.cells).map(<[u64]>::to_vec);
        Outcome::Finished(state.saw.iter().cloned().chain(memory).collect())
    }

    /// An agent's next step, if it can take one: it goes on in its wait, or begins its next thing.
    fn step_of_agent(&self, state: &State, agent: usize, next: &mut Vec<Step>) {
        let Progress { begun, looks_at } = state.agents[agent];
        if let Some(variable) = looks_at {
            let Task::Op(op) = &self.agents[agent].work[begun - 1].task else { unreachable!("a wait is an operation") };
            let accesses = self.look_touches(agent, op, variable);
            if let Op::Poll { word, also, cmp, value, plainly } = *op {
                let looked_at = if variable == 0 { word } else { also.expect("there are two") };
                let found = self.found_by(state, agent, looked_at);
                let mut state = state.clone();
                if compares(cmp, found, value) || plainly && !self.rules.plain_polls_wait {
                    state.agents[agent].looks_at = None;
                    state.saw[self.agents[agent].pe].extend([looked_at as u64, found]);
                } else if also.is_some() {
                    state.agents[agent].looks_at = Some(1 - variable);
                } // else it has looked, and nothing is different
                return next.push(Step { to: state, accesses });
            }
            if self.is_satisfied(state, agent, op, variable) {
                let mut state = state.clone();
                state.agents[agent].looks_at = next_variable(op, variable + 1);
                if let (Op::Wait { word, signal: true, .. }, true) = (op, self.agents[agent].is_host) {
                    let found = self.found_by(&state, agent, *word);
                    state.saw[self.agents[agent].pe].push(found);
                }
                next.push(Step { to: state, accesses });
            }
            return;
        }
        self.end_early(state, agent, next);
        let Some(work) = self.agents[agent].work.get(begun) else { return };
        let called = self.agents[agent].is_host || self.has_done(state, self.agents[agent].pe, work.called_after);
        if called && self.has_done(state, agent, begun) {
            let mut state = state.clone();
            state.agents[agent].begun += 1;
            self.enters(&mut state, agent, &work.task);
            match &work.task {
                Task::Op(Op::Poll { .. }) => state.agents[agent].looks_at = Some(0),
                Task::Op(op @ (Op::Wait { .. } | Op::WaitAll { .. })) => {
                    state.agents[agent].looks_at = next_variable(op, 0);
                }
                Task::Op(op) => self.begin(&mut state, agent, op),
                Task::Call(completing) => self.claim_at_call(&mut state, completing),
                Task::Complete(completing) => self.complete(&mut state, completing),
                Task::Enter { collective, team, number } => {
                    self.enter(&mut state, agent, *collective, (*team, *number))
                }
                Task::CompleteStores | Task::Await(_) | Task::AwaitStarts(_) | Task::Nothing => {}
            }
            let accesses = match &work.task {
                Task::Op(op) => self.begin_touches(&state, agent, op),
                _ => Vec::new(),
            };
            next.push(Step { to: state, accesses });
        }
    }

    /// What an agent finds in a word of its PE.
    fn found_by(&self, state: &State, agent: usize, word: usize) -> u64 {
        let first = self.word(self.agents[agent].pe, word);
        self.number(&state.memory[first..first + self.of_word])
    }

    /// Whether a variable of a wait compares true now.
    fn is_satisfied(&self, state: &State, agent: usize, op: &Op, variable: usize) -> bool {
        let found = |word: usize| self.found_by(state, agent, word);
        match *op {
            // a stream's wait is the GPU's own, which compares in a circle
            Op::Wait { word, cmp: Cmp::Ge, value, signal: true } if !self.agents[agent].is_host => {
                found(word).wrapping_sub(value) as i64 >= 0
            }
            Op::Wait { word, cmp, value, .. } => compares(cmp, found(word), value),
            Op::WaitAll { word, cmp, values } => {
                values[variable].is_none_or(|value| compares(cmp, found(word + variable), value))
            }
            _ => unreachable!("only waits have variables"),
        }
    }
}

/// Whether the step between two states is a poll in vain.
fn polls_on(state: &State, next: &State) -> bool {
    let looks = |state: &State| state.agents.iter().map(|agent| agent.looks_at).collect::<Vec<_>>();
    let both = looks(state).into_iter().zip(looks(next)).all(|(one, other)| one.is_some() == other.is_some());
    let blind = |state: &State| {
        let mut state = state.clone();
        state.agents.iter_mut().for_each(|agent| agent.looks_at = None);
        state
    };
    both && blind(state) == blind(next)
}

/// The next variable, from one on, that a wait has to look at.
fn next_variable(op: &Op, from: usize) -> Option<usize> {
    match op {
        Op::WaitAll { values, .. } => (from..values.len()).find(|&variable| values[variable].is_some()),
        _ => (from == 0).then_some(0),
    }
}

fn compares(cmp: Cmp, found: u64, wanted: u64) -> bool {
    match cmp {
        Cmp::Eq => found == wanted,
        Cmp::Ne => found != wanted,
        Cmp::Gt => found > wanted,
        Cmp::Le => found <= wanted,
        Cmp::Lt => found < wanted,
        Cmp::Ge => found >= wanted,
    }
}
