//! Printing that cannot panic, where `println!` does: a reader may have seen enough (`ring | head -n 1`), or a disk may be
//! full. What could not be printed is an error at the end of the command.

use std::fmt;
use std::io::{self, Write};
use std::sync::{Mutex, PoisonError};

/// Where lines for people go, and what became of them.
#[derive(Debug)]
struct Lines {
    /// Whether standard output is for a file (`--json -`), so that people read standard error.
    is_taken: bool,
    /// Why a line could not be printed: the first time.
    lost: Option<String>,
}

static LINES: Mutex<Lines> = Mutex::new(Lines { is_taken: false, lost: None });

/// As `println!`, without its panic. What cannot be printed is noted.
#[doc(hidden)]
#[macro_export]
macro_rules! say {
    ($($text:tt)*) => { $crate::tool::say::line(format_args!($($text)*)) };
}

/// As `eprintln!`, without its panic.
#[doc(hidden)]
#[macro_export]
macro_rules! complain {
    ($($text:tt)*) => { $crate::tool::say::complaint(format_args!($($text)*)) };
}

/// Prints a line for people.
pub fn line(text: fmt::Arguments<'_>) {
    bytes(format!("{text}\n").as_bytes());
}

/// Prints a line to standard error. Where that fails, nobody is left to tell.
pub fn complaint(text: fmt::Arguments<'_>) {
    let _ = io::stderr().write_all(format!("{text}\n").as_bytes());
}

/// Prints text for people.
pub fn bytes(text: &[u8]) {
    let mut lines = LINES.lock().unwrap_or_else(PoisonError::into_inner);
    if lines.is_taken {
        let _ = io::stderr().write_all(text);
        return;
    }
    let mut out = io::stdout().lock();
    if let Err(why) = out.write_all(text).and_then(|()| out.flush()) {
        lines.lost.get_or_insert_with(|| why.to_string());
    }
}

/// From now on standard output is for a file's text, and lines for people go to standard error.
pub(super) fn take_standard_output() {
    LINES.lock().unwrap_or_else(PoisonError::into_inner).is_taken = true;
}

/// Whether everything could be printed.
///
/// # Errors
/// A sentence that says why not.
pub(super) fn all_printed() -> Result<(), String> {
    match &LINES.lock().unwrap_or_else(PoisonError::into_inner).lost {
        Some(why) => Err(format!("cannot write to standard output: {why}")),
        None => Ok(()),
    }
}
