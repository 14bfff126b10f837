//! [`Error`]: the one error type, with a kind that is the same on all backends.

use std::fmt;

use crate::at::At;

/// What every verb returns.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What kind of failure an error is. Two backends that refuse the same call refuse it with the same kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A mistake of the caller that this PE sees by itself. Nothing was sent.
    InvalidArgument,
    /// The symmetric heap has no room for an allocation.
    OutOfMemory,
    /// There is no room for another team (`NVSHMEM_MAX_TEAMS`).
    OutOfTeams,
    /// This backend, or this version of its library, cannot do it. The message says why.
    Unsupported,
    /// The library could not be found, loaded or initialized.
    Initialization,
    /// Something that others should have done did not happen within its time limit.
    Timeout,
    /// CUDA or the library reported a failure.
    Device,
    /// The run is ending, and nothing can be issued any more.
    Aborted,
    /// A check of the program itself failed: what it computed is not what it expected.
    WrongResult,
}

impl ErrorKind {
    /// The kind's name as it stands in reports and outcome files.
    pub fn name(self) -> &'static str {
        match self {
            ErrorKind::InvalidArgument => "invalid argument",
            ErrorKind::OutOfMemory => "out of memory",
            ErrorKind::OutOfTeams => "out of teams",
            ErrorKind::Unsupported => "unsupported",
            ErrorKind::Initialization => "initialization",
            ErrorKind::Timeout => "timeout",
            ErrorKind::Device => "device",
            ErrorKind::Aborted => "aborted",
            ErrorKind::WrongResult => "wrong result",
        }
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// An operating condition, or a mistake of the caller: what happened, in which call, at which source line.
///
/// Bugs of the whole program (a deadlock, a collective mismatch, a leak) are never an `Error`, because a program could ignore the
/// error and go on where hardware hangs. They are verdicts of the run.
///
/// ```
/// use onesided::{Error, ErrorKind};
/// let error = Error::wrong_result("PE 2 holds 7, expected 9");
/// assert_eq!(error.kind(), ErrorKind::WrongResult);
/// assert!(error.to_string().contains("expected 9"));
/// ```
#[derive(Clone)]
pub struct Error(Box<Inner>);

#[derive(Clone)]
struct Inner {
    kind: ErrorKind,
    call: &'static str,
    message: String,
    at: At,
}

impl Error {
    /// An error of `kind` in the API call `call`, raised for the source line `at`.
    #[cold]
    pub fn new(kind: ErrorKind, call: &'static str, message: impl Into<String>, at: At) -> Self {
        Error(Box::new(Inner { kind, call, message: message.into(), at }))
    }

    /// A caller's mistake in the API call `call`.
    #[cold]
    pub fn invalid(call: &'static str, message: impl Into<String>, at: At) -> Self {
        Self::new(ErrorKind::InvalidArgument, call, message, at)
    }

    /// A program's own check that failed, at the caller's line.
    #[track_caller]
    pub fn wrong_result(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::WrongResult, "check", message, At::caller())
    }

    /// What kind of failure this is.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// Whether it is about what the machine has or can do, or about a kernel that could not be loaded, and not about what the program does with
    /// it: such an error is no bug of the program.
    ///
    /// ```
    /// use onesided::{At, Error, ErrorKind};
    /// assert!(Error::new(ErrorKind::OutOfMemory, "alloc", "the heap is full", At::caller()).is_operating());
    /// assert!(!Error::wrong_result("PE 2 holds 7, expected 9").is_operating());
    /// ```
    pub fn is_operating(&self) -> bool {
        use ErrorKind::{Device, Initialization, OutOfMemory, OutOfTeams, Timeout, Unsupported};
        let limits = matches!(self.kind(), OutOfMemory | OutOfTeams | Unsupported | Initialization | Timeout | Device);
        limits || self.call() == "module"
    }

    /// The API call that failed, under its name in this crate.
    pub fn call(&self) -> &'static str {
        self.0.call
    }

    /// What was wrong and what would be right, without the call and the place.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The source line of the call.
    pub fn at(&self) -> At {
        self.0.at
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner { kind, call, message, at } = &*self.0;
        write!(f, "{call}: {message} ({kind}, {at})")
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for Error {}
