//! Data races: two accesses to the same bytes, at least one of which writes, that nothing orders.
//!
//! The machine tells the [`Detector`] of each access and of everything that orders accesses. The detector keeps what each agent
//! and each transfer knows ([`clock`]), and for each byte the accesses that can still be part of a race ([`shadow`]). An access
//! that does not know an earlier one, where the two conflict, is a race ([`found`], [`report`]). This depends on the order of
//! synchronization in the run only: an in-order run shows the races that delayed deliveries would make visible.
//!
//! A blocking call's own accesses are its agent's. What a transfer does later is known to its issuer only by a quiet, flush or
//! fence, and to others by what they synchronize with (memory model, happens-before).

mod advice;
pub(crate) mod call;
mod cell;
mod clock;
mod edges;
mod found;
mod gpu;
mod how;
mod ineffective;
mod intended;
mod mark;
mod missing;
mod order;
mod path;
mod read_only;
mod report;
mod scope;
mod seeming;
mod shadow;
mod site;
mod threads;
mod view;
mod who;
mod words;

use std::cell::Cell;
use std::collections::BTreeMap;
use std::rc::Rc;

use onesided::At;
use onesided::backend::{AllocId, Span};
use onesided_ptx::{Scope, Who as KernelThread};

use crate::config::{Config, Quiet};
use crate::machine::{AgentId, ClaimId, Claimed, PeId, Table};
use crate::profile::Promises;
pub(crate) use clock::Clock;
use clock::Times;
pub(crate) use edges::Snapshot;
use found::Found;
use gpu::Gpus;
pub(crate) use gpu::{Heard, Lack, Update};
pub(crate) use how::How;
pub use ineffective::{IneffectiveOrder, IneffectiveReason};
use intended::Marks;
pub use intended::{IntendedRace, IntendedRaces};
pub(crate) use mark::Mark;
pub(crate) use missing::in_one_line;
pub use missing::{MissingEdge, Reach, Side};
use read_only::Began;
pub use report::{Access, Part, Race};
pub(crate) use scope::{Narrow, Nearby, Scoped, takes_in_blocks};
use shadow::{Released, Shadow};
use site::Sites;
pub(crate) use threads::StrongWrite;
pub(crate) use view::Kind;
use view::View;
use who::{OnPath, Who, knows, knows_step, steps_of};
pub(crate) use words::{Told, join_told};

/// What kind of access: what makes it known to others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lane {
    /// An agent's own, in program order.
    Steps,
    /// A blocking put arrives before its call returns.
    Arrived,
    /// A store through a peer pointer arrives.
    Stores,
    /// A blocking put, a signal or an atomic arrives.
    Puts,
    /// A non-blocking put arrives.
    Nbi,
    /// A part of a collective arrives.
    Parts,
    /// The source of a non-blocking put, or of a part of a collective, is read.
    Reads,
    /// A non-blocking get reads and writes.
    Gets,
}

impl Lane {
    const ALL: [Lane; 8] =
        [Lane::Steps, Lane::Arrived, Lane::Stores, Lane::Puts, Lane::Nbi, Lane::Parts, Lane::Reads, Lane::Gets];
}

/// What a transfer knew when it was issued.
#[derive(Debug)]
pub(crate) struct Issue {
    clock: Rc<Clock>,
    fenced: Option<Rc<Fenced>>,
}

/// What fences of a scope put before its later deliveries to the same PE.
#[derive(Clone, Debug, Default)]
struct Fenced {
    transfers: Vec<(AgentId, [Times; 3])>,
    /// Of each PE, what the scope's other agents knew that had issued something to it.
    known: Vec<(PeId, Clock)>,
}

const FENCED: [Lane; 3] = [Lane::Puts, Lane::Nbi, Lane::Stores];

impl Fenced {
    /// Adds what has arrived at a PE with whatever comes behind these fences.
    fn tell(&self, to: PeId, clock: &mut Clock) {
        if let Some(known) = self.known_of(to) {
            clock.join(known);
        }
        self.tell_arrivals(to, clock);
    }

    /// Adds the arrivals alone.
    fn tell_arrivals(&self, to: PeId, clock: &mut Clock) {
        for (of, times) in &self.transfers {
            FENCED.into_iter().zip(times).for_each(|(lane, times)| clock.learn_to(*of, lane, to, times));
        }
    }

    /// What was known when something was issued to a PE that these fences put before.
    fn known_of(&self, to: PeId) -> Option<&Clock> {
        self.known.iter().find(|(pe, _)| *pe == to).map(|(_, known)| known)
    }

    fn covers(&self, agent: AgentId, lane: Lane, time: u64) -> bool {
        let Some(index) = FENCED.iter().position(|&fenced| fenced == lane) else { return false };
        self.transfers.iter().any(|(of, times)| *of == agent && times[index].contains(time))
    }
}

