//! What happened, as a table: an event a row, a PE a column.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::{Look, Terminal};
use crate::count::count;
use crate::diagram::{Diagram, Lane};
use crate::event::{Event, Kind};

/// The most rows; of more, those at the end.
const ROWS: usize = 48;
/// A column is at least so wide; where there are more lanes, those that the finding is about are shown.
const NARROW: usize = 24;
/// And at most so wide.
const WIDE: usize = 40;
/// Room for the number of the event, and for its line.
const BESIDE: usize = 7 + 24;

/// The last events of the run, of the PEs that matter.
pub(super) fn rows(diagram: &Diagram<'_>, to: Terminal) -> String {
    let events = &diagram.finding.events;
    let lanes = shown_lanes(diagram, to.columns);
    if lanes.is_empty() || events.is_empty() {
        return String::new();
    }
    let width = (to.columns.saturating_sub(BESIDE) / lanes.len()).clamp(NARROW, WIDE);
    let shown = |number: &usize| {
        let is_told = matches!(events[*number].kind, Kind::Entered);
        !is_told && lanes.contains(&diagram.lane_of[*number])
    };
    let numbers: Vec<usize> = (0..events.len()).filter(shown).collect();
    let (earlier, numbers) = numbers.split_at(numbers.len().saturating_sub(ROWS));
    let wrong = wrong(diagram);

    let mut out = format!("\n{}\n", to.paint(Look::Heading, "What happened"));
    let header: String = lanes.iter().map(|&lane| fit(&diagram.lanes[lane].name(), width)).collect();
    let _ = writeln!(out, "       {}", to.paint(Look::Faint, header.trim_end()));
    if !earlier.is_empty() {
        let _ =
            writeln!(out, "       {}", to.paint(Look::Faint, &format!("… {} before", count(earlier.len(), "event"))));
    }
    let mut file = "";
    for &number in numbers {
        let event = &events[number];
        let column = lanes.iter().position(|&lane| lane == diagram.lane_of[number]).unwrap_or(0);
        let cell = fit(&cell(events, event), width * (lanes.len() - column));
        let cell = if wrong.contains(&number) { to.paint(Look::Wrong, &cell) } else { cell };
        // the file where it changes
        let place = if event.at.file == file || event.at.line == 0 {
            event.at.line.checked_sub(1).map_or(String::new(), |before| format!(":{}", before + 1))
        } else {
            file = &event.at.file;
            event.at.to_string()
        };
        let mark = if wrong.contains(&number) { to.paint(Look::Wrong, "!") } else { " ".into() };
        let (indent, place) = (" ".repeat(width * column), to.paint(Look::Place, &place));
        let number = to.paint(Look::Faint, &format!("{number:>5}"));
        let _ = writeln!(out, "{}", format!("{number}{mark} {indent}{cell} {place}").trim_end());
    }
    out
}

/// The events of the race that is shown.
fn wrong(diagram: &Diagram<'_>) -> BTreeSet<usize> {
    diagram.conflicts.iter().take(1).flat_map(|conflict| [conflict.first, conflict.second]).flatten().collect()
}

/// The lanes that fit. If not all fit, these are the lanes of the PEs that the finding is about, as many as fit. The lanes of a
/// race come first.
fn shown_lanes(diagram: &Diagram<'_>, columns: usize) -> Vec<usize> {
    let room = (columns.saturating_sub(BESIDE) / NARROW).max(1);
    let all: Vec<usize> = (0..diagram.lanes.len()).collect();
    if all.len() <= room {
        return all;
    }
    let pes = diagram.pes_of_the_finding();
    let of_the_finding = |lane: &Lane| pes.contains(&lane.pe);
    let mut some: Vec<usize> = all.iter().copied().filter(|&lane| of_the_finding(&diagram.lanes[lane])).collect();
    if some.is_empty() {
        some = all;
    }
    let wrong: BTreeSet<usize> = wrong(diagram).into_iter().map(|event| diagram.lane_of[event]).collect();
    some.sort_by_key(|lane| !wrong.contains(lane));
    some.truncate(room);
    some.sort_unstable();
    some
}

/// An event in few words.
fn cell(events: &[Event], event: &Event) -> String {
    let name = |of: Option<usize>| match of.map(|of| (of, &events[of])) {
        Some((of, call)) => {
            let call = if call.op.is_empty() { call.of.map_or(call, |of| &events[of]) } else { call };
            format!("{} #{of}", call.op)
        }
        None => "transfer".to_string(),
    };
    let piece = match (event.piece, event.pieces) {
        (Some(piece), Some(pieces)) => format!(" {}/{pieces}", piece + 1),
        _ => String::new(),
    };
    let values = Some(event.values_in_words()).filter(|text| !text.is_empty()).map(|text| format!(" {text}"));
    let values = values.unwrap_or_default();
    match event.kind {
        Kind::Delivered => format!("◂ {}{piece}{values}", name(event.of)),
        Kind::Signaled => format!("◂ signal of {}{values}", name(event.of)),
        Kind::SourceRead => format!("▸ source of {}{piece}{values}", name(event.of)),
        Kind::Returned => {
            let by = event.by.map(|by| format!(" by #{by}")).unwrap_or_default();
            format!("{} ends{by}{values}", event.op)
        }
        Kind::Enqueue => format!("enqueue {}", event.op),
        Kind::Loads => format!("{} …", event.op),
        Kind::Entered => format!("enters {}", event.text),
        Kind::Op | Kind::Call => {
            let peer = event.to.or(event.from).filter(|peer| *peer != event.pe);
            let arrow = peer.map(|peer| format!(" {} PE {peer}", if event.to.is_some() { "→" } else { "←" }));
            format!("{}{}{piece}{values}", event.op, arrow.unwrap_or_default())
        }
    }
}

/// The text in exactly so many columns, or cut.
fn fit(text: &str, width: usize) -> String {
    let len = text.chars().count();
    match len < width {
        true => text.to_string() + &" ".repeat(width - len),
        false => text.chars().take(width.saturating_sub(2)).chain("… ".chars()).collect(),
    }
}
