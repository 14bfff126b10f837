//! What the page draws, as JSON: lists of numbers where there are thousands of a kind. The page finds events, places and strings by
//! their numbers; -1 is none.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::diagram::{Diagram, EdgeKind, Transfer};
use crate::event::{Does, Event, Kind, Place};
use crate::finding::{Access, Edit, Finding, Fix, Race};

/// Everything that the page shows.
pub(super) fn data(diagram: &Diagram<'_>) -> Value {
    let finding = diagram.finding;
    let mut places = Places::new(finding);
    let Finding { program, arguments, checks, cluster, profile, schedule, replay, verdict, .. } = finding;
    let races: Vec<Value> = finding
        .races
        .iter()
        .enumerate()
        .map(|(number, race)| data_of_race(diagram, number, race, &mut places))
        .collect();
    let critical =
        finding.critical.as_ref().map(|critical| json!({ "text": critical.text, "event": optional(critical.event) }));
    let fix = finding.fix.as_ref().map(|fix| data_of_fix(fix, &mut places));
    let agents: Vec<Value> = (finding.agents.iter())
        .map(|agent| {
            let place = places.optional(agent.at.as_ref());
            json!({ "text": agent.text, "pe": agent.pe, "stream": optional(agent.stream), "place": place })
        })
        .collect();
    let undelivered: Vec<Value> = (finding.undelivered.iter())
        .map(|transfer| json!({ "text": transfer.text, "pe": transfer.pe, "place": places.number(&transfer.at) }))
        .collect();
    let verdict = json!({
        "status": if finding.is_ok() { "fine" } else if finding.is_given_up() { "given up" } else { "finding" },
        "outcome": verdict.outcome, "text": finding.headline(), "pe": verdict.pe,
        "place": places.optional(verdict.at.as_ref()),
    });
    let events = data_of_events(diagram, &mut places);
    let spans: Vec<[i64; 4]> = (diagram.spans.iter())
        .map(|span| {
            let class = class(&finding.events, &finding.events[span.call]);
            [number(span.lane), number(span.call), optional(span.end), class as i64]
        })
        .collect();
    json!({
        "program": program, "arguments": arguments, "checks": checks, "pes": cluster.pes, "nodes": cluster.nodes,
        "profile": profile, "schedule": schedule, "replay": replay,
        "verdict": verdict, "races": races, "exceptions": finding.exceptions, "critical": critical, "matters": finding.matters, "fix": fix, "agents": agents, "undelivered": undelivered,
        "focus": diagram.pes_of_the_finding(),
        "lanes": diagram.lanes.iter().map(|lane| [number(lane.pe), optional(lane.stream)]).collect::<Vec<_>>(),
        "events": events,
        "transfers": diagram.transfers.iter().map(data_of_transfer).collect::<Vec<_>>(),
        "spans": spans,
        "edges": diagram.edges.iter().map(|edge| [edge.from, edge.to, usize::from(edge.kind == EdgeKind::Enqueues)]).collect::<Vec<_>>(),
        "meetings": diagram.meetings,
        "places": places.all,
        "files": finding.sources.iter().map(|source| json!({ "name": source.file, "text": source.text })).collect::<Vec<_>>(),
    })
}

/// What an event is, which decides how it looks. The page has the same list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    Call,
    Put,
    Get,
    Signal,
    Wait,
    Order,
    Meet,
    Local,
    Arrival,
    SourceRead,
    SignalArrival,
    Return,
    Entry,
    Enqueue,
}

fn class(events: &[Event], event: &Event) -> Class {
    match (event.kind, event.does) {
        (Kind::SourceRead, _) => Class::SourceRead,
        (Kind::Delivered, _) => match event.of.and_then(|of| events[of].does) {
            Some(Does::Atomic) => Class::SignalArrival,
            _ => Class::Arrival,
        },
        (Kind::Signaled, _) => Class::SignalArrival,
        (Kind::Returned, _) => Class::Return,
        (Kind::Entered, _) => Class::Entry,
        (Kind::Enqueue, _) => Class::Enqueue,
        (_, Some(Does::Put)) => Class::Put,
        (_, Some(Does::Get)) => Class::Get,
        (_, Some(Does::Signal | Does::Atomic)) => Class::Signal,
        (_, Some(Does::Wait)) => Class::Wait,
        (_, Some(Does::Fence | Does::Quiet | Does::Flush)) => Class::Order,
        (_, Some(Does::Barrier | Does::Sync | Does::Collective)) => Class::Meet,
        (_, Some(Does::Fetch | Does::Fill)) | (Kind::Loads, _) => Class::Local,
        (Kind::Op, None) => Class::Local,
        (Kind::Call, None) => Class::Call,
    }
}

