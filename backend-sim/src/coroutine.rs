//! PEs as stackful coroutines: the only file that switches stacks.
//!
//! A host program runs on its own stack until it makes a call; the call's arguments stay there, and the scheduler sees
//! them through [`Hosts::call`] while the host stands still. All unsafe code of the simulator is in this file.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

use corosensei::stack::{DefaultStack, Stack, StackPointer};
use corosensei::{Coroutine, CoroutineResult, Yielder};
use onesided::{At, Error, ErrorKind, Result};

use crate::request::{Call, Reply};

/// What a host hands over when it makes a call.
struct Ask {
    /// Points to the caller's stack frame, which stands still until the host is resumed.
    call: *mut Call<'static>,
    at: At,
}

type HostCoroutine<T> = Coroutine<Reply, Ask, T, PeStack>;

/// What the scheduler and all PEs of a run share.
#[derive(Debug)]
struct Link {
    /// The PE whose host runs; `NOBODY` while the scheduler does.
    running: Cell<u32>,
    /// The run is over: calls fail instead of suspending.
    closing: Cell<bool>,
}

const NOBODY: u32 = u32::MAX;

/// A host's end: how it makes calls.
#[derive(Clone)]
pub(crate) struct Channel {
    link: Rc<Link>,
    pe: u32,
    /// Lives on the host's stack, as long as its coroutine.
    yielder: *const Yielder<Reply, Ask>,
}

impl Channel {
    /// The PE whose channel this is.
    pub(crate) fn pe(&self) -> u32 {
        self.pe
    }

    /// Makes a call and returns its reply; other PEs run meanwhile.
    #[inline]
    pub(crate) fn call(&self, mut call: Call<'_>, at: At) -> Reply {
        if self.link.closing.get() || std::thread::panicking() {
            let message = "the run is over; destructors cannot communicate any more";
            return Reply::Failed(Error::new(ErrorKind::Aborted, call.name(), message, at));
        }
        assert_eq!(self.link.running.get(), self.pe, "a Pe is used by the program that it was given to, and no other");
        let ask = Ask { call: (&raw mut call).cast(), at };
        // SAFETY: `running` equals `pe` only while this host's coroutine runs, so its yielder is alive, and this code
        // is on its stack: `Hosts::resume` sets `running` around every switch and simulations do not nest.
        unsafe { &*self.yielder }.suspend(ask)
    }
}

impl std::fmt::Debug for Channel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Channel of PE {}", self.pe)
    }
}

/// How a host's turn ended.
pub(crate) enum Turn<T> {
    /// With a call, to be had from [`Hosts::call`].
    Asked,
    /// With its result.
    Returned(T),
    /// With a panic.
    Panicked(String),
}

/// The hosts of one run.
pub(crate) struct Hosts<T> {
    coroutines: Vec<Option<HostCoroutine<T>>>,
    asks: Vec<Option<Ask>>,
    link: Rc<Link>,
}

impl<T> Hosts<T> {
    /// Runs `n` hosts of `body`, and `f` as their scheduler. Hosts that have not returned when `f` does are unwound.
    ///
    /// Fails where there is no memory for their stacks.
    pub(crate) fn with<'b, R>(
        n: usize,
        stacks: &mut Stacks,
        body: &'b (dyn Fn(Channel) -> T + 'b),
        f: impl FnOnce(&mut Hosts<T>) -> R,
    ) -> Result<R, String> {
        let _alone = Alone::enter();
        let link = Rc::new(Link { running: Cell::new(NOBODY), closing: Cell::new(false) });
        let mut hosts = Hosts { coroutines: Vec::with_capacity(n), asks: Vec::with_capacity(n), link };
        for pe in 0..n as u32 {
            let link = Rc::clone(&hosts.link);
            let main = move |yielder: &Yielder<Reply, Ask>, _: Reply| body(Channel { link, pe, yielder });
            let stack = stacks.take(pe)?;
            // SAFETY: `main` borrows `body`, which outlives this function; `close` below drives every coroutine to its
            // end before this function returns, also when `f` panics, because it is `Hosts`' destructor as well.
            let coroutine = unsafe { Coroutine::with_stack_unchecked(stack, main) };
            hosts.coroutines.push(Some(coroutine));
            hosts.asks.push(None);
        }
        let result = f(&mut hosts);
        hosts.close(stacks);
        Ok(result)
    }

    /// Lets a host run until its next call, or to its end.
    #[inline]
    pub(crate) fn resume(&mut self, pe: u32, reply: Reply) -> Turn<T> {
        self.asks[pe as usize] = None;
        let coroutine = self.coroutines[pe as usize].as_mut().expect("the host has not been closed");
        self.link.running.set(pe);
        let result = catch_unwind(AssertUnwindSafe(|| coroutine.resume(reply)));
        self.link.running.set(NOBODY);
        match result {
            Ok(CoroutineResult::Yield(ask)) => {
                self.asks[pe as usize] = Some(ask);
                Turn::Asked
            }
            Ok(CoroutineResult::Return(value)) => Turn::Returned(value),
            Err(panic) => Turn::Panicked(panic_message(&*panic)),
        }
    }

    /// The call that a host has made and waits for.
    #[inline]
    pub(crate) fn call(&mut self, pe: u32) -> (&mut Call<'_>, At) {
        let ask = self.asks[pe as usize].as_mut().expect("the host waits for a call");
        // SAFETY: the host is suspended inside `Channel::call`, whose frame holds the `Call` and everything that it
        // borrows; it cannot be resumed (which drops the `Ask`) while the reference that borrows `self` is alive. The
        // lifetime is shortened from the caller's to that of this borrow.
        (unsafe { &mut *ask.call.cast() }, ask.at)
    }

    /// Ends all hosts, unwinding those that have not returned, and gives their stacks back.
    fn close(&mut self, stacks: &mut Stacks) {
        self.link.closing.set(true);
        self.asks.clear();
        for coroutine in self.coroutines.drain(..).flatten() {
            let mut coroutine = coroutine;
            coroutine.force_unwind();
            stacks.give_back(coroutine.into_stack());
        }
    }
}

