//! Transfers: what an operation puts in flight, and the steps that its pieces take.

use onesided::backend::AmoOp;

use super::plan::{Place, Plan, Task};
use super::program::{Op, Update};
use super::state::{State, Step};

/// Something in flight, from its issue until it is complete.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Transfer {
    pub(crate) issuer: Issuer,
    pub(crate) kind: Kind,
    /// The PE whose memory it is about.
    pub(crate) target: usize,
    /// Its call does not wait for it.
    pub(crate) nbi: bool,
    /// Fences of the scope before it.
    pub(crate) fences: u8,
    /// The first fence that puts it before what follows.
    pub(crate) covered: Option<u8>,
    /// The agents whose fences wait for it, as bits.
    pub(crate) awaited: u16,
    /// The agent whose quiet waits for it: the first that came.
    pub(crate) quiet: Option<usize>,
    pub(crate) cells: Vec<Cell>,
    /// Cells of an element, which move together.
    pub(crate) width: usize,
    /// Follows the data.
    pub(crate) signal: Option<Update>,
}

/// Who asked for a transfer.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Issuer {
    /// An agent, by a thing that it does.
    Agent { scope: usize, place: Place },
    /// A team's collective with this number, for the PE whose source it is. No fence and no quiet is about it.
    Collective { team: usize, number: usize, from: usize },
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// Memory to another PE's memory.
    Put,
    /// As a put, by stores through a pointer.
    Store,
    /// Another PE's memory to my memory.
    Get,
    /// Memory to the host that asks for it.
    Fetch,
    /// As a fetch, by loads through a pointer: sees the host's own stores.
    Load,
    /// An atomic operation; the host may ask for the old value.
    Amo { op: AmoOp, value: u64, cond: u64, fetch: bool },
    /// The moment at which a reduction reads all sources.
    Combine,
}

/// An element on its way, or a part of one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Cell {
    /// Cells of one piece move together.
    pub(crate) piece: usize,
    /// Its place in its element.
    pub(crate) part: usize,
    /// In the memory of all PEs.
    pub(crate) from: usize,
    /// In the memory of all PEs, or in what the host has seen.
    pub(crate) to: usize,
    /// What was read from the source of a put.
    pub(crate) read: Option<u64>,
    pub(crate) delivered: bool,
}

impl Transfer {
    /// Whether fences put it in order. Reads are in no order.
    pub(crate) fn is_ordered_by_fences(&self) -> bool {
        let writes = matches!(self.kind, Kind::Put | Kind::Store | Kind::Amo { .. });
        writes && matches!(self.issuer, Issuer::Agent { .. })
    }

    pub(crate) fn has_unread_source(&self) -> bool {
        self.kind == Kind::Put && self.cells.iter().any(|cell| cell.read.is_none())
    }

    pub(crate) fn is_of(&self, of: usize) -> bool {
        matches!(self.issuer, Issuer::Agent { scope, .. } if scope == of)
    }

    pub(crate) fn is_by(&self, by: usize) -> bool {
        matches!(self.issuer, Issuer::Agent { place, .. } if place.agent == by)
    }

    /// The undelivered cells of a piece.
    pub(crate) fn undelivered(&self, piece: usize) -> impl Iterator<Item = &Cell> {
        self.cells.iter().filter(move |cell| cell.piece == piece && !cell.delivered)
    }
}

