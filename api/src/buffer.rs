//! Handles to memory: who owns it, who may look at it, and what may be an argument of what.
//!
//! No handle ever gives `&[T]`: another PE may write behind it. Local access copies (`Pe::read`, `Pe::write`), so a
//! race is a wrong value and never undefined behaviour.
//!
//! | handle | made by | ended by | may be |
//! |---|---|---|---|
//! | [`SymmetricBuf`] | `Pe::alloc` | `Pe::free` | remote or local operand |
//! | [`RegisteredSymmetric`] | `Pe::register_symmetric` | `Pe::unregister_symmetric` | remote or local operand |
//! | [`RegisteredLocal`] | `Pe::register_local` | `Pe::unregister_local` | local operand |
//! | [`ExternalBuf`] | `Pe::alloc_external` | `Pe::free_external` | read and written by its own PE |
//!
//! The three sealed traits [`Own`], [`Local`] and [`Symmetric`] say the last column in types: passing memory that
//! NVSHMEM could not reach does not compile.

use std::marker::PhantomData;
use std::ops::{Bound, Deref, RangeBounds};

use crate::element::Element;

/// Names an allocation: the same number on every PE for symmetric memory, a private number for external memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AllocId(pub u32);

impl AllocId {
    const EXTERNAL: u32 = 1 << 31;

    /// The `n`-th external allocation of a PE.
    pub const fn new_external(n: u32) -> AllocId {
        AllocId(n | Self::EXTERNAL)
    }

    /// The private number, if this is external memory that is not registered symmetrically.
    pub const fn external(self) -> Option<u32> {
        if self.0 & Self::EXTERNAL != 0 { Some(self.0 & !Self::EXTERNAL) } else { None }
    }
}

/// Bytes of one allocation: what operations carry instead of pointers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span {
    /// The allocation.
    pub alloc: AllocId,
    /// First byte, from the start of the allocation.
    pub start: usize,
    /// Number of bytes.
    pub len: usize,
}

impl Span {
    /// Whether both spans share a byte (on the same PE). An empty span shares none.
    #[inline]
    pub fn overlaps(&self, other: &Span) -> bool {
        self.alloc == other.alloc && self.start.max(other.start) < (self.start + self.len).min(other.start + other.len)
    }
}

/// The bytes that a handle stands for. Called by backends, for what only one of them has: device pointers, say.
///
/// ```
/// # use onesided::{Backend, Pe, Result};
/// # fn demo<B: Backend>(pe: &Pe<B>) -> Result<()> {
/// let buf = pe.alloc::<u32>(4)?;
/// assert_eq!(onesided::backend::span_of(buf.slice(1..)).len, 12);
/// # pe.free(buf) }
/// ```
pub fn span_of<T: Element>(buf: impl Own<T>) -> Span {
    buf.span()
}

mod sealed {
    use super::Span;
    /// Gives the bytes that a handle stands for.
    pub trait HasSpan {
        fn span(&self) -> Span;
    }
}
pub(crate) use sealed::HasSpan;

/// Memory of this PE that [`Pe::read`](crate::Pe::read) and [`Pe::write`](crate::Pe::write) accept.
pub trait Own<T: Element>: HasSpan {}

/// Memory of this PE that may be the *local* operand of a transfer: symmetric or registered.
///
/// External memory that is not registered is none:
/// ```compile_fail
/// # use onesided::{Backend, Pe, Result};
/// fn wrong<B: Backend>(pe: &Pe<B>) -> Result<()> {
///     let dst = pe.alloc::<f32>(4)?;
///     let src = pe.alloc_external::<f32>(4)?;
///     pe.host().put(&dst, &src, 0) // error: `&ExternalBuf<f32>` is not `Local<f32>`
/// }
/// ```
pub trait Local<T: Element>: Own<T> {}

/// Memory that exists on every PE: what the *remote* operand of a transfer, and both operands of a collective, must be.
pub trait Symmetric<T: Element>: Local<T> {}

/// Symmetric memory: `len` elements of `T` on every PE, at the same offset of the symmetric heap.
///
/// Owned, and freed only by the collective [`Pe::free`](crate::Pe::free), which consumes it. Dropping it
/// communicates nothing and frees nothing: it is then reported as a leak, with the line that allocated it, when the
/// PE finalizes. (A collective free in `Drop` would hang the others as soon as one PE unwinds.)
///
/// Freeing under a borrow does not compile:
/// ```compile_fail
/// # use onesided::{Backend, Pe, Result};
/// fn wrong<B: Backend>(pe: &Pe<B>) -> Result<()> {
///     let buf = pe.alloc::<u32>(4)?;
///     let view = buf.slice(..2);
///     pe.free(buf)?; // error: cannot move out of `buf` because it is borrowed
///     pe.write(view, &[1, 2])
/// }
/// ```
/// nor does freeing twice:
/// ```compile_fail
/// # use onesided::{Backend, Pe, Result};
/// fn wrong<B: Backend>(pe: &Pe<B>) -> Result<()> {
///     let buf = pe.alloc::<u32>(4)?;
///     pe.free(buf)?;
///     pe.free(buf) // error: use of moved value
/// }
/// ```
#[derive(Debug)]
#[must_use = "symmetric memory is freed by the collective Pe::free, never by drop"]
pub struct SymmetricBuf<T> {
    pub(crate) alloc: AllocId,
    len: usize,
    of: PhantomData<T>,
}

