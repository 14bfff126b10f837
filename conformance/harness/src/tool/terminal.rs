//! The terminal on which lines for people stand, if it is one; and what is drawn on it of a trace.

use std::io::{self, IsTerminal as _};

use anstream::{AutoStream, ColorChoice};
use onesided_show::Terminal;
use onesided_sim::Event;

use super::say;

/// Columns where nobody says how many there are.
const COLUMNS: usize = 120;

/// Colours on a terminal that shows them, unless `NO_COLOR` says otherwise (and `CLICOLOR_FORCE`, as anstream reads them).
pub fn terminal() -> Terminal {
    let out = io::stdout();
    let choice = if say::is_taken() { AutoStream::choice(&io::stderr()) } else { AutoStream::choice(&out) };
    let colours = choice != ColorChoice::Never;
    let columns = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    let measured = || out.is_terminal().then(terminal_size::terminal_size).flatten().map(|(width, _)| width.0.into());
    Terminal { colours, columns: columns.or_else(measured).unwrap_or(COLUMNS) }
}

/// The events of a trace, as pictures have them.
pub fn events_of(trace: &[Event]) -> Vec<onesided_show::Event> {
    let event = |event: &Event| serde_json::from_value(event.to_json()).expect("a trace has the events of its schema");
    trace.iter().map(event).collect()
}
