//! What would order two accesses that race.

use std::collections::{BTreeMap, BTreeSet};

use onesided::At;

use super::call;
use super::found::Pair;
use super::gpu::Lack;
use super::how::How;
use super::missing::{MissingEdge, Reach, Side};
use super::path::{Path, Which, others_of_block};
use super::site::Sites;
use super::{Clock, Lane, Mark, View, steps_of};
use crate::machine::{AgentId, Id as _, PeId, Table};

/// What is known besides the two accesses.
#[derive(Clone, Copy)]
pub(super) struct Context<'a> {
    pub(super) agents: &'a Table<AgentId, View>,
    pub(super) sites: &'a Sites,
    /// Lines by which several threads read and write one place.
    pub(super) updates: &'a BTreeSet<At>,
    /// What is missing where two PEs race by atomics of which one has the scope of a GPU.
    pub(super) scopes: &'a BTreeMap<[PeId; 2], MissingEdge>,
}

impl Context<'_> {
    fn at(&self, mark: &Mark) -> At {
        self.at_site(mark.site())
    }

    fn at_site(&self, site: u32) -> At {
        self.sites.all[site as usize].at
    }

    fn call(&self, mark: &Mark) -> &'static str {
        self.sites.all[mark.site() as usize].call
    }
}

impl Pair {
    /// What is missing between the two. What is known of kernels comes first, because it is the most exact.
    pub(super) fn missing(&self, context: Context<'_>) -> MissingEdge {
        if self.read_only {
            let load = if self.first.how().writes() { &self.second } else { &self.first };
            return MissingEdge::PlainLoad { at: context.at(load) };
        }
        if let Some(copy) = self.missing_wait_for_a_copy(context) {
            return copy;
        }
        let of_a_kernel = self.missing_in_a_kernel(context);
        let more = of_a_kernel.or_else(|| self.missing_on_the_path(context)).or_else(|| self.missing_answer(context));
        let more = more.or_else(|| self.missing_atomic(context));
        more.unwrap_or_else(|| match self.path {
            Path::Issued(next) => self.missing_behind_the_issue(next, context),
            _ => self.missing_between_agents(context),
        })
    }

    /// The first access is a bulk copy's. The second comes after what the copy's thread did, but not after the copy.
    fn missing_wait_for_a_copy(&self, context: Context<'_>) -> Option<MissingEdge> {
        let Pair { first, second, .. } = self;
        let (at, before) = (context.at(first), context.at(second));
        self.copy.then(|| MissingEdge::Copy { at, before, writes: first.how().writes() })
    }

    /// A fence that lacks something, a barrier of the block, or one thread where several write.
    fn missing_in_a_kernel(&self, context: Context<'_>) -> Option<MissingEdge> {
        let Pair { ref first, ref second, pe, path, wait, fence, lack, through, .. } = *self;
        let (after, before) = (context.at(first), context.at(second));
        if through {
            return Some(MissingEdge::Through { pe: pe.index(), after, before });
        }
        if let Some(lack) = wait {
            return Some(self.of_fence(lack, context, [after, before]));
        }
        let scope = self.missing_scope(context.agents, context.sites).or_else(|| {
            let scope = context.scopes.get(&self.pes(context.agents));
            scope.copied().filter(|_| first.lane() == Lane::Stores && matches!(path, Path::Issued(_)))
        });
        if scope.is_some() {
            return scope;
        }
        if !matches!(path, Path::Issued(_))
            && let Some(lack) = fence
        {
            return Some(self.of_fence(lack, context, [after, before]));
        }
        // a lock, or a flag that threads wait for in turn, has nothing to do with a counter that all of them add to
        let waits =
            matches!(lack, Some((Lack::Release { counts: false, .. } | Lack::Acquire { counts: false, .. }, _)));
        if !waits
            && let Some(at) = self.line_of_threads(context.agents, context.sites)
            && (self.writes_twice() || context.updates.contains(&at))
        {
            return Some(MissingEdge::OneThread { at, updates: context.updates.contains(&at) });
        }
        let lack = lack.filter(|(_, [from, _])| matches!(from.lane(), Lane::Steps | Lane::Stores));
        match (path, lack) {
            // who set the flag came after the first, or one thread of a block has told the other by a flag: no barrier is missing
            (Path::Threads { side: Side::First | Side::Both, .. }, Some(_)) => {}
            (Path::Threads { side, cluster }, _) => {
                return Some(MissingEdge::Threads { after, before, side, cluster });
            }
            _ => {}
        }
        let (lack, two) = lack?;
        Some(self.of_fence(lack, context, [&two[0], &two[1]].map(|mark| context.at(mark))))
    }

