//! Small straight-line programs, as data: the reference and the simulator both run them.
//!
//! A program prints as the expression that makes it, so that a failing one can be pasted into a test.

use std::fmt;

use onesided::backend::AmoOp;
use onesided::{Cmp, ReduceOp};

/// What every PE's host calls, in order.
#[derive(Clone)]
pub(crate) struct Program {
    /// Words of symmetric memory on each PE.
    pub(crate) words: usize,
    /// Bytes of a word that also its bytes are used of; other words have 8, and are used as a whole.
    pub(crate) narrow: Option<usize>,
    /// All memory is external, and registered: so many words of it as local operands, the others as symmetric memory.
    pub(crate) local: Option<usize>,
    /// At the start, every other word holds a number of its own. Otherwise all symmetric memory is zero.
    pub(crate) filled: bool,
    /// The most pieces of a transfer.
    pub(crate) pieces: usize,
    /// Teams beside the world: their members, in the order of the team.
    pub(crate) teams: Vec<Vec<usize>>,
    pub(crate) hosts: Vec<Vec<Call>>,
}

/// One call of a host: done by the host itself, or enqueued on one of the PE's streams.
#[derive(Clone, Copy)]
pub(crate) struct Call {
    pub(crate) stream: Option<usize>,
    pub(crate) op: Op,
    /// Its places and lengths are those of bytes.
    pub(crate) in_bytes: bool,
}

/// A call that the host does itself.
pub(crate) fn host(op: Op) -> Call {
    by(None, op)
}

/// A call that enqueues on a stream.
pub(crate) fn on(stream: usize, op: Op) -> Call {
    by(Some(stream), op)
}

/// A call that the host does itself, or enqueues on a stream.
pub(crate) fn by(stream: Option<usize>, op: Op) -> Call {
    Call { stream, op, in_bytes: false }
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
    /// As `Enter`, by the members of a team of the program.
    EnterOf {
        team: usize,
        what: Collective,
    },
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
    /// Fetches my word again and again, and another one in turn if there is one, until one of them compares true. `plainly`: it reads them,
    /// under a mark.
    Poll {
        plainly: bool,
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

/// What all PEs or a team's members enter together, each by its host or on a stream. A root is a member's place in the team.
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
        Program {
            words,
            narrow: None,
            local: None,
            filled: false,
            pieces: 4,
            teams: Vec::new(),
            hosts: hosts.into_iter().collect(),
        }
    }

    pub(crate) fn in_pieces(self, pieces: usize) -> Program {
        Program { pieces, ..self }
    }

    /// Words have so many bytes, each of which is a place, too.
    pub(crate) fn of_bytes(self, bytes: usize) -> Program {
        Program { narrow: Some(bytes), ..self }
    }

    /// The parts of a word that calls can name.
    pub(crate) fn cells(&self) -> usize {
        self.narrow.unwrap_or(1)
    }

    /// Memory is registered, the last `local` words as local operands only.
    pub(crate) fn registered(self, local: usize) -> Program {
        Program { local: Some(local), ..self }
    }

    pub(crate) fn filled(self) -> Program {
        Program { filled: true, ..self }
    }

    /// What a word holds at the start.
    pub(crate) fn start(&self, pe: usize, word: usize) -> u64 {
        if self.filled && word.is_multiple_of(2) { 256 * (1 + pe as u64) + word as u64 } else { 0 }
    }

    pub(crate) fn with_teams<const N: usize>(self, teams: [&[usize]; N]) -> Program {
        Program { teams: teams.map(<[usize]>::to_vec).into(), ..self }
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
    pub(crate) fn polls_plainly(&self) -> bool {
        self.hosts.iter().flatten().any(|call| matches!(call.op, Op::Poll { plainly: true, .. }))
    }

    pub(crate) fn polls(&self) -> bool {
        self.hosts.iter().flatten().any(|call| matches!(call.op, Op::Poll { .. } | Op::Lock { .. }))
    }
}

impl Call {
    pub(crate) fn in_bytes(self) -> Call {
        Call { in_bytes: true, ..self }
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
        if let Some(bytes) = self.narrow {
            write!(f, ".of_bytes({bytes})")?;
        }
        if let Some(local) = self.local {
            write!(f, ".registered({local})")?;
        }
        if self.filled {
            f.write_str(".filled()")?;
        }
        if self.pieces != 4 {
            write!(f, ".in_pieces({})", self.pieces)?;
        }
        if !self.teams.is_empty() {
            let teams: Vec<String> = self.teams.iter().map(|members| format!("&{members:?}")).collect();
            write!(f, ".with_teams([{}])", teams.join(", "))?;
        }
        Ok(())
    }
}

impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let operator = if matches!(self.op, Op::Amo { .. }) { " op: AmoOp::" } else { " op: ReduceOp::" };
        let op = format!("{:?}", self.op).replace(" cmp: ", " cmp: Cmp::").replace(" op: ", operator);
        let op = op.replace("what: ", "what: Collective::").replace("Enter(", "Enter(Collective::");
        match self.stream {
            None => write!(f, "host({op})"),
            Some(stream) => write!(f, "on({stream}, {op})"),
        }?;
        f.write_str(if self.in_bytes { ".in_bytes()" } else { "" })
    }
}