/// A view of part of a [`SymmetricBuf`], copied freely.
#[derive(Debug)]
pub struct SymmetricSlice<'a, T> {
    alloc: AllocId,
    start: usize,
    len: usize,
    of: PhantomData<&'a T>,
}

/// One signal word: an aligned `u64` of symmetric memory, updated by signals and waited on.
///
/// Made by [`SymmetricBuf::signal`], so that a word of another size, type or alignment cannot be passed:
/// ```compile_fail
/// # use onesided::{Backend, Pe, Result, SignalOp};
/// fn wrong<B: Backend>(pe: &Pe<B>) -> Result<()> {
///     let words = pe.alloc::<u32>(1)?;
///     pe.host().signal_op(words.signal(0), 1, SignalOp::Set, 0) // error: no method `signal` for u32
/// }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Signal<'a> {
    span: Span,
    of: PhantomData<&'a u64>,
}

/// Device memory of this PE outside the symmetric heap, as an application's own allocator would give.
#[derive(Debug)]
#[must_use = "external memory is freed by Pe::free_external"]
pub struct ExternalBuf<T> {
    alloc: AllocId,
    len: usize,
    of: PhantomData<T>,
}

/// External memory registered as a *local* operand (`nvshmemx_buffer_register`).
#[derive(Debug)]
#[must_use = "a registration is ended by Pe::unregister_local"]
pub struct RegisteredLocal<T>(pub(crate) ExternalBuf<T>);

/// External memory that joined the symmetric heap (`nvshmemx_buffer_register_symmetric`).
///
/// Dereferences to the [`SymmetricBuf`] it behaves as. It cannot be freed, only unregistered:
/// ```compile_fail
/// # use onesided::{Backend, Pe, Result};
/// fn wrong<B: Backend>(pe: &Pe<B>) -> Result<()> {
///     let registered = pe.register_symmetric(pe.alloc_external::<u8>(64)?)?;
///     pe.free(*registered) // error: cannot move out of dereference
/// }
/// ```
#[derive(Debug)]
#[must_use = "a registration is ended by the collective Pe::unregister_symmetric"]
pub struct RegisteredSymmetric<T> {
    pub(crate) symmetric: SymmetricBuf<T>,
    pub(crate) external: ExternalBuf<T>,
}

impl<T: Element> SymmetricBuf<T> {
    pub(crate) fn new(alloc: AllocId, len: usize) -> Self {
        SymmetricBuf { alloc, len, of: PhantomData }
    }

    /// Number of elements on each PE.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Always false: allocations of no element are refused.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The allocation's name in reports and traces.
    pub fn id(&self) -> AllocId {
        self.alloc
    }

    /// The elements of `range`, as a view.
    ///
    /// # Panics
    /// When the range reaches past the end, as slices do.
    ///
    /// ```
    /// # use onesided::{Backend, Pe, Result};
    /// # fn demo<B: Backend>(pe: &Pe<B>) -> Result<()> {
    /// let buf = pe.alloc::<f64>(10)?;
    /// assert_eq!(buf.slice(2..5).len(), 3);
    /// # pe.free(buf) }
    /// ```
    #[inline]
    #[track_caller]
    pub fn slice(&self, range: impl RangeBounds<usize>) -> SymmetricSlice<'_, T> {
        SymmetricSlice { alloc: self.alloc, start: 0, len: self.len, of: PhantomData }.slice(range)
    }

    /// The element at `index`, as a view of one element.
    ///
    /// # Panics
    /// When `index` is past the end.
    #[inline]
    #[track_caller]
    pub fn at(&self, index: usize) -> SymmetricSlice<'_, T> {
        self.slice(index..=index)
    }
}

impl SymmetricBuf<u64> {
    /// The word at `index`, as a signal.
    ///
    /// # Panics
    /// When `index` is past the end.
    #[inline]
    #[track_caller]
    pub fn signal(&self, index: usize) -> Signal<'_> {
        self.slice(..).signal(index)
    }
}

