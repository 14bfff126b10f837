//! Collectives as a matter of who entered what: matching, entering, leaving.
//!
//! A team's collectives form a sequence. A member's `n`-th call on the team belongs to the `n`-th [`Instance`], and must
//! be the same call as the other members'. What data moves is `data.rs`'s business; an instance only counts how much
//! of it each member still waits for.

use onesided::backend::{AllocId, Layout, Op, TeamId};
use onesided::{At, Members, TeamConfig, UniqueId};

use super::agent::{Agent, NONE, Phase, Work};
use super::{Access, Machine, Progress, TEAM_TURNS, Touch};
use crate::verdict::{Entered, VerdictKind};

/// What members enter: everything that must be the same on all of them.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Collective {
    Op(Op),
    Init { method: &'static str, id: Option<UniqueId> },
    Finalize,
    Alloc(Layout),
    Free(AllocId),
    Register { bytes: usize },
    Unregister(AllocId),
    Split { start: usize, stride: usize, members: Members, config: TeamConfig },
    Split2d { xrange: usize, configs: [TeamConfig; 2] },
    Destroy,
}

/// One collective of a team, from the first entry to the last leave.
#[derive(Debug, Default)]
pub(crate) struct Instance {
    /// What the first member entered.
    pub(crate) what: Option<Collective>,
    pub(crate) entries: Vec<Entry>,
    entered: usize,
    left: usize,
}

/// One member in an instance.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    /// The agent that entered; `NONE` before.
    pub(crate) agent: u32,
    pub(crate) at: Option<At>,
    /// Private to the member: the external allocation that it registers.
    pub(crate) private: u32,
    /// Parts of its own dest that are still to come.
    pub(crate) dst_parts: u32,
    /// Parts that have yet to read its source.
    pub(crate) src_parts: u32,
    left: bool,
}

impl Instance {
    fn open(&mut self, what: &Collective, n: usize) {
        let dst_parts = match what {
            Collective::Op(Op::Broadcast { .. } | Op::Reduce { .. } | Op::ReduceScatter { .. }) => 1,
            Collective::Op(Op::Fcollect { .. } | Op::Alltoall { .. }) => n as u32,
            _ => 0,
        };
        let src_parts = u32::from(what.reduces());
        let entry = Entry { agent: NONE, at: None, private: 0, dst_parts, src_parts, left: false };
        self.entries.clear();
        self.entries.resize(n, entry);
        (self.entered, self.left) = (0, 0);
        self.what = Some(what.clone());
    }

    /// Whether every member has left.
    pub(crate) fn is_left(&self) -> bool {
        self.left > 0 && self.left == self.entries.len()
    }

    /// Whether a member of a collective that moves data has nothing to wait for.
    fn can_leave(&self, member: u32) -> bool {
        let Entry { agent, dst_parts, src_parts, left, .. } = self.entries[member as usize];
        agent != NONE && !left && dst_parts == 0 && src_parts == 0
    }
}

impl Collective {
    /// The team that an operation names; other collectives name none.
    pub(crate) fn team(&self) -> Option<TeamId> {
        match self {
            Collective::Op(op) => op.team(),
            _ => None,
        }
    }

    pub(crate) fn name(&self) -> &'static str {
        match self {
            Collective::Op(op) => op.name(),
            Collective::Init { .. } => "init",
            Collective::Finalize => "finalize",
            Collective::Alloc(_) => "alloc",
            Collective::Free(_) => "free",
            Collective::Register { .. } => "register_symmetric",
            Collective::Unregister(_) => "unregister_symmetric",
            Collective::Split { .. } => "team_split_strided",
            Collective::Split2d { .. } => "team_split_2d",
            Collective::Destroy => "team_destroy",
        }
    }

    /// Whether members wait for data instead of for each other.
    pub(crate) fn moves_data(&self) -> bool {
        match self {
            Collective::Op(op) => !matches!(op, Op::Barrier { .. } | Op::Sync { .. }),
            _ => false,
        }
    }

    fn reduces(&self) -> bool {
        matches!(self, Collective::Op(Op::Reduce { .. } | Op::ReduceScatter { .. }))
    }

    /// The first argument in which two members' calls differ.
    fn differs(&self, other: &Collective) -> Option<&'static str> {
        use Collective::*;
        if self == other {
            return None;
        }
        if self.name() != other.name() {
            return Some("call");
        }
        Some(match (self, other) {
            (Op(a), Op(b)) => differing_operand(a, b),
            (Alloc(a), Alloc(b)) if a.bytes != b.bytes => "size",
            (Alloc(a), Alloc(b)) if a.align != b.align => "alignment",
            (Alloc(_), Alloc(_)) => "zeroed",
            (Free(_), Free(_)) | (Unregister(_), Unregister(_)) => "buffer",
            (Register { .. }, Register { .. }) => "size",
            (Split { start: a, .. }, Split { start: b, .. }) if a != b => "start",
            (Split { stride: a, .. }, Split { stride: b, .. }) if a != b => "stride",
            (Split { members: a, .. }, Split { members: b, .. }) if a.len() != b.len() => "size",
            (Split2d { xrange: a, .. }, Split2d { xrange: b, .. }) if a != b => "xrange",
            (Split { .. }, _) | (Split2d { .. }, _) => "config",
            (Init { method: a, .. }, Init { method: b, .. }) if a != b => "method",
            (Init { .. }, _) => "unique id",
            _ => "arguments",
        })
    }
}

