//! Handles to memory: [`Buf`] owns an allocation, [`Slice`] is a view of a part of one.
//!
//! No handle gives `&[T]`: another PE may write behind it. `Pe::read` and `Pe::write` copy, so a race is a wrong value and
//! never undefined behaviour.
//!
//! | handle | made by | ended by | may be |
//! |---|---|---|---|
//! | [`SymmetricBuf`] | `Pe::alloc` | `Pe::free` | remote or local operand |
//! | [`RegisteredSymmetric`] | `Pe::register_symmetric` | `Pe::unregister_symmetric` | remote or local operand |
//! | [`RegisteredLocal`] | `Pe::register_local` | `Pe::unregister_local` | local operand |
//! | [`ExternalBuf`] | `Pe::alloc_external` | `Pe::free_external` | read and written by its own PE |
//!
//! A handle is valid only on the [`Pe`](crate::Pe) that made it. Every verb refuses one of another PE or of an earlier run
//! with [`InvalidArgument`](crate::ErrorKind::InvalidArgument).

use std::fmt;
use std::marker::PhantomData;
use std::ops::{Bound, Deref, RangeBounds};

use crate::brand::Brand;
use crate::count::count;
use crate::element::Element;
use crate::span::{AllocId, Span};

/// Kinds of memory: the second parameter of [`Buf`](crate::Buf) and [`Slice`](crate::Slice). None has a value.
pub mod kind {
    /// On every PE, in the symmetric heap: symmetric memory.
    #[derive(Clone, Copy, Debug)]
    #[expect(clippy::exhaustive_enums, reason = "it has no value")]
    pub enum Heap {}
    /// On this PE, outside the heap, and registered as a local operand.
    #[derive(Clone, Copy, Debug)]
    #[expect(clippy::exhaustive_enums, reason = "it has no value")]
    pub enum Registered {}
    /// On this PE, outside the heap.
    #[derive(Clone, Copy, Debug)]
    #[expect(clippy::exhaustive_enums, reason = "it has no value")]
    pub enum External {}
}

/// An allocation of `len` elements of `T`, owned. `K` says which [`kind`] of memory it is.
///
/// Programs name the aliases: [`SymmetricBuf`], [`ExternalBuf`], [`RegisteredLocal`]. Each ends only by the call of
/// [`Pe`](crate::Pe) that consumes it. Dropping it frees nothing.
#[must_use = "memory is given back by a call of Pe (free, free_external, unregister_local), never by drop"]
pub struct Buf<T, K> {
    pub(crate) alloc: AllocId,
    pub(crate) brand: Brand,
    len: usize,
    of: PhantomData<(T, K)>,
}

/// Symmetric memory: `len` elements of `T` on every PE, at the same offset of the symmetric heap.
///
/// The collective [`Pe::free`](crate::Pe::free) consumes it. A buffer that is dropped is not freed: the PE reports it as a
/// leak when it finalizes, with the line that allocated it. (A collective free in `Drop` would hang the other PEs as soon as
/// one PE unwinds.)
///
/// Freeing under a borrow does not compile:
/// ```compile_fail,E0505
/// # use onesided::{Backend, Pe, Result};
/// fn wrong(pe: &Pe<impl Backend>) -> Result<()> {
///     let buf = pe.alloc::<u32>(4)?;
///     let view = buf.slice(..2);
///     pe.free(buf)?; // error: cannot move out of `buf` because it is borrowed
///     pe.write(view, &[1, 2])
/// }
/// ```
/// Freeing twice does not compile either:
/// ```compile_fail,E0382
/// # use onesided::{Backend, Pe, Result};
/// fn wrong(pe: &Pe<impl Backend>) -> Result<()> {
///     let buf = pe.alloc::<u32>(4)?;
///     pe.free(buf)?;
///     pe.free(buf) // error: use of moved value
/// }
/// ```
pub type SymmetricBuf<T> = Buf<T, kind::Heap>;

/// Device memory of this PE outside the symmetric heap, as an application's own allocator would give it.
pub type ExternalBuf<T> = Buf<T, kind::External>;

/// External memory registered as a *local* operand (`nvshmemx_buffer_register`).
pub type RegisteredLocal<T> = Buf<T, kind::Registered>;

/// External memory that joined the symmetric heap (`nvshmemx_buffer_register_symmetric`).
///
/// It dereferences to a [`SymmetricBuf`] and is used as one. It cannot be freed, only unregistered:
/// ```compile_fail,E0507
/// # use onesided::{Backend, Pe, Result};
/// fn wrong(pe: &Pe<impl Backend>) -> Result<()> {
///     let registered = pe.register_symmetric(pe.alloc_external::<u8>(64)?)?;
///     pe.free(*registered) // error: cannot move out of dereference
/// }
/// ```
#[derive(Debug)]
#[must_use = "a registration is ended by the collective Pe::unregister_symmetric"]
pub struct RegisteredSymmetric<T: Element> {
    pub(crate) symmetric: SymmetricBuf<T>,
    pub(crate) external: ExternalBuf<T>,
}

