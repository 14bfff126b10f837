//! Collectives as a matter of who entered what: matching, entering, leaving.
//!
//! A team's collectives form a sequence. A member's `n`-th call on the team belongs to the `n`-th
//! [`Instance`](super::instance::Instance), and must be the same call as the other members'. Some let a member go when everyone
//! has entered, some when the member's data is there, and some at once: these promise no synchronization. What data moves is
//! `data.rs`'s business; an instance only counts how much of it each member still waits for.

use onesided::backend::TeamId;
use onesided::{At, Error};
use smallvec::SmallVec;

use super::agent::{Agent, State, Task};
use super::ids::{AgentId, Id as _, PeId, TeamIndex};
use super::instance::{Collective, Leaves, Made};
use super::{Machine, Object, Progress, Touch};
use crate::lint::Notice;
use crate::request::Reply;
use crate::verdict::{Entered, VerdictKind};

/// # Entering
impl Machine {
    /// Whether it matters when an agent enters a team's collective: agents of one PE compete, or others then see what has arrived
    /// at the PE.
    pub(super) fn enters_by_choice(&self, agent: AgentId, team: TeamId) -> bool {
        self.paths.matter() || self.is_contested(agent, team)
    }

    /// Whether agents of one PE may enter a team's collectives beside each other, so that their order matters.
    fn is_contested(&self, agent: AgentId, team: TeamId) -> bool {
        if self.agents.len() == self.pes.len() {
            return false; // nobody has a stream
        }
        let pe = self.agents[agent].pe;
        self.teams.members_of(&self.config, pe, team).iter().any(|pe| !self.pes[PeId::new(pe)].streams.is_empty())
    }

    /// An agent that has completed what it had to enters: now, or by a step of its own where the order matters.
    pub(super) fn enter_in_turn(&mut self, agent: AgentId, what: &Collective) -> Progress {
        if self.mode.needs.relaxed && self.enters_by_choice(agent, what.team_or_world()) {
            self.make_entering(agent, what);
            return Progress::Blocked;
        }
        self.enter_now(agent, what)
    }

    /// Entering was chosen.
    pub(super) fn enter_pending(&mut self, agent: AgentId, what: &Collective) {
        let progress = self.enter_now(agent, what);
        self.in_chosen_step = false;
        if progress == Progress::Done {
            self.finish(agent);
        }
    }

    /// An agent enters the next collective of the team that its call names.
    pub(super) fn enter_now(&mut self, agent: AgentId, what: &Collective) -> Progress {
        let Agent { pe, at, .. } = self.agents[agent];
        if self.paths.matter() && what.leaves() != Leaves::AtOnce {
            self.synchronizes(pe);
            // as where nobody competes: the entry itself is no step of its own
            self.in_chosen_step &= self.is_contested(agent, what.team_or_world());
        }
        let team = what.team().map_or(TeamIndex(0), |team| self.team_index(pe, team));
        self.enter(agent, team, what, at.expect("a call has a place"))
    }

    /// A member enters its team's next collective.
    pub(super) fn enter(&mut self, agent: AgentId, team: TeamIndex, what: &Collective, at: At) -> Progress {
        let pe = self.agents[agent].pe;
        let state = self.teams.get_mut(team);
        let member = state.members.position(pe.index()).expect("only members have a handle") as u32;
        let n = state.members.len();
        let seq = state.next[member as usize];
        let inside = state.busy[member as usize].replace(agent);
        if self.in_chosen_step {
            self.touch_turns(pe, team, seq);
        }
        if let Some(other) = inside {
            return self.enters_beside(agent, team, what, other);
        }
        if n > 1
            && !self.pes[pe].streams.is_empty()
            && let Some(earlier) = self.overtaken(agent, team)
        {
            let (team, calls) = (self.team_name(team), [(what.name(), at), earlier]);
            self.found(VerdictKind::CollectivesOutOfOrder { team, pe: pe.index(), calls });
            return self.block_for_ever(agent);
        }
        let state = self.teams.get_mut(team);
        state.next[member as usize] = seq + 1;
        let instance = state.instance_or_new(seq);
        let first = instance.what.is_none();
        match &instance.what {
            None => instance.open(what, n),
            Some(first) if first != what => {
                let field = first.difference(what);
                return self.mismatch(team, seq, field, what, agent, at);
            }
            Some(_) => {}
        }
        let leaves = instance.leaves;
        if self.races.is_on() && leaves != Leaves::AtOnce {
            self.races.synchronizes(agent, None, (what.name(), at));
        }
        let past = &self.agents[agent].past;
        instance.past.join(past);
        instance.entered += 1;
        let last = instance.entered == n;
        let entry = &mut instance.entries[member as usize];
        (entry.agent, entry.at) = (Some(agent), Some(at));
        if leaves == Leaves::WithItsData {
            entry.entered = self.races.snapshot(agent);
        }
        entry.past.join(past);
        if self.record.is_some() {
            self.record_entry(agent, team, seq, member, at);
        }
        match leaves {
            Leaves::Together if last => {
                self.everyone_entered(team, seq, what, agent);
                Progress::Done
            }
            Leaves::Together => self.block(agent, State::Inside { team, seq }),
            Leaves::AtOnce => self.enter_made(agent, team, (seq, member), what, (first, last)),
            Leaves::WithItsData => self.enter_data(agent, team, (seq, member), last),
        }
    }

