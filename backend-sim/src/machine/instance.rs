//! One collective of a team: what members enter, how far each has come, and when it may leave.

use onesided::backend::{self, AllocId, CollectiveKind, Data, Effect, Layout, NewTeams, Op, Pattern, TeamId};
use onesided::{At, Error, Members, Predefined, TeamConfig, UniqueId, count};

use super::ids::AgentId;
use super::past::Past;
use crate::race::{Clock, Snapshot};

/// What members enter: everything that must be the same on all of them.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Collective {
    Op(Op),
    Init { method: &'static str, id: Option<Box<UniqueId>> },
    Finalize,
    Alloc(Layout),
    Free(AllocId),
    Register { bytes: usize },
    Unregister(AllocId),
    Split { start: usize, stride: usize, members: Members, config: TeamConfig },
    Split2d { xrange: usize, configs: [TeamConfig; 2] },
    Destroy,
}

/// When a member goes on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Leaves {
    /// When everyone has entered.
    #[default]
    Together,
    /// When its own data is there, and its own source has been read.
    WithItsData,
    /// At once.
    AtOnce,
}

/// One collective of a team, from the first entry to the last leave.
#[derive(Debug, Default)]
pub(crate) struct Instance {
    /// What the first member entered.
    pub(crate) what: Option<Collective>,
    /// When they go on.
    pub(crate) leaves: Leaves,
    pub(crate) entries: Vec<Entry>,
    /// What members get that leave at once.
    pub(crate) made: Made,
    /// Steps before all entries so far.
    pub(crate) past: Past,
    pub(crate) entered: usize,
    pub(crate) left: usize,
}

/// One member in an instance.
#[derive(Clone, Debug, Default)]
pub(crate) struct Entry {
    /// The agent that entered.
    pub(crate) agent: Option<AgentId>,
    pub(crate) at: Option<At>,
    /// Parts of its own dest that are still to come.
    pub(crate) dst_parts: u32,
    /// Parts that have yet to read its source.
    pub(crate) src_parts: u32,
    /// Steps before the entry.
    pub(crate) past: Past,
    /// Steps of the parts that the member waits for.
    pub(crate) learned: Past,
    /// What the member knew at its entry, and what it learns from the parts: the race detector's.
    pub(crate) entered: Option<Snapshot>,
    pub(crate) known: Clock,
    pub(crate) left: bool,
}

/// What a collective made when its first member entered.
#[derive(Clone, Debug, Default)]
pub(crate) enum Made {
    #[default]
    Nothing,
    /// That is not known before all have entered.
    NotKnown,
    /// A team for each member of the parent, in its order.
    Teams(Vec<NewTeams>),
    Alloc(AllocId),
    Failed(Error),
}

impl Instance {
    pub(crate) fn open(&mut self, what: &Collective, n: usize) {
        let (dst_parts, src_parts) = match what.data() {
            Some(Data { pattern: Pattern::Broadcast { .. }, .. }) => (1, 0),
            Some(Data { pattern: Pattern::Fcollect | Pattern::Alltoall, .. }) => (n as u32, 0),
            Some(Data { pattern: Pattern::Reduce(_) | Pattern::ReduceScatter(_), .. }) => (1, 1),
            None => (0, 0),
        };
        self.entries.resize_with(n, Entry::default);
        for entry in &mut self.entries {
            // in place: most collectives are short
            (entry.agent, entry.at, entry.left) = (None, None, false);
            (entry.dst_parts, entry.src_parts) = (dst_parts, src_parts);
            entry.past.clear();
            entry.learned.clear();
            entry.entered = None;
            if !entry.known.is_empty() {
                entry.known = Clock::default();
            }
        }
        (self.entered, self.left) = (0, 0);
        (self.what, self.leaves) = (Some(what.clone()), what.leaves());
        if !matches!(self.made, Made::Nothing) {
            self.made = Made::Nothing;
        }
        self.past.clear();
    }

    /// Whether every member has left.
    pub(crate) fn is_left(&self) -> bool {
        self.left > 0 && self.left == self.entries.len()
    }

    /// Whether a member of a collective that moves data has nothing to wait for.
    pub(crate) fn can_leave(&self, member: u32) -> bool {
        let Entry { agent, dst_parts, src_parts, left, .. } = &self.entries[member as usize];
        agent.is_some() && !left && *dst_parts == 0 && *src_parts == 0
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

    /// The team that it belongs to.
    pub(crate) fn team_or_world(&self) -> TeamId {
        self.team().unwrap_or(Predefined::World.id())
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

    /// The data that it moves, if it moves any.
    pub(crate) fn data(&self) -> Option<Data> {
        let Collective::Op(op) = self else { return None };
        match op.effect() {
            Effect::Collective(backend::Collective { kind: CollectiveKind::Data(data), .. }) => Some(data),
            Effect::Collective(backend::Collective {
                kind: CollectiveKind::Barrier | CollectiveKind::Sync, ..
            }) => None,
            _ => unreachable!("only collectives are entered"),
        }
    }

    pub(crate) fn leaves(&self) -> Leaves {
        match self {
            Collective::Op(_) if self.data().is_some() => Leaves::WithItsData,
            Collective::Op(_)
            | Collective::Init { .. }
            | Collective::Finalize
            | Collective::Alloc(_)
            | Collective::Free(_)
            | Collective::Unregister(_) => Leaves::Together,
            Collective::Register { .. }
            | Collective::Split { .. }
            | Collective::Split2d { .. }
            | Collective::Destroy => Leaves::AtOnce,
        }
    }

    /// The first argument in which two members' calls differ. They do.
    #[cold]
    pub(crate) fn difference(&self, other: &Collective) -> &'static str {
        use Collective::*;
        if self.name() != other.name() {
            return "call";
        }
        match (self, other) {
            (Op(a), Op(b)) if a.dtype() != b.dtype() => "element type",
            (Op(_), Op(_)) => match self.data().zip(other.data()) {
                Some((a, b)) => differing_operand(&a, &b),
                None => "arguments",
            },
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
        }
    }
}

fn differing_operand(a: &Data, b: &Data) -> &'static str {
    if a.dst.len != b.dst.len || a.src.len != b.src.len {
        return "count";
    }
    match (a.pattern, b.pattern) {
        (Pattern::Broadcast { root: a }, Pattern::Broadcast { root: b }) if a != b => "root",
        (Pattern::Reduce(a), Pattern::Reduce(b)) | (Pattern::ReduceScatter(a), Pattern::ReduceScatter(b)) if a != b => {
            "operator"
        }
        _ if a.dst != b.dst => "dst",
        _ if a.src != b.src => "src",
        _ => "arguments",
    }
}

impl std::fmt::Display for Collective {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Collective::Op(op) => write!(f, "{op}"),
            Collective::Alloc(Layout { bytes, align, zeroed }) => {
                write!(f, "alloc({}", count(*bytes, "byte"))?;
                if let Some(align) = align {
                    write!(f, ", aligned to {align}")?;
                }
                f.write_str(if *zeroed { ", zeroed)" } else { ")" })
            }
            Collective::Free(alloc) => write!(f, "free({alloc})"),
            Collective::Register { bytes } => write!(f, "register_symmetric({})", count(*bytes, "byte")),
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
