//! For writers of backends and of tools: the trait that a backend implements, and the plain data that it sees.
//!
//! A program needs none of this. It names [`Backend`] as a bound, under `onesided::Backend`, and calls [`Pe`].
//! No program gets at a value of its backend, so none can call the trait's methods with arguments that `Pe` has not checked:
//! ```compile_fail,E0616
//! # use onesided::{At, Backend, Pe, Result, backend::{Op, Values}};
//! fn wrong<B: Backend>(pe: &Pe<B>) -> Result<u64> {
//!     pe.backend.issue(&Op::Quiet, &Values::NONE, None, At::caller()) // error: the field is private
//! }
//! ```
//! ```compile_fail,E0277
//! # use onesided::{At, Backend, Pe, Result};
//! fn wrong<B: Backend>(pe: &Pe<B>) -> Result<()> {
//!     Backend::finalize(pe, &[], At::caller()) // error: `&Pe<B>` is no `Backend`
//! }
//! ```
//!
//! Typing, validation, bookkeeping and documentation are in [`Pe`], once. A backend relies on arguments being valid *as far as one PE
//! can see*: PE numbers in range, spans inside their allocation, lengths that fit, alignment, handles of this PE. It still asserts
//! what its memory safety depends on.

use crate::at::At;
use crate::capability::{Capabilities, Support};
use crate::element::{DType, Element};
use crate::error::Result;
use crate::kernel::Source;
use crate::launch::{Argument, Grid};
use crate::life::{InitStatus, ThreadSupport, Version};
use crate::members::{Members, Predefined};
use crate::operand::Own;
use crate::operator::ReduceOp;
use crate::pe::Pe;
use crate::stream::Stream;
use crate::team::{TeamConfig, TeamUniqueId};
use crate::tensor::{Fill, Swizzle};

pub use crate::effect::{
    Access, Collective, CollectiveKind, Data, Effect, How, Listener, Moves, Order, Pattern, Shape, Transfer, Until,
    Wait, Whose,
};
pub use crate::kernel::Language;
pub use crate::launch::Parameter;
pub use crate::members::TeamId;
pub use crate::op::{Against, Op, SignalUpdate};
pub use crate::operator::AmoOp;
pub use crate::pe::{Live, LiveKind};
pub use crate::placed::{Placed, placed};
pub use crate::span::{AllocId, Span};
pub use crate::values::Values;

/// Size and kind of an allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Bytes on each PE; never 0.
    pub bytes: usize,
    /// Alignment of the first byte: a power of two, at least 8; `None` for the library's default.
    pub align: Option<usize>,
    /// Whether the memory starts as zeros on every PE.
    pub zeroed: bool,
}

/// A program's statement that some of its accesses are intended to race.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "who marks accesses says both")]
pub struct Intended {
    /// Why they may race.
    pub reason: &'static str,
    /// The line that marks them.
    pub at: At,
}

/// A team to be made or ended.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::exhaustive_enums, reason = "a backend must answer every request")]
pub enum TeamRequest<'a> {
    /// `team_split_strided`; `members` holds world ranks.
    SplitStrided {
        /// The parent.
        parent: TeamId,
        /// First member, as a rank of the parent.
        start: usize,
        /// Distance of members in the parent.
        stride: usize,
        /// World ranks.
        members: &'a Members,
        /// Kept for `config()`.
        config: TeamConfig,
    },
    /// `team_split_2d`, seen from one PE: its own row and column.
    Split2d {
        /// The parent.
        parent: TeamId,
        /// Length of a row.
        xrange: usize,
        /// My row.
        x_members: &'a Members,
        /// My column.
        y_members: &'a Members,
        /// Kept for the row's `config()`.
        x_config: TeamConfig,
        /// Kept for the column's `config()`.
        y_config: TeamConfig,
    },
    /// `team_init`.
    Init {
        /// What the members agreed on.
        unique_id: TeamUniqueId,
        /// Number of members.
        n_pes: usize,
        /// My rank in the team.
        index: usize,
        /// Kept for `config()`.
        config: TeamConfig,
    },
    /// `team_destroy`.
    Destroy {
        /// The team to end.
        team: TeamId,
    },
}

