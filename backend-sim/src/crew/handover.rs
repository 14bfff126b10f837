//! Work that one thread hands over to others, and takes back in the order that it likes.
//!
//! The owner offers jobs, each with a ticket. Helpers take the oldest job. The owner asks for the result of one ticket. Until that is
//! there, it gets jobs to do itself. So it makes progress without helpers, and no result depends on their number.
//!
//! `backend-sim/model` checks every interleaving of this file with loom: `ci/loom`.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::sync::{Condvar, Mutex};

/// Between one owner and any number of helpers.
#[derive(Debug)]
pub(crate) struct Handover<J, R> {
    state: Mutex<State<J, R>>,
    /// Signalled when there is a job, or when no more will come.
    offered: Condvar,
    /// Signalled when there is a result, or when a helper has gone without one.
    finished: Condvar,
}

#[derive(Debug)]
struct State<J, R> {
    offered: VecDeque<(u64, J)>,
    running: BTreeSet<u64>,
    results: BTreeMap<u64, R>,
    closed: bool,
}

/// What the owner gets.
#[derive(Debug, PartialEq)]
pub(crate) enum Taken<J, R> {
    /// The result that it asked for.
    Result(R),
    /// A job to do meanwhile, and then to [`finish`](Handover::finish): the one that it asked for if nobody has begun it.
    Job(u64, J),
    /// There will be no result: the ticket is not known, or its helper has gone.
    Lost,
}

impl<J, R> Handover<J, R> {
    pub(crate) fn new() -> Handover<J, R> {
        let state =
            State { offered: VecDeque::new(), running: BTreeSet::new(), results: BTreeMap::new(), closed: false };
        Handover { state: Mutex::new(state), offered: Condvar::new(), finished: Condvar::new() }
    }

    /// The owner has a job that somebody may do.
    pub(crate) fn offer(&self, ticket: u64, job: J) {
        self.state.lock().expect(WHOLE).offered.push_back((ticket, job));
        self.offered.notify_one();
    }

    /// A helper waits for a job. `None` when no more will come.
    pub(crate) fn next(&self) -> Option<(u64, J)> {
        let mut state = self.state.lock().expect(WHOLE);
        loop {
            if state.closed {
                return None;
            }
            if let Some((ticket, job)) = state.offered.pop_front() {
                state.running.insert(ticket);
                return Some((ticket, job));
            }
            state = self.offered.wait(state).expect(WHOLE);
        }
    }

    /// A job is done; `None` if it never will be. The result of a ticket that was forgotten is dropped.
    pub(crate) fn finish(&self, ticket: u64, result: Option<R>) {
        let mut state = self.state.lock().expect(WHOLE);
        if let (true, Some(result)) = (state.running.remove(&ticket), result) {
            state.results.insert(ticket, result);
        }
        self.finished.notify_one();
    }

    /// The owner needs a result.
    pub(crate) fn take(&self, ticket: u64) -> Taken<J, R> {
        let mut state = self.state.lock().expect(WHOLE);
        loop {
            if let Some(result) = state.results.remove(&ticket) {
                return Taken::Result(result);
            }
            let own = state.offered.iter().position(|(other, _)| *other == ticket);
            if own.is_none() && !state.running.contains(&ticket) {
                return Taken::Lost;
            }
            if let Some((other, job)) = state.offered.remove(own.unwrap_or(0)) {
                state.running.insert(other);
                return Taken::Job(other, job);
            }
            state = self.finished.wait(state).expect(WHOLE);
        }
    }

    /// The owner does not need a ticket any more.
    pub(crate) fn forget(&self, ticket: u64) {
        let mut state = self.state.lock().expect(WHOLE);
        state.offered.retain(|(other, _)| *other != ticket);
        state.running.remove(&ticket);
        state.results.remove(&ticket);
    }

    /// The owner needs nothing any more. Helpers end once they have finished their current jobs.
    pub(crate) fn close(&self) {
        let mut state = self.state.lock().expect(WHOLE);
        state.closed = true;
        state.offered.clear();
        self.offered.notify_all();
    }
}

/// Nobody panics while holding the lock.
const WHOLE: &str = "the lock is whole";
