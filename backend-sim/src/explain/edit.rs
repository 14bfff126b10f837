//! [`Edit`]: a change of a program that is made while it runs, at each call of a source line.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;

use onesided::backend::{Op, SignalUpdate, Values};
use onesided::{At, Predefined};
use onesided_ptx::{Beside, Change as KernelChange};

use crate::coroutine::Channel;
use crate::kernel::ChangeAt;
use crate::request::{Call, Reply};

/// A change of a program, made while it runs: [`Config::edits`](crate::Config::edits). A call in the source is known by its place;
/// every PE that makes it is changed.
///
/// ```
/// use onesided::{Backend, Pe, Result, expect_eq};
/// use onesided_sim::{Config, Edit, Ordering, Simulation};
///
/// fn program(pe: &Pe<impl Backend>) -> Result<()> {
///     let data = pe.alloc_zeroed::<u64>(1)?;
///     pe.host().p(&data, 7, 1 - pe.my_pe())?;
///     expect_eq(pe.read_one(&data)?, 7, "the data")?; // nothing says that it is there
///     pe.free(data)
/// }
///
/// let mut simulation = Simulation::new(Config::pes(2))?;
/// let run = simulation.run(program)?;
/// let put = run.verdict.races[0].second.at; // PE 1 puts when PE 0 has read
/// let barrier = Edit::Insert { call: Ordering::Barrier, after: put, on_stream: false };
/// let mut repaired = Simulation::new(Config { edits: vec![barrier], ..Config::pes(2) })?;
/// assert!(!run.is_ok() && repaired.run(program)?.is_ok());
/// # Ok::<(), onesided::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "who shows an edit must know each kind")]
pub enum Edit {
    /// A call is made after each call of that place.
    Insert {
        /// The call.
        call: Ordering,
        /// The place.
        after: At,
        /// Whether it is made on the stream that the call of the place is on. Otherwise it is made by the host, after a call that
        /// is the host's.
        on_stream: bool,
    },
    /// A barrier or sync between two places, where not every PE comes to both. Each PE makes it once before each of its calls of `next`: behind its call
    /// of `after`, in front of its call of `before`, or in front of that of `next`, whichever comes first. Calls of hosts only.
    Meet {
        /// The call: a barrier or a sync.
        call: Ordering,
        /// The place of some PEs.
        after: At,
        /// The place of others.
        before: At,
        /// The place of the next call that all PEs make.
        next: At,
    },
    /// `synchronize` of a stream, behind a later call of the host than the one that put work on it. Each PE waits for the stream on which it has
    /// made the call of `work` last.
    Synchronize {
        /// The place of a call that puts work on a stream.
        work: At,
        /// The place of a call of the host.
        after: At,
    },
    /// One `put_signal` takes the place of a put and the signal that directly follows it, to the same PE.
    PutSignal {
        /// The place of the put.
        put: At,
        /// The place of the signal.
        signal: At,
    },
    /// A kernel is changed when it is loaded, wherever that line of its source was compiled to.
    InKernel {
        /// The line: of an access, a fence or a call, or of a call that was inlined.
        at: At,
        /// The change.
        change: KernelChange,
    },
    /// A call that orders or completes is replaced by a weaker one.
    Replace {
        /// The place.
        at: At,
        /// The weaker call; `None` leaves the call out.
        by: Option<Ordering>,
    },
}

/// A call that orders others or completes them, and moves nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[expect(clippy::exhaustive_enums, reason = "who shows an edit must know each call")]
pub enum Ordering {
    /// `fence`.
    Fence,
    /// `flush`.
    Flush,
    /// `quiet`.
    Quiet,
    /// `synchronize` of the stream that the call of the place is on.
    Synchronize,
    /// `sync_all`; in place of a barrier, the `sync` of its team.
    Sync,
    /// `barrier_all`.
    Barrier,
}

impl Ordering {
    /// Its name in the API.
    ///
    /// ```
    /// assert_eq!(onesided_sim::Ordering::Barrier.name(), "barrier_all");
    /// ```
    pub fn name(self) -> &'static str {
        match self {
            Ordering::Fence => "fence",
            Ordering::Flush => "flush",
            Ordering::Quiet => "quiet",
            Ordering::Synchronize => "synchronize",
            Ordering::Sync => "sync_all",
            Ordering::Barrier => "barrier_all",
        }
    }

    /// The operation; `None` for what is none. `instead`: the operation that it replaces.
    fn op(self, instead: Option<&Op>) -> Option<Op> {
        let team = match instead {
            Some(Op::Barrier { team }) => *team,
            _ => Predefined::World.id(),
        };
        match self {
            Ordering::Fence => Some(Op::Fence),
            Ordering::Flush => Some(Op::Flush),
            Ordering::Quiet => Some(Op::Quiet),
            Ordering::Synchronize => None,
            Ordering::Sync => Some(Op::Sync { team }),
            Ordering::Barrier => Some(Op::Barrier { team }),
        }
    }
}

