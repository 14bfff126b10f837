//! PEs as stackful coroutines: the only file that switches stacks.
//!
//! A host program runs on its own stack and calls the machine like a function. Only when a call cannot end yet is the
//! stack switched to the scheduler's, which lets others run until this host can go on. The machine lies in a `RefCell`
//! that is never borrowed across a switch: host and scheduler take turns.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, Location, catch_unwind, resume_unwind};
use std::ptr;
use std::rc::Rc;
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use corosensei::stack::{DefaultStack, Stack, StackPointer};
use corosensei::{Coroutine, CoroutineResult, Yielder};
use onesided::backend::{Intended, Live};
use onesided::{At, Error, ErrorKind, Foreign, Place, Result};

use crate::explain::Edits;
use crate::kernel::ChangeAt;
use crate::machine::{AgentId, Machine, PeId, Progress};
use crate::mappings;
use crate::request::{Call, Reply};

/// A host returns its program's result, or what it panicked with.
type HostCoroutine = Coroutine<(), (), std::thread::Result<Result<()>>, PeStack>;

/// How the simulator ends a host that has not returned when a run is over, for example because another PE failed, or in a deadlock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "a stack is unwound, or its program returns")]
pub enum Ending {
    /// Its stack is unwound from the call that it is in, as by a panic: destructors run.
    #[default]
    Unwind,
    /// The call that it is in returns an error of kind [`Aborted`](ErrorKind::Aborted), and so does every later one, until the
    /// host returns. For programs in other languages, whose frames no panic may cross.
    Error,
}

/// What a host's stack is unwound with.
struct Ended;

/// How many calls of a host that was ended return errors. As many further calls unwind it.
const PATIENCE: u32 = 1000;

/// What the scheduler and all PEs of a simulation share.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) machine: RefCell<Machine>,
    /// The PE whose host runs; `NOBODY` while the scheduler does.
    running: Cell<u32>,
    /// The PE whose host is being ended, because the run is over; `NOBODY` otherwise.
    ending: Cell<u32>,
    /// Calls that the host being ended has made since.
    refused: Cell<u32>,
    /// How hosts are ended.
    how: Cell<Ending>,
    /// Which run this is: what is left of an earlier one is refused.
    run: Cell<u64>,
    pub(crate) pulse: Arc<Pulse>,
    /// Size of each host's stack, as it was asked for.
    #[cfg_attr(not(unix), allow(dead_code, reason = "nobody asks there"))]
    stack: usize,
    /// Where the stack of each host of this run ends: its guard page begins there.
    limits: RefCell<Vec<usize>>,
    /// How the program is changed, if it is.
    edits: Option<Box<Edits>>,
}

const NOBODY: u32 = u32::MAX;

impl Link {
    pub(crate) fn new(machine: Machine) -> Rc<Link> {
        Rc::new(Link {
            edits: Edits::new(&machine.config.edits),
            stack: machine.config.stack,
            limits: RefCell::default(),
            machine: RefCell::new(machine),
            running: Cell::new(NOBODY),
            ending: Cell::new(NOBODY),
            refused: Cell::new(0),
            how: Cell::default(),
            run: Cell::new(0),
            pulse: Arc::default(),
        })
    }

    /// The PE that has the processor, if one has.
    pub(crate) fn running(&self) -> Option<u32> {
        Some(self.running.get()).filter(|&pe| pe != NOBODY)
    }

    /// Whether a PE has it whose host is being ended.
    pub(crate) fn is_ending(&self) -> bool {
        self.ending.get() != NOBODY
    }
}

/// The PE whose code this thread runs: see [`here`].
#[cfg(unix)]
pub(crate) struct Here {
    pub(crate) pe: u32,
    /// The line of its last call; `None` before its first.
    pub(crate) at: Option<At>,
    /// The size of its stack, as it was asked for.
    pub(crate) stack: usize,
    /// Where the guard page of its stack begins, if that can be known now.
    pub(crate) guard: Option<usize>,
}

