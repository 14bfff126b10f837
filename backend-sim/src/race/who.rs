//! [`Who`]: whoever makes an access, and what it knows of others.

use std::cell::Cell;
use std::rc::Rc;

use super::clock::Clock;
use super::scope::places;
use super::site::Sites;
use super::{FENCED, Fenced, How, Issue, Lane, Mark, Ticket, View};
use crate::machine::{AgentId, PeId, Table};
use crate::profile::Promises;

/// Whoever makes an access, and what it knows.
pub(super) struct Who<'a> {
    /// Whose memory.
    pub(super) pe: PeId,
    pub(super) agent: AgentId,
    pub(super) lane: Lane,
    pub(super) time: u64,
    pub(super) base: u64,
    pub(super) clock: &'a Clock,
    pub(super) fenced: Option<&'a Fenced>,
    /// For a transfer: what it knew.
    pub(super) issue: Option<&'a Rc<Issue>>,
    pub(super) agents: &'a Table<AgentId, View>,
    /// Whether transfers of a scope to one PE arrive in the order in which they were issued, and this is one of them.
    pub(super) in_order: bool,
    /// For a read of another PE's memory, where the path to it matters.
    pub(super) on_path: Option<OnPath<'a>>,
    /// Where accesses are marked as races that are intended: the calls that made them.
    pub(super) marked: Option<&'a Sites>,
    /// An access that it was last found to know. Mostly one transfer has written many words, and one has read them.
    pub(super) known: Cell<Mark>,
}

/// The path on which somebody reads another PE's memory.
#[derive(Clone, Copy)]
pub(super) struct OnPath<'a> {
    pes_per_node: u32,
    reader: PeId,
    agents: &'a Table<AgentId, View>,
}

/// Whether a clock knows an access of an agent's lane to a PE's memory. What it knows of a block up to a moment, it knows of each of the block's threads.
/// If it knows that a transfer was delivered, it knows that its source was read before.
#[inline]
pub(super) fn knows(
    clock: &Clock,
    agents: &Table<AgentId, View>,
    agent: AgentId,
    lane: Lane,
    time: u64,
    pe: PeId,
) -> bool {
    // of a thread, mostly what its block has done is known
    agents[agent].block.is_some_and(|block| match lane {
        Lane::Steps | Lane::Arrived => time <= clock.steps(block),
        Lane::Stores => clock.knows(block, lane, time, pe),
        Lane::Puts | Lane::Nbi | Lane::Parts | Lane::Reads | Lane::Gets => false,
    }) || clock.knows(agent, lane, time, pe)
        || lane == Lane::Reads
            && agents[agent].nbi_put_to(time).is_some_and(|to| clock.knows(agent, Lane::Nbi, time, to))
}

/// Whether a clock has an own access of an agent.
pub(super) fn knows_step(clock: &Clock, agents: &Table<AgentId, View>, agent: AgentId, time: u64) -> bool {
    agents[agent].block.is_some_and(|block| time <= clock.steps(block)) || time <= clock.steps(agent)
}

/// The last own access of an agent that a clock has.
pub(super) fn steps_of(clock: &Clock, agents: &Table<AgentId, View>, agent: AgentId) -> u64 {
    let of_block = agents[agent].block.map_or(0, |block| clock.steps(block));
    clock.steps(agent).max(of_block)
}

/// Whether operations of a lane of an agent can arrive in the order of issue: stores of kernels do not.
pub(super) fn takes_turn(lane: Lane, by: &View) -> bool {
    match lane {
        Lane::Puts | Lane::Arrived => true,
        Lane::Stores => !by.is_in_kernel(),
        _ => false,
    }
}