fn data_of_events(diagram: &Diagram<'_>, places: &mut Places) -> Value {
    let events = &diagram.finding.events;
    let mut names: BTreeMap<&str, usize> = BTreeMap::new();
    for event in events {
        let next = names.len();
        names.entry(&event.op).or_insert(next);
    }
    let each = |value: &dyn Fn(&Event) -> i64| events.iter().map(value).collect::<Vec<i64>>();
    let mut all: Vec<(&&str, &usize)> = names.iter().collect();
    all.sort_by_key(|(_, number)| **number);
    json!({
        "names": all.iter().map(|(name, _)| **name).collect::<Vec<_>>(),
        "name": each(&|event| number(names[event.op.as_str()])),
        "class": each(&|event| class(events, event) as i64),
        "lane": diagram.lane_of,
        "column": columns(diagram),
        "step": events.iter().map(|event| event.step).collect::<Vec<_>>(),
        "of": each(&|event| optional(event.of)),
        "by": each(&|event| optional(event.by)),
        "peer": each(&|event| optional(event.to.or(event.from))),
        "place": events.iter().map(|event| places.number(&event.at)).collect::<Vec<_>>(),
        "text": events.iter().map(|event| event.text.as_str()).collect::<Vec<_>>(),
        "values": events.iter().map(Event::values_in_words).collect::<Vec<_>>(),
    })
}

/// The column of each event, from left to right. Each event has a column of its own, with two exceptions: an entry is in the
/// column of its call, and an end in that of the step that brought it.
fn columns(diagram: &Diagram<'_>) -> Vec<usize> {
    let events = &diagram.finding.events;
    let mut columns: Vec<usize> = Vec::with_capacity(events.len());
    let mut lanes_here: Vec<usize> = Vec::new();
    for (number, event) in events.iter().enumerate() {
        let lane = diagram.lane_of[number];
        let is_one_step = number > 0 && events[number - 1].step == event.step;
        let joins = match event.kind {
            Kind::Entered => number > 0,
            Kind::Returned => is_one_step && !lanes_here.contains(&lane),
            _ => false,
        };
        if !joins {
            lanes_here.clear();
        }
        lanes_here.push(lane);
        columns.push(columns.last().map_or(0, |last| last + usize::from(!joins)));
    }
    columns
}

fn data_of_transfer(transfer: &Transfer) -> [i64; 6] {
    let Transfer { kind, issue, leaves, arrives, from, to } = *transfer;
    let class = match kind {
        Does::Get => Class::Get,
        Does::Signal | Does::Atomic => Class::Signal,
        Does::Collective => Class::Meet,
        _ => Class::Put,
    };
    [class as i64, number(issue), number(leaves), optional(arrives), number(from), number(to)]
}

fn data_of_race(diagram: &Diagram<'_>, which: usize, race: &Race, places: &mut Places) -> Value {
    let Race { first, second, pe, memory, made_at, missing, times, known } = race;
    let conflict = &diagram.conflicts[which];
    let mut side = |access: &Access, event: Option<usize>| {
        json!({
            "text": access.to_string(), "call": access.call, "pe": access.pe, "stream": optional(access.stream),
            "how": access.how, "place": places.number(&access.at), "event": optional(event),
        })
    };
    let (first, second) = (side(first, conflict.first), side(second, conflict.second));
    json!({
        "first": first, "second": second, "pe": pe, "memory": memory, "times": times, "known": known,
        "made": places.optional(made_at.as_ref()),
        "missing": {
            "text": missing.text, "call": missing.call,
            "after": places.number(&missing.after), "before": places.number(&missing.before),
        },
    })
}

fn data_of_fix(fix: &Fix, places: &mut Places) -> Value {
    let edits: Vec<Value> = (fix.edits.iter())
        .map(|Edit { call, after, side, before, stream }| {
            let (after, before) = (places.number(after), places.optional(before.as_ref()));
            json!({ "call": call, "stream": stream, "after": after, "side": side, "before": before })
        })
        .collect();
    json!({ "text": fix.text, "proved": fix.proved, "edits": edits })
}

/// The places that are named, each once: its file, by its number, or -1 with a name of its own; and its line.
struct Places {
    files: BTreeMap<String, usize>,
    numbers: BTreeMap<Place, usize>,
    all: Vec<Value>,
}

impl Places {
    fn new(finding: &Finding) -> Places {
        let files = finding.sources.iter().enumerate().map(|(number, source)| (source.file.clone(), number)).collect();
        Places { files, numbers: BTreeMap::new(), all: Vec::new() }
    }

    fn number(&mut self, place: &Place) -> usize {
        if let Some(number) = self.numbers.get(place) {
            return *number;
        }
        self.all.push(json!({
            "file": optional(self.files.get(&place.file).copied()), "line": place.line, "text": place.to_string(),
        }));
        self.numbers.insert(place.clone(), self.all.len() - 1);
        self.all.len() - 1
    }

    fn optional(&mut self, place: Option<&Place>) -> i64 {
        optional(place.map(|place| self.number(place)))
    }
}

fn number(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(-1)
}

fn optional(value: Option<usize>) -> i64 {
    value.map_or(-1, number)
}