/// Which PE's code this thread runs, if it runs one's. Takes no lock and no memory, so that a signal handler may ask.
#[cfg(unix)]
pub(crate) fn here() -> Option<Here> {
    // SAFETY: `Alone` has put it there, and borrows it until it takes it away again.
    let link = unsafe { LINK.get().as_ref() }?;
    let pe = [link.running.get(), link.ending.get()].into_iter().find(|&pe| pe != NOBODY)?;
    let guard = link.limits.try_borrow().ok().and_then(|limits| limits.get(pe as usize).copied());
    Some(Here { pe, at: link.pulse.at(), stack: link.stack, guard })
}

/// The PE that runs, for another thread to look at: see [`Simulation::pulse`](crate::Simulation::pulse).
///
/// The simulation only ever stores here, on its own thread and without a lock, and never looks: so a look changes nothing.
#[derive(Debug)]
pub struct Pulse {
    pe: AtomicU32,
    calls: AtomicU64,
    /// The place of that host's last call: the one that is not null.
    rust: AtomicPtr<Location<'static>>,
    foreign: AtomicPtr<Foreign>,
    /// Those of other simulations that do a part of the work, also on other threads, while they are there.
    helpers: Mutex<Vec<Arc<Pulse>>>,
}

/// Whoever watches one simulation sees another one too, while this lives.
#[derive(Debug)]
pub(crate) struct Shown {
    by: Arc<Pulse>,
    helper: Arc<Pulse>,
}

impl Drop for Shown {
    fn drop(&mut self) {
        if let Ok(mut helpers) = self.by.helpers.lock() {
            helpers.retain(|other| !Arc::ptr_eq(other, &self.helper));
        }
    }
}

/// A look at a [`Pulse`]. Two that are equal: no call was made between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Beat {
    /// The PE whose host program has the processor; `None` while the simulator itself has.
    pub pe: Option<usize>,
    /// Calls made so far, by all PEs in all runs.
    pub calls: u64,
    /// The line of that PE's last call; `None` before its first.
    pub at: Option<At>,
}

impl Default for Pulse {
    fn default() -> Pulse {
        Pulse {
            pe: AtomicU32::new(NOBODY),
            calls: AtomicU64::new(0),
            rust: AtomicPtr::default(),
            foreign: AtomicPtr::default(),
            helpers: Mutex::default(),
        }
    }
}

impl Pulse {
    /// What there is to see now. While calls are being made, the parts may be of different moments.
    pub fn look(&self) -> Beat {
        let pe = self.pe.load(Ordering::Relaxed);
        let at = self.at();
        if pe == NOBODY
            && let Ok(helpers) = self.helpers.lock()
            && let Some(beat) = helpers.iter().map(|helper| helper.look()).find(|beat| beat.pe.is_some())
        {
            return beat; // the search waits for it
        }
        Beat { pe: (pe != NOBODY).then_some(pe as usize), calls: self.calls.load(Ordering::Relaxed), at }
    }

    /// The line of the last call of the host that has the processor.
    fn at(&self) -> Option<At> {
        let (rust, foreign) = (self.rust.load(Ordering::Relaxed), self.foreign.load(Ordering::Relaxed));
        // SAFETY: only `on` stores here, and what it stores is null or a reference that is valid for ever.
        let (rust, foreign) = unsafe { (rust.cast_const().as_ref(), foreign.cast_const().as_ref()) };
        rust.map(At::from).or(foreign.map(At::from))
    }

    /// Shows another simulation too, while this one's own PEs do not run, until what is returned is dropped.
    pub(crate) fn show(self: &Arc<Pulse>, helper: Arc<Pulse>) -> Shown {
        if let Ok(mut helpers) = self.helpers.lock() {
            helpers.push(Arc::clone(&helper));
        }
        Shown { by: Arc::clone(self), helper }
    }

