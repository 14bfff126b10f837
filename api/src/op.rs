//! [`Op`]: operations as plain data, what a program asks of a backend.
//!
//! Every verb builds one `Op`. Traces, replay, random programs and checkers look at this value. To add an operation, add a variant:
//! the compiler then lists every place that must learn it.
#![expect(
    clippy::exhaustive_enums,
    reason = "a new operation must not compile until every backend and tool has learned it"
)]

use std::fmt;

use crate::count::count;
use crate::element::DType;
use crate::members::TeamId;
use crate::operator::{AmoOp, Cmp, ReduceOp, SignalOp};
use crate::span::Span;

/// The signal that follows the data of a put.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SignalUpdate {
    /// The 8-byte word, on the PE that receives the data.
    pub word: Span,
    /// The operand.
    pub value: u64,
    /// Set or add.
    pub op: SignalOp,
}

/// What a wait compares with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Against {
    /// The same value for every variable.
    One(u64),
    /// A value for each variable (`wait_until_all_vector`), in [`Values`](crate::backend::Values).
    Each,
}

/// One operation, whose arguments [`Pe`](crate::Pe) has checked.
///
/// `dst`, `src` and words are spans of bytes; `pe` is a world rank; values are element bits, zero-extended. The host issues an
/// operation, or enqueues it on a stream; the variant is the same. What the operation takes from the host's private memory travels
/// beside it, as [`Values`](crate::backend::Values).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// Copy my `src` to `dst` on `pe`, optionally followed by a signal.
    Put {
        /// Remote target.
        dst: Span,
        /// Local source; as long as `dst`.
        src: Span,
        /// Element type: one element never tears.
        dtype: DType,
        /// Target PE.
        pe: u32,
        /// Whether the call ends at once; the source is then read at any time until quiet or flush.
        nbi: bool,
        /// Applied on `pe` after this put's own data.
        signal: Option<SignalUpdate>,
    },
    /// Copy `src` on `pe` to my `dst`.
    Get {
        /// Local target.
        dst: Span,
        /// Remote source; as long as `dst`.
        src: Span,
        /// Element type.
        dtype: DType,
        /// PE read from.
        pe: u32,
        /// Whether the call ends at once; `dst` is then undefined until quiet.
        nbi: bool,
    },
    /// Store one value to `dst` on `pe`.
    P {
        /// Remote target, one element.
        dst: Span,
        /// Element type.
        dtype: DType,
        /// The element's bits.
        value: u64,
        /// Target PE.
        pe: u32,
    },
    /// Fetch one value of `src` on `pe`.
    G {
        /// Remote source, one element.
        src: Span,
        /// Element type.
        dtype: DType,
        /// PE read from.
        pe: u32,
    },
    /// Strided put: element `i` of `count` goes from `src + i·src_stride` to `dst + i·dst_stride` (in elements).
    IPut {
        /// Remote target: from the first to the last element touched.
        dst: Span,
        /// Local source, likewise.
        src: Span,
        /// Distance of target elements, in elements.
        dst_stride: u32,
        /// Distance of source elements, in elements.
        src_stride: u32,
        /// How many elements.
        count: u32,
        /// Element type.
        dtype: DType,
        /// Target PE.
        pe: u32,
    },
    /// Strided get; strides as in `IPut`.
    IGet {
        /// Local target: from the first to the last element touched.
        dst: Span,
        /// Remote source, likewise.
        src: Span,
        /// Distance of target elements, in elements.
        dst_stride: u32,
        /// Distance of source elements, in elements.
        src_stride: u32,
        /// How many elements.
        count: u32,
        /// Element type.
        dtype: DType,
        /// PE read from.
        pe: u32,
    },
    /// Update a signal word on `pe`.
    Signal {
        /// The update.
        update: SignalUpdate,
        /// Target PE.
        pe: u32,
    },
    /// Read my own signal word.
    SignalFetch {
        /// The word.
        word: Span,
    },
    /// Block until each variable that is not skipped has compared true. [`Values::skip`](crate::backend::Values) says which are
    /// skipped.
    Wait {
        /// My own variables, contiguous.
        vars: Span,
        /// Their type.
        dtype: DType,
        /// The comparison.
        cmp: Cmp,
        /// What to compare with.
        against: Against,
        /// The variable is a signal word (`signal_wait_until`).
        signal: bool,
    },
    /// Atomic operation on a word of `pe`.
    Amo {
        /// The word.
        dst: Span,
        /// Its type.
        dtype: DType,
        /// What is done.
        op: AmoOp,
        /// The operand's bits.
        value: u64,
        /// The condition's bits, for compare-and-swap.
        cond: u64,
        /// Whether the caller waits for the old value.
        fetch: bool,
        /// Target PE.
        pe: u32,
    },
    /// Stream-ordered store of the values, as they are when it is enqueued, into my own symmetric memory.
    Fill {
        /// My own memory.
        dst: Span,
        /// Element type.
        dtype: DType,
    },
    /// Order earlier puts of this scope before later ones, per target.
    Fence,
    /// Complete everything of this scope.
    Quiet,
    /// Make the sources of this scope's non-blocking puts reusable.
    Flush,
    /// Quiet of this scope, then wait for every member's arrival.
    Barrier {
        /// The team.
        team: TeamId,
    },
    /// Wait for every member's arrival; completes no transfer.
    Sync {
        /// The team.
        team: TeamId,
    },
    /// The root's source to every member's target.
    Broadcast {
        /// The team.
        team: TeamId,
        /// Target on every member.
        dst: Span,
        /// Source, used on the root.
        src: Span,
        /// Element type.
        dtype: DType,
        /// The root's rank in the team.
        root: u32,
    },
    /// Every member's source, in team order, to every member.
    Fcollect {
        /// The team.
        team: TeamId,
        /// Target: members × source.
        dst: Span,
        /// Source.
        src: Span,
        /// Element type.
        dtype: DType,
    },
    /// Block `j` of member `i` to block `i` of member `j`.
    Alltoall {
        /// The team.
        team: TeamId,
        /// Target: one block a member.
        dst: Span,
        /// Source: one block a member.
        src: Span,
        /// Element type.
        dtype: DType,
    },
    /// Element-wise reduction of all sources to every member.
    Reduce {
        /// The team.
        team: TeamId,
        /// Target.
        dst: Span,
        /// Source; the same span as `dst` for in-place.
        src: Span,
        /// Element type.
        dtype: DType,
        /// The reduction.
        op: ReduceOp,
    },
    /// Element-wise reduction of all sources, block `i` to member `i`.
    ReduceScatter {
        /// The team.
        team: TeamId,
        /// Target: one block.
        dst: Span,
        /// Source: one block a member.
        src: Span,
        /// Element type.
        dtype: DType,
        /// The reduction.
        op: ReduceOp,
    },
}

