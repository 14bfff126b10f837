//! Small tools of the command lines: each knows nothing of programs and cases.

pub(crate) mod interrupt;
pub(crate) mod output;
pub(crate) mod progress;
pub(crate) mod quiet;
pub(crate) mod say;
pub(crate) mod stall;

use onesided_sim::Schedule;

/// A schedule as a finding printed it; the error without its place in this program, which says nothing to a user.
pub(crate) fn schedule(text: &str) -> Result<Schedule, String> {
    text.parse().map_err(|error: onesided::Error| error.message().to_string())
}