impl<'a> OnPath<'a> {
    /// The path of an access, if it is a read of another PE's memory and the path matters.
    #[inline]
    pub(super) fn of(
        pes_per_node: Option<u32>,
        agents: &'a Table<AgentId, View>,
        agent: AgentId,
        pe: PeId,
        how: How,
    ) -> Option<OnPath<'a>> {
        let pes_per_node = pes_per_node?;
        let reader = agents[agent].pe;
        (how == How::Read && reader != pe).then_some(OnPath { pes_per_node, reader, agents })
    }

    /// Whether what an agent has written to memory of `pe` came there on another path.
    fn differs(&self, agent: AgentId, pe: PeId) -> bool {
        let writer = self.agents[agent].pe;
        let near = |other: PeId| other.0 / self.pes_per_node == pe.0 / self.pes_per_node;
        writer != pe && near(writer) != near(self.reader)
    }
}

impl Who<'_> {
    /// Whether fences of threads hold it back.
    fn is_fenced(&self) -> bool {
        FENCED.contains(&self.lane) && self.agents[self.agent].is_in_kernel()
    }

    /// Whether this is a load or a store, and no transfer: a get does not see what its own agent has stored and what is still on its way.
    fn is_by_pointer(&self) -> bool {
        self.lane == Lane::Stores || self.lane == Lane::Steps && self.issue.is_none()
    }

    /// Whether the stores of an agent are there for this one in the order of its steps: those of a kernel are, for loads and stores by kernels of its PE,
    /// and to its own PE's memory also for calls there.
    fn is_on_gpu_of(&self, agent: AgentId) -> bool {
        let [me, other] = [self.agent, agent].map(|agent| &self.agents[agent]);
        me.is_in_kernel() && me.scope() == other.scope() && (self.is_by_pointer() || other.pe == self.pe)
    }

    /// A transfer, at its access to memory of a PE.
    #[inline]
    pub(super) fn transfer<'a>(
        ticket: &'a Ticket,
        lane: Lane,
        pe: PeId,
        base: u64,
        promises: Promises,
        agents: &'a Table<AgentId, View>,
    ) -> Who<'a> {
        let Ticket { agent, time, ref issue, .. } = *ticket;
        let fenced = matches!(lane, Lane::Puts | Lane::Nbi | Lane::Stores);
        let in_order = promises.in_order && takes_turn(lane, &agents[agent]);
        Who {
            pe,
            agent,
            lane,
            time,
            base,
            clock: &issue.clock,
            fenced: issue.fenced.as_deref().filter(|_| fenced),
            issue: Some(issue),
            agents,
            in_order,
            on_path: None,
            marked: None,
            known: Cell::new(Mark::BLANK),
        }
    }

    /// An agent, at its own access.
    #[inline]
    pub(super) fn agent(agent: AgentId, time: u64, base: u64, agents: &Table<AgentId, View>) -> Who<'_> {
        Who {
            pe: PeId(0),
            agent,
            lane: Lane::Steps,
            time,
            base,
            clock: &agents[agent].clock,
            fenced: None,
            issue: None,
            agents,
            in_order: false,
            on_path: None,
            marked: None,
            known: Cell::new(Mark::BLANK),
        }
    }

    #[inline]
    pub(super) fn knows(&self, mark: &Mark) -> bool {
        if mark.time <= self.base || *mark == self.known.get() {
            return true;
        }
        let knows = self.knows_recent(mark) && (self.on_path.is_none() || !self.must_hear(mark));
        if knows {
            self.known.set(*mark);
        }
        knows
    }

    /// For an agent at its own access: the access that it was last found to know, if whoever has the same clock on the same PE knows it, too.
    pub(super) fn known_by_clock(&self) -> Mark {
        let known = self.known.get();
        match known.lane() {
            Lane::Puts | Lane::Nbi | Lane::Parts | Lane::Reads | Lane::Gets => known,
            Lane::Steps | Lane::Arrived | Lane::Stores => Mark::BLANK,
        }
    }

    /// Whether this one's access and an earlier one conflict: two atomics do, if the scope of one does not take in the agent of the other.
    #[inline]
    pub(super) fn conflicts(&self, mark: &Mark, other: &Mark) -> bool {
        mark.conflicts(other) || mark.conflicts_afar(other) && !self.is_in_scope(mark, other)
    }

    /// Whether an earlier access need not be kept any more, because this one's stands for it.
    #[inline]
    pub(super) fn is_over(&self, other: &Mark, mark: &Mark) -> bool {
        other.stands_for(mark) && (!other.is_narrow() || self.is_in_scope(mark, other)) && self.knows(other)
    }

    /// Whether the agents of two accesses are of one PE, and of one block if an access has the scope of that.
    fn is_in_scope(&self, mark: &Mark, other: &Mark) -> bool {
        let [my_places, places] = [self.agent, other.agent()].map(|agent| places(agent, self.agents));
        match mark.is_within_block() || other.is_within_block() {
            true => my_places == places,
            false => my_places[1] == places[1],
        }
    }

    /// Whether an access that this one comes after is a write on another path, of which the PE between them has not told.
    fn must_hear(&self, mark: &Mark) -> bool {
        let differs = self.on_path.is_some_and(|path| mark.how().writes() && path.differs(mark.agent(), self.pe));
        let knows = |clock: &Clock| knows(clock, self.agents, mark.agent(), mark.lane(), mark.time, self.pe);
        differs && !self.clock.through(self.pe).is_some_and(knows)
    }

    /// Whether any accesses of the run are marked.
    pub(super) fn has_marks(&self) -> bool {
        self.marked.is_some()
    }

    /// Whether this one's access is marked and an earlier one is not: that may race with others, too.
    pub(super) fn races_as_intended(&self, mark: &Mark, other: &Mark) -> bool {
        let is_marked = |sites: &Sites, mark: &Mark| sites.all[mark.site() as usize].mark > 0;
        self.marked.is_some_and(|sites| is_marked(sites, mark) && !is_marked(sites, other))
    }

    /// Whether this is the arrival of a store, and the mark what its agent did after it had issued that.
    pub(super) fn is_overtaken(&self, mark: &Mark) -> bool {
        self.lane == Lane::Stores && mark.agent() == self.agent && mark.lane() == Lane::Steps && mark.time > self.time
    }

    pub(super) fn knows_recent(&self, mark: &Mark) -> bool {
        let agent = mark.agent();
        let lane = if mark.is_own_store(self.pe, self.agents) { Lane::Stores } else { mark.lane() };
        if agent == self.agent {
            match lane {
                // an agent loads what it has stored, though that arrives later, and its stores follow each other
                Lane::Stores if self.is_by_pointer() => return true,
                Lane::Stores if mark.lane() == Lane::Steps => return mark.time <= self.time,
                Lane::Steps if self.lane == Lane::Stores => return true,
                Lane::Steps | Lane::Arrived => return mark.time <= self.time,
                _ if mark.time == self.time => return true, // the same transfer
                _ => {}
            }
        }
        let is_on_gpu = lane == Lane::Stores && self.is_on_gpu_of(agent);
        let knows = |clock: &Clock| {
            is_on_gpu && knows_step(clock, self.agents, agent, mark.time)
                || knows(clock, self.agents, agent, lane, mark.time, self.pe)
        };
        let same_scope = || self.agents[agent].scope() == self.agents[self.agent].scope();
        // a fence that puts a delivery before this one puts the source read before it, too
        let is_read_for_here = || lane == Lane::Reads && self.agents[agent].nbi_put_to(mark.time) == Some(self.pe);
        let fenced_as = if is_read_for_here() { Lane::Nbi } else { lane };
        knows(self.clock)
            || self.fenced.is_some_and(|fenced| {
                fenced.covers(agent, fenced_as, mark.time) || fenced.known_of(self.pe).is_some_and(knows)
            })
            || self.is_fenced()
                && FENCED.contains(&fenced_as)
                && same_scope()
                && self.clock.has_fenced(agent, mark.time)
            || self.in_order && same_scope() && takes_turn(lane, &self.agents[agent]) && self.was_issued_before(mark)
    }

    /// Whether an earlier operation was issued before this transfer.
    fn was_issued_before(&self, mark: &Mark) -> bool {
        match mark.agent() == self.agent {
            true => mark.time < self.time,
            false => knows_step(self.clock, self.agents, mark.agent(), mark.time),
        }
    }
}
