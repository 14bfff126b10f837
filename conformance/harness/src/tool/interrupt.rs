//! Ctrl-C and SIGTERM end a long exploration in good order: with what was found so far.

use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, LazyLock};

/// SIGINT, which Ctrl-C sends.
const INT: u8 = 2;
/// SIGTERM, which time limits send.
const TERM: u8 = 15;

static INTERRUPTED: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);
/// The first signal that came.
static SIGNAL: AtomicU8 = AtomicU8::new(INT);

/// From now on the first Ctrl-C or SIGTERM is only noted; the second ends the process.
pub fn watch() {
    system::watch();
}

/// Whether the user wants an end.
pub fn is_wanted() -> bool {
    INTERRUPTED.load(Ordering::Relaxed)
}

/// Whether a SIGTERM wants it. Whoever sends that mostly sends one, and nobody is there to send another.
pub fn is_by_term() -> bool {
    is_wanted() && SIGNAL.load(Ordering::Relaxed) == TERM
}

/// What a simulation is to look at: see [`onesided_sim::Simulation::stop_when`].
pub fn flag() -> Arc<AtomicBool> {
    Arc::clone(&INTERRUPTED)
}

/// The exit status after an interruption, as shells report it of a process that the signal ended: 130 after Ctrl-C, 143
/// after SIGTERM.
pub fn status() -> ExitCode {
    ExitCode::from(128 + SIGNAL.load(Ordering::Relaxed))
}

/// Ends the process at once, with that status.
pub fn end_at_once() -> ! {
    std::process::exit(i32::from(128 + SIGNAL.load(Ordering::Relaxed)))
}

#[cfg(unix)]
mod system {
    use std::sync::Once;
    use std::sync::atomic::Ordering;
    use std::thread;

    use signal_hook::consts::{SIGINT, SIGTERM};
    use signal_hook::iterator::Signals;

    use super::{INTERRUPTED, SIGNAL};
    use crate::complain;
    use crate::tool::outside;

    static WATCHED: Once = Once::new();

    pub(super) fn watch() {
        WATCHED.call_once(|| {
            // Without a handler, a signal ends the process at once.
            let Ok(mut signals) = Signals::new([SIGINT, SIGTERM]) else { return };
            let hear = move || {
                for signal in signals.forever() {
                    if INTERRUPTED.load(Ordering::Relaxed) {
                        std::process::exit(128 + signal);
                    }
                    SIGNAL.store(signal as u8, Ordering::Relaxed);
                    INTERRUPTED.store(true, Ordering::Relaxed);
                    // in a thread of its own: this one hears the second signal, also where nobody reads what is said
                    let say = || complain!("\nending; once more to end at once");
                    let _ = thread::Builder::new().name("ending".into()).spawn(say);
                    if super::is_by_term() {
                        outside::end_if_stuck();
                    }
                }
            };
            let _ = thread::Builder::new().name("signals".into()).spawn(hear);
        });
    }
}

/// Elsewhere the first Ctrl-C ends the process.
#[cfg(not(unix))]
mod system {
    pub(super) fn watch() {}
}