impl fmt::Display for Edit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Edit::Insert { call, after, on_stream } => {
                let on_stream = *on_stream && *call != Ordering::Synchronize;
                write!(f, "insert `{}`{} after {after}", call.name(), if on_stream { " on the stream" } else { "" })
            }
            Edit::Meet { call, after, before, .. } => {
                write!(f, "insert `{}` between {after} and {before}, where all PEs come", call.name())
            }
            Edit::Synchronize { work, after } => {
                write!(f, "insert `synchronize` after {after}, of the stream of {work}")
            }
            Edit::PutSignal { put, signal } => {
                write!(f, "one `put_signal` in place of the put at {put} and the signal at {signal}")
            }
            Edit::InKernel { at, change } => write_change(f, *change, at),
            Edit::Replace { at, by: None } => write!(f, "leave out the call at {at}"),
            Edit::Replace { at, by: Some(call) } => write!(f, "`{}` in place of the call at {at}", call.name()),
        }
    }
}

/// A change of a kernel, in words.
fn write_change(f: &mut fmt::Formatter<'_>, change: KernelChange, at: &At) -> fmt::Result {
    let instead = match change {
        KernelChange::Insert(call, beside) => {
            let place = match beside {
                Beside::Behind => "after",
                Beside::InFront => "before",
                Beside::BehindCondition => "after the condition of",
                Beside::InFrontOfCondition => "before the condition of",
            };
            return write!(f, "insert `{}` {place} {at}", call.name());
        }
        KernelChange::Gpu => "the scope of the GPU in place of the narrower one",
        KernelChange::System => "the scope of the system in place of the narrower one",
        KernelChange::Volatile => "a volatile access in place of the plain one",
        KernelChange::Plain => "a plain load in place of the read-only one",
        KernelChange::SignalFetch => "`nvshmem_signal_fetch` in place of the load",
    };
    write!(f, "{instead} at {at}")
}

/// The edits of a simulation, and what they hold back while a program runs.
#[derive(Debug, Default)]
pub(crate) struct Edits {
    all: Vec<Edit>,
    /// Those of kernels.
    of_kernels: Vec<ChangeAt>,
    /// By PE: a put that may become a put_signal with the next call.
    held: RefCell<BTreeMap<u32, Held>>,
    /// By PE and edit: the run in which the PE has met the others since its last call that all make.
    met: RefCell<BTreeMap<(u32, usize), u64>>,
    /// By PE and place: the stream on which the PE has made that call last, and the run in which it did.
    worked: RefCell<BTreeMap<(u32, At), (u64, u32)>>,
}

/// A put that has not been issued yet.
#[derive(Clone, Copy, Debug)]
struct Held {
    run: u64,
    op: Op,
    stream: Option<u32>,
    at: At,
    /// The place of the signal that it waits for.
    signal: At,
}

impl Edits {
    /// `None` where there is nothing to change.
    pub(crate) fn new(all: &[Edit]) -> Option<Box<Edits>> {
        let of_kernel = |edit: &Edit| match *edit {
            Edit::InKernel { at, change } => Some((at, change)),
            _ => None,
        };
        let of_kernels = all.iter().filter_map(of_kernel).collect();
        (!all.is_empty()).then(|| Box::new(Edits { all: all.to_vec(), of_kernels, ..Edits::default() }))
    }

    pub(crate) fn of_kernels(&self) -> &[ChangeAt] {
        &self.of_kernels
    }

    /// The calls by which a host meets the others in front of its call of this place, or behind it: one for each edit that is due.
    fn meetings(&self, pe: u32, run: u64, at: At, is_before: bool) -> Vec<Ordering> {
        let mut met = self.met.borrow_mut();
        let due = |(number, edit): (usize, &Edit)| {
            let Edit::Meet { call, after, before, next } = *edit else { return None };
            if !is_before && at == next {
                met.remove(&(pe, number));
            }
            let is_here = if is_before { at == before || at == next } else { at == after };
            (is_here && met.insert((pe, number), run) != Some(run)).then_some(call)
        };
        self.all.iter().enumerate().filter_map(due).collect()
    }

    fn inserted(&self, at: At, is_on_stream: bool) -> impl Iterator<Item = Ordering> {
        self.all.iter().filter_map(move |edit| match *edit {
            Edit::Insert { call, after, on_stream } if on_stream == is_on_stream && after == at => Some(call),
            _ => None,
        })
    }

    /// A PE puts work on a stream: an edit may be about it.
    fn note_work(&self, pe: u32, run: u64, at: At, stream: u32) {
        if self.all.iter().any(|edit| matches!(*edit, Edit::Synchronize { work, .. } if work == at)) {
            self.worked.borrow_mut().insert((pe, at), (run, stream));
        }
    }

    /// The streams that a PE waits for behind its call of this place.
    fn synchronized(&self, pe: u32, run: u64, at: At) -> impl Iterator<Item = u32> {
        self.all.iter().filter_map(move |edit| match *edit {
            Edit::Synchronize { work, after } if after == at => {
                let worked = self.worked.borrow().get(&(pe, work)).copied();
                worked.filter(|(when, _)| *when == run).map(|(_, stream)| stream)
            }
            _ => None,
        })
    }

