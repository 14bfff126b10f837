//! [`Event`]: something that happened, as traces and findings have it; [`Place`]: a line of a program.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A line of a program's source. As text `file:line`, or the file alone where the line is not known.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
#[non_exhaustive]
pub struct Place {
    /// The file, as the compiler has it.
    pub file: String,
    /// The line, from 1; 0 if it is not known.
    pub line: usize,
}

impl From<String> for Place {
    fn from(text: String) -> Place {
        match text.rsplit_once(':').and_then(|(file, line)| Some((file, line.parse().ok()?))) {
            Some((file, line)) => Place { file: file.to_string(), line },
            None => Place { file: text, line: 0 },
        }
    }
}

impl From<Place> for String {
    fn from(place: Place) -> String {
        place.to_string()
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => f.write_str(&self.file),
            line => write!(f, "{}:{line}", self.file),
        }
    }
}

/// Something that happened in a run: an entry of `events` in a trace or a finding. Numbers of events count from 0.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Event {
    /// Number of the step in which it happened.
    pub step: u64,
    /// The PE whose host, stream or transfer it was.
    pub pe: usize,
    /// Which of the PE's streams; `None` for the host and for transfers.
    pub stream: Option<usize>,
    /// What kind of event.
    #[serde(rename = "event")]
    pub kind: Kind,
    /// The operation's or call's name, where the event is one.
    pub op: String,
    /// The event in words.
    pub text: String,
    /// The line that asked for it.
    pub at: Place,
    /// Its column, from 1; 0 if it is not known.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub column: usize,
    /// The event of the call that it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<usize>,
    /// What an operation does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub does: Option<Does>,
    /// The stream on which the operation is enqueued.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on: Option<usize>,
    /// The PE whose memory is written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<usize>,
    /// The PE whose memory is read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<usize>,
    /// What of the memory that was read nobody has written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unwritten: Option<String>,
    /// Which bytes of which buffer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<String>,
    /// Which piece of a transfer, from 0, if there are several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub piece: Option<usize>,
    /// How many there are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pieces: Option<usize>,
    /// The type of the values.
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    pub dtype: Option<String>,
    /// The first values that were read, stored or delivered.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<String>,
    /// How many there were besides.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more: usize,
    /// What an atomic update found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    /// The team of the collective that was entered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub team: Option<String>,
    /// The collective's number on the team.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<usize>,
    /// The event of the first entry into the same collective.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first: Option<usize>,
    /// The event that ended a call, or that set what a kernel has loaded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<usize>,
}

/// What kind of event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Kind {
    /// A call that is no operation.
    Call,
    /// An operation is performed: by the host, or by a stream that reached it.
    Op,
    /// An operation is enqueued.
    Enqueue,
    /// A load in pieces begins.
    Loads,
    /// The source of a transfer is read.
    #[serde(rename = "source read")]
    SourceRead,
    /// A piece of a transfer is delivered.
    Delivered,
    /// A signal is delivered.
    Signaled,
    /// A collective is entered.
    Entered,
    /// A call that had to wait is over.
    Returned,
}

/// What an operation does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Does {
    /// Writes a peer's memory.
    Put,
    /// Reads a peer's memory.
    Get,
    /// Updates a peer's word atomically.
    Atomic,
    /// Updates a peer's signal.
    Signal,
    /// Reads its own signal.
    Fetch,
    /// Writes its own memory.
    Fill,
    /// Waits for its own memory.
    Wait,
    /// Orders.
    Fence,
    /// Completes.
    Quiet,
    /// Makes sources reusable.
    Flush,
    /// Completes, then meets the team.
    Barrier,
    /// Meets the team.
    Sync,
    /// Moves data between the members of a team.
    Collective,
}

impl Event {
    /// The values as a person reads them: `[1, 2]`, `[1, 2 and 30 more]`, `1 -> 2` for an update; empty if there are none.
    pub fn values_in_words(&self) -> String {
        match (&self.before, &self.values[..], self.more) {
            (_, [], _) => String::new(),
            (Some(before), [after], _) => format!("{before} -> {after}"),
            (_, all, 0) => format!("[{}]", all.join(", ")),
            (_, first, more) => format!("[{} and {more} more]", first.join(", ")),
        }
    }

    /// Whether it is a step of a transfer, and not of a host or stream.
    pub fn is_of_a_transfer(&self) -> bool {
        matches!(self.kind, Kind::SourceRead | Kind::Delivered | Kind::Signaled)
    }

    /// Who did it: `PE 1`, `PE 1 stream 0`.
    pub fn who(&self) -> String {
        who(self.pe, self.stream)
    }
}

/// A PE's host, or one of its streams.
pub(crate) fn who(pe: usize, stream: Option<usize>) -> String {
    match stream {
        Some(stream) => format!("PE {pe} stream {stream}"),
        None => format!("PE {pe}"),
    }
}

fn is_zero(number: &usize) -> bool {
    *number == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_read_as_it_is_written() {
        for (text, file, line) in [
            ("src/main.rs:12", "src/main.rs", 12),
            ("c:/x.py:3", "c:/x.py", 3),
            ("the start of the run", "the start of the run", 0),
        ] {
            let place = Place::from(text.to_string());
            assert_eq!((place.file.as_str(), place.line, place.to_string().as_str()), (file, line, text));
        }
    }
}
