//! [`Arena`]: symmetric memory that is freed together, where the program says so.

use std::cell::RefCell;

use crate::at::At;
use crate::backend::Backend;
use crate::buffer::{SymmetricBuf, SymmetricSlice};
use crate::element::Element;
use crate::error::Result;
use crate::pe::{LiveKind, Pe};
use crate::span::AllocId;

/// Allocates symmetric memory that ends with it; made by [`Pe::arena`].
pub struct Arena<'pe, B: Backend> {
    pe: &'pe Pe<B>,
    made: RefCell<Vec<AllocId>>,
}

/// # Memory that is freed together
impl<B: Backend> Pe<B> {
    /// Runs `body`, then frees the memory that it allocated through the [`Arena`], the last allocation first. Returns what
    /// `body` returned.
    ///
    /// The memory is freed here and not by a destructor, because freeing is collective: a destructor would also run while a PE
    /// unwinds, and the other PEs would not follow. If `body` fails, nothing is freed, and the memory is reported as a leak when
    /// the PE finalizes.
    ///
    /// # Collective
    /// Over all PEs, because every allocation and every free is collective over all PEs. All PEs make the same allocations.
    /// `body` succeeds on all PEs or on none.
    ///
    /// # Errors
    /// Those of `body`, and of [`Pe::free`].
    ///
    /// ```
    /// # onesided_sim::example(2, |pe| {
    /// let received = pe.arena(|arena| {
    ///     let (src, dst) = (arena.alloc::<u32>(4)?, arena.alloc::<u32>(4)?);
    ///     pe.write(src, &[pe.my_pe() as u32; 4])?;
    ///     pe.host().put(dst, src, 1 - pe.my_pe())?;
    ///     pe.host().barrier_all()?;
    ///     pe.read_one(dst.at(3))
    /// })?; // both are free again
    /// assert_eq!(received, 1 - pe.my_pe() as u32);
    /// # Ok(()) });
    /// ```
    /// The memory does not outlive the call:
    /// ```compile_fail
    /// # use onesided::{Backend, Pe, Result};
    /// fn wrong(pe: &Pe<impl Backend>) -> Result<()> {
    ///     let kept = pe.arena(|arena| arena.alloc::<u32>(4))?; // error: returns data that borrows from the arena
    ///     pe.write(kept, &[0; 4])
    /// }
    /// ```
    #[track_caller]
    pub fn arena<R>(&self, body: impl FnOnce(&Arena<'_, B>) -> Result<R>) -> Result<R> {
        let at = At::caller();
        let arena = Arena { pe: self, made: RefCell::default() };
        let result = body(&arena)?;
        for alloc in arena.made.into_inner().into_iter().rev() {
            self.backend.free(alloc, at)?;
            self.settle(LiveKind::Buffer(alloc));
        }
        Ok(result)
    }
}

impl<B: Backend> Arena<'_, B> {
    /// As [`Pe::alloc`].
    ///
    /// # Collective
    /// As [`Pe::alloc`].
    ///
    /// # Errors
    /// As [`Pe::alloc`].
    ///
    /// ```
    /// # onesided_sim::example(2, |pe| {
    /// pe.arena(|arena| pe.write(arena.alloc::<f32>(4)?, &[1.0; 4]))?;
    /// # Ok(()) });
    /// ```
    #[track_caller]
    pub fn alloc<T: Element>(&self, len: usize) -> Result<SymmetricSlice<'_, T>> {
        self.keep(self.pe.alloc(len))
    }

    /// As [`Pe::alloc_zeroed`].
    ///
    /// # Collective
    /// As [`Pe::alloc`].
    ///
    /// # Errors
    /// As [`Pe::alloc`].
    ///
    /// ```
    /// # onesided_sim::example(2, |pe| {
    /// let zero = pe.arena(|arena| pe.read_one(arena.alloc_zeroed::<u64>(1)?))?;
    /// assert_eq!(zero, 0);
    /// # Ok(()) });
    /// ```
    #[track_caller]
    pub fn alloc_zeroed<T: Element>(&self, len: usize) -> Result<SymmetricSlice<'_, T>> {
        self.keep(self.pe.alloc_zeroed(len))
    }

    /// As [`Pe::alloc_aligned`].
    ///
    /// # Collective
    /// As [`Pe::alloc`].
    ///
    /// # Errors
    /// As [`Pe::alloc_aligned`].
    ///
    /// ```
    /// # onesided_sim::example(2, |pe| {
    /// pe.arena(|arena| arena.alloc_aligned::<u8>(64, 4096).map(drop))?;
    /// # Ok(()) });
    /// ```
    #[track_caller]
    pub fn alloc_aligned<T: Element>(&self, len: usize, align: usize) -> Result<SymmetricSlice<'_, T>> {
        self.keep(self.pe.alloc_aligned(len, align))
    }

    fn keep<T: Element>(&self, buf: Result<SymmetricBuf<T>>) -> Result<SymmetricSlice<'_, T>> {
        let buf = buf?;
        self.made.borrow_mut().push(buf.alloc);
        Ok(buf.into_slice())
    }
}

impl<B: Backend> std::fmt::Debug for Arena<'_, B> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Arena of {:?}, {} allocations", self.pe, self.made.borrow().len())
    }
}
