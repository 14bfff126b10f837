//! What a recorded run keeps: the trace, and who in it belongs to whom.
//!
//! Everything here is cold: nothing of it is called unless the run is recorded. An event is noted before the step that it is
//! about, because values that are read are those of before the step.

use std::collections::{BTreeMap, VecDeque};

use onesided::At;
use onesided::DType;
use onesided::backend::{Effect, Moves, Op, Shape, SignalUpdate, Span, Values};

use super::agent::{State, Task};
use super::ids::{AgentId, PeId, TeamIndex, TransferId};
use super::kernel::{Accesses, left_by};
use super::transfer::{Data, Kind, Part, Transfer, Unit, UnitStep, element, part_of};
use super::{Id as _, Machine};
use crate::request::Call;
use crate::trace::{Event, EventKind, LastRead, Made, Moved, compared, name_origins, name_what_ended_waits};

/// A recorded run so far.
#[derive(Debug, Default)]
pub(super) struct Record {
    pub(super) trace: Vec<Event>,
    /// The event of each agent's last call, or of a stream's last operation.
    calls: BTreeMap<AgentId, usize>,
    /// The last event of each agent.
    last: BTreeMap<AgentId, usize>,
    /// The calls that enqueued what a stream has not started.
    enqueued: BTreeMap<AgentId, VecDeque<usize>>,
    /// The event of the call that issued a transfer, by the transfer's name, and the type of what moves.
    issued: BTreeMap<u64, (usize, DType)>,
    /// The first entry into a collective, and the entries of its members.
    meetings: BTreeMap<(TeamIndex, u32), usize>,
    entries: BTreeMap<(TeamIndex, u32, u32), usize>,
    /// Where a stream reached a record of an event, by PE, event and number of the record.
    reached: BTreeMap<(PeId, u32, usize), usize>,
    /// What kernels have accessed by themselves.
    pub(super) accesses: Accesses,
}

impl Record {
    /// The trace, and what a PE that failed has read last.
    pub(super) fn into_trace(mut self, made: Made<'_>, failed: Option<usize>) -> (Vec<Event>, Vec<LastRead>) {
        name_what_ended_waits(&mut self.trace);
        let reads = name_origins(&mut self.trace, made, failed);
        (self.trace, reads)
    }

    /// The step in which a transfer of this name was issued, if its PE's host or stream has issued others by that line before.
    pub(super) fn issued_again(&self, key: u64) -> Option<u64> {
        let (of, _) = *self.issued.get(&key)?;
        let Event { at, pe, stream, step, .. } = self.trace[of];
        let issues =
            |kind: &EventKind| matches!(kind, EventKind::Op { .. } | EventKind::Write { .. } | EventKind::Loads { .. });
        let is_same = |event: &Event| issues(&event.kind) && (event.at, event.pe, event.stream) == (at, pe, stream);
        self.trace[..of].iter().any(is_same).then_some(step)
    }

    fn call_of(&self, agent: AgentId) -> Option<usize> {
        self.calls.get(&agent).copied()
    }
}

/// # Events
impl Machine {
    /// Adds an event, and returns its number.
    fn note(&mut self, pe: PeId, stream: Option<u32>, kind: EventKind, at: At) -> &mut Event {
        let step = self.steps;
        let trace = &mut self.record.as_mut().expect("the run is recorded").trace;
        let (pe, thread) = (pe.0, None);
        trace.push(Event {
            step,
            pe,
            stream,
            thread,
            kind,
            at,
            of: None,
            moved: None,
            unwritten: None,
            implied: false,
        });
        trace.last_mut().expect("just added")
    }

    fn number_of_last(&self) -> usize {
        self.record.as_ref().map_or(0, |record| record.trace.len() - 1)
    }

    /// Adds an event of an agent.
    pub(super) fn note_by(&mut self, agent: AgentId, kind: EventKind, at: At) -> &mut Event {
        let (pe, stream, thread) = (self.agents[agent].pe, self.agents[agent].stream(), self.thread_of(agent));
        let record = self.record.as_mut().expect("the run is recorded");
        record.last.insert(agent, record.trace.len());
        let event = self.note(pe, stream, kind, at);
        event.thread = thread;
        event
    }

    /// Adds the call that an agent performs now.
    fn note_call(&mut self, agent: AgentId, kind: EventKind, at: At, moved: Option<Moved>) {
        self.note_by(agent, kind, at).moved = moved;
        let number = self.number_of_last();
        self.record.as_mut().expect("the run is recorded").calls.insert(agent, number);
    }

