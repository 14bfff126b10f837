//! What would order two accesses that race.

use std::collections::BTreeSet;

use onesided::At;

use super::gpu::{Gpus, Lack};
use super::how::How;
use super::missing::{MissingEdge, Side};
use super::report::{Host, Pair, Path};
use super::site::Sites;
use super::{Lane, Mark, View};
use crate::machine::{AgentId, Id as _, Table};

impl Pair {
    /// What is missing between the two.
    /// `updates`: lines by which several threads read and write one place.
    pub(super) fn missing(
        &self,
        agents: &Table<AgentId, View>,
        (sites, gpus): (&Sites, &Gpus),
        updates: &BTreeSet<At>,
    ) -> MissingEdge {
        let Pair { ref first, ref second, pe, path, lack, through, .. } = *self;
        let at = |site: u32| sites.all[site as usize].at;
        let call = |mark: &Mark| sites.all[mark.site() as usize].call;
        let (after, before) = (at(first.site()), at(second.site()));
        let barrier = MissingEdge::Barrier { after: after.min(before), before: after.max(before) };
        if through {
            return MissingEdge::Through { pe: pe.index(), after, before };
        }
        if !matches!(path, Path::Issued(_))
            && let Some(lack) = gpus.missing(first, second, agents)
        {
            return of_fence(lack, after, before);
        }
        if let Some(at) = self.line_of_threads(agents, sites)
            && (self.writes_twice() || updates.contains(&at))
        {
            return MissingEdge::OneThread { at, updates: updates.contains(&at) };
        }
        if let Path::Threads(side) = path {
            return MissingEdge::Threads { after, before, side };
        }
        if let Some((lack, [from, to])) = lack
            && matches!(from.lane(), Lane::Steps | Lane::Stores)
        {
            return of_fence(lack, at(from.site()), at(to.site()));
        }
        match path {
            Path::Behind(site) => {
                let quiet = matches!(first.lane(), Lane::Puts | Lane::Nbi | Lane::Stores | Lane::Gets);
                return MissingEdge::Synchronize { after, before: at(site), quiet, launch: false };
            }
            Path::OnStream { call, host } => {
                let before = if let Host::First = host { after } else { before };
                return MissingEdge::Synchronize { after: at(call), before, quiet: false, launch: false };
            }
            _ => {}
        }
        if let Path::ToldLater = path {
            return MissingEdge::Threads { after: before, before: after, side: Side::Second };
        }
        let [a, b] = [first, second].map(|mark| &agents[mark.agent()]);
        for (plain, other) in [(first, second), (second, first)] {
            match (plain.how(), other.how()) {
                (How::Deliver, How::AtomicRead | How::Wait) => {
                    return MissingEdge::Atomic { at: at(plain.site()), writes: true };
                }
                // an atomic is no signal: what is missing there is an order
                (How::Read, How::AtomicUpdate | How::AtomicFetch) if call(other).contains("signal") => {
                    return MissingEdge::Atomic { at: at(plain.site()), writes: false };
                }
                _ => {}
            }
        }
        let arrives = |mark: &Mark| matches!(mark.lane(), Lane::Puts | Lane::Nbi | Lane::Stores);
        let beside = a.pe == b.pe && first.agent() != second.agent();
        let in_one_kernel = beside && a.block.is_some() && b.block.is_some() && a.kind == b.kind;
        let Path::Issued(next) = path else {
            return match beside {
                true if in_one_kernel => MissingEdge::Blocks { after, before },
                // the stream's work was enqueued first: else it would come after the host's access
                true if a.is_host() => {
                    MissingEdge::Synchronize { after: before, before: after, quiet: arrives(second), launch: false }
                }
                true => MissingEdge::Synchronize { after, before, quiet: arrives(first), launch: false },
                false => barrier,
            };
        };
        match first.lane() {
            Lane::Reads => MissingEdge::Flush { after, before },
            Lane::Gets => MissingEdge::Quiet { after, before },
            Lane::Steps | Lane::Arrived | Lane::Parts if beside => {
                MissingEdge::Synchronize { after, before, quiet: false, launch: false }
            }
            Lane::Steps | Lane::Arrived | Lane::Parts => barrier,
            Lane::Puts | Lane::Nbi | Lane::Stores => {
                let ordered_by_fence = matches!(second.lane(), Lane::Puts | Lane::Nbi | Lane::Stores | Lane::Arrived);
                if a.scope() == b.scope() && ordered_by_fence {
                    let by_another = fence_by_another(first, agents);
                    return MissingEdge::Fence { after, before, put_signal: false, by_another };
                }
                if beside {
                    return match a.stream() {
                        Some(_) if !in_one_kernel => {
                            MissingEdge::Synchronize { after, before, quiet: true, launch: false }
                        }
                        _ => MissingEdge::Quiet { after, before },
                    };
                }
                match next {
                    Some((site, Some(to))) if to == pe => {
                        let put =
                            first.how() == How::Deliver && sites.all[first.site() as usize].call.starts_with("put");
                        let put_signal = put && sites.all[site as usize].call.starts_with("signal");
                        let by_another = fence_by_another(first, agents);
                        MissingEdge::Fence { after, before: at(site), put_signal, by_another }
                    }
                    Some((site, _)) if first.agent() != second.agent() => {
                        MissingEdge::Quiet { after, before: at(site) }
                    }
                    _ => MissingEdge::Quiet { after, before },
                }
            }
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

    /// Whether both write.
    pub(super) fn writes_twice(&self) -> bool {
        self.first.how().writes() && self.second.how().writes()
    }
}

/// A fence that another thread of the same block has made since: it has not ordered what follows the access.
fn fence_by_another(access: &Mark, agents: &Table<AgentId, View>) -> Option<At> {
    let me = &agents[access.agent()];
    let of_block = |id: &AgentId| me.block.is_some() && agents[*id].block == me.block && *id != access.agent();
    let mine = me.fence.is_some_and(|(time, _)| time > access.time);
    let fences = agents.ids().filter(of_block).filter_map(|id| agents[id].fence);
    fences.filter(|(time, _)| *time > access.time && !mine).map(|(_, at)| at).next()
}

fn of_fence(lack: Lack, after: At, before: At) -> MissingEdge {
    match lack {
        Lack::Scope { fence } => MissingEdge::SystemFence { at: fence },
        Lack::Place { fence, read } => MissingEdge::ReadersFence { fence, read },
        Lack::Release { flag } => MissingEdge::ReleasingFence { after, flag },
        Lack::Acquire { read } => MissingEdge::AcquiringFence { read, before },
    }
}