    /// The PEs of the two, the lower first.
    pub(super) fn pes(&self, agents: &Table<AgentId, View>) -> [PeId; 2] {
        let [one, other] = [&self.first, &self.second].map(|mark| agents[mark.agent()].pe);
        [one.min(other), one.max(other)]
    }

    /// The two are atomic, but one of them on its own GPU or in its own block only.
    pub(super) fn missing_scope(&self, agents: &Table<AgentId, View>, sites: &Sites) -> Option<MissingEdge> {
        let Pair { first, second, .. } = self;
        let [one, other] = self.pes(agents);
        let is_narrow = |mark: &&Mark| if one == other { mark.is_within_block() } else { mark.is_narrow() };
        let narrow = [first, second].into_iter().filter(is_narrow);
        let site_of = |mark: &Mark| sites.all[mark.site() as usize];
        let is_reduction = |mark: &&Mark| call::reduces_in_bulk(site_of(mark).call);
        if !first.conflicts(second)
            && let Some(reduction) = narrow.clone().find(is_reduction)
        {
            return Some(MissingEdge::Reduction { at: site_of(reduction).at });
        }
        let lines = narrow.filter(|_| !first.conflicts(second)).map(|mark| sites.all[mark.site() as usize].at);
        let mut lines = lines.collect::<BTreeSet<At>>().into_iter();
        Some(MissingEdge::Scope { at: lines.next()?, also: lines.next(), blocks: one == other })
    }

    /// Where the one side is told of the other, but by somebody, or at a moment, that does not help.
    fn missing_on_the_path(&self, context: Context<'_>) -> Option<MissingEdge> {
        let (after, before) = (context.at(&self.first), context.at(&self.second));
        match self.path {
            Path::Behind { call, stream } => {
                let access = if let Which::First = stream { &self.first } else { &self.second };
                // the end of a kernel is behind its stores
                let is_store = access.lane() == Lane::Stores && !context.agents[access.agent()].is_in_kernel();
                let quiet = is_store || matches!(access.lane(), Lane::Puts | Lane::Nbi | Lane::Gets);
                Some(MissingEdge::synchronize(context.at(access), context.at_site(call), quiet))
            }
            Path::OnStream { call, host } => {
                let before = if let Which::First = host { after } else { before };
                Some(MissingEdge::synchronize(context.at_site(call), before, false))
            }
            Path::ToldLater { cluster } => {
                Some(MissingEdge::Threads { after: before, before: after, side: Side::Second, cluster })
            }
            _ => None,
        }
    }

    /// A put or collective is called again, and its target is read by somebody who knows of an earlier call: the reader must answer before the next one.
    fn missing_answer(&self, context: Context<'_>) -> Option<MissingEdge> {
        let Pair { ref first, ref second, known, path, entered, .. } = *self;
        let [one, other] = self.pes(context.agents);
        if one == other || matches!(path, Path::Issued(_)) {
            return None;
        }
        [(first, second, known[0]), (second, first, known[1])].into_iter().find_map(|(write, read, known)| {
            let puts = matches!(write.lane(), Lane::Puts | Lane::Nbi | Lane::Arrived) && write.how() == How::Deliver;
            // calls are numbered as they are met: this one was first made before the last that the reader knows of
            let is_known = write.site() < context.sites.known || known.is_some_and(|known| write.site() <= known);
            let again = puts && write.is_again() && is_known || entered && write.lane() == Lane::Parts;
            let edge = MissingEdge::Answer { after: context.at(read), before: context.at(write) };
            (again && !read.how().writes()).then_some(edge)
        })
    }