/// A view of a part of a [`Buf`], copied freely.
pub struct Slice<'a, T, K> {
    alloc: AllocId,
    pub(crate) brand: Brand,
    start: usize,
    len: usize,
    of: PhantomData<(&'a T, K)>,
}

/// A view of symmetric memory.
pub type SymmetricSlice<'a, T> = Slice<'a, T, kind::Heap>;

/// A view of external memory that is registered as a local operand.
pub type RegisteredSlice<'a, T> = Slice<'a, T, kind::Registered>;

/// A view of external memory.
pub type ExternalSlice<'a, T> = Slice<'a, T, kind::External>;

/// One signal word: an aligned `u64` of symmetric memory, updated by signals and waited on.
///
/// [`SymmetricBuf::signal`] makes it, so a word of another size, type or alignment cannot be passed:
/// ```compile_fail,E0599
/// # use onesided::{Backend, Pe, Result, SignalOp};
/// fn wrong(pe: &Pe<impl Backend>) -> Result<()> {
///     let words = pe.alloc::<u32>(1)?;
///     pe.host().signal_op(words.signal(0), 1, SignalOp::Set, 0) // error: no method `signal` for u32
/// }
/// ```
#[derive(Clone, Copy)]
pub struct Signal<'a>(SymmetricSlice<'a, u64>);

impl<T: Element, K> Buf<T, K> {
    pub(crate) fn new(alloc: AllocId, brand: Brand, len: usize) -> Self {
        Buf { alloc, brand, len, of: PhantomData }
    }

    /// The same allocation as memory of another kind.
    pub(crate) fn becomes<L>(self) -> Buf<T, L> {
        Buf { alloc: self.alloc, brand: self.brand, len: self.len, of: PhantomData }
    }

    /// All elements as a view. The caller must make sure that the view does not outlive the allocation.
    pub(crate) fn into_slice<'a>(self) -> Slice<'a, T, K> {
        Slice { alloc: self.alloc, brand: self.brand, start: 0, len: self.len, of: PhantomData }
    }

    /// Number of elements (on each PE).
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
    /// When the range is not inside the buffer, as slices of Rust do.
    ///
    /// ```
    /// # onesided_sim::example(2, |pe| {
    /// let buf = pe.alloc::<f64>(10)?;
    /// assert_eq!(buf.slice(2..5).len(), 3);
    /// # pe.free(buf) });
    /// ```
    #[inline]
    #[track_caller]
    pub fn slice(&self, range: impl RangeBounds<usize>) -> Slice<'_, T, K> {
        self.all().slice(range)
    }

    /// The element at `index`, as a view of one element.
    ///
    /// # Panics
    /// When there is no such element.
    #[inline]
    #[track_caller]
    pub fn at(&self, index: usize) -> Slice<'_, T, K> {
        self.all().at(index)
    }

    #[inline]
    pub(crate) fn all(&self) -> Slice<'_, T, K> {
        Slice { alloc: self.alloc, brand: self.brand, start: 0, len: self.len, of: PhantomData }
    }
}

impl SymmetricBuf<u64> {
    /// The word at `index`, as a signal.
    ///
    /// # Panics
    /// When there is no such element.
    #[inline]
    #[track_caller]
    pub fn signal(&self, index: usize) -> Signal<'_> {
        Signal(self.at(index))
    }
}

impl<'a, T: Element, K> Slice<'a, T, K> {
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
    /// When the range is not inside the view, as slices of Rust do.
    #[inline]
    #[track_caller]
    pub fn slice(self, range: impl RangeBounds<usize>) -> Self {
        let from = match range.start_bound() {
            Bound::Included(&from) => Some(from),
            Bound::Excluded(&before) => before.checked_add(1),
            Bound::Unbounded => Some(0),
        };
        let to = match range.end_bound() {
            Bound::Included(&last) => last.checked_add(1),
            Bound::Excluded(&to) => Some(to),
            Bound::Unbounded => Some(self.len),
        };
        match (from, to) {
            (Some(from), Some(to)) if from <= to && to <= self.len => {
                Slice { start: self.start + from, len: to - from, ..self }
            }
            _ => no_range(range.start_bound().cloned(), range.end_bound().cloned(), self.len),
        }
    }

    /// The element at `index`, as a view of one element.
    ///
    /// # Panics
    /// When there is no such element.
    #[inline]
    #[track_caller]
    pub fn at(self, index: usize) -> Self {
        if index >= self.len {
            no_element(index, self.len);
        }
        Slice { start: self.start + index, len: 1, ..self }
    }

