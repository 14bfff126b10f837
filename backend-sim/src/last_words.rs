//! A PE that ends the whole process is named before it does: by an exit, or because its stack is full.
//!
//! Neither can be a verdict: `exit` ends the process, and a full stack has no room to go on. Without a
//! message, an exit with status 0 would pass for a program in which nothing is wrong.

use std::fmt::{self, Write as _};
use std::mem::{self, MaybeUninit};
use std::ptr;
use std::sync::{Once, OnceLock};

use libc::{c_int, c_void, siginfo_t};
use onesided::At;

use crate::coroutine::{Here, here};

/// The status of a process that a PE has ended: an operating error, as of the command line.
const STATUS: c_int = 2;

static LISTENING: Once = Once::new();

/// Installs the handlers, once in a process.
pub(crate) fn listen() {
    LISTENING.call_once(|| {
        // SAFETY: the handler may be called at any exit, on any thread.
        unsafe { libc::atexit(at_exit) };
        handle_full_stacks();
    });
}

/// The process exits. If a PE has called `exit`, this names the PE and replaces its status. Other threads may exit
/// freely, such as one that handles signals.
extern "C" fn at_exit() {
    let Some(Here { pe, at, .. }) = here() else { return };
    let _ = writeln!(
        StandardError,
        "PE {pe} ended the process (std::process::exit, or C's exit) {}; a PE ends by returning, or with pe.global_exit",
        After(at)
    );
    // SAFETY: it ends the process, and nothing of it is used any more.
    unsafe { libc::_exit(STATUS) }
}

/// The signals of an access to a guard page: the first on Linux, the second on macOS.
const SIGNALS: [c_int; 2] = [libc::SIGSEGV, libc::SIGBUS];

/// The handlers that were installed before.
static BEFORE: OnceLock<[libc::sigaction; 2]> = OnceLock::new();

/// Handles faults from now on. The handler needs a stack of its own: std gives one to the main thread and to all that it starts,
/// and without one the process ends as it would without the handler.
fn handle_full_stacks() {
    let before = SIGNALS.map(|signal| {
        let mut before = MaybeUninit::uninit();
        // SAFETY: it only asks, and there is room for the answer.
        let known = unsafe { libc::sigaction(signal, ptr::null(), before.as_mut_ptr()) } == 0;
        // SAFETY: it has been answered.
        known.then(|| unsafe { before.assume_init() })
    });
    let [Some(first), Some(second)] = before else { return };
    if BEFORE.set([first, second]).is_err() {
        return;
    }
    for signal in SIGNALS {
        // SAFETY: zeros are a valid action, whose parts that matter are set here.
        let mut action: libc::sigaction = unsafe { mem::zeroed() };
        action.sa_sigaction = on_fault as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        // SAFETY: the handler has the signature that SA_SIGINFO asks for, and does only what a handler may: it takes no lock
        // and no memory.
        unsafe { libc::sigaction(signal, &raw const action, ptr::null_mut()) };
    }
}

/// Names the PE whose stack is full. Then the faulting access is repeated, and ends the process. All other faults are passed
/// on.
extern "C" fn on_fault(signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
    // SAFETY: the system has passed it, for a signal that has an address.
    let address = unsafe { (*info).si_addr() } as usize;
    match here().filter(|here| here.guard.is_some_and(|guard| (guard..guard + page()).contains(&address))) {
        Some(Here { pe, at, stack, .. }) => {
            let more = (4 * (stack >> 20)).max(4);
            let (kib, at) = (stack >> 10, Last(at));
            let _ = writeln!(
                StandardError,
                "PE {pe} overflowed its stack of {kib} KiB; {at}; give PEs more with --stack {more}M (Config::stack)"
            );
            stop_handling(signal);
        }
        None => pass_on(signal, info, context),
    }
}

fn page() -> usize {
    // SAFETY: it only asks.
    usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(0)
}

/// From now on the signal ends the process.
fn stop_handling(signal: c_int) {
    // SAFETY: it may be called in a handler.
    unsafe { libc::signal(signal, libc::SIG_DFL) };
}

/// Calls the handler that was installed before.
fn pass_on(signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
    let before = SIGNALS.iter().position(|&known| known == signal).and_then(|index| Some(BEFORE.get()?[index]));
    match before {
        Some(before) if ![libc::SIG_DFL, libc::SIG_IGN].contains(&before.sa_sigaction) => {
            if before.sa_flags & libc::SA_SIGINFO != 0 {
                // SAFETY: whoever has installed it with this flag said that it is such a function.
                let handler: extern "C" fn(c_int, *mut siginfo_t, *mut c_void) =
                    unsafe { mem::transmute(before.sa_sigaction) };
                handler(signal, info, context);
            } else {
                // SAFETY: as above, without the flag.
                let handler: extern "C" fn(c_int) = unsafe { mem::transmute(before.sa_sigaction) };
                handler(signal);
            }
        }
        _ => stop_handling(signal),
    }
}

/// Writes to standard error without a lock, because the interrupted code may hold it.
struct StandardError;

impl fmt::Write for StandardError {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        // SAFETY: the bytes are there. What cannot be written is lost, because nobody is left to tell.
        unsafe { libc::write(libc::STDERR_FILENO, text.as_ptr().cast(), text.len()) };
        Ok(())
    }
}

/// After which call.
struct After(Option<At>);

impl fmt::Display for After {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(at) => write!(f, "after its call at {at}"),
            None => f.write_str("before its first call"),
        }
    }
}

/// Which call was the last.
struct Last(Option<At>);

impl fmt::Display for Last {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(at) => write!(f, "its last call was at {at}"),
            None => f.write_str("it has made no call"),
        }
    }
}
