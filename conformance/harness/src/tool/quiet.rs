//! Panics of PEs are verdicts: a run that explores thousands of schedules need not print each on its way.

use std::panic::{self, PanicHookInfo};
use std::sync::Mutex;

type Hook = Box<dyn Fn(&PanicHookInfo<'_>) + Sync + Send + 'static>;

static LAST: Mutex<String> = Mutex::new(String::new());

/// Runs `work` without printing panics. If `work` itself panics, the last panic is printed after all.
///
/// The process has one place for this, so one thread at a time may call it; `work` may use several.
pub fn panics<R>(work: impl FnOnce() -> R) -> R {
    let _quiet = Quiet { before: Some(panic::take_hook()) };
    panic::set_hook(Box::new(|info| {
        if let Ok(mut last) = LAST.lock() {
            *last = info.to_string();
        }
    }));
    work()
}

struct Quiet {
    before: Option<Hook>,
}

impl Drop for Quiet {
    fn drop(&mut self) {
        if std::thread::panicking() {
            // Hooks cannot be changed now, and the process is about to end.
            eprintln!("{}", LAST.lock().map_or_else(|last| last.into_inner().clone(), |last| last.clone()));
        } else if let Some(before) = self.before.take() {
            panic::set_hook(before);
        }
    }
}
