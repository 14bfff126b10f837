//! Memory and streams as CUDA sees them, for programs that launch their own kernels, and for local access.
//!
//! Only this backend has these. A program that uses them runs on GPUs only.
#![allow(unsafe_code)]

use std::ffi::c_void;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::sync::Arc;

use cudarc::driver::sys::{CUdeviceptr, CUstream};
use cudarc::driver::{CudaContext, CudaSlice, CudaView, CudaViewMut};
use onesided::backend::{self, Span};
use onesided::{At, Element, Error, ErrorKind, Own, Pe, Result, Stream, Symmetric};

use crate::pe::{CudaStream, Nvshmem};
use crate::table::function;

/// Device pointers, streams and views of a PE on a GPU.
///
/// Implemented for `Pe<Nvshmem>`. Only CUDA's streams and the verbs of NVSHMEM order accesses through these pointers: a kernel
/// that stores through a peer's pointer needs a fence or a quiet, like any put.
///
/// ```no_run
/// use onesided::{Bootstrap, InitMethod, Result};
/// use onesided_nvshmem::{DeviceAccess, Process, Settings};
///
/// fn main() -> Result<()> {
///     let pe = Process::open(Settings::from_environment()?)?.init(InitMethod::Launcher)?;
///     let buf = pe.alloc_zeroed::<f32>(1024)?;
///     // SAFETY: the pointer is passed to kernels on `stream` only, and the buffer is freed after them.
///     let pointer = unsafe { pe.device_ptr(&buf)? };
///     println!("{pointer:#x} on GPU {}", pe.cuda().ordinal());
///     pe.free(buf)?;
///     pe.finalize()
/// }
/// ```
pub trait DeviceAccess {
    /// The CUDA context, in which modules are loaded and streams made.
    fn cuda(&self) -> &Arc<CudaContext>;

    /// The address of my memory, for kernels.
    ///
    /// # Safety
    /// Code that uses the address must stay inside `buf`. It must not use the address after the buffer is freed or the PE is
    /// finalized. It must order its accesses with those of operations, of other kernels and of other PEs.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`] when this PE did not make `buf`.
    #[track_caller]
    unsafe fn device_ptr<T: Element>(&self, buf: impl Own<T>) -> Result<CUdeviceptr>;

    /// The address of `pe`'s copy of `buf` (`nvshmem_ptr`). `None` if loads and stores do not reach it.
    ///
    /// # Safety
    /// As [`DeviceAccess::device_ptr`]. Do not pass the address to NVSHMEM, which would take it for one of its own.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`] when this PE did not make `buf`, or there is no PE `pe`.
    #[track_caller]
    unsafe fn peer_ptr<T: Element>(&self, buf: impl Symmetric<T>, pe: usize) -> Result<Option<CUdeviceptr>>;

    /// My memory as a slice of cudarc, to be passed to kernels and to libraries that take one. It frees nothing.
    ///
    /// # Safety
    /// As [`DeviceAccess::device_ptr`], for everything that is done through the slice.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`] when this PE did not make `buf` or `stream`.
    #[track_caller]
    unsafe fn device_slice<'a, T: Element>(
        &self,
        buf: impl Own<T> + 'a,
        stream: &Stream<Nvshmem>,
    ) -> Result<DeviceSlice<'a, T>>;

    /// A stream that the program made through cudarc, for the verbs.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`] when it belongs to another context, or is the legacy default stream.
    #[track_caller]
    fn adopt_stream(&self, stream: Arc<cudarc::driver::CudaStream>) -> Result<Stream<Nvshmem>>;

    /// A stream of other code, by its handle, for the verbs.
    ///
    /// # Safety
    /// The stream must belong to this PE's context, and must live as long as the returned stream. Do not pass the legacy default
    /// stream: it waits for other streams and they wait for it, so a wait that is enqueued there may never end.
    unsafe fn foreign_stream(&self, stream: CUstream) -> Stream<Nvshmem>;
}

/// Gives [`DeviceAccess`] the GPU of a PE. A program can do nothing else with it.
#[derive(Clone, Copy, Debug)]
pub struct Extension<'a>(pub(crate) &'a Nvshmem);

/// Symmetric memory as a slice of cudarc. Dropping it frees nothing.
#[derive(Debug)]
pub struct DeviceSlice<'a, T> {
    slice: ManuallyDrop<CudaSlice<T>>,
    of: PhantomData<&'a T>,
}

impl<T> DeviceSlice<'_, T> {
    /// A view of all elements.
    pub fn view(&self) -> CudaView<'_, T> {
        self.slice.as_view()
    }

    /// A view of all elements for writing. (The slice itself is not given out, because its owner would free the memory.)
    pub fn view_mut(&mut self) -> CudaViewMut<'_, T> {
        self.slice.as_view_mut()
    }
}

impl<T> Deref for DeviceSlice<'_, T> {
    type Target = CudaSlice<T>;
    fn deref(&self) -> &CudaSlice<T> {
        &self.slice
    }
}

impl<T> Drop for DeviceSlice<'_, T> {
    fn drop(&mut self) {
        // SAFETY: taken once, here. `leak` gives back the address and frees nothing but cudarc's own bookkeeping.
        let _ = unsafe { ManuallyDrop::take(&mut self.slice) }.leak();
    }
}

