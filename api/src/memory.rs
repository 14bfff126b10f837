//! Memory: collective allocation, local access, registration of external memory.

use crate::at::At;
use crate::backend::{Backend, Layout};
use crate::buffer::{ExternalBuf, RegisteredLocal, RegisteredSymmetric, SymmetricBuf};
use crate::call::Call;
use crate::count::count;
use crate::element::Element;
use crate::error::{ErrorKind, Result};
use crate::operand::Own;
use crate::pe::{Live, LiveKind, Pe};

/// # Memory
impl<B: Backend> Pe<B> {
    /// Allocates `len` elements on every PE, with undefined content (`nvshmem_malloc`).
    ///
    /// # Collective
    /// Over all PEs, with the same `len` and `T`. Ends with a barrier, which completes what hosts issued.
    ///
    /// # Errors
    /// [`InvalidArgument`](ErrorKind::InvalidArgument) when `len` is 0: the library would skip its barrier, and PEs could
    /// diverge. [`OutOfMemory`](ErrorKind::OutOfMemory), on all PEs alike.
    ///
    /// NVSHMEM documentation, "Memory Management".
    ///
    /// ```
    /// # onesided_sim::example(2, |pe| {
    /// let buf = pe.alloc::<f32>(1024)?;
    /// pe.write(&buf, &[1.0; 1024])?;
    /// pe.free(buf)?;
    /// # Ok(()) });
    /// ```
    #[track_caller]
    pub fn alloc<T: Element>(&self, len: usize) -> Result<SymmetricBuf<T>> {
        self.alloc_with(self.call("alloc", At::caller()), len, None, false)
    }

    /// As [`Pe::alloc`], with every byte zero on every PE when it returns (`nvshmem_calloc`).
    ///
    /// # Collective
    /// As [`Pe::alloc`].
    ///
    /// # Errors
    /// As [`Pe::alloc`].
    ///
    /// ```
    /// # onesided_sim::example(2, |pe| {
    /// let flags = pe.alloc_zeroed::<u64>(4)?;
    /// assert_eq!(pe.read(&flags)?, [0; 4]);
    /// pe.free(flags)?;
    /// # Ok(()) });
    /// ```
    #[track_caller]
    pub fn alloc_zeroed<T: Element>(&self, len: usize) -> Result<SymmetricBuf<T>> {
        self.alloc_with(self.call("alloc_zeroed", At::caller()), len, None, true)
    }

    /// As [`Pe::alloc`], with the first byte at a multiple of `align` bytes from the heap's base (`nvshmem_align`).
    ///
    /// # Collective
    /// As [`Pe::alloc`], with the same `align`.
    ///
    /// # Errors
    /// As [`Pe::alloc`]; also [`InvalidArgument`](ErrorKind::InvalidArgument) unless `align` is a power of two and a multiple
    /// of 8.
    ///
    /// ```
    /// # onesided_sim::example(2, |pe| {
    /// let page = pe.alloc_aligned::<u8>(4096, 4096)?;
    /// pe.free(page)?;
    /// # Ok(()) });
    /// ```
    #[track_caller]
    pub fn alloc_aligned<T: Element>(&self, len: usize, align: usize) -> Result<SymmetricBuf<T>> {
        let call = self.call("alloc_aligned", At::caller());
        if !align.is_power_of_two() || !align.is_multiple_of(8) {
            return Err(call.refuse(format!("alignment {align} must be a power of two and a multiple of 8")));
        }
        self.alloc_with(call, len, Some(align), false)
    }

    pub(crate) fn alloc_with<T: Element>(
        &self,
        call: Call,
        len: usize,
        align: Option<usize>,
        zeroed: bool,
    ) -> Result<SymmetricBuf<T>> {
        let bytes = bytes_of::<T>(call, len)?;
        let alloc = self.backend.alloc(Layout { bytes, align, zeroed }, call.at).map_err(|error| call.says(error))?;
        self.note(LiveKind::Buffer(alloc), bytes, call.at);
        Ok(SymmetricBuf::new(alloc, self.brand, len))
    }

