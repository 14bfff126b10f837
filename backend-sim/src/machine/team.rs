//! Teams: members, the sequence of their collectives, and how new ones come to be.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;

use onesided::backend::{AllocId, NewTeams, TeamId, TeamRequest};
use onesided::{At, Error, ErrorKind, Members, Predefined};

use super::agent::{Agent, State};
use super::ids::{AgentId, Id as _, PeId, Table, TeamIndex, TeamName};
use super::instance::{Collective, Entry, Instance, Made};
use super::pe::PeState;
use super::{Machine, Object, Progress, Reply, Touch};
use crate::config::Config;
use crate::mix::mixed;
use crate::verdict::{Entered, VerdictKind};

/// Handles below this are predefined. The next one is the world's place among the teams of one's own, and no handle: NVSHMEM 3.8.0's
/// `TEAM_MC_SHARED`, which is no team here.
const FIRST_OWN: u32 = Predefined::ALL.len() as u32;

/// All teams. Index 0 is the world; predefined groups appear when they are first used.
#[derive(Debug, Default)]
pub(crate) struct Teams {
    states: Table<TeamIndex, TeamState>,
    predefined: BTreeMap<(TeamId, usize), TeamIndex>,
    /// Teams being made by `team_init`, by unique id.
    inits: BTreeMap<u64, PendingInit>,
    /// How many of these each PE has made.
    unique_ids: BTreeMap<PeId, u32>,
}

/// One team.
#[derive(Debug)]
pub(crate) struct TeamState {
    pub(crate) members: Members,
    pub(crate) handle: TeamId,
    pub(crate) name: TeamName,
    /// Per member: its number among the teams of its own that the member has joined.
    numbers: Vec<u32>,
    /// Teams that were made of it.
    made: u32,
    /// Members that have destroyed it.
    destroyed: BTreeSet<PeId>,
    /// Per member: the number of its next collective.
    pub(crate) next: Vec<u32>,
    /// Per member: the agent that is in a collective.
    pub(crate) busy: Vec<Option<AgentId>>,
    open: VecDeque<Box<Instance>>,
    first_open: u32,
    #[expect(clippy::vec_box, reason = "an instance moves between here and `open` as a pointer, and is reused")]
    spare: Vec<Box<Instance>>,
}

/// A `team_init` that not all members have called yet.
#[derive(Debug)]
struct PendingInit {
    /// Agent and place of each member that has.
    slots: Vec<Option<(AgentId, At)>>,
    /// Steps before the entries so far.
    past: super::Past,
}

impl TeamState {
    fn new(members: Members, handle: TeamId, name: TeamName) -> TeamState {
        let n = members.len();
        TeamState {
            members,
            handle,
            name,
            numbers: vec![0; n],
            made: 0,
            destroyed: BTreeSet::new(),
            next: vec![0; n],
            busy: vec![None; n],
            open: VecDeque::new(),
            first_open: 0,
            spare: Vec::new(),
        }
    }

    /// What tells its transfers from those of other teams of the member that they come from, in 9 bits. Predefined teams of one kind have no two
    /// members in common.
    pub(crate) fn bits(&self, member: u32) -> u64 {
        match self.handle.0 {
            predefined if predefined < FIRST_OWN => u64::from(predefined),
            _ => u64::from(FIRST_OWN + self.numbers[member as usize] % (512 - FIRST_OWN)),
        }
    }

    pub(crate) fn instance_or_new(&mut self, seq: u32) -> &mut Instance {
        let index = (seq - self.first_open) as usize;
        while self.open.len() <= index {
            let mut instance = self.spare.pop().unwrap_or_default();
            instance.what = None;
            self.open.push_back(instance);
        }
        &mut self.open[index]
    }

    pub(crate) fn instance(&mut self, seq: u32) -> &mut Instance {
        &mut self.open[(seq - self.first_open) as usize]
    }

    pub(crate) fn instance_ref(&self, seq: u32) -> &Instance {
        &self.open[(seq - self.first_open) as usize]
    }

    /// Whether every member has left the collective.
    pub(crate) fn is_over(&self, seq: u32) -> bool {
        seq < self.first_open
    }

    /// Forgets collectives that everyone has left.
    pub(crate) fn close_finished(&mut self) {
        while self.open.front().is_some_and(|instance| instance.is_left()) {
            self.spare.extend(self.open.pop_front());
            self.first_open += 1;
        }
    }
}