    /// Adds a step of what an agent's call does, which happens with the call.
    fn note_at_once(&mut self, agent: AgentId, kind: EventKind, at: At, moved: Moved) {
        let (pe, of) = (self.agents[agent].pe, self.record.as_ref().and_then(|record| record.call_of(agent)));
        let event = self.note(pe, None, kind, at);
        (event.of, event.moved, event.implied) = (of, Some(moved), true);
    }

    /// Every PE is initialized where the run begins.
    pub(super) fn record_init(&mut self, at: At) {
        if self.record.is_some() {
            for pe in self.pes.ids() {
                self.note_call(self.pes[pe].host, EventKind::Call("init"), at, None);
            }
        }
    }

    /// A call that the machine makes for a host.
    pub(super) fn record_named(&mut self, host: AgentId, name: &'static str, at: At) {
        if self.record.is_some() {
            self.note_call(host, EventKind::Call(name), at, None);
        }
    }
}

/// # Calls
impl Machine {
    /// A host performs a call.
    #[cold]
    pub(super) fn record_call(&mut self, host: AgentId, call: &Call<'_>, at: At) {
        let me = self.agents[host].pe;
        match call {
            Call::Issue { op, values, stream: None } => self.record_op(host, op, values, None, at),
            Call::Issue { op, values, stream: Some(stream) } => {
                let kind = EventKind::Enqueued { stream: *stream, op: **op, values: compared(op, values) };
                self.note_call(host, kind, at, None);
                self.note_enqueued(me, *stream);
            }
            Call::Read { src, pe: of, dtype, .. } if self.is_in_pieces(*src, *dtype) => {
                self.note_call(host, EventKind::Loads { of: *of, span: *src, dtype: *dtype }, at, None);
                let number = self.number_of_last();
                self.record.as_mut().expect("the run is recorded").trace[number].implied = true; // its pieces are events
            }
            Call::Read { src, pe: of, dtype, .. } => {
                let mut bytes = self.heap.bytes(PeId(*of), *src).to_vec();
                if self.mode.needs.relaxed && PeId(*of) != me {
                    self.show(me, PeId(*of), *src, &mut bytes);
                    self.flight.lay_stores_over(self.agents[host].scope, PeId(*of), *src, &mut bytes);
                }
                let kind = EventKind::Read { of: *of, span: *src, dtype: *dtype, piece: 0, pieces: 1 };
                self.note_call(host, kind, at, Some(Moved::new(*dtype, &bytes)));
            }
            Call::Write { dst, pe: of, dtype, from } => {
                let kind = EventKind::Write { of: *of, span: *dst, dtype: *dtype };
                self.note_call(host, kind, at, Some(Moved::new(*dtype, from)));
                if PeId(*of) != me {
                    self.record_store(host, *of, *dst, Moved::new(*dtype, from), at);
                }
            }
            Call::MulticastWrite { team, dst, dtype, from } => {
                self.note_call(host, EventKind::Call(call.name()), at, Some(Moved::new(*dtype, from)));
                for of in self.team_members(me, *team).iter() {
                    self.record_store(host, of as u32, *dst, Moved::new(*dtype, from), at);
                }
            }
            Call::Record { stream, .. } | Call::WaitEvent { stream, .. } => {
                self.note_call(host, EventKind::Call(call.name()), at, None);
                self.note_enqueued(me, *stream);
            }
            other => self.note_call(host, EventKind::Call(other.name()), at, None),
        }
    }

    /// In order, a store to another PE's memory arrives with its call.
    fn record_store(&mut self, host: AgentId, to: u32, span: Span, moved: Moved, at: At) {
        if !self.mode.needs.relaxed {
            self.note_at_once(host, EventKind::Delivered { to, span, piece: 0, pieces: 1 }, at, moved);
        }
    }

    /// A host, or a stream for the call `of`, performs an operation.
    fn record_op(&mut self, agent: AgentId, op: &Op, values: &Values<'_>, of: Option<usize>, at: At) {
        let (pe, effect) = (self.agents[agent].pe, op.effect());
        let moved = match effect {
            Effect::FetchSignal { word } => Some(Moved::one(DType::U64, self.heap.load(pe, word))),
            Effect::Fill { .. } => op.dtype().map(|dtype| Moved::new(dtype, values.bytes)),
            Effect::Transfer(transfer) => match transfer.moves {
                Moves::Value(value) => Some(Moved::one(transfer.dtype, value)),
                Moves::Put { src }
                    if !self.mode.needs.relaxed || self.is_read_at_once(transfer.shape) && !transfer.nbi =>
                {
                    Some(Moved::new(transfer.dtype, &self.gathered(pe, src, transfer.shape, 0..transfer.shape.count)))
                }
                _ => None,
            },
            _ => None,
        };
        self.note_call(agent, EventKind::Op { op: *op, values: compared(op, values) }, at, moved);
        let number = self.number_of_last();
        self.record.as_mut().expect("the run is recorded").trace[number].of = of;
        if let (Effect::Transfer(transfer), false) = (effect, self.mode.needs.relaxed) {
            self.record_transfer_now(agent, &transfer, at);
        }
    }