    /// A plain access beside an atomic one.
    fn missing_atomic(&self, context: Context<'_>) -> Option<MissingEdge> {
        let Pair { first, second, .. } = self;
        let is_atomic = |mark: &Mark| mark.how().reads_atomically() || mark.how().updates_atomically();
        let [one, other] = [first, second].map(|mark| mark.how() as u32);
        if is_atomic(first)
            && is_atomic(second)
            && !How::conflicts(one, other, true)
            && !first.is_narrow()
            && !second.is_narrow()
        {
            return Some(MissingEdge::OneSize { at: context.at(first), other: context.at(second) });
        }
        let in_kernels = [first, second].into_iter().all(|mark| context.agents[mark.agent()].is_in_kernel());
        let edge = |plain: &Mark, writes| {
            let remote = context.agents[plain.agent()].pe != self.pe;
            Some(MissingEdge::Atomic { at: context.at(plain), writes, remote })
        };
        [(first, second), (second, first)].into_iter().find_map(|(plain, other)| match (plain.how(), other.how()) {
            // what comes with a signal is no flag
            (How::Deliver, How::AtomicRead | How::Wait) if call::puts_and_signals(context.call(plain)) => None,
            (How::Deliver, How::AtomicRead | How::Wait) => edge(plain, true),
            // a flag is polled in one's own memory
            (How::Write, How::AtomicRead) if in_kernels && context.agents[other.agent()].pe == self.pe => {
                Some(MissingEdge::StrongStore { at: context.at(plain), read: context.at(other) })
            }
            // a loop of swaps begins with a read: the word is nothing but atomic
            (How::Read, How::AtomicUpdate | How::AtomicFetch)
                if in_kernels && call::compares_and_swaps_in_cuda(context.call(other)) =>
            {
                Some(MissingEdge::StrongLoad { at: context.at(plain) })
            }
            (How::Read, How::AtomicUpdate | How::AtomicFetch)
                if in_kernels && call::compares_and_swaps(context.call(other)) =>
            {
                Some(MissingEdge::Atomic { at: context.at(plain), writes: false, remote: true })
            }
            // an atomic is no signal: what is missing there is an order
            (How::Read, How::AtomicUpdate | How::AtomicFetch) if call::signals(context.call(other)) => {
                edge(plain, false)
            }
            _ => None,
        })
    }

    /// Whether other agents of one PE made the two; and whether these are blocks of one kernel.
    fn beside(&self, context: Context<'_>) -> (bool, bool) {
        let [a, b] = [self.first, self.second].map(|mark| &context.agents[mark.agent()]);
        let beside = a.pe == b.pe && self.first.agent() != self.second.agent();
        (beside, beside && a.block.is_some() && b.block.is_some() && a.kind == b.kind)
    }

    /// Neither is told of the other.
    fn missing_between_agents(&self, context: Context<'_>) -> MissingEdge {
        let arrives = |mark: &Mark| matches!(mark.lane(), Lane::Puts | Lane::Nbi | Lane::Stores);
        let (after, before) = (context.at(&self.first), context.at(&self.second));
        match self.beside(context) {
            (true, true) => MissingEdge::Blocks { after, before },
            // the stream's work was enqueued first: else it would come after the host's access
            (true, false) if context.agents[self.first.agent()].is_host() => {
                MissingEdge::synchronize(before, after, arrives(&self.second))
            }
            (true, false) => MissingEdge::synchronize(after, before, arrives(&self.first)),
            (false, _) => barrier(after, before),
        }
    }