impl Teams {
    /// Back to the world alone. `initialized`: its first collective, the initialization, is over.
    pub(crate) fn reset(&mut self, n_pes: usize, initialized: bool) {
        self.states.truncate(1);
        if self.states.iter().next().is_none_or(|world| world.members.len() != n_pes) {
            self.states.truncate(0);
            let all = Members::Strided { start: 0, stride: 1, size: n_pes as u32 };
            self.states.push(TeamState::new(all, Predefined::World.id(), TeamName(0)));
        }
        let world = &mut self.states[TeamIndex(0)];
        world.made = 0;
        world.next.fill(u32::from(initialized));
        world.busy.fill(None);
        world.spare.extend(world.open.drain(..));
        world.first_open = u32::from(initialized);
        self.predefined.clear();
        self.inits.clear();
        self.unique_ids.clear();
    }

    #[inline]
    pub(crate) fn get(&self, team: TeamIndex) -> &TeamState {
        &self.states[team]
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, team: TeamIndex) -> &mut TeamState {
        &mut self.states[team]
    }

    /// The members of the team that a handle names on a PE.
    pub(crate) fn members_of(&self, config: &Config, pe: PeId, team: TeamId) -> Members {
        match team.0.checked_sub(FIRST_OWN) {
            Some(own) => self.states[TeamIndex(own)].members.clone(),
            None => predefined_members(config, Predefined::ALL[team.0 as usize], pe.index())
                .expect("only members have a handle"),
        }
    }

    /// Whether a number is the handle of a team that `pe` is a member of, and has not destroyed.
    pub(crate) fn is_member(&self, config: &Config, pe: PeId, team: TeamId) -> bool {
        match team.0.checked_sub(FIRST_OWN) {
            Some(own) if (own as usize) < self.states.len() => {
                let TeamState { handle, members, destroyed, .. } = &self.states[TeamIndex(own)];
                *handle == team && members.position(pe.index()).is_some() && !destroyed.contains(&pe)
            }
            Some(_) => false,
            None => Predefined::ALL
                .get(team.0 as usize)
                .is_some_and(|&which| predefined_members(config, which, pe.index()).is_some()),
        }
    }

    /// Whether a collective that moves data has a member that has not left: its data may come later.
    pub(crate) fn have_parts_under_way(&self) -> bool {
        let moves_data = |instance: &Instance| instance.what.as_ref().is_some_and(|what| what.data().is_some());
        self.states.iter().flat_map(|team| &team.open).any(|instance| moves_data(instance) && !instance.is_left())
    }

    /// A member of a collective in progress that uses the memory, and its line.
    pub(crate) fn collective_using(&self, alloc: AllocId) -> Option<(PeId, At)> {
        let uses = |instance: &&Instance| {
            !instance.is_left() && matches!(&instance.what, Some(Collective::Op(op)) if op.uses(alloc))
        };
        self.states.iter().find_map(|team| {
            let instance = team.open.iter().map(Box::as_ref).find(uses)?;
            let inside = |(member, entry): (usize, &Entry)| Some((PeId::new(team.members.get(member)), entry.at?));
            instance.entries.iter().enumerate().find_map(inside)
        })
    }

    /// Makes a team; its handle is its index, behind the predefined ones.
    fn add(&mut self, members: Members, name: TeamName) -> TeamId {
        let handle = TeamId(self.states.len() as u32 + FIRST_OWN);
        self.states.push(TeamState::new(members, handle, name));
        handle
    }

    /// Makes a team of a part of another one. Splits of a team come in one order.
    fn add_part(&mut self, parent: TeamIndex, members: Members) -> TeamId {
        let parent = &mut self.states[parent];
        parent.made += 1;
        let name = TeamName::of(u64::from(parent.name.0) << 32 | u64::from(parent.made));
        self.add(members, name)
    }
}

impl TeamName {
    /// Of a predefined team.
    fn predefined(team: TeamId, first: usize) -> TeamName {
        TeamName((first as u32) << 3 | team.0)
    }

    /// Of another team. `origin`: a number of its own, of what it was made of: a part of a team, or, with all bits changed, a unique id.
    fn of(origin: u64) -> TeamName {
        TeamName(mixed(origin) as u32 | 1 << 31)
    }
}

/// The members of a predefined team that `pe` is in.
pub(crate) fn predefined_members(config: &Config, which: Predefined, pe: usize) -> Option<Members> {
    let block = |of: usize| Some(Members::Strided { start: (pe / of * of) as u32, stride: 1, size: of as u32 });
    let (per_node, per_gpu) = (config.pes_per_node(), config.pes_per_gpu());
    match which {
        Predefined::World => block(config.pes),
        Predefined::Shared if !config.capabilities.peer_access.is_available() => block(1),
        Predefined::Shared | Predefined::Node => block(per_node),
        Predefined::SameMypeNode => {
            Some(Members::Strided { start: (pe % per_node) as u32, stride: per_node as u32, size: config.nodes as u32 })
        }
        Predefined::SameGpu => block(per_gpu),
        Predefined::GpuLeaders => pe.is_multiple_of(per_gpu).then_some(Members::Strided {
            start: 0,
            stride: per_gpu as u32,
            size: (config.pes / per_gpu) as u32,
        }),
    }
}

