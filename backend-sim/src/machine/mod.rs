//! The machine: all state of a simulated cluster, and what each step does to it.
//!
//! Small-step semantics without coroutines, clocks or choices. A host asks with [`Machine::submit`]; what touches
//! memory becomes one of [`Machine::choices`], which somebody else picks from; [`Machine::take`] does it.
//!
//! | file | what it does |
//! |---|---|
//! | `agent.rs` | hosts and streams: what each is doing |
//! | `choice.rs` | which steps are choices, and taking one |
//! | `flight.rs` | transfers in flight; fence and quiet |
//! | `issue.rs` | an operation becomes an effect or a transfer |
//! | `deliver.rs` | a transfer's next step |
//! | `wait.rs` | waits on memory, quiet, flush, streams and events |
//! | `collective.rs` | matching: who entered what; entering, completing, leaving |
//! | `data.rs` | what collectives move |
//! | `team.rs` | teams |
//! | `life.rs` | init, finalize, allocation, registration |
//! | `report.rs` | what every agent is doing, in words |
//! | `undelivered.rs` | what was in flight at the end, and what overtook it |
//!
//! **Relaxed or in order.** In a relaxed run, a step that touches memory waits until it is chosen, and transfers are
//! delivered when that is chosen. In an in-order run every step happens at once and nothing is ever in flight: this is
//! one of the relaxed schedules, without its bookkeeping.

mod agent;
mod choice;
mod collective;
mod data;
mod deliver;
mod flight;
mod issue;
mod life;
mod report;
mod team;
mod undelivered;
mod wait;

use std::collections::VecDeque;

use onesided::backend::{AllocId, Span};
use onesided::{At, Error, ErrorKind};

use crate::config::Config;
use crate::heap::Heap;
use crate::profile::Rules;
use crate::request::{Call, Reply};
use crate::trace::{Event, EventKind, compared};
use crate::verdict::VerdictKind;
use agent::{Agent, Condition, NONE, OwnedValues, Phase, Work};
use collective::Collective;
use flight::Flight;
use team::Teams;
pub(crate) use team::predefined_members;
use undelivered::Landed;

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

/// Memory that a step touched: the step's footprint, for whoever must know which steps commute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Access {
    pub(crate) pe: u32,
    pub(crate) alloc: AllocId,
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) how: Touch,
}

/// How memory was touched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Touch {
    /// Looked at.
    Read,
    /// Changed, by something that is not atomic against signals.
    Write,
    /// Changed by a signal or an atomic.
    Atomic,
    /// A wait on a signal began, which no plain write must reach while it lasts.
    Entry,
}

impl Access {
    /// Whether the order of the two matters.
    pub(crate) fn conflicts(&self, other: &Access) -> bool {
        let matters = match (self.how, other.how) {
            (Touch::Write, _) | (_, Touch::Write) => true,
            (Touch::Atomic, with) | (with, Touch::Atomic) => with != Touch::Entry,
            _ => false,
        };
        matters && self.pe == other.pe && self.alloc == other.alloc && self.start < other.end && other.start < self.end
    }
}

/// A host that never blocks lets the others go first after so many steps: polling loops make progress.
const TURN: u64 = 256;

/// Stands for the transfers of a PE's streams as a whole: a quiet on one stream and an issue on another do not commute.
const STREAM_SCOPE: AllocId = AllocId(u32::MAX);

/// Stands for the teams that are being made by `team_init`, each at its unique id.
const TEAM_INITS: AllocId = AllocId(u32::MAX - 1);

/// Stands for a PE's turns in its teams, each team at its index: what its agents enter does not commute.
const TEAM_TURNS: AllocId = AllocId(u32::MAX - 2);