    fn signal_for(&self, at: At) -> Option<At> {
        self.all.iter().find_map(|edit| match *edit {
            Edit::PutSignal { put, signal } if put == at => Some(signal),
            _ => None,
        })
    }

    fn replaced(&self, at: At) -> Option<Option<Ordering>> {
        self.all.iter().find_map(|edit| match *edit {
            Edit::Replace { at: place, by } if place == at => Some(by),
            _ => None,
        })
    }
}

impl Channel {
    /// Makes a call of a program that is changed.
    #[cold]
    pub(crate) fn call_edited(&self, edits: &Edits, call: Call<'_>, at: At) -> Reply {
        let stream = match &call {
            Call::Issue { stream, .. } => *stream,
            Call::Launch { stream, .. } => Some(*stream),
            _ => None,
        };
        let meet = |is_before| {
            let due = if stream.is_none() { edits.meetings(self.pe(), self.run(), at, is_before) } else { Vec::new() };
            let ops = due.into_iter().filter_map(|call| call.op(None));
            ops.map(|op| self.issue(&op, None, at)).find(|reply| matches!(reply, Reply::Failed(_)))
        };
        if let Some(failed) = meet(true) {
            return failed;
        }
        let reply = match (self.take_held(edits), &call) {
            (Some(held), Call::Issue { op, .. }) if held.becomes(op, stream, at).is_some() => {
                let op = held.becomes(op, stream, at).expect("just asked");
                self.issue(&op, stream, held.at)
            }
            (held, _) => {
                if let Some(Held { op, stream, at, .. }) = held
                    && let failed @ Reply::Failed(_) = self.issue(&op, stream, at)
                {
                    return failed;
                }
                match self.changed(edits, &call, at) {
                    Some(reply) => reply,
                    None => self.make(call, at),
                }
            }
        };
        if matches!(reply, Reply::Failed(_)) {
            return reply;
        }
        if let Some(failed) = meet(false) {
            return failed;
        }
        if let Some(stream) = stream {
            edits.note_work(self.pe(), self.run(), at, stream);
        }
        let inserted = edits.inserted(at, stream.is_some()).filter_map(|call| match (call.op(None), stream) {
            (Some(op), stream) => Some(self.issue(&op, stream, at)),
            (None, Some(stream)) => Some(self.make(Call::Synchronize { stream }, at)),
            (None, None) => None,
        });
        let late = if stream.is_none() { Some(edits.synchronized(self.pe(), self.run(), at)) } else { None };
        let late = late.into_iter().flatten().map(|stream| self.make(Call::Synchronize { stream }, at));
        inserted.chain(late).find(|done| matches!(done, Reply::Failed(_))).unwrap_or(reply)
    }

    /// Issues what is held back, before the PE ends.
    pub(crate) fn release_held(&self, edits: &Edits) {
        if let Some(Held { op, stream, at, .. }) = self.take_held(edits) {
            self.issue(&op, stream, at);
        }
    }

    /// What takes the place of a call: nothing, a weaker call, or a put that is held back.
    fn changed(&self, edits: &Edits, call: &Call<'_>, at: At) -> Option<Reply> {
        let Call::Issue { op, stream, .. } = call else { return None };
        match op {
            Op::Fence | Op::Quiet | Op::Flush | Op::Barrier { .. } | Op::Sync { .. } => {
                Some(match edits.replaced(at)?.and_then(|by| by.op(Some(op))) {
                    Some(op) => self.issue(&op, *stream, at),
                    None => Reply::Unit,
                })
            }
            Op::Put { signal: None, .. } => {
                let signal = edits.signal_for(at)?;
                let held = Held { run: self.run(), op: **op, stream: *stream, at, signal };
                edits.held.borrow_mut().insert(self.pe(), held);
                Some(Reply::Unit)
            }
            _ => None,
        }
    }

    fn take_held(&self, edits: &Edits) -> Option<Held> {
        let held = edits.held.borrow_mut().remove(&self.pe());
        held.filter(|held| held.run == self.run())
    }

    fn issue(&self, op: &Op, stream: Option<u32>, at: At) -> Reply {
        self.make(Call::Issue { op, values: &Values::NONE, stream }, at)
    }
}

impl Held {
    /// The put_signal that the held put and this operation are together, if they are one.
    fn becomes(&self, op: &Op, stream: Option<u32>, at: At) -> Option<Op> {
        let (Op::Put { dst, src, dtype, pe, nbi, .. }, Op::Signal { update, pe: to }) = (self.op, *op) else {
            return None;
        };
        let signal: Option<SignalUpdate> = (pe == to && stream == self.stream && at == self.signal).then_some(update);
        signal.map(|signal| Op::Put { dst, src, dtype, pe, nbi, signal: Some(signal) })
    }
}
