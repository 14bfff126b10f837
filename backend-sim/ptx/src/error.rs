//! Why a PTX text was refused.

use std::fmt;

use crate::source::Location;

/// A PTX text that cannot be run: what is wrong, in which line of the PTX, and from which line of the source it was compiled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// What is wrong, and where it helps what would be right.
    pub message: String,
    /// The line of the PTX text, from 1; 0 if it is about the whole.
    pub line: u32,
    /// The line of the source, if the PTX names one (compile with `-lineinfo`).
    pub source: Option<Location>,
}

impl Error {
    pub(crate) fn new(line: u32, message: impl Into<String>) -> Self {
        Self { message: message.into(), line, source: None }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.line, &self.source) {
            (0, _) => write!(f, "PTX: {}", self.message),
            (line, None) => write!(f, "PTX, line {line}: {}", self.message),
            (line, Some(source)) => write!(f, "PTX, line {line} ({source}): {}", self.message),
        }
    }
}

impl std::error::Error for Error {}
