//! [`CompileError`]: why there is no PTX.

use std::fmt;
use std::path::PathBuf;

use crate::search::Absent;

/// Why there is no PTX.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CompileError {
    /// NVRTC is in none of the places where it was looked for.
    NotFound {
        /// The places, in the order in which they were tried, each with what was found there.
        looked: Vec<String>,
    },
    /// NVRTC was found or named, but it cannot be used.
    Unusable {
        /// The file, or the name that the system's loader was given.
        file: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// An option, or the text as a whole, cannot be given to NVRTC.
    Input {
        /// What it is: the option with its value, or the name of the text.
        what: String,
        /// What is wrong with it, and what would be right.
        why: String,
    },
    /// The text does not compile.
    Source {
        /// The name of the text.
        name: String,
        /// What NVRTC says: `FILE:LINE: error: …`, with the line.
        log: String,
        /// What helps against the mistakes in it that are often made.
        hints: Vec<&'static str>,
    },
    /// NVRTC failed for a reason that is not in the text.
    Failed {
        /// The function.
        call: &'static str,
        /// What it reported.
        why: String,
    },
}

/// How to get NVRTC.
const REMEDY: &str = "pip install nvidia-cuda-nvrtc, or set ONESIDED_NVRTC to libnvrtc.so.13; PTX that was compiled elsewhere runs \
                      without it";

impl fmt::Display for CompileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CompileError::NotFound { looked } => {
                write!(f, "NVRTC, which compiles kernels, is not here: {}; remedy: {REMEDY}", looked.join("; "))
            }
            CompileError::Unusable { file, why } => {
                write!(f, "NVRTC, which compiles kernels, cannot be used: {}: {why}; remedy: {REMEDY}", file.display())
            }
            CompileError::Input { what, why } => write!(f, "{what}: {why}"),
            CompileError::Source { name, log, hints } => {
                write!(f, "{name} does not compile:\n{log}")?;
                hints.iter().try_for_each(|hint| write!(f, "\nhelp: {hint}"))
            }
            CompileError::Failed { call, why } => write!(f, "{call}: {why}"),
        }
    }
}

impl std::error::Error for CompileError {}

impl From<Absent> for CompileError {
    fn from(absent: Absent) -> CompileError {
        match absent {
            Absent::Nowhere(looked) => CompileError::NotFound { looked },
            Absent::Unusable(file, why) => CompileError::Unusable { file, why },
        }
    }
}

/// A value that cannot be given to NVRTC.
pub(crate) fn input(what: impl Into<String>, why: impl Into<String>) -> CompileError {
    CompileError::Input { what: what.into(), why: why.into() }
}
