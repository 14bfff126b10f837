//! Several threads for one search. One of them decides and the others only run ahead, so what is found does not depend on
//! how many there are.

use std::fmt;
use std::thread;

mod handover;
mod sync;

use handover::{Handover, Taken};

/// Who does jobs: this thread, and helpers if there are any.
pub(crate) struct Crew<'a, J, R> {
    own: &'a mut dyn FnMut(J) -> R,
    helpers: usize,
    handover: Option<&'a Handover<J, R>>,
    tickets: u64,
}

/// How many jobs per helper are offered ahead, because the job that is needed next may take long, or is not known yet.
const AHEAD: usize = 16;

impl<'a, J, R> Crew<'a, J, R> {
    /// This thread alone.
    pub(crate) fn alone(own: &'a mut dyn FnMut(J) -> R) -> Crew<'a, J, R> {
        Crew { own, helpers: 0, handover: None, tickets: 0 }
    }

    /// How many jobs are worth offering before their results are needed.
    pub(crate) fn ahead(&self) -> usize {
        AHEAD * self.helpers
    }

    /// Threads besides this one.
    pub(crate) fn helpers(&self) -> usize {
        self.helpers
    }

    /// A job whose result will be needed. Returns the ticket for it.
    ///
    /// # Panics
    /// Without helpers: then nothing is worth offering.
    pub(crate) fn offer(&mut self, job: J) -> u64 {
        self.tickets += 1;
        self.handover.expect("there are helpers").offer(self.tickets, job);
        self.tickets
    }

    /// Does a job here and now.
    pub(crate) fn run(&mut self, job: J) -> R {
        (self.own)(job)
    }

    /// The result of a job that was offered.
    ///
    /// # Panics
    /// If the helper that had it has panicked.
    pub(crate) fn take(&mut self, ticket: u64) -> R {
        let handover = self.handover.expect("there are helpers");
        loop {
            match handover.take(ticket) {
                Taken::Result(result) => return result,
                Taken::Job(mine, job) if mine == ticket => {
                    let result = (self.own)(job);
                    handover.forget(mine);
                    return result;
                }
                Taken::Job(other, job) => handover.finish(other, Some((self.own)(job))),
                Taken::Lost => panic!("a helper of the search has panicked"),
            }
        }
    }

    /// The result is not needed any more.
    pub(crate) fn forget(&mut self, ticket: u64) {
        if let Some(handover) = self.handover {
            handover.forget(ticket);
        }
    }
}

impl<J, R> fmt::Debug for Crew<'_, J, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a crew with {} helpers", self.helpers)
    }
}

/// Runs `body` with so many helpers. `make` is called in each helper's thread, and makes what does the jobs there.
pub(crate) fn with_helpers<J: Send, R: Send, W: FnMut(J) -> R, T>(
    helpers: usize,
    make: impl Fn() -> W + Sync,
    own: &mut dyn FnMut(J) -> R,
    body: impl FnOnce(&mut Crew<'_, J, R>) -> T,
) -> T {
    if helpers == 0 {
        return body(&mut Crew::alone(own));
    }
    let handover = &Handover::new();
    let help = &|| {
        let mut work = make();
        while let Some((ticket, job)) = handover.next() {
            let mut running = Running { handover, ticket, result: None };
            running.result = Some(work(job));
        }
    };
    thread::scope(|scope| {
        let _end = End(handover); // also when `body` panics
        // the search works without a thread that cannot be started
        let started = (0..helpers).filter(|_| {
            let named = thread::Builder::new().name("search".into());
            named.spawn_scoped(scope, help).is_ok()
        });
        let helpers = started.count();
        body(&mut Crew { own, helpers, handover: Some(handover).filter(|_| helpers > 0), tickets: 0 })
    })
}

/// Lets the helpers go.
struct End<'a, J, R>(&'a Handover<J, R>);

impl<J, R> Drop for End<'_, J, R> {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// A job that a helper is at.
struct Running<'a, J, R> {
    handover: &'a Handover<J, R>,
    ticket: u64,
    /// `None` if it has panicked.
    result: Option<R>,
}

impl<J, R> Drop for Running<'_, J, R> {
    fn drop(&mut self) {
        self.handover.finish(self.ticket, self.result.take());
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    /// The squares of so many numbers, by so many helpers.
    fn squares(helpers: usize, numbers: u64) -> Vec<u64> {
        let square = |n: u64| n * n;
        with_helpers(
            helpers,
            || square,
            &mut { square },
            |crew: &mut Crew<'_, u64, u64>| {
                if crew.ahead() == 0 {
                    return (0..numbers).map(|n| crew.run(n)).collect();
                }
                let tickets: Vec<u64> = (0..numbers).map(|n| crew.offer(n)).collect();
                tickets.into_iter().map(|ticket| crew.take(ticket)).collect()
            },
        )
    }

    #[test]
    fn results_come_in_the_order_in_which_they_are_asked_for() {
        let alone = squares(0, 200);
        assert_eq!(alone[..4], [0, 1, 4, 9]);
        for helpers in [1, 2, 5] {
            assert_eq!(squares(helpers, 200), alone);
        }
    }

    #[test]
    fn what_is_forgotten_is_not_waited_for() {
        let square = |n: u64| n * n;
        let sum = with_helpers(
            2,
            || square,
            &mut { square },
            |crew| {
                let tickets: Vec<u64> = (0..50).map(|n| crew.offer(n)).collect();
                let (kept, gone): (Vec<u64>, Vec<u64>) = tickets.into_iter().partition(|ticket| ticket % 2 == 0);
                gone.into_iter().for_each(|ticket| crew.forget(ticket));
                kept.into_iter().map(|ticket| crew.take(ticket)).sum::<u64>()
            },
        );
        assert_eq!(sum, (0..50).filter(|n| n % 2 == 1).map(|n| n * n).sum::<u64>());
    }

    #[test]
    #[should_panic(expected = "a helper of the search has panicked")]
    fn a_helper_that_panics_ends_the_search() {
        let (main, begun) = (thread::current().id(), &AtomicBool::new(false));
        let work = move |_: u64| {
            if thread::current().id() != main {
                begun.store(true, Ordering::SeqCst);
                panic!("as it should");
            }
            while !begun.load(Ordering::SeqCst) {
                thread::yield_now(); // the helper takes the other job
            }
        };
        with_helpers(
            1,
            || work,
            &mut { work },
            |crew| {
                let tickets: Vec<u64> = (0..2).map(|n| crew.offer(n)).collect();
                tickets.into_iter().for_each(|ticket| crew.take(ticket));
            },
        );
    }
}
