//! [`IneffectiveOrder`]: a call that stands where one is missing, and does not do what is missing. `seeming.rs` looks for it.

use std::fmt;

use onesided::At;

/// A call between the two accesses of a [`Race`](super::Race) that does not order them, though it may look so: a quiet, flush, fence or barrier, a
/// wait for an event, or a signal. It is looked for in recorded runs, and the last such call counts. (NVSHMEM, "Memory Ordering".)
///
/// ```
/// use onesided::{Backend, Cmp, Pe, Result, SignalOp};
/// use onesided_sim::{IneffectiveReason, refute};
///
/// /// The host's quiet is not about what a stream has issued.
/// fn message(pe: &Pe<impl Backend>) -> Result<()> {
///     let (data, from) = (pe.alloc_zeroed::<u32>(1)?, pe.alloc_zeroed::<u32>(1)?);
///     let flag = pe.alloc_zeroed::<u64>(1)?;
///     if pe.my_pe() == 0 {
///         let stream = pe.stream()?;
///         pe.on(&stream).put(&data, &from, 1)?;
///         pe.synchronize(&stream)?;
///         pe.host().quiet()?;
///         pe.host().signal_op(flag.signal(0), 1, SignalOp::Set, 1)?;
///     } else {
///         pe.host().signal_wait_until(flag.signal(0), Cmp::Eq, 1)?;
///         pe.read(&data)?;
///     }
///     pe.free(flag)?;
///     pe.free(from)?;
///     pe.free(data)
/// }
///
/// let run = refute(2, message);
/// assert_eq!(run.verdict.races[0].ineffective.unwrap().reason, IneffectiveReason::Scope);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct IneffectiveOrder {
    /// The call.
    pub call: &'static str,
    /// Its line.
    pub at: At,
    /// The stream that it is on; `None` for the host.
    pub stream: Option<usize>,
    /// Why it does not order them.
    pub reason: IneffectiveReason,
}

/// Why a call does not order what it seems to order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum IneffectiveReason {
    /// It is about what the host has issued, and a stream has issued the access; or the other way round.
    Scope,
    /// It is a flush of another stream: a flush is about its own stream only.
    Stream,
    /// It is a fence: it orders deliveries to one PE, and completes nothing.
    Fence,
    /// Another quiet had claimed the non-blocking operation before, and only that one completes it.
    Claimed,
    /// It waits for an event that had not been recorded when it was called: it waits for nothing, as CUDA has it.
    Unrecorded,
    /// It waits for an event that was recorded too early.
    Recorded {
        /// The line that records the event.
        record: At,
        /// The line behind that one, for which the call does not wait: the access, or what orders it.
        before: At,
    },
    /// It is a signal of another stream, which does not wait for the one that made the access.
    Unordered,
}

impl fmt::Display for IneffectiveOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let IneffectiveOrder { call, at, stream, reason } = self;
        write!(f, "the {call} at {at} ")?;
        match (reason, stream) {
            (IneffectiveReason::Scope, None) => f.write_str("is the host's, and is not about what streams have issued"),
            (IneffectiveReason::Scope, Some(_)) => {
                f.write_str("is a stream's, and is not about what the host has issued")
            }
            (IneffectiveReason::Stream, _) => f.write_str("is on another stream, and is about that one only"),
            (IneffectiveReason::Fence, _) => f.write_str("completes nothing: it orders what goes to one PE"),
            (IneffectiveReason::Unrecorded, _) => {
                f.write_str("waits for nothing: its event had not been recorded when it was called")
            }
            (IneffectiveReason::Recorded { record, before }, _) => {
                write!(f, "waits for less: its event is recorded at {record:#}, before {before:#}")
            }
            (IneffectiveReason::Unordered, _) => {
                f.write_str("is on another stream, and does not wait for this one: an event orders the two")
            }
            (IneffectiveReason::Claimed, _) => {
                f.write_str("does not wait for it: another quiet had claimed it before, and completes it later")
            }
        }
    }
}
