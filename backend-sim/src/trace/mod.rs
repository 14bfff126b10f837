//! The trace of a run: one log of events, from which everything else is told.

mod json;
mod moved;
mod origin;
mod writes;

use onesided::backend::{Against, Effect, Moves, Op, Order, SignalUpdate, Span, Transfer, Values};
use onesided::{At, Capabilities, DType, Support};
use onesided_ptx::Who as KernelThread;

pub use moved::Moved;
pub use origin::{LastRead, ReadPart, Unwritten, Writer};
pub(crate) use origin::{Made, name_origins};
pub(crate) use writes::name_what_ended_waits;

/// Something that happened in a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// Number of the step in which it happened.
    pub step: u64,
    /// The PE whose host, stream or transfer it was.
    pub pe: u32,
    /// Which of the PE's streams; `None` for the host and for transfers.
    pub stream: Option<u32>,
    /// Which thread of a kernel on the stream, if it was one.
    pub thread: Option<KernelThread>,
    /// What happened.
    pub kind: EventKind,
    /// The line that asked for it.
    pub at: At,
    /// The event of the call that this one belongs to, by its number in the trace, from 0. So the issue of a transfer, the reading of
    /// its source, its deliveries and its signal can be joined; the entry into a collective and the end of a call belong to the
    /// call; an operation of a stream belongs to the call that enqueued it.
    pub of: Option<usize>,
    /// The values that were read, stored or delivered.
    pub moved: Option<Moved>,
    /// The part of the memory that was read that nobody has written.
    pub unwritten: Option<Unwritten>,
    /// Whether the other events of the schedule imply it: a transfer's steps where they happen with its call, an entry, an end. A
    /// schedule's fingerprint leaves it out.
    pub implied: bool,
}

/// What can happen.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum EventKind {
    /// A call that is no operation.
    Call(&'static str),
    /// An operation was performed: by the host, or by a stream that reached it.
    Op {
        /// The operation.
        op: Op,
        /// The bits of the values that it compares with, if it has one for each variable.
        values: Vec<u64>,
    },
    /// An operation was enqueued.
    Enqueued {
        /// On this stream.
        stream: u32,
        /// The operation.
        op: Op,
        /// As of `Op`.
        values: Vec<u64>,
    },
    /// The host loaded memory: all of it, or a piece.
    Read {
        /// Of this PE.
        of: u32,
        /// The bytes of all pieces.
        span: Span,
        /// Their type.
        dtype: DType,
        /// Which piece.
        piece: u16,
        /// Of how many.
        pieces: u16,
    },
    /// The host stored to memory.
    Write {
        /// Of this PE.
        of: u32,
        /// The bytes.
        span: Span,
        /// Their type.
        dtype: DType,
    },
    /// A thread of a kernel loaded or stored by itself. All strong accesses are events. Of plain ones, only the first few of a block at each line are.
    Access {
        /// The access in words: `acquire load`, `store`.
        call: &'static str,
        /// Of this PE.
        of: u32,
        /// The word.
        span: Span,
        /// Whether it stored there.
        writes: bool,
        /// Whether it is strong: volatile, atomic, or with an order.
        strong: bool,
        /// Whether it is a load that found an older value than the word held: see [`Loads::Oldest`](crate::Loads::Oldest).
        older: bool,
        /// For another strong load: the event that changed the word last, by its number in the trace.
        by: Option<usize>,
    },
    /// The source of a non-blocking put, or of a collective's part, was read.
    SourceRead {
        /// On this PE.
        from: u32,
        /// The whole source.
        span: Span,
        /// Which piece of it.
        piece: u16,
        /// Of how many.
        pieces: u16,
    },
    /// A piece of a transfer was delivered.
    Delivered {
        /// On this PE.
        to: u32,
        /// The whole target.
        span: Span,
        /// Which piece of it.
        piece: u16,
        /// Of how many.
        pieces: u16,
    },
    /// A signal was delivered.
    Signaled {
        /// On this PE.
        to: u32,
        /// The update.
        update: SignalUpdate,
    },
    /// The host began to load memory in pieces.
    Loads {
        /// Of this PE.
        of: u32,
        /// The bytes of all pieces.
        span: Span,
        /// Their type.
        dtype: DType,
    },
    /// A host or stream entered a collective.
    Entered {
        /// The team.
        team: String,
        /// The collective's number on the team, from 0.
        number: u32,
        /// The first entry into the same collective, by its number in the trace: what all of its entries share.
        first: usize,
    },
    /// A call that had to wait is over: the host or stream goes on.
    Returned {
        /// The call.
        call: &'static str,
        /// For a wait: the variable that it saw last.
        variable: Option<Span>,
        /// What ended it, where one event did: the last update of a wait's variable, the last event of the stream that was
        /// synchronized, the record of an event. The event's number in the trace.
        by: Option<usize>,
    },
}