    /// Frees symmetric memory (`nvshmem_free`).
    ///
    /// # Collective
    /// Over all PEs, with the same buffer. Begins with a barrier, which completes what *hosts* issued. A transfer that a
    /// stream issued and that still uses the buffer is a bug, which the simulator reports.
    ///
    /// # Errors
    /// [`InvalidArgument`](ErrorKind::InvalidArgument) when another PE or an earlier run made the buffer.
    ///
    /// ```
    /// # onesided_sim::example(2, |pe| {
    /// # let next = 1 - pe.my_pe();
    /// let buf = pe.alloc::<f32>(8)?;
    /// pe.host().put(buf.slice(4..), buf.slice(..4), next)?;
    /// pe.free(buf)?; // completes the put first
    /// # Ok(()) });
    /// ```
    #[track_caller]
    pub fn free<T: Element>(&self, buf: SymmetricBuf<T>) -> Result<()> {
        let call = self.call("free", At::caller());
        call.own(buf.brand, "buf", "memory")?;
        self.backend.free(buf.alloc, call.at)?;
        self.settle(LiveKind::Buffer(buf.alloc));
        Ok(())
    }

    /// The elements of my own memory.
    ///
    /// # One-sided
    /// Local: copies from the device to private memory. The copy has everything that other PEs' transfers delivered and that
    /// something ordered before this call. Anything else may or may not be in it, element by element: the copy is not one
    /// step, so a later element can be newer than an earlier one.
    ///
    /// # Errors
    /// Those of the device.
    ///
    /// ```
    /// # onesided_sim::example(2, |pe| {
    /// let buf = pe.alloc_zeroed::<f32>(8)?;
    /// let all: Vec<f32> = pe.read(&buf)?;
    /// let some = pe.read(buf.slice(2..5))?;
    /// assert_eq!((all.len(), some.len()), (8, 3));
    /// # pe.free(buf) });
    /// ```
    #[track_caller]
    pub fn read<T: Element>(&self, src: impl Own<T>) -> Result<Vec<T>> {
        let call = self.call("read", At::caller());
        let span = call.span("src", src)?;
        let mut values = vec![T::zeroed(); span.len / size_of::<T>()];
        self.backend.read(span, self.my_pe(), T::DTYPE, bytemuck::must_cast_slice_mut(&mut values), call.at)?;
        Ok(values)
    }

    /// As [`Pe::read`], into memory of the caller. Allocates nothing.
    ///
    /// # One-sided
    /// As [`Pe::read`].
    ///
    /// # Errors
    /// [`InvalidArgument`](ErrorKind::InvalidArgument) when `into` has another length; those of the device.
    ///
    /// ```
    /// # onesided_sim::example(2, |pe| {
    /// # let buf = pe.alloc_zeroed::<f32>(8)?;
    /// let mut values = [1.0; 8];
    /// pe.read_into(&buf, &mut values)?;
    /// assert_eq!(values, [0.0; 8]);
    /// # pe.free(buf) });
    /// ```
    #[track_caller]
    pub fn read_into<T: Element>(&self, src: impl Own<T>, into: &mut [T]) -> Result<()> {
        let call = self.call("read_into", At::caller());
        let span = call.span("src", src)?;
        call.same_len([("src", span.len / size_of::<T>()), ("into", into.len())])?;
        self.backend.read(span, self.my_pe(), T::DTYPE, bytemuck::must_cast_slice_mut(into), call.at)
    }