/// A transfer, as the detector knows it from its issue on.
#[derive(Clone, Debug)]
pub(crate) struct Ticket {
    agent: AgentId,
    /// Of a thread: its block.
    block: Option<AgentId>,
    lane: Lane,
    /// The lane of its source read.
    reads: Lane,
    time: u64,
    /// The transfer of the same lane to the same PE before it.
    previous: u64,
    /// The call that issued it.
    site: u32,
    /// Whether a kernel issued it.
    in_kernel: bool,
    issue: Rc<Issue>,
}

/// Non-blocking operations of an agent that no quiet has completed: those issued behind one moment, up to another.
#[derive(Debug)]
struct Run {
    agent: AgentId,
    from: u64,
    to: u64,
    issue: Rc<Issue>,
    claimed: Claimed,
}

/// What the PE has issued and not completed.
#[derive(Debug, Default)]
struct Outstanding {
    nbi: Vec<Run>,
    /// What fences of each scope order.
    fenced: [Option<Rc<Fenced>>; 3],
    /// The last store of its kernels to any PE's memory.
    wrote: u64,
}

impl Outstanding {
    /// Back to the start, keeping allocations.
    fn reset(&mut self) {
        self.nbi.clear();
        self.forget_fences();
        self.wrote = 0;
    }

    /// What fences have ordered is over.
    fn forget_fences(&mut self) {
        self.fenced.iter_mut().filter(|fenced| fenced.is_some()).for_each(|fenced| *fenced = None);
    }
}

/// The races of a run.
#[derive(Debug, Default)]
pub(crate) struct Detector {
    on: bool,
    promises: Promises,
    quiet: Quiet,
    /// PEs on a node, where the path to a PE's memory matters.
    pes_per_node: Option<u32>,
    /// The machine's steps so far.
    step: u64,
    now: u64,
    /// What everybody knows: everything up to this moment.
    base: u64,
    agents: Table<AgentId, View>,
    /// The clock of one who knows nothing.
    nothing: Rc<Clock>,
    pes: Table<PeId, Outstanding>,
    /// What claims have to tell their owners, besides what they complete.
    starts: BTreeMap<ClaimId, Clock>,
    shadow: Shadow,
    sites: Sites,
    /// What accesses are marked with.
    marks: Marks,
    gpus: Gpus,
    found: Found,
}

/// # Accesses
impl Detector {
    /// A run begins. `on`: whether races are looked for.
    pub(crate) fn reset(&mut self, on: bool, promises: Promises, config: &Config) {
        self.on = on;
        if !on {
            return;
        }
        self.promises = promises;
        self.quiet = config.quiet;
        self.pes_per_node = config.nodes_matter().map(|pes| pes as u32);
        let n_pes = config.pes;
        (self.step, self.now, self.base) = (0, 0, 0);
        self.agents.keep(n_pes); // hosts come first, by rank
        self.agents.iter_mut().for_each(|view| view.reset(view.pe, view.kind, &self.nothing));
        self.pes.iter_mut().for_each(Outstanding::reset);
        for pe in (self.pes.len() as u32..n_pes as u32).map(PeId) {
            self.agents.push(View::new(pe, Kind::Host, &self.nothing));
            self.pes.push(Outstanding::default());
        }
        self.starts.clear();
        self.shadow.clear();
        self.sites.clear();
        self.marks.clear();
        self.gpus.clear();
        self.found.clear();
    }

    /// Whether there is any race until now, marked or not.
    pub(crate) fn has_found(&self) -> bool {
        !self.found.is_empty()
    }

    /// Whether everybody knows everything that has happened.
    pub(crate) fn all_known(&self) -> bool {
        self.base == self.now
    }

    #[inline]
    pub(crate) fn is_on(&self) -> bool {
        self.on
    }

    /// What quiets in kernels are about.
    pub(crate) fn quiet(&self) -> Quiet {
        self.quiet
    }

    /// The run that begins takes quiets in kernels to be about this.
    pub(crate) fn read_quiets(&mut self, quiet: Quiet) {
        self.quiet = quiet;
    }

    /// A stream of the PE, or an agent of a kernel, is new.
    pub(crate) fn new_agent(&mut self, pe: PeId, kind: Kind) {
        if self.on {
            let nothing = &self.nothing;
            self.agents.push_again(|view| view.reset(pe, kind, nothing), || View::new(pe, kind, nothing));
        }
    }

    /// The machine has taken so many steps.
    #[inline]
    pub(crate) fn at_step(&mut self, step: u64) {
        self.step = step;
    }

    /// The next moment.
    #[inline]
    fn tick(&mut self) -> u64 {
        self.now = (self.now + 1).max(self.step << 16);
        self.now
    }