    /// The steps of a transfer that happens with its call.
    fn record_transfer_now(&mut self, agent: AgentId, transfer: &onesided::backend::Transfer, at: At) {
        let me = self.agents[agent].pe;
        let onesided::backend::Transfer { moves, remote, shape, signal, dtype, peer, .. } = *transfer;
        let remote_bytes = || self.gathered(PeId(peer), remote, shape, 0..shape.count);
        let delivered = match moves {
            _ if shape.count == 0 => None,
            Moves::Put { src } => {
                Some((peer, remote, Moved::new(dtype, &self.gathered(me, src, shape, 0..shape.count))))
            }
            Moves::Value(value) => Some((peer, remote, Moved::one(dtype, value))),
            Moves::Get { dst } => Some((me.0, dst, Moved::new(dtype, &remote_bytes()))),
            Moves::Fetch => Some((peer, remote, Moved::new(dtype, &remote_bytes()))),
            Moves::Amo { op, value, cond } => {
                let old = self.heap.load(PeId(peer), remote);
                Some((peer, remote, Moved::update(dtype, old, op.apply(old, value, cond, remote.len))))
            }
            Moves::Nothing => None,
        };
        if let Some((to, span, moved)) = delivered {
            self.note_at_once(agent, EventKind::Delivered { to, span, piece: 0, pieces: 1 }, at, moved);
        }
        if let Some(update) = signal {
            let moved = self.signal_update(PeId(peer), update);
            self.note_at_once(agent, EventKind::Signaled { to: peer, update }, at, moved);
        }
    }

    fn signal_update(&self, pe: PeId, SignalUpdate { word, value, op }: SignalUpdate) -> Moved {
        let old = self.heap.load(pe, word);
        Moved::update(DType::U64, old, op.apply(old, value))
    }

    /// Elements of a source, one behind the other.
    fn gathered(&self, pe: PeId, src: Span, shape: Shape, elements: std::ops::Range<usize>) -> Vec<u8> {
        if shape.src_stride == 1 {
            return self
                .heap
                .bytes(pe, part_of(src, elements.start * shape.size, elements.len() * shape.size))
                .to_vec();
        }
        let each = elements.map(|i| element(src, i * shape.src_stride, shape.size));
        each.flat_map(|element| self.heap.bytes(pe, element).iter().copied()).collect()
    }
}

/// # Streams and ends of calls
impl Machine {
    fn note_enqueued(&mut self, pe: PeId, stream: u32) {
        let (number, stream) = (self.number_of_last(), self.pes[pe].streams[stream as usize]);
        let record = self.record.as_mut().expect("the run is recorded");
        record.enqueued.entry(stream).or_default().push_back(number);
    }

    /// A stream starts what was enqueued first.
    #[cold]
    pub(super) fn record_started(&mut self, stream: AgentId, what: &Task, at: At) {
        let record = self.record.as_mut().expect("the run is recorded");
        let of = record.enqueued.get_mut(&stream).and_then(VecDeque::pop_front);
        match what {
            Task::Op { op, values, .. } => self.record_op(stream, op, &values.borrow(), of, at),
            Task::Record { .. } | Task::WaitEvent { .. } | Task::Launch(_) | Task::Look(_) => {
                self.note_call(stream, EventKind::Call(what.name()), at, None);
                let number = self.number_of_last();
                let record = self.record.as_mut().expect("the run is recorded");
                (record.trace[number].of, record.trace[number].implied) = (of, true);
                if let Task::Record { event, record: which } = *what {
                    record.reached.insert((self.agents[stream].pe, event, which), number);
                }
            }
        }
    }

    /// An agent's call is over that had to wait. A step that was merely put off did not wait.
    #[cold]
    pub(super) fn record_return(&mut self, agent: AgentId) {
        let by = match self.agents[agent].state {
            State::Running | State::Waiting(_) => return, // a wait says itself what it saw
            State::Synchronizing { stream, .. } => self.last_of(stream),
            State::AwaitingEvent { event, record } => self.reached(agent, event, record),
            _ => None,
        };
        self.note_return(agent, None, by, None);
    }