impl Op {
    /// Names of all operations, as [`Op::name`] returns them.
    pub const NAMES: [&'static str; 37] = [
        "put",
        "put_nbi",
        "put_signal",
        "put_signal_nbi",
        "get",
        "get_nbi",
        "p",
        "g",
        "iput",
        "iget",
        "signal_op",
        "signal_fetch",
        "wait_until",
        "signal_wait_until",
        "atomic_fetch",
        "atomic_set",
        "atomic_swap",
        "atomic_compare_swap",
        "atomic_add",
        "atomic_fetch_add",
        "atomic_and",
        "atomic_fetch_and",
        "atomic_or",
        "atomic_fetch_or",
        "atomic_xor",
        "atomic_fetch_xor",
        "fill",
        "fence",
        "quiet",
        "flush",
        "barrier",
        "sync",
        "broadcast",
        "fcollect",
        "alltoall",
        "reduce",
        "reducescatter",
    ];

    /// The operation's name: one of [`Op::NAMES`].
    pub fn name(&self) -> &'static str {
        match self {
            Op::Put { nbi: false, signal: None, .. } => "put",
            Op::Put { nbi: true, signal: None, .. } => "put_nbi",
            Op::Put { nbi: false, signal: Some(_), .. } => "put_signal",
            Op::Put { nbi: true, signal: Some(_), .. } => "put_signal_nbi",
            Op::Get { nbi: false, .. } => "get",
            Op::Get { nbi: true, .. } => "get_nbi",
            Op::P { .. } => "p",
            Op::G { .. } => "g",
            Op::IPut { .. } => "iput",
            Op::IGet { .. } => "iget",
            Op::Signal { .. } => "signal_op",
            Op::SignalFetch { .. } => "signal_fetch",
            Op::Wait { signal: false, .. } => "wait_until",
            Op::Wait { signal: true, .. } => "signal_wait_until",
            Op::Amo { op, fetch, .. } => op.verb(*fetch),
            Op::Fill { .. } => "fill",
            Op::Fence => "fence",
            Op::Quiet => "quiet",
            Op::Flush => "flush",
            Op::Barrier { .. } => "barrier",
            Op::Sync { .. } => "sync",
            Op::Broadcast { .. } => "broadcast",
            Op::Fcollect { .. } => "fcollect",
            Op::Alltoall { .. } => "alltoall",
            Op::Reduce { .. } => "reduce",
            Op::ReduceScatter { .. } => "reducescatter",
        }
    }

    /// The element type, for operations that have one.
    pub fn dtype(&self) -> Option<DType> {
        match self {
            Op::Put { dtype, .. }
            | Op::Get { dtype, .. }
            | Op::P { dtype, .. }
            | Op::G { dtype, .. }
            | Op::IPut { dtype, .. }
            | Op::IGet { dtype, .. }
            | Op::Wait { dtype, .. }
            | Op::Amo { dtype, .. }
            | Op::Fill { dtype, .. }
            | Op::Broadcast { dtype, .. }
            | Op::Fcollect { dtype, .. }
            | Op::Alltoall { dtype, .. }
            | Op::Reduce { dtype, .. }
            | Op::ReduceScatter { dtype, .. } => Some(*dtype),
            Op::Signal { .. } | Op::SignalFetch { .. } => Some(DType::U64),
            Op::Fence | Op::Quiet | Op::Flush | Op::Barrier { .. } | Op::Sync { .. } => None,
        }
    }
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        match self {
            Op::Put { dst, src, dtype, pe, signal, .. } => {
                write!(f, "<{dtype}>({dst} on PE {pe} <- {src}")?;
                if let Some(SignalUpdate { word, value, op }) = signal {
                    write!(f, ", {} {word} {value}", op.name())?;
                }
                f.write_str(")")
            }
            Op::Get { dst, src, dtype, pe, .. } => write!(f, "<{dtype}>({dst} <- {src} on PE {pe})"),
            Op::P { dst, dtype, value, pe } => write!(f, "<{dtype}>({dst} on PE {pe} <- {value:#x})"),
            Op::G { src, dtype, pe } => write!(f, "<{dtype}>({src} on PE {pe})"),
            Op::IPut { dst, src, dst_stride, src_stride, count: elements, dtype, pe } => {
                let elements = count(*elements, "element");
                write!(f, "<{dtype}>({dst} step {dst_stride} on PE {pe} <- {src} step {src_stride}, {elements})")
            }
            Op::IGet { dst, src, dst_stride, src_stride, count: elements, dtype, pe } => {
                let elements = count(*elements, "element");
                write!(f, "<{dtype}>({dst} step {dst_stride} <- {src} step {src_stride} on PE {pe}, {elements})")
            }
            Op::Signal { update: SignalUpdate { word, value, op }, pe } => {
                write!(f, "({} {word} on PE {pe}, {value})", op.name())
            }
            Op::SignalFetch { word } => write!(f, "({word})"),
            Op::Wait { vars, dtype, cmp, against, .. } => {
                write!(f, "<{dtype}>({vars} {} ", cmp.symbol())?;
                match against {
                    Against::One(value) => write!(f, "{value})"),
                    Against::Each => f.write_str("a value each):"),
                }
            }
            Op::Amo { dst, dtype, op, value, cond, pe, .. } => {
                write!(f, "<{dtype}>({dst} on PE {pe}")?;
                if *op != AmoOp::Fetch {
                    write!(f, ", {value}")?;
                }
                if *op == AmoOp::CompareSwap {
                    write!(f, " if {cond}")?;
                }
                f.write_str(")")
            }
            Op::Fill { dst, dtype, .. } => write!(f, "<{dtype}>({dst})"),
            Op::Fence | Op::Quiet | Op::Flush => Ok(()),
            Op::Barrier { team } | Op::Sync { team } => write!(f, "({team})"),
            Op::Broadcast { team, dst, src, dtype, root } => {
                write!(f, "<{dtype}>({team}, {dst} <- {src}, root {root})")
            }
            Op::Fcollect { team, dst, src, dtype } | Op::Alltoall { team, dst, src, dtype } => {
                write!(f, "<{dtype}>({team}, {dst} <- {src})")
            }
            Op::Reduce { team, dst, src, dtype, op } | Op::ReduceScatter { team, dst, src, dtype, op } => {
                write!(f, "<{dtype}>({team}, {} {dst} <- {src})", op.name())
            }
        }
    }
}