    /// The value of one element of my own memory. Allocates nothing.
    ///
    /// # One-sided
    /// As [`Pe::read`].
    ///
    /// # Errors
    /// [`InvalidArgument`](ErrorKind::InvalidArgument) when `src` is not one element; those of the device.
    ///
    /// ```
    /// # onesided_sim::example(2, |pe| {
    /// # let buf = pe.alloc_zeroed::<f32>(8)?;
    /// let second: f32 = pe.read_one(buf.at(1))?;
    /// assert_eq!(second, 0.0);
    /// # pe.free(buf) });
    /// ```
    #[inline]
    #[track_caller]
    pub fn read_one<T: Element>(&self, src: impl Own<T>) -> Result<T> {
        let call = self.call("read_one", At::caller());
        let span = call.element::<T>("src", src)?;
        let mut value = T::zeroed();
        self.backend.read(span, self.my_pe(), T::DTYPE, bytemuck::bytes_of_mut(&mut value), call.at)?;
        Ok(value)
    }

    /// Stores `values` in my own memory.
    ///
    /// # One-sided
    /// Local: copies from private memory to the device, and returns when that is done.
    ///
    /// # Errors
    /// [`InvalidArgument`](ErrorKind::InvalidArgument) when the lengths differ; those of the device.
    ///
    /// ```
    /// # onesided_sim::example(2, |pe| {
    /// # let buf = pe.alloc_zeroed::<f32>(8)?;
    /// pe.write(buf.slice(..2), &[1.0, 2.0])?;
    /// assert_eq!(pe.read(buf.slice(..3))?, [1.0, 2.0, 0.0]);
    /// # pe.free(buf) });
    /// ```
    #[track_caller]
    pub fn write<T: Element>(&self, dst: impl Own<T>, values: &[T]) -> Result<()> {
        let call = self.call("write", At::caller());
        let span = call.span("dst", dst)?;
        call.same_len([("dst", span.len / size_of::<T>()), ("values", values.len())])?;
        self.backend.write(span, self.my_pe(), T::DTYPE, bytemuck::must_cast_slice(values), call.at)
    }

    /// Notes what the PE must give back before it finalizes.
    pub(crate) fn note(&self, what: LiveKind, bytes: usize, at: At) {
        self.ledger.borrow_mut().push(Live { what, bytes, at });
    }

    /// Removes an entry that [`Pe::note`] made.
    pub(crate) fn settle(&self, what: LiveKind) {
        self.ledger.borrow_mut().retain(|live| live.what != what);
    }
}

/// # Memory from outside the heap
impl<B: Backend> Pe<B> {
    /// Device memory of this PE outside the symmetric heap, zeroed, of the kind that can be registered.
    ///
    /// # One-sided
    /// Local.
    ///
    /// # Errors
    /// [`InvalidArgument`](ErrorKind::InvalidArgument) when `len` is 0; [`OutOfMemory`](ErrorKind::OutOfMemory);
    /// [`Unsupported`](ErrorKind::Unsupported) where the backend has no registration.
    ///
    /// ```
    /// # onesided_sim::example(2, |pe| {
    /// let weights = pe.alloc_external::<f32>(256)?;
    /// pe.write(weights.at(0), &[0.5])?; // mine alone: no verb takes it
    /// pe.free_external(weights)?;
    /// # Ok(()) });
    /// ```
    #[track_caller]
    pub fn alloc_external<T: Element>(&self, len: usize) -> Result<ExternalBuf<T>> {
        let call = self.call("alloc_external", At::caller());
        call.require(self.capabilities().registration)?;
        let bytes = bytes_of::<T>(call, len)?;
        let alloc = self.backend.alloc_external(bytes, call.at)?;
        self.note(LiveKind::ExternalMemory(alloc), bytes, call.at);
        Ok(ExternalBuf::new(alloc, self.brand, len))
    }