impl<'a, T: Element> SymmetricSlice<'a, T> {
    /// Number of elements.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the view has no element.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The elements of `range` of this view.
    ///
    /// # Panics
    /// When the range reaches past the end, as slices do.
    #[inline]
    #[track_caller]
    pub fn slice(self, range: impl RangeBounds<usize>) -> SymmetricSlice<'a, T> {
        let from = match range.start_bound() {
            Bound::Included(&from) => from,
            Bound::Excluded(&before) => before + 1,
            Bound::Unbounded => 0,
        };
        let to = match range.end_bound() {
            Bound::Included(&last) => last + 1,
            Bound::Excluded(&to) => to,
            Bound::Unbounded => self.len,
        };
        assert!(from <= to && to <= self.len, "range {from}..{to} of a symmetric slice of {} elements", self.len);
        SymmetricSlice { start: self.start + from, len: to - from, ..self }
    }

    /// The same memory as plain bytes.
    pub fn as_bytes(self) -> SymmetricSlice<'a, u8> {
        let size = size_of::<T>();
        SymmetricSlice { alloc: self.alloc, start: self.start * size, len: self.len * size, of: PhantomData }
    }
}

impl<'a> SymmetricSlice<'a, u64> {
    /// The word at `index` of the view, as a signal.
    ///
    /// # Panics
    /// When `index` is past the end.
    #[inline]
    #[track_caller]
    pub fn signal(self, index: usize) -> Signal<'a> {
        Signal { span: self.slice(index..=index).span(), of: PhantomData }
    }
}

impl<T> Clone for SymmetricSlice<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for SymmetricSlice<'_, T> {}

impl Signal<'_> {
    #[inline]
    pub(crate) fn span(&self) -> Span {
        self.span
    }
}

impl<T: Element> ExternalBuf<T> {
    pub(crate) fn new(alloc: AllocId, len: usize) -> Self {
        ExternalBuf { alloc, len, of: PhantomData }
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Always false: allocations of no element are refused.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(crate) fn id(&self) -> AllocId {
        self.alloc
    }
}

impl<T> Deref for RegisteredSymmetric<T> {
    type Target = SymmetricBuf<T>;
    fn deref(&self) -> &SymmetricBuf<T> {
        &self.symmetric
    }
}

impl<T: Element> HasSpan for SymmetricSlice<'_, T> {
    #[inline]
    fn span(&self) -> Span {
        let size = size_of::<T>();
        Span { alloc: self.alloc, start: self.start * size, len: self.len * size }
    }
}
impl<T: Element> HasSpan for &SymmetricBuf<T> {
    #[inline]
    fn span(&self) -> Span {
        Span { alloc: self.alloc, start: 0, len: self.len * size_of::<T>() }
    }
}
impl<T: Element> HasSpan for &RegisteredSymmetric<T> {
    #[inline]
    fn span(&self) -> Span {
        (&self.symmetric).span()
    }
}
impl<T: Element> HasSpan for &RegisteredLocal<T> {
    #[inline]
    fn span(&self) -> Span {
        (&self.0).span()
    }
}
impl<T: Element> HasSpan for &ExternalBuf<T> {
    #[inline]
    fn span(&self) -> Span {
        Span { alloc: self.alloc, start: 0, len: self.len * size_of::<T>() }
    }
}

impl<T: Element> Own<T> for SymmetricSlice<'_, T> {}
impl<T: Element> Own<T> for &SymmetricBuf<T> {}
impl<T: Element> Own<T> for &RegisteredSymmetric<T> {}
impl<T: Element> Own<T> for &RegisteredLocal<T> {}
impl<T: Element> Own<T> for &ExternalBuf<T> {}
impl<T: Element> Local<T> for SymmetricSlice<'_, T> {}
impl<T: Element> Local<T> for &SymmetricBuf<T> {}
impl<T: Element> Local<T> for &RegisteredSymmetric<T> {}
impl<T: Element> Local<T> for &RegisteredLocal<T> {}
impl<T: Element> Symmetric<T> for SymmetricSlice<'_, T> {}
impl<T: Element> Symmetric<T> for &SymmetricBuf<T> {}
impl<T: Element> Symmetric<T> for &RegisteredSymmetric<T> {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_count_in_elements_and_spans_in_bytes() {
        let buf = SymmetricBuf::<u32>::new(AllocId(3), 10);
        let part = buf.slice(2..6).slice(1..=2);
        assert_eq!(part.len(), 2);
        assert_eq!(part.span(), Span { alloc: AllocId(3), start: 12, len: 8 });
        assert_eq!(part.as_bytes().span(), part.span());
        assert!(buf.slice(10..).is_empty());
    }

    #[test]
    #[should_panic(expected = "range 8..11 of a symmetric slice of 10 elements")]
    fn a_slice_past_the_end_panics() {
        let _ = SymmetricBuf::<u32>::new(AllocId(0), 10).slice(8..11);
    }

    #[test]
    fn overlap_needs_the_same_allocation_and_a_shared_byte() {
        let span = |alloc, start, len| Span { alloc: AllocId(alloc), start, len };
        assert!(span(1, 0, 8).overlaps(&span(1, 7, 1)));
        assert!(!span(1, 0, 8).overlaps(&span(1, 8, 1)));
        assert!(!span(1, 0, 8).overlaps(&span(2, 0, 8)));
        assert!(!span(1, 0, 8).overlaps(&span(1, 4, 0)), "an empty span overlaps nothing");
    }
}
