//! The handover under every interleaving of its threads, as loom enumerates them.
//!
//! A thread that waits for ever is a deadlock, which loom reports. So each model also shows that nobody is left behind.

use loom::sync::Arc;
use loom::sync::atomic::{AtomicUsize, Ordering};
use loom::thread;

#[path = "../../src/crew/handover.rs"]
mod handover;
/// Loom's locks, where the simulator has std's.
mod sync {
    pub(super) use loom::sync::{Condvar, Mutex};
}

use handover::{Handover, Taken};

/// A helper, until it is let go: doubles numbers.
fn help(handover: &Handover<u64, u64>) {
    while let Some((ticket, job)) = handover.next() {
        handover.finish(ticket, Some(2 * job));
    }
}

/// The owner's way to a result, doing jobs meanwhile. `None`: it is lost.
fn take(handover: &Handover<u64, u64>, ticket: u64) -> Option<u64> {
    loop {
        match handover.take(ticket) {
            Taken::Result(result) => return Some(result),
            Taken::Job(mine, job) if mine == ticket => {
                handover.forget(mine);
                return Some(2 * job);
            }
            Taken::Job(other, job) => handover.finish(other, Some(2 * job)),
            Taken::Lost => return None,
        }
    }
}

fn with_helpers(helpers: usize, owner: impl Fn(&Handover<u64, u64>)) {
    let handover = Arc::new(Handover::new());
    let helpers: Vec<_> = (0..helpers)
        .map(|_| {
            let handover = Arc::clone(&handover);
            thread::spawn(move || help(&handover))
        })
        .collect();
    owner(&handover);
    handover.close();
    helpers.into_iter().for_each(|helper| helper.join().unwrap());
}

#[test]
fn every_result_comes_whoever_does_the_job() {
    loom::model(|| {
        with_helpers(1, |handover| {
            handover.offer(1, 10);
            handover.offer(2, 20);
            // not in the order in which they were offered
            assert_eq!([2, 1].map(|ticket| take(handover, ticket)), [Some(40), Some(20)]);
            assert_eq!(take(handover, 1), None);
        });
    });
}

#[test]
fn two_helpers_and_the_owner_share_the_jobs() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3); // without a bound it takes minutes
    model.check(|| {
        with_helpers(2, |handover| {
            handover.offer(1, 10);
            handover.offer(2, 20);
            assert_eq!([1, 2].map(|ticket| take(handover, ticket)), [Some(20), Some(40)]);
        });
    });
}

#[test]
fn what_is_forgotten_leaves_nothing_behind() {
    loom::model(|| {
        with_helpers(1, |handover| {
            handover.offer(1, 10);
            handover.offer(2, 20);
            handover.forget(1);
            assert_eq!(take(handover, 2), Some(40));
            assert_eq!(take(handover, 1), None);
        });
    });
}

#[test]
fn helpers_go_although_jobs_are_left() {
    loom::model(|| {
        with_helpers(2, |handover| handover.offer(1, 10));
    });
}

#[test]
fn a_helper_that_goes_without_a_result_is_noticed() {
    loom::model(|| {
        let handover: Arc<Handover<u64, u64>> = Arc::new(Handover::new());
        let begun = Arc::new(AtomicUsize::new(0));
        let helper = thread::spawn({
            let (handover, begun) = (Arc::clone(&handover), Arc::clone(&begun));
            move || {
                if let Some((ticket, _)) = handover.next() {
                    begun.store(1, Ordering::SeqCst);
                    handover.finish(ticket, None);
                }
            }
        });
        handover.offer(1, 10);
        let result = take(&handover, 1);
        handover.close();
        helper.join().unwrap();
        // the owner has done the job itself, or knows that nobody will
        assert_eq!(result.is_none(), begun.load(Ordering::SeqCst) == 1);
    });
}
