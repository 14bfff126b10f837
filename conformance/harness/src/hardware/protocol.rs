//! What a PE tells the process that started it: lines of its standard output that begin with a mark and are JSON behind
//! it. Everything else that a PE prints is output of its program or of a library, and only shown to people.

use std::io::{self, Write as _};

use onesided::{Capabilities, Error, Support};
use serde::{Deserialize, Serialize};

/// Begins each message. No library prints it, and a program would have to want to.
pub const MARK: &str = "@onesided-pe@ ";

/// Set in the environment of PEs that a process listens to: they speak in messages. Others speak to people.
pub const LISTENS: &str = "ONESIDED_LISTENS";

/// A message of one PE.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "say", rename_all = "lowercase")]
#[expect(clippy::exhaustive_enums, reason = "both ends of the protocol must understand every message")]
pub enum Message {
    /// It is initialized.
    Ready(Ready),
    /// It begins a case, or the program.
    Start {
        /// Its name.
        name: String,
    },
    /// One run of it returned this.
    Returned {
        /// What the PE saw, or a program's lines.
        text: String,
    },
    /// The case took so long that the PEs agreed on no more runs of it.
    Enough,
    /// A call failed, and with it the PE.
    Failed {
        /// The error's kind, by name.
        kind: String,
        /// Whether it says that something is not to be had here, and nothing about the program.
        operating: bool,
        /// The error, with its source line.
        text: String,
    },
    /// The program panicked.
    Panicked {
        /// The panic's message.
        text: String,
        /// Its source line, where that is known.
        #[serde(default)]
        at: Option<String>,
    },
    /// It is finalized, and about to end.
    Finalized,
}

/// What a PE knows of itself once it is initialized.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ready {
    /// The library and its version.
    pub library: String,
    /// Whether it shares its GPU, in NVSHMEM's words.
    pub status: String,
    /// What does not work here.
    #[serde(default)]
    pub missing: Missing,
}

/// What a backend does not offer: for each family of calls that a case can need, why not.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Missing {
    /// Atomics issued by the host.
    pub host_atomics: Option<String>,
    /// Loads and stores to peers on the same node.
    pub peer_access: Option<String>,
    /// Multicast on the world team.
    pub multicast: Option<String>,
    /// Registration of external memory.
    pub registration: Option<String>,
}

impl Missing {
    /// What a PE's capabilities deny.
    pub fn of(can: &Capabilities) -> Missing {
        let why = |support: Support| match support {
            Support::Missing(why) => Some(why.to_string()),
            _ => None,
        };
        Missing {
            host_atomics: why(can.host_atomics),
            peer_access: why(can.peer_access),
            multicast: why(can.multicast),
            registration: why(can.registration),
        }
    }
}

impl Message {
    /// The message that an error makes.
    pub fn failed(error: &Error) -> Message {
        Message::Failed {
            kind: error.kind().to_string(),
            operating: crate::program::is_operating(error.kind()),
            text: error.to_string(),
        }
    }

    /// The message of an error before there was a PE: always an operating one, also where it is about an argument, which
    /// came from the environment.
    pub fn not_started(error: &Error) -> Message {
        Message::Failed { kind: error.kind().to_string(), operating: true, text: error.to_string() }
    }

    /// The message of a line, and what stands before it: a library may have left its own line unfinished.
    pub fn read(line: &str) -> Option<(&str, Message)> {
        let (before, message) = line.split_once(MARK)?;
        Some((before, serde_json::from_str(message).ok()?))
    }

    /// The line of the message, without its end.
    pub fn line(&self) -> String {
        // Strings, numbers and booleans: nothing in a message can fail to be written.
        format!("{MARK}{}", serde_json::to_string(self).unwrap_or_default())
    }

    /// Writes the line to standard output, at once and whole.
    pub fn send(&self) {
        let line = self.line() + "\n";
        let mut out = io::stdout().lock();
        // Fails when nobody reads any more: then nobody is left to tell.
        let _ = out.write_all(line.as_bytes()).and_then(|()| out.flush());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_read_as_they_were_written() {
        let missing = Missing { multicast: Some("no NVLS".into()), ..Missing::default() };
        let ready = Ready { library: "libnvshmem 3.4.5".into(), status: "full MPG".into(), missing };
        for message in [
            Message::Ready(ready),
            Message::Start { name: "litmus/mp".into() },
            Message::Returned { text: "x=\"a\"\nb".into() },
            Message::Failed { kind: "device".into(), operating: true, text: "put: …".into() },
            Message::Panicked { text: String::new(), at: Some("demo.rs:1".into()) },
            Message::Finalized,
        ] {
            let line = message.line();
            assert!(!line.contains('\n'), "{line}");
            assert_eq!(Message::read(&line), Some(("", message.clone())));
            assert_eq!(Message::read(&format!("unfinished{line}")), Some(("unfinished", message)));
        }
        assert_eq!(Message::read("@onesided-pe@ nonsense"), None);
        assert_eq!(Message::read("WARN: nothing of ours"), None);
    }
}