/// The whole cluster.
#[derive(Debug)]
pub(crate) struct Machine {
    pub(crate) config: Config,
    pub(crate) rules: Rules,
    pub(crate) heap: Heap,
    /// Whether steps wait to be chosen.
    relaxed: bool,
    /// Whether footprints are kept.
    tracking: bool,
    /// What the step taken last touched.
    pub(crate) touched: Vec<Access>,
    agents: Vec<Agent>,
    pes: Vec<PeState>,
    flight: Flight,
    teams: Teams,
    /// Agents whose next step is a choice.
    ready: Vec<u32>,
    /// Agents that can go on without a choice.
    woken: VecDeque<u32>,
    /// The bug of the whole program, once one is found.
    finding: Option<VerdictKind>,
    leaks: Vec<(usize, onesided::backend::Live)>,
    unique_ids: u64,
    /// Steps taken, choices or not.
    pub(crate) steps: u64,
    /// When the running host lets others go first.
    turn_ends: u64,
    trace: Option<Vec<Event>>,
    landed: Landed,
}

/// What belongs to a PE besides its host.
#[derive(Debug, Default)]
struct PeState {
    /// Agents.
    streams: Vec<u32>,
    /// Per event, its records: which have been reached.
    events: Vec<Vec<bool>>,
    /// Agents that wait on this PE's memory.
    waiting: Vec<u32>,
    /// Operations called so far, on all streams.
    called: u64,
    initialized: bool,
}

impl Machine {
    pub(crate) fn new(config: Config) -> Machine {
        Machine {
            rules: config.profile.rules(),
            config,
            heap: Heap::default(),
            relaxed: false,
            tracking: false,
            touched: Vec::new(),
            agents: Vec::new(),
            pes: Vec::new(),
            flight: Flight::default(),
            teams: Teams::default(),
            ready: Vec::new(),
            woken: VecDeque::new(),
            finding: None,
            leaks: Vec::new(),
            unique_ids: 0,
            steps: 0,
            turn_ends: 0,
            trace: None,
            landed: Landed::default(),
        }
    }

    /// Back to the start of a run: every host runs, nothing is allocated.
    pub(crate) fn reset(&mut self, relaxed: bool, tracking: bool, tracing: bool) {
        let n = self.config.pes;
        self.relaxed = relaxed;
        self.tracking = tracking;
        self.touched.clear();
        self.heap.reset(n, self.config.heap, self.config.memory);
        self.agents.truncate(n);
        for (pe, agent) in self.agents.iter_mut().enumerate() {
            agent.reset(pe as u32);
        }
        for pe in self.agents.len()..n {
            self.agents.push(Agent::new(pe as u32, NONE));
        }
        self.pes.resize_with(n, PeState::default);
        for pe in &mut self.pes {
            pe.streams.clear();
            pe.events.clear();
            pe.waiting.clear();
            pe.called = 0;
            pe.initialized = false;
        }
        self.flight.reset(2 * n);
        self.teams.reset(n);
        self.ready.clear();
        self.woken.clear();
        self.woken.extend(0..n as u32);
        self.finding = None;
        self.leaks.clear();
        self.unique_ids = 0;
        self.steps = 0;
        self.trace = tracing.then(Vec::new);
        self.landed.clear();
    }

    /// The next host to be resumed with its reply; streams that can go on do so on the way.
    #[inline]
    pub(crate) fn next_host(&mut self) -> Option<u32> {
        while let Some(agent) = self.woken.pop_front() {
            if self.agents[agent as usize].is_host() {
                self.turn_ends = self.steps + TURN;
                return Some(agent);
            }
            self.run_stream(agent);
        }
        None
    }

    /// What the host's call returned.
    #[inline]
    pub(crate) fn reply(&mut self, pe: u32) -> Reply {
        std::mem::take(&mut self.agents[pe as usize].reply)
    }

    /// A host makes a call.
    ///
    /// `Blocked`: [`Machine::next_host`] or [`Machine::take`] will name the host again; if [`Machine::is_chosen`] then,
    /// the call is to be performed, else it has ended.
    #[inline(always)] // as its only caller
    pub(crate) fn submit(&mut self, pe: u32, call: &mut Call<'_>, at: At) -> Progress {
        self.agents[pe as usize].at = Some(at);
        self.steps += 1;
        if self.relaxed && self.is_choice(pe, call) {
            self.make_ready(pe, Phase::Pending);
            return Progress::Blocked;
        }
        let progress = self.perform(pe, call, at);
        match progress {
            Progress::Done if self.steps < self.turn_ends && self.finding.is_none() => Progress::Done,
            Progress::Done => {
                self.woken.push_back(pe);
                Progress::DoneLater
            }
            blocked => {
                self.agents[pe as usize].call = call.name();
                blocked
            }
        }
    }

