//! Small tools for command lines. None of them knows about programs or cases.

pub mod command;
pub mod interrupt;
pub mod invocation;
pub mod number;
pub mod output;
pub mod progress;
pub mod say;
pub mod stall;

use onesided_sim::Schedule;

/// Parses a schedule. The error is without its source line, which would be one of this crate.
pub fn schedule(text: &str) -> Result<Schedule, String> {
    text.parse().map_err(|error: onesided::Error| error.message().to_string())
}

/// A number of things: `1 case`, `2 cases`.
pub fn count(number: u64, thing: &str) -> String {
    format!("{number} {thing}{}", if number == 1 { "" } else { "s" })
}