impl CudaStream {
    /// cudarc's stream: for launching kernels between verbs.
    pub fn cuda(&self) -> &Arc<cudarc::driver::CudaStream> {
        &self.0
    }
}

impl DeviceAccess for Pe<Nvshmem> {
    fn cuda(&self) -> &Arc<CudaContext> {
        self.extension().0.device().context()
    }

    #[track_caller]
    unsafe fn device_ptr<T: Element>(&self, buf: impl Own<T>) -> Result<CUdeviceptr> {
        let span = backend::span_of(self, "device_ptr", buf, At::caller())?;
        Ok(self.extension().0.memory.address(span) as CUdeviceptr)
    }

    #[track_caller]
    unsafe fn peer_ptr<T: Element>(&self, buf: impl Symmetric<T>, pe: usize) -> Result<Option<CUdeviceptr>> {
        let at = At::caller();
        let span = backend::span_of(self, "peer_ptr", buf, at)?;
        backend::check_pe(self, "peer_ptr", pe, at)?;
        let address = self.extension().0.reachable_peer(span, pe, at)?;
        Ok(address.map(|address| address as CUdeviceptr))
    }

    #[track_caller]
    unsafe fn device_slice<'a, T: Element>(
        &self,
        buf: impl Own<T> + 'a,
        stream: &Stream<Nvshmem>,
    ) -> Result<DeviceSlice<'a, T>> {
        let at = At::caller();
        let span = backend::span_of(self, "device_slice", buf, at)?;
        let stream = backend::stream_of(self, "device_slice", stream, at)?;
        let address = self.extension().0.memory.address(span) as CUdeviceptr;
        // SAFETY: memory of this length that stays as long as the slice does; `DeviceSlice` never lets cudarc free it.
        // Elements have no invalid bits.
        let slice = unsafe { stream.0.upgrade_device_ptr(address, span.len / size_of::<T>()) };
        Ok(DeviceSlice { slice: ManuallyDrop::new(slice), of: PhantomData })
    }

    #[track_caller]
    fn adopt_stream(&self, stream: Arc<cudarc::driver::CudaStream>) -> Result<Stream<Nvshmem>> {
        let wrong = |message| Err(Error::invalid("adopt_stream", message, At::caller()));
        if stream.context() != self.cuda() {
            return wrong("the stream belongs to another CUDA context than this PE");
        }
        if is_legacy(stream.cu_stream()) {
            return wrong(
                "this is the legacy default stream: it waits for other streams and they wait for it, so a wait that is enqueued there \
                 may never end; make a stream instead, by `Pe::stream` or cudarc's `CudaContext::new_stream`",
            );
        }
        Ok(backend::adopt_stream(self, CudaStream(stream)))
    }

    unsafe fn foreign_stream(&self, stream: CUstream) -> Stream<Nvshmem> {
        // SAFETY: the caller's promise.
        backend::adopt_stream(self, CudaStream(unsafe { self.cuda().wrap_borrowed_stream(stream) }))
    }
}

/// Whether the handle is that of the legacy default stream: null, or `CU_STREAM_LEGACY`.
fn is_legacy(stream: CUstream) -> bool {
    stream as usize <= 1
}

impl Nvshmem {
    /// The address of `pe`'s copy of a span.
    pub(crate) fn peer_address(&self, span: Span, pe: usize, at: At) -> Result<*mut c_void> {
        self.reachable_peer(span, pe, at)?.ok_or_else(|| {
            let message = format!("PE {pe} cannot be reached by loads and stores: nvshmem_ptr returned no address");
            Error::new(ErrorKind::Unsupported, "peer", message, at)
        })
    }

    /// The same, or `None` if loads and stores do not reach that PE.
    fn reachable_peer(&self, span: Span, pe: usize, at: At) -> Result<Option<*mut c_void>> {
        let mine = self.memory.address(span);
        if pe == self.my_pe {
            return Ok(Some(mine));
        }
        let peer = function!(self.table, nvshmem_ptr, "peer", at);
        // SAFETY: an address of the symmetric heap and a PE that exists.
        let theirs = unsafe { peer(mine, pe as i32) };
        Ok(Some(theirs).filter(|theirs| !theirs.is_null()))
    }

    /// Copies from `pe`'s memory to private memory.
    pub(crate) fn load(&self, src: Span, pe: usize, into: &mut [u8], at: At) -> Result<()> {
        if into.is_empty() {
            return Ok(());
        }
        let address = self.peer_address(src, pe, at)?;
        assert_eq!(src.len, into.len(), "a span and a slice of different lengths");
        // SAFETY: a living allocation's span, as `Memory` asserts; a peer's copy of it is as long.
        unsafe { self.device().read(address as CUdeviceptr, into, at) }
    }

    /// Copies from private memory to `pe`'s memory.
    pub(crate) fn store(&self, dst: Span, pe: usize, from: &[u8], at: At) -> Result<()> {
        if from.is_empty() {
            return Ok(());
        }
        let address = self.peer_address(dst, pe, at)?;
        assert_eq!(dst.len, from.len(), "a span and a slice of different lengths");
        // SAFETY: as above.
        unsafe { self.device().write(address as CUdeviceptr, from, at) }
    }
}