/// The teams that a request gave to this PE.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NewTeams {
    /// The new team, or the row of a 2-d split.
    pub first: Option<TeamId>,
    /// The column of a 2-d split.
    pub second: Option<TeamId>,
}

/// A kernel of a module, as a backend describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "a backend that loads kernels says all of it")]
pub struct KernelInfo {
    /// The name that the linker knows.
    pub name: String,
    /// The instance of a template that it is, as [`Source::instances`] has it.
    pub instance: Option<String>,
    /// Its parameters.
    pub parameters: Vec<Parameter>,
    /// The blocks of its clusters in each dimension, if it was compiled for clusters.
    pub cluster: Option<[u32; 3]>,
}

/// The value of a kernel's argument.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "a backend must pass each")]
pub enum ArgumentValue {
    /// A number.
    Bits {
        /// Its bits, zero-extended.
        bits: u64,
        /// Its bytes: 1, 2, 4 or 8.
        size: usize,
        /// Its type in Rust.
        ty: &'static str,
    },
    /// A pointer to my own memory.
    Memory(Span),
    /// The handle of a team, of 4 bytes.
    Team(TeamId),
    /// A structure.
    Bytes {
        /// Its bytes.
        bytes: Vec<u8>,
        /// The alignment of its type.
        align: usize,
    },
    /// A tensor in my own memory, of 128 bytes (`CUtensorMap`).
    Tensor(Box<Tensor>),
    /// A structure of values, each with where it begins.
    Structure {
        /// Its values.
        fields: Vec<(usize, ArgumentValue)>,
        /// Its bytes.
        size: usize,
    },
}

impl ArgumentValue {
    /// Bytes that it takes among a kernel's parameters.
    #[inline]
    pub fn size(&self) -> usize {
        match self {
            ArgumentValue::Bits { size, .. } | ArgumentValue::Structure { size, .. } => *size,
            ArgumentValue::Memory(_) => 8,
            ArgumentValue::Team(_) => 4,
            ArgumentValue::Bytes { bytes, .. } => bytes.len(),
            ArgumentValue::Tensor(_) => size_of::<TensorBytes>(),
        }
    }

    /// Writes the value as a kernel takes it: `to` has [`size`](ArgumentValue::size) bytes. Padding between the fields of a
    /// structure is left as it is. `address` returns the address of memory, `team` the handle of a team, and `tensor` the bytes
    /// for a tensor at an address.
    ///
    /// # Errors
    /// Those of `address` and `tensor`.
    pub fn write<E>(
        &self,
        to: &mut [u8],
        address: &mut dyn FnMut(Span) -> Result<u64, E>,
        team: &dyn Fn(TeamId) -> u32,
        tensor: &dyn Fn(&Tensor, u64) -> Result<TensorBytes, E>,
    ) -> Result<(), E> {
        match self {
            ArgumentValue::Bits { bits, size, .. } => to.copy_from_slice(&bits.to_le_bytes()[..*size]),
            ArgumentValue::Memory(span) => to.copy_from_slice(&address(*span)?.to_le_bytes()),
            ArgumentValue::Team(id) => to.copy_from_slice(&team(*id).to_le_bytes()),
            ArgumentValue::Bytes { bytes, .. } => to.copy_from_slice(bytes),
            ArgumentValue::Tensor(of) => to.copy_from_slice(&tensor(of, address(of.memory)?)?),
            ArgumentValue::Structure { fields, .. } => {
                for (start, field) in fields {
                    field.write(&mut to[*start..start + field.size()], address, team, tensor)?;
                }
            }
        }
        Ok(())
    }

    /// The alignment of the value, in bytes. It is 1 for plain bytes, whose alignment is not known.
    pub(crate) fn align(&self) -> usize {
        match self {
            ArgumentValue::Bits { .. } | ArgumentValue::Memory(_) | ArgumentValue::Team(_) => self.size(),
            ArgumentValue::Bytes { align, .. } => *align,
            ArgumentValue::Tensor(_) => 128, // 64 before CUDA 13
            ArgumentValue::Structure { fields, .. } => fields.iter().map(|(_, field)| field.align()).max().unwrap_or(1),
        }
    }