    #[inline(never)] // no part of the way of a barrier
    fn enter_data(&mut self, agent: AgentId, team: TeamIndex, (seq, member): (u32, u32), last: bool) -> Progress {
        let n = self.teams.get(team).members.len() as u32;
        self.member_entered(team, seq, member, last);
        if last {
            for other in 0..n {
                if self.teams.get(team).is_over(seq) {
                    break;
                }
                self.try_leave(team, seq, other);
            }
        }
        // the collective may be over already, and its instance gone
        if self.teams.get(team).is_over(seq) || self.teams.get(team).instance_ref(seq).entries[member as usize].left {
            return Progress::Done;
        }
        if self.teams.get(team).instance_ref(seq).can_leave(member) {
            self.leave(team, seq, member);
            return Progress::Done;
        }
        self.block(agent, State::Inside { team, seq })
    }

    /// A member enters a collective that members leave at once, as soon as it is known what is made for them.
    #[inline(never)] // likewise
    fn enter_made(
        &mut self,
        agent: AgentId,
        team: TeamIndex,
        (seq, member): (u32, u32),
        what: &Collective,
        (first, last): (bool, bool),
    ) -> Progress {
        let at = self.agents[agent].at.expect("a call has a place");
        let waited = !first && matches!(self.teams.get(team).instance_ref(seq).made, Made::NotKnown);
        if first || waited && last {
            let made = self.make(team, what, last, at);
            self.teams.get_mut(team).instance(seq).made = made;
        }
        if matches!(self.teams.get(team).instance_ref(seq).made, Made::NotKnown) {
            return self.block(agent, State::Inside { team, seq });
        }
        if waited {
            let n = self.teams.get(team).members.len() as u32;
            for other in (0..n).filter(|&other| other != member) {
                let entry = &self.teams.get(team).instance_ref(seq).entries[other as usize];
                let agent = entry.agent.expect("everyone has entered");
                self.member_made(team, seq, other, what);
                self.leave(team, seq, other);
                self.finish(agent);
            }
        }
        self.member_made(team, seq, member, what);
        self.leave(team, seq, member);
        Progress::Done
    }

    /// An agent in a collective that went wrong.
    pub(super) fn block_for_ever(&mut self, agent: AgentId) -> Progress {
        self.block(agent, State::Stuck)
    }

    /// A collective of the team that the agent's PE called before the agent's own, and that has not been entered: it is
    /// still enqueued on a stream, or is a barrier that still waits for its stream's puts.
    fn overtaken(&self, agent: AgentId, team: TeamIndex) -> Option<(&'static str, At)> {
        let Agent { pe, called, .. } = self.agents[agent];
        let team = Some(self.teams.get(team).handle);
        let others = self.pes[pe].streams.iter().filter(|&&stream| stream != agent);
        others.map(|&stream| &self.agents[stream]).find_map(|stream| {
            if stream.called < called && stream.is_about_to_enter(team) {
                return stream.at.map(|at| (stream.call, at));
            }
            for work in &stream.queue {
                match &work.what {
                    Task::Op { called: other, .. } if *other > called => break,
                    Task::Op { op, .. } if op.team() == team => return Some((op.name(), work.at)),
                    Task::Op { .. } | Task::Record { .. } | Task::WaitEvent { .. } => {}
                    Task::Launch(_) | Task::Look(_) => {}
                }
            }
            None
        })
    }

    /// Notes that an agent of `pe` enters collective `seq` of the team, and may let the other members leave it. Where agents of
    /// one PE compete, who enters first matters, and whether the one before has left.
    fn touch_turns(&mut self, pe: PeId, team: TeamIndex, seq: u32) {
        if !self.pes[pe].streams.is_empty() {
            let team = self.teams.get(team).name;
            self.touch(Object::Turn { pe, team }, Touch::Write);
            if let Some(seq) = seq.checked_sub(1) {
                self.touch(Object::Leaving { pe, team, seq }, Touch::Write);
            }
        }
        let members = self.teams.get(team).members.clone();
        members.iter().map(PeId::new).filter(|&member| member != pe).for_each(|member| {
            self.touch_leaving(member, team, seq);
        });
    }

    /// Notes that the step may let a member leave. A host without streams has nobody to compete with.
    pub(super) fn touch_leaving(&mut self, pe: PeId, team: TeamIndex, seq: u32) {
        if self.in_chosen_step && !self.pes[pe].streams.is_empty() {
            let team = self.teams.get(team).name;
            self.touch(Object::Leaving { pe, team, seq }, Touch::Read);
        }
    }

    /// An agent enters while another of its PE is in a collective of the team.
    #[cold]
    fn enters_beside(&mut self, agent: AgentId, team: TeamIndex, what: &Collective, other: AgentId) -> Progress {
        let calls = [self.agents[other].call, what.name()];
        let (team, pe) = (self.team_name(team), self.agents[agent].pe.index());
        self.found(VerdictKind::ConcurrentCollectives { team, pe, calls });
        self.block_for_ever(agent)
    }