impl Event {
    /// Whether the event is a call of the host.
    pub(crate) fn is_call(&self) -> bool {
        match self.kind {
            EventKind::SourceRead { .. } | EventKind::Delivered { .. } | EventKind::Signaled { .. } => false,
            _ => self.stream.is_none() && !self.implied,
        }
    }

    /// The call in words.
    pub(crate) fn call_in_words(&self) -> String {
        self.in_words().2
    }

    /// If a library with these capabilities lacks the event's family of calls: the name of the family, and why the library lacks it. `None` if it has the family, or
    /// if every library has.
    ///
    /// ```
    /// use onesided::{Capabilities, Support};
    /// use onesided_sim::{Config, Simulation};
    ///
    /// let mut simulation = Simulation::new(Config::pes(2))?;
    /// let program = |pe: &onesided::Pe<onesided_sim::Sim>| {
    ///     let word = pe.alloc_zeroed::<u64>(1)?;
    ///     pe.host().atomic_inc(&word, 0)?;
    ///     pe.free(word)
    /// };
    /// let run = simulation.run(program)?;
    /// let trace = simulation.reproduce(&run, program)?.trace.unwrap();
    ///
    /// let can = Capabilities { host_atomics: Support::Missing("it has none"), ..simulation.config().capabilities };
    /// let lacks = trace.iter().find_map(|event| event.unsupported(&can));
    /// assert_eq!(lacks, Some(("atomics of the host", "it has none")));
    /// # Ok::<(), onesided::Error>(())
    /// ```
    pub fn unsupported(&self, can: &Capabilities) -> Option<(&'static str, &'static str)> {
        let (family, support) = match &self.kind {
            EventKind::Op { op, .. } => family(op, self.stream.is_some(), can)?,
            EventKind::Enqueued { op, .. } => family(op, true, can)?,
            EventKind::Read { of, .. } | EventKind::Write { of, .. } if *of != self.pe => {
                ("access to a peer's memory", can.peer_access)
            }
            EventKind::Call("multicast write" | "multicast read") => ("multicast", can.multicast),
            EventKind::Call("alloc_external" | "register_local") => ("memory from outside the heap", can.registration),
            EventKind::Call("launch") => ("kernels", can.kernels),
            EventKind::Call("register_symmetric") => ("symmetric registration", can.symmetric_registration),
            _ => return None,
        };
        match support {
            Support::Missing(why) => Some((family, why)),
            _ => None,
        }
    }

    /// The operation, for events that are one.
    pub fn op(&self) -> Option<&Op> {
        match &self.kind {
            EventKind::Op { op, .. } | EventKind::Enqueued { op, .. } => Some(op),
            _ => None,
        }
    }
}

/// The optional family of an operation, and how it is provided.
fn family(op: &Op, on_stream: bool, can: &Capabilities) -> Option<(&'static str, Support)> {
    match op.effect() {
        // on a stream, atomics come from a kernel
        Effect::Transfer(Transfer { moves: Moves::Amo { .. }, .. }) => Some(match on_stream {
            false => ("atomics of the host", can.host_atomics),
            true => ("atomics of kernels by several GPUs", can.kernel_atomics),
        }),
        Effect::Transfer(Transfer { signal: Some(_), .. }) | Effect::Wait(_) if !on_stream => {
            Some(("signals and waits of the host", can.host_signals))
        }
        Effect::Order(Order::Fence) if on_stream => Some(("fences on a stream", can.stream_fence)),
        Effect::Transfer(_) | Effect::FetchSignal { .. } | Effect::Fill { .. } | Effect::Wait(_) => None,
        Effect::Order(_) | Effect::Collective(_) => None,
    }
}

/// An operation with the values that it compares with.
pub(crate) fn in_words(op: &Op, values: &[u64]) -> String {
    if values.is_empty() { op.to_string() } else { format!("{op} {values:?}") }
}

/// The values that an operation compares with, if it has one for each variable.
pub(crate) fn compared(op: &Op, values: &Values<'_>) -> Vec<u64> {
    match op {
        Op::Wait { vars, dtype, against: Against::Each, .. } => {
            (0..vars.len / dtype.size()).map(|i| values.bits(i, dtype.size())).collect()
        }
        _ => Vec::new(),
    }
}
