//! [`Claim`]: the library serves one PE of a process at a time, and none after an initialization that failed, or after a PE that
//! ended without `finalize`.
//!
//! The library's own status comes too late: two threads can be inside the initialization at once, and then the library ends
//! the process.

use std::mem;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::problem::Problem;

/// What the library of this process is used for.
enum Use {
    Free,
    /// For a PE, or for a thread that initializes it.
    Taken,
    /// An initialization reached the library and failed.
    Failed,
    /// There was a PE, which ended without `finalize`. The library still has it.
    Left,
}

static HOLDER: Mutex<Use> = Mutex::new(Use::Free);

/// The right to be the PE of this process; given back when it is dropped.
#[derive(Debug)]
pub(crate) struct Claim(());

impl Claim {
    /// # Errors
    /// [`Problem::Taken`], [`Problem::Spent`] or [`Problem::Left`].
    pub(crate) fn take() -> Result<Claim, Problem> {
        let mut holder = holder();
        match *holder {
            Use::Taken => Err(Problem::Taken),
            Use::Failed => Err(Problem::Spent),
            Use::Left => Err(Problem::Left),
            Use::Free => {
                *holder = Use::Taken;
                Ok(Claim(()))
            }
        }
    }

    /// Leaves no room for another PE in this process: the library was left in the middle of an initialization.
    pub(crate) fn fail(self) {
        *holder() = Use::Failed;
        mem::forget(self);
    }

    /// Leaves no room for another PE in this process: this one ends without `finalize`.
    pub(crate) fn keep(self) {
        *holder() = Use::Left;
        mem::forget(self);
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        *holder() = Use::Free;
    }
}

/// Nothing panics while the lock is held, so the state is never half changed.
fn holder() -> MutexGuard<'static, Use> {
    HOLDER.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use onesided::ErrorKind;

    use super::*;

    /// One test, because there is one holder; no other test of this program initializes the library.
    #[test]
    fn one_at_a_time_and_none_after_one_that_did_not_end_well() {
        let first = Claim::take().unwrap();
        assert_eq!(std::thread::spawn(|| Claim::take().unwrap_err()).join().unwrap(), Problem::Taken);
        drop(first);
        let second = Claim::take().unwrap();
        second.fail();
        assert_eq!(Claim::take().unwrap_err(), Problem::Spent);
        *holder() = Use::Free; // as in another process
        Claim::take().unwrap().keep();
        let left = Claim::take().unwrap_err();
        assert_eq!((&left, left.kind()), (&Problem::Left, ErrorKind::Initialization));
        assert!(
            left.to_string().contains("ended without finalize, or failed in init; start the process again"),
            "{left}"
        );
    }
}