    /// A host has made a call. There is one writer, so this needs no atomic addition.
    #[inline(always)] // as its only caller
    fn call(&self, at: At) {
        self.calls.store(self.calls.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
        self.on(Some(at));
    }

    /// The host that has the processor now made its last call here.
    #[inline(always)]
    fn on(&self, at: Option<At>) {
        let (rust, foreign) = match at.map(At::place) {
            Some(Place::Rust(location)) => (ptr::from_ref(location).cast_mut(), ptr::null_mut()),
            Some(Place::Foreign(place)) => (ptr::null_mut(), ptr::from_ref(place).cast_mut()),
            None => (ptr::null_mut(), ptr::null_mut()),
        };
        self.rust.store(rust, Ordering::Relaxed);
        self.foreign.store(foreign, Ordering::Relaxed);
    }
}

/// A host's end: how it makes calls.
#[derive(Clone)]
pub(crate) struct Channel {
    link: Rc<Link>,
    pe: u32,
    host: AgentId,
    run: u64,
    /// Lives on the host's stack, as long as its coroutine.
    yielder: *const Yielder<(), ()>,
}

impl Channel {
    /// The PE whose channel this is.
    #[inline]
    pub(crate) fn pe(&self) -> u32 {
        self.pe
    }

    /// Which run it is of.
    pub(crate) fn run(&self) -> u64 {
        self.run
    }

    /// Makes a call and returns its reply; if it cannot end yet, other PEs run meanwhile.
    #[inline(always)] // as `make`
    pub(crate) fn call(&self, call: Call<'_>, at: At) -> Reply {
        match &self.link.edits {
            None => self.make(call, at),
            Some(edits) => self.call_edited(edits, call, at),
        }
    }

    /// How kernels are changed when they are loaded.
    pub(crate) fn changes_of_kernels(&self) -> &[ChangeAt] {
        self.link.edits.as_deref().map_or(&[], Edits::of_kernels)
    }

    /// Makes a call as it is.
    #[inline(always)] // where the kind of call is known, most of this is not there
    pub(crate) fn make(&self, mut call: Call<'_>, at: At) -> Reply {
        if self.link.running.get() != self.pe || self.link.run.get() != self.run || std::thread::panicking() {
            return self.refuse(call.name(), at);
        }
        self.link.pulse.call(at);
        let mut machine = self.link.machine.borrow_mut();
        let mut progress = machine.submit(self.host, &mut call, at);
        loop {
            match progress {
                Progress::Done => return machine.reply(self.host),
                Progress::DoneLater => {
                    drop(machine);
                    if !self.suspend(at) {
                        return self.end(call.name(), at);
                    }
                    return self.link.machine.borrow_mut().reply(self.host);
                }
                Progress::Blocked => {
                    drop(machine);
                    if !self.suspend(at) {
                        return self.end(call.name(), at);
                    }
                    machine = self.link.machine.borrow_mut();
                    if !machine.is_chosen(self.host) {
                        return machine.reply(self.host);
                    }
                    progress = machine.perform_chosen(self.host, &mut call, at);
                }
            }
        }
    }

    /// The host finalizes as the last thing it does: it returns at once, and the machine does the rest without it.
    pub(crate) fn leave(&self, leaks: &[Live], at: At) -> Result<()> {
        if self.link.running.get() != self.pe || self.link.run.get() != self.run {
            let Reply::Failed(error) = self.refuse("finalize", at) else { unreachable!("it refuses") };
            return Err(error);
        }
        if let Some(edits) = &self.link.edits {
            self.release_held(edits);
        }
        self.link.machine.borrow_mut().leave_job(self.host, leaks, at);
        Ok(())
    }

    /// Marks what the host does from now on as free to race, or no longer. This is no step: no schedule can see it.
    pub(crate) fn intends(&self, mark: Option<Intended>) -> Option<Intended> {
        let mut machine = self.link.machine.try_borrow_mut().ok()?;
        let runs = self.link.running.get() == self.pe && self.link.run.get() == self.run;
        if runs { machine.intends(self.host, mark) } else { None }
    }

