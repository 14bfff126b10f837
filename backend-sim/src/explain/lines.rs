//! The calls of a program, as its runs made them: where another call can be inserted.

use std::collections::{BTreeMap, BTreeSet};

use onesided::At;
use onesided::backend::{Effect, Moves, Op, Order, Transfer};

use super::edit::{Edit, Ordering};
use crate::race::{MissingEdge, Race};
use crate::trace::{Event, EventKind};

/// A call in the source: of hosts, or on streams.
#[derive(Debug, Default)]
pub(super) struct Line {
    /// Its number among all calls, by the first time that it was made.
    pub(super) number: usize,
    /// The PEs that made it.
    pes: BTreeSet<u32>,
    /// Whether it sends something, so that a fence can order it.
    sends: bool,
    /// Whether it starts a transfer that may end later, so that a quiet can complete it.
    transfers: bool,
    /// Whether its source may be read later.
    reads_late: bool,
    /// The call that a PE made next.
    pub(super) next: Option<At>,
    /// The call that a PE made directly before.
    previous: Option<Call>,
    /// What it orders or completes, if it is a call for that.
    pub(super) orders: Option<Ordering>,
}

/// A call by its place, and whether it is on a stream.
pub(super) type Call = (At, bool);

/// The calls of one or several runs.
#[derive(Debug, Default)]
pub(super) struct Calls {
    pub(super) all: BTreeMap<Call, Line>,
    /// A put and the signal that follows it directly, to the same PE and on the same stream.
    pub(super) puts_and_signals: Vec<(Call, At)>,
}

impl Calls {
    /// Adds the calls of a recorded run.
    pub(super) fn add(&mut self, trace: &[Event]) {
        let mut before: BTreeMap<u32, (Call, Option<(u32, Op)>)> = BTreeMap::new();
        for event in trace.iter().filter(|event| event.is_call()) {
            let (op, stream) = match &event.kind {
                EventKind::Op { op, .. } => (Some(*op), None),
                EventKind::Enqueued { op, stream, .. } => (Some(*op), Some(*stream)),
                _ => (None, None),
            };
            let is_launch = matches!(event.kind, EventKind::Call("launch"));
            let call = (event.at, stream.is_some() || is_launch);
            let number = self.all.len();
            let line = self.all.entry(call).or_insert_with(|| Line { number, ..Line::default() });
            line.pes.insert(event.pe);
            line.note(event, op.as_ref());
            line.transfers |= is_launch; // the kernel may
            let scoped = op.map(|op| (stream.map_or(0, |stream| stream + 1), op));
            if let Some((previous, put)) = before.insert(event.pe, (call, scoped)) {
                self.follows(previous, put, call, scoped);
            }
        }
    }

    /// A PE made a call directly after another one.
    fn follows(&mut self, previous: Call, put: Option<(u32, Op)>, call: Call, signal: Option<(u32, Op)>) {
        if let Some(line) = self.all.get_mut(&previous) {
            line.next.get_or_insert(call.0);
        }
        if let Some(line) = self.all.get_mut(&call) {
            line.previous.get_or_insert(previous);
        }
        if let (Some((scope, Op::Put { pe, signal: None, .. })), Some((same_scope, Op::Signal { pe: to, .. }))) =
            (put, signal)
            && (scope, pe) == (same_scope, to)
            && !self.puts_and_signals.contains(&(previous, call.0))
        {
            self.puts_and_signals.push((previous, call.0));
        }
    }

    /// Barriers between the two sides of races, where not all PEs make both calls: they meet before the next call that all make.
    pub(super) fn meetings(&self, races: &[Race]) -> Vec<Edit> {
        let pes: BTreeSet<u32> = self.all.values().flat_map(|line| line.pes.iter().copied()).collect();
        let host = |at: At| self.all.get(&(at, false));
        let mut meetings = Vec::new();
        for race in races {
            let (_, after, before) = race.missing.call();
            let (Some(one), Some(other)) = (host(after), host(before)) else { continue };
            if after == before {
                continue; // another call in place of this one is what is missing
            }
            let is_answer = matches!(race.missing, MissingEdge::Answer { .. });
            if one.pes.len() == pes.len() && (is_answer || other.pes.len() == pes.len()) {
                continue; // a call behind the first is made by all
            }
            let behind_after: BTreeSet<At> = self.behind(after).collect();
            let is_made_by_all = |at: &At| host(*at).is_some_and(|line| line.pes.len() == pes.len());
            let mut behind_before = self.behind(before);
            let Some(next) = behind_before.find(|at| is_made_by_all(at) && behind_after.contains(at)) else { continue };
            let meet = Edit::Meet { call: Ordering::Barrier, after, before, next };
            if !meetings.contains(&meet) {
                meetings.push(meet);
            }
        }
        meetings
    }