    /// Whether the host was resumed because its step was chosen.
    #[inline]
    pub(crate) fn is_chosen(&mut self, pe: u32) -> bool {
        std::mem::take(&mut self.agents[pe as usize].chosen)
    }

    /// Does what the call says, now.
    #[inline(always)] // as its only caller
    pub(crate) fn perform(&mut self, pe: u32, call: &mut Call<'_>, at: At) -> Progress {
        if self.trace.is_some() {
            self.trace_call(pe, call, at);
        }
        match call {
            Call::Issue { op, values, stream: None } => self.issue(pe, op, values, at),
            Call::Read { src, pe: of, into, .. } => {
                self.touch(*of, *src, false);
                copy_bytes(into, self.heap.bytes(*of, *src));
                Progress::Done
            }
            Call::Write { dst, pe: of, from, .. } if *of == pe => {
                self.touch(pe, *dst, true);
                copy_bytes(self.heap.bytes_mut(pe, *dst), from);
                self.wrote(pe, *dst);
                Progress::Done
            }
            rare => self.perform_rare(pe, rare, at),
        }
    }

    fn perform_rare(&mut self, pe: u32, call: &mut Call<'_>, at: At) -> Progress {
        match call {
            Call::Issue { op, values, stream: Some(stream) } => {
                let called = &mut self.pes[pe as usize].called;
                *called += 1;
                let work = Work::Op { op: **op, values: OwnedValues::new(values), at, called: *called };
                self.enqueue(pe, *stream, work)
            }
            Call::Write { dst, pe: of, dtype, from } => self.store_remote(pe, *of, *dst, *dtype, from, at),
            Call::MulticastWrite { team, dst, dtype, from } => {
                for of in self.team_members(pe, *team).iter() {
                    self.store_remote(pe, of as u32, *dst, *dtype, from, at);
                }
                Progress::Done
            }
            Call::MulticastRead { team, src, dtype, op, into } => {
                for (i, of) in self.team_members(pe, *team).iter().enumerate() {
                    self.touch(of as u32, *src, false);
                    let bytes = self.heap.bytes(of as u32, *src);
                    match i {
                        0 => into.copy_from_slice(bytes),
                        _ => crate::reduce::combine(*dtype, *op, into, bytes),
                    }
                }
                Progress::Done
            }
            Call::Stream => {
                let reply = match self.new_stream(pe) {
                    Some(stream) => Reply::Value(u64::from(stream)),
                    None => {
                        let message = format!("a PE has at most {} streams in the simulator", wait::MAX_STREAMS);
                        Reply::Failed(Error::new(ErrorKind::Unsupported, "stream", message, at))
                    }
                };
                self.answer(pe, reply)
            }
            Call::Synchronize { stream } => self.synchronize(pe, *stream),
            Call::Event => {
                let events = &mut self.pes[pe as usize].events;
                events.push(Vec::new());
                let event = events.len() as u64 - 1;
                self.answer(pe, Reply::Value(event))
            }
            Call::Record { event, stream } => self.enqueue_record(pe, *event, *stream, at),
            Call::WaitEvent { event, stream } => {
                let record = self.last_record(pe, *event);
                self.enqueue(pe, *stream, Work::WaitEvent { event: *event, record, at })
            }
            Call::SynchronizeEvent { event } => {
                let record = self.last_record(pe, *event);
                self.wait_event(pe, *event, record)
            }
            _ => self.live(pe, call, at),
        }
    }

    /// Ends an agent's call: the host is resumed, the stream goes on.
    fn finish(&mut self, agent: u32) {
        let state = &mut self.agents[agent as usize];
        state.phase = Phase::Running;
        if !state.is_host() {
            self.stream_op_finished(agent);
        }
        self.woken.push_back(agent);
    }