    #[cold]
    fn mismatch(
        &mut self,
        team: TeamIndex,
        seq: u32,
        field: &'static str,
        what: &Collective,
        agent: AgentId,
        at: At,
    ) -> Progress {
        let instance = self.teams.get(team).instance_ref(seq);
        let first = instance.what.as_ref().expect("compared with the first entry");
        let mut calls: Vec<Entered> = (instance.entries.iter())
            .filter_map(|entry| {
                let pe = self.agents[entry.agent?].pe.index();
                Some(Entered { pe, call: first.to_string(), at: entry.at? })
            })
            .collect();
        let pe = self.agents[agent].pe.index();
        calls.push(Entered { pe, call: what.to_string(), at });
        calls.sort_by_key(|call| call.pe);
        let team_name = self.team_name(team);
        self.found(VerdictKind::Mismatch { team: team_name, number: seq, field, calls });
        self.block_for_ever(agent)
    }
}

/// # Leaving
impl Machine {
    /// The last member has entered a collective that members leave together: does it, and lets everyone go.
    fn everyone_entered(&mut self, team: TeamIndex, seq: u32, what: &Collective, last: AgentId) {
        if self.in_chosen_step {
            self.step.meets.clone_from(&self.teams.get(team).instance_ref(seq).past);
        }
        self.observe_meeting(team, seq);
        self.complete_life(team, seq, what);
        let state = self.teams.get_mut(team);
        state.busy.fill(None);
        let members = state.members.len();
        let instance = state.instance(seq);
        let (past, entries) = (std::mem::take(&mut instance.past), std::mem::take(&mut instance.entries));
        for entry in &entries {
            let agent = entry.agent.expect("everyone has entered");
            self.agents[agent].past.join(&past);
            if agent != last {
                self.finish(agent);
            }
        }
        let state = self.teams.get_mut(team);
        let instance = state.instance(seq);
        (instance.left, instance.past, instance.entries) = (members, past, entries);
        state.close_finished();
    }

    /// Everybody comes after everybody's entry.
    fn observe_meeting(&mut self, team: TeamIndex, seq: u32) {
        if self.races.is_on() {
            let entries = &self.teams.get(team).instance_ref(seq).entries;
            let members: SmallVec<[AgentId; 16]> = entries.iter().filter_map(|entry| entry.agent).collect();
            let is_everybody = self.is_everybody(&members) && !self.teams.have_parts_under_way();
            self.races.meet(&members, is_everybody);
            if self.races.all_known() {
                self.lint(|| Notice::Known);
            }
        }
    }

    /// Whether these are all hosts, and no stream has work, which their meeting would be beside.
    fn is_everybody(&self, members: &[AgentId]) -> bool {
        let is_host = |member: &AgentId| member.index() < self.pes.len(); // they come first, by rank
        members.len() == self.pes.len()
            && members.iter().all(is_host)
            && self.pes.iter().flat_map(|pe| &pe.streams).all(|&stream| self.agents[stream].is_idle())
    }

    /// A member that leaves at once gets what was made for it.
    fn member_made(&mut self, team: TeamIndex, seq: u32, member: u32, what: &Collective) {
        let instance = self.teams.get(team).instance_ref(seq);
        let entry = &instance.entries[member as usize];
        let (agent, at) = entry.agent.zip(entry.at).expect("the member has entered");
        let reply = match &instance.made {
            Made::Nothing => Reply::Unit,
            Made::NotKnown => unreachable!("nobody leaves before it is known"),
            Made::Teams(teams) => Reply::Teams(teams[member as usize]),
            Made::Alloc(alloc) => Reply::Alloc(*alloc),
            Made::Failed(error) => Reply::Failed(Error::new(error.kind(), error.call(), error.message(), at)),
        };
        self.member_takes(agent, team, what, &reply);
        self.agents[agent].answer(reply);
    }

    /// Lets a member go that waits in the collective, if it can.
    pub(super) fn try_leave(&mut self, team: TeamIndex, seq: u32, member: u32) {
        let instance = self.teams.get(team).instance_ref(seq);
        if !instance.can_leave(member) {
            return;
        }
        let agent = instance.entries[member as usize].agent.expect("it can leave");
        if matches!(self.agents[agent].state, State::Inside { team: of, seq: which } if (of, which) == (team, seq)) {
            self.leave(team, seq, member);
            self.finish(agent);
        }
    }

    fn leave(&mut self, team: TeamIndex, seq: u32, member: u32) {
        let state = self.teams.get_mut(team);
        state.busy[member as usize] = None;
        let instance = state.instance(seq);
        let entry = &mut instance.entries[member as usize];
        entry.left = true;
        if let Some(entered) = entry.entered.take() {
            self.races.leave(&entered, &entry.known);
        }
        instance.left += 1;
        self.agents[entry.agent.expect("only members that entered leave")].past.join(&entry.learned);
        if instance.left == instance.entries.len() {
            state.close_finished();
        }
    }
}
