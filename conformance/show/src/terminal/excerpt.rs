//! Lines of the program, as far as the finding has its source.

use std::fmt::Write as _;

use super::{Look, Terminal};
use crate::event::Place;
use crate::finding::Finding;

/// Lines that are shown before and behind the one that is meant.
const AROUND: usize = 2;

/// The line with those around it; nothing if the source is not there.
pub(super) fn excerpt(finding: &Finding, place: &Place, to: Terminal) -> String {
    let Some(text) = finding.source(&place.file).filter(|_| place.line > 0) else { return String::new() };
    let (first, last) = (place.line.saturating_sub(AROUND).max(1), place.line.saturating_add(AROUND));
    let mut out = String::new();
    for (number, line) in text.lines().enumerate().map(|(i, line)| (i + 1, line)).skip(first - 1) {
        if number > last {
            break;
        }
        let is_it = number == place.line;
        let mark = if is_it { to.paint(Look::Wrong, ">") } else { " ".to_string() };
        let gutter = to.paint(Look::Faint, &format!("{number:>5} |"));
        let line: String = line.chars().take(to.columns.saturating_sub(12)).collect();
        let line = if is_it { to.paint(Look::Heading, &line) } else { line };
        let _ = writeln!(out, "  {mark} {gutter} {line}");
    }
    out
}

/// Several lines, under their places.
pub(super) fn excerpts(finding: &Finding, places: &[Place], to: Terminal) -> String {
    let mut out = String::new();
    for place in places {
        let lines = excerpt(finding, place, to);
        if !lines.is_empty() {
            let _ = write!(out, "\n  {}\n{lines}", to.paint(Look::Place, &place.to_string()));
        }
    }
    out
}