impl<T> Drop for Hosts<T> {
    fn drop(&mut self) {
        self.link.closing.set(true);
        self.coroutines.clear(); // a coroutine that is dropped is unwound first
    }
}

fn panic_message(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_string());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "(no message)".into())
}

/// Simulations do not nest: a PE of an outer one would be resumed from an inner one's stack.
struct Alone;

thread_local! {
    static IN_SIMULATION: Cell<bool> = const { Cell::new(false) };
}

impl Alone {
    fn enter() -> Alone {
        assert!(!IN_SIMULATION.replace(true), "a simulation cannot be started inside a PE of another");
        Alone
    }
}

impl Drop for Alone {
    fn drop(&mut self) {
        IN_SIMULATION.set(false);
    }
}

/// Stacks of ended hosts, to be used again: a new one costs two system calls, and its first pages.
#[derive(Default)]
pub(crate) struct Stacks {
    size: usize,
    spare: Vec<PeStack>,
}

impl Stacks {
    pub(crate) fn new(size: usize) -> Stacks {
        Stacks { size, spare: Vec::new() }
    }

    fn take(&mut self, pe: u32) -> Result<PeStack, String> {
        if let Some(stack) = self.spare.pop() {
            return Ok(stack);
        }
        let stack = DefaultStack::new(self.size)
            .map_err(|error| format!("no memory for the stack of PE {pe} ({} bytes): {error}", self.size))?;
        Ok(PeStack { stack, lowered: (pe as usize * STAGGER) % PAGE })
    }

    fn give_back(&mut self, stack: PeStack) {
        self.spare.push(stack);
    }
}

impl std::fmt::Debug for Stacks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} spare stacks of {} bytes", self.spare.len(), self.size)
    }
}

const PAGE: usize = 4096;

/// How much lower each next stack starts. Stacks that all start at a page's end keep their hottest frames in the same
/// cache sets and evict each other's.
const STAGGER: usize = 192;

/// A guarded stack whose top is lowered by less than a page.
struct PeStack {
    stack: DefaultStack,
    lowered: usize,
}

// SAFETY: the range is that of `DefaultStack` (guarded at its lower end, and of at least 32 KiB by `Config::check`) less
// at most one page at its top; `lowered` is a multiple of 64, so the base stays aligned.
unsafe impl Stack for PeStack {
    fn base(&self) -> StackPointer {
        StackPointer::new(self.stack.base().get() - self.lowered).expect("a stack is not at address 0")
    }

    fn limit(&self) -> StackPointer {
        self.stack.limit()
    }

    #[cfg(windows)]
    fn teb_fields(&self) -> corosensei::stack::StackTebFields {
        self.stack.teb_fields()
    }

    #[cfg(windows)]
    fn update_teb_fields(&mut self, stack_limit: usize, guaranteed_stack_bytes: usize) {
        self.stack.update_teb_fields(stack_limit, guaranteed_stack_bytes);
    }
}
