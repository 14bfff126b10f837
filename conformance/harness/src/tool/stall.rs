//! Tells the user when a simulated PE makes no call for long. Nothing else runs meanwhile, and nothing can interrupt the PE.

use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use onesided_sim::{Beat, Pulse};

use crate::complain;

/// How long a PE may run without a call before the user is told.
const LIMIT: Duration = Duration::from_secs(10);
/// How often the thread looks.
const EVERY: Duration = Duration::from_millis(500);

/// A thread that watches a simulation until this is dropped. It only looks, so no run depends on it.
#[derive(Debug)]
pub struct Watch {
    end: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Watch {
    /// Starts to watch. Prints on standard error, at most once.
    pub fn start(pulse: Arc<Pulse>) -> Watch {
        let (end, ended) = mpsc::channel();
        let watch = move || {
            let (start, mut stall) = (Instant::now(), Stall::default());
            while let Err(RecvTimeoutError::Timeout) = ended.recv_timeout(EVERY) {
                if let Some(text) = stall.look(pulse.look(), start.elapsed()) {
                    complain!("\n{text}");
                    return;
                }
            }
        };
        // Without a thread nobody watches. The run does not need it.
        let thread = thread::Builder::new().name("watch".into()).spawn(watch).ok();
        Watch { end: Some(end), thread }
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
}

impl Stall {
    /// What to tell the user at the time `now`, if a PE has made no call for too long.
    fn look(&mut self, beat: Beat, now: Duration) -> Option<String> {
        if self.seen != Some(beat) {
            *self = Stall { seen: Some(beat), since: now };
        }
        let pe = beat.pe.filter(|_| now - self.since >= LIMIT)?;
        let since = match beat.at {
            Some(at) => format!("since the one at {at}"),
            None => "since it was started".to_string(),
        };
        let seconds = LIMIT.as_secs();
        Some(format!(
            "PE {pe} has made no call for {seconds} s, {since}. Simulated PEs take turns, and one that loops or sleeps \
             without a call cannot be interrupted: Ctrl-C twice ends the program."
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use onesided::At;

    const fn seconds(n: u64) -> Duration {
        Duration::from_secs(n)
    }

    #[test]
    fn a_pe_that_makes_no_call_is_named_with_its_last_line() {
        let at = At::caller();
        let beat = Beat { pe: Some(3), calls: 7, at: Some(at) };
        let mut stall = Stall::default();
        assert_eq!(stall.look(beat, seconds(5)), None);
        assert_eq!(stall.look(beat, seconds(14)), None);
        let said = stall.look(beat, seconds(15)).expect("ten seconds have passed");
        let expected = format!("PE 3 has made no call for 10 s, since the one at {at}. ");
        assert!(said.starts_with(&expected), "{said}");
        let fresh = Beat { at: None, ..beat };
        assert_eq!(stall.look(fresh, seconds(16)), None);
        assert!(stall.look(fresh, seconds(26)).is_some_and(|said| said.contains("since it was started")));
    }

    #[test]
    fn calls_and_the_simulators_own_work_are_no_stall() {
        let mut stall = Stall::default();
        for calls in 0..100 {
            assert_eq!(stall.look(Beat { pe: Some(0), calls, at: None }, seconds(calls * 9)), None);
        }
        let search = Beat { pe: None, calls: 99, at: None };
        assert_eq!(stall.look(search, seconds(1000)), None);
        assert_eq!(stall.look(search, seconds(2000)), None);
    }
}