    /// A host's call finds that what it would wait for has happened.
    pub(super) fn record_synchronized(&mut self, host: AgentId, stream: AgentId) {
        if self.record.is_some() {
            self.note_return(host, None, self.last_of(stream), None);
        }
    }

    /// The same of a record of an event.
    pub(super) fn record_event_reached(&mut self, agent: AgentId, event: u32, record: usize) {
        if self.record.is_some() {
            self.note_return(agent, None, self.reached(agent, event, record), None);
        }
    }

    /// A wait is over: it saw this value.
    pub(super) fn record_waited(&mut self, agent: AgentId, variable: Span, dtype: DType, value: u64) {
        if self.record.is_some() {
            self.note_return(agent, Some(variable), None, Some(Moved::one(dtype, value)));
        }
    }

    fn note_return(&mut self, agent: AgentId, variable: Option<Span>, by: Option<usize>, moved: Option<Moved>) {
        let record = self.record.as_ref().expect("the run is recorded");
        let Some(of) = record.call_of(agent) else { return };
        let at = record.trace[of].at;
        let call = match &record.trace[of].kind {
            EventKind::Call(name) => *name,
            EventKind::Op { op, .. } | EventKind::Enqueued { op, .. } => op.name(),
            EventKind::Write { .. } => "write",
            _ => "read",
        };
        let event = self.note_by(agent, EventKind::Returned { call, variable, by }, at);
        (event.of, event.moved, event.implied) = (Some(of), moved, true);
    }

    fn last_of(&self, agent: AgentId) -> Option<usize> {
        self.record.as_ref()?.last.get(&agent).copied()
    }

    fn reached(&self, agent: AgentId, event: u32, which: usize) -> Option<usize> {
        self.record.as_ref()?.reached.get(&(self.agents[agent].pe, event, which)).copied()
    }
}

/// # Transfers and collectives
impl Machine {
    /// An agent's call issues a transfer of this name.
    #[cold]
    pub(super) fn record_issued(&mut self, agent: AgentId, key: u64) {
        let record = self.record.as_mut().expect("the run is recorded");
        let Some(of) = record.call_of(agent) else { return };
        let dtype = match (&record.trace[of].kind, &record.trace[of].moved) {
            (EventKind::Loads { dtype, .. } | EventKind::Write { dtype, .. }, _) => *dtype,
            (EventKind::Op { op, .. }, _) => op.dtype().unwrap_or(DType::U64),
            (_, moved) => moved.as_ref().map_or(DType::U8, |moved| moved.dtype),
        };
        record.issued.insert(key, (of, dtype));
    }

    /// A kernel's store becomes a transfer of this name. `event`: the access, and the type of its value.
    pub(super) fn record_sent(&mut self, key: u64, event: (usize, DType)) {
        if let Some(record) = &mut self.record {
            record.issued.insert(key, event);
        }
    }

    /// A part of a collective becomes a transfer of this name.
    #[cold]
    pub(super) fn record_part(&mut self, part: Part, key: u64, dtype: DType) {
        let record = self.record.as_mut().expect("the run is recorded");
        if let Some(&of) = record.entries.get(&(part.team, part.seq, part.from)) {
            record.issued.insert(key, (of, dtype));
        }
    }

    /// In order, a part of a collective arrives when its source's member enters.
    #[cold]
    pub(super) fn record_part_now(&mut self, part: Part, to: (PeId, Span), bytes: &[u8], dtype: DType) {
        let from = PeId::new(self.teams.get(part.team).members.get(part.from as usize));
        let record = self.record.as_ref().expect("the run is recorded");
        let Some(&of) = record.entries.get(&(part.team, part.seq, part.from)) else { return };
        let at = record.trace[of].at;
        let kind = EventKind::Delivered { to: to.0.0, span: to.1, piece: 0, pieces: 1 };
        let event = self.note(from, None, kind, at);
        (event.of, event.moved, event.implied) = (Some(of), Some(Moved::new(dtype, bytes)), true);
    }

    /// A member enters a collective.
    #[cold]
    pub(super) fn record_entry(&mut self, agent: AgentId, team: TeamIndex, seq: u32, member: u32, at: At) {
        let name = self.team_name(team);
        let record = self.record.as_mut().expect("the run is recorded");
        let (of, here) = (record.call_of(agent), record.trace.len());
        let first = *record.meetings.entry((team, seq)).or_insert(here);
        record.entries.insert((team, seq, member), here);
        let event = self.note_by(agent, EventKind::Entered { team: name, number: seq, first }, at);
        (event.of, event.implied) = (of, true);
    }

