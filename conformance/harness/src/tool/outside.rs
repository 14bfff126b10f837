//! What this process waits for outside of itself: a file that opens only when somebody reads it (a FIFO), or a reader that takes no more. Such a wait has no
//! end of its own. So after a SIGTERM the process ends under it.

use std::io::{self, Write};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::interrupt;
use super::stall::{EVERY, PATIENCE};

/// The waits of all threads: a number for each, and for what.
static WAITS: Mutex<Waits> = Mutex::new(Waits { begun: 0, now: Vec::new() });

#[derive(Debug)]
struct Waits {
    begun: u64,
    now: Vec<(u64, String)>,
}

/// Does what may have to wait. `what`: as in "it waits to open f.json".
pub(super) fn wait<R>(what: &str, act: impl FnOnce() -> R) -> R {
    /// Takes the wait away again, also where `act` panics.
    struct Wait(u64);
    impl Drop for Wait {
        fn drop(&mut self) {
            WAITS.lock().unwrap_or_else(PoisonError::into_inner).now.retain(|(number, _)| *number != self.0);
        }
    }
    let _wait = {
        let mut waits = WAITS.lock().unwrap_or_else(PoisonError::into_inner);
        waits.begun += 1;
        let number = waits.begun;
        waits.now.push((number, what.to_string()));
        Wait(number)
    };
    act()
}

/// Writes to something that may make it wait, each time anew.
#[derive(Debug)]
pub(super) struct Waiting<W> {
    out: W,
    what: String,
}

impl<W: Write> Waiting<W> {
    /// `to`: what it is, in words.
    pub(super) fn new(out: W, to: &str) -> Waiting<W> {
        Waiting { out, what: format!("write to {to}") }
    }
}

impl<W: Write> Write for Waiting<W> {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        let Waiting { out, what } = self;
        wait(what, || out.write(text))
    }

    fn flush(&mut self) -> io::Result<()> {
        let Waiting { out, what } = self;
        wait(what, || out.flush())
    }
}

/// From now on, ends the process when a wait lasts too long. Without a thread, nobody does: a second signal is left.
pub(super) fn end_if_stuck() {
    let watch = || {
        let (start, mut stuck) = (Instant::now(), Stuck::default());
        loop {
            let oldest = WAITS.lock().unwrap_or_else(PoisonError::into_inner).now.first().cloned();
            if let Some(text) = stuck.look(oldest, start.elapsed()) {
                // standard error may be what nobody reads
                let said = thread::Builder::new().name("last words".into()).spawn(move || crate::complain!("\n{text}"));
                thread::sleep(EVERY);
                drop(said);
                interrupt::end_at_once();
            }
            thread::sleep(EVERY);
        }
    };
    let _ = thread::Builder::new().name("patience".into()).spawn(watch);
}

/// What it waited for at the last look, and since when.
#[derive(Debug, Default)]
struct Stuck(Option<(u64, Duration)>);

impl Stuck {
    /// What to say at the end, if this wait has lasted too long at the time `now`.
    fn look(&mut self, wait: Option<(u64, String)>, now: Duration) -> Option<String> {
        let Some((number, what)) = wait else {
            self.0 = None;
            return None;
        };
        let (_, since) = *self.0.insert(self.0.filter(|(seen, _)| *seen == number).unwrap_or((number, now)));
        let is_over = now - since >= PATIENCE;
        is_over.then(|| {
            format!("It waits to {what}, and nobody has let it for {} s, so the program ends here.", PATIENCE.as_secs())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn seconds(n: u64) -> Duration {
        Duration::from_secs(n)
    }

    #[test]
    fn a_wait_that_lasts_is_told_and_others_are_not() {
        let wait = |number| Some((number, "open f.json".to_string()));
        let mut stuck = Stuck::default();
        assert_eq!(stuck.look(None, seconds(9)), None);
        for second in 10..30 {
            assert_eq!(stuck.look(wait(second), seconds(second)), None, "each is another one");
        }
        assert_eq!(stuck.look(wait(30), seconds(30)), None);
        assert_eq!(stuck.look(wait(30), seconds(34)), None);
        let said = stuck.look(wait(30), seconds(35));
        let expected = "It waits to open f.json, and nobody has let it for 5 s, so the program ends here.";
        assert_eq!(said.as_deref(), Some(expected));
        assert_eq!((stuck.look(None, seconds(36)), stuck.look(wait(30), seconds(37))), (None, None));
    }

    #[test]
    fn a_wait_is_over_when_it_is_over() {
        let is_known = |what: &str| WAITS.lock().unwrap().now.iter().any(|(_, other)| other == what);
        wait("pass this test", || assert!(is_known("pass this test")));
        assert!(!is_known("pass this test"));
        let mut out = Waiting::new(Vec::new(), "a list");
        out.write_all(b"text").and_then(|()| out.flush()).unwrap();
        assert_eq!(out.out, b"text");
    }
}
