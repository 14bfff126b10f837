//! Panics of PEs: each becomes a verdict that names its source line, and is not printed besides.
//!
//! Rust tells the line of a panic only to the process's panic hook. The first simulation installs a hook that notes the
//! panics of PEs, and passes all others on to the hook that was there before.

use std::cell::RefCell;
use std::io::{self, Write as _};
use std::panic::{self, PanicHookInfo};
use std::rc::Rc;
use std::sync::Once;

use onesided::At;

use crate::coroutine::Link;

thread_local! {
    /// The simulation that this thread runs.
    static SIMULATION: RefCell<Option<Rc<Link>>> = const { RefCell::new(None) };
    /// The PEs that have panicked, each with the line of its last panic, where no verdict has taken that yet.
    static NOTED: RefCell<Vec<(u32, At)>> = const { RefCell::new(Vec::new()) };
}

static INSTALLED: Once = Once::new();

/// Installs the hook, once in a process.
pub(crate) fn install_hook() {
    if std::thread::panicking() {
        return; // no hook can be changed now; the next simulation tries again
    }
    INSTALLED.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if !note(info) {
                before(info);
            }
        }));
    });
}

/// While it lives, panics of this thread that come from PEs of `link`'s simulation are noted.
pub(crate) struct Watch {
    /// Whether this thread runs a PE of another simulation, which is already watched.
    is_nested: bool,
}

impl Watch {
    pub(crate) fn over(link: &Rc<Link>) -> Watch {
        let is_nested = SIMULATION.with_borrow(Option::is_some);
        if !is_nested {
            SIMULATION.set(Some(Rc::clone(link)));
            NOTED.with_borrow_mut(Vec::clear);
        }
        Watch { is_nested }
    }

    /// The line of a PE's last panic.
    pub(crate) fn line(&self, pe: u32) -> Option<At> {
        NOTED.with_borrow_mut(|noted| {
            let index = noted.iter().position(|(by, _)| *by == pe)?;
            Some(noted.swap_remove(index).1)
        })
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        if !self.is_nested {
            SIMULATION.set(None);
        }
    }
}

/// Notes a PE's panic. False if it must be printed: it is not a PE's, or it follows one of the same PE that no verdict has
/// taken, and the process may be about to abort.
fn note(info: &PanicHookInfo<'_>) -> bool {
    let link = SIMULATION.with_borrow(Clone::clone);
    if link.as_ref().is_some_and(|link| link.is_ending()) {
        return true; // the run has its verdict already
    }
    let Some(pe) = link.and_then(|link| link.running()) else { return false };
    let Some(place) = info.location().map(|at| At::foreign(at.file(), at.line(), at.column(), None)) else {
        return true;
    };
    let before = NOTED.with_borrow_mut(|noted| match noted.iter_mut().find(|(by, _)| *by == pe) {
        Some((_, last)) => Some(std::mem::replace(last, place)),
        None => {
            noted.push((pe, place));
            None
        }
    });
    let Some(first) = before else { return true };
    // where nobody reads any more, `eprintln` would panic, and a panic in here ends the process
    let _ = writeln!(io::stderr(), "PE {pe} panicked at {first}, and then:");
    false
}