    /// Gives a reply's buffer back, to be used again.
    pub(crate) fn recycle(&self, bytes: Vec<u8>) {
        if let Ok(mut machine) = self.link.machine.try_borrow_mut() {
            machine.recycle(bytes);
        }
    }

    /// Lets the scheduler run until it resumes this host. False: it resumed the host to end it.
    #[inline]
    fn suspend(&self, at: At) -> bool {
        debug_assert_eq!(self.link.running.get(), self.pe);
        // SAFETY: `call` has checked that `running` equals `pe` in the run that this channel was made in, which holds only
        // while this host's coroutine runs (`Hosts::resume` sets it around every switch, every run has its number, and
        // simulations do not nest): its yielder is alive, and this code is on its stack.
        unsafe { &*self.yielder }.suspend(());
        self.link.pulse.on(Some(at)); // others have made calls meanwhile
        self.link.ending.get() != self.pe
    }

    /// A call that cannot be made.
    #[cold]
    fn refuse(&self, call: &'static str, at: At) -> Reply {
        let same_run = self.link.run.get() == self.run;
        if same_run && self.link.ending.get() == self.pe && !std::thread::panicking() {
            self.insist();
        }
        let message = match self.link.running.get() {
            _ if !same_run => "the Pe belongs to a run that is over",
            running if running == self.pe || running == NOBODY => "the run is over; destructors cannot communicate",
            _ => "a Pe is used by the program that it was given to, and by no other",
        };
        Reply::Failed(Error::new(ErrorKind::Aborted, call, message, at))
    }

    /// A host that is being ended makes a call all the same. At first its calls return errors. If it goes on, they unwind it again,
    /// and in the end it is abandoned.
    fn insist(&self) {
        let refused = self.link.refused.get();
        self.link.refused.set(refused + 1);
        if refused >= 2 * PATIENCE {
            // SAFETY: `ending` equals `pe` only while `Hosts::end` runs this host's coroutine, in the run that the channel was
            // made in: its yielder is alive, and this code is on its stack.
            unsafe { &*self.yielder }.suspend(());
            unreachable!("a host that was left is not resumed");
        }
        if refused >= PATIENCE && self.link.how.get() == Ending::Unwind {
            resume_unwind(Box::new(Ended));
        }
    }

    /// The host was resumed to be ended.
    #[cold]
    fn end(&self, call: &'static str, at: At) -> Reply {
        if self.link.how.get() == Ending::Unwind && !std::thread::panicking() {
            resume_unwind(Box::new(Ended));
        }
        self.refuse(call, at)
    }
}

impl std::fmt::Debug for Channel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Channel of PE {}", self.pe)
    }
}

/// How a host's turn ended.
pub(crate) enum Turn {
    /// In a call that cannot end yet, or after too long a turn.
    Suspended,
    /// With its result.
    Returned(Result<()>),
    /// With a panic.
    Panicked(Box<dyn Any + Send>),
}

/// The hosts of one run.
pub(crate) struct Hosts<'s> {
    coroutines: Vec<Option<HostCoroutine>>,
    link: &'s Rc<Link>,
    stacks: &'s mut Stacks,
}

