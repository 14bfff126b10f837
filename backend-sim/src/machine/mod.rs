//! The machine: all state of a simulated cluster, and what each step does to it.
//!
//! Small-step semantics without coroutines, clocks or choices. A host asks with [`Machine::submit`]. A step whose order can
//! matter becomes one of [`Machine::choices`], which somebody else picks from; [`Machine::take`] does it.
//!
//! | file | what it holds |
//! |---|---|
//! | `ids.rs` | a type for each kind of index |
//! | `agent.rs`, `pe.rs` | hosts and streams: what each is doing; what belongs to a PE besides |
//! | `mode.rs` | how a run is performed, and what is kept of its steps |
//! | `choice.rs` | which steps are choices, and taking one |
//! | `path.rs` | what has arrived, and is not yet visible on another path |
//! | `fabric.rs` | what a proof assumes of paths |
//! | `access.rs`, `past.rs` | what a step touches; what must come before it |
//! | `naming.rs` | the steps that can be chosen, in words |
//! | `aim.rs` | what a step is going to touch |
//! | `observe.rs` | what the race detector and the lints are told of operations |
//! | `assumed.rs` | what a proof assumes of words: counters, steady words |
//! | `steady.rs` | updates that could come before the end of a wait, and make its condition false |
//! | `parts.rs` | words that are waited for, and written in parts |
//! | `signs.rs` | additions of both signs to words that are waited for |
//! | `phases.rs` | what a proof assumes of mbarriers |
//! | `tells.rs` | what an update of a word tells those who read it |
//! | `issue.rs` | an operation begins: its description decides what happens |
//! | `immediate.rs`, `relaxed.rs` | the two ways of doing it: at once, or as transfers |
//! | `transfer.rs`, `flight.rs` | one transfer; all that are in flight, and what fences order |
//! | `deliver.rs` | a transfer's next step |
//! | `claim.rs` | quiet, fence, sync: which transfers each completes |
//! | `starts.rs` | a host's put or get, which waits until its streams have started earlier ones |
//! | `poll.rs` | hosts that poll |
//! | `wait.rs`, `stream.rs` | waits on memory; streams and events |
//! | `instance.rs`, `collective.rs` | one collective; matching, entering, completing, leaving |
//! | `data.rs` | what collectives move |
//! | `kernel/` | kernels: blocks and threads as agents, their memory, their calls |
//! | `team.rs` | teams |
//! | `loops.rs` | the calls that a host makes again and again |
//! | `life.rs`, `memory.rs` | init and finalize; allocation and registration |
//! | `record.rs` | what a recorded run keeps: the trace |
//! | `report.rs` | what every agent is doing, in words |
//! | `undelivered.rs` | what was in flight at the end, and what overtook it |
//! | `unsent.rs` | a word that is waited for and that nothing was sent to |
//!
//! **Relaxed or in order.** In a relaxed run, a step whose order can matter waits until it is chosen, and transfers are
//! delivered when that is chosen. In an in-order run every step happens at once and nothing is ever in flight: this is
//! one of the relaxed schedules, without its bookkeeping.
//!
//! **Choices are small.** A choice does one thing whose footprint its agent knows beforehand. What follows without a choice
//! (a host that goes on, a quiet that ends) touches nothing that others touch, so nothing depends on when it happens.

mod access;
mod agent;
mod aim;
mod assumed;
mod choice;
mod claim;
mod collective;
mod data;
mod deliver;
mod fabric;
mod flight;
mod ids;
mod immediate;
mod instance;
mod issue;
mod kernel;
mod life;
mod loops;
mod memory;
mod mode;
mod naming;
mod observe;
mod parts;
mod past;
mod path;
mod pe;
mod phases;
mod poll;
mod record;
mod relaxed;
mod report;
mod signs;
mod starts;
mod steady;
mod stream;
mod team;
mod tells;
mod transfer;
mod undelivered;
mod unsent;
mod wait;

use std::collections::VecDeque;

use onesided::At;
use onesided::backend::Live;

use crate::config::{Config, Loads};
use crate::heap::Heap;
use crate::limits::Deadline;
use crate::lint::Lints;
use crate::profile::Promises;
use crate::race::{Detector, How, Race};
use crate::request::{Call, Reply};
use crate::trace::{Event, LastRead};
use crate::verdict::VerdictKind;
use agent::{Agent, AgentKind, State};
use claim::Claims;
use flight::Flight;
use ids::ScopeId;
use instance::Collective;
use kernel::Kernels;
use path::Paths;
use pe::PeState;
use record::Record;
use team::Teams;
use undelivered::Landed;

