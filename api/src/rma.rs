//! The verbs that move data between PEs: put and get in all forms.

use crate::at::At;
use crate::backend::Backend;
use crate::call::Call;
use crate::element::Element;
use crate::error::Result;
use crate::issue::{Host, Issue};
use crate::op::Op;
use crate::operand::{Local, Symmetric};
use crate::span::Span;
use crate::values::Values;

/// # Remote memory access
///
/// Every verb takes the number of elements from its operands, which must have the same number, and a *world* rank. On a stream,
/// read "the next operation of the stream starts" for "the call returns".
///
/// ```text
/// put      call ──► source read ──► returns ·········► visible at the target (any time until quiet)
/// put_nbi  call ──► returns ·······► source read ····► visible at the target (any time until quiet)
/// get      call ──► remote read ──► data in dst ──► returns
/// get_nbi  call ──► returns ·······► remote read ····► data in dst          (any time until quiet)
/// ```
/// A put becomes visible element by element, in any order. One element never tears.
///
/// A blocking put or get of the host may wait for `put_nbi`s to the same PE that were enqueued before it: until the PE's
/// streams have reached them. libnvshmem does so over NVLink. If such a stream waits for something that the host does later,
/// the program deadlocks.
impl<B: Backend> Issue<'_, B> {
    /// Copies my `src` to `dst` on `pe`; returns when `src` may be reused (`nvshmem_put`, `nvshmemx_put_on_stream`).
    ///
    /// # One-sided
    /// The data becomes visible at the target at any time until this scope completes it ([`Issue::quiet`],
    /// [`Issue::barrier`]). Only a [`Issue::fence`] orders it with other transfers.
    ///
    /// # Errors
    /// [`InvalidArgument`](crate::ErrorKind::InvalidArgument) when the lengths differ, there is no such PE, or `pe` is the calling PE
    /// and `dst` and `src` overlap without being the same.
    ///
    /// NVSHMEM documentation, "Remote Memory Access".
    ///
    /// ```
    /// # onesided_sim::example(2, |pe| {
    /// # let (dst, src) = (pe.alloc::<f32>(8)?, pe.alloc::<f32>(8)?);
    /// # let next = 1 - pe.my_pe();
    /// pe.host().put(&dst, &src, next)?;
    /// pe.host().fence()?; // the next put is to the same elements
    /// pe.host().put(dst.slice(4..), src.slice(..4), next)?;
    /// # pe.free(dst)?; pe.free(src) });
    /// ```
    #[inline]
    #[track_caller]
    pub fn put<T: Element>(&self, dst: impl Symmetric<T>, src: impl Local<T>, pe: usize) -> Result<()> {
        self.put_op(self.call("put", At::caller()), dst, src, pe, false)
    }

    /// As [`Issue::put`], but returns at once: `src` must not change until a quiet or flush (`nvshmem_put_nbi`).
    ///
    /// # One-sided
    /// Until [`Issue::quiet`], `src` is read, and the data becomes visible, at any time. Data that has arrived has been read.
    /// So `src` may also change after the other PE has seen the data and has said so.
    ///
    /// # Errors
    /// As [`Issue::put`].
    ///
    /// ```
    /// # onesided_sim::example(2, |pe| {
    /// # let (dst, src) = (pe.alloc::<f32>(8)?, pe.alloc::<f32>(8)?);
    /// # let next = 1 - pe.my_pe();
    /// pe.host().put_nbi(&dst, &src, next)?;
    /// // src must not change here
    /// pe.host().quiet()?; // now it may, and the data is there
    /// # pe.free(dst)?; pe.free(src) });
    /// ```
    #[inline]
    #[track_caller]
    pub fn put_nbi<T: Element>(&self, dst: impl Symmetric<T>, src: impl Local<T>, pe: usize) -> Result<()> {
        self.put_op(self.call("put_nbi", At::caller()), dst, src, pe, true)
    }

    #[inline(always)]
    fn put_op<T: Element>(
        &self,
        call: Call,
        dst: impl Symmetric<T>,
        src: impl Local<T>,
        pe: usize,
        nbi: bool,
    ) -> Result<()> {
        let (dst, src) = (call.span("dst", dst)?, call.span("src", src)?);
        call.same_elements(dst, src, T::DTYPE)?;
        let pe = call.pe(pe)?;
        call.apart(pe as usize == self.pe.my_pe(), dst, src)?;
        self.issue(Op::Put { dst, src, dtype: T::DTYPE, pe, nbi, signal: None }, call).map(drop)
    }

    /// Copies `src` on `pe` to my `dst`; returns when the data is there (`nvshmem_get`).
    ///
    /// # One-sided
    /// Reads what other PEs' transfers have delivered by then, element by element.
    ///
    /// # Errors
    /// As [`Issue::put`].
    ///
    /// ```
    /// # onesided_sim::example(2, |pe| {
    /// # let (dst, src) = (pe.alloc::<f32>(8)?, pe.alloc::<f32>(8)?);
    /// pe.host().get(&dst, &src, 0)?;
    /// let values = pe.read(&dst)?; // PE 0's
    /// # pe.free(dst)?; pe.free(src) });
    /// ```
    #[inline]
    #[track_caller]
    pub fn get<T: Element>(&self, dst: impl Local<T>, src: impl Symmetric<T>, pe: usize) -> Result<()> {
        self.get_op(self.call("get", At::caller()), dst, src, pe, false)
    }

    /// As [`Issue::get`], but returns at once: `dst` is undefined until a quiet of this scope (`nvshmem_get_nbi`).
    ///
    /// # One-sided
    /// No fence orders it.
    ///
    /// # Errors
    /// As [`Issue::put`].
    ///
    /// ```
    /// # onesided_sim::example(2, |pe| {
    /// # let (dst, src) = (pe.alloc::<f32>(8)?, pe.alloc::<f32>(8)?);
    /// pe.host().get_nbi(&dst, &src, 0)?;
    /// pe.host().quiet()?; // before this, dst is undefined
    /// # pe.free(dst)?; pe.free(src) });
    /// ```
    #[inline]
    #[track_caller]
    pub fn get_nbi<T: Element>(&self, dst: impl Local<T>, src: impl Symmetric<T>, pe: usize) -> Result<()> {
        self.get_op(self.call("get_nbi", At::caller()), dst, src, pe, true)
    }

    #[inline(always)]
    fn get_op<T: Element>(
        &self,
        call: Call,
        dst: impl Local<T>,
        src: impl Symmetric<T>,
        pe: usize,
        nbi: bool,
    ) -> Result<()> {
        let (dst, src) = (call.span("dst", dst)?, call.span("src", src)?);
        call.same_elements(dst, src, T::DTYPE)?;
        let pe = call.pe(pe)?;
        call.apart(pe as usize == self.pe.my_pe(), dst, src)?;
        self.issue(Op::Get { dst, src, dtype: T::DTYPE, pe, nbi }, call).map(drop)
    }

    /// Stores one value to `dst` on `pe` (`nvshmem_p`).
    ///
    /// # One-sided
    /// As [`Issue::put`]. The value is taken when the call is made.
    ///
    /// # Errors
    /// [`InvalidArgument`](crate::ErrorKind::InvalidArgument) when `dst` is not one element or there is no such PE.
    ///
    /// ```
    /// # onesided_sim::example(2, |pe| {
    /// # let dst = pe.alloc::<i32>(8)?;
    /// # let next = 1 - pe.my_pe();
    /// pe.host().p(dst.at(3), 42, next)?;
    /// # pe.free(dst) });
    /// ```
    #[inline]
    #[track_caller]
    pub fn p<T: Element>(&self, dst: impl Symmetric<T>, value: T, pe: usize) -> Result<()> {
        let call = self.call("p", At::caller());
        let dst = call.element::<T>("dst", dst)?;
        let pe = call.pe(pe)?;
        self.issue(Op::P { dst, dtype: T::DTYPE, value: value.to_bits64(), pe }, call).map(drop)
    }

    /// Strided put: copies `count` elements, from every `src_stride`-th of `src` to every `dst_stride`-th of `dst` on
    /// `pe` (`nvshmem_iput`). Strides are in elements.
    ///
    /// # One-sided
    /// As [`Issue::put`].
    ///
    /// # Errors
    /// [`InvalidArgument`](crate::ErrorKind::InvalidArgument) when a stride is 0, an operand is too short for its stride and
    /// count, `count` or a stride is 2<sup>32</sup> or more, there is no such PE, or `pe` is the calling PE and elements of
    /// `dst` and `src` overlap, unless all are the same. A `count` of 0 moves nothing.
    ///
    /// ```
    /// # onesided_sim::example(2, |pe| {
    /// # let (matrix, column) = (pe.alloc::<f32>(12)?, pe.alloc::<f32>(3)?);
    /// # let next = 1 - pe.my_pe();
    /// // column 1 of a 3×4 matrix on the other PE
    /// pe.host().iput(matrix.slice(1..), &column, 4, 1, 3, next)?;
    /// # pe.free(matrix)?; pe.free(column) });
    /// ```
    #[track_caller]
    pub fn iput<T: Element>(
        &self,
        dst: impl Symmetric<T>,
        src: impl Local<T>,
        dst_stride: usize,
        src_stride: usize,
        count: usize,
        pe: usize,
    ) -> Result<()> {
        let call = self.call("iput", At::caller());
        let operands = [call.span("dst", dst)?, call.span("src", src)?];
        let Some(Strided { dst, src, dst_stride, src_stride, count, pe }) =
            strided::<T>(call, operands, [dst_stride, src_stride], count, pe)?
        else {
            return self.own_stream(call).map(drop);
        };
        if pe as usize == self.pe.my_pe() && share_elements::<T>([dst, src], [dst_stride, src_stride], count) {
            return Err(call.overlap(dst, src));
        }
        self.issue(Op::IPut { dst, src, dst_stride, src_stride, count, dtype: T::DTYPE, pe }, call).map(drop)
    }

    /// Strided get: copies `count` elements, from every `src_stride`-th of `src` on `pe` to every `dst_stride`-th of
    /// my `dst` (`nvshmem_iget`). Strides are in elements.
    ///
    /// # One-sided
    /// As [`Issue::get`].
    ///
    /// # Errors
    /// As [`Issue::iput`].
    ///
    /// ```
    /// # onesided_sim::example(2, |pe| {
    /// # let (dst, src) = (pe.alloc::<f32>(8)?, pe.alloc::<f32>(8)?);
    /// // every second element of PE 0's src, side by side
    /// pe.host().iget(&dst, &src, 1, 2, 4, 0)?;
    /// # pe.free(dst)?; pe.free(src) });
    /// ```
    #[track_caller]
    pub fn iget<T: Element>(
        &self,
        dst: impl Local<T>,
        src: impl Symmetric<T>,
        dst_stride: usize,
        src_stride: usize,
        count: usize,
        pe: usize,
    ) -> Result<()> {
        let call = self.call("iget", At::caller());
        let operands = [call.span("dst", dst)?, call.span("src", src)?];
        let Some(Strided { dst, src, dst_stride, src_stride, count, pe }) =
            strided::<T>(call, operands, [dst_stride, src_stride], count, pe)?
        else {
            return self.own_stream(call).map(drop);
        };
        if pe as usize == self.pe.my_pe() && share_elements::<T>([dst, src], [dst_stride, src_stride], count) {
            return Err(call.overlap(dst, src));
        }
        self.issue(Op::IGet { dst, src, dst_stride, src_stride, count, dtype: T::DTYPE, pe }, call).map(drop)
    }

    /// Stores private values in my own symmetric memory: at once from the host, in stream order on a stream
    /// (`cudaMemcpyAsync` from host memory). The values are taken when the call is made.
    ///
    /// # One-sided
    /// Local.
    ///
    /// # Errors
    /// [`InvalidArgument`](crate::ErrorKind::InvalidArgument) when the lengths differ.
    ///
    /// ```
    /// # onesided_sim::example(2, |pe| {
    /// # let dst = pe.alloc_zeroed::<f32>(8)?;
    /// let stream = pe.stream()?;
    /// pe.on(&stream).write(&dst, &[1.0; 8])?; // enqueued
    /// pe.synchronize(&stream)?; // stored
    /// assert_eq!(pe.read(&dst)?, [1.0; 8]);
    /// # pe.free(dst) });
    /// ```
    #[track_caller]
    pub fn write<T: Element>(&self, dst: impl Symmetric<T>, values: &[T]) -> Result<()> {
        let call = self.call("write", At::caller());
        let dst = call.span("dst", dst)?;
        call.same_len([("dst", dst.len / size_of::<T>()), ("values", values.len())])?;
        let bytes = bytemuck::must_cast_slice(values);
        if self.is_on_stream() {
            let values = Values { bytes, skip: &[] };
            return self.issue_with(Op::Fill { dst, dtype: T::DTYPE }, values, call).map(drop);
        }
        self.pe.backend.write(dst, self.pe.my_pe(), T::DTYPE, bytes, call.at)
    }
}

