//! One operating system thread per PE, atomics for memory, std's barrier.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Barrier, Condvar, Mutex};
use std::thread;

/// Every thread stores its number to the next one's word, and all meet: what the ring of PEs does.
pub(crate) fn ring(n: usize) -> io::Result<()> {
    let words: Vec<AtomicU64> = (0..n).map(|_| AtomicU64::new(0)).collect();
    let (all, started) = (Barrier::new(n), (Mutex::new(None), Condvar::new()));
    thread::scope(|scope| {
        let mut failed = None;
        for me in 0..n {
            let (words, all, started) = (&words, &all, &started);
            let spawned = thread::Builder::new().stack_size(256 << 10).spawn_scoped(scope, move || {
                if wait_for_go(started) {
                    words[(me + 1) % n].store(me as u64, Ordering::Release);
                    all.wait();
                    assert_eq!(words[me].load(Ordering::Acquire), ((me + n - 1) % n) as u64);
                }
            });
            if let Err(error) = spawned {
                failed = Some(error);
                break;
            }
        }
        // Threads that never all start must not wait for each other at the barrier.
        let (go, changed) = &started;
        *go.lock().expect("no thread panics with the lock") = Some(failed.is_none());
        changed.notify_all();
        failed.map_or(Ok(()), Err)
    })
}

/// Waits until it is known whether all threads could be started.
fn wait_for_go((go, changed): &(Mutex<Option<bool>>, Condvar)) -> bool {
    let go = go.lock().expect("no thread panics with the lock");
    let go = changed.wait_while(go, |go| go.is_none()).expect("no thread panics with the lock");
    go.unwrap_or(false)
}