    /// The second is told of the first one's issue, but not of what the transfer does later. `next`: the call behind the issue by which it is told, and
    /// the PE that this signals.
    fn missing_behind_the_issue(&self, next: Option<(u32, Option<PeId>)>, context: Context<'_>) -> MissingEdge {
        let (after, before) = (context.at(&self.first), context.at(&self.second));
        let (beside, _) = self.beside(context);
        match self.first.lane_to(&context.agents[self.second.agent()], self.pe, context.agents) {
            Lane::Stores if self.first.lane() == Lane::Steps => self.missing_after_own_store(next, context),
            Lane::Reads => MissingEdge::Flush { after, before },
            Lane::Gets => MissingEdge::Quiet { after, before },
            Lane::Steps | Lane::Arrived | Lane::Parts if beside => MissingEdge::synchronize(after, before, false),
            Lane::Steps | Lane::Arrived | Lane::Parts => barrier(after, before),
            Lane::Puts | Lane::Nbi | Lane::Stores => self.missing_arrival(next, context),
        }
    }

    /// What tells another PE that a kernel has stored to its own PE's memory.
    fn missing_after_own_store(&self, next: Option<(u32, Option<PeId>)>, context: Context<'_>) -> MissingEdge {
        let (after, before) = (context.at(&self.first), context.at(&self.second));
        let told = next.map(|(site, _)| site).or(self.signal.map(|(_, site)| site));
        match told {
            Some(site) => MissingEdge::ReleasingFence { after, flag: context.at_site(site), reach: Reach::System },
            None => MissingEdge::Quiet { after, before },
        }
    }

    /// What orders or completes a put or store before the second access.
    fn missing_arrival(&self, next: Option<(u32, Option<PeId>)>, context: Context<'_>) -> MissingEdge {
        let Pair { ref first, ref second, pe, .. } = *self;
        let (after, before) = (context.at(first), context.at(second));
        let [a, b] = [first, second].map(|mark| &context.agents[mark.agent()]);
        let fence = |before, put_signal| {
            let by_another = fence_by_another(first, context.agents);
            MissingEdge::Fence { after, before, put_signal, by_another }
        };
        // whether one put_signal can be both
        let puts_before = |site: u32| {
            let put = first.how() == How::Deliver && call::puts(context.call(first));
            put && call::only_signals(context.sites.all[site as usize].call)
        };
        let is_ordered_by_fence = matches!(second.lane(), Lane::Puts | Lane::Nbi | Lane::Stores | Lane::Arrived);
        if a.scope() == b.scope() && is_ordered_by_fence {
            return fence(before, false);
        }
        let beside = self.beside(context);
        if let ((false, _), None) = (beside, next)
            && let Some((signalled, site)) = self.signal
        {
            let fences = others_of_block(first.agent(), context.agents).filter_map(|other| context.agents[other].fence);
            let before = fences.filter(|(time, _)| *time < signalled);
            let by_another = before.max_by_key(|(time, _)| *time).map(|(_, at)| at);
            return MissingEdge::BlocksFence { after, before: context.at_site(site), by_another };
        }
        if let Some(site) = self.heard {
            return fence(context.at_site(site), puts_before(site));
        }
        match (beside, next) {
            ((true, false), _) if a.stream().is_some() => MissingEdge::synchronize(after, before, true),
            // what the one has told the other by
            ((true, _), Some((site, _))) => MissingEdge::Quiet { after, before: context.at_site(site) },
            // a fence does not order what the same scope fetches
            ((false, _), Some((site, Some(to)))) if to == pe && a.scope() != b.scope() => {
                fence(context.at_site(site), puts_before(site))
            }
            ((false, _), Some((site, _))) if first.agent() != second.agent() => {
                MissingEdge::Quiet { after, before: context.at_site(site) }
            }
            _ => MissingEdge::Quiet { after, before },
        }
    }

