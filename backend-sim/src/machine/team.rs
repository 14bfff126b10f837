//! Teams: members, the sequence of their collectives, and how new ones come to be.

use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use onesided::backend::{AllocId, NewTeams, TeamId, TeamRequest};
use onesided::{At, Error, ErrorKind, Members, Predefined};

use super::agent::{NONE, Phase};
use super::collective::{Collective, Entry, Instance};
use super::{Machine, Progress, Reply};
use crate::config::Config;
use crate::verdict::{Entered, VerdictKind};

/// Handles below this are predefined.
const FIRST_OWN: u32 = Predefined::ALL.len() as u32;

/// All teams. Index 0 is the world; predefined groups appear when they are first used.
#[derive(Debug, Default)]
pub(crate) struct Teams {
    states: Vec<TeamState>,
    predefined: BTreeMap<(TeamId, usize), u32>,
    /// Teams being made by `team_init`, by unique id.
    inits: BTreeMap<u64, PendingInit>,
    unique_ids: u64,
    own_alive: usize,
}

/// One team.
#[derive(Debug)]
pub(crate) struct TeamState {
    pub(crate) members: Members,
    pub(crate) handle: TeamId,
    /// Per member: the number of its next collective.
    pub(crate) next: Vec<u32>,
    /// Per member: the agent that is in a collective.
    pub(crate) busy: Vec<u32>,
    open: VecDeque<Box<Instance>>,
    first_open: u32,
    #[expect(clippy::vec_box, reason = "an instance moves between here and `open` as a pointer, and is reused")]
    spare: Vec<Box<Instance>>,
}

/// A `team_init` that not all members have called yet.
#[derive(Debug)]
struct PendingInit {
    /// Agent and place of each member that has.
    slots: Vec<Option<(u32, At)>>,
}