    pub(crate) fn describe(&self) -> &'static str {
        match self {
            ArgumentValue::Bits { ty, .. } => ty,
            ArgumentValue::Memory(_) => "a pointer",
            ArgumentValue::Team(_) => "a team",
            ArgumentValue::Bytes { .. } | ArgumentValue::Structure { .. } => "a structure",
            ArgumentValue::Tensor(_) => "a tensor map",
        }
    }
}

/// A tensor in memory, and its tiles. The API has checked all of it, except the address: the memory begins at a multiple of 16
/// bytes within its allocation, and the backend checks where the allocation begins.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "a backend must heed all of it")]
pub struct Tensor {
    /// The memory. The tensor begins at its first byte.
    pub memory: Span,
    /// The type of its elements.
    pub dtype: DType,
    /// Elements in each dimension, the innermost first: 1 to 5.
    pub sizes: Vec<u64>,
    /// Bytes from an element to the next, in each dimension but the first.
    pub strides: Vec<u64>,
    /// Elements of a tile in each dimension.
    pub tile: Vec<u32>,
    /// The step from one copied element of a tile to the next, in each dimension; 1 in the first.
    pub steps: Vec<u32>,
    /// How units of 16 bytes of a tile are permuted in shared memory.
    pub swizzle: Swizzle,
    /// What a load finds outside of the tensor.
    pub fill: Fill,
}

/// The bytes that a kernel gets for a tensor: a `CUtensorMap`.
pub type TensorBytes = [u8; 128];

impl Tensor {
    /// The bytes of a tile.
    pub(crate) fn tile_bytes(&self) -> usize {
        let counts = self.tile.iter().zip(&self.steps).map(|(tile, step)| tile.div_ceil(*step) as usize);
        counts.product::<usize>() * self.dtype.size()
    }
}

/// A kernel to be launched. Its arguments have the number and sizes of its parameters.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::exhaustive_structs, reason = "a backend must heed all of it")]
pub struct LaunchRequest<'a, M> {
    /// The module.
    pub module: &'a M,
    /// Which of the kernels that [`Backend::module`] has returned.
    pub kernel: usize,
    /// Its name.
    pub name: &'a str,
    /// Blocks and threads.
    pub grid: &'a Grid,
    /// Arguments; their [values](Argument::value) are what a backend passes.
    pub arguments: &'a [Argument],
}

/// One PE's end of a backend.
///
/// Every method that can fail gets `at`, the program's line, for its error or its report. Whether a method is
/// collective is said here in one word; the contract stands at the verb of [`Pe`] that calls it.
#[expect(clippy::missing_errors_doc, reason = "errors stand at the verb of `Pe` that calls the method")]
pub trait Backend: Sized {
    /// A queue of work that runs beside the host.
    type Stream;
    /// A point in a stream that others can wait for.
    type Event;
    /// Kernels that are loaded.
    type Module;
    /// What programs for this backend alone get from [`Pe::extension`](crate::Pe::extension); `()` if there is nothing.
    ///
    /// It must not lead a program to the methods of this trait: their arguments are not checked.
    type Extension<'a>
    where
        Self: 'a;

    /// The backend's name: `sim`, `nvshmem`.
    const NAME: &'static str;

    /// The place that errors and reports name for a call of the program. It is `caller`, the place in Rust code, unless the
    /// program is written in another language ([`Placed`]). Local.
    #[inline]
    fn place(&self, caller: At) -> At {
        caller
    }

    /// Sets the mark for what the host accesses and issues from now on. With a mark, these accesses are intended to race; with
    /// `None`, they are not. Returns the mark that was set before. A backend that does not look for races ignores it, and
    /// returns `None`. Local.
    #[inline]
    fn intends(&self, _mark: Option<Intended>) -> Option<Intended> {
        None
    }

    /// What [`Pe::extension`](crate::Pe::extension) returns. Local.
    fn extension(&self) -> Self::Extension<'_>;

