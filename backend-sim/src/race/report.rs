//! [`Race`]: two accesses that nothing orders, and what would order them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use onesided::At;
use onesided::backend::{AllocId, Span};
use onesided_ptx::Who as KernelThread;

use super::advice::{Context, signal_by_another};
use super::gpu::{Gpus, Lack};
use super::how::How;
use super::ineffective::IneffectiveOrder;
use super::missing::{MissingEdge, Side};
use super::site::Sites;
use super::who::{Who, knows, steps_of};
use super::{Clock, Kind as Agent, Lane, Mark, View};
use crate::machine::{AgentId, Id as _, PeId, Table};

/// Two accesses to the same bytes, at least one of which writes, that nothing orders. They are not both atomic, or they are
/// atomic on words of different sizes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Race {
    /// The access that was issued first.
    pub first: Access,
    /// The other.
    pub second: Access,
    /// The PE whose memory it is.
    pub pe: usize,
    /// Bytes that both touch.
    pub span: Span,
    /// The line that allocated the memory; `None` for external memory.
    pub made_at: Option<At>,
    /// What would order the two.
    pub missing: MissingEdge,
    /// A call that seems to do that, and does not. Of recorded runs only.
    pub ineffective: Option<IneffectiveOrder>,
    /// How often the same two calls raced in the run.
    pub times: u64,
}

/// One side of a [`Race`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Access {
    /// The PE that made it, or issued the transfer that did.
    pub pe: usize,
    /// Which of its streams; `None` for the host.
    pub stream: Option<usize>,
    /// Which thread of the kernel that runs there; `None` if it was no kernel's.
    pub thread: Option<KernelThread>,
    /// The operation.
    pub call: &'static str,
    /// Its line.
    pub at: At,
    /// Which part of the operation.
    pub part: Part,
    /// Whether it changes the memory.
    pub writes: bool,
    /// Whether it is atomic.
    pub atomic: bool,
    /// The step of the run in which the operation was issued.
    pub step: u64,
    /// The last call of this host or stream that the other side knows, of those that others synchronize with: a signal, an
    /// atomic, a collective.
    pub known: Option<(&'static str, At)>,
}

/// Which part of an operation an [`Access`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Part {
    /// What the call does before it returns.
    Itself,
    /// A transfer reads its source, when it comes to that.
    SourceRead,
    /// A transfer arrives.
    Delivery,
}

/// The races of a run so far: by the two calls and their kinds of access.
#[derive(Debug, Default)]
pub(super) struct Found(BTreeMap<(Kind, Kind), Pair>);

/// Site, kind of access, agent's lane.
type Kind = (u32, u32);

#[derive(Debug)]
pub(super) struct Pair {
    pub(super) first: Mark,
    pub(super) second: Mark,
    pub(super) pe: PeId,
    span: Span,
    pub(super) path: Path,
    /// A load in place of a wait that would have shown the first.
    pub(super) wait: Option<Lack>,
    /// What a fence lacks that would order the two else.
    pub(super) fence: Option<Lack>,
    /// What is missing of a fence that would order two threads' accesses, and the two.
    pub(super) lack: Option<(Lack, [Mark; 2])>,
    /// The call by which another thread than the first one's signals to whom the second comes after, and when.
    pub(super) signal: Option<(u64, u32)>,
    /// Of the block of each, how often its threads had all met.
    met: [u32; 2],
    /// Whether one was ordered after the other, if only both took the same path.
    pub(super) through: bool,
    /// One is of a collective, whose line the other one's agent had called before.
    pub(super) entered: bool,
    /// Whether one is ordered after the other, if only that were no read-only load.
    pub(super) read_only: bool,
    /// The first is a bulk copy's, and the second comes after what its thread did before, but not after the copy.
    pub(super) copy: bool,
    /// The site of the last synchronization of each that the other knows.
    pub(super) known: [Option<u32>; 2],
    times: u64,
}