    /// Frees external memory.
    ///
    /// # One-sided
    /// Local. A kernel that still uses the memory is a bug, which the simulator reports: synchronize with its stream first.
    ///
    /// # Errors
    /// [`InvalidArgument`](ErrorKind::InvalidArgument) when another PE or an earlier run made the buffer; those of the device.
    ///
    /// ```
    /// # onesided_sim::example(2, |pe| {
    /// let buf = pe.alloc_external::<f32>(4)?;
    /// let registered = pe.register_local(buf)?;
    /// let buf = pe.unregister_local(registered)?; // registered memory cannot be freed
    /// pe.free_external(buf)?;
    /// # Ok(()) });
    /// ```
    #[track_caller]
    pub fn free_external<T: Element>(&self, buf: ExternalBuf<T>) -> Result<()> {
        let call = self.call("free_external", At::caller());
        call.own(buf.brand, "buf", "memory")?;
        self.backend.free_external(buf.alloc, call.at)?;
        self.settle(LiveKind::ExternalMemory(buf.alloc));
        Ok(())
    }

    /// Lets external memory be the *local* operand of transfers (`nvshmemx_buffer_register`).
    ///
    /// # One-sided
    /// Local.
    ///
    /// # Errors
    /// [`InvalidArgument`](ErrorKind::InvalidArgument) when another PE or an earlier run made the buffer; those of the library.
    /// After an error the buffer is lost, and is a leak.
    ///
    /// ```
    /// # onesided_sim::example(2, |pe| {
    /// # let dst = pe.alloc::<f32>(4)?;
    /// let src = pe.register_local(pe.alloc_external::<f32>(4)?)?;
    /// # let next = 1 - pe.my_pe();
    /// pe.host().put(&dst, &src, next)?;
    /// pe.host().fence()?;
    /// pe.host().put(dst.at(0), src.at(3), next)?;
    /// pe.host().quiet()?;
    /// pe.free_external(pe.unregister_local(src)?)?;
    /// # pe.free(dst) });
    /// ```
    #[track_caller]
    pub fn register_local<T: Element>(&self, buf: ExternalBuf<T>) -> Result<RegisteredLocal<T>> {
        let call = self.call("register_local", At::caller());
        let bytes = call.span("buf", &buf)?.len;
        self.backend.register_local(buf.alloc, call.at)?;
        self.settle(LiveKind::ExternalMemory(buf.alloc));
        self.note(LiveKind::Registered(buf.alloc), bytes, call.at);
        Ok(buf.becomes())
    }

    /// Ends a local registration (`nvshmemx_buffer_unregister`).
    ///
    /// # One-sided
    /// Local. A transfer that still uses the memory is a bug, which the simulator reports: complete it first.
    ///
    /// # Errors
    /// As [`Pe::register_local`].
    ///
    /// ```
    /// # onesided_sim::example(2, |pe| {
    /// # let dst = pe.alloc::<f32>(4)?;
    /// # let src = pe.register_local(pe.alloc_external::<f32>(4)?)?;
    /// # let next = 1 - pe.my_pe();
    /// pe.host().put_nbi(&dst, &src, next)?;
    /// pe.host().quiet()?; // the put no longer reads src
    /// let external = pe.unregister_local(src)?;
    /// # pe.free_external(external)?;
    /// # pe.free(dst) });
    /// ```
    #[track_caller]
    pub fn unregister_local<T: Element>(&self, buf: RegisteredLocal<T>) -> Result<ExternalBuf<T>> {
        let call = self.call("unregister_local", At::caller());
        call.own(buf.brand, "buf", "memory")?;
        self.backend.unregister_local(buf.alloc, call.at)?;
        self.settle(LiveKind::Registered(buf.alloc));
        let buf: ExternalBuf<T> = buf.becomes();
        self.note(LiveKind::ExternalMemory(buf.alloc), buf.len() * size_of::<T>(), call.at);
        Ok(buf)
    }