    /// The line, if both are plain accesses by it of different threads of one kernel.
    pub(super) fn line_of_threads(&self, agents: &Table<AgentId, View>, sites: &Sites) -> Option<At> {
        let Pair { first, second, .. } = self;
        let [a, b] = [first, second].map(|mark| &agents[mark.agent()]);
        let [one, other] = [first, second].map(|mark| sites.all[mark.site() as usize].at);
        let is_plain = |mark: &Mark| mark.lane() == Lane::Steps && matches!(mark.how(), How::Read | How::Write);
        let of_one_kernel = a.block.is_some() && b.block.is_some() && (a.pe, a.kind) == (b.pe, b.kind);
        let is_one = of_one_kernel && first.agent() != second.agent() && one == other;
        Some(one).filter(|_| is_one && is_plain(first) && is_plain(second))
    }

    /// What is missing of a fence or a wait between two lines.
    fn of_fence(&self, lack: Lack, context: Context<'_>, lines: [At; 2]) -> MissingEdge {
        let [one, other] = self.pes(context.agents);
        lack.edge(lines, one == other)
    }

    /// Whether both write.
    pub(super) fn writes_twice(&self) -> bool {
        self.first.how().writes() && self.second.how().writes()
    }
}

/// The first call since an access by which another thread of the same PE has signalled to a PE, and when, of those that somebody comes after.
pub(super) fn signal_by_another(
    access: &Mark,
    (pe, knows): (PeId, &Clock),
    agents: &Table<AgentId, View>,
) -> Option<(u64, u32)> {
    let of = &agents[access.agent()];
    let is_other = |&id: &AgentId| id != access.agent() && agents[id].pe == of.pe && agents[id].block.is_some();
    let threads = agents.ids().filter(|id| of.block.is_some() && is_other(id));
    let calls = threads.flat_map(|id| {
        let known = steps_of(knows, agents, id);
        agents[id].log.iter().filter(move |(when, _, to)| *when > access.time && *when <= known && *to == Some(pe))
    });
    calls.min_by_key(|(when, ..)| *when).map(|&(when, site, _)| (when, site))
}

/// Which of the pairs of two calls a report is about, and which others lack something else. What is missing of all of them is one thing, if that orders them all.
/// This is about fences and quiets: of anything else, the first pair says enough.
pub(super) fn pairs_to_show(pairs: &[Pair], missing: &[MissingEdge], context: Context<'_>) -> (usize, Vec<usize>) {
    let is_order = |at: &usize| matches!(missing[*at], MissingEdge::Fence { .. } | MissingEdge::Quiet { .. });
    if !is_order(&0) {
        return (0, Vec::new());
    }
    let orders: Vec<usize> = (0..pairs.len()).filter(is_order).collect();
    let covers = |one: usize, other: usize| {
        let (call, after, before) = missing[one].call();
        let (other_call, other_after, other_before) = missing[other].call();
        // a quiet does what a fence does, and both may come earlier
        let mut calls = pairs[other].calls.iter().map(|site| context.at_site(*site));
        let first = calls.find(|at| *at == before || *at == other_before);
        let place = before == other_before || first == Some(before);
        after == other_after && place && (call == "quiet" || call == other_call)
    };
    let covers_all = |one: &usize| orders.iter().all(|other| covers(*one, *other));
    if let Some(one) = orders.iter().copied().find(covers_all) {
        return (one, Vec::new());
    }
    let mut shown: Vec<usize> = Vec::new();
    for &at in &orders {
        if !shown.iter().any(|other| covers(*other, at)) {
            shown.retain(|other| !covers(at, *other));
            shown.push(at);
        }
    }
    (shown.remove(0), shown)
}

/// A fence that another thread of the same block has made since: it has not ordered what follows the access.
fn fence_by_another(access: &Mark, agents: &Table<AgentId, View>) -> Option<At> {
    let mine = agents[access.agent()].fence.is_some_and(|(time, _)| time > access.time);
    let fences = others_of_block(access.agent(), agents).filter_map(|other| agents[other].fence);
    fences.filter(|(time, _)| *time > access.time && !mine).map(|(_, at)| at).next()
}

fn barrier(after: At, before: At) -> MissingEdge {
    MissingEdge::Barrier { after: after.min(before), before: after.max(before) }
}
