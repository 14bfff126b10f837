//! CUDA, through cudarc: one device with its context, streams, events, and copies between host and device.
//!
//! cudarc opens the driver at run time. Its first call panics if there is no driver, so [`Device::count`] looks for one first.
#![allow(unsafe_code)]

use std::cell::{OnceCell, RefCell};
use std::ffi::c_void;
use std::sync::Arc;

use cudarc::driver::sys::{self, CU_MEMHOSTALLOC_PORTABLE, CUcontext, CUdeviceptr, CUresult};
use cudarc::driver::{CudaContext, CudaEvent, CudaStream, DriverError, PinnedHostSlice, result};
use onesided::{At, Error, ErrorKind, Result};

use crate::problem::Problem;
use crate::staging::Staging;

/// The GPU of this PE: the primary context, which NVSHMEM uses too, and streams for the backend's own work.
#[derive(Debug)]
pub(crate) struct Device {
    own: OwnContext,
    context: Arc<CudaContext>,
    /// For the copies of `read` and `write`. It is made at the start, because cudarc waits for everything in the context
    /// when it makes its first stream; later that work may wait for this thread. Like `side`, it does not wait for the
    /// legacy default stream, where a wait would stop everything else.
    copies: Arc<CudaStream>,
    /// For operations of the host that the library has on streams only: they are enqueued here, and waited for. Made when
    /// first needed.
    side: OnceCell<Arc<CudaStream>>,
    staging: Staging,
    /// A page-locked word, to which a stream copies what the host reads. Made when first needed.
    answer: OnceCell<RefCell<PinnedHostSlice<u64>>>,
}

/// The PE's context, and the function that says which one is current. Every operation makes the context current, and between
/// two operations the driver displaces our data from the processor's caches. So both lie side by side, in [`crate::Nvshmem`]
/// too: few places in memory are read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OwnContext {
    context: CUcontext,
    /// `cuCtxGetCurrent`.
    get_current: unsafe extern "C" fn(*mut CUcontext) -> CUresult,
}

impl OwnContext {
    fn new(context: &CudaContext) -> Result<OwnContext, Problem> {
        // SAFETY: the driver is loaded: it has made the context. Its libraries' initializers have run.
        let driver = unsafe { sys::culib() };
        // SAFETY: this is the function's type.
        let get_current = unsafe { driver.get(b"cuCtxGetCurrent\0") }
            .map_err(|error| Problem::Failed { call: "cuCtxGetCurrent".to_string(), why: error.to_string() })?;
        Ok(OwnContext { context: context.cu_ctx(), get_current: *get_current }) // the driver stays loaded
    }

    /// Makes the context current in this thread again, if other code has changed that. With the context of another GPU, puts
    /// and gets end the process (`MEASURED.md`). cudarc's `bind_to_thread` would begin with an atomic exchange.
    #[inline]
    pub(crate) fn make_current(&self) -> Result<(), DriverError> {
        let mut current = std::ptr::null_mut();
        // SAFETY: writes the pointer.
        let asked = unsafe { (self.get_current)(&raw mut current) };
        if asked == CUresult::CUDA_SUCCESS && current == self.context { Ok(()) } else { self.take_thread() }
    }

    #[cold]
    fn take_thread(&self) -> Result<(), DriverError> {
        // SAFETY: the primary context, which the `Device` retains that this was made for.
        unsafe { result::ctx::set_current(self.context) }
    }
}

/// A GPU whose context exists.
pub(crate) struct Awake {
    context: Arc<CudaContext>,
    copies: Arc<CudaStream>,
}

impl Device {
    /// Number of GPUs that CUDA shows to this process.
    pub(crate) fn count() -> Result<usize, Problem> {
        // SAFETY: looks whether libcuda can be opened; its initializers need nothing from us.
        if !unsafe { sys::is_culib_present() } {
            return Err(Problem::NotFound {
                what: "libcuda.so.1",
                looked: vec!["no NVIDIA driver is installed, or this container has no access to the GPUs".to_string()],
            });
        }
        result::init().map_err(|error| failed("cuInit", error))?;
        let count = result::device::get_count().map_err(|error| failed("cuDeviceGetCount", error))?;
        Ok(usize::try_from(count).unwrap_or(0))
    }

    /// Makes the context. This waits for the driver, which may have to start the GPU. Any thread can call it.
    pub(crate) fn wake(ordinal: usize) -> Result<Awake, Problem> {
        let count = Device::count()?;
        if ordinal >= count {
            let there = if count == 0 { "CUDA shows no GPU".to_string() } else { format!("CUDA shows {count}") };
            let why = format!("there is no GPU {ordinal}: {there}; see nvidia-smi and CUDA_VISIBLE_DEVICES");
            return Err(Problem::Failed { call: "choosing a GPU".to_string(), why });
        }
        let context = CudaContext::new(ordinal).map_err(|error| failed("cuDevicePrimaryCtxRetain", error))?;
        let copies = context.new_stream().map_err(|error| failed("cuStreamCreate", error))?;
        Ok(Awake { context, copies })
    }