    /// My world rank. Local.
    fn my_pe(&self) -> usize;
    /// Number of PEs. Local.
    fn n_pes(&self) -> usize;
    /// Members of a predefined team that I am in. Local.
    fn predefined(&self, which: Predefined) -> Option<Members>;
    /// Versions. Local.
    fn version(&self) -> Version;
    /// Status. Local.
    fn init_status(&self) -> InitStatus;
    /// Thread level. Local.
    fn thread_support(&self) -> ThreadSupport;
    /// Which of the optional families of calls work here. Local.
    fn capabilities(&self) -> Capabilities;
    /// The [`Capabilities::host_signals`] of this backend. Asked before each wait of the host, so it must cost next to nothing,
    /// where `capabilities` may have to look at the machine first. Local.
    #[inline]
    fn host_signals(&self) -> Support {
        self.capabilities().host_signals
    }
    /// The [`Capabilities::stream_fence`] of this backend. Asked before each fence on a stream, as `host_signals`. Local.
    #[inline]
    fn stream_fence(&self) -> Support {
        self.capabilities().stream_fence
    }
    /// Ends the PE; `leaks` is what it still holds, in allocation order. Collective.
    fn finalize(&self, leaks: &[Live], at: At) -> Result<()>;
    /// Ends the job on all PEs. One-sided.
    fn global_exit(&self, status: i32, at: At) -> !;

    /// Symmetric memory. Collective, ends with a barrier.
    fn alloc(&self, layout: Layout, at: At) -> Result<AllocId>;
    /// Frees symmetric memory. Collective, begins with a barrier.
    fn free(&self, alloc: AllocId, at: At) -> Result<()>;
    /// Device memory outside the heap. Local.
    fn alloc_external(&self, bytes: usize, at: At) -> Result<AllocId>;
    /// Frees it. Local.
    fn free_external(&self, alloc: AllocId, at: At) -> Result<()>;
    /// Makes external memory a local operand. Local.
    fn register_local(&self, alloc: AllocId, at: At) -> Result<()>;
    /// Ends that. Local.
    fn unregister_local(&self, alloc: AllocId, at: At) -> Result<()>;
    /// Makes external memory symmetric, under a new name. Collective.
    fn register_symmetric(&self, alloc: AllocId, at: At) -> Result<AllocId>;
    /// Ends that. Collective.
    fn unregister_symmetric(&self, alloc: AllocId, at: At) -> Result<()>;

    /// Whether `pe`'s memory can be loaded and stored directly. Local.
    fn reaches(&self, pe: usize) -> bool;
    /// Copies bytes of `pe`'s memory (mine, or one I reach) to private memory. Local.
    fn read(&self, src: Span, pe: usize, dtype: DType, into: &mut [u8], at: At) -> Result<()>;
    /// Copies private memory to `pe`'s memory (mine, or one I reach). Local.
    fn write(&self, dst: Span, pe: usize, dtype: DType, from: &[u8], at: At) -> Result<()>;
    /// Whether the team's memory can be addressed by multicast. Local.
    fn has_multicast(&self, team: TeamId) -> bool;
    /// Stores the bytes on every member. Local.
    fn multicast_write(&self, team: TeamId, dst: Span, dtype: DType, from: &[u8], at: At) -> Result<()>;
    /// Loads the reduction of all members' elements. Local.
    fn multicast_read(
        &self,
        team: TeamId,
        src: Span,
        dtype: DType,
        op: ReduceOp,
        into: &mut [u8],
        at: At,
    ) -> Result<()>;