/// How far the first access is on its way to the second.
#[derive(Clone, Copy, Debug)]
pub(super) enum Path {
    /// Nothing leads from one to the other.
    None,
    /// The second comes after the issue of the first. With the first call after it that others synchronize with, and the PE that
    /// this call signals.
    Issued(Option<(u32, Option<PeId>)>),
    /// Nothing leads from the access of a stream or kernel to the other one. The other one comes after this call, which the stream's host has made since.
    Behind { call: u32, stream: Which },
    /// Nothing leads from one to the other, but from the one to this call of a stream that the other one's host does not wait for.
    OnStream { call: u32, host: Which },
    /// Nothing leads from one to the other, and a barrier of a kernel's block would.
    Threads(Side),
    /// The same: another thread of the first one's block was told of the second before all of them met.
    ToldLater,
}

/// One of two accesses.
#[derive(Clone, Copy, Debug)]
pub(super) enum Which {
    First,
    Second,
}

impl Path {
    /// Why nothing leads from an access to a later one.
    fn none(earlier: &Mark, who: &Who<'_>, agents: &Table<AgentId, View>) -> Path {
        let of_block = |agent: AgentId| {
            let block = agents[agent].block;
            agents.ids().filter(move |&other| block.is_some() && agents[other].block == block && other != agent)
        };
        let (first, second) = (earlier.agent(), who.agent);
        let told = |&other: &AgentId| knows(&agents[other].clock, agents, first, earlier.lane(), earlier.time, who.pe);
        if agents[first].block.is_some() && agents[first].block == agents[second].block {
            Path::Threads(Side::Both)
        } else if of_block(second).any(|other| told(&other)) {
            Path::Threads(Side::Second)
        } else if agents[first].block.is_some_and(|block| {
            // since the last meeting before the access, another thread has told something, with no meeting between the access and that
            let met_at = agents[block].met_at;
            // where both meetings that are kept came later, what was told between the one before the access and it is not known
            let unknown = if met_at[1] > 0 { earlier.time } else { 0 };
            let before = met_at.into_iter().find(|&met| met < earlier.time).unwrap_or(unknown).max(who.base);
            let before = before.max(who.clock.steps(first)); // the first has told something itself, later than that
            let met_since = |told: u64| met_at.into_iter().any(|met| met > earlier.time && met <= told);
            of_block(first).map(|other| who.clock.steps(other)).any(|told| told > before && !met_since(told))
        }) {
            Path::Threads(Side::First)
        } else if let Some(stream) = streams_of(second, agents).find(told) {
            Path::OnStream { call: agents[stream].site, host: Which::Second }
        } else if let Some(call) =
            Path::behind((first, agents[first].last_clock(agents)), (second, who.clock), who.base, agents)
        {
            Path::Behind { call, stream: Which::First }
        } else if agents[first].last == earlier.time // so it knows what it knew then
            && let Some(call) = Path::behind((second, who.clock), (first, &agents[first].clock), who.base, agents)
        {
            Path::Behind { call, stream: Which::Second }
        } else {
            Path::None
        }
    }

    /// The call of a host, made since the last work of its stream was enqueued, that somebody comes after. `agent`: the stream, or one of a kernel
    /// there. Each with what it knows.
    fn behind(
        (agent, of_host): (AgentId, &Clock),
        (other, knows): (AgentId, &Clock),
        base: u64,
        agents: &Table<AgentId, View>,
    ) -> Option<u32> {
        let (view, host) = (&agents[agent], AgentId(agents[agent].pe.0)); // hosts come first, by rank
        if view.is_host() || view.pe == agents[other].pe {
            return None;
        }
        let enqueued = base.max(steps_of(of_host, agents, host));
        let known = steps_of(knows, agents, host);
        let next = agents[host].log.iter().find(|(time, ..)| *time > enqueued && *time <= known);
        next.map(|&(_, site, _)| site)
    }
}

/// The streams beside a host.
fn streams_of(host: AgentId, agents: &Table<AgentId, View>) -> impl Iterator<Item = AgentId> {
    let (pe, is_host) = (agents[host].pe, agents[host].is_host());
    let is_one =
        move |&other: &AgentId| is_host && agents[other].pe == pe && matches!(agents[other].kind, Agent::Stream(_));
    agents.ids().filter(is_one)
}

fn kind(mark: &Mark) -> Kind {
    (mark.once().what, mark.owner & 7)
}