    /// Sets a host's reply and is done.
    fn answer(&mut self, agent: u32, reply: Reply) -> Progress {
        self.agents[agent as usize].reply = reply;
        Progress::Done
    }

    fn block(&mut self, agent: u32, phase: Phase) -> Progress {
        self.agents[agent as usize].phase = phase;
        Progress::Blocked
    }

    /// Notes memory that the step in progress reads or plainly writes.
    #[inline]
    fn touch(&mut self, pe: u32, span: Span, write: bool) {
        self.touch_as(pe, span, if write { Touch::Write } else { Touch::Read });
    }

    /// Notes memory that the step in progress touches. Steps that are no choices count to the choice before them.
    #[inline]
    fn touch_as(&mut self, pe: u32, span: Span, how: Touch) {
        if self.tracking {
            let (start, end) = (span.start, span.start + span.len);
            self.touched.push(Access { pe, alloc: span.alloc, start, end, how });
        }
    }

    /// Notes that the step works on the transfers of a scope that several streams share.
    fn touch_scope(&mut self, agent: u32, write: bool) {
        if self.tracking && self.shares_scope(agent) {
            let pe = self.agents[agent as usize].pe;
            let how = if write { Touch::Write } else { Touch::Read };
            self.touched.push(Access { pe, alloc: STREAM_SCOPE, start: 0, end: 1, how });
        }
    }

    /// Notes that the step joins a team that is being made.
    fn touch_team_init(&mut self, unique_id: u64) {
        if self.tracking {
            let start = unique_id as usize;
            let end = start.saturating_add(1);
            self.touched.push(Access { pe: 0, alloc: TEAM_INITS, start, end, how: Touch::Write });
        }
    }

    /// Ends the run with a bug of the whole program.
    fn found(&mut self, kind: VerdictKind) {
        if self.finding.is_none() {
            self.finding = Some(kind);
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

    /// A host's program has returned.
    pub(crate) fn host_returned(&mut self, pe: u32) {
        self.agents[pe as usize].phase = Phase::Done;
    }

    /// Whether every host has returned and every stream is idle.
    pub(crate) fn is_over(&self) -> bool {
        let n = self.config.pes;
        self.agents[..n].iter().all(|host| host.phase == Phase::Done)
            && self.agents[n..].iter().all(|stream| stream.is_idle())
    }

    #[cold]
    fn trace_call(&mut self, pe: u32, call: &Call<'_>, at: At) {
        let kind = match call {
            Call::Issue { op, values, stream: None } => EventKind::Op { op: **op, values: compared(op, values) },
            Call::Issue { op, values, stream: Some(stream) } => {
                EventKind::Enqueued { stream: *stream, op: **op, values: compared(op, values) }
            }
            Call::Read { src, pe: of, dtype, .. } => EventKind::Read { of: *of, span: *src, dtype: *dtype },
            Call::Write { dst, pe: of, dtype, .. } => EventKind::Write { of: *of, span: *dst, dtype: *dtype },
            other => EventKind::Call(other.name()),
        };
        self.record(pe, kind, at);
    }

    /// Adds an event of an agent to the trace, if there is one.
    #[inline]
    fn record(&mut self, agent: u32, kind: EventKind, at: At) {
        if let Some(trace) = &mut self.trace {
            let Agent { pe, stream, .. } = self.agents[agent as usize];
            trace.push(Event { step: self.steps, pe, stream: (stream != NONE).then_some(stream), kind, at });
        }
    }

    pub(crate) fn take_trace(&mut self) -> Option<Vec<Event>> {
        self.trace.take()
    }
}

/// Copies bytes; a single word without calling memcpy.
#[inline]
fn copy_bytes(to: &mut [u8], from: &[u8]) {
    match (<&mut [u8; 8]>::try_from(&mut *to), <&[u8; 8]>::try_from(from)) {
        (Ok(to), Ok(from)) => *to = *from,
        _ => to.copy_from_slice(from),
    }
}
