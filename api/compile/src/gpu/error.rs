//! [`LinkError`]: why there is nothing that a GPU can run.

use std::fmt;
use std::path::PathBuf;

use crate::error::CompileError;
use crate::search::{Absent, NVJITLINK};

/// Why there is nothing that a GPU can run.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LinkError {
    /// NVRTC is not here, or does not compile the text, or the functions of NVSHMEM.
    Compile(CompileError),
    /// nvJitLink is in none of the places where it was looked for.
    NotFound {
        /// The places, in the order in which they were tried.
        looked: Vec<String>,
    },
    /// nvJitLink was found or named, but it cannot be used.
    Unusable {
        /// The file, or the name that the system's loader was given.
        file: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// A part of NVSHMEM's or CUDA's installation that is needed is not there.
    Incomplete {
        /// The part, and where it was looked for.
        what: String,
        /// How to get it.
        remedy: &'static str,
    },
    /// The PTX cannot be linked.
    Ptx {
        /// Its name.
        name: String,
        /// What is wrong with it, with its line where that is known.
        why: String,
    },
    /// The installed NVSHMEM does not have a function for kernels that the PTX calls.
    Missing {
        /// The function.
        function: String,
        /// The version that lacks it.
        version: [i32; 3],
    },
    /// nvJitLink failed for a reason that is not in the PTX.
    Failed {
        /// The function.
        call: &'static str,
        /// What it reported.
        why: String,
    },
}

/// How to get nvJitLink.
const REMEDY: &str = "pip install nvidia-nvjitlink, or set ONESIDED_NVJITLINK to libnvJitLink.so.13";

impl fmt::Display for LinkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tool = NVJITLINK.name;
        match self {
            LinkError::Compile(why) => write!(f, "{why}"),
            LinkError::NotFound { looked } => {
                write!(f, "{tool}, which links kernels, is not here: {}; remedy: {REMEDY}", looked.join("; "))
            }
            LinkError::Unusable { file, why } => {
                write!(f, "{tool}, which links kernels, cannot be used: {}: {why}; remedy: {REMEDY}", file.display())
            }
            LinkError::Incomplete { what, remedy } => write!(f, "{what}; remedy: {remedy}"),
            LinkError::Ptx { name, why } => write!(f, "{name}: {why}"),
            LinkError::Missing { function, version: [major, minor, patch] } => {
                write!(
                    f,
                    "NVSHMEM {major}.{minor}.{patch} has no {function} for kernels; remedy: check the spelling of the name, \
                     or take another type of its elements or another version"
                )
            }
            LinkError::Failed { call, why } => write!(f, "{call}: {why}"),
        }
    }
}

impl std::error::Error for LinkError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        if let LinkError::Compile(why) = self { Some(why) } else { None }
    }
}

impl From<CompileError> for LinkError {
    fn from(why: CompileError) -> LinkError {
        LinkError::Compile(why)
    }
}

impl From<Absent> for LinkError {
    fn from(absent: Absent) -> LinkError {
        match absent {
            Absent::Nowhere(looked) => LinkError::NotFound { looked },
            Absent::Unusable(file, why) => LinkError::Unusable { file, why },
        }
    }
}