/// Whether a part of a collective was written by a call that an agent had made before its own access.
fn has_entered(access: &Mark, part: &Mark, agents: &Table<AgentId, View>) -> bool {
    let mut calls = agents[access.agent()].log.iter();
    part.lane() == Lane::Parts && calls.any(|&(time, site, _)| time < access.time && site == part.site())
}

impl Found {
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Notes that an access races with an earlier one.
    #[cold]
    pub(super) fn note(
        &mut self,
        earlier: Mark,
        later: Mark,
        who: &Who<'_>,
        span: Span,
        (agents, gpus, sites): (&Table<AgentId, View>, &Gpus, &Sites),
    ) {
        let (a, b) = (kind(&earlier), kind(&later));
        let pair = self.0.entry((a.min(b), a.max(b)));
        let pair = pair.or_insert_with(|| {
            let forth =
                earlier.agent() == later.agent() || steps_of(who.clock, agents, earlier.agent()) >= earlier.time;
            // the later access may have been issued before the earlier one was made, and the agent of the earlier one may know of it
            let back = || steps_of(&agents[earlier.agent()].clock, agents, later.agent()) >= later.time;
            let (first, second, known) = match forth {
                true => (earlier, later, true),
                false if back() => (later, earlier, true),
                false => (earlier, later, false),
            };
            let path = match known {
                false => Path::none(&earlier, who, agents),
                true => Path::Issued(None),
            };
            let two = [([first, second], Some((who.clock, who.pe))), ([second, first], None)];
            let lacks = two.into_iter().filter(|_| !known);
            let of_one_block = matches!(path, Path::Threads(Side::Both));
            let lack = lacks.filter_map(|(two, knows)| {
                Some((gpus.fence_missing(&two, knows, of_one_block, (agents, sites))?, two))
            });
            let lack = lack.into_iter().next();
            let wait = gpus.wait_missing([&first, &second], who.pe, agents);
            let fence = gpus.missing(&first, &second, agents);
            let signal = signal_by_another(&first, (who.pe, who.clock), agents);
            let through = who.knows_recent(&earlier);
            let of_earlier = who.base.max(steps_of(who.clock, agents, earlier.agent()));
            let of_later = who.base.max(steps_of(&agents[earlier.agent()].clock, agents, later.agent()));
            let known = match first == earlier {
                true => [(first, of_earlier), (second, of_later)],
                false => [(first, of_later), (second, of_earlier)],
            };
            let path = match path {
                Path::Issued(_) => {
                    let pes = [who.pe, agents[second.agent()].pe];
                    Path::Issued(agents[first.agent()].tells(first.time, known[0].1, pes))
                }
                path => path,
            };
            let known = known.map(|(mark, upto)| agents[mark.agent()].last_synchronization(upto));
            let met = [first, second].map(|mark| agents[mark.agent()].met);
            let entered = has_entered(&first, &second, agents) || has_entered(&second, &first, agents);
            let read_only = false;
            let copy = agents[earlier.agent()].made_by.is_some_and(|(maker, time)| {
                time > 0 && (who.agent == maker || steps_of(who.clock, agents, maker) >= time)
            });
            Pair {
                first,
                second,
                pe: who.pe,
                span,
                path,
                wait,
                fence,
                lack,
                signal,
                met,
                through,
                entered,
                read_only,
                copy,
                known,
                times: 0,
            }
        });
        pair.times += 1;
    }

    /// Notes that a read-only load comes after a write, and does not see it for sure.
    #[cold]
    pub(super) fn note_read_only(
        &mut self,
        write: Mark,
        load: Mark,
        who: &Who<'_>,
        span: Span,
        known: (&Table<AgentId, View>, &Gpus, &Sites),
    ) {
        let (a, b) = (kind(&write), kind(&load));
        let pair = (a.min(b), a.max(b));
        let is_new = !self.0.contains_key(&pair);
        self.note(write, load, who, span, known);
        if let Some(pair) = self.0.get_mut(&pair).filter(|_| is_new) {
            pair.read_only = true;
        }
    }