impl Hosts<'_> {
    /// Runs `n` hosts of `body`, and `f` as their scheduler. Hosts that have not returned when `f` does are ended.
    ///
    /// Fails where there is no memory for their stacks.
    #[track_caller]
    pub(crate) fn with<'b, R>(
        n: usize,
        link: &Rc<Link>,
        stacks: &mut Stacks,
        how: Ending,
        body: &'b (dyn Fn(Channel) -> Result<()> + 'b),
        f: impl FnOnce(&mut Hosts<'_>) -> R,
    ) -> std::result::Result<R, String> {
        let _alone = Alone::enter(link);
        let run = link.run.get() + 1;
        link.run.set(run);
        link.how.set(how);
        link.limits.borrow_mut().clear();
        let mut hosts = Hosts { coroutines: Vec::with_capacity(n), link, stacks };
        for pe in 0..n as u32 {
            let stack = hosts.stacks.take(pe)?;
            link.limits.borrow_mut().push(stack.limit().get());
            let link = Rc::clone(link);
            let host = link.machine.borrow().host(PeId(pe));
            let main = move |yielder: &Yielder<(), ()>, ()| {
                link.pulse.on(None);
                let channel = Channel { link, pe, host, run, yielder };
                catch_unwind(AssertUnwindSafe(|| body(channel)))
            };
            // SAFETY: `main` borrows `body`, which outlives this function; the destructor of `Hosts` ends every coroutine
            // before this function returns, also when `f` panics. One that refuses to end is never resumed again, so nothing
            // on its stack runs after `body` is gone.
            let coroutine = unsafe { Coroutine::with_stack_unchecked(stack, main) };
            hosts.coroutines.push(Some(coroutine));
        }
        Ok(f(&mut hosts))
    }

    /// Lets a host run until its next call that cannot end yet, or to its end.
    #[inline]
    pub(crate) fn resume(&mut self, pe: u32) -> Turn {
        let coroutine = self.coroutines[pe as usize].as_mut().expect("the host has not been closed");
        self.link.running.set(pe);
        self.link.pulse.pe.store(pe, Ordering::Relaxed);
        let result = coroutine.resume(());
        self.link.running.set(NOBODY);
        self.link.pulse.pe.store(NOBODY, Ordering::Relaxed);
        match result {
            CoroutineResult::Yield(()) => Turn::Suspended,
            CoroutineResult::Return(Ok(value)) => Turn::Returned(value),
            CoroutineResult::Return(Err(panic)) => Turn::Panicked(panic),
        }
    }

    /// Ends a host that has begun and not returned: resumes it in its pending call, which unwinds its stack or returns an
    /// error. True if it has returned then.
    fn end(&self, pe: u32, coroutine: &mut HostCoroutine) -> bool {
        self.link.refused.set(0);
        self.link.ending.set(pe);
        let result = coroutine.resume(());
        self.link.ending.set(NOBODY);
        // what it returned, or panicked with, comes after the verdict
        matches!(result, CoroutineResult::Return(_))
    }
}

impl Drop for Hosts<'_> {
    /// Ends all hosts that have not returned, and gives their stacks back. A host that cannot be ended keeps its stack for
    /// ever: one that goes on calling, or all of them where this thread is panicking already.
    fn drop(&mut self) {
        for (pe, coroutine) in std::mem::take(&mut self.coroutines).into_iter().enumerate() {
            let Some(mut coroutine) = coroutine else { continue };
            if !coroutine.started() {
                coroutine.force_unwind(); // nothing is on its stack: it only drops `main`
            }
            let has_ended = coroutine.done() || !std::thread::panicking() && self.end(pe as u32, &mut coroutine);
            match has_ended {
                true => self.stacks.give_back(coroutine.into_stack()),
                false => std::mem::forget(coroutine),
            }
        }
    }
}

/// Simulations do not nest: a PE of an outer one would be resumed from an inner one's stack.
///
/// # Panics
/// Where the caller is inside of one.
#[track_caller]
pub(crate) fn must_be_alone() {
    assert!(LINK.get().is_null(), "a simulation cannot be started inside a PE of another");
}

/// The one simulation that a thread runs.
struct Alone<'a>(PhantomData<&'a Link>);

thread_local! {
    /// The simulation that this thread runs, or null. It has no destructor: an exit handler, behind those, may look.
    static LINK: Cell<*const Link> = const { Cell::new(ptr::null()) };
}

impl Alone<'_> {
    #[track_caller]
    fn enter(link: &Link) -> Alone<'_> {
        must_be_alone();
        LINK.set(link);
        Alone(PhantomData)
    }
}

impl Drop for Alone<'_> {
    fn drop(&mut self) {
        LINK.set(ptr::null());
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
        let stack = DefaultStack::new(self.size).map_err(|error| {
            format!("no memory for the stack of PE {pe} ({} bytes): {error}{}", self.size, mappings::advice())
        })?;
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
