//! Tells the user when a simulated PE makes no call for long. Nothing else runs meanwhile, and nothing can interrupt the PE: so
//! after a SIGTERM the process ends under it.

use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use onesided_sim::{Beat, Pulse};

use crate::tool::interrupt;
use crate::{complain, say};

/// How long a PE may run without a call before the user is told.
const LIMIT: Duration = Duration::from_secs(10);
/// How long it may after a SIGTERM. Whoever sends one seldom waits longer until it sends a SIGKILL.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);
/// How often the thread looks.
pub(super) const EVERY: Duration = Duration::from_millis(500);

/// A thread that watches a simulation until this is dropped. It only looks, so no run depends on it.
#[derive(Debug)]
pub struct Watch {
    end: Option<Sender<()>>,
    /// What was found until now.
    found: Arc<Mutex<Option<String>>>,
    thread: Option<JoinHandle<()>>,
}

impl Watch {
    /// Starts to watch. Tells the user on standard error, at most once; and ends the process after a SIGTERM, if it has to.
    pub fn start(pulse: Arc<Pulse>) -> Watch {
        let (end, ended) = mpsc::channel();
        let found = Arc::<Mutex<Option<String>>>::default();
        let to_say = Arc::clone(&found);
        let watch = move || {
            let (start, mut stall) = (Instant::now(), Stall::default());
            while let Err(RecvTimeoutError::Timeout) = ended.recv_timeout(EVERY) {
                match stall.look(pulse.look(), start.elapsed(), interrupt::is_by_term()) {
                    Some(Said::Note(text)) => complain!("\n{text}"),
                    Some(Said::End(text)) => {
                        if let Some(found) = to_say.lock().unwrap_or_else(PoisonError::into_inner).take() {
                            say!("\n{found}");
                        }
                        complain!("\n{text}");
                        interrupt::end_at_once();
                    }
                    None => {}
                }
            }
        };
        // Without a thread nobody watches. The run does not need it.
        let thread = thread::Builder::new().name("watch".into()).spawn(watch).ok();
        Watch { end: Some(end), found, thread }
    }

    /// Something was found, and is not printed yet: it is printed if the process ends before that.
    pub fn found(&self, text: String) {
        *self.found.lock().unwrap_or_else(PoisonError::into_inner) = Some(text);
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        drop(self.end.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join(); // at once: it waits for the end that was just dropped
        }
    }
}

/// What was seen last, and since when.
#[derive(Debug, Default)]
struct Stall {
    seen: Option<Beat>,
    since: Duration,
    /// When the end was first seen to be wanted.
    ending: Option<Duration>,
    has_noted: bool,
}

/// What to tell the user.
#[derive(Debug, PartialEq)]
enum Said {
    /// The run goes on.
    Note(String),
    /// The process is to end.
    End(String),
}

impl Stall {
    /// What to tell the user at the time `now`, if a PE has made no call for too long. `ends`: a SIGTERM has come.
    fn look(&mut self, beat: Beat, now: Duration, ends: bool) -> Option<Said> {
        if self.seen != Some(beat) {
            (self.seen, self.since) = (Some(beat), now);
        }
        let ending = ends.then(|| *self.ending.get_or_insert(now));
        let pe = beat.pe?;
        let stalled = now - self.since;
        let since = match beat.at {
            Some(at) => format!("since the one at {at}"),
            None => "since it was started".to_string(),
        };
        let has_made_none = format!("PE {pe} has made no call for {} s, {since}.", stalled.as_secs());
        if let Some(ending) = ending {
            return (now - ending.max(self.since) >= PATIENCE).then(|| {
                Said::End(format!(
                    "{has_made_none} It cannot be interrupted, so the program ends here, without a summary."
                ))
            });
        }
        if stalled < LIMIT || std::mem::replace(&mut self.has_noted, true) {
            return None;
        }
        Some(Said::Note(format!(
            "{has_made_none} Simulated PEs take turns, and one that loops or sleeps without a call cannot be \
             interrupted: Ctrl-C twice ends the program, or SIGTERM once."
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use onesided::At;

    const fn seconds(n: u64) -> Duration {
        Duration::from_secs(n)
    }

    /// What is said at that second while nobody wants an end.
    fn noted(stall: &mut Stall, beat: Beat, now: u64) -> Option<String> {
        match stall.look(beat, seconds(now), false) {
            Some(Said::Note(text)) => Some(text),
            Some(other) => panic!("{other:?}"),
            None => None,
        }
    }

    #[test]
    fn a_pe_that_makes_no_call_is_named_once_with_its_last_line() {
        let at = At::caller();
        let beat = Beat { pe: Some(3), calls: 7, at: Some(at) };
        let mut stall = Stall::default();
        assert_eq!(noted(&mut stall, beat, 5), None);
        assert_eq!(noted(&mut stall, beat, 14), None);
        let said = noted(&mut stall, beat, 15).expect("ten seconds have passed");
        let expected = format!("PE 3 has made no call for 10 s, since the one at {at}. ");
        assert!(said.starts_with(&expected), "{said}");
        assert_eq!(noted(&mut stall, beat, 26), None);
        let (fresh, mut stall) = (Beat { at: None, ..beat }, Stall::default());
        assert_eq!(noted(&mut stall, fresh, 16), None);
        assert!(noted(&mut stall, fresh, 26).is_some_and(|said| said.contains("since it was started")));
    }

    #[test]
    fn calls_and_the_simulators_own_work_are_no_stall() {
        for ends in [false, true] {
            let mut stall = Stall::default();
            for calls in 0..100 {
                assert_eq!(stall.look(Beat { pe: Some(0), calls, at: None }, seconds(calls * 9), ends), None);
            }
            let search = Beat { pe: None, calls: 99, at: None };
            assert_eq!(stall.look(search, seconds(1000), ends), None);
            assert_eq!(stall.look(search, seconds(2000), ends), None);
        }
    }

    #[test]
    fn a_sigterm_leaves_a_pe_five_seconds() {
        let beat = Beat { pe: Some(1), calls: 7, at: None };
        let mut stall = Stall::default();
        assert!(noted(&mut stall, beat, 0).is_none() && noted(&mut stall, beat, 20).is_some());
        assert_eq!(stall.look(beat, seconds(21), true), None);
        assert_eq!(stall.look(beat, seconds(25), true), None);
        let Some(Said::End(text)) = stall.look(beat, seconds(26), true) else { panic!("five seconds have passed") };
        assert!(text.starts_with("PE 1 has made no call for 26 s, since it was started. "), "{text}");
        // one that goes on has them anew
        assert_eq!(stall.look(Beat { calls: 8, ..beat }, seconds(27), true), None);
        assert_eq!(stall.look(Beat { calls: 8, ..beat }, seconds(31), true), None);
        assert!(stall.look(Beat { calls: 8, ..beat }, seconds(32), true).is_some());
    }
}
