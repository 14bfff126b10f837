//! [`Trouble`]: why a job failed, in the words of reports.

use std::fmt;
use std::time::Duration;

use super::protocol::{Failure, Panic};
use crate::launch::meaning;

/// What went wrong in a job, and the last lines that its PEs printed before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    /// What happened.
    pub what: What,
    /// The PE with which it began, if it began with one.
    pub pe: Option<usize>,
    /// The last lines that were printed, each with its PE.
    pub tail: Vec<String>,
}

/// What can go wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "who reports trouble must have words for each kind")]
pub enum What {
    /// The job could not be started, or its PEs differ.
    Start(String),
    /// A call returned an error.
    Failed(Failure),
    /// The program panicked.
    Panicked(Panic),
    /// The process ended without a message.
    Exited(i32),
    /// A signal ended the process.
    Killed(i32),
    /// No PE made progress in time.
    Hung {
        /// The limit.
        limit: Duration,
        /// Where the PEs were.
        places: String,
    },
}

/// libnvshmem ends a process with this status, whatever was wrong.
const LIBRARY_EXIT: i32 = 255;

impl Trouble {
    /// The outcome of such a run, by the simulator's name; `None` if the simulator has no such outcome.
    pub fn outcome(&self) -> Option<String> {
        match &self.what {
            What::Failed(Failure { kind, .. }) => Some(format!("failed: {kind}")),
            What::Panicked(_) => Some("panicked".to_string()),
            What::Exited(LIBRARY_EXIT) => None,
            What::Exited(status) => Some(format!("exited: {status}")),
            What::Start(_) | What::Killed(_) | What::Hung { .. } => None,
        }
    }

    /// The outcome of a case that is meant to end in trouble. There the simulator's name for a hang is a deadlock.
    pub fn verdict(&self) -> Option<String> {
        match self.what {
            What::Hung { .. } => Some("deadlock".to_string()),
            _ => self.outcome(),
        }
    }

    /// Whether this is about the machine and not about the program.
    pub fn is_operating(&self) -> bool {
        matches!(self.what, What::Start(_) | What::Failed(Failure { operating: true, .. }))
    }

    /// The sentence, what it means if that is known, and the last lines that were printed behind it.
    pub fn with_tail(&self) -> String {
        let lines = self.tail.iter().map(|line| format!("; | {line}"));
        let meaning = self.meaning().map(|meaning| format!("; {meaning}"));
        format!("{self}{}{}", meaning.unwrap_or_default(), lines.collect::<String>())
    }

    /// What the lines that were printed mean, if that is known: the cause, and what would help.
    pub fn meaning(&self) -> Option<&'static str> {
        self.tail.iter().find_map(|line| meaning(line))
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.pe, &self.what) {
            (Some(pe), _) => write!(f, "PE {pe} ")?,
            (None, What::Start(_) | What::Hung { .. }) => {}
            (None, _) => f.write_str("a PE ")?,
        }
        match &self.what {
            What::Start(why) => f.write_str(why),
            What::Failed(Failure { text, .. }) => write!(f, "failed: {text}"),
            What::Panicked(Panic { text, at: Some(at) }) => write!(f, "panicked at {at}: {text}"),
            What::Panicked(Panic { text, at: None }) => write!(f, "panicked: {text}"),
            What::Exited(LIBRARY_EXIT) => write!(f, "was ended by the library (status {LIBRARY_EXIT})"),
            What::Exited(0) => write!(f, "ended before it was done (status 0)"),
            What::Exited(status) => write!(f, "ended the job with status {status}"),
            What::Killed(signal) => write!(f, "was killed by signal {signal}{}", name(*signal)),
            What::Hung { limit, places } => {
                write!(f, "no PE got further within {} s: {places}", limit.as_secs_f64())
            }
        }
    }
}

/// The names of the signals that say something about a program.
fn name(signal: i32) -> &'static str {
    match signal {
        4 => " (SIGILL)",
        6 => " (SIGABRT)",
        7 => " (SIGBUS)",
        8 => " (SIGFPE)",
        9 => " (SIGKILL: out of memory, or by hand)",
        11 => " (SIGSEGV)",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_simulator_knows_is_an_outcome() {
        let outcome = |what| Trouble { what, pe: Some(1), tail: Vec::new() }.outcome();
        let failed = What::Failed(Failure { kind: "device".into(), operating: true, text: String::new() });
        assert_eq!(outcome(failed).unwrap(), "failed: device");
        assert_eq!(outcome(What::Panicked(Panic { text: "here".into(), at: None })).unwrap(), "panicked");
        assert_eq!(outcome(What::Exited(3)).unwrap(), "exited: 3");
        for what in [What::Exited(255), What::Killed(11), What::Start(String::new())] {
            assert_eq!(outcome(what), None);
        }
    }

    #[test]
    fn the_last_lines_stand_below_the_sentence() {
        let trouble = Trouble { what: What::Killed(11), pe: Some(0), tail: vec!["PE 0: boom".into()] };
        assert_eq!(trouble.with_tail(), "PE 0 was killed by signal 11 (SIGSEGV); | PE 0: boom");
        let line = "PE 0: UCX  ERROR Connection reset by remote peer";
        let text = Trouble { tail: vec![line.into()], ..trouble }.with_tail();
        assert!(text.starts_with("PE 0 was killed by signal 11 (SIGSEGV); a PE that this one talked to"), "{text}");
        assert!(text.ends_with(&format!("; | {line}")), "{text}");
    }
}