impl TeamState {
    fn new(members: Members, handle: TeamId) -> TeamState {
        let n = members.len();
        TeamState {
            members,
            handle,
            next: vec![0; n],
            busy: vec![NONE; n],
            open: VecDeque::new(),
            first_open: 0,
            spare: Vec::new(),
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
    pub(crate) fn reset(&mut self, n_pes: usize) {
        self.states.truncate(1);
        match self.states.first_mut() {
            Some(world) if world.members.len() == n_pes => {
                world.next.fill(0);
                world.busy.fill(NONE);
                world.spare.extend(world.open.drain(..));
                world.first_open = 0;
            }
            _ => {
                let all = Members::Strided { start: 0, stride: 1, size: n_pes as u32 };
                self.states = vec![TeamState::new(all, Predefined::World.id())];
            }
        }
        self.predefined.clear();
        self.inits.clear();
        self.unique_ids = 0;
        self.own_alive = 0;
    }

    #[inline]
    pub(crate) fn get(&self, team: u32) -> &TeamState {
        &self.states[team as usize]
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, team: u32) -> &mut TeamState {
        &mut self.states[team as usize]
    }

    /// A member of a collective in progress that uses the memory, and its line.
    pub(crate) fn collective_using(&self, alloc: AllocId) -> Option<(u32, At)> {
        let uses = |instance: &&Instance| {
            !instance.is_left() && matches!(&instance.what, Some(Collective::Op(op)) if op.uses(alloc))
        };
        self.states.iter().find_map(|team| {
            let instance = team.open.iter().map(Box::as_ref).find(uses)?;
            let inside = |(member, entry): (usize, &Entry)| Some((team.members.get(member) as u32, entry.at?));
            instance.entries.iter().enumerate().find_map(inside)
        })
    }

    /// Makes a team; its handle is its index, behind the predefined ones.
    fn add(&mut self, members: Members) -> TeamId {
        let handle = TeamId(self.states.len() as u32 + FIRST_OWN);
        self.states.push(TeamState::new(members, handle));
        self.own_alive += 1;
        handle
    }
}

/// The members of a predefined team that `pe` is in.
pub(crate) fn predefined_members(config: &Config, which: Predefined, pe: usize) -> Option<Members> {
    let block = |of: usize| Some(Members::Strided { start: (pe / of * of) as u32, stride: 1, size: of as u32 });
    let (per_node, per_gpu) = (config.pes_per_node(), config.pes_per_gpu());
    match which {
        Predefined::World => block(config.pes),
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
    pub(super) fn team_index(&mut self, pe: u32, team: TeamId) -> u32 {
        match team.0 {
            0 => 0,
            own if own >= FIRST_OWN => own - FIRST_OWN,
            _ => self.predefined_index(pe as usize, team),
        }
    }

    fn predefined_index(&mut self, pe: usize, team: TeamId) -> u32 {
        let which = Predefined::ALL[team.0 as usize];
        let members = predefined_members(&self.config, which, pe).expect("only members have a handle");
        let key = (team, members.get(0));
        if let Some(&index) = self.teams.predefined.get(&key) {
            return index;
        }
        self.teams.states.push(TeamState::new(members, team));
        let index = self.teams.states.len() as u32 - 1;
        self.teams.predefined.insert(key, index);
        index
    }

    pub(super) fn team_members(&mut self, pe: u32, team: TeamId) -> Members {
        let index = self.team_index(pe, team);
        self.teams.get(index).members.clone()
    }

    /// A team in words.
    pub(super) fn team_name(&self, team: u32) -> String {
        self.teams.get(team).handle.to_string()
    }

    pub(super) fn fresh_team_unique_id(&mut self, pe: u32) -> u64 {
        self.teams.unique_ids += 1;
        u64::from(pe) << 32 | self.teams.unique_ids
    }

    /// A PE asks for a team, or for its end.
    pub(super) fn team_request(&mut self, pe: u32, request: &TeamRequest<'_>, at: At) -> Progress {
        match *request {
            TeamRequest::SplitStrided { parent, start, stride, members, config } => {
                let parent = self.team_index(pe, parent);
                let members = members.clone();
                self.enter(pe, parent, &Collective::Split { start, stride, members, config }, at)
            }
            TeamRequest::Split2d { parent, xrange, x_config, y_config, .. } => {
                let parent = self.team_index(pe, parent);
                self.enter(pe, parent, &Collective::Split2d { xrange, configs: [x_config, y_config] }, at)
            }
            TeamRequest::Destroy { team } => {
                let team = self.team_index(pe, team);
                self.enter(pe, team, &Collective::Destroy, at)
            }
            TeamRequest::Init { unique_id, n_pes, index, .. } => self.team_init(pe, unique_id.0, n_pes, index, at),
        }
    }

    /// Whether `more` further teams fit.
    fn room_for_teams(&self, more: usize) -> bool {
        Predefined::ALL.len() + self.teams.own_alive + more <= self.config.max_teams
    }

    pub(super) fn out_of_teams(&self, call: &'static str, at: At) -> Error {
        let message = format!("there are {} teams already, the most there can be", self.config.max_teams);
        Error::new(ErrorKind::OutOfTeams, call, message, at)
    }

    /// Everyone has entered a split: the new team of each of the parent's members, in the parent's order.
    pub(super) fn split(&mut self, parent: u32, what: &Collective) -> Result<Vec<NewTeams>, &'static str> {
        let parent = self.teams.get(parent).members.clone();
        let call = what.name();
        match what {
            Collective::Split { members, .. } => {
                if !self.room_for_teams(1) {
                    return Err(call);
                }
                let team = self.teams.add(members.clone());
                let of = |pe| NewTeams { first: members.position(pe).map(|_| team), second: None };
                Ok(parent.iter().map(of).collect())
            }
            Collective::Split2d { xrange, .. } => {
                let (n, xrange) = (parent.len(), *xrange);
                let rows = n.div_ceil(xrange);
                if !self.room_for_teams(rows + xrange) {
                    return Err(call);
                }
                let rows: Vec<TeamId> = (0..rows)
                    .map(|row| self.teams.add(parent.strided(row * xrange, 1, xrange.min(n - row * xrange))))
                    .collect();
                let columns: Vec<TeamId> = (0..xrange)
                    .map(|column| self.teams.add(parent.strided(column, xrange, (n - column).div_ceil(xrange))))
                    .collect();
                Ok((0..n)
                    .map(|i| NewTeams { first: Some(rows[i / xrange]), second: Some(columns[i % xrange]) })
                    .collect())
            }
            other => unreachable!("{other} makes no team"),
        }
    }

    pub(super) fn team_destroyed(&mut self) {
        self.teams.own_alive -= 1;
    }

    fn team_init(&mut self, pe: u32, unique_id: u64, n_pes: usize, index: usize, at: At) -> Progress {
        self.touch_team_init(unique_id);
        let pending = self.teams.inits.entry(unique_id).or_insert_with(|| PendingInit { slots: vec![None; n_pes] });
        let field = match pending.slots.get(index) {
            _ if pending.slots.len() != n_pes => Some("n_pes"),
            Some(None) => None,
            _ => Some("index"),
        };
        if let Some(field) = field {
            let size = pending.slots.len();
            let mut calls: Vec<Entered> = (pending.slots.iter().enumerate())
                .filter_map(|(i, slot)| {
                    let (agent, at) = (*slot)?;
                    let pe = self.agents[agent as usize].pe as usize;
                    Some(Entered { pe, call: format!("team_init(n_pes {size}, index {i})"), at })
                })
                .collect();
            calls.push(Entered { pe: pe as usize, call: format!("team_init(n_pes {n_pes}, index {index})"), at });
            calls.sort_by_key(|call| call.pe);
            self.found(VerdictKind::Mismatch { team: "a new team".into(), number: 0, field, calls });
            return self.block(pe, Phase::TeamInit { unique_id });
        }
        pending.slots[index] = Some((pe, at));
        if pending.slots.iter().any(Option::is_none) {
            return self.block(pe, Phase::TeamInit { unique_id });
        }
        let pending = self.teams.inits.remove(&unique_id).expect("it was just completed");
        let members: Rc<[u32]> = pending.slots.iter().flatten().map(|&(agent, _)| agent).collect();
        let result = if self.room_for_teams(1) { Ok(self.teams.add(Members::List(members))) } else { Err(()) };
        for (agent, at) in pending.slots.into_iter().flatten() {
            let reply = match result {
                Ok(team) => Reply::Teams(NewTeams { first: Some(team), second: None }),
                Err(()) => Reply::Failed(self.out_of_teams("team_init", at)),
            };
            self.agents[agent as usize].reply = reply;
            if agent != pe {
                self.finish(agent);
            }
        }
        Progress::Done
    }
}