/// # Issue
impl Plan {
    /// An agent begins an operation: done at once if it is local and one step, otherwise in flight from now on.
    pub(crate) fn begin(&self, state: &mut State, agent: usize, op: &Op) {
        let (me, width) = (self.agents[agent].pe, self.width(state, agent));
        let cell = |part, from, to, read| Cell { piece: 0, part, from, to, read, delivered: false };
        // the cells of elements from a place on, each with its own place and its part
        let cells = |pe, first: usize, stride: usize, count| {
            let places = (0..count).map(move |i| self.place(pe, (first + i * stride) * width));
            places.flat_map(move |place| (0..width).map(move |part| (part, place + part)))
        };
        let stored = |to, dst, len, value: u64| -> Vec<Cell> {
            cells(to, dst, 1, len).map(|(part, to)| cell(part, 0, to, Some(self.part(value, part)))).collect()
        };
        let between = |(to, dst): (usize, usize), (from, src): (usize, usize), strides: (usize, usize), count| {
            let both = cells(from, src, strides.1, count).zip(cells(to, dst, strides.0, count));
            both.map(|((part, from), (_, to))| cell(part, from, to, None)).collect()
        };
        match *op {
            Op::P { to, dst, value } => {
                self.launch(state, agent, Kind::Put, to, stored(to, dst, 1, value));
            }
            Op::PeerStore { to, dst, len, value } if to == me => {
                self.begin(state, agent, &Op::Write { dst, len, value })
            }
            Op::PeerStore { to, dst, len, value } => {
                self.launch(state, agent, Kind::Store, to, stored(to, dst, len, value));
            }
            Op::Put { to, dst, src, len, nbi, signal } => {
                let put = self.launch(state, agent, Kind::Put, to, between((to, dst), (me, src), (1, 1), len));
                (put.nbi, put.signal) = (nbi, signal);
                self.read_single_piece(state);
            }
            Op::IPut { to, dst, src, strides, count } => {
                self.launch(state, agent, Kind::Put, to, between((to, dst), (me, src), strides, count));
                self.read_single_piece(state);
            }
            Op::Get { from, dst, src, len, nbi } => {
                let get = self.launch(state, agent, Kind::Get, me, between((me, dst), (from, src), (1, 1), len));
                get.nbi = nbi;
            }
            Op::IGet { from, dst, src, strides, count } => {
                self.launch(state, agent, Kind::Get, me, between((me, dst), (from, src), strides, count));
            }
            Op::Signal { to, update } => {
                self.launch(state, agent, Kind::Put, to, Vec::new()).signal = Some(update);
            }
            Op::Amo { to, dst, op, value, cond, fetch } => {
                let slot = if fetch { self.slots(state, me, 1) } else { 0 };
                let kind = Kind::Amo { op, value, cond, fetch };
                let cells = cells(to, dst, 1, 1).map(|(part, from)| cell(part, from, slot, None)).collect();
                self.launch(state, agent, kind, to, cells);
            }
            Op::Lock { to, dst } => {
                self.begin(state, agent, &Op::Amo { to, dst, op: AmoOp::CompareSwap, value: 1, cond: 0, fetch: true });
            }
            Op::G { from, src } => self.fetch(state, agent, Kind::Fetch, (from, src, 1)),
            Op::SignalFetch { word } => self.fetch(state, agent, Kind::Fetch, (me, word, 1)),
            Op::Read { src, len } => self.fetch(state, agent, Kind::Fetch, (me, src, len)),
            Op::PeerLoad { of, src, len } => self.fetch(state, agent, Kind::Load, (of, src, len)),
            Op::Write { dst, len, value } => {
                for (part, place) in cells(me, dst, 1, len) {
                    state.memory[place] = self.part(value, part);
                }
            }
            Op::Flush => {} // waits for what is in flight, and changes nothing
            _ => unreachable!("{op:?} is no operation of its own"),
        }
    }

    fn launch<'a>(
        &self,
        state: &'a mut State,
        agent: usize,
        kind: Kind,
        target: usize,
        mut cells: Vec<Cell>,
    ) -> &'a mut Transfer {
        let width = self.width(state, agent);
        self.cut(&mut cells, width);
        let scope = self.scope(agent);
        let place = Place { agent, index: state.agents[agent].begun - 1 };
        let fences = state.fences[scope];
        let issuer = Issuer::Agent { scope, place };
        state.flying.push(Transfer {
            issuer,
            kind,
            target,
            nbi: false,
            fences,
            covered: None,
            awaited: 0,
            quiet: None,
            cells,
            width,
            signal: None,
        });
        state.flying.last_mut().expect("just pushed")
    }

    /// Cuts a transfer into pieces of equal size, as far as that goes.
    pub(crate) fn cut(&self, cells: &mut [Cell], width: usize) {
        let count = cells.len() / width;
        let pieces = count.min(self.pieces);
        for piece in 0..pieces {
            let of_piece = count * piece / pieces..count * (piece + 1) / pieces;
            let of_piece = of_piece.start * width..of_piece.end * width;
            cells[of_piece].iter_mut().for_each(|cell| cell.piece = piece);
        }
    }

    /// Words of a PE's memory on their way to the host that asks for them.
    fn fetch(&self, state: &mut State, agent: usize, kind: Kind, (of, src, len): (usize, usize, usize)) {
        let (slot, width) = (self.slots(state, self.agents[agent].pe, len), self.width(state, agent));
        let cell = |i| {
            let (part, from, to) = (i % width, self.place(of, src * width + i), slot + i / width);
            Cell { piece: 0, part, from, to, read: None, delivered: false }
        };
        self.launch(state, agent, kind, of, (0..len * width).map(cell).collect());
    }

    /// A blocking put of a single piece reads its source in the step that issues it.
    fn read_single_piece(&self, state: &mut State) {
        let State { flying, memory, .. } = state;
        let put = flying.last_mut().expect("just launched");
        if !put.nbi && put.cells.iter().all(|cell| cell.piece == 0) {
            put.cells.iter_mut().for_each(|cell| cell.read = Some(memory[cell.from]));
        }
    }

    /// Makes room in what a host sees.
    fn slots(&self, state: &mut State, pe: usize, len: usize) -> usize {
        let first = state.saw[pe].len();
        state.saw[pe].resize(first + len, 0);
        first
    }
}

