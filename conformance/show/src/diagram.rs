//! [`Diagram`]: what every picture of a run shows. Lanes and what happens on them; transfers between them; which event ended
//! which wait; where the races are. Positions are numbers of events: time is the order of events.

use std::collections::BTreeMap;

use crate::event::{Does, Event, Kind, who};
use crate::finding::{Access, Finding, Part, Race, Standing};

/// A picture of a run, without sizes.
#[derive(Debug)]
pub(crate) struct Diagram<'a> {
    pub(crate) finding: &'a Finding,
    /// By PE; each PE's host, then its streams.
    pub(crate) lanes: Vec<Lane>,
    /// For each event the lane on which it stands: where memory was touched, for a step of a transfer.
    pub(crate) lane_of: Vec<usize>,
    pub(crate) transfers: Vec<Transfer>,
    pub(crate) spans: Vec<Span>,
    pub(crate) edges: Vec<Edge>,
    /// The entries of each collective that several entered.
    pub(crate) meetings: Vec<Vec<usize>>,
    pub(crate) conflicts: Vec<Conflict>,
}

/// A host, or a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Lane {
    pub(crate) pe: usize,
    pub(crate) stream: Option<usize>,
}

impl Lane {
    pub(crate) fn name(self) -> String {
        who(self.pe, self.stream)
    }
}

/// One piece of a transfer on its way.
#[derive(Debug, PartialEq)]
pub(crate) struct Transfer {
    pub(crate) kind: Does,
    /// The event of the call that issued it.
    pub(crate) issue: usize,
    /// Where it leaves: the reading of its source, or else the issue.
    pub(crate) leaves: usize,
    /// Where it arrives; `None` if it never did.
    pub(crate) arrives: Option<usize>,
    pub(crate) from: usize,
    pub(crate) to: usize,
}

/// A call from its beginning to its end.
#[derive(Debug, PartialEq)]
pub(crate) struct Span {
    pub(crate) lane: usize,
    pub(crate) call: usize,
    /// `None` if it never ended.
    pub(crate) end: Option<usize>,
}