pub(crate) use access::{Access, Actor, Awaited, Fold, Object, ObjectKind, Test, Touch};
pub(crate) use aim::Aim;
pub(crate) use assumed::{Assumptions, GivenUp, Sightings, Word};
pub(crate) use claim::{Claimed, Completes};
pub(crate) use ids::{AgentId, ClaimId, Id, PeId, Table};
use loops::Loops;
pub(crate) use mode::{Mode, Needs};
pub(crate) use past::Past;
pub(crate) use poll::Patience;
pub(crate) use team::predefined_members;
pub(crate) use tells::Tells;
pub(crate) use transfer::parts;

/// Whether a call is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// The reply is there.
    Done,
    /// The reply is there, but others go first.
    DoneLater,
    /// The agent goes on later.
    Blocked,
}

/// The step that was chosen last: what an exhaustive search knows of it.
#[derive(Debug)]
pub(crate) struct Step {
    /// What it touched.
    pub(crate) touched: Vec<Access>,
    /// What memory that it changed held before, where that is little.
    pub(crate) before: Vec<(Object, Box<[u8]>)>,
    /// The steps that come before it in every schedule.
    pub(crate) past: Past,
    /// For the last entry of a collective: steps before all entries. What it then does to memory comes after them.
    pub(crate) meets: Past,
    /// For the end of a wait: what it waited for.
    pub(crate) test: Option<Awaited>,
    /// For a poll that is made again: earlier steps of which one at least must have been taken.
    pub(crate) enabled_by: Vec<usize>,
    by: Actor,
    /// Whether it is a transfer's.
    by_transfer: bool,
}

/// A host that never blocks lets the others go first after so many steps: polling loops make progress.
const TURN: u64 = 256;

/// A wait that has not ended.
#[derive(Debug)]
pub(crate) struct BlockedWait {
    /// The name of the choice that would end it.
    pub(crate) key: u64,
    pub(crate) past: Past,
    pub(crate) test: Awaited,
    pub(crate) access: Access,
}

/// A read of at most this many bytes is remembered, to tell whether a host polls.
const KEPT: usize = 64;

/// The whole cluster.
#[derive(Debug)]
pub(crate) struct Machine {
    pub(crate) config: Config,
    promises: Promises,
    heap: Heap,
    mode: Mode,
    pub(crate) step: Step,
    /// Whether what is touched belongs to the step that was chosen, and is noted.
    in_chosen_step: bool,
    /// Choices taken, and those whose steps have begun: what a host's call does follows its step.
    taken: usize,
    begun: usize,
    agents: Table<AgentId, Agent>,
    pes: Table<PeId, PeState>,
    scopes: Table<ScopeId, PeId>,
    flight: Flight,
    claims: Claims,
    /// Who has claimed the non-blocking operation that a stream starts; taken over by the transfer, if one is launched.
    starting: Option<Claimed>,
    teams: Teams,
    /// Agents whose next step is a choice.
    ready: Vec<AgentId>,
    /// Agents that can go on without a choice.
    woken: VecDeque<AgentId>,
    /// The bug of the whole program, once one is found.
    finding: Option<VerdictKind>,
    /// How a PE has ended the job while nothing was wrong; what the others can still do is looked at.
    exited: Option<VerdictKind>,
    leaks: Vec<(usize, Live)>,
    /// Symmetric registrations, in their order.
    registrations: Vec<memory::Registration>,
    unique_ids: u64,
    /// Steps taken, choices or not.
    pub(crate) steps: u64,
    /// The run is given up after so many steps. A kernel that makes one call after the other ends its turn there.
    pub(crate) until: u64,
    /// What ends it from outside: a block of a kernel looks at it, while it computes and between its turns.
    pub(crate) deadline: Deadline,
    /// Whether what kernels print is printed.
    pub(crate) prints: bool,
    /// Whether the run has ended, and goes on for what that shows.
    paused: bool,
    /// When the running host lets others go first: behind a finding at once.
    turn_ends: u64,
    /// The calls that are made, while they are counted.
    loops: Option<Box<Loops>>,
    record: Option<Box<Record>>,
    landed: Landed,
    paths: Paths,
    patience: Patience,
    /// Whether only polls in vain are left, as far as is known.
    only_polls: bool,
    races: Detector,
    /// Where lints are looked for.
    lints: Option<Box<Lints>>,
    /// What is assumed of words, if anything is.
    assumed: Option<Box<Assumptions>>,
    kernels: Kernels,
    /// Bits of a transfer's name that number the agents of a PE in kernels.
    ordinals: u32,
}