    /// A transfer takes a step.
    #[cold]
    pub(super) fn record_unit(&mut self, Unit { transfer: id, piece, step }: Unit) {
        let transfer = self.flight.get(id);
        let Transfer { key, dst_pe, src_pe, dst, src, signal, pieces, at, .. } = *transfer;
        let issued = self.record.as_ref().and_then(|record| record.issued.get(&key)).copied();
        let dtype = issued.map_or(DType::U8, |(_, dtype)| dtype);
        let (kind, moved) = match (step, transfer.kind, signal) {
            (UnitStep::Read, ..) => {
                let bytes = self.gathered(src_pe, src, transfer.shape, transfer.elements(piece));
                let kind = EventKind::SourceRead { from: src_pe.0, span: src, piece, pieces };
                (kind, Some(Moved::new(dtype, &bytes)))
            }
            (UnitStep::Signal, _, Some(update)) => {
                (EventKind::Signaled { to: dst_pe.0, update }, Some(self.signal_update(dst_pe, update)))
            }
            (UnitStep::Signal, _, None) => return,
            (UnitStep::Deliver, Kind::Combine { .. }, _) => (EventKind::Call("reduction combined"), None),
            (UnitStep::Deliver, Kind::Spread, _) => (EventKind::Call("visible on the other path"), None),
            (UnitStep::Deliver, Kind::Load { dtype }, _) => {
                let kind = EventKind::Read { of: src_pe.0, span: src, dtype, piece, pieces };
                (kind, Some(Moved::new(dtype, &self.arriving(id, piece))))
            }
            (UnitStep::Deliver, Kind::Fetch, _) => {
                let kind = EventKind::Delivered { to: src_pe.0, span: src, piece, pieces };
                (kind, Some(Moved::new(dtype, &self.arriving(id, piece))))
            }
            (UnitStep::Deliver, Kind::Amo { op, value, cond }, _) => {
                let old = self.heap.load(dst_pe, dst);
                let kind = EventKind::Delivered { to: dst_pe.0, span: dst, piece, pieces };
                (kind, Some(Moved::update(dtype, old, op.apply(old, value, cond, dst.len))))
            }
            (UnitStep::Deliver, Kind::Strong { atomic: atomic @ Some(_) }, _) => {
                let old = self.heap.load(dst_pe, dst);
                let (new, _) = left_by(atomic, (old, dst), &self.arriving(id, piece));
                let kind = EventKind::Delivered { to: dst_pe.0, span: dst, piece, pieces };
                (kind, Some(Moved::update(dtype, old, new)))
            }
            (UnitStep::Deliver, Kind::Put | Kind::Get | Kind::Store | Kind::Strong { .. }, _) => {
                let kind = EventKind::Delivered { to: dst_pe.0, span: dst, piece, pieces };
                (kind, Some(Moved::new(dtype, &self.arriving(id, piece))))
            }
        };
        let issuer = self.flight.get(id).issuing_pe();
        let event = self.note(issuer, None, kind, at);
        (event.of, event.moved) = (issued.map(|(of, _)| of), moved);
    }

    /// What a piece of a transfer brings, as it arrives now.
    fn arriving(&self, id: TransferId, piece: u16) -> Vec<u8> {
        let transfer = self.flight.get(id);
        let (src_pe, src, range) = (transfer.src_pe, transfer.src, transfer.bytes_of(piece));
        match (transfer.kind, &transfer.data) {
            (Kind::Load { .. }, _) => {
                let span = part_of(src, range.start, range.len());
                let mut bytes = self.heap.bytes(src_pe, span).to_vec();
                if src_pe != transfer.dst_pe {
                    self.show(transfer.dst_pe, src_pe, span, &mut bytes);
                    let scope = self.pes[transfer.dst_pe].host_scope;
                    self.flight.lay_stores_over(scope, src_pe, span, &mut bytes);
                }
                bytes
            }
            (Kind::Put | Kind::Store, Data::Word(value)) => value.to_le_bytes()[..transfer.shape.size.min(8)].to_vec(),
            (Kind::Put | Kind::Store | Kind::Strong { .. }, Data::Bytes(bytes)) => bytes[range].to_vec(),
            (kind, _) => {
                let (shape, elements) = (transfer.shape, transfer.elements(piece));
                let mut bytes = self.gathered(src_pe, src, shape, elements.clone());
                if let Kind::Get | Kind::Fetch = kind {
                    for (i, value) in elements.zip(bytes.chunks_exact_mut(shape.size)) {
                        self.show(transfer.dst_pe, src_pe, element(src, i * shape.src_stride, shape.size), value);
                    }
                }
                bytes
            }
        }
    }
}