impl Machine {
    /// The team that a handle names on a PE.
    #[inline]
    pub(super) fn team_index(&mut self, pe: PeId, team: TeamId) -> TeamIndex {
        match team.0 {
            0 => TeamIndex(0),
            own if own >= FIRST_OWN => TeamIndex(own - FIRST_OWN),
            _ => self.predefined_index(pe, team),
        }
    }

    fn predefined_index(&mut self, pe: PeId, team: TeamId) -> TeamIndex {
        let members = self.teams.members_of(&self.config, pe, team);
        let Teams { states, predefined, .. } = &mut self.teams;
        let key = (team, members.get(0));
        let name = TeamName::predefined(team, key.1);
        *predefined.entry(key).or_insert_with(|| states.push(TeamState::new(members, team, name)))
    }

    pub(super) fn team_members(&mut self, pe: PeId, team: TeamId) -> Members {
        let index = self.team_index(pe, team);
        self.teams.get(index).members.clone()
    }

    /// A team in words.
    pub(super) fn team_name(&self, team: TeamIndex) -> String {
        self.teams.get(team).handle.to_string()
    }

    pub(super) fn fresh_team_unique_id(&mut self, pe: PeId) -> u64 {
        let made = self.teams.unique_ids.entry(pe).or_insert(0);
        *made += 1;
        u64::from(pe.0) << 32 | u64::from(*made)
    }

    /// A PE asks for a team, or for its end.
    pub(super) fn team_request(&mut self, host: AgentId, request: &TeamRequest<'_>, at: At) -> Progress {
        let pe = self.agents[host].pe;
        let (team, what) = match *request {
            TeamRequest::SplitStrided { parent, start, stride, members, config } => {
                (parent, Collective::Split { start, stride, members: members.clone(), config })
            }
            TeamRequest::Split2d { parent, xrange, x_config, y_config, .. } => {
                (parent, Collective::Split2d { xrange, configs: [x_config, y_config] })
            }
            TeamRequest::Destroy { team } => (team, Collective::Destroy),
            TeamRequest::Init { unique_id, n_pes, index, .. } => {
                return self.team_init(host, unique_id.0, n_pes, index, at);
            }
        };
        let team = self.team_index(pe, team);
        self.enter(host, team, &what, at)
    }

    /// Whether a PE that is a member of so many teams of its own can be one of `more`.
    fn room_for_teams(&self, teams: usize, more: usize) -> bool {
        Predefined::ALL.len() + teams + more <= self.config.max_teams
    }

    fn out_of_teams(&self, call: &'static str, at: At) -> Error {
        let message = format!("there are {} teams already, the most there can be", self.config.max_teams);
        Error::new(ErrorKind::OutOfTeams, call, message, at)
    }

    /// A member has entered a split: the new team of each of the parent's members, in the parent's order. All get the same answer: there
    /// must be room on every PE. Those that have not entered may give back a team before they do, so without room it takes the `last` to know.
    pub(super) fn split(&mut self, parent: TeamIndex, what: &Collective, last: bool, at: At) -> Made {
        let (of, parent) = (parent, self.teams.get(parent).members.clone());
        let (members, each) = match what {
            Collective::Split { members, .. } => (members, 1),
            _ => (&parent, 2),
        };
        let has_room = |pe| {
            let PeState { teams, promised, .. } = self.pes[pe];
            self.room_for_teams(if last { teams } else { teams + promised }, each)
        };
        if !members.iter().map(PeId::new).all(has_room) {
            return if last { Made::Failed(self.out_of_teams(what.name(), at)) } else { Made::NotKnown };
        }
        for pe in members.iter().map(PeId::new) {
            self.pes[pe].promised += each;
        }
        match what {
            Collective::Split { members, .. } => {
                let team = self.teams.add_part(of, members.clone());
                let of = |pe| NewTeams { first: members.position(pe).map(|_| team), second: None };
                Made::Teams(parent.iter().map(of).collect())
            }
            Collective::Split2d { xrange, .. } => {
                let (n, xrange) = (parent.len(), *xrange);
                let rows: Vec<TeamId> = (0..n.div_ceil(xrange))
                    .map(|row| self.teams.add_part(of, parent.strided(row * xrange, 1, xrange.min(n - row * xrange))))
                    .collect();
                let columns: Vec<TeamId> = (0..xrange)
                    .map(|column| {
                        self.teams.add_part(of, parent.strided(column, xrange, (n - column).div_ceil(xrange)))
                    })
                    .collect();
                let of = |i| NewTeams { first: Some(rows[i / xrange]), second: Some(columns[i % xrange]) };
                Made::Teams((0..n).map(of).collect())
            }
            other => unreachable!("{other} makes no team"),
        }
    }

