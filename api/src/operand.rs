//! [`Own`], [`Local`], [`Symmetric`]: which memory may be which argument, as types say it.
//!
//! Memory that NVSHMEM could not reach does not compile as an argument. At run time, only some networks would refuse it.

use crate::brand::Brand;
use crate::buffer::{Buf, RegisteredSymmetric, Slice, kind};
use crate::element::Element;
use crate::span::Span;

mod sealed {
    use super::{Brand, Span};

    /// Every handle to memory implements this. Code outside of this crate cannot name it, so no other type can be an operand.
    pub trait Operand: Copy {
        /// The bytes.
        fn span(&self) -> Span;
        /// Which `Pe` made the handle.
        fn brand(&self) -> Brand;
    }
}
pub(crate) use sealed::Operand;

/// Memory of this PE that [`Pe::read`](crate::Pe::read) and [`Pe::write`](crate::Pe::write) accept: any buffer, by reference,
/// and any slice.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not memory of this PE with elements of type `{T}`",
    note = "pass a buffer by reference (`&buf`) or a part of it (`buf.slice(2..5)`, `buf.at(0)`)",
    note = "values in private memory are not an operand: `read` returns them, and `write` takes them as a slice"
)]
pub trait Own<T: Element>: Operand {}

/// Memory of this PE that may be the *local* operand of a transfer: symmetric or registered.
///
/// External memory that is not registered is not:
/// ```compile_fail,E0277
/// # use onesided::{Backend, Pe, Result};
/// fn wrong(pe: &Pe<impl Backend>) -> Result<()> {
///     let dst = pe.alloc::<f32>(4)?;
///     let src = pe.alloc_external::<f32>(4)?;
///     pe.host().put(&dst, &src, 0) // error: external memory cannot be the local operand
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the local operand of a transfer of `{T}`",
    note = "symmetric memory can: pass `&buf`, `buf.slice(2..5)` or `buf.at(0)`",
    note = "external memory can once `pe.register_local(buf)` has registered it",
    note = "values in private memory cannot: `pe.write` copies them to symmetric memory"
)]
pub trait Local<T: Element>: Own<T> {}

/// Memory that exists on every PE: what the *remote* operand of a transfer, and both operands of a collective, must be.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not symmetric memory with elements of type `{T}`",
    note = "symmetric memory comes from `pe.alloc`: pass `&buf`, `buf.slice(2..5)` or `buf.at(0)`",
    note = "external memory becomes symmetric by `pe.register_symmetric(buf)`"
)]
pub trait Symmetric<T: Element>: Local<T> {}

impl<T: Element, K> Operand for Slice<'_, T, K> {
    #[inline]
    fn span(&self) -> Span {
        self.bytes()
    }
    #[inline]
    fn brand(&self) -> Brand {
        self.brand
    }
}

impl<T: Element, K> Operand for &Buf<T, K> {
    #[inline]
    fn span(&self) -> Span {
        self.all().bytes()
    }
    #[inline]
    fn brand(&self) -> Brand {
        self.brand
    }
}

impl<T: Element> Operand for &RegisteredSymmetric<T> {
    #[inline]
    fn span(&self) -> Span {
        (&self.symmetric).span()
    }
    #[inline]
    fn brand(&self) -> Brand {
        self.symmetric.brand
    }
}

impl<T: Element, K> Own<T> for Slice<'_, T, K> {}
impl<T: Element, K> Own<T> for &Buf<T, K> {}
impl<T: Element> Own<T> for &RegisteredSymmetric<T> {}

impl<T: Element> Local<T> for Slice<'_, T, kind::Heap> {}
impl<T: Element> Local<T> for Slice<'_, T, kind::Registered> {}
impl<T: Element> Local<T> for &Buf<T, kind::Heap> {}
impl<T: Element> Local<T> for &Buf<T, kind::Registered> {}
impl<T: Element> Local<T> for &RegisteredSymmetric<T> {}

impl<T: Element> Symmetric<T> for Slice<'_, T, kind::Heap> {}
impl<T: Element> Symmetric<T> for &Buf<T, kind::Heap> {}
impl<T: Element> Symmetric<T> for &RegisteredSymmetric<T> {}