    /// All threads of a block are about to meet: races of one of them with what another one has been told of since.
    pub(super) fn block_meets(&mut self, block: AgentId, agents: &Table<AgentId, View>) {
        let met = agents[block].met;
        for Pair { first, second, pe, path, met: when, .. } in self.0.values_mut() {
            // whether another thread than that of `one` has been told of the other
            let is_told = |one: &Mark, other: &Mark, when: u32| {
                let told = |id: AgentId| {
                    let (view, agent, lane) = (&agents[id], other.agent(), other.lane());
                    id != one.agent()
                        && view.block == Some(block)
                        && view.met == met
                        && knows(&view.clock, agents, agent, lane, other.time, *pe)
                };
                agents[one.agent()].block == Some(block) && when == met && agents.ids().any(told)
            };
            match path {
                Path::None if is_told(first, second, when[0]) => *path = Path::ToldLater,
                Path::Issued(_) if first.agent() != second.agent() && is_told(second, first, when[1]) => {
                    *path = Path::Threads(Side::Second);
                }
                _ => {}
            }
        }
    }

    /// A stream has learned something: races of its host, before, with what the stream has been told of now.
    #[inline]
    pub(super) fn heard(&mut self, stream: AgentId, agents: &Table<AgentId, View>) {
        if !self.0.is_empty() {
            self.heard_some(stream, agents);
        }
    }

    fn heard_some(&mut self, stream: AgentId, agents: &Table<AgentId, View>) {
        let view = &agents[stream];
        for Pair { first, second, pe, path, .. } in self.0.values_mut() {
            let (host, other) = (first.agent(), second.agent());
            if matches!(path, Path::None)
                && streams_of(host, agents).any(|of| of == stream)
                && steps_of(&view.clock, agents, host) < first.time
                && knows(&view.clock, agents, other, second.lane(), second.time, *pe)
            {
                *path = Path::OnStream { call: view.site, host: Which::First };
            }
        }
    }

    /// The mark of each pair of which one is marked.
    pub(super) fn marked<'a>(&'a self, sites: &'a Sites) -> impl Iterator<Item = u32> + 'a {
        self.0.values().map(|pair| pair.mark(sites)).filter(|mark| *mark > 0)
    }

    /// All that are not marked as intended: those of two lines, then those of one, by their lines.
    pub(super) fn races(
        &self,
        agents: &Table<AgentId, View>,
        sites: &Sites,
        made_at: impl Fn(AllocId) -> Option<At>,
        kernels: (impl Fn(AgentId) -> Option<KernelThread>, impl Fn(AgentId) -> Option<At>),
    ) -> Vec<Race> {
        let races = self.0.values().filter(|pair| pair.mark(sites) == 0);
        // lines by which several threads write to one place, and read it
        let of_one_line = |kinds: fn(&Pair) -> bool| -> BTreeSet<At> {
            self.0.values().filter(|pair| kinds(pair)).filter_map(|pair| pair.line_of_threads(agents, sites)).collect()
        };
        let (written, read) = (of_one_line(Pair::writes_twice), of_one_line(|pair| !pair.writes_twice()));
        let updates = &written & &read;
        let scopes =
            self.0.values().filter_map(|pair| Some((pair.pes(agents), pair.missing_scope(agents, sites)?))).collect();
        let context = Context { agents, sites, updates: &updates, scopes: &scopes };
        let mut races: Vec<Race> = races.map(|pair| pair.race(context, &made_at, &kernels)).collect();
        races.sort_by_key(|race| {
            let lines = [race.first.at, race.second.at];
            // a call that races with itself in another round rarely is the cause: others of its races say more
            let is_one = lines[0] == lines[1];
            // a flag that is none lets others race that rely on it
            let is_no_flag = matches!(race.missing, MissingEdge::StrongStore { .. });
            (is_one, !is_no_flag, lines[0].min(lines[1]), lines[0].max(lines[1]), race.first.pe, race.span.start)
        });
        races
    }
}

impl Pair {
    /// The mark of one of the two, if one is marked; else 0.
    fn mark(&self, sites: &Sites) -> u32 {
        let [first, second] = [&self.first, &self.second].map(|mark| sites.all[mark.site() as usize].mark);
        if first > 0 { first } else { second }
    }

