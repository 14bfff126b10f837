//! What the lints and the machine ask the detector: what happens before what, and which call made an access.

use onesided::At;
use onesided::backend::Span;
use onesided_ptx::Scope;

use super::{Detector, How, Lane, Mark, Ticket, Who, steps_of};
use crate::lint::LintSite;
use crate::machine::{AgentId, Id as _, PeId};

impl Ticket {
    /// The agent that issued it.
    pub(crate) fn agent(&self) -> AgentId {
        self.agent
    }

    /// Whether a fence of a thread stands between it and a later transfer of its PE.
    pub(crate) fn is_fenced_before(&self, later: &Ticket) -> bool {
        later.issue.clock.has_fenced(self.agent, self.time)
    }

    /// Whether the issuer of a later one comes after its issue.
    pub(crate) fn is_issued_before(&self, later: &Ticket) -> bool {
        let knows = |agent: AgentId| self.time <= later.issue.clock.steps(agent);
        self.agent == later.agent || knows(self.agent) || self.block.is_some_and(knows)
    }

    /// When it was issued: no two transfers have the same time.
    pub(crate) fn time(&self) -> u64 {
        self.time
    }
}

impl Detector {
    /// Whether every schedule with this synchronization delivers `earlier` at the PE before `later`.
    pub(crate) fn orders(&self, earlier: &Ticket, later: &Ticket, pe: PeId) -> bool {
        let mark = Mark::new(earlier.agent, earlier.lane, earlier.time, earlier.site, How::Deliver, 8);
        self.bearer(later, pe).knows(&mark)
    }

    /// Whether the issuer of `later` knows that `earlier` is delivered at the PE. A fence tells it nothing.
    pub(crate) fn is_known_there(&self, earlier: &Ticket, later: &Ticket, pe: PeId) -> bool {
        let mark = Mark::new(earlier.agent, earlier.lane, earlier.time, earlier.site, How::Deliver, 8);
        Who::transfer(later, Lane::Steps, pe, self.base, self.promises, &self.agents).knows(&mark)
    }

    /// Whether an agent's access happens before the issue of a transfer.
    pub(crate) fn is_told(&self, ticket: &Ticket, agent: AgentId, time: u64) -> bool {
        let mark = Mark::new(agent, Lane::Steps, time, 0, How::Read, 8);
        self.bearer(ticket, PeId(0)).knows(&mark)
    }

    /// Whether the issuer of a transfer knows anything that a PE has done since a moment.
    pub(crate) fn has_heard(&self, ticket: &Ticket, pe: PeId, since: u64) -> bool {
        let of_pe = self.agents.ids().filter(|&agent| self.agents[agent].pe == pe && agent != ticket.agent);
        self.base > since || of_pe.into_iter().any(|agent| ticket.issue.clock.steps(agent) > since)
    }

    fn bearer<'a>(&'a self, ticket: &'a Ticket, pe: PeId) -> Who<'a> {
        Who::transfer(ticket, ticket.lane, pe, self.base, self.promises, &self.agents)
    }

    /// The last step of an agent that another one knows of.
    pub(crate) fn steps_known(&self, agent: AgentId, of: AgentId) -> u64 {
        if of == agent {
            return self.agents[agent].last;
        }
        self.base.max(steps_of(&self.agents[agent].clock, &self.agents, of))
    }

    /// The same when it issued a transfer.
    pub(crate) fn steps_known_at(&self, ticket: &Ticket, of: AgentId) -> u64 {
        self.base.max(steps_of(&ticket.issue.clock, &self.agents, of))
    }

    /// Whether an agent knows that a transfer has arrived at a PE, without asking what fences put in order.
    pub(crate) fn knows_arrival(&self, agent: AgentId, ticket: &Ticket, pe: PeId) -> bool {
        let mark = Mark::new(ticket.agent, ticket.lane, ticket.time, ticket.site, How::AtomicUpdate, 8);
        let who = Who { pe, ..Who::agent(agent, self.agents[agent].last, self.base, &self.agents) };
        who.knows(&mark)
    }

    /// A moment at which nothing else happens.
    pub(crate) fn moment_of_its_own(&mut self) -> u64 {
        self.tick()
    }

    /// Whether an agent is a block of a kernel, or one of its threads.
    pub(crate) fn is_in_kernel(&self, agent: AgentId) -> bool {
        self.agents[agent].is_in_kernel()
    }

    /// The narrowest scope that has both of two agents.
    pub(crate) fn scope_of_both(&self, one: AgentId, other: AgentId) -> Scope {
        let [one, other] = [one, other].map(|agent| &self.agents[agent]);
        match one.pe == other.pe {
            true if one.block.is_some() && one.block == other.block => Scope::Cta,
            true => Scope::Gpu,
            false => Scope::Sys,
        }
    }

    /// Writes to a word of a PE that an agent does not know: the last plain one, then updates. None is ordered before the agent.
    pub(crate) fn news(&mut self, agent: AgentId, pe: PeId, word: Span) -> Vec<(LintSite, How)> {
        let Detector { agents, shadow, base, .. } = self;
        let who = Who { pe, ..Who::agent(agent, agents[agent].last, *base, agents) };
        let writes = shadow.unknown_writes(&who, word);
        writes.into_iter().map(|mark| (self.site_of_mark(&mark), mark.how())).collect()
    }

    /// A call of an agent.
    pub(crate) fn site(&self, agent: AgentId, asked: (&'static str, At)) -> LintSite {
        let view = &self.agents[agent];
        LintSite::new(asked, view.pe.index(), view.stream().map(|number| number as usize))
    }

    /// The call that issued a transfer.
    pub(crate) fn site_of(&self, ticket: &Ticket) -> LintSite {
        let site = self.sites.all[ticket.site as usize];
        self.site(ticket.agent, (site.call, site.at))
    }

    fn site_of_mark(&self, mark: &Mark) -> LintSite {
        let site = self.sites.all[mark.site() as usize];
        self.site(mark.agent(), (site.call, site.at))
    }
}
