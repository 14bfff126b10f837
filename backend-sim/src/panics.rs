//! Panics of PEs: each becomes a verdict that names its source line, and is not printed besides.
//!
//! Rust tells the line of a panic only to the process's panic hook. The first simulation installs a hook that notes the
//! panics of PEs, and passes all others on to the hook that was there before.

use std::cell::{Cell, RefCell};
use std::panic::{self, PanicHookInfo};
use std::rc::Rc;
use std::sync::Once;

use onesided::At;

use crate::coroutine::Link;

thread_local! {
    /// The simulation that this thread runs.
    static SIMULATION: RefCell<Option<Rc<Link>>> = const { RefCell::new(None) };
    /// The line of the last panic of a PE that no verdict has taken yet.
    static NOTED: Cell<Option<At>> = const { Cell::new(None) };
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
    /// Whether this thread is in a PE of another simulation, which is watched already.
    is_nested: bool,
}

impl Watch {
    pub(crate) fn over(link: &Rc<Link>) -> Watch {
        let is_nested = SIMULATION.with_borrow(Option::is_some);
        if !is_nested {
            SIMULATION.set(Some(Rc::clone(link)));
            NOTED.set(None);
        }
        Watch { is_nested }
    }

    /// The line of the last panic of a PE.
    pub(crate) fn line(&self) -> Option<At> {
        NOTED.take()
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        if !self.is_nested {
            SIMULATION.set(None);
        }
    }
}

/// Notes a PE's panic. False if it must be printed: it is not a PE's, or it follows one that no verdict has taken, and the
/// process may be about to abort.
fn note(info: &PanicHookInfo<'_>) -> bool {
    let is = |what: fn(&Link) -> bool| SIMULATION.with_borrow(|link| link.as_ref().is_some_and(|link| what(link)));
    if is(Link::is_ending) {
        return true; // the run has its verdict already
    }
    if !is(Link::is_in_a_pe) {
        return false;
    }
    let place = info.location().map(|at| At::foreign(at.file(), at.line(), at.column(), None));
    match NOTED.replace(place) {
        Some(first) => {
            eprintln!("a PE panicked at {first}, and then:");
            false
        }
        None => true,
    }
}