fn differing_operand(a: &Op, b: &Op) -> &'static str {
    if a.dtype() != b.dtype() {
        return "element type";
    }
    let operands = |op: &Op| match *op {
        Op::Broadcast { dst, src, .. }
        | Op::Fcollect { dst, src, .. }
        | Op::Alltoall { dst, src, .. }
        | Op::Reduce { dst, src, .. }
        | Op::ReduceScatter { dst, src, .. } => Some((dst, src)),
        _ => None,
    };
    let Some(((dst_a, src_a), (dst_b, src_b))) = operands(a).zip(operands(b)) else { return "arguments" };
    if dst_a.len != dst_b.len || src_a.len != src_b.len {
        return "count";
    }
    match (a, b) {
        (Op::Broadcast { root: a, .. }, Op::Broadcast { root: b, .. }) if a != b => "root",
        (Op::Reduce { op: a, .. }, Op::Reduce { op: b, .. })
        | (Op::ReduceScatter { op: a, .. }, Op::ReduceScatter { op: b, .. })
            if a != b =>
        {
            "operator"
        }
        _ if dst_a != dst_b => "dst",
        _ if src_a != src_b => "src",
        _ => "arguments",
    }
}

impl Machine {
    /// A member enters its team's next collective.
    pub(super) fn enter(&mut self, agent: u32, team: u32, what: &Collective, at: At) -> Progress {
        self.enter_with(agent, team, what, 0, at)
    }

    pub(super) fn enter_with(&mut self, agent: u32, team: u32, what: &Collective, private: u32, at: At) -> Progress {
        let pe = self.agents[agent as usize].pe;
        self.touch_team(agent, team);
        let state = self.teams.get_mut(team);
        let member = state.members.position(pe as usize).expect("only members have a handle") as u32;
        let n = state.members.len();
        let other = std::mem::replace(&mut state.busy[member as usize], agent);
        if other != NONE {
            let calls = [self.agents[other as usize].call, what.name()];
            let team = self.team_name(team);
            self.found(VerdictKind::ConcurrentCollectives { team, pe: pe as usize, calls });
            return self.block(agent, Phase::Collective { team: 0, seq: u32::MAX });
        }
        if n > 1
            && let Some(earlier) = self.overtaken(agent, team)
        {
            let (team, calls) = (self.team_name(team), [(what.name(), at), earlier]);
            self.found(VerdictKind::CollectivesOutOfOrder { team, pe: pe as usize, calls });
            return self.block(agent, Phase::Collective { team: 0, seq: u32::MAX });
        }
        let state = self.teams.get_mut(team);
        let seq = state.next[member as usize];
        state.next[member as usize] += 1;
        let instance = state.instance_or_new(seq);
        match &instance.what {
            None => instance.open(what, n),
            Some(first) => {
                if let Some(field) = first.differs(what) {
                    return self.mismatch(team, seq, field, what, agent, at);
                }
            }
        }
        let instance = self.teams.get_mut(team).instance(seq);
        let entry = &mut instance.entries[member as usize];
        (entry.agent, entry.at, entry.private) = (agent, Some(at), private);
        instance.entered += 1;
        let last = instance.entered == n;
        if !what.moves_data() {
            if last {
                self.everyone_entered(team, seq, what, agent);
                return Progress::Done;
            }
            return self.block(agent, Phase::Collective { team, seq });
        }
        self.member_entered(team, seq, member, last);
        for other in 0..if last { n as u32 } else { 0 } {
            if self.teams.get(team).is_over(seq) {
                break;
            }
            self.try_leave(team, seq, other);
        }
        // the collective may be over already, and its instance gone
        if self.teams.get(team).is_over(seq) || self.teams.get(team).instance_ref(seq).entries[member as usize].left {
            return Progress::Done;
        }
        if self.teams.get(team).instance_ref(seq).can_leave(member) {
            self.leave(team, seq, member);
            return Progress::Done;
        }
        self.block(agent, Phase::Collective { team, seq })
    }