    /// Makes the context current in this thread.
    pub(crate) fn new(Awake { context, copies }: Awake) -> Result<Device, Problem> {
        context.bind_to_thread().map_err(|error| failed("cuCtxSetCurrent", error))?;
        let own = OwnContext::new(&context)?;
        Ok(Device { own, copies, side: OnceCell::new(), staging: Staging::default(), answer: OnceCell::new(), context })
    }

    /// The context, for programs that launch their own kernels.
    pub(crate) fn context(&self) -> &Arc<CudaContext> {
        &self.context
    }

    /// The stream for host operations that the library has on streams only.
    #[inline]
    pub(crate) fn side(&self, call: &'static str, at: At) -> Result<&CudaStream> {
        if let Some(stream) = self.side.get() {
            return Ok(stream);
        }
        let stream = self.context.new_stream().map_err(|error| device(call, error, at))?;
        Ok(self.side.get_or_init(|| stream))
    }

    /// [`OwnContext::make_current`], for the call with this name.
    #[inline]
    pub(crate) fn bind(&self, call: &'static str, at: At) -> Result<()> {
        self.own.make_current().map_err(|error| device(call, error, at))
    }

    pub(crate) fn own_context(&self) -> OwnContext {
        self.own
    }

    /// Copies from the device to `into`; done when it returns.
    ///
    /// # Safety
    /// `src` must be memory of at least `into.len()` bytes that this context can read.
    pub(crate) unsafe fn read(&self, src: CUdeviceptr, into: &mut [u8], at: At) -> Result<()> {
        self.bind("read", at)?;
        let stream = &self.copies;
        // SAFETY: the caller's promise for `src`; `into` outlives the copy, which is waited for.
        unsafe { result::memcpy_dtoh_async(into, src, stream.cu_stream()) }.map_err(|e| device("read", e, at))?;
        stream.synchronize().map_err(|error| device("read", error, at))
    }

    /// Waits for the stream, and returns the word at `src` as it was when the stream got there.
    ///
    /// # Safety
    /// `src` must be 8 bytes that this context can read. The context must be bound.
    pub(crate) unsafe fn read_word(
        &self,
        src: CUdeviceptr,
        stream: &CudaStream,
        call: &'static str,
        at: At,
    ) -> Result<u64> {
        let read = || {
            if self.answer.get().is_none() {
                // SAFETY: it is written before it is read.
                let word = unsafe { self.context.alloc_pinned_with_flags(1, CU_MEMHOSTALLOC_PORTABLE)? };
                let _ = self.answer.set(RefCell::new(word)); // it is empty
            }
            let mut word = self.answer.get().expect("just set").borrow_mut();
            // SAFETY: the caller's promise for `src`; the word stays, and is borrowed until the copy has run.
            unsafe { result::memcpy_dtoh_async(word.as_mut_slice()?, src, stream.cu_stream())? };
            stream.synchronize()?;
            Ok(word.as_slice()?[0])
        };
        read().map_err(|error| device(call, error, at))
    }

    /// The word at `src`, as it is now. It waits for no other stream.
    ///
    /// # Safety
    /// As [`Device::read_word`].
    pub(crate) unsafe fn word_now(&self, src: CUdeviceptr, call: &'static str, at: At) -> Result<u64> {
        // SAFETY: the caller's promise.
        unsafe { self.read_word(src, &self.copies, call, at) }
    }

    /// Copies `from` to the device; done when it returns.
    ///
    /// # Safety
    /// `dst` must be memory of at least `from.len()` bytes that this context can write.
    pub(crate) unsafe fn write(&self, dst: CUdeviceptr, from: &[u8], at: At) -> Result<()> {
        self.bind("write", at)?;
        let stream = &self.copies;
        // SAFETY: the caller's promise for `dst`; `from` outlives the copy, which is waited for.
        unsafe { result::memcpy_htod_async(dst, from, stream.cu_stream()) }.map_err(|e| device("write", e, at))?;
        stream.synchronize().map_err(|error| device("write", error, at))
    }

    /// Enqueues a copy of `from`, which may change as soon as this returns. `is_host`: `dst` is memory of the host.
    ///
    /// # Safety
    /// `dst` must be memory of at least `from.len()` bytes that this context can write, until the copy has run.
    pub(crate) unsafe fn fill(
        &self,
        (dst, is_host): (CUdeviceptr, bool),
        from: &[u8],
        stream: &CudaStream,
        at: At,
    ) -> Result<()> {
        self.bind("write", at)?;
        let fill = || {
            if !is_host {
                // SAFETY: the caller's promise.
                return unsafe { self.staging.copy(&self.context, dst, from, stream) };
            }
            // CUDA runs a copy between two places in memory of the host before it returns, and so waits for the stream.
            let s = stream.cu_stream();
            // SAFETY: the caller's promise for `dst`. The memory between is the stream's, from its allocation to its end.
            unsafe {
                let between = result::malloc_async(s, from.len())?;
                let copied = self
                    .staging
                    .copy(&self.context, between, from, stream)
                    .and_then(|()| sys::cuMemcpyDtoHAsync_v2(dst as *mut c_void, between, from.len(), s).result());
                copied.and(result::free_async(between, s))
            }
        };
        fill().map_err(|error| device("write", error, at))
    }

