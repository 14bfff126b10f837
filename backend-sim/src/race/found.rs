//! The races of a run so far, pair by pair: what is known when the two accesses meet, and what is learned of them later.

use std::collections::{BTreeMap, BTreeSet};

use onesided::At;
use onesided::backend::{AllocId, Span};
use onesided_ptx::Who as KernelThread;

use super::advice::{Context, pairs_to_show, signal_by_another};
use super::gpu::{Gpus, Lack, When};
use super::how::How;
use super::missing::{MissingEdge, Side};
use super::path::{Path, Which, beyond_block, streams_of};
use super::report::{Access, Part, Race};
use super::site::Sites;
use super::who::{Who, knows, steps_of};
use super::{Clock, Lane, Mark, View};
use crate::machine::{AgentId, Id as _, PeId, Table};

/// What is known besides two accesses, at the moment.
type Known<'a> = (&'a Table<AgentId, View>, &'a Gpus, &'a Sites);

/// The races of a run so far: by the two calls and their kinds of access, those of different PEs, and never none.
#[derive(Debug, Default)]
pub(super) struct Found(BTreeMap<(Kind, Kind), Vec<Pair>>);

/// So many calls are kept of those that an agent has made between two accesses.
const CALLS: usize = 8;
/// So many pairs are kept of two calls. What others lack is the same as one of these, mostly.
const KEPT: usize = 32;

/// Site, kind of access, agent's lane.
type Kind = (u32, u32);

/// Two accesses that race, and what was known of them when they met.
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
    /// The first call of the first one's agent behind it whose signal went to the PE of the memory, and has arrived there before the second.
    pub(super) heard: Option<u32>,
    /// The first calls behind the first access that the second comes after, of those that others synchronize with.
    pub(super) calls: Vec<u32>,
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

impl Found {
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Notes that an access races with an earlier one.
    #[cold]
    pub(super) fn note(&mut self, earlier: Mark, later: Mark, who: &Who<'_>, span: Span, known: Known<'_>) {
        self.pair(earlier, later, who, span, known).times += 1;
    }

    /// Notes that a read-only load comes after a write, and does not see it for sure.
    #[cold]
    pub(super) fn note_read_only(&mut self, write: Mark, load: Mark, who: &Who<'_>, span: Span, known: Known<'_>) {
        let pair = self.pair(write, load, who, span, known);
        pair.read_only |= pair.times == 0;
        pair.times += 1;
    }

    /// The pair of two accesses, or of the first ones of these calls, kinds and PEs.
    fn pair(&mut self, earlier: Mark, later: Mark, who: &Who<'_>, span: Span, known: Known<'_>) -> &mut Pair {
        let (a, b) = (kind(&earlier), kind(&later));
        let pairs = self.0.entry((a.min(b), a.max(b))).or_default();
        let pe_of = |mark: &Mark| known.0[mark.agent()].pe;
        let pes = |one: &Mark, other: &Mark| {
            if kind(one) <= kind(other) { [pe_of(one), pe_of(other)] } else { [pe_of(other), pe_of(one)] }
        };
        let of = pes(&earlier, &later);
        let alike = pairs.iter().position(|pair| pair.pe == who.pe && pes(&pair.first, &pair.second) == of);
        let at = alike.unwrap_or(if pairs.len() < KEPT { pairs.len() } else { 0 });
        if at == pairs.len() {
            pairs.push(Pair::new(earlier, later, who, span, known));
        }
        &mut pairs[at]
    }

    /// All pairs.
    fn all_mut(&mut self) -> impl Iterator<Item = &mut Pair> {
        self.0.values_mut().flatten()
    }

    /// The first pair of each two calls.
    fn firsts(&self) -> impl Iterator<Item = &Pair> {
        self.0.values().map(|pairs| &pairs[0])
    }