    /// The same memory as plain bytes.
    pub fn as_bytes(self) -> Slice<'a, u8, K> {
        let Span { alloc, start, len } = self.bytes();
        Slice { alloc, brand: self.brand, start, len, of: PhantomData }
    }

    #[inline]
    pub(crate) fn bytes(&self) -> Span {
        let size = size_of::<T>();
        Span { alloc: self.alloc, start: self.start * size, len: self.len * size }
    }
}

impl<'a> SymmetricSlice<'a, u64> {
    /// The word at `index` of the view, as a signal.
    ///
    /// # Panics
    /// When there is no such element.
    #[inline]
    #[track_caller]
    pub fn signal(self, index: usize) -> Signal<'a> {
        Signal(self.at(index))
    }
}

#[cold]
#[track_caller]
fn no_range(start: Bound<usize>, end: Bound<usize>, len: usize) -> ! {
    let start = match start {
        Bound::Included(from) => from.to_string(),
        Bound::Excluded(before) => format!("({before} excluded)"),
        Bound::Unbounded => String::new(),
    };
    let end = match end {
        Bound::Included(last) => format!("={last}"),
        Bound::Excluded(to) => to.to_string(),
        Bound::Unbounded => String::new(),
    };
    panic!("range {start}..{end} of a buffer or slice of {}", count(len, "element"))
}

#[cold]
#[track_caller]
fn no_element(index: usize, len: usize) -> ! {
    panic!("element {index} of a buffer or slice of {}", count(len, "element"))
}

impl<T, K> Clone for Slice<'_, T, K> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T, K> Copy for Slice<'_, T, K> {}

impl Signal<'_> {
    #[inline]
    pub(crate) fn span(&self) -> Span {
        self.0.bytes()
    }

    #[inline]
    pub(crate) fn brand(&self) -> Brand {
        self.0.brand
    }
}

impl<T: Element> Deref for RegisteredSymmetric<T> {
    type Target = SymmetricBuf<T>;
    fn deref(&self) -> &SymmetricBuf<T> {
        &self.symmetric
    }
}

impl<T: Element, K> fmt::Debug for Buf<T, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({} of {})", self.alloc, self.len, T::DTYPE)
    }
}

impl<T: Element, K> fmt::Debug for Slice<'_, T, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({} of {})", self.bytes(), self.len, T::DTYPE)
    }
}

impl fmt::Debug for Signal<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "signal {}", self.0.bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    fn ten() -> SymmetricBuf<u32> {
        SymmetricBuf::new(AllocId(3), Brand::fresh(), 10)
    }

    #[test]
    fn slices_count_in_elements_and_spans_in_bytes() {
        let buf = ten();
        let part = buf.slice(2..6).slice(1..=2);
        assert_eq!(part.len(), 2);
        assert_eq!(part.bytes(), Span { alloc: AllocId(3), start: 12, len: 8 });
        assert_eq!(part.as_bytes().bytes(), part.bytes());
        assert_eq!(part.at(1).bytes(), Span { alloc: AllocId(3), start: 16, len: 4 });
        assert!(buf.slice(10..).is_empty());
        assert_eq!(buf.slice((Bound::Excluded(7), Bound::Unbounded)).bytes().start, 32);
    }

    #[test]
    fn what_is_not_inside_panics_with_the_range() {
        type Wrong = fn(SymmetricSlice<'_, u32>) -> SymmetricSlice<'_, u32>;
        const MAX: usize = usize::MAX;
        const WRONG: [(Wrong, &str); 9] = [
            (|all| all.slice(8..11), "range 8..11 of a buffer or slice of 10 elements"),
            (|all| all.slice(5..=10), "range 5..=10 "),
            (|all| all.slice(..=MAX), "range ..=18446744073709551615 "),
            (|all| all.slice(MAX..), "range 18446744073709551615.. "),
            (|all| all.slice(MAX..=MAX), "range 18446744073709551615..=18446744073709551615 "),
            (|all| all.slice((Bound::Excluded(MAX), Bound::Unbounded)), "range (18446744073709551615 excluded).. "),
            (|all| all.slice(1..).slice(2..10), "range 2..10 of a buffer or slice of 9 elements"),
            (|all| all.at(10), "element 10 of a buffer or slice of 10 elements"),
            (|all| all.at(MAX), "element 18446744073709551615 "),
        ];
        let buf = ten();
        for (wrong, message) in WRONG {
            let panic = catch_unwind(AssertUnwindSafe(|| wrong(buf.slice(..)))).unwrap_err();
            let found = panic.downcast_ref::<String>().expect("a formatted message");
            assert!(found.starts_with(message), "{found:?}, expected {message:?}");
        }
    }

    #[test]
    fn handles_are_shown_without_their_brand() {
        let [first, second] = [ten(), ten()];
        assert!(first.brand != second.brand);
        assert_eq!(format!("{first:?}"), "buf3 (10 of u32)");
        assert_eq!(format!("{first:?} {:?}", first.at(1)), format!("{second:?} {:?}", second.at(1)));
    }
}