impl Machine {
    pub(crate) fn new(config: Config) -> Machine {
        Machine {
            promises: config.profile.promises(),
            config,
            heap: Heap::default(),
            mode: Mode { needs: Needs::NOTHING, tracing: false, races: false, lints: false, initialized: None },
            step: Step {
                touched: Vec::new(),
                before: Vec::new(),
                past: Past::default(),
                meets: Past::default(),
                test: None,
                enabled_by: Vec::new(),
                by: Actor { agent: None, scope: None, call: "", at: None },
                by_transfer: false,
            },
            in_chosen_step: false,
            taken: 0,
            begun: 0,
            agents: Table::default(),
            pes: Table::default(),
            scopes: Table::default(),
            flight: Flight::default(),
            claims: Claims::default(),
            starting: None,
            teams: Teams::default(),
            ready: Vec::new(),
            woken: VecDeque::new(),
            finding: None,
            exited: None,
            leaks: Vec::new(),
            registrations: Vec::new(),
            unique_ids: 0,
            steps: 0,
            until: u64::MAX,
            deadline: Deadline::default(),
            prints: false,
            paused: false,
            turn_ends: 0,
            loops: None,
            record: None,
            landed: Landed::default(),
            paths: Paths::default(),
            patience: Patience::default(),
            only_polls: false,
            races: Detector::default(),
            lints: None,
            assumed: None,
            kernels: Kernels::default(),
            ordinals: 0,
        }
    }

    /// Back to the start of a run: every host runs, nothing is allocated.
    pub(crate) fn reset(&mut self, mode: Mode) {
        let n = self.config.pes;
        self.mode = mode;
        self.step.touched.clear();
        self.step.past.clear();
        self.in_chosen_step = false;
        (self.taken, self.begun) = (0, 0);
        self.heap.reset(n, self.config.heap, self.config.memory);
        self.reset_agents(n);
        self.flight.reset(self.scopes.len());
        self.claims.clear();
        self.starting = None;
        self.teams.reset(n, mode.initialized.is_some());
        self.ready.clear();
        self.woken.clear();
        self.woken.extend(self.pes.iter().map(|pe| pe.host));
        self.finding = None;
        self.exited = None;
        self.leaks.clear();
        self.registrations.clear();
        self.unique_ids = 0;
        (self.steps, self.paused) = (0, false);
        self.landed.clear();
        (self.patience, self.only_polls) = (Patience::default(), false);
        self.assumed = None;
        self.kernels.clear();
        self.ordinals = relaxed::bits_of_ordinals(n);
        let paths = self.config.nodes_matter();
        self.paths.reset(paths.filter(|_| mode.needs.relaxed));
        self.races.reset(mode.races, self.promises, &self.config);
        let loads = self.config.loads; // if they find old values, all that was written before counts
        let looks = mode.races && (mode.lints || loads == Loads::Oldest);
        self.lints = looks.then(|| Box::new(Lints::new(mode.lints, loads)));
        self.record = mode.tracing.then(Box::default);
        if let Some(at) = mode.initialized {
            self.record_init(at);
        }
    }

    /// A host and three scopes for each PE.
    fn reset_agents(&mut self, n: usize) {
        self.agents.keep(n);
        if self.pes.len() != n {
            self.agents.truncate(0);
            self.pes.truncate(0);
            self.scopes.truncate(0);
        }
        for pe in (self.pes.len()..n).map(PeId::new) {
            let scopes = [(); 3].map(|()| self.scopes.push(pe));
            let host = self.agents.push(Agent::new(pe, AgentKind::Host, scopes[0]));
            self.pes.push(PeState::new(host, scopes));
        }
        for pe in self.pes.ids() {
            let state = &mut self.pes[pe];
            state.reset(self.mode.initialized.is_some());
            self.agents[state.host].reset(pe, AgentKind::Host, state.host_scope);
        }
    }

    /// The host of a PE.
    pub(crate) fn host(&self, pe: PeId) -> AgentId {
        self.pes[pe].host
    }