    fn race(
        &self,
        context: Context<'_>,
        made_at: impl Fn(AllocId) -> Option<At>,
        (thread, launched): &(impl Fn(AgentId) -> Option<KernelThread>, impl Fn(AgentId) -> Option<At>),
    ) -> Race {
        let Pair { ref first, ref second, pe, span, known, times, .. } = *self;
        let Context { agents, sites, .. } = context;
        let known = known.map(|site| site.map(|site| (sites.all[site as usize].call, sites.all[site as usize].at)));
        Race {
            first: Access { known: known[0], thread: thread(first.agent()), ..access(first, agents, sites) },
            second: Access { known: known[1], thread: thread(second.agent()), ..access(second, agents, sites) },
            pe: pe.index(),
            span,
            made_at: made_at(span.alloc),
            missing: self.missing(context).behind_the_launch(|line| {
                let mark = [first, second].into_iter().find(|mark| sites.all[mark.site() as usize].at == line)?;
                launched(mark.agent())
            }),
            ineffective: None,
            times,
        }
    }
}

fn access(mark: &Mark, agents: &Table<AgentId, View>, sites: &Sites) -> Access {
    let view = &agents[mark.agent()];
    let site = sites.all[mark.site() as usize];
    let part = match mark.lane() {
        Lane::Steps => Part::Itself,
        Lane::Reads => Part::SourceRead,
        Lane::Gets if !mark.how().writes() => Part::SourceRead,
        Lane::Arrived | Lane::Stores | Lane::Puts | Lane::Nbi | Lane::Parts | Lane::Gets => Part::Delivery,
    };
    Access {
        pe: view.pe.index(),
        stream: view.stream().map(|number| number as usize),
        thread: None,
        call: site.call,
        at: site.at,
        part,
        writes: mark.how().writes(),
        atomic: matches!(mark.how(), How::AtomicRead | How::AtomicUpdate | How::AtomicFetch | How::Wait),
        step: mark.time >> 16,
        known: None,
    }
}

impl Race {
    /// What would order the two, and, if there is such a call, why the one does not that seems to.
    pub fn missing_in_words(&self) -> String {
        let ineffective = self.ineffective.map(|call| format!("; {call}")).unwrap_or_default();
        format!("{}{ineffective}", self.missing)
    }

    /// What each side knows of the other, a line for each: up to which call. None where both are of one host or stream.
    pub fn known(&self) -> Vec<String> {
        let who = |access: &Access| match access.stream {
            Some(stream) => format!("PE {} stream {stream}", access.pe),
            None => format!("PE {}", access.pe),
        };
        let line = |knows: &Access, of: &Access| match of.known {
            Some((call, at)) => format!("{} knows {} up to {call} at {at}", who(knows), who(of)),
            None => format!("{} knows nothing of {}", who(knows), who(of)),
        };
        let Race { first, second, .. } = self;
        match (first.pe, first.stream) == (second.pe, second.stream) {
            true => Vec::new(),
            false => vec![line(second, first), line(first, second)],
        }
    }
}

impl fmt::Display for Race {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Race { first, second, pe, span, made_at, times, .. } = self;
        write!(f, "data race: {first} and {second}, on {span} of PE {pe}")?;
        if let Some(at) = made_at {
            write!(f, " (made at {at})")?;
        }
        write!(f, "\n    nothing orders them; missing: {}", self.missing_in_words())?;
        write!(f, "\n    issued in steps {} and {}", first.step, second.step)?;
        for line in self.known() {
            write!(f, "\n    {line}")?;
        }
        match times {
            1 => Ok(()),
            more => write!(f, "\n    {more} times in this run"),
        }
    }
}

impl fmt::Display for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Access { pe, stream, thread, call, at, part, writes, atomic, step: _, known: _ } = self;
        let atomic = if *atomic { "atomic " } else { "" };
        let does = match (writes, part) {
            (_, Part::SourceRead) => "source read",
            (true, Part::Delivery) => "delivery",
            (true, Part::Itself) => "write",
            (false, _) => "read",
        };
        match call {
            call if *call == does => write!(f, "{does} at {at:#} by PE {pe}")?,
            call => write!(f, "{atomic}{does} of {call} at {at:#} by PE {pe}")?,
        }
        if let Some(stream) = stream {
            write!(f, " stream {stream}")?;
        }
        match thread {
            Some(thread) => write!(f, " ({thread})"),
            None => Ok(()),
        }
    }
}