    /// An agent's own access, where races are looked for. `size`: of an element.
    #[inline(always)] // as its only caller
    pub(crate) fn touch(
        &mut self,
        agent: AgentId,
        pe: PeId,
        span: Span,
        how: How,
        size: usize,
        (call, at): (&'static str, At),
    ) {
        let mark = self.own_access(agent, how, size, (call, at));
        if how.is_plain_write() && self.agents[agent].is_in_kernel() {
            self.has_stored(agent, mark.time);
        }
        if !self.shadow.access_known(pe, span, mark, None, self.base) {
            self.touch_unknown(agent, pe, span, mark);
        }
    }

    /// A thread's strong access in a scope, where races are looked for. `behind`: what it comes after besides, by fences of NVSHMEM.
    pub(crate) fn touch_strongly(
        &mut self,
        agent: AgentId,
        (pe, word): (PeId, Span),
        (how, scope): (How, Scope),
        behind: Option<&Told>,
        asked: (&'static str, At),
    ) {
        self.behind(agent, behind, |races| {
            let mark = races.own_access(agent, how, word.len, asked).within(scope);
            if how.writes() {
                races.has_stored(agent, mark.time);
            }
            if !races.shadow.access_known(pe, word, mark, None, races.base) {
                races.touch_unknown(agent, pe, word, mark);
            }
        });
    }

    /// An agent does something that alone comes after this, besides: what the agent does next need not.
    fn behind<R>(&mut self, agent: AgentId, behind: Option<&Told>, act: impl FnOnce(&mut Detector) -> R) -> R {
        let Some(behind) = behind else { return act(self) };
        let known = Rc::clone(&self.agents[agent].clock);
        self.agents[agent].clock().join(&behind.clock);
        let result = act(self);
        let view = &mut self.agents[agent];
        (view.clock, view.issue) = (known, None);
        result
    }

    #[inline(always)] // as its callers
    fn own_access(&mut self, agent: AgentId, how: How, size: usize, (call, at): (&'static str, At)) -> Mark {
        let time = self.tick();
        let site = self.sites.number(call, at, self.agents[agent].mark);
        let view = &mut self.agents[agent];
        (view.last, view.site) = (time, site);
        Mark::new(agent, Lane::Steps, time, site, how, size)
    }

    /// Threads of a block access words that lie one behind the other: a word for each thread, one thread after the other.
    pub(crate) fn touch_words(
        &mut self,
        block: AgentId,
        threads: &[AgentId],
        (pe, words): (PeId, Span),
        how: How,
        (call, at): (&'static str, At),
    ) {
        let len = words.len / threads.len();
        let mut marks = [Mark::BLANK; 32];
        let mut site = None;
        let met = self.agents[block].met;
        for (mark, &thread) in marks.iter_mut().zip(threads) {
            if self.agents[thread].met != met {
                self.thread_of_acts(thread, block);
            }
            let time = self.tick();
            let view = &mut self.agents[thread];
            let number = match site {
                Some((intended, number)) if intended == view.mark => number,
                _ => self.sites.number(call, at, view.mark),
            };
            site = Some((view.mark, number));
            (view.last, view.site) = (time, number);
            *mark = Mark::new(thread, Lane::Steps, time, number, how, len);
        }
        let marks = &marks[..threads.len()];
        if how.is_plain_write() {
            threads.iter().zip(marks).for_each(|(&thread, mark)| self.has_stored(thread, mark.time));
        }
        let mut unknown = 0_u32;
        if !self.shadow.access_words(pe, words, self.base, marks, |index| unknown |= 1 << index) {
            unknown = u32::MAX;
        }
        if unknown == 0 {
            return;
        }
        let (mut known, mut before) = (Mark::BLANK, threads[0]);
        for (index, (&thread, &mark)) in threads.iter().zip(marks).enumerate() {
            if unknown >> index & 1 == 1 {
                let word = Span { start: words.start + index * len, len, ..words };
                if !Rc::ptr_eq(&self.agents[thread].clock, &self.agents[before].clock) {
                    known = Mark::BLANK;
                }
                (known, before) = (self.touch_knowing(thread, pe, word, mark, known), thread);
            }
        }
    }

    fn touch_unknown(&mut self, agent: AgentId, pe: PeId, span: Span, mark: Mark) {
        self.touch_knowing(agent, pe, span, mark, Mark::BLANK);
    }

    /// An agent's own access. `known`: an earlier one that the agent knows. Returns one that all know who know as much.
    #[inline(never)]
    fn touch_knowing(&mut self, agent: AgentId, pe: PeId, span: Span, mark: Mark, known: Mark) -> Mark {
        let on_path = OnPath::of(self.pes_per_node, &self.agents, agent, pe, mark.how());
        let marked = Some(&self.sites).filter(|_| !self.marks.is_empty());
        let who = Who {
            pe,
            on_path,
            marked,
            known: Cell::new(known),
            ..Who::agent(agent, mark.time, self.base, &self.agents)
        };
        let (found, known) = (&mut self.found, (&self.agents, &self.gpus, &self.sites));
        self.shadow.access(&who, span, mark, |other, mark, span| found.note(other, mark, &who, span, known));
        who.known_by_clock()
    }

    /// A transfer's access to its source or target.
    #[inline(always)] // on the hottest path, where how it accesses is known
    pub(crate) fn transfer(&mut self, ticket: &Ticket, pe: PeId, span: Span, how: How, size: usize) {
        let lane = if how == How::Read { ticket.reads } else { ticket.lane };
        let mark = Mark::new(ticket.agent, lane, ticket.time, ticket.site, how, size);
        let is_source = how == How::Read && ticket.in_kernel && self.agents[ticket.agent].pe == pe;
        self.transfer_by(ticket, pe, span, if is_source { mark.of_source() } else { mark });
    }

    #[inline(always)] // as its callers
    fn transfer_by(&mut self, ticket: &Ticket, pe: PeId, span: Span, mark: Mark) {
        if !self.shadow.access_known(pe, span, mark, Some(&ticket.issue), self.base) {
            self.transfer_unknown(ticket, pe, span, mark);
        }
    }

    /// An agent loads what is on another PE, in a piece of a transfer that it waits for.
    pub(crate) fn load(&mut self, ticket: &Ticket, pe: PeId, span: Span, size: usize) {
        let mark = Mark::new(ticket.agent, Lane::Steps, ticket.time, ticket.site, How::Read, size);
        if !self.shadow.access_known(pe, span, mark, None, self.base) {
            self.touch_unknown(ticket.agent, pe, span, mark);
        }
    }

    #[inline(never)]
    fn transfer_unknown(&mut self, ticket: &Ticket, pe: PeId, span: Span, mark: Mark) {
        let on_path = OnPath::of(self.pes_per_node, &self.agents, ticket.agent, pe, mark.how());
        let marked = Some(&self.sites).filter(|_| !self.marks.is_empty());
        let who =
            Who { on_path, marked, ..Who::transfer(ticket, mark.lane(), pe, self.base, self.promises, &self.agents) };
        let (found, known) = (&mut self.found, (&self.agents, &self.gpus, &self.sites));
        self.shadow.access(&who, span, mark, |other, mark, span| found.note(other, mark, &who, span, known));
    }

    /// A call gives memory up. It comes after everything that its members know: any other access races with it, and nothing that comes later
    /// does. `owner`: the PE whose memory it is, if it is one's.
    pub(crate) fn freed(
        &mut self,
        agent: AgentId,
        (alloc, owner): (AllocId, Option<PeId>),
        (call, at): (&'static str, At),
    ) {
        if !self.on {
            return;
        }
        if self.base < self.now {
            self.races_with_end(agent, (alloc, owner), (call, at));
        } // else everybody knows everything
        if owner.is_none() {
            self.shadow.forget(alloc);
            self.gpus.forget(alloc);
        }
    }

    /// Every access that the call which gives memory up does not come after races with it. Where the call gives up only the right to use the memory
    /// in transfers, kernels may go on with it.
    fn races_with_end(
        &mut self,
        agent: AgentId,
        (alloc, owner): (AllocId, Option<PeId>),
        (call, at): (&'static str, At),
    ) {
        let time = self.tick();
        let site = self.sites.number(call, at, 0);
        let mark = Mark::new(agent, Lane::Steps, time, site, How::Write, 1);
        let Detector { base, agents, shadow, found, gpus, sites, .. } = self;
        shadow.each(alloc, |pe, span, (cell, other)| {
            let who = Who { pe, ..Who::agent(agent, time, *base, agents) };
            let may_go_on =
                call::ends_transfers_only(call) && other.lane() == Lane::Steps && agents[other.agent()].is_in_kernel();
            if owner.is_none_or(|owner| owner == pe) && !may_go_on && !cell.is_known(&who, other) {
                found.note(*other, mark, &who, span, (agents, gpus, sites));
            }
        });
    }

    /// The races of the run that ended, those between the first lines first.
    pub(crate) fn races(
        &self,
        made_at: impl Fn(AllocId) -> Option<At>,
        kernels: (impl Fn(AgentId) -> Option<KernelThread>, impl Fn(AgentId) -> Option<At>),
    ) -> Vec<Race> {
        if !self.on || self.found.is_empty() {
            return Vec::new();
        }
        self.found.races(&self.agents, &self.sites, made_at, kernels)
    }
}