/// # Verbs that return a value
impl<B: Backend> Host<'_, B> {
    /// Fetches one value of `src` on `pe` (`nvshmem_g`).
    ///
    /// # One-sided
    /// As [`Issue::get`].
    ///
    /// # Errors
    /// [`InvalidArgument`](crate::ErrorKind::InvalidArgument) when `src` is not one element or there is no such PE.
    ///
    /// ```
    /// # onesided_sim::example(2, |pe| {
    /// # let src = pe.alloc_zeroed::<f32>(8)?;
    /// let first = pe.host().g(src.at(0), 0)?;
    /// assert_eq!(first, 0.0);
    /// # pe.free(src) });
    /// ```
    #[inline]
    #[track_caller]
    pub fn g<T: Element>(&self, src: impl Symmetric<T>, pe: usize) -> Result<T> {
        let call = self.call("g", At::caller());
        let src = call.element::<T>("src", src)?;
        let pe = call.pe(pe)?;
        self.issue(Op::G { src, dtype: T::DTYPE, pe }, call).map(T::from_bits64)
    }
}

/// A strided transfer whose arguments are right.
struct Strided {
    dst: Span,
    src: Span,
    dst_stride: u32,
    src_stride: u32,
    count: u32,
    pe: u32,
}

/// Checks the arguments of a strided transfer; `None` if there is nothing to move.
fn strided<T: Element>(
    call: Call,
    [mut dst, mut src]: [Span; 2],
    [dst_stride, src_stride]: [usize; 2],
    count: usize,
    pe: usize,
) -> Result<Option<Strided>> {
    let pe = call.pe(pe)?;
    if count == 0 {
        return Ok(None);
    }
    let dst_stride = clip_strided::<T>(call, "dst", &mut dst.len, dst_stride, count)?;
    let src_stride = clip_strided::<T>(call, "src", &mut src.len, src_stride, count)?;
    Ok(Some(Strided { dst, src, dst_stride, src_stride, count: count as u32, pe }))
}

