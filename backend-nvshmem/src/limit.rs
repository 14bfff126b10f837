//! Time limits. A broken driver or a network file system may never answer. Nothing here waits longer than its
//! limit.

use std::io::Write as _;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::problem::Problem;

/// Runs `work` on a thread of its own. If it does not end in time, the thread is left behind.
pub(crate) fn within<T: Send + 'static>(
    limit: Duration,
    call: &str,
    work: impl FnOnce() -> Result<T, Problem> + Send + 'static,
) -> Result<T, Problem> {
    let (done, result) = mpsc::channel();
    let failed = |why: String| Problem::Failed { call: call.to_string(), why };
    let started = thread::Builder::new().spawn(move || {
        let _ = done.send(work()); // fails when nobody waits any more
    });
    if let Err(error) = started {
        return Err(failed(error.to_string()));
    }
    result.recv_timeout(limit).unwrap_or_else(|why| {
        Err(match why {
            RecvTimeoutError::Timeout => Problem::NoAnswer { call: call.to_string(), limit },
            RecvTimeoutError::Disconnected => failed("it panicked".to_string()),
        })
    })
}

/// Runs `work` in this thread, where nothing can interrupt it. If it does not end in time, prints the message and aborts the
/// process. It does not run exit handlers, which may wait for the same.
pub(crate) fn or_abort<T>(limit: Duration, message: String, work: impl FnOnce() -> T) -> T {
    let (done, waits) = mpsc::channel::<()>();
    let watch = thread::Builder::new().spawn(move || {
        if waits.recv_timeout(limit) == Err(RecvTimeoutError::Timeout) {
            let _ = writeln!(std::io::stderr(), "{message}"); // nobody may listen any more
            std::process::abort();
        }
    });
    let result = work();
    drop(done);
    let _ = watch.map(JoinHandle::join); // without a thread there is no limit
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHORT: Duration = Duration::from_millis(200);
    const LONG: Duration = Duration::from_secs(20);

    #[test]
    fn foreign_code_that_hangs_or_panics_is_an_error() {
        let hangs = within(SHORT, "hangs", || {
            thread::sleep(LONG);
            Ok(())
        });
        assert!(matches!(hangs, Err(Problem::NoAnswer { .. })));
        let panics = within(LONG, "panics", || -> Result<(), Problem> { panic!("on purpose") });
        assert!(panics.unwrap_err().to_string().contains("panicked"));
    }
}
