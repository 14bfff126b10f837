//! Small tools for command lines. None of them knows about programs or cases.

pub mod command;
pub mod finding;
pub mod interrupt;
pub mod invocation;
pub mod number;
pub mod output;
pub mod profiles;
pub mod progress;
pub mod say;
pub mod stall;
pub mod terminal;

use std::time::Duration;

use onesided_sim::Schedule;

/// Parses a schedule. The error is without its source line, which would be one of this crate.
pub fn schedule(text: &str) -> Result<Schedule, String> {
    text.parse().map_err(|error: onesided::Error| error.message().to_string())
}

/// How long something took, as a person writes it: `0.8 ms`, `12 ms`, `3.4 s`, `250 s`.
pub fn duration(time: Duration) -> String {
    match time.as_secs_f64() {
        short @ ..0.01 => format!("{:.1} ms", short * 1e3),
        short @ ..1.0 => format!("{:.0} ms", short * 1e3),
        long @ ..100.0 => format!("{long:.1} s"),
        long => format!("{long:.0} s"),
    }
}

/// A number of things: `1 case`, `2 cases`.
pub fn count(number: u64, thing: &str) -> String {
    format!("{number} {thing}{}", if number == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_two_or_three_digits() {
        let micros = [84, 800, 12_400, 999_000, 3_440_000, 250_000_000].map(Duration::from_micros);
        assert_eq!(micros.map(duration), ["0.1 ms", "0.8 ms", "12 ms", "999 ms", "3.4 s", "250 s"]);
    }
}