/// Whether elements of two strided operands overlap. False also if both operands are the same elements in the same order.
fn share_elements<T: Element>([dst, src]: [Span; 2], strides: [u32; 2], count: u32) -> bool {
    if !dst.overlaps(&src) || dst == src && (count == 1 || strides[0] == strides[1]) {
        return false;
    }
    let size = size_of::<T>();
    let [dst_step, src_step] = strides.map(|stride| stride as usize * size);
    (0..count as usize).map(|i| dst.start + i * dst_step).any(|element| {
        let before = element.saturating_sub(src.start) / src_step; // the last one of src that begins no later
        let nearest = [before, before + 1].into_iter().filter(|j| *j < count as usize);
        nearest.map(|j| src.start + j * src_step).any(|other| element.abs_diff(other) < size)
    })
}

/// Checks that an operand of `len` bytes holds `count` elements at `stride`, and shortens it to those.
fn clip_strided<T: Element>(call: Call, operand: &str, len: &mut usize, stride: usize, count: usize) -> Result<u32> {
    let have = *len / size_of::<T>();
    let need = (count - 1).checked_mul(stride).and_then(|last| last.checked_add(1));
    let small = u32::try_from(stride).ok().filter(|_| u32::try_from(count).is_ok());
    match (need, small) {
        (Some(need), Some(small)) if stride > 0 && need <= have => {
            *len = need * size_of::<T>();
            Ok(small)
        }
        _ if stride == 0 => Err(call.refuse(format!("the stride of {operand} is 0; it must be at least 1"))),
        (Some(need), _) if need <= have => {
            Err(call
                .refuse(format!("count {count} and stride {stride} of {operand}: neither may be above {}", u32::MAX)))
        }
        _ => {
            let elements = crate::count(count, "element");
            Err(call.refuse(format!("{operand} has length {have}, too short for {elements} at stride {stride}")))
        }
    }
}
