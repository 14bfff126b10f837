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
    pub(crate) elements: Vec<Element>,
    /// Follows the data.
    pub(crate) signal: Option<Update>,
}

/// Who asked for a transfer.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Issuer {
    /// An agent, by a thing that it does.
    Agent { scope: usize, place: Place },
    /// The collective with this number, for the member whose source it is. No fence and no quiet is about it.
    Collective { number: usize, from: usize },
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

/// One word on its way.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Element {
    /// Words of one piece move together.
    pub(crate) piece: usize,
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
        self.kind == Kind::Put && self.elements.iter().any(|element| element.read.is_none())
    }

    pub(crate) fn is_of(&self, of: usize) -> bool {
        matches!(self.issuer, Issuer::Agent { scope, .. } if scope == of)
    }

    pub(crate) fn is_by(&self, by: usize) -> bool {
        matches!(self.issuer, Issuer::Agent { place, .. } if place.agent == by)
    }

    /// The undelivered elements of a piece.
    pub(crate) fn undelivered(&self, piece: usize) -> impl Iterator<Item = &Element> {
        self.elements.iter().filter(move |element| element.piece == piece && !element.delivered)
    }
}

/// # Issue
impl Plan {
    /// An agent begins an operation: done at once if it is local and one step, otherwise in flight from now on.
    pub(crate) fn begin(&self, state: &mut State, agent: usize, op: &Op) {
        let me = self.agents[agent].pe;
        let fixed = |to, value| Element { piece: 0, from: 0, to, read: Some(value), delivered: false };
        let moved = |from, to| Element { piece: 0, from, to, read: None, delivered: false };
        let between = |(to, dst): (usize, usize), (from, src): (usize, usize), strides: (usize, usize), count| {
            let place = |i| (self.place(from, src + i * strides.1), self.place(to, dst + i * strides.0));
            (0..count).map(place).map(|(from, to)| moved(from, to)).collect()
        };
        match *op {
            Op::P { to, dst, value } => {
                self.launch(state, agent, Kind::Put, to, vec![fixed(self.place(to, dst), value)]);
            }
            Op::PeerStore { to, dst, len, value } if to == me => {
                self.begin(state, agent, &Op::Write { dst, len, value })
            }
            Op::PeerStore { to, dst, len, value } => {
                let elements = (dst..dst + len).map(|word| fixed(self.place(to, word), value)).collect();
                self.launch(state, agent, Kind::Store, to, elements);
            }
            Op::Put { to, dst, src, len, nbi, signal } => {
                let elements = between((to, dst), (me, src), (1, 1), len);
                let put = self.launch(state, agent, Kind::Put, to, elements);
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
                self.launch(state, agent, kind, to, vec![moved(self.place(to, dst), slot)]);
            }
            Op::Lock { to, dst } => {
                self.begin(state, agent, &Op::Amo { to, dst, op: AmoOp::CompareSwap, value: 1, cond: 0, fetch: true });
            }
            Op::G { from, src } => self.fetch(state, agent, Kind::Fetch, (from, src, 1)),
            Op::SignalFetch { word } => self.fetch(state, agent, Kind::Fetch, (me, word, 1)),
            Op::Read { src, len } => self.fetch(state, agent, Kind::Fetch, (me, src, len)),
            Op::PeerLoad { of, src, len } => self.fetch(state, agent, Kind::Load, (of, src, len)),
            Op::Write { dst, len, value } => {
                (dst..dst + len).for_each(|word| state.memory[self.place(me, word)] = value);
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
        mut elements: Vec<Element>,
    ) -> &'a mut Transfer {
        self.cut(&mut elements);
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
            elements,
            signal: None,
        });
        state.flying.last_mut().expect("just pushed")
    }

    /// Cuts a transfer into pieces of equal size, as far as that goes.
    pub(crate) fn cut(&self, elements: &mut [Element]) {
        let count = elements.len();
        let pieces = count.min(self.pieces);
        for piece in 0..pieces {
            let of_piece = count * piece / pieces..count * (piece + 1) / pieces;
            elements[of_piece].iter_mut().for_each(|element| element.piece = piece);
        }
    }

    /// Words of a PE's memory on their way to the host that asks for them.
    fn fetch(&self, state: &mut State, agent: usize, kind: Kind, (of, src, len): (usize, usize, usize)) {
        let slot = self.slots(state, self.agents[agent].pe, len);
        let element =
            |i| Element { piece: 0, from: self.place(of, src + i), to: slot + i, read: None, delivered: false };
        self.launch(state, agent, kind, of, (0..len).map(element).collect());
    }

    /// A blocking put of a single piece reads its source in the step that issues it.
    fn read_single_piece(&self, state: &mut State) {
        let State { flying, memory, .. } = state;
        let put = flying.last_mut().expect("just launched");
        if !put.nbi && put.elements.iter().all(|element| element.piece == 0) {
            put.elements.iter_mut().for_each(|element| element.read = Some(memory[element.from]));
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
        let pieces = transfer.elements.last().map_or(0, |last| last.piece + 1);
        for piece in 0..pieces {
            let reads = transfer.kind == Kind::Put && transfer.undelivered(piece).any(|element| element.read.is_none());
            if reads {
                let mut state = state.clone();
                let State { flying, memory, .. } = &mut state;
                let of_piece = flying[index].elements.iter_mut().filter(|element| element.piece == piece);
                of_piece.for_each(|element| element.read = Some(memory[element.from]));
                next.push(Step { to: state, accesses: self.source_touches(transfer, piece) });
            } else if transfer.undelivered(piece).next().is_some() && !self.is_held(state, index, piece) {
                let mut state = state.clone();
                let accesses = self.delivery_touches(&state, transfer, piece);
                self.deliver(&mut state, index, piece);
                next.push(Step { to: state, accesses });
            }
        }
        let complete = transfer.elements.iter().all(|element| element.delivered);
        if let Some(update) = transfer.signal
            && complete
            && !self.is_held(state, index, 0)
        {
            let mut state = state.clone();
            let word = self.place(transfer.target, update.word);
            let before = state.memory[word];
            let value = if update.add { before.wrapping_add(update.value) } else { update.value };
            let Issuer::Agent { place, .. } = transfer.issuer else { unreachable!("no collective signals") };
            let me = self.agents[place.agent].pe;
            self.synchronize(&mut state, me);
            self.arrive(&mut state, me, word, value);
            self.land(&mut state, index);
            next.push(Step { to: state, accesses: self.signal_touches(word) });
        }
    }

    /// Whether a transfer tries to lock what somebody else has locked: it would fail, change nothing, and be tried again.
    pub(crate) fn is_locked_out(&self, state: &State, transfer: &Transfer) -> bool {
        let Issuer::Agent { place, .. } = transfer.issuer else { return false };
        let locks = matches!(self.agents[place.agent].work[place.index].task, Task::Op(Op::Lock { .. }));
        locks && state.memory[transfer.elements[0].from] != 0
    }

    /// Delivers a piece.
    fn deliver(&self, state: &mut State, index: usize, piece: usize) {
        let transfer = state.flying[index].clone();
        let me = match transfer.issuer {
            Issuer::Agent { place, .. } => self.agents[place.agent].pe,
            Issuer::Collective { from, .. } => from,
        };
        let values: Vec<(usize, u64)> = (transfer.undelivered(piece))
            .map(|element| match transfer.kind {
                Kind::Put | Kind::Store => (element.to, element.read.expect("delivered after it was read")),
                Kind::Load => (element.to, self.load(state, &transfer, element.from)),
                Kind::Get | Kind::Fetch => (element.to, self.found(state, me, element.from)),
                Kind::Amo { .. } | Kind::Combine => (element.to, state.memory[element.from]),
            })
            .collect();
        if transfer.is_ordered_by_fences() {
            self.synchronize(state, me);
        }
        for (to, value) in values {
            match transfer.kind {
                Kind::Put | Kind::Store if transfer.is_ordered_by_fences() => self.arrive(state, me, to, value),
                Kind::Put | Kind::Store | Kind::Get => state.memory[to] = value,
                Kind::Fetch | Kind::Load => state.saw[me][to] = value,
                Kind::Amo { op, value: operand, cond, fetch } => {
                    self.arrive(state, me, transfer.elements[0].from, applied(op, value, operand, cond));
                    if fetch {
                        state.saw[me][to] = value;
                    }
                }
                Kind::Combine => self.combine(state, &transfer),
            }
        }
        let transfer = &mut state.flying[index];
        transfer.elements.iter_mut().filter(|element| element.piece == piece).for_each(|e| e.delivered = true);
        if transfer.signal.is_none() && transfer.elements.iter().all(|element| element.delivered) {
            self.land(state, index);
        }
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
