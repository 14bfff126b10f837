//! A program that is not deterministic by itself: which of its calls is the first to differ from run to run.

use onesided::{At, Error, ErrorKind};

use crate::trace::Event;

/// The error for a program that did something else the second time. `what`: how that was noticed. `difference`: the first
/// call that differs, where it was found.
#[track_caller]
pub(crate) fn not_deterministic(what: &str, difference: Option<String>) -> Error {
    let first = match difference {
        Some(difference) => format!("{what}. The first difference: {difference}. It"),
        None => format!("{what}; it"),
    };
    let message = format!("the program is not deterministic: {first} must not use time, randomness or shared state");
    Error::new(ErrorKind::WrongResult, "explore", message, At::caller())
}

/// The first event that two runs of one schedule do not share.
pub(crate) fn difference(one: &[Event], other: &[Event]) -> Option<String> {
    let first = (0..one.len().max(other.len())).find(|&number| one.get(number) != other.get(number))?;
    let did = |trace: &[Event]| match trace.get(first) {
        Some(event) => in_words(event),
        None => "nothing more happens".to_string(),
    };
    Some(format!("in one run, {}; in another, {}", did(one), did(other)))
}

/// `PE 1 at app.rs:12: p<u64>(…) [7]`.
fn in_words(event: &Event) -> String {
    let stream = event.stream.map(|stream| format!(" stream {stream}")).unwrap_or_default();
    let values = event.moved.as_ref().map(|moved| format!(" {moved}")).unwrap_or_default();
    format!("PE {}{stream} at {}: {}{values}", event.pe, event.at, event.call_in_words())
}
