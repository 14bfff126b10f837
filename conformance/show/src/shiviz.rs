//! A log for ShiViz: every event with a vector clock. Hosts, streams and each PE's memory are processes there.
//!
//! The clocks know what the picture shows: program order, transfers from issue to delivery, what ended a wait, what was enqueued, and
//! who met in a collective. A quiet that ended knows what its own host or stream had issued and was delivered.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::diagram::{Diagram, Lane};
use crate::event::{Does, Event, Kind};
use crate::finding::Finding;

/// The expression by which ShiViz reads the log: the first line of the file.
pub const EXPRESSION: &str = r"(?<host>\S+) (?<clock>\{.*\})\n(?<event>.*)";

/// A process of the log.
type Process = (Lane, Place);

/// Where on a PE an event stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    Agent,
    Memory,
}

type Clock = BTreeMap<Process, usize>;

/// The finding as a log.
pub fn shiviz(finding: &Finding) -> String {
    let diagram = Diagram::new(finding);
    let events = &finding.events;
    let mut before: Vec<Vec<usize>> = vec![Vec::new(); events.len()];
    for transfer in &diagram.transfers {
        before[transfer.leaves].extend(Some(transfer.issue).filter(|issue| *issue < transfer.leaves));
        before[transfer.arrives.unwrap_or(transfer.leaves)].extend(transfer.arrives.map(|_| transfer.leaves));
    }
    diagram.edges.iter().for_each(|edge| before[edge.to].push(edge.from));
    meet(&diagram, &mut before);
    complete(&diagram, &mut before);

    let mut out = format!("{EXPRESSION}\n\n");
    let mut clocks: Vec<Clock> = Vec::with_capacity(events.len());
    let mut last: BTreeMap<Process, usize> = BTreeMap::new();
    for (number, event) in events.iter().enumerate() {
        let process = process(&diagram, number);
        let mut clock = last.get(&process).map(|last| clocks[*last].clone()).unwrap_or_default();
        for &earlier in &before[number] {
            for (other, time) in &clocks[earlier] {
                let known = clock.entry(*other).or_insert(0);
                *known = (*known).max(*time);
            }
        }
        *clock.entry(process).or_insert(0) += 1;
        let times: Vec<String> = clock.iter().map(|(process, time)| format!("\"{}\":{time}", name(*process))).collect();
        let _ = writeln!(out, "{} {{{}}}\n{}", name(process), times.join(","), line(number, event));
        last.insert(process, number);
        clocks.push(clock);
    }
    out
}

fn process(diagram: &Diagram<'_>, number: usize) -> Process {
    let lane = diagram.lanes[diagram.lane_of[number]];
    match diagram.finding.events[number].is_of_a_transfer() {
        true => (Lane { stream: None, ..lane }, Place::Memory),
        false => (lane, Place::Agent),
    }
}

/// ShiViz's names have no blanks.
fn name((lane, place): Process) -> String {
    match (lane.stream, place) {
        (_, Place::Memory) => format!("PE{}.memory", lane.pe),
        (None, Place::Agent) => format!("PE{}", lane.pe),
        (Some(stream), Place::Agent) => format!("PE{}.stream{stream}", lane.pe),
    }
}

/// An event in one line.
fn line(number: usize, event: &Event) -> String {
    let values = event.values_in_words();
    let text = match event.kind {
        Kind::SourceRead => format!("source read: {}", event.text),
        Kind::Delivered => format!("delivered: {}", event.text),
        Kind::Signaled => format!("signaled: {}", event.text),
        Kind::Enqueue => format!("enqueued {}", event.text),
        _ => event.text.clone(),
    };
    let text = format!("#{number} {text} {values} ({})", event.at);
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Whoever leaves a collective together with others knows all entries.
fn meet(diagram: &Diagram<'_>, before: &mut [Vec<usize>]) {
    let events = &diagram.finding.events;
    let mut entered: BTreeMap<usize, &Vec<usize>> = BTreeMap::new();
    for entries in &diagram.meetings {
        entered.extend(entries.iter().filter_map(|entry| Some((events[*entry].of?, entries))));
    }
    for span in &diagram.spans {
        let (Some(end), Some(entries)) = (span.end, entered.get(&span.call)) else { continue };
        let moves_data = events[span.call].does == Some(Does::Collective);
        if events[end].kind == Kind::Returned && !moves_data {
            before[end].extend(entries.iter().filter(|entry| **entry < end));
        }
    }
}

/// A quiet or barrier that ended knows its own transfers.
fn complete(diagram: &Diagram<'_>, before: &mut [Vec<usize>]) {
    let events = &diagram.finding.events;
    for span in &diagram.spans {
        let completes = matches!(events[span.call].does, Some(Does::Quiet | Does::Barrier));
        let Some(end) = span.end.filter(|_| completes) else { continue };
        let mine = diagram.transfers.iter().filter(|transfer| {
            transfer.issue < span.call
                && diagram.lane_of[transfer.issue] == span.lane
                && transfer.kind != Does::Collective
        });
        before[end].extend(mine.filter_map(|transfer| transfer.arrives).filter(|arrived| *arrived < end));
    }
}
