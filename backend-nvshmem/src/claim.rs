//! [`Claim`]: the library serves one PE of a process at a time, and none after an initialization that failed.
//!
//! Its own status does not say so in time: two threads can be inside the initialization at once, and the library then
//! ends the process.

use std::mem;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What the library of this process is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Use {
    Free,
    /// By a PE, or by a thread that initializes it.
    Taken,
    /// An initialization reached the library and failed.
    Failed,
}

static HOLDER: Mutex<Use> = Mutex::new(Use::Free);

/// The right to be the PE of this process; given back when it is dropped.
#[derive(Debug)]
pub(crate) struct Claim(());

/// Why there is no claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    Taken,
    Failed,
}

impl Claim {
    pub(crate) fn take() -> Result<Claim, Refusal> {
        let mut holder = holder();
        match *holder {
            Use::Taken => Err(Refusal::Taken),
            Use::Failed => Err(Refusal::Failed),
            Use::Free => {
                *holder = Use::Taken;
                Ok(Claim(()))
            }
        }
    }

    /// No other PE in this process: the library was left in the middle of an initialization.
    pub(crate) fn fail(self) {
        *holder() = Use::Failed;
        mem::forget(self);
    }

    /// No other PE in this process: this one was left without its end.
    pub(crate) fn keep(self) {
        mem::forget(self);
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        *holder() = Use::Free;
    }
}

/// Nothing panics while it is held, so that it is never half changed.
fn holder() -> MutexGuard<'static, Use> {
    HOLDER.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One test, because there is one holder; no other test of this program initializes the library.
    #[test]
    fn one_at_a_time_and_none_after_a_failure() {
        let first = Claim::take().unwrap();
        assert_eq!(std::thread::spawn(|| Claim::take().unwrap_err()).join().unwrap(), Refusal::Taken);
        drop(first);
        let second = Claim::take().unwrap();
        second.fail();
        assert_eq!(Claim::take().unwrap_err(), Refusal::Failed);
    }
}