    /// Lends page-locked memory to what `enqueue` puts on the stream: [`Staging::lend`]. The context must be bound.
    pub(crate) fn stage(
        &self,
        bytes: usize,
        fill: impl FnOnce(&mut [u8]),
        stream: &CudaStream,
        enqueue: impl FnOnce(&[u8]) -> Result<(), DriverError>,
    ) -> Result<(), DriverError> {
        self.staging.lend(&self.context, bytes, fill, stream, enqueue)
    }

    /// Whether an address is memory of the host, which the GPU reaches too.
    pub(crate) fn is_host_memory(&self, address: CUdeviceptr, at: At) -> Result<bool> {
        self.bind("init", at)?;
        let mut kind = 0_u32;
        let what = sys::CUpointer_attribute::CU_POINTER_ATTRIBUTE_MEMORY_TYPE;
        // SAFETY: writes a number of 4 bytes; any address can be asked about.
        let asked = unsafe { sys::cuPointerGetAttribute((&raw mut kind).cast(), what, address) }.result();
        asked.map_err(|error| device("init", error, at))?;
        Ok(kind == sys::CUmemorytype::CU_MEMORYTYPE_HOST as u32)
    }

    /// Sets memory to zeros; done when it returns.
    ///
    /// # Safety
    /// `dst` must be memory of at least `bytes` bytes that this context can write.
    pub(crate) unsafe fn zero(&self, dst: CUdeviceptr, bytes: usize, at: At) -> Result<()> {
        let stream = &self.copies;
        // SAFETY: the caller's promise.
        unsafe { result::memset_d8_async(dst, 0, bytes, stream.cu_stream()) }
            .map_err(|error| device("alloc", error, at))?;
        stream.synchronize().map_err(|error| device("alloc", error, at))
    }

    /// A stream that does not wait for the legacy default stream.
    pub(crate) fn stream(&self, at: At) -> Result<Arc<CudaStream>> {
        self.context.new_stream().map_err(|error| device("stream", error, at))
    }

    /// An event without timing.
    pub(crate) fn event(&self, at: At) -> Result<CudaEvent> {
        self.context.new_event(None).map_err(|error| device("event", error, at))
    }

    /// The architecture's number: 90 of `sm_90`.
    pub(crate) fn architecture(&self, call: &'static str, at: At) -> Result<u32> {
        let (major, minor) = self.context.compute_capability().map_err(|error| device(call, error, at))?;
        Ok((10 * major + minor).max(0) as u32)
    }

    /// What the driver says of the GPU.
    pub(crate) fn attribute(&self, what: sys::CUdevice_attribute, call: &'static str, at: At) -> Result<u32> {
        let value = self.context.attribute(what).map_err(|error| device(call, error, at))?;
        Ok(value.max(0) as u32)
    }

    /// Waits for all work of this context.
    pub(crate) fn synchronize(&self, call: &'static str, at: At) -> Result<()> {
        self.bind(call, at)?;
        self.context.synchronize().map_err(|error| device(call, error, at))
    }

    /// The bytes of the GPU's memory that no process uses.
    pub(crate) fn free_memory(&self) -> usize {
        self.context.mem_get_info().map_or(usize::MAX, |(free, _)| free)
    }
}

/// The architecture's number of a GPU, without a context: 90 of `sm_90`.
pub(crate) fn architecture(gpu: sys::CUdevice) -> std::result::Result<u32, DriverError> {
    use sys::CUdevice_attribute::{
        CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR as MAJOR, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR as MINOR,
    };
    // SAFETY: the driver gave this device.
    let [major, minor] = [MAJOR, MINOR].map(|what| unsafe { result::device::get_attribute(gpu, what) });
    Ok((10 * major? + minor?).max(0) as u32)
}

/// The error of a program's call in which a call of CUDA failed.
#[cold]
pub(crate) fn device(call: &'static str, error: DriverError, at: At) -> Error {
    let kind = match error.0 {
        sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY => ErrorKind::OutOfMemory,
        _ => ErrorKind::Device,
    };
    Error::new(kind, call, describe(error), at)
}

fn failed(call: &str, error: DriverError) -> Problem {
    let remedy = match error.0 {
        sys::CUresult::CUDA_ERROR_NO_DEVICE => "", // is in the description
        _ => "; see what nvidia-smi says: the driver may not work, or another process may have the GPU",
    };
    Problem::Failed { call: call.to_string(), why: describe(error) + remedy }
}

/// CUDA's words for an error.
fn describe(error: DriverError) -> String {
    let text = error.error_string().ok().and_then(|text| text.to_str().ok()).unwrap_or("unknown error");
    let remedy = match error.0 {
        sys::CUresult::CUDA_ERROR_NO_DEVICE => "; see what nvidia-smi shows, and CUDA_VISIBLE_DEVICES",
        _ => "",
    };
    format!("CUDA says {:?}: {text}{remedy}", error.0)
}