    /// Waits for the end of a stream's work, directly before what races with that work. If the host waited right behind the work, the stream might never
    /// end: it may need what the host does in between.
    pub(super) fn late_ends(&self, races: &[Race]) -> Vec<Edit> {
        let mut ends = Vec::new();
        for race in races {
            let MissingEdge::Synchronize { after: work, before, .. } = race.missing else { continue };
            let previous = self.all.get(&(before, false)).and_then(|line| line.previous);
            let Some((after, false)) = previous else { continue }; // behind a stream's call, it is tried as others are
            let end = Edit::Synchronize { work, after };
            if !ends.contains(&end) {
                ends.push(end);
            }
        }
        ends
    }

    /// A barrier behind each side of a race in the rounds of a loop, where no call of a round is made by all: some PEs make the one call, and the
    /// others make the other.
    pub(super) fn rounds(&self, races: &[Race]) -> Vec<Vec<Edit>> {
        let pes: BTreeSet<u32> = self.all.values().flat_map(|line| line.pes.iter().copied()).collect();
        let mut rounds = Vec::new();
        for race in races {
            let MissingEdge::Answer { after, before } = race.missing else { continue };
            let [Some(one), Some(other)] = [after, before].map(|at| self.all.get(&(at, false))) else { continue };
            let is_parted = one.pes.is_disjoint(&other.pes) && one.pes.len() + other.pes.len() == pes.len();
            let call = Ordering::Barrier;
            let round = Vec::from([after, before].map(|after| Edit::Insert { call, after, on_stream: false }));
            if is_parted && !rounds.contains(&round) {
                rounds.push(round);
            }
        }
        rounds
    }

    /// The calls that follow one of a host, as the first PE made them, each once.
    fn behind(&self, at: At) -> impl Iterator<Item = At> + '_ {
        let mut seen = BTreeSet::from([at]);
        let next = move |at: &At| self.all.get(&(*at, false))?.next.filter(|next| seen.insert(*next));
        std::iter::successors(Some(at), next).skip(1)
    }

    /// The calls behind which that one can change something, those of the races first.
    pub(super) fn behind_which(&self, ordering: Ordering, races: &[Race], pes: usize) -> Vec<Call> {
        let fits = |(call, line): &(&Call, &Line)| match ordering {
            Ordering::Fence => line.sends,
            Ordering::Flush => line.reads_late,
            Ordering::Quiet => line.transfers,
            Ordering::Synchronize => call.1,
            Ordering::Sync | Ordering::Barrier => line.pes.len() == pes,
        };
        let mut calls: Vec<(&Call, &Line)> = self.all.iter().filter(fits).collect();
        calls.sort_by_key(|(call, line)| (distance(call.0, races), line.number));
        calls.into_iter().map(|(call, _)| *call).collect()
    }
}

/// How near a call is to a race: it is where the missing edge begins, or one of the accesses, or something else.
fn distance(at: At, races: &[Race]) -> u8 {
    let of = |race: &Race| match at {
        _ if at == race.missing.call().1 => 0,
        _ if at == race.first.at => 1,
        _ if at == race.second.at => 2,
        _ => 3,
    };
    races.iter().map(of).min().unwrap_or(3)
}

impl Line {
    fn note(&mut self, event: &Event, op: Option<&Op>) {
        let Some(op) = op else {
            let stores = matches!(event.kind, EventKind::Write { of, .. } if of != event.pe);
            self.sends |= stores;
            self.transfers |= stores;
            return;
        };
        match op.effect() {
            Effect::Transfer(Transfer { moves, nbi, .. }) => {
                let fetches = matches!(moves, Moves::Get { .. } | Moves::Fetch);
                self.sends |= !fetches;
                self.transfers |= !fetches || nbi;
                self.reads_late |= nbi && matches!(moves, Moves::Put { .. });
            }
            Effect::Order(order) => {
                self.orders = Some(match order {
                    Order::Fence => Ordering::Fence,
                    Order::Quiet => Ordering::Quiet,
                    Order::Flush => Ordering::Flush,
                });
            }
            Effect::Collective(_) => match op {
                Op::Barrier { .. } => self.orders = Some(Ordering::Barrier),
                Op::Sync { .. } => self.orders = Some(Ordering::Sync),
                _ => {}
            },
            Effect::FetchSignal { .. } | Effect::Fill { .. } | Effect::Wait(_) => {}
        }
    }
}
