//! What a PE asks of the machine, and what it gets back.

use std::sync::Arc;

use onesided::backend::{AllocId, LaunchRequest, Layout, Live, NewTeams, Op, Span, TeamId, TeamRequest, Values};
use onesided::{DType, Error, ReduceOp, UniqueId};

use crate::kernel::Code;

/// A call of the host program. It borrows what lies on the PE's stack, which stands still until the reply.
#[derive(Debug)]
pub(crate) enum Call<'a> {
    /// Becomes a PE.
    Init { method: &'static str, id: Option<UniqueId> },
    /// Whether it is one.
    IsInitialized,
    /// Ends being one.
    Finalize { leaks: &'a [Live] },
    /// Ends the job.
    GlobalExit { status: i32 },
    /// An operation, from the host or on one of my streams.
    Issue { op: &'a Op, values: &'a Values<'a>, stream: Option<u32> },
    /// Loads from my memory, or from a peer's that I reach.
    Read { src: Span, pe: u32, dtype: DType, into: &'a mut [u8] },
    /// Stores to my memory, or to a peer's that I reach.
    Write { dst: Span, pe: u32, dtype: DType, from: &'a [u8] },
    /// Stores on every member.
    MulticastWrite { team: TeamId, dst: Span, dtype: DType, from: &'a [u8] },
    /// Loads the reduction over all members.
    MulticastRead { team: TeamId, src: Span, dtype: DType, op: ReduceOp, into: &'a mut [u8] },
    /// Symmetric memory.
    Alloc(Layout),
    /// Its end.
    Free(AllocId),
    /// Memory outside the heap.
    AllocExternal(usize),
    /// Its end.
    FreeExternal(AllocId),
    /// A local registration. The simulator's memory needs none; the types say what may be an operand.
    RegisterLocal,
    /// Its end.
    UnregisterLocal(AllocId),
    /// A symmetric registration.
    RegisterSymmetric(AllocId),
    /// Its end.
    UnregisterSymmetric(AllocId),
    /// Teams.
    Team(&'a TeamRequest<'a>),
    /// World ranks of a team, asked of the machine that made it.
    TeamMembers(TeamId),
    /// A fresh id for `team_init`.
    TeamUniqueId,
    /// A unique id for `init`.
    UniqueId,
    /// A stream.
    Stream,
    /// Blocks until a stream has run everything.
    Synchronize { stream: u32 },
    /// An event.
    Event,
    /// Enqueues a record.
    Record { event: u32, stream: u32 },
    /// Enqueues a kernel.
    Launch { request: &'a LaunchRequest<'a, Arc<Code>>, stream: u32 },
    /// Makes a stream wait.
    WaitEvent { event: u32, stream: u32 },
    /// Blocks until an event has happened.
    SynchronizeEvent { event: u32 },
}

impl Call<'_> {
    /// The call as a report has it.
    pub(crate) fn in_words(&self) -> String {
        match self {
            Call::Issue { op, .. } => op.to_string(),
            Call::Read { src: span, .. } | Call::Write { dst: span, .. } => format!("{}({span})", self.name()),
            other => other.name().to_string(),
        }
    }

    /// The call's name in the API.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Call::Init { .. } => "init",
            Call::IsInitialized => "init_status",
            Call::Finalize { .. } => "finalize",
            Call::GlobalExit { .. } => "global_exit",
            Call::Issue { op, .. } => op.name(),
            Call::Read { .. } => "read",
            Call::Write { .. } => "write",
            Call::MulticastWrite { .. } => "multicast write",
            Call::MulticastRead { .. } => "multicast read",
            Call::Alloc(_) => "alloc",
            Call::Free(_) => "free",
            Call::AllocExternal(_) => "alloc_external",
            Call::FreeExternal(_) => "free_external",
            Call::RegisterLocal => "register_local",
            Call::UnregisterLocal(_) => "unregister_local",
            Call::RegisterSymmetric(_) => "register_symmetric",
            Call::UnregisterSymmetric(_) => "unregister_symmetric",
            Call::Team(TeamRequest::SplitStrided { .. }) => "team_split_strided",
            Call::Team(TeamRequest::Split2d { .. }) => "team_split_2d",
            Call::Team(TeamRequest::Init { .. }) => "team_init",
            Call::Team(TeamRequest::Destroy { .. }) => "team_destroy",
            Call::TeamMembers(_) => "team_members",
            Call::TeamUniqueId => "team_unique_id",
            Call::UniqueId => "unique_id",
            Call::Stream => "stream",
            Call::Synchronize { .. } => "synchronize",
            Call::Event => "event",
            Call::Record { .. } => "record",
            Call::Launch { .. } => "launch",
            Call::WaitEvent { .. } => "wait_event",
            Call::SynchronizeEvent { .. } => "synchronize_event",
        }
    }
}

/// What a call returns.
#[derive(Debug, Default)]
pub(crate) enum Reply {
    /// Nothing but that it is done.
    #[default]
    Unit,
    /// A number: fetched bits, a stream, an event, an id.
    Value(u64),
    /// What was loaded.
    Bytes(Vec<u8>),
    /// An allocation.
    Alloc(AllocId),
    /// Teams.
    Teams(NewTeams),
    /// World ranks.
    Members(Box<onesided::Members>),
    /// An id for `init`.
    UniqueId(Box<UniqueId>),
    /// An operating condition.
    Failed(Error),
}

impl Reply {
    /// Whether there is something to drop.
    #[inline]
    pub(crate) fn owns_memory(&self) -> bool {
        !matches!(self, Reply::Unit | Reply::Value(_) | Reply::Alloc(_))
    }
}
