//! The messages of a PE to the process that started it. A message is a line of standard output: a mark, then JSON. Everything
//! else that a PE prints comes from its program or from a library, and is only shown to people.

use std::io::{self, Write as _};

use onesided::{Capabilities, Error, Support};
use serde::{Deserialize, Serialize};

/// Begins each message. Neither libraries nor programs print it by chance.
pub const MARK: &str = "@onesided-pe@ ";

/// PEs with this variable in their environment send messages. Others print lines for people.
pub const LISTENS: &str = "ONESIDED_LISTENS";

/// A message of a PE.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "say", rename_all = "lowercase")]
#[expect(clippy::exhaustive_enums, reason = "both ends of the protocol must understand every message")]
pub enum Message {
    /// The PE is initialized.
    Ready(Ready),
    /// The PE begins a case, or the program.
    Start {
        /// Its name.
        name: String,
    },
    /// One run returned this.
    Returned {
        /// What the PE saw, or a program's lines.
        text: String,
    },
    /// The case took long, and the PEs agreed not to run it again.
    Enough,
    /// A call failed, and so did the PE.
    Failed(Failure),
    /// The program panicked.
    Panicked(Panic),
    /// The PE is finalized and about to end.
    Finalized,
}

/// What a PE knows of itself after initialization.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ready {
    /// The library and its version.
    pub library: String,
    /// The status of initialization, in NVSHMEM's words. It tells whether the PE shares its GPU.
    pub status: String,
    /// What does not work here.
    #[serde(default)]
    pub missing: Missing,
}

/// A call that returned an error.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// The error's kind, by name.
    pub kind: String,
    /// Whether this is about the machine and not about the program.
    pub operating: bool,
    /// The error, with its source line.
    pub text: String,
}

/// A panic of the program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Panic {
    /// Its message.
    pub text: String,
    /// Its source line, where that is known.
    #[serde(default)]
    pub at: Option<String>,
}

/// What a backend lacks: for each family of calls that a case can need, the reason.
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
    /// Its symmetric registration.
    #[serde(default)]
    pub symmetric_registration: Option<String>,
    /// Kernels.
    #[serde(default)]
    pub kernels: Option<String>,
    /// Atomics of kernels by several GPUs.
    #[serde(default)]
    pub kernel_atomics: Option<String>,
    /// What NVSHMEM has for kernels from 3.8 on.
    #[serde(default)]
    pub kernel_extensions: Option<String>,
}

impl Missing {
    /// What these capabilities lack.
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
            symmetric_registration: why(can.symmetric_registration),
            kernels: why(can.kernels),
            kernel_atomics: why(can.kernel_atomics),
            kernel_extensions: why(can.kernel_extensions),
        }
    }
}

impl Message {
    /// The message about an error.
    pub fn failed(error: &Error) -> Message {
        let operating = error.is_operating();
        Message::Failed(Failure { kind: error.kind().to_string(), operating, text: error.to_string() })
    }

    /// The message about an error before there was a PE. It is always about the machine. An argument came from the environment
    /// then.
    pub fn not_started(error: &Error) -> Message {
        Message::Failed(Failure { kind: error.kind().to_string(), operating: true, text: error.to_string() })
    }

    /// The message in a line, and what stands before it: a library may have left its own line unfinished.
    pub fn read(line: &str) -> Option<(&str, Message)> {
        let (before, message) = line.split_once(MARK)?;
        Some((before, serde_json::from_str(message).ok()?))
    }

    /// The line of the message, without its end.
    pub fn line(&self) -> String {
        // Messages hold strings, numbers and booleans, which can always be written.
        format!("{MARK}{}", serde_json::to_string(self).unwrap_or_default())
    }

    /// Writes the line to standard output at once and as a whole.
    pub fn send(&self) {
        let line = self.line() + "\n";
        let mut out = io::stdout().lock();
        // This fails if nobody reads any more. Then nobody is left to tell.
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
            Message::Failed(Failure { kind: "device".into(), operating: true, text: "put: …".into() }),
            Message::Panicked(Panic { text: String::new(), at: Some("demo.rs:1".into()) }),
            Message::Finalized,
        ] {
            let line = message.line();
            assert!(!line.contains('\n'), "{line}");
            assert_eq!(Message::read(&line), Some(("", message.clone())));
            assert_eq!(Message::read(&format!("unfinished{line}")), Some(("unfinished", message)));
        }
        let line = Message::Panicked(Panic { text: "lost".into(), at: None }).line();
        assert_eq!(line, r#"@onesided-pe@ {"say":"panicked","text":"lost","at":null}"#);
        assert_eq!(Message::read("@onesided-pe@ nonsense"), None);
        assert_eq!(Message::read("WARN: nothing of ours"), None);
    }
}