    /// Adds external memory to the symmetric heap, keeping its content (`nvshmemx_buffer_register_symmetric`).
    ///
    /// # Collective
    /// Over all PEs, with buffers of the same size. Promises no synchronization: what a PE wrote before it may still be on its way
    /// when another PE returns. Data needs a barrier of its own.
    ///
    /// # Errors
    /// As [`Pe::register_local`]; also [`Unsupported`](ErrorKind::Unsupported) where the heap cannot grow ([`Pe::capabilities`]
    /// says so beforehand). Sizes that differ are a mismatch of the whole program: a verdict.
    ///
    /// ```
    /// # onesided_sim::example(2, |pe| {
    /// # let next = 1 - pe.my_pe();
    /// let weights = pe.alloc_external::<f32>(256)?;
    /// let shared = pe.register_symmetric(weights)?; // now every PE can put to it
    /// pe.host().barrier_all()?; // and every PE has registered it
    /// pe.host().p(shared.at(7), 1.0, next)?;
    /// pe.host().barrier_all()?;
    /// let weights = pe.unregister_symmetric(shared)?; // private again
    /// pe.free_external(weights)?;
    /// # Ok(()) });
    /// ```
    #[track_caller]
    pub fn register_symmetric<T: Element>(&self, buf: ExternalBuf<T>) -> Result<RegisteredSymmetric<T>> {
        let call = self.call("register_symmetric", At::caller());
        call.require(self.capabilities().symmetric_registration)?;
        let bytes = call.span("buf", &buf)?.len;
        let alloc = self.backend.register_symmetric(buf.alloc, call.at)?;
        self.settle(LiveKind::ExternalMemory(buf.alloc));
        self.note(LiveKind::RegisteredSymmetric(alloc), bytes, call.at);
        Ok(RegisteredSymmetric { symmetric: SymmetricBuf::new(alloc, self.brand, buf.len()), external: buf })
    }

    /// Takes external memory out of the symmetric heap again, keeping its content
    /// (`nvshmemx_buffer_unregister_symmetric`).
    ///
    /// # Collective
    /// Over all PEs, with the same buffer. Begins with a barrier, which completes what *hosts* issued, as [`Pe::free`] does. A transfer that a
    /// stream issued and that still uses the memory is a bug, which the simulator reports.
    ///
    /// # Errors
    /// As [`Pe::register_local`].
    ///
    /// ```
    /// # onesided_sim::example(2, |pe| {
    /// let shared = pe.register_symmetric(pe.alloc_external::<u32>(1)?)?;
    /// pe.host().barrier_all()?;
    /// pe.host().p(shared.at(0), 7, 1 - pe.my_pe())?;
    /// let private = pe.unregister_symmetric(shared)?; // completes the puts first
    /// assert_eq!(pe.read_one(&private)?, 7);
    /// pe.free_external(private)?;
    /// # Ok(()) });
    /// ```
    #[track_caller]
    pub fn unregister_symmetric<T: Element>(&self, buf: RegisteredSymmetric<T>) -> Result<ExternalBuf<T>> {
        let call = self.call("unregister_symmetric", At::caller());
        call.own(buf.symmetric.brand, "buf", "memory")?;
        self.backend.unregister_symmetric(buf.symmetric.alloc, call.at)?;
        self.settle(LiveKind::RegisteredSymmetric(buf.symmetric.alloc));
        self.note(LiveKind::ExternalMemory(buf.external.alloc), buf.external.len() * size_of::<T>(), call.at);
        Ok(buf.external)
    }
}

/// The size in bytes of `len` elements: at least 1, and not more than can be addressed.
fn bytes_of<T: Element>(call: Call, len: usize) -> Result<usize> {
    if len == 0 {
        return Err(call.refuse("the length must be at least 1"));
    }
    len.checked_mul(size_of::<T>()).filter(|&bytes| bytes <= isize::MAX as usize).ok_or_else(|| {
        let (elements, bytes) = (count(len, "element"), count(size_of::<T>(), "byte"));
        let message = format!("{elements} of {bytes} are more than can be addressed");
        call.fail(ErrorKind::OutOfMemory, message)
    })
}