    /// A member destroys a team.
    pub(super) fn destroys_team(&mut self, agent: AgentId, team: TeamIndex) {
        let pe = self.agents[agent].pe;
        self.pes[pe].teams -= 1;
        self.teams.get_mut(team).destroyed.insert(pe);
    }

    /// A member of a split takes its new teams. If it has made others since that was decided, there may be no room.
    pub(super) fn takes_teams(&mut self, agent: AgentId, new: &NewTeams) {
        let Agent { pe, call, at, .. } = self.agents[agent];
        let more = usize::from(new.first.is_some()) + usize::from(new.second.is_some());
        if !self.room_for_teams(self.pes[pe].teams, more) {
            let error = self.out_of_teams(call, at.expect("a call has a place"));
            self.found(VerdictKind::Failed { pe: pe.index(), error });
        }
        self.pes[pe].teams += more;
        self.pes[pe].promised -= more;
        new.first.into_iter().chain(new.second).for_each(|team| self.joins(pe, team));
    }

    /// A PE is told of a team of its own.
    fn joins(&mut self, pe: PeId, team: TeamId) {
        let team = self.team_index(pe, team);
        let TeamState { members, numbers, .. } = self.teams.get_mut(team);
        let member = members.position(pe.index()).expect("only members have a handle");
        numbers[member] = self.pes[pe].joined;
        self.pes[pe].joined += 1;
    }

    fn team_init(&mut self, host: AgentId, unique_id: u64, n_pes: usize, index: usize, at: At) -> Progress {
        self.touch(Object::TeamInit(unique_id), Touch::Write);
        let fresh = || PendingInit { slots: vec![None; n_pes], past: super::Past::default() };
        let pending = self.teams.inits.entry(unique_id).or_insert_with(fresh);
        let field = match pending.slots.get(index) {
            _ if pending.slots.len() != n_pes => Some("n_pes"),
            Some(None) => None,
            _ => Some("index"),
        };
        if let Some(field) = field {
            return self.team_init_differs(host, unique_id, (n_pes, index), field, at);
        }
        pending.slots[index] = Some((host, at));
        pending.past.join(&self.agents[host].past);
        if pending.slots.iter().any(Option::is_none) {
            return self.block(host, State::JoiningTeam { unique_id });
        }
        let pending = self.teams.inits.remove(&unique_id).expect("it was just completed");
        let agents = || pending.slots.iter().flatten().map(|&(agent, _)| agent);
        let members: Rc<[u32]> = agents().map(|agent| self.agents[agent].pe.0).collect();
        let room = agents().all(|agent| self.room_for_teams(self.pes[self.agents[agent].pe].teams, 1));
        let team = room.then(|| self.teams.add(Members::List(members), TeamName::of(!unique_id)));
        for &(agent, at) in pending.slots.iter().flatten() {
            let pe = self.agents[agent].pe;
            let reply = match team {
                Some(team) => Reply::Teams(NewTeams { first: Some(team), second: None }),
                None => Reply::Failed(self.out_of_teams("team_init", at)),
            };
            self.pes[pe].teams += usize::from(room);
            team.into_iter().for_each(|team| self.joins(pe, team));
            self.agents[agent].answer(reply);
            self.agents[agent].past.join(&pending.past);
            if agent != host {
                self.finish(agent);
            }
        }
        Progress::Done
    }

    #[cold]
    fn team_init_differs(
        &mut self,
        host: AgentId,
        unique_id: u64,
        (n_pes, index): (usize, usize),
        field: &'static str,
        at: At,
    ) -> Progress {
        let pending = &self.teams.inits[&unique_id];
        let call = |n_pes, index| format!("team_init(n_pes {n_pes}, index {index})");
        let mut calls: Vec<Entered> = (pending.slots.iter().enumerate())
            .filter_map(|(i, slot)| {
                let (agent, at) = (*slot)?;
                let pe = self.agents[agent].pe.index();
                Some(Entered { pe, call: call(pending.slots.len(), i), at })
            })
            .collect();
        calls.push(Entered { pe: self.agents[host].pe.index(), call: call(n_pes, index), at });
        calls.sort_by_key(|call| call.pe);
        self.found(VerdictKind::Mismatch { team: "a new team".into(), number: 0, field, calls });
        self.block(host, State::JoiningTeam { unique_id })
    }
}
