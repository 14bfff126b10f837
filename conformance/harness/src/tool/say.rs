//! Printing without a panic. `println!` panics when the reader has gone (`ring | head -n 1`) or the disk is full. Here, the
//! command goes on. A full disk is an error at its end. A reader that has gone is none: it has what it wanted, and whether the last lines
//! still reach its pipe is chance, so the exit status must not depend on it.

use std::fmt;
use std::io::{self, IsTerminal, Write};
use std::sync::{Mutex, PoisonError};

use super::outside::Waiting;

/// Where lines for people go, and whether they arrived.
#[derive(Debug)]
struct Lines {
    /// Whether standard output is for a file's text (`--json -`). Then lines for people go to standard error.
    is_taken: bool,
    /// Why the first line that was lost could not be printed.
    lost: Option<String>,
}

static LINES: Mutex<Lines> = Mutex::new(Lines { is_taken: false, lost: None });

/// Prints a line for people, as `println!` does, but never panics.
#[doc(hidden)]
#[macro_export]
macro_rules! say {
    ($($text:tt)*) => { $crate::tool::say::line(format_args!($($text)*)) };
}

/// Prints a line to standard error, as `eprintln!` does, but never panics.
#[doc(hidden)]
#[macro_export]
macro_rules! complain {
    ($($text:tt)*) => { $crate::tool::say::complaint(format_args!($($text)*)) };
}

/// Prints a line for people.
pub fn line(text: fmt::Arguments<'_>) {
    bytes(format!("{text}\n").as_bytes());
}

/// Prints a line to standard error. If that fails, nobody is left to tell.
pub fn complaint(text: fmt::Arguments<'_>) {
    to_standard_error(format!("{text}\n").as_bytes());
}

/// Prints text for people.
pub fn bytes(text: &[u8]) {
    let mut lines = LINES.lock().unwrap_or_else(PoisonError::into_inner);
    if lines.is_taken {
        to_standard_error(text);
        return;
    }
    let mut out = Waiting::new(io::stdout().lock(), "standard output");
    if let Err(why) = unless_gone(out.write_all(text).and_then(|()| out.flush())) {
        lines.lost.get_or_insert_with(|| why.to_string());
    }
}

fn to_standard_error(text: &[u8]) {
    let _ = Waiting::new(io::stderr(), "standard error").write_all(text);
}

/// What became of text for standard output: fine if nobody reads it any more.
pub(super) fn unless_gone(written: io::Result<()>) -> io::Result<()> {
    written.or_else(|why| if why.kind() == io::ErrorKind::BrokenPipe { Ok(()) } else { Err(why) })
}

/// Whether a person sees the lines. They then may have what differs from run to run, as times do.
pub fn is_terminal() -> bool {
    if is_taken() { io::stderr().is_terminal() } else { io::stdout().is_terminal() }
}

/// Whether lines for people go to standard error.
pub(super) fn is_taken() -> bool {
    LINES.lock().unwrap_or_else(PoisonError::into_inner).is_taken
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