    /// The PE whose host is to be resumed with its reply; streams that can go on do so on the way.
    #[inline]
    pub(crate) fn next_host(&mut self) -> Option<PeId> {
        while let Some(agent) = self.woken.pop_front() {
            match self.agents[agent].kind {
                AgentKind::Host => {
                    self.turn_ends = self.turn_end();
                    return Some(self.agents[agent].pe);
                }
                AgentKind::Stream(_) | AgentKind::Thread(_) => self.run_stream(agent),
                AgentKind::Block(_) => self.run_block(agent),
            }
        }
        None
    }

    /// What the host's call returned.
    #[inline]
    pub(crate) fn reply(&mut self, host: AgentId) -> Reply {
        std::mem::take(&mut self.agents[host].reply)
    }

    /// A host makes a call.
    ///
    /// `Blocked`: [`Machine::next_host`] or [`Machine::take`] will name the host again; if [`Machine::is_chosen`] then,
    /// the call is to be performed, else it has ended.
    #[inline(always)] // as its only caller
    pub(crate) fn submit(&mut self, host: AgentId, call: &mut Call<'_>, at: At) -> Progress {
        self.agents[host].at = Some(at);
        self.step();
        // asked first: once others have been given the call, the compiler does not know its kind any more
        let is_choice = self.mode.needs.relaxed && self.is_choice(host, call);
        if !self.registrations.is_empty() && self.exchanges(host, call) {
            return Progress::Blocked;
        }
        if self.agents.len() > self.pes.len()
            && let Some(peer) = self.waits_for_starts(host, call)
        {
            self.await_starts(host, call, peer, at);
            return Progress::Blocked;
        }
        let again = self.mode.needs.tracking && self.polls_again(host, call, at);
        if again || is_choice {
            self.make_pending(host);
            self.count_call(host, call, at);
            self.agents[host].call = call.name(); // the step is that of the call
            if self.mode.needs.aiming {
                self.aim(host, call);
            }
            return Progress::Blocked;
        }
        let progress = self.perform(host, call, at);
        match progress {
            Progress::Done if self.steps < self.turn_ends => Progress::Done,
            Progress::Done => {
                self.count_call(host, call, at);
                self.woken.push_back(host);
                Progress::DoneLater
            }
            blocked => {
                self.count_call(host, call, at);
                self.agents[host].call = call.name();
                blocked
            }
        }
    }

    /// One more step.
    #[inline]
    fn step(&mut self) {
        self.steps += 1;
        self.races.at_step(self.steps);
    }

    /// The races that were found.
    pub(crate) fn races(&self) -> Vec<Race> {
        let kernels = (|agent| self.thread_of(agent), |agent| self.launch_of(agent));
        self.races.races(|alloc| self.heap.made_at(alloc), kernels)
    }

    /// Whether the host was resumed because its step was chosen.
    #[inline]
    pub(crate) fn is_chosen(&mut self, host: AgentId) -> bool {
        std::mem::take(&mut self.agents[host].chosen)
    }

    /// Performs the host's call that was chosen.
    #[inline(always)] // as its only caller
    pub(crate) fn perform_chosen(&mut self, host: AgentId, call: &mut Call<'_>, at: At) -> Progress {
        let progress = self.perform(host, call, at);
        self.in_chosen_step = false; // what the host does next is no part of the step
        progress
    }

    /// Does what the call says, now.
    #[inline(always)] // as its callers
    fn perform(&mut self, host: AgentId, call: &mut Call<'_>, at: At) -> Progress {
        if self.record.is_some() {
            self.record_call(host, call, at);
        }
        match call {
            Call::Issue { op, values, stream: None } => self.issue(host, op, values, at),
            Call::Read { src, pe: of, dtype, into } => self.load(host, PeId(*of), *src, *dtype, into, at),
            Call::Write { dst, pe: of, from, dtype } if PeId(*of) == self.agents[host].pe => {
                self.observe(host, PeId(*of), *dst, How::Write, dtype.size(), ("write", at));
                self.write(PeId(*of), *dst, from);
                Progress::Done
            }
            rare => self.perform_rare(host, rare, at),
        }
    }

