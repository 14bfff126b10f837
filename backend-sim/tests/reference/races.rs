//! Races: two steps can come next, in either order, and both touch a word that one of them writes.
//!
//! No clocks are needed. If nothing orders two accesses of some run, then there is also a run in which one comes right after the
//! other; and before that, both can come next. So the model looks at each of its states for such a pair of steps.

use onesided::backend::AmoOp;

use super::plan::{Place, Plan, Task};
use super::program::Op;
use super::state::{State, Step};
use super::transfers::{Issuer, Kind, Transfer};

/// A step touches a word.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Access {
    /// In the memory of all PEs.
    word: usize,
    writes: bool,
    how: How,
    /// Where there are two fabrics: whether another node's PEs see it, or those of the word's own node; `None`: both.
    far: Option<bool>,
    /// It is no access yet, but the issue of a transfer to this PE by this scope: the order of issue is that of arrival.
    queue: Option<(usize, usize)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum How {
    Plain,
    /// Signals, atomic operations, and waits for signals.
    Atomic,
    /// A put delivers a whole word.
    Put,
    /// A wait for an ordinary word: it may look at what puts deliver.
    Wait,
    /// Through a pointer, by this agent.
    Pointer(usize),
}

impl Access {
    fn of(how: How, writes: bool, words: impl IntoIterator<Item = usize>) -> Vec<Access> {
        words.into_iter().map(|word| Access { word, writes, how, far: None, queue: None }).collect()
    }

    /// The readers of a path begin to see what another path brought.
    pub(crate) fn pass((far, word): (bool, usize)) -> Vec<Access> {
        vec![Access { word, writes: true, how: How::Plain, far: Some(far), queue: None }]
    }

    fn races_with(&self, other: &Access) -> bool {
        let same_path = self.far.is_none_or(|far| other.far.is_none_or(|other| far == other));
        let meet = self.word == other.word && (self.writes || other.writes) && same_path;
        let in_order = match (self.how, other.how) {
            (How::Atomic | How::Wait, How::Atomic | How::Wait) => true,
            (How::Put, How::Wait) | (How::Wait, How::Put) => true,
            // an agent's stores and loads are its own program's order, also while they are on their way
            (How::Pointer(agent), How::Pointer(other)) => agent == other,
            _ => false,
        };
        meet && self.queue == other.queue && !in_order
    }
}

/// Whether two of the steps that can come next race.
pub(crate) fn have_a_race(next: &[Step]) -> bool {
    let race = |one: &Step, other: &Step| {
        one.accesses.iter().any(|access| other.accesses.iter().any(|other| access.races_with(other)))
    };
    next.iter().enumerate().any(|(i, one)| next[..i].iter().any(|other| race(one, other)))
}

impl Plan {
    /// What an agent touches in the step that begins an operation, which has led to `state`.
    pub(crate) fn begin_touches(&self, state: &State, agent: usize, op: &Op) -> Vec<Access> {
        let mut touched = self.begin_reads_or_writes(state, agent, op);
        let issued = state.flying.iter().find(|transfer| self.is_last_of(state, agent, transfer));
        if let Some(issued) = issued.filter(|issued| self.rules.same_target_in_order && !issued.nbi)
            && issued.is_ordered_by_fences()
        {
            touched.extend(self.will_touch(state, agent, issued));
        }
        touched
    }

    /// What a transfer will touch at its target, in the order of issue.
    fn will_touch(&self, state: &State, agent: usize, issued: &Transfer) -> Vec<Access> {
        let pieces = issued.elements.last().map_or(0, |last| last.piece + 1);
        let signal = issued.signal.map(|update| self.signal_touches(self.place(issued.target, update.word)));
        let deliveries = (0..pieces).flat_map(|piece| self.delivery_touches(state, issued, piece));
        let queue = Some((self.scope(agent), issued.target));
        deliveries.chain(signal.into_iter().flatten()).map(|access| Access { queue, ..access }).collect()
    }