/// # Steps
impl Plan {
    /// The steps that a transfer can take.
    pub(crate) fn steps_of_transfer(&self, state: &State, index: usize, next: &mut Vec<Step>) {
        let transfer = &state.flying[index];
        if self.is_locked_out(state, transfer) {
            return;
        }
        let pieces = transfer.cells.last().map_or(0, |last| last.piece + 1);
        for piece in 0..pieces {
            let reads = transfer.kind == Kind::Put && transfer.undelivered(piece).any(|cell| cell.read.is_none());
            if reads {
                let mut state = state.clone();
                let State { flying, memory, .. } = &mut state;
                let of_piece = flying[index].cells.iter_mut().filter(|cell| cell.piece == piece);
                of_piece.for_each(|cell| cell.read = Some(memory[cell.from]));
                next.push(Step { to: state, accesses: self.source_touches(transfer, piece) });
            } else if transfer.undelivered(piece).next().is_some() && !self.is_held(state, index, piece) {
                let mut state = state.clone();
                let accesses = self.delivery_touches(&state, transfer, piece);
                self.deliver(&mut state, index, piece);
                next.push(Step { to: state, accesses });
            }
        }
        let complete = transfer.cells.iter().all(|cell| cell.delivered);
        if let Some(update) = transfer.signal
            && complete
            && !self.is_held(state, index, 0)
        {
            let mut state = state.clone();
            let word = self.word(transfer.target, update.word);
            let before = self.number(&state.memory[word..word + self.of_word]);
            let value = if update.add { before.wrapping_add(update.value) } else { update.value };
            let Issuer::Agent { place, .. } = transfer.issuer else { unreachable!("no collective signals") };
            let me = self.agents[place.agent].pe;
            self.synchronize(&mut state, me);
            (0..self.of_word).for_each(|part| self.arrive(&mut state, me, word + part, self.part(value, part)));
            self.land(&mut state, index);
            next.push(Step { to: state, accesses: self.signal_touches(word) });
        }
    }

    /// Whether a transfer tries to lock what somebody else has locked: it would fail, change nothing, and be tried again.
    pub(crate) fn is_locked_out(&self, state: &State, transfer: &Transfer) -> bool {
        let Issuer::Agent { place, .. } = transfer.issuer else { return false };
        let locks = matches!(self.agents[place.agent].work[place.index].task, Task::Op(Op::Lock { .. }));
        locks && self.found_at(state, transfer) != 0
    }

    /// Delivers a piece.
    fn deliver(&self, state: &mut State, index: usize, piece: usize) {
        let transfer = state.flying[index].clone();
        let me = match transfer.issuer {
            Issuer::Agent { place, .. } => self.agents[place.agent].pe,
            Issuer::Collective { from, .. } => from,
        };
        let values: Vec<(Cell, u64)> = (transfer.undelivered(piece))
            .map(|cell| match transfer.kind {
                Kind::Put | Kind::Store => (*cell, cell.read.expect("delivered after it was read")),
                Kind::Load => (*cell, self.load(state, &transfer, cell.from)),
                Kind::Get | Kind::Fetch => (*cell, self.found(state, me, cell.from)),
                Kind::Amo { .. } | Kind::Combine => (*cell, state.memory[cell.from]),
            })
            .collect();
        if transfer.is_ordered_by_fences() {
            self.synchronize(state, me);
        }
        let found = self.found_at(state, &transfer);
        for (Cell { from, to, part, .. }, value) in values {
            match transfer.kind {
                Kind::Put | Kind::Store if transfer.is_ordered_by_fences() => self.arrive(state, me, to, value),
                Kind::Put | Kind::Store | Kind::Get => state.memory[to] = value,
                Kind::Fetch | Kind::Load => state.saw[me][to] |= value << (8 * part),
                Kind::Amo { op, value: operand, cond, fetch } => {
                    let value = applied(op, found, operand, cond);
                    self.arrive(state, me, from, self.part(value, part));
                    if fetch {
                        state.saw[me][to] = found;
                    }
                }
                Kind::Combine => self.combine(state, &transfer),
            }
        }
        let transfer = &mut state.flying[index];
        transfer.cells.iter_mut().filter(|cell| cell.piece == piece).for_each(|e| e.delivered = true);
        if transfer.signal.is_none() && transfer.cells.iter().all(|cell| cell.delivered) {
            self.land(state, index);
        }
    }

    /// What is in the element that a transfer is about.
    pub(crate) fn found_at(&self, state: &State, transfer: &Transfer) -> u64 {
        let cells: Vec<u64> = transfer.cells.iter().map(|cell| state.memory[cell.from]).collect();
        self.number(&cells)
    }

    /// A transfer is complete.
    fn land(&self, state: &mut State, index: usize) {
        if let Issuer::Agent { place, .. } = state.flying.remove(index).issuer {
            state.claims.remove(&place);
        }
    }
}

/// A word after an atomic operation.
fn applied(op: AmoOp, old: u64, value: u64, cond: u64) -> u64 {
    match op {
        AmoOp::Fetch => old,
        AmoOp::Set => value,
        AmoOp::Add => old.wrapping_add(value),
        AmoOp::And => old & value,
        AmoOp::Or => old | value,
        AmoOp::Xor => old ^ value,
        AmoOp::CompareSwap if old == cond => value,
        AmoOp::CompareSwap => old,
    }
}