    /// Makes or ends a team. Collective over the parent, the new members, or the team.
    fn team(&self, request: &TeamRequest<'_>, at: At) -> Result<NewTeams>;
    /// World ranks of a team that `team` returned. Local.
    fn team_members(&self, team: TeamId) -> Members;
    /// A fresh id for `TeamRequest::Init`. Local.
    fn team_unique_id(&self, at: At) -> Result<TeamUniqueId>;

    /// Issues an operation. From the host (`stream` is `None`), it returns when the operation's contract says so. On a stream,
    /// it returns when the operation is enqueued. After the call, the program may change `values`. Returns the fetched bits for
    /// an operation of the host that fetches, and the bits of a value that compared true for a wait of the host for a signal.
    /// In all other cases it returns 0.
    fn issue(&self, op: &Op, values: &Values<'_>, stream: Option<&Self::Stream>, at: At) -> Result<u64>;

    /// A new stream. Local.
    fn stream(&self, at: At) -> Result<Self::Stream>;
    /// Blocks the host until everything enqueued so far has run. Local.
    fn stream_synchronize(&self, stream: &Self::Stream, at: At) -> Result<()>;
    /// A new event. Local.
    fn event(&self, at: At) -> Result<Self::Event>;
    /// Enqueues a record of the event. Local.
    fn event_record(&self, event: &Self::Event, stream: &Self::Stream, at: At) -> Result<()>;
    /// Makes the stream wait for the event's last record. Local.
    fn event_wait(&self, event: &Self::Event, stream: &Self::Stream, at: At) -> Result<()>;
    /// Blocks the host until the event's last record has been reached. Local.
    fn event_synchronize(&self, event: &Self::Event, at: At) -> Result<()>;

    /// Compiles and loads kernels; says which there are. They stay until the PE finalizes. Local.
    fn module(&self, source: &Source, at: At) -> Result<(Self::Module, Vec<KernelInfo>)>;
    /// Enqueues a kernel. Local, unless the grid is collective.
    fn launch(&self, request: &LaunchRequest<'_, Self::Module>, stream: &Self::Stream, at: At) -> Result<()>;
}

/// The PE on top of an initialized backend.
pub fn new_pe<B: Backend>(backend: B) -> Pe<B> {
    Pe::new(backend)
}

/// A stream that the backend did not make in [`Backend::stream`], for the verbs of `pe`.
pub fn adopt_stream<B: Backend>(pe: &Pe<B>, stream: B::Stream) -> Stream<B> {
    Stream { inner: stream, brand: pe.brand }
}

/// The bytes of `buf`, for calls that only one backend has.
///
/// # Errors
/// [`InvalidArgument`](crate::ErrorKind::InvalidArgument) when `pe` did not make the handle.
///
/// ```
/// # use onesided::At;
/// # onesided_sim::example(2, |pe| {
/// let buf = pe.alloc::<u32>(4)?;
/// let span = onesided::backend::span_of(pe, "device_ptr", buf.slice(1..), At::caller())?;
/// assert_eq!((span.start, span.len), (4, 12));
/// # pe.free(buf) });
/// ```
pub fn span_of<B: Backend, T: Element>(pe: &Pe<B>, call: &'static str, buf: impl Own<T>, at: At) -> Result<Span> {
    pe.call(call, at).span("buf", buf)
}

/// Refuses the number of a PE that does not exist, for calls that only one backend has.
///
/// # Errors
/// [`InvalidArgument`](crate::ErrorKind::InvalidArgument).
///
/// ```
/// # use onesided::At;
/// # onesided_sim::example(1, |pe| {
/// assert!(onesided::backend::check_pe(pe, "my_call", 1, At::caller()).is_err());
/// # Ok(()) });
/// ```
pub fn check_pe<B: Backend>(pe: &Pe<B>, call: &'static str, other: usize, at: At) -> Result<()> {
    pe.call(call, at).pe(other).map(drop)
}

/// The backend's stream, for calls that only one backend has.
///
/// # Errors
/// [`InvalidArgument`](crate::ErrorKind::InvalidArgument) when `pe` did not make the stream.
///
/// ```
/// # use onesided::At;
/// # onesided_sim::example(1, |pe| {
/// let stream = pe.stream()?;
/// onesided::backend::stream_of(pe, "device_slice", &stream, At::caller())?;
/// # Ok(()) });
/// ```
pub fn stream_of<'a, B: Backend>(
    pe: &Pe<B>,
    call: &'static str,
    stream: &'a Stream<B>,
    at: At,
) -> Result<&'a B::Stream> {
    pe.call(call, at).stream(stream)
}
