//! Races: two steps can come next, in either order, and both touch a word that one of them writes.
//!
//! No clocks are needed. If nothing orders two accesses of some run, then there is also a run in which one comes right after the
//! other; and before that, both can come next. So the model looks at each of its states for such a pair of steps.

use onesided::backend::AmoOp;

use super::plan::{Place, Plan, Task};
use super::program::{Op, Program};
use super::state::{State, Step};
use super::transfers::{Issuer, Kind, Transfer};

/// A step touches a cell.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Access {
    /// In the memory of all PEs.
    cell: usize,
    /// The element that it is part of: where that begins, and its cells.
    element: (usize, usize),
    writes: bool,
    how: How,
    /// Of reads where there are two fabrics, and of what becomes visible there: whether that is on the path from the other node.
    far: Option<bool>,
    /// It is no access yet, but the issue of a transfer to this PE by this scope: the order of issue is that of arrival.
    queue: Option<(usize, usize)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum How {
    Plain,
    /// Signals, atomic operations, and waits for signals.
    Atomic,
    /// A put delivers a whole element.
    Put,
    /// A wait for an ordinary word: it may look at what puts of such words deliver.
    Wait,
    /// Through a pointer, by this agent.
    Pointer(usize),
    /// What has arrived on one path becomes visible to those who read on the other.
    Pass,
}

impl Access {
    /// Elements of `width` cells, of which these are the first ones.
    fn of(how: How, writes: bool, width: usize, firsts: impl IntoIterator<Item = usize>) -> Vec<Access> {
        let access = |first, cell| Access { cell, element: (first, width), writes, how, far: None, queue: None };
        firsts.into_iter().flat_map(|first| (first..first + width).map(move |cell| access(first, cell))).collect()
    }

    /// The readers of a path begin to see what another path brought.
    pub(crate) fn pass((far, cell): (bool, usize)) -> Vec<Access> {
        vec![Access { cell, element: (cell, 1), writes: true, how: How::Pass, far: Some(far), queue: None }]
    }

    fn races_with(&self, other: &Access) -> bool {
        // only the readers of its path can tell when something becomes visible there: in memory it has been before
        let same_path = ![self.how, other.how].contains(&How::Pass) || self.far == other.far;
        let meet = self.cell == other.cell && (self.writes || other.writes) && same_path;
        let in_order = match (self.how, other.how) {
            (How::Atomic | How::Wait, How::Atomic | How::Wait) => self.element == other.element,
            (How::Put, How::Wait) | (How::Wait, How::Put) => self.element == other.element,
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

/// Whether a PE waits for a word that a put brings. Then it knows in the model that the put's source was read. The simulator takes it to know
/// the word alone, so it may have a race where the model has none.
pub(crate) fn waits_for_a_put(program: &Program) -> bool {
    let width = |in_bytes| if in_bytes { 1 } else { program.cells() };
    let waited = |pe: usize, cell: usize| {
        program.hosts[pe].iter().any(|call| match call.op {
            Op::Wait { word, signal: false, .. } => cell / program.cells() == word,
            Op::WaitAll { word, .. } => (word..word + 2).contains(&(cell / program.cells())),
            _ => false,
        })
    };
    program.hosts.iter().flatten().any(|call| match call.op {
        Op::Put { to, dst, len, .. } => {
            let width = width(call.in_bytes);
            (dst * width..(dst + len) * width).any(|cell| waited(to, cell))
        }
        Op::IPut { to, dst, strides, count, .. } => {
            let width = width(call.in_bytes);
            (0..count * width).any(|i| waited(to, (dst + i / width * strides.0) * width + i % width))
        }
        _ => false,
    })
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
        let pieces = issued.cells.last().map_or(0, |last| last.piece + 1);
        let signal = issued.signal.map(|update| self.signal_touches(self.word(issued.target, update.word)));
        let deliveries = (0..pieces).flat_map(|piece| self.delivery_touches(state, issued, piece));
        let queue = Some((self.scope(agent), issued.target));
        deliveries.chain(signal.into_iter().flatten()).map(|access| Access { queue, ..access }).collect()
    }

    fn begin_reads_or_writes(&self, state: &State, agent: usize, op: &Op) -> Vec<Access> {
        let (pe, width) = (self.agents[agent].pe, self.width(state, agent));
        let mine = |element: usize| self.place(pe, element * width);
        let waits = |signal: bool| if signal { How::Atomic } else { How::Wait };
        match *op {
            Op::Write { dst, len, .. } => Access::of(How::Plain, true, width, (dst..dst + len).map(mine)),
            Op::PeerStore { to, dst, len, .. } if to == pe => {
                Access::of(How::Plain, true, width, (dst..dst + len).map(mine))
            }
            Op::Put { .. } | Op::IPut { .. } => {
                let put = state.flying.iter().find(|transfer| self.is_last_of(state, agent, transfer));
                let read = put.into_iter().flat_map(|put| &put.cells).filter(|cell| cell.read.is_some());
                Access::of(How::Plain, false, 1, read.map(|cell| cell.from))
            }
            Op::Wait { word, signal, .. } => Access::of(waits(signal), false, width, [mine(word)]),
            Op::WaitAll { word, values, .. } => {
                let looked_at = (0..2).filter(|&variable| values[variable].is_some());
                Access::of(How::Wait, false, width, looked_at.map(|variable| mine(word + variable)))
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
            Op::Poll { plainly: true, .. } => return Vec::new(), // all its races are intended
            Op::Poll { word, also, .. } => (How::Atomic, if variable == 0 { Some(word) } else { also }),
            Op::Wait { word, signal: true, .. } => (How::Atomic, Some(word)),
            Op::Wait { word, .. } => (How::Wait, Some(word)),
            Op::WaitAll { word, .. } => (How::Wait, Some(word + variable)),
            _ => unreachable!("{op:?} looks at nothing"),
        };
        Access::of(how, false, self.of_word, word.map(|word| self.word(self.agents[agent].pe, word)))
    }

    /// What the source of a piece is read by.
    pub(crate) fn source_touches(&self, transfer: &Transfer, piece: usize) -> Vec<Access> {
        let of_piece = transfer.cells.iter().filter(|cell| cell.piece == piece);
        Access::of(How::Plain, false, 1, of_piece.map(|cell| cell.from))
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
        let (width, elements) = (transfer.width, || transfer.undelivered(piece).filter(|cell| cell.part == 0));
        let targets = |how| Access::of(how, true, width, elements().map(|first| first.to));
        let sources = |how| {
            let mut sources = Access::of(how, false, width, elements().map(|first| first.from));
            sources.iter_mut().for_each(|source| source.far = self.path(reader, source.cell));
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
                let changes = match op {
                    AmoOp::Fetch => false,
                    AmoOp::CompareSwap => self.found_at(state, transfer) == cond,
                    _ => true,
                };
                Access::of(How::Atomic, changes, width, elements().map(|first| first.from))
            }
            Kind::Combine => Access::of(How::Plain, false, width, self.combined(transfer)),
        }
    }

    pub(crate) fn signal_touches(&self, word: usize) -> Vec<Access> {
        Access::of(How::Atomic, true, self.of_word, [word])
    }
}
