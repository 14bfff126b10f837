//! What ends a block that goes wrong.

use std::fmt;

use crate::module::{Module, Place};

/// A thread of a block of the grid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[expect(clippy::exhaustive_structs, reason = "a thread has these two positions")]
pub struct Who {
    /// The block's position in the grid.
    pub block: [u32; 3],
    /// The thread's position in the block.
    pub thread: [u32; 3],
}

impl Who {
    /// The thread of that number in a block of the grid, where blocks have these dimensions.
    pub fn of(block: [u32; 3], [x, y, _]: [u32; 3], thread: u32) -> Who {
        Who { block, thread: [thread % x, thread / x % y, thread / x / y] }
    }
}

/// `block 3, thread 17`; with all three numbers where a grid or block has more dimensions than one.
impl fmt::Display for Who {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let one = |[x, y, z]: [u32; 3]| if (y, z) == (0, 0) { x.to_string() } else { format!("({x}, {y}, {z})") };
        write!(f, "block {}, thread {}", one(self.block), one(self.thread))
    }
}

/// The kind of a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum FaultKind {
    /// The kernel has trapped.
    Trap,
    /// An `assert` of the kernel does not hold.
    Assert,
    /// Threads wait at barriers that others do not come to.
    BarrierDivergence,
    /// An access beyond shared, local, constant or parameter memory.
    OutOfBounds,
    /// An address that is not a multiple of the access's size.
    Misaligned,
    /// A warp computes something together, and a lane that takes part is not there.
    MissingLanes,
    /// A read of shared memory that nobody wrote.
    Uninitialized,
    /// Two threads access the same shared memory, one of them writes, and nothing orders them.
    Race,
    /// A register of a product that a warp group has begun is accessed without a wait for it, or the product begins without a fence behind an
    /// access to its registers.
    Unawaited,
    /// A loop that nothing can end.
    EndlessLoop,
    /// More instructions than the launch allows. Whether the block would have ended is not known.
    StepLimit,
    /// The world does not let the block [go on](crate::World::goes_on).
    Stopped,
    /// A call that a warp or block makes together, with different arguments or without some threads.
    GroupCall,
    /// The world refused an access to global memory.
    Memory,
    /// Calls are nested too deeply.
    StackOverflow,
    /// Operands that PTX forbids.
    InvalidOperand,
}

/// Two accesses to shared memory that nothing orders. Threads are given by their numbers in the block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "who made the two, and when the earlier one was made")]
pub struct Unordered {
    /// Who made the earlier one.
    pub first: usize,
    /// The world's [moment](crate::World::moment) of it.
    pub moment: u64,
    /// Who made the later one.
    pub second: usize,
}

/// What went wrong, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Fault {
    /// The kind.
    pub kind: FaultKind,
    /// What happened.
    pub message: String,
    /// The thread.
    pub who: Who,
    /// The instruction.
    pub place: Place,
    /// The place as it reads: `ring.cu:12`.
    pub at: String,
    /// The other thread of a race or divergence, with its place as it reads.
    pub other: Option<(Who, String)>,
    /// The other's place itself.
    pub other_place: Option<Place>,
    /// Of a race, what would order the two threads.
    pub missing: Option<String>,
    /// Of a race of two accesses by threads, who made them, and when.
    pub unordered: Option<Unordered>,
    /// Of a misaligned access, its address.
    pub address: Option<u64>,
}

impl Fault {
    pub(super) fn new(module: &Module, kind: FaultKind, who: Who, place: Place, message: impl Into<String>) -> Self {
        let at = module.describe(place);
        let message = message.into();
        Self {
            kind,
            message,
            who,
            place,
            at,
            other: None,
            other_place: None,
            missing: None,
            unordered: None,
            address: None,
        }
    }

    pub(super) fn of_address(self, address: u64) -> Self {
        Self { address: Some(address), ..self }
    }

    pub(super) fn lacking(self, missing: String) -> Self {
        Self { missing: Some(missing), ..self }
    }

    pub(super) fn with(mut self, module: &Module, who: Who, place: Place) -> Self {
        (self.other, self.other_place) = (Some((who, module.describe(place))), Some(place));
        self
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\n    {} by {}", self.message, self.at, self.who)?;
        if let Some((who, at)) = &self.other {
            write!(f, "\n    {at} by {who}")?;
        }
        match &self.missing {
            Some(missing) => write!(f, "\n    missing: {missing}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Fault {}