/// One event that lets another happen.
#[derive(Debug, PartialEq)]
pub(crate) struct Edge {
    pub(crate) from: usize,
    pub(crate) to: usize,
    pub(crate) kind: EdgeKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EdgeKind {
    /// It ended a wait, or set what a kernel has loaded.
    Ends,
    /// It enqueued the work of a stream.
    Enqueues,
}

/// The events of a race.
#[derive(Debug, PartialEq)]
pub(crate) struct Conflict {
    /// The touch of the memory on each side, as far as it is in the trace.
    pub(crate) first: Option<usize>,
    pub(crate) second: Option<usize>,
}

impl<'a> Diagram<'a> {
    pub(crate) fn new(finding: &'a Finding) -> Diagram<'a> {
        let events = &finding.events;
        let lanes = lanes(finding);
        let lane_of: Vec<usize> = events.iter().map(|event| lane_of(&lanes, event)).collect();
        let transfers = transfers(finding, &lanes, &lane_of);
        let spans = spans(finding, &lane_of);
        let edges = edges(events);
        let meetings = meetings(events);
        let conflicts = finding.races.iter().map(|race| conflict(events, race)).collect();
        Diagram { finding, lanes, lane_of, transfers, spans, edges, meetings, conflicts }
    }

    /// The PEs that the finding is about; none if it is about the whole program.
    pub(crate) fn pes_of_the_finding(&self) -> Vec<usize> {
        let Finding { races, verdict, agents, .. } = self.finding;
        let mut pes: Vec<usize> =
            (races.iter().take(1)).flat_map(|race| [race.first.pe, race.second.pe, race.pe]).collect();
        pes.extend(verdict.pe);
        if let Some(pe) = verdict.pe {
            pes.extend(
                self.finding.undelivered.iter().filter(|transfer| transfer.to == pe).map(|transfer| transfer.pe),
            );
        }
        if pes.is_empty() && verdict.outcome == "deadlock" {
            pes.extend(agents.iter().filter(|agent| agent.standing == Standing::Waits).map(|agent| agent.pe));
        }
        pes.sort_unstable();
        pes.dedup();
        pes
    }
}

fn lanes(finding: &Finding) -> Vec<Lane> {
    let hosts = (0..finding.cluster.pes).map(|pe| Lane { pe, stream: None });
    let streams = finding.events.iter().flat_map(|event| {
        let of = |stream| Lane { pe: event.pe, stream: Some(stream) };
        [event.stream.map(of), event.on.map(of)].into_iter().flatten()
    });
    let mut lanes: Vec<Lane> = hosts.chain(streams).collect();
    lanes.sort_unstable();
    lanes.dedup();
    lanes
}

fn lane_of(lanes: &[Lane], event: &Event) -> usize {
    let pe = match event.kind {
        Kind::SourceRead => event.from,
        Kind::Delivered | Kind::Signaled => event.to,
        _ => None,
    };
    let lane = Lane { pe: pe.unwrap_or(event.pe), stream: event.stream };
    lanes.binary_search(&lane).expect("every event has a lane")
}

fn transfers(finding: &Finding, lanes: &[Lane], lane_of: &[usize]) -> Vec<Transfer> {
    let events = &finding.events;
    let host = |pe: usize| lanes.binary_search(&Lane { pe, stream: None }).expect("every PE has a host");
    // by issue and piece
    let mut reads: BTreeMap<(usize, usize), usize> = BTreeMap::new();
    let mut arrived: Vec<bool> = vec![false; events.len()];
    let mut transfers = Vec::new();
    for (number, event) in events.iter().enumerate() {
        let Some(issue) = event.of else { continue };
        let piece = event.piece.unwrap_or(0);
        match event.kind {
            Kind::SourceRead => drop(reads.insert((issue, piece), number)),
            Kind::Delivered | Kind::Signaled => {
                let asked = &events[issue];
                let kind = match (event.kind, asked.does) {
                    (Kind::Signaled, _) => Does::Signal,
                    _ if asked.kind == Kind::Entered => Does::Collective,
                    (_, Some(does)) => does,
                    (_, None) => Does::Put, // a store through a peer pointer
                };
                let leaves = reads.get(&(issue, piece)).copied().filter(|_| kind != Does::Signal).unwrap_or(issue);
                // a get comes from its peer; what it fetches for the caller is "delivered" there
                let (from, to) = match (kind, asked.from) {
                    (Does::Get, Some(peer)) => (host(peer), lane_of[issue]),
                    _ => (lane_of[leaves], lane_of[number]),
                };
                arrived[issue] |= kind != Does::Signal || asked.does == Some(Does::Signal);
                transfers.push(Transfer { kind, issue, leaves, arrives: Some(number), from, to });
            }
            _ => {}
        }
    }
    for (number, event) in
        events.iter().enumerate().filter(|(number, event)| event.kind == Kind::Op && !arrived[*number])
    {
        let (Some(kind @ (Does::Put | Does::Get | Does::Atomic | Does::Signal)), Some(peer)) =
            (event.does, event.to.or(event.from))
        else {
            continue;
        };
        transfers.push(Transfer {
            kind,
            issue: number,
            leaves: number,
            arrives: None,
            from: lane_of[number],
            to: host(peer),
        });
    }
    transfers.sort_by_key(|transfer| (transfer.leaves, transfer.arrives));
    transfers
}

fn spans(finding: &Finding, lane_of: &[usize]) -> Vec<Span> {
    let events = &finding.events;
    let mut spans: BTreeMap<usize, Span> = BTreeMap::new();
    for (number, event) in events.iter().enumerate() {
        let (Kind::Returned | Kind::Entered, Some(call)) = (event.kind, event.of) else { continue };
        let span = spans.entry(call).or_insert(Span { lane: lane_of[call], call, end: None });
        span.end = Some(number);
    }
    for agent in finding.agents.iter().filter(|agent| agent.standing == Standing::Waits) {
        // the last call of one that still waits has not ended
        let last = events.iter().enumerate().rev().find(|(_, event)| {
            (event.pe, event.stream) == (agent.pe, agent.stream)
                && matches!(event.kind, Kind::Op | Kind::Call | Kind::Loads)
        });
        if let Some((call, event)) = last
            && event.op == agent.call
        {
            spans.insert(call, Span { lane: lane_of[call], call, end: None });
        }
    }
    spans.into_values().filter(|span| span.end != Some(span.call)).collect()
}

fn edges(events: &[Event]) -> Vec<Edge> {
    let edge = |(number, event): (usize, &Event)| match (event.kind, event.by, event.of) {
        (Kind::Returned, Some(by), _) => Some(Edge { from: by, to: number, kind: EdgeKind::Ends }),
        (Kind::Op, Some(by), _) if (events[by].pe, events[by].stream) != (event.pe, event.stream) => {
            Some(Edge { from: by, to: number, kind: EdgeKind::Ends })
        }
        (Kind::Op | Kind::Call, _, Some(of)) if event.stream.is_some() => {
            Some(Edge { from: of, to: number, kind: EdgeKind::Enqueues })
        }
        _ => None,
    };
    events.iter().enumerate().filter_map(edge).collect()
}

fn meetings(events: &[Event]) -> Vec<Vec<usize>> {
    let mut meetings: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (number, event) in events.iter().enumerate() {
        if let Some(first) = event.first {
            meetings.entry(first).or_default().push(number);
        }
    }
    meetings.into_values().filter(|entries| entries.len() > 1).collect()
}

/// The events in which both sides of a race touched the memory. The same calls often race at several pieces. If the second
/// access was too early at one of them, that piece is taken, because there the race has an effect.
fn conflict(events: &[Event], race: &Race) -> Conflict {
    let [first, second] = [&race.first, &race.second].map(|access| touches(events, access));
    let too_early = first.iter().find_map(|&one| {
        let is_hit = |other: &&usize| **other < one && overlap(bytes(&events[one]), bytes(&events[**other]));
        Some((one, *second.iter().find(is_hit)?))
    });
    let of_the_race = |touches: &[usize]| {
        let hit = |number: &&usize| overlap(bytes(&events[**number]), span(&race.memory));
        touches.iter().find(hit).or(touches.first()).copied()
    };
    match too_early.filter(|_| race.times > 1) {
        Some((first, second)) => Conflict { first: Some(first), second: Some(second) },
        None => Conflict { first: of_the_race(&first), second: of_the_race(&second) },
    }
}

/// The events in which one side of a race touched memory: the call, or steps of its transfer.
fn touches(events: &[Event], access: &Access) -> Vec<usize> {
    let is_call = |event: &Event| {
        let Access { pe, stream, at, .. } = access;
        let calls = matches!(event.kind, Kind::Op | Kind::Call | Kind::Loads);
        calls && (event.pe, event.stream) == (*pe, *stream) && event.at == *at
    };
    let mut calls = events.iter().enumerate().filter(|(_, event)| is_call(event));
    let Some((call, event)) = calls.clone().find(|(_, event)| event.step >= access.step).or_else(|| calls.next_back())
    else {
        return Vec::new();
    };
    let is_step = |kind: Kind| match access.part {
        Part::Itself => event.kind == Kind::Loads && kind == Kind::Op, // its pieces
        Part::SourceRead => kind == Kind::SourceRead,
        Part::Delivery => kind == Kind::Delivered,
        Part::Signal => matches!(kind, Kind::Signaled | Kind::Delivered), // an atomic update is a delivery
    };
    let steps = events.iter().enumerate().filter(|(_, event)| event.of == Some(call) && is_step(event.kind));
    let steps: Vec<usize> = steps.map(|(number, _)| number).collect();
    if steps.is_empty() { vec![call] } else { steps }
}

/// Bytes of a buffer.
type Bytes<'a> = Option<(&'a str, std::ops::Range<usize>)>;

/// The memory of an event, or of the piece that it is about, as far as its text tells.
fn bytes(event: &Event) -> Bytes<'_> {
    let (of, whole) = span(event.memory.as_deref()?)?;
    let (piece, pieces, len) = (event.piece.unwrap_or(0), event.pieces.unwrap_or(1).max(1), whole.len());
    let edge = |piece: usize| whole.start.saturating_add(len.saturating_mul(piece) / pieces);
    Some((of, edge(piece)..edge(piece + 1)))
}

/// The buffer and bytes of `buf1+0..16`.
fn span(text: &str) -> Bytes<'_> {
    let (of, bytes) = text.split_once('+')?;
    let (start, end) = bytes.split_once("..")?;
    Some((of, start.parse().ok()?..end.parse().ok()?))
}

/// Whether both have a byte in common; also if of one nothing is known.
fn overlap(one: Bytes<'_>, other: Bytes<'_>) -> bool {
    match (one, other) {
        (Some((buffer, one)), Some((of, other))) => buffer == of && one.start.max(other.start) < one.end.min(other.end),
        _ => true,
    }
}
