//! Ctrl-C ends a long exploration in good order: with what was found so far.

use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};

/// The exit status of a command that the user ended: that of a process ended by SIGINT, as shells report it.
const STATUS: u8 = 130;

static INTERRUPTED: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);

/// From now on the first Ctrl-C is only noted; the second ends the process.
pub fn watch() {
    // It fails where a handler is set already, which then is ours.
    let _ = ctrlc::set_handler(|| {
        if INTERRUPTED.swap(true, Ordering::Relaxed) {
            std::process::exit(i32::from(STATUS));
        }
        eprintln!("\nending; once more to end at once");
    });
}

/// Whether the user wants an end.
pub fn is_wanted() -> bool {
    INTERRUPTED.load(Ordering::Relaxed)
}

/// What a simulation is to look at: see [`onesided_sim::Simulation::stop_when`].
pub fn flag() -> Arc<AtomicBool> {
    Arc::clone(&INTERRUPTED)
}

/// The exit status after an interruption.
pub fn status() -> ExitCode {
    ExitCode::from(STATUS)
}
