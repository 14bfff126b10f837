//! Small tools of the command lines: each knows nothing of programs and cases.

pub mod command;
pub mod interrupt;
pub mod invocation;
pub mod number;
pub mod output;
pub mod progress;
pub mod say;
pub mod stall;

use onesided_sim::Schedule;

/// A schedule as a finding printed it; the error without its place in this program, which says nothing to a user.
pub fn schedule(text: &str) -> Result<Schedule, String> {
    text.parse().map_err(|error: onesided::Error| error.message().to_string())
}

/// A number of things: `1 case`, `2 cases`.
pub fn count(number: u64, thing: &str) -> String {
    format!("{number} {thing}{}", if number == 1 { "" } else { "s" })
}