    /// All threads of a block are about to meet: races of one of them with what another one has been told of since.
    pub(super) fn block_meets(&mut self, block: AgentId, agents: &Table<AgentId, View>) {
        let met = agents[block].met;
        for Pair { first, second, pe, path, met: when, .. } in self.all_mut() {
            // where another thread than that of `one` has been told of the other: whether only threads of other blocks have
            let is_told = |one: &Mark, other: &Mark, when: u32| {
                let told = |&id: &AgentId| {
                    let (view, agent) = (&agents[id], other.agent());
                    let lane = other.lane_to(view, *pe, agents);
                    id != one.agent()
                        && view.block == Some(block)
                        && view.met == met
                        && knows(&view.clock, agents, agent, lane, other.time, *pe)
                };
                let may_be = agents[one.agent()].block == Some(block) && when == met;
                may_be.then(|| beyond_block(one.agent(), agents.ids().filter(told), agents)).flatten()
            };
            match path {
                Path::None if let Some(cluster) = is_told(first, second, when[0]) => {
                    *path = Path::ToldLater { cluster };
                }
                Path::Issued(_)
                    if first.agent() != second.agent()
                        && let Some(cluster) = is_told(second, first, when[1]) =>
                {
                    *path = Path::Threads { side: Side::Second, cluster };
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
        for Pair { first, second, pe, path, .. } in self.all_mut() {
            let (host, other) = (first.agent(), second.agent());
            if matches!(path, Path::None)
                && streams_of(host, agents).any(|of| of == stream)
                && steps_of(&view.clock, agents, host) < first.time
                && knows(&view.clock, agents, other, second.lane_to(view, *pe, agents), second.time, *pe)
            {
                *path = Path::OnStream { call: view.site, host: Which::First };
            }
        }
    }

    /// The mark of each pair of which one is marked.
    pub(super) fn marked<'a>(&'a self, sites: &'a Sites) -> impl Iterator<Item = u32> + 'a {
        self.firsts().map(|pair| pair.mark(sites)).filter(|mark| *mark > 0)
    }

    /// All that are not marked as intended: those of two lines, then those of one, by their lines.
    pub(super) fn races(
        &self,
        agents: &Table<AgentId, View>,
        sites: &Sites,
        made_at: impl Fn(AllocId) -> Option<At>,
        kernels: (impl Fn(AgentId) -> Option<KernelThread>, impl Fn(AgentId) -> Option<At>),
    ) -> Vec<Race> {
        let races = self.0.values().filter(|pairs| pairs[0].mark(sites) == 0);
        // lines by which several threads write to one place, and read it
        let of_one_line = |kinds: fn(&Pair) -> bool| -> BTreeSet<At> {
            self.firsts().filter(|pair| kinds(pair)).filter_map(|pair| pair.line_of_threads(agents, sites)).collect()
        };
        let (written, read) = (of_one_line(Pair::writes_twice), of_one_line(|pair| !pair.writes_twice()));
        let updates = &written & &read;
        let scopes =
            self.firsts().filter_map(|pair| Some((pair.pes(agents), pair.missing_scope(agents, sites)?))).collect();
        let context = Context { agents, sites, updates: &updates, scopes: &scopes };
        let mut races: Vec<Race> = races.map(|pairs| race(pairs, context, &made_at, &kernels)).collect();
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

fn kind(mark: &Mark) -> Kind {
    (mark.once().what, mark.owner & 7)
}

impl Pair {
    /// Of two accesses that meet: `who` makes the later one.
    fn new(earlier: Mark, later: Mark, who: &Who<'_>, span: Span, known: Known<'_>) -> Pair {
        let (agents, gpus, sites) = known;
        // each access, and up to when the other side knows its agent
        let knows_of = |clock, mark: &Mark| steps_of(clock, agents, mark.agent());
        let of_earlier = (earlier, knows_of(who.clock, &earlier));
        let of_later = (later, knows_of(&agents[earlier.agent()].clock, &later));

        // the later access may have been issued before the earlier one was made, and the agent of the earlier one may know of it
        let is_known = |(mark, known): (Mark, u64)| known >= mark.time;
        let (forth, back) = match earlier.agent() == later.agent() {
            true => (earlier.time <= later.time, later.time < earlier.time),
            false => (is_known(of_earlier), !is_known(of_earlier) && is_known(of_later)),
        };
        let two = if back { [of_later, of_earlier] } else { [of_earlier, of_later] };
        let [(first, of_first), (second, of_second)] = two.map(|(mark, known)| (mark, who.base.max(known)));

        let path = match forth || back {
            true => {
                let pes = [who.pe, agents[second.agent()].pe];
                Path::Issued(agents[first.agent()].tells(first.time, of_first, pes))
            }
            false => Path::none(&earlier, who, agents),
        };
        let reader = &agents[second.agent()];
        let target = if first.lane_to(reader, who.pe, agents) == first.lane() { who.pe } else { reader.pe };
        let of_one_block = matches!(path, Path::Threads { side: Side::Both, .. });
        let lacking = |two: [Mark; 2], knows| {
            let lack = gpus.fence_missing([&two[0], &two[1]].map(When::from), knows, of_one_block, (agents, sites));
            lack.map(|lack| (lack, two))
        };
        let lack = match path {
            Path::Issued(_) => None,
            _ => lacking([first, second], Some((who.clock, who.pe))).or_else(|| lacking([second, first], None)),
        };
        Pair {
            first,
            second,
            pe: who.pe,
            span,
            path,
            wait: gpus.wait_missing([&first, &second], who.pe, agents),
            fence: gpus.missing([&first, &second].map(When::from), agents),
            lack,
            signal: signal_by_another(&first, (target, who.clock), agents),
            heard: heard(
                &first,
                (if back { &agents[second.agent()].clock } else { who.clock }, second.time),
                who.pe,
                known,
            ),
            calls: calls_between(&first, if first.agent() == second.agent() { second.time } else { of_first }, agents),
            met: [first, second].map(|mark| agents[mark.agent()].met),
            through: who.knows_recent(&earlier),
            entered: has_entered(&first, &second, agents) || has_entered(&second, &first, agents),
            read_only: false,
            copy: is_behind_the_copying_thread(who, &earlier),
            known: [(first, of_first), (second, of_second)]
                .map(|(mark, known)| agents[mark.agent()].last_synchronization(known)),
            times: 0,
        }
    }

    /// The mark of one of the two, if one is marked; else 0.
    fn mark(&self, sites: &Sites) -> u32 {
        let [first, second] = [&self.first, &self.second].map(|mark| sites.all[mark.site() as usize].mark);
        if first > 0 { first } else { second }
    }

    /// `also`: what other pairs of these calls lack.
    fn race(
        &self,
        (missing, also, times): (MissingEdge, Vec<MissingEdge>, u64),
        context: Context<'_>,
        made_at: impl Fn(AllocId) -> Option<At>,
        (thread, launched): &(impl Fn(AgentId) -> Option<KernelThread>, impl Fn(AgentId) -> Option<At>),
    ) -> Race {
        let Pair { ref first, ref second, pe, span, known, .. } = *self;
        let Context { agents, sites, .. } = context;
        let known = known.map(|site| site.map(|site| (sites.all[site as usize].call, sites.all[site as usize].at)));
        Race {
            first: Access { known: known[0], thread: thread(first.agent()), ..access(first, agents, sites) },
            second: Access { known: known[1], thread: thread(second.agent()), ..access(second, agents, sites) },
            pe: pe.index(),
            span,
            made_at: made_at(span.alloc),
            missing: missing.behind_the_launch(|line| {
                let mark = [first, second].into_iter().find(|mark| sites.all[mark.site() as usize].at == line)?;
                launched(mark.agent())
            }),
            also_missing: also,
            ineffective: None,
            times,
        }
    }
}

/// The race of two calls. Of their pairs, one that lacks what repairs the most.
fn race(
    pairs: &[Pair],
    context: Context<'_>,
    made_at: impl Fn(AllocId) -> Option<At>,
    kernels: &(impl Fn(AgentId) -> Option<KernelThread>, impl Fn(AgentId) -> Option<At>),
) -> Race {
    let missing: Vec<MissingEdge> = pairs.iter().map(|pair| pair.missing(context)).collect();
    let (shown, also) = pairs_to_show(pairs, &missing, context);
    let also = also.into_iter().map(|at| missing[at]).collect();
    pairs[shown].race((missing[shown], also, pairs.iter().map(|pair| pair.times).sum()), context, made_at, kernels)
}

/// The first call of a host or stream, behind what it has sent to a PE, by which it signals to the same PE, if somebody knows at a moment that the signal has
/// arrived: a fence in front of the call orders the two. `by`: what is known by then.
fn heard(sent: &Mark, (by, moment): (&Clock, u64), pe: PeId, (agents, _, sites): Known<'_>) -> Option<u32> {
    let (agent, view) = (sent.agent(), &agents[sent.agent()]);
    let mut calls = view.log.iter().filter(|(time, ..)| *time > sent.time && *time < moment);
    let is_known = |&&(time, site, to): &&(u64, u32, Option<PeId>)| {
        let is_put = !sites.all[site as usize].call.ends_with("_nbi"); // else it is of another lane
        to == Some(pe) && is_put && by.knows(agent, Lane::Puts, time, pe)
    };
    calls.find(is_known).filter(|_| !view.is_in_kernel()).map(|&(_, site, _)| site)
}

/// The calls that others synchronize with of an access's agent, behind the access and up to a moment.
fn calls_between(access: &Mark, upto: u64, agents: &Table<AgentId, View>) -> Vec<u32> {
    let calls = agents[access.agent()].log.iter().filter(|(time, ..)| *time > access.time && *time <= upto);
    calls.map(|&(_, site, _)| site).take(CALLS).collect()
}

/// Whether a part of a collective was written by a call that an agent had made before its own access.
fn has_entered(access: &Mark, part: &Mark, agents: &Table<AgentId, View>) -> bool {
    let mut calls = agents[access.agent()].log.iter();
    part.lane() == Lane::Parts && calls.any(|&(time, site, _)| time < access.time && site == part.site())
}

/// Whether an access is a bulk copy's, and somebody comes after what the thread of the copy had done before.
fn is_behind_the_copying_thread(who: &Who<'_>, copy: &Mark) -> bool {
    let comes_after =
        |(maker, time)| time > 0 && (who.agent == maker || steps_of(who.clock, who.agents, maker) >= time);
    who.agents[copy.agent()].made_by.is_some_and(comes_after)
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
