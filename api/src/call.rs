//! [`Call`]: one call of a verb, which checks its arguments before anything is sent.

use crate::at::At;
use crate::backend::Backend;
use crate::brand::Brand;
use crate::buffer::Signal;
use crate::capability::Support;
use crate::element::{DType, Element};
use crate::error::{Error, ErrorKind, Result};
use crate::members::TeamId;
use crate::operand::Operand;
use crate::operator::ReduceOp;
use crate::pe::Pe;
use crate::span::Span;
use crate::stream::{Event, Stream};
use crate::team::Team;

/// One call of a verb: its name, the program's line, and what its arguments are checked against.
///
/// Each check gives the verb what it needs of the argument. The errors are made in functions of their own, marked `#[cold]`,
/// so that a verb whose arguments are right stays short.
#[derive(Clone, Copy)]
pub(crate) struct Call {
    name: &'static str,
    pub(crate) at: At,
    brand: Brand,
    n_pes: u32,
}

impl<B: Backend> Pe<B> {
    /// A call of the verb `name` at the program's line `at`.
    #[inline]
    pub(crate) fn call(&self, name: &'static str, at: At) -> Call {
        Call { name, at: self.backend.place(at), brand: self.brand, n_pes: self.n_pes() as u32 }
    }
}

/// # Handles
///
/// Each must have been made by the `Pe` of the call.
impl Call {
    /// The bytes of an operand.
    #[inline]
    pub(crate) fn span(self, role: &'static str, operand: impl Operand) -> Result<Span> {
        self.own(operand.brand(), role, "memory")?;
        Ok(operand.span())
    }

    /// The bytes of an operand that must be one element.
    #[inline]
    pub(crate) fn element<T: Element>(self, role: &'static str, operand: impl Operand) -> Result<Span> {
        let span = self.span(role, operand)?;
        if span.len == size_of::<T>() { Ok(span) } else { Err(self.not_one(role, span.len / size_of::<T>())) }
    }

    /// The word of a signal.
    #[inline]
    pub(crate) fn signal(self, signal: Signal<'_>) -> Result<Span> {
        self.own(signal.brand(), "signal", "a signal")?;
        Ok(signal.span())
    }

    /// The id of a team.
    #[inline]
    pub(crate) fn team(self, role: &'static str, team: &Team) -> Result<TeamId> {
        self.own(team.brand(), role, "a team")?;
        Ok(team.id())
    }

    /// The backend's stream.
    #[inline]
    pub(crate) fn stream<B: Backend>(self, stream: &Stream<B>) -> Result<&B::Stream> {
        self.own(stream.brand, "stream", "a stream")?;
        Ok(&stream.inner)
    }

    /// The backend's event.
    #[inline]
    pub(crate) fn event<B: Backend>(self, event: &Event<B>) -> Result<&B::Event> {
        self.own(event.brand, "event", "an event")?;
        Ok(&event.inner)
    }

    #[inline]
    pub(crate) fn own(self, brand: Brand, role: &'static str, kind: &'static str) -> Result<()> {
        if brand == self.brand { Ok(()) } else { Err(self.foreign(role, kind)) }
    }

    /// An error of the backend, as one of this call.
    #[cold]
    pub(crate) fn says(self, error: Error) -> Error {
        self.fail(error.kind(), error.message())
    }

    #[cold]
    fn foreign(self, role: &str, kind: &str) -> Error {
        self.refuse(format!(
            "{role} belongs to another PE or to an earlier run; pass {kind} that this PE made in this run"
        ))
    }

    #[cold]
    fn not_one(self, role: &str, elements: usize) -> Error {
        self.refuse(format!("{role} has length {elements}; pass one element, as buf.at(i) is"))
    }
}

/// # Numbers
impl Call {
    /// The number of a PE that exists.
    #[inline]
    pub(crate) fn pe(self, pe: usize) -> Result<u32> {
        if pe < self.n_pes as usize { Ok(pe as u32) } else { Err(self.no_such_pe(pe)) }
    }

    /// Refuses two operands of different lengths, in elements.
    #[inline]
    pub(crate) fn same_len(self, [first, second]: [(&'static str, usize); 2]) -> Result<()> {
        if first.1 == second.1 { Ok(()) } else { Err(self.lengths_differ([first, second])) }
    }

    /// Refuses `dst` and `src` of different lengths; both hold elements of type `T`.
    #[inline]
    pub(crate) fn same_elements(self, dst: Span, src: Span, dtype: DType) -> Result<()> {
        if dst.len == src.len {
            return Ok(());
        }
        let [dst, src] = [dst, src].map(|span| span.len / dtype.size());
        Err(self.lengths_differ([("dst", dst), ("src", src)]))
    }

    /// Refuses a transfer of a PE to itself if `dst` and `src` overlap without being equal. If they are equal, the transfer
    /// moves nothing and is allowed.
    #[inline]
    pub(crate) fn apart(self, is_own: bool, dst: Span, src: Span) -> Result<()> {
        if is_own && dst != src && dst.overlaps(&src) { Err(self.overlap(dst, src)) } else { Ok(()) }
    }

    #[cold]
    pub(crate) fn overlap(self, dst: Span, src: Span) -> Error {
        self.refuse(format!("dst {dst} and src {src} overlap, and both are of the calling PE"))
    }

    /// Refuses a reduction that NVSHMEM does not have.
    #[inline]
    pub(crate) fn reduction(self, dtype: DType, op: ReduceOp) -> Result<()> {
        if op.reduces(dtype) { Ok(()) } else { Err(self.no_such_reduction(dtype, op)) }
    }

    #[cold]
    fn no_such_pe(self, pe: usize) -> Error {
        self.refuse(format!("there is no PE {pe}; the job has PEs 0 to {}", self.n_pes - 1))
    }

    #[cold]
    fn lengths_differ(self, [first, second]: [(&str, usize); 2]) -> Error {
        let [(first, one), (second, other)] = [first, second];
        self.refuse(format!("{first} has length {one} and {second} length {other}; both must be equal"))
    }

    #[cold]
    fn no_such_reduction(self, dtype: DType, op: ReduceOp) -> Error {
        self.refuse(format!("{dtype} does not reduce with {}; only integers do", op.name()))
    }
}

/// # Errors
impl Call {
    /// Refuses a call of a family that the backend does not have.
    #[inline]
    pub(crate) fn require(self, support: Support) -> Result<()> {
        match support {
            Support::Missing(why) => Err(self.unsupported(why)),
            Support::Native | Support::Composed(_) => Ok(()),
        }
    }

    #[cold]
    fn unsupported(self, why: &str) -> Error {
        self.fail(ErrorKind::Unsupported, why)
    }

    /// The error for an argument that is wrong.
    #[cold]
    pub(crate) fn refuse(self, message: impl Into<String>) -> Error {
        self.fail(ErrorKind::InvalidArgument, message)
    }

    #[cold]
    pub(crate) fn fail(self, kind: ErrorKind, message: impl Into<String>) -> Error {
        Error::new(kind, self.name, message, self.at)
    }
}
