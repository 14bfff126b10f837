//! Who acts: the host program of each PE, and each stream.

use std::collections::VecDeque;

use onesided::backend::{Against, Op, Span, Values};
use onesided::{At, Cmp, DType};

use crate::heap::Heap;
use crate::machine::collective::Collective;
use crate::request::Reply;

/// An index that names nothing.
pub(crate) const NONE: u32 = u32::MAX;

/// The host program of a PE (agents `0..n_pes`) or one of its streams.
#[derive(Debug)]
pub(crate) struct Agent {
    pub(crate) pe: u32,
    /// Number among the PE's streams; `NONE` for the host.
    pub(crate) stream: u32,
    pub(crate) phase: Phase,
    /// The call that the agent is in, if it blocks.
    pub(crate) call: &'static str,
    /// The line of the agent's last call.
    pub(crate) at: Option<At>,
    /// The host's step was chosen, and is to be performed.
    pub(crate) chosen: bool,
    /// Where the agent stands in the machine's list of choices.
    pub(crate) ready: u32,
    /// Transfers issued so far, to name them.
    pub(crate) issued: u32,
    /// Transfers that a quiet of this agent still waits for.
    pub(crate) quieting: u32,
    /// The collective to enter when the quiet is done.
    pub(crate) then: Option<Box<Collective>>,
    /// What a wait in progress waits for.
    pub(crate) condition: Option<Condition>,
    /// What the call returns, once it does.
    pub(crate) reply: Reply,
    /// The number of the current operation among those that the PE called, over all of its streams. The host, which calls
    /// when it performs, is always behind them all.
    pub(crate) called: u64,
    /// Work enqueued and not started (streams).
    pub(crate) queue: VecDeque<Work>,
    /// Work enqueued and finished, ever (streams).
    pub(crate) enqueued: u64,
    pub(crate) finished: u64,
}

/// What an agent is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// A host that runs its own code, or a stream with nothing to do.
    Running,
    /// A step that touches memory is asked for, and is one of the choices.
    Pending,
    /// Waits for a condition on its memory; a choice while the condition holds.
    Memory,
    /// Waits until the transfers it claimed are delivered.
    Quiet,
    /// Waits until its scope has nothing in flight.
    Fence,
    /// Waits until the sources of its scope's transfers are read.
    Flush,
    /// Waits until its own transfer is done.
    Transfer,
    /// Waits in a collective.
    Collective { team: u32, seq: u32 },
    /// Waits for the other members of a team that is being made.
    TeamInit { unique_id: u64 },
    /// Waits until a stream has finished so much.
    Synchronize { stream: u32, upto: u64 },
    /// Waits until a record of an event has been reached.
    Event { event: u32, record: usize },
    /// Finalizes: waits for its streams and everything in flight.
    Drain,
    /// The program has returned.
    Done,
}

/// Work on a stream.
#[derive(Debug)]
pub(crate) enum Work {
    Op {
        op: Op,
        values: OwnedValues,
        at: At,
        /// Its number among the operations that the PE called, over all of its streams.
        called: u64,
    },
    Record {
        event: u32,
        record: usize,
        at: At,
    },
    WaitEvent {
        event: u32,
        record: usize,
        at: At,
    },
}

/// What a wait waits for.
#[derive(Debug)]
pub(crate) struct Condition {
    pub(crate) vars: Span,
    pub(crate) dtype: DType,
    pub(crate) cmp: Cmp,
    pub(crate) against: Against,
    pub(crate) values: OwnedValues,
    pub(crate) signal: bool,
}

/// The values of an operation that runs, or waits, after its call has returned. Few operations have any.
#[derive(Debug)]
pub(crate) struct OwnedValues(Option<Box<(Vec<u8>, Vec<bool>)>>);

impl OwnedValues {
    #[inline]
    pub(crate) fn new(values: &Values<'_>) -> OwnedValues {
        let copy = || Box::new((values.bytes.to_vec(), values.skip.to_vec()));
        OwnedValues((!values.is_empty()).then(copy))
    }

    #[inline]
    pub(crate) fn borrow(&self) -> Values<'_> {
        match self.0.as_deref() {
            None => Values::NONE,
            Some((bytes, skip)) => Values { bytes, skip },
        }
    }
}

impl Agent {
    pub(crate) fn new(pe: u32, stream: u32) -> Agent {
        Agent {
            pe,
            stream,
            phase: Phase::Running,
            call: "start",
            at: None,
            chosen: false,
            ready: NONE,
            issued: 0,
            quieting: 0,
            then: None,
            condition: None,
            reply: Reply::Unit,
            called: u64::MAX,
            queue: VecDeque::new(),
            enqueued: 0,
            finished: 0,
        }
    }

    /// Back to the start, keeping allocations.
    pub(crate) fn reset(&mut self, pe: u32) {
        // field by field: a run of a few steps starts often enough for a copied Agent to show
        self.pe = pe;
        self.stream = NONE;
        self.phase = Phase::Running;
        self.call = "start";
        self.at = None;
        self.chosen = false;
        self.ready = NONE;
        self.issued = 0;
        self.quieting = 0;
        self.then = None;
        self.condition = None;
        self.reply = Reply::Unit;
        self.called = u64::MAX;
        self.queue.clear();
        self.enqueued = 0;
        self.finished = 0;
    }

    pub(crate) fn is_host(&self) -> bool {
        self.stream == NONE
    }

    /// The issue scope: one for the host of a PE, one for all its streams.
    pub(crate) fn scope(&self) -> u32 {
        self.pe * 2 + u32::from(!self.is_host())
    }

    /// A stream with nothing left to do.
    pub(crate) fn is_idle(&self) -> bool {
        self.queue.is_empty() && self.phase == Phase::Running
    }
}

impl Condition {
    /// Whether it holds now.
    pub(crate) fn holds(&self, heap: &Heap, pe: u32) -> bool {
        self.first_unmet(heap, pe).is_none()
    }

    /// The first variable that does not compare true: its span, the value found and the value wanted.
    pub(crate) fn first_unmet(&self, heap: &Heap, pe: u32) -> Option<(Span, u64, u64)> {
        let (size, values) = (self.dtype.size(), self.values.borrow());
        (0..self.vars.len / size).find_map(|i| {
            if values.skips(i) {
                return None;
            }
            let wanted = match self.against {
                Against::One(value) => value,
                Against::Each => values.bits(i, size),
            };
            let span = Span { start: self.vars.start + i * size, len: size, ..self.vars };
            let found = heap.load(pe, span);
            (!self.cmp.holds_bits(self.dtype, found, wanted)).then_some((span, found, wanted))
        })
    }
}