    /// A collective of the team that the agent's PE called before the agent's own, and that has not been entered: it is
    /// still enqueued on a stream, or is a barrier that still waits for its stream's puts.
    fn overtaken(&self, agent: u32, team: u32) -> Option<(&'static str, At)> {
        let Agent { pe, called, .. } = self.agents[agent as usize];
        let team = Some(self.teams.get(team).handle);
        let others = self.pes[pe as usize].streams.iter().filter(|&&stream| stream != agent);
        others.map(|&stream| &self.agents[stream as usize]).find_map(|stream| {
            if stream.called < called && stream.then.as_ref().is_some_and(|then| then.team() == team) {
                return stream.at.map(|at| (stream.call, at));
            }
            for work in &stream.queue {
                match work {
                    Work::Op { called: other, .. } if *other > called => break,
                    Work::Op { op, at, .. } if op.team() == team => return Some((op.name(), *at)),
                    _ => {}
                }
            }
            None
        })
    }

    /// The last member has entered a collective that moves no data: does it, and lets everyone go.
    fn everyone_entered(&mut self, team: u32, seq: u32, what: &Collective, last: u32) {
        self.complete_life(team, seq, what);
        let state = self.teams.get_mut(team);
        state.busy.fill(NONE);
        let members = state.members.len();
        for member in 0..members {
            let agent = self.teams.get(team).instance_ref(seq).entries[member].agent;
            self.touch_team(agent, team);
            if agent != last {
                self.finish(agent);
            }
        }
        let state = self.teams.get_mut(team);
        state.instance(seq).left = members;
        state.close_finished();
    }

    /// Lets a member go that waits in the collective, if it can.
    pub(super) fn try_leave(&mut self, team: u32, seq: u32, member: u32) {
        let instance = self.teams.get(team).instance_ref(seq);
        let agent = instance.entries[member as usize].agent;
        if instance.can_leave(member) && self.agents[agent as usize].phase == (Phase::Collective { team, seq }) {
            self.leave(team, seq, member);
            self.finish(agent);
        }
    }

    fn leave(&mut self, team: u32, seq: u32, member: u32) {
        self.touch_team(self.teams.get(team).instance_ref(seq).entries[member as usize].agent, team);
        let state = self.teams.get_mut(team);
        state.busy[member as usize] = NONE;
        let instance = state.instance(seq);
        instance.entries[member as usize].left = true;
        instance.left += 1;
        if instance.left == instance.entries.len() {
            state.close_finished();
        }
    }

    /// Notes that an agent enters or leaves a collective of the team: whether another agent of its PE enters one before,
    /// meanwhile or after decides what is found. A host without streams has no other agent.
    fn touch_team(&mut self, agent: u32, team: u32) {
        let pe = self.agents[agent as usize].pe;
        if self.tracking && !self.pes[pe as usize].streams.is_empty() {
            let start = team as usize;
            self.touched.push(Access { pe, alloc: TEAM_TURNS, start, end: start + 1, how: Touch::Write });
        }
    }

    #[cold]
    fn mismatch(
        &mut self,
        team: u32,
        seq: u32,
        field: &'static str,
        what: &Collective,
        agent: u32,
        at: At,
    ) -> Progress {
        let instance = self.teams.get(team).instance_ref(seq);
        let first = instance.what.as_ref().expect("compared with the first entry");
        let mut calls: Vec<Entered> = (instance.entries.iter())
            .filter_map(|entry| {
                let at = entry.at?;
                let pe = self.agents[entry.agent as usize].pe as usize;
                Some(Entered { pe, call: first.to_string(), at })
            })
            .collect();
        let pe = self.agents[agent as usize].pe as usize;
        calls.push(Entered { pe, call: what.to_string(), at });
        calls.sort_by_key(|call| call.pe);
        let team_name = self.team_name(team);
        self.found(VerdictKind::Mismatch { team: team_name, number: seq, field, calls });
        self.block(agent, Phase::Collective { team: 0, seq: u32::MAX })
    }
}

impl std::fmt::Display for Collective {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Collective::Op(op) => write!(f, "{op}"),
            Collective::Alloc(Layout { bytes, align, zeroed }) => {
                write!(f, "alloc({bytes} bytes")?;
                if let Some(align) = align {
                    write!(f, ", aligned to {align}")?;
                }
                f.write_str(if *zeroed { ", zeroed)" } else { ")" })
            }
            Collective::Free(alloc) => write!(f, "free({alloc})"),
            Collective::Register { bytes } => write!(f, "register_symmetric({bytes} bytes)"),
            Collective::Unregister(alloc) => write!(f, "unregister_symmetric({alloc})"),
            Collective::Split { start, stride, members, .. } => {
                write!(f, "team_split_strided(start {start}, stride {stride}, size {})", members.len())
            }
            Collective::Split2d { xrange, .. } => write!(f, "team_split_2d(xrange {xrange})"),
            Collective::Init { method, .. } => write!(f, "init({method})"),
            Collective::Finalize | Collective::Destroy => f.write_str(self.name()),
        }
    }
}
