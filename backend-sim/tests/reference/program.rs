//! Small straight-line programs, as data: the reference and the simulator both run them.
//!
//! A program prints as the expression that makes it, so that a failing one can be pasted into a test.

use std::fmt;

use onesided::backend::AmoOp;
use onesided::{Cmp, ReduceOp};

/// What every PE's host calls, in order. All symmetric memory is zero at the start.
#[derive(Clone)]
pub(crate) struct Program {
    /// Words of symmetric memory on each PE.
    pub(crate) words: usize,
    /// The most pieces of a transfer.
    pub(crate) pieces: usize,
    pub(crate) hosts: Vec<Vec<Call>>,
}

/// One call of a host: done by the host itself, or enqueued on one of the PE's streams.
#[derive(Clone, Copy)]
pub(crate) struct Call {
    pub(crate) stream: Option<usize>,
    pub(crate) op: Op,
}

/// A call that the host does itself.
pub(crate) fn host(op: Op) -> Call {
    Call { stream: None, op }
}

/// A call that enqueues on a stream.
pub(crate) fn on(stream: usize, op: Op) -> Call {
    Call { stream: Some(stream), op }
}

/// One operation. `to`, `from` and `of` are PEs; `dst`, `src` and `word` are words of symmetric memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    P {
        to: usize,
        dst: usize,
        value: u64,
    },
    Put {
        to: usize,
        dst: usize,
        src: usize,
        len: usize,
        nbi: bool,
        signal: Option<Update>,
    },
    IPut {
        to: usize,
        dst: usize,
        src: usize,
        strides: (usize, usize),
        count: usize,
    },
    Get {
        from: usize,
        dst: usize,
        src: usize,
        len: usize,
        nbi: bool,
    },
    IGet {
        from: usize,
        dst: usize,
        src: usize,
        strides: (usize, usize),
        count: usize,
    },
    Signal {
        to: usize,
        update: Update,
    },
    /// Stores `value` in each of my own words.
    Write {
        dst: usize,
        len: usize,
        value: u64,
    },
    Fence,
    Quiet,
    Flush,
    /// Until my word compares true; `signal` if the word is waited for as a signal.
    Wait {
        word: usize,
        cmp: Cmp,
        value: u64,
        signal: bool,
    },
    /// Until my two words from `word` have compared true with their values; `None` leaves a word out.
    WaitAll {
        word: usize,
        cmp: Cmp,
        values: [Option<u64>; 2],
    },
    Enter(Collective),
    /// Enqueued: the event happens.
    Record {
        event: usize,
    },
    /// Enqueued: the stream waits for the event's last record.
    WaitEvent {
        event: usize,
    },

    // by the host only
    SynchronizeEvent {
        event: usize,
    },
    Synchronize {
        stream: usize,
    },
    G {
        from: usize,
        src: usize,
    },
    Amo {
        to: usize,
        dst: usize,
        op: AmoOp,
        value: u64,
        cond: u64,
        fetch: bool,
    },
    SignalFetch {
        word: usize,
    },
    /// Fetches my word again and again, and another one in turn if there is one, until one of them compares true.
    Poll {
        word: usize,
        also: Option<usize>,
        cmp: Cmp,
        value: u64,
    },
    /// Compares with 0 and swaps with 1, again and again until that succeeds.
    Lock {
        to: usize,
        dst: usize,
    },
    Read {
        src: usize,
        len: usize,
    },
    /// Stores `value` in each word, through a peer's pointer.
    PeerStore {
        to: usize,
        dst: usize,
        len: usize,
        value: u64,
    },
    PeerLoad {
        of: usize,
        src: usize,
        len: usize,
    },
}

/// What all PEs enter together, each by its host or on a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Collective {
    Sync,
    Barrier,
    /// Allocates something and frees it again.
    AllocFree,
    /// Makes a team and destroys it again.
    Team,
    Broadcast {
        root: usize,
        dst: usize,
        src: usize,
        len: usize,
    },
    /// `len` words of each member.
    Fcollect {
        dst: usize,
        src: usize,
        len: usize,
    },
    /// Blocks of `len` words.
    Alltoall {
        dst: usize,
        src: usize,
        len: usize,
    },
    Reduce {
        dst: usize,
        src: usize,
        len: usize,
        op: ReduceOp,
    },
    /// `len` words for each member.
    ReduceScatter {
        dst: usize,
        src: usize,
        len: usize,
        op: ReduceOp,
    },
}

/// A signal: sets the word, or adds to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Update {
    pub(crate) word: usize,
    pub(crate) value: u64,
    pub(crate) add: bool,
}

impl Program {
    /// A program whose transfers arrive in up to 4 pieces.
    pub(crate) fn new(words: usize, hosts: impl IntoIterator<Item = Vec<Call>>) -> Program {
        Program { words, pieces: 4, hosts: hosts.into_iter().collect() }
    }

    pub(crate) fn in_pieces(self, pieces: usize) -> Program {
        Program { pieces, ..self }
    }

    pub(crate) fn pes(&self) -> usize {
        self.hosts.len()
    }

    /// The number of streams that a PE uses.
    pub(crate) fn streams(&self, pe: usize) -> usize {
        let named = |call: &Call| match call.op {
            Op::Synchronize { stream } => Some(stream),
            _ => call.stream,
        };
        self.hosts[pe].iter().filter_map(named).max().map_or(0, |last| last + 1)
    }

    /// The number of events that a PE uses.
    pub(crate) fn events(&self, pe: usize) -> usize {
        let named = |call: &Call| match call.op {
            Op::Record { event } | Op::WaitEvent { event } | Op::SynchronizeEvent { event } => Some(event),
            _ => None,
        };
        self.hosts[pe].iter().filter_map(named).max().map_or(0, |last| last + 1)
    }
}

impl Program {
    /// Whether a PE polls: then runs can be as long as they like.
    pub(crate) fn polls(&self) -> bool {
        self.hosts.iter().flatten().any(|call| matches!(call.op, Op::Poll { .. } | Op::Lock { .. }))
    }
}

impl Op {
    /// Whether the call returns before the source is read, or before the target is written.
    pub(crate) fn is_nbi(&self) -> bool {
        matches!(self, Op::Put { nbi: true, .. } | Op::Get { nbi: true, .. })
    }

    /// The PE that a blocking put without a signal goes to, or that a blocking get comes from.
    pub(crate) fn puts_or_gets(&self) -> Option<usize> {
        match *self {
            Op::P { to, .. } | Op::Put { to, nbi: false, signal: None, .. } | Op::IPut { to, .. } => Some(to),
            Op::G { from, .. } | Op::Get { from, nbi: false, .. } | Op::IGet { from, .. } => Some(from),
            _ => None,
        }
    }
}

impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "Program::new({}, [", self.words)?;
        for calls in &self.hosts {
            writeln!(f, "    vec![")?;
            calls.iter().try_for_each(|call| writeln!(f, "        {call:?},"))?;
            writeln!(f, "    ],")?;
        }
        f.write_str("])")?;
        if self.pieces != 4 {
            write!(f, ".in_pieces({})", self.pieces)?;
        }
        Ok(())
    }
}

impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let operator = if matches!(self.op, Op::Amo { .. }) { " op: AmoOp::" } else { " op: ReduceOp::" };
        let op = format!("{:?}", self.op).replace(" cmp: ", " cmp: Cmp::").replace(" op: ", operator);
        match self.stream {
            None => write!(f, "host({op})"),
            Some(stream) => write!(f, "on({stream}, {op})"),
        }
    }
}
