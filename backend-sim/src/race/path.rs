//! [`Path`]: what leads from the first of two accesses that race to the second, and where it ends.

use super::missing::Side;
use super::who::{Who, knows, steps_of};
use super::{Clock, Kind as Agent, Mark, View};
use crate::machine::{AgentId, PeId, Table};

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
    /// Nothing leads from one to the other, and a barrier of a kernel's block would, or one of its cluster.
    Threads { side: Side, cluster: bool },
    /// The same: another thread of the first one's block or cluster was told of the second before all of them met.
    ToldLater { cluster: bool },
}

/// One of two accesses.
#[derive(Clone, Copy, Debug)]
pub(super) enum Which {
    First,
    Second,
}

impl Path {
    /// Why nothing leads from an access to a later one.
    pub(super) fn none(earlier: &Mark, who: &Who<'_>, agents: &Table<AgentId, View>) -> Path {
        let (first, second) = (earlier.agent(), who.agent);
        let told = |&other: &AgentId| knows(&agents[other].clock, agents, first, earlier.lane(), earlier.time, who.pe);
        if agents[first].block.is_some() && agents[first].block == agents[second].block {
            Path::Threads { side: Side::Both, cluster: agents[first].rank != agents[second].rank }
        } else if let Some(cluster) = beyond_block(second, others_of_block(second, agents).filter(told), agents) {
            Path::Threads { side: Side::Second, cluster }
        } else if let Some(cluster) = has_another_told(earlier, who, agents) {
            Path::Threads { side: Side::First, cluster }
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

/// Where another thread of an access's block or cluster has told the other side something since the last meeting before the access, with no meeting
/// between the access and that: whether the last one to do so is of another block.
fn has_another_told(access: &Mark, who: &Who<'_>, agents: &Table<AgentId, View>) -> Option<bool> {
    let block = agents[access.agent()].block?;
    let met_at = agents[block].met_at;
    // where both meetings that are kept came later, what was told between the one before the access and it is not known
    let unknown = if met_at[1] > 0 { access.time } else { 0 };
    let before = met_at.into_iter().find(|&met| met < access.time).unwrap_or(unknown).max(who.base);
    let before = before.max(who.clock.steps(access.agent())); // its own thread has told something later than that
    let met_since = |told: u64| met_at.into_iter().any(|met| met > access.time && met <= told);
    let is_beyond = |other: AgentId| agents[other].rank != agents[access.agent()].rank;
    let told = others_of_block(access.agent(), agents).map(|other| (who.clock.steps(other), is_beyond(other)));
    let last = told.filter(|&(told, _)| told > before && !met_since(told)).max_by_key(|&(told, _)| told);
    last.map(|(_, is_beyond)| is_beyond)
}

/// Whether none of these threads, of which there are some, is of a thread's own block: then they are of other blocks of its cluster.
pub(super) fn beyond_block(
    thread: AgentId,
    mut others: impl Iterator<Item = AgentId>,
    agents: &Table<AgentId, View>,
) -> Option<bool> {
    let is_beyond = |other: AgentId| agents[other].rank != agents[thread].rank;
    let first = others.next()?;
    Some(is_beyond(first) && others.all(is_beyond))
}

/// The other threads of a thread's block, or cluster.
pub(super) fn others_of_block(thread: AgentId, agents: &Table<AgentId, View>) -> impl Iterator<Item = AgentId> {
    let block = agents[thread].block;
    agents.ids().filter(move |&other| block.is_some() && agents[other].block == block && other != thread)
}

/// The streams beside a host.
pub(super) fn streams_of(host: AgentId, agents: &Table<AgentId, View>) -> impl Iterator<Item = AgentId> {
    let (pe, is_host) = (agents[host].pe, agents[host].is_host());
    let is_one =
        move |&other: &AgentId| is_host && agents[other].pe == pe && matches!(agents[other].kind, Agent::Stream(_));
    agents.ids().filter(is_one)
}
