//! [`Problem`]: why a part of the machine cannot be used.
//!
//! This is the only error below the API. A function returns a `Problem` as long as it belongs to no call of a program; the
//! call that it ends turns it into an [`Error`], by the functions of this file.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use onesided::{At, Error, ErrorKind};

/// Why a library, a tool or a setting cannot be used. Each names the file, the command or the variable that it is about.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Problem {
    /// It is in none of the places where it was looked for.
    NotFound {
        /// What was looked for.
        what: &'static str,
        /// The places, in the order in which they were tried.
        looked: Vec<String>,
    },
    /// The file that the user named does not exist.
    Absent {
        /// The file.
        file: PathBuf,
        /// What names it: an argument or an environment variable.
        named_by: &'static str,
    },
    /// The file exists, but is not a whole library for this machine.
    Damaged {
        /// The file.
        file: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// The system's loader does not open it.
    Refused {
        /// The file, or the name that the loader was given.
        file: PathBuf,
        /// The loader's reason.
        why: String,
    },
    /// The library is whole, but the backend does not support its version.
    Version {
        /// The file.
        file: PathBuf,
        /// Its version, and those that fit.
        why: String,
    },
    /// A function or a command failed.
    Failed {
        /// The function or the command.
        call: String,
        /// What it reported.
        why: String,
    },
    /// It did not answer in time.
    NoAnswer {
        /// The function or the command.
        call: String,
        /// How long it was given.
        limit: Duration,
    },
    /// An environment variable has a value that is not possible, or is missing beside others.
    Variable {
        /// The variable, with its value where it has one.
        variable: String,
        /// What is wrong with it, and what would be right.
        why: String,
    },
    /// Not all PEs came to the place where they meet, in time.
    Missing {
        /// Where they meet.
        at: String,
        /// Who is missing.
        why: String,
    },
    /// PEs, or jobs, that met do not fit together.
    Disagreement {
        /// Where they met.
        at: String,
        /// What they disagree on.
        why: String,
    },
    /// This process is a PE already, or becomes one in another thread.
    Taken,
    /// An earlier initialization failed in this process.
    Spent,
    /// An earlier PE of this process ended without `finalize`, or failed at the end of `init`.
    Left,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Problem::NotFound { what, looked } => write!(f, "no {what}: {}", looked.join("; ")),
            Problem::Absent { file, named_by } => write!(f, "{named_by} names {}: no such file", file.display()),
            Problem::Damaged { file, why } => write!(f, "{} is not a usable library: {why}", file.display()),
            // The loader's reason nearly always begins with the name of the file that it could not open.
            Problem::Refused { file, why } if why.starts_with(&*file.to_string_lossy()) => f.write_str(why),
            Problem::Refused { file, why } | Problem::Version { file, why } => write!(f, "{}: {why}", file.display()),
            Problem::Failed { call, why } => write!(f, "{call}: {why}"),
            Problem::NoAnswer { call, limit } => write!(f, "{call}: no answer within {} s", limit.as_secs_f32()),
            Problem::Variable { variable, why } => write!(f, "{variable}: {why}"),
            Problem::Missing { at, why } => write!(f, "the PEs did not meet at {at}: {why}"),
            Problem::Disagreement { at, why } => write!(f, "the PEs that met at {at} do not fit together: {why}"),
            Problem::Taken => f.write_str(
                "this process is a PE already, or is becoming one in another thread; the library would ignore the new \
                 parameters",
            ),
            Problem::Spent => {
                f.write_str("an earlier initialization failed, and the library allows no second one; start again")
            }
            Problem::Left => f.write_str(
                "an earlier PE of this process ended without finalize, or failed in init; start the process again",
            ),
        }
    }
}

impl std::error::Error for Problem {}

impl Problem {
    /// What kind of error it is to a program.
    pub(crate) fn kind(&self) -> ErrorKind {
        match self {
            Problem::NoAnswer { .. } | Problem::Missing { .. } => ErrorKind::Timeout,
            Problem::Variable { .. } | Problem::Taken => ErrorKind::InvalidArgument,
            _ => ErrorKind::Initialization,
        }
    }

    /// The error of the call that it ends.
    #[cold]
    pub(crate) fn error(&self, call: &'static str, at: At) -> Error {
        Error::new(self.kind(), call, self.to_string(), at)
    }

    /// [`Problem::error`] with what would help, where the problem does not say it.
    #[cold]
    pub(crate) fn error_with_remedy(&self, remedy: &str, call: &'static str, at: At) -> Error {
        Error::new(self.kind(), call, format!("{self}; remedy: {remedy}"), at)
    }
}

/// Against the absence of a driver.
pub(crate) const INSTALL_DRIVER: &str = "install NVIDIA's driver; a container must be started with access to the GPUs";
/// Against a library that is damaged or lacks something.
pub(crate) const ANOTHER_LIBRARY: &str = "install the library again, or set ONESIDED_NVSHMEM_LIB to another one";
/// Against a library of a version that does not fit.
pub(crate) const VERSION_REMEDY: &str =
    "pip install nvidia-nvshmem-cu13 (cu12 for CUDA 12), or set ONESIDED_NVSHMEM_LIB to a release that fits";

/// What helps where NVSHMEM's library cannot be used for this reason.
pub(crate) fn nvshmem_remedy(problem: &Problem) -> &'static str {
    match problem {
        Problem::NotFound { .. } => {
            "pip install nvidia-nvshmem-cu13 (cu12 for CUDA 12), or set ONESIDED_NVSHMEM_LIB to libnvshmem_host.so.3"
        }
        Problem::Absent { .. } => "name the file libnvshmem_host.so.3, or the folder that holds it",
        Problem::Version { .. } => VERSION_REMEDY,
        _ => ANOTHER_LIBRARY,
    }
}