    fn begin_reads_or_writes(&self, state: &State, agent: usize, op: &Op) -> Vec<Access> {
        let mine = |word: usize| self.place(self.agents[agent].pe, word);
        let waits = |signal: bool| if signal { How::Atomic } else { How::Wait };
        match *op {
            Op::Write { dst, len, .. } => Access::of(How::Plain, true, (dst..dst + len).map(mine)),
            Op::PeerStore { to, dst, len, .. } if to == self.agents[agent].pe => {
                Access::of(How::Plain, true, (dst..dst + len).map(mine))
            }
            Op::Put { .. } | Op::IPut { .. } => {
                let put = state.flying.iter().find(|transfer| self.is_last_of(state, agent, transfer));
                let read = put.into_iter().flat_map(|put| &put.elements).filter(|element| element.read.is_some());
                Access::of(How::Plain, false, read.map(|element| element.from))
            }
            Op::Wait { word, signal, .. } => Access::of(waits(signal), false, [mine(word)]),
            Op::WaitAll { word, values, .. } => {
                let looked_at = (0..2).filter(|&variable| values[variable].is_some());
                Access::of(How::Wait, false, looked_at.map(|variable| mine(word + variable)))
            }
            _ => Vec::new(),
        }
    }

    fn is_last_of(&self, state: &State, agent: usize, transfer: &Transfer) -> bool {
        let last = Place { agent, index: state.agents[agent].begun - 1 };
        matches!(transfer.issuer, Issuer::Agent { place, .. } if place == last)
    }

    /// What a wait or a poll touches when it looks at a variable.
    pub(crate) fn look_touches(&self, agent: usize, op: &Op, variable: usize) -> Vec<Access> {
        let (how, word) = match *op {
            Op::Poll { word, also, .. } => (How::Atomic, if variable == 0 { Some(word) } else { also }),
            Op::Wait { word, signal: true, .. } => (How::Atomic, Some(word)),
            Op::Wait { word, .. } => (How::Wait, Some(word)),
            Op::WaitAll { word, .. } => (How::Wait, Some(word + variable)),
            _ => unreachable!("{op:?} looks at nothing"),
        };
        Access::of(how, false, word.map(|word| self.place(self.agents[agent].pe, word)))
    }

    /// What the source of a piece is read by.
    pub(crate) fn source_touches(&self, transfer: &Transfer, piece: usize) -> Vec<Access> {
        let of_piece = transfer.elements.iter().filter(|element| element.piece == piece);
        Access::of(How::Plain, false, of_piece.map(|element| element.from))
    }

    /// What the delivery of a piece touches.
    pub(crate) fn delivery_touches(&self, state: &State, transfer: &Transfer, piece: usize) -> Vec<Access> {
        let (op, agent, reader) = match transfer.issuer {
            Issuer::Agent { place: Place { agent, index }, .. } => {
                let Task::Op(op) = &self.agents[agent].work[index].task else { unreachable!("only operations move") };
                (Some(op), agent, self.agents[agent].pe)
            }
            Issuer::Collective { from, .. } => (None, from, from),
        };
        let elements = || transfer.undelivered(piece);
        let targets = |how| Access::of(how, true, elements().map(|element| element.to));
        let sources = |how| {
            let mut sources = Access::of(how, false, elements().map(|element| element.from));
            sources.iter_mut().for_each(|source| source.far = self.path(reader, source.word));
            sources
        };
        match transfer.kind {
            Kind::Put if op.is_some() => targets(How::Put),
            Kind::Put => targets(How::Plain),
            Kind::Store => targets(How::Pointer(agent)),
            Kind::Get => [sources(How::Plain), targets(How::Plain)].concat(),
            Kind::Fetch if matches!(op, Some(Op::SignalFetch { .. })) => sources(How::Atomic),
            Kind::Fetch => sources(How::Plain),
            Kind::Load => sources(How::Pointer(agent)),
            Kind::Amo { op, cond, .. } => {
                let changes = |word: &usize| match op {
                    AmoOp::Fetch => false,
                    AmoOp::CompareSwap => state.memory[*word] == cond,
                    _ => true,
                };
                let word = || elements().map(|element| element.from);
                Access::of(How::Atomic, word().any(|word| changes(&word)), word())
            }
            Kind::Combine => Access::of(How::Plain, false, self.combined(transfer)),
        }
    }

    pub(crate) fn signal_touches(&self, word: usize) -> Vec<Access> {
        Access::of(How::Atomic, true, [word])
    }
}
