//! A trace for Perfetto and `chrome://tracing`: a process for each PE, a thread for each host, stream and memory, and an arrow for each
//! transfer. An event takes a microsecond, because a simulation has no clock: only the order means something.

use serde_json::{Value, json};

use crate::diagram::{Diagram, EdgeKind};
use crate::event::{Event, Kind};
use crate::finding::Finding;

/// The thread of a PE's memory, on which deliveries stand. Hosts are 0, streams follow.
const MEMORY: usize = 10_000;

/// The finding as a Chrome trace.
pub fn perfetto(finding: &Finding) -> String {
    let diagram = Diagram::new(finding);
    let mut events = names(&diagram);
    let ends = ends(&diagram);
    for (number, event) in finding.events.iter().enumerate() {
        let (pe, thread) = thread(&diagram, number);
        let duration = ends[number].map_or(1, |end| end - number).max(1);
        events.push(json!({
            "name": name(finding, event), "cat": category(event), "ph": "X",
            "ts": number, "dur": duration, "pid": pe, "tid": thread,
            "args": {
                "event": number, "step": event.step, "text": event.text, "at": event.at,
                "values": event.values_in_words(),
            },
        }));
    }
    let transfers =
        diagram.transfers.iter().filter_map(|transfer| Some((transfer.leaves, transfer.arrives?, "transfer")));
    let edges = diagram.edges.iter().map(|edge| match edge.kind {
        EdgeKind::Ends => (edge.from, edge.to, "ends"),
        EdgeKind::Enqueues => (edge.from, edge.to, "enqueues"),
    });
    for (id, (from, to, what)) in transfers.chain(edges).enumerate() {
        for (phase, event) in [("s", from), ("f", to)] {
            let (pe, thread) = thread(&diagram, event);
            events.push(json!({
                "name": what, "cat": what, "ph": phase, "id": id, "bp": "e", "ts": event, "pid": pe, "tid": thread,
            }));
        }
    }
    for (race, conflict) in finding.races.iter().zip(&diagram.conflicts) {
        for event in [conflict.first, conflict.second].into_iter().flatten() {
            let (pe, thread) = thread(&diagram, event);
            events.push(json!({
                "name": "data race", "cat": "race", "ph": "i", "s": "t", "ts": event, "pid": pe, "tid": thread,
                "args": { "memory": race.memory, "missing": race.missing.text },
            }));
        }
    }
    let about = json!({ "program": finding.program, "schedule": finding.schedule, "verdict": finding.headline() });
    json!({ "traceEvents": events, "displayTimeUnit": "ns", "otherData": about }).to_string()
}

/// The process and the thread of an event.
fn thread(diagram: &Diagram<'_>, number: usize) -> (usize, usize) {
    let lane = diagram.lanes[diagram.lane_of[number]];
    match diagram.finding.events[number].is_of_a_transfer() {
        true => (lane.pe, MEMORY),
        false => (lane.pe, lane.stream.map_or(0, |stream| stream + 1)),
    }
}

/// For each call that had to wait the event that ended it, or the end of the run.
fn ends(diagram: &Diagram<'_>) -> Vec<Option<usize>> {
    let events = diagram.finding.events.len();
    let mut ends = vec![None; events];
    for span in &diagram.spans {
        ends[span.call] = Some(span.end.unwrap_or(events));
    }
    ends
}

fn names(diagram: &Diagram<'_>) -> Vec<Value> {
    let mut names = Vec::new();
    let mut name = |what: &str, pe: usize, thread: usize, args: Value| {
        names.push(json!({ "name": what, "ph": "M", "pid": pe, "tid": thread, "args": args }));
    };
    for lane in &diagram.lanes {
        let (thread, label) = match lane.stream {
            None => (0, "host".to_string()),
            Some(stream) => (stream + 1, format!("stream {stream}")),
        };
        if lane.stream.is_none() {
            name("process_name", lane.pe, 0, json!({ "name": format!("PE {}", lane.pe) }));
            name("process_sort_index", lane.pe, 0, json!({ "sort_index": lane.pe }));
            name("thread_name", lane.pe, MEMORY, json!({ "name": "memory" }));
        }
        name("thread_name", lane.pe, thread, json!({ "name": label }));
    }
    names
}

fn name(finding: &Finding, event: &Event) -> String {
    let call = |of: Option<usize>| of.map_or("transfer", |of| finding.events[of].op.as_str());
    match event.kind {
        Kind::SourceRead => format!("source of {}", call(event.of)),
        Kind::Delivered => format!("delivery of {}", call(event.of)),
        Kind::Signaled => format!("signal of {}", call(event.of)),
        Kind::Entered => event.text.clone(),
        Kind::Returned => format!("{} ends", event.op),
        Kind::Enqueue => format!("enqueue {}", event.op),
        Kind::Call | Kind::Op | Kind::Loads => event.op.clone(),
    }
}

fn category(event: &Event) -> &'static str {
    match event.kind {
        Kind::SourceRead | Kind::Delivered | Kind::Signaled => "memory",
        _ => "call",
    }
}