    fn perform_rare(&mut self, host: AgentId, call: &mut Call<'_>, at: At) -> Progress {
        let pe = self.agents[host].pe;
        let call_name = call.name();
        match call {
            Call::Issue { op, values, stream: Some(stream) } => self.enqueue_op(pe, *stream, op, values, at),
            Call::Write { dst, pe: of, dtype, from } => {
                self.store(host, PeId(*of), *dst, *dtype, from, at);
                Progress::Done
            }
            Call::MulticastWrite { team, dst, dtype, from } => {
                self.multicast_write(host, *team, (*dst, *dtype), from, at)
            }
            Call::MulticastRead { team, src, dtype, op, into } => {
                self.multicast_read(host, *team, (*src, *dtype, *op), into, (call_name, at))
            }
            Call::Stream => self.new_stream(host, at),
            Call::Synchronize { stream } => self.synchronize(host, *stream),
            Call::Event => {
                let events = &mut self.pes[pe].events;
                events.push(Vec::new());
                let event = events.len() as u64 - 1;
                self.answer(host, Reply::Value(event))
            }
            Call::Record { event, stream } => self.enqueue_record(pe, *event, *stream, at),
            Call::Launch { request, stream } => self.enqueue_kernel(host, *stream, request, at),
            Call::WaitEvent { event, stream } => self.enqueue_wait_event(pe, *event, *stream, at),
            Call::SynchronizeEvent { event } => {
                let record = self.last_record(pe, *event);
                self.wait_event(host, *event, record)
            }
            _ => self.live(host, call, at),
        }
    }

    /// Ends an agent's call: the host is resumed, the stream goes on.
    fn finish(&mut self, agent: AgentId) {
        if self.record.is_some() {
            self.record_return(agent);
        }
        let state = &mut self.agents[agent];
        state.set(State::Running);
        let pe = state.pe;
        match state.kind {
            AgentKind::Host if self.pes[pe].leaving => state.set(State::Done),
            AgentKind::Host => self.woken.push_back(agent),
            AgentKind::Stream(_) => {
                self.stream_op_finished(agent);
                self.woken.push_back(agent);
            }
            AgentKind::Thread(_) if !state.queue.is_empty() => self.woken.push_back(agent), // its call begins
            AgentKind::Thread(_) => match self.calls(agent) {
                true => self.stream_op_finished(agent),
                false => self.thread_stops(agent), // its stores have arrived
            },
            AgentKind::Block(_) => self.woken.push_back(agent), // likewise
        }
    }

    /// Sets a host's reply and is done.
    fn answer(&mut self, agent: AgentId, reply: Reply) -> Progress {
        self.agents[agent].answer(reply);
        Progress::Done
    }

    fn block(&mut self, agent: AgentId, state: State) -> Progress {
        self.agents[agent].set(state);
        Progress::Blocked
    }

    /// Ends the run with a bug of the whole program.
    fn found(&mut self, kind: VerdictKind) {
        if self.finding.is_none() {
            self.finding = Some(kind);
            self.turn_ends = 0;
        }
    }

    /// The bug that ends the run, if one was found.
    #[inline]
    pub(crate) fn has_finding(&self) -> bool {
        self.finding.is_some()
    }

    pub(crate) fn take_finding(&mut self) -> Option<VerdictKind> {
        self.finding.take()
    }

    /// How the run ends where nothing can go on: as `kind` says, unless a PE has ended the job before that.
    pub(crate) fn ends_as(&mut self, kind: VerdictKind) -> VerdictKind {
        self.exited.take().unwrap_or(kind)
    }

    /// A host's program has returned. If it has called `finalize` as its last, the host ends with that.
    pub(crate) fn host_returned(&mut self, pe: PeId) {
        let host = &mut self.agents[self.pes[pe].host];
        if !self.pes[pe].leaving {
            host.state = State::Done;
        }
    }

    /// Whether every host has returned and every stream is idle.
    pub(crate) fn is_over(&self) -> bool {
        self.agents.iter().all(|agent| match agent.kind {
            AgentKind::Host => matches!(agent.state, State::Done),
            AgentKind::Stream(_) | AgentKind::Block(_) | AgentKind::Thread(_) => agent.is_idle(),
        })
    }

    /// The trace, if the run was recorded, and what the PE that failed has read last.
    pub(crate) fn take_trace(&mut self, failed: Option<usize>) -> Option<(Vec<Event>, Vec<LastRead>)> {
        let record = self.record.take()?;
        Some(record.into_trace(&|alloc| self.heap.made(alloc), failed))
    }

    /// A buffer that a reply carried is used again.
    pub(crate) fn recycle(&mut self, bytes: Vec<u8>) {
        self.flight.recycle(bytes);
    }
}
