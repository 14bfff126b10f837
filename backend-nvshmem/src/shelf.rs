//! [`Shelves`]: memory of the GPU in which a large reducescatter lays this PE's own block by (`reduction.rs`).
//!
//! It is kept and used again, but never such as another stream still uses: if streams waited for each other here, PEs that
//! enqueue collectives of two teams in different orders would, too.
#![allow(unsafe_code)]

use std::cell::RefCell;

use cudarc::driver::sys::{CUdeviceptr, CUevent_wait_flags, CUstream};
use cudarc::driver::{CudaEvent, CudaStream, DriverError, result};

/// Shelves that nobody has taken.
#[derive(Debug, Default)]
pub(crate) struct Shelves(RefCell<Vec<Shelf>>);

/// A block of memory. Dropped, it stays allocated: something on the GPU may use it.
#[derive(Debug)]
pub(crate) struct Shelf {
    memory: CUdeviceptr,
    size: usize,
    /// Where it was used last, and what is recorded there behind the use.
    stream: CUstream,
    used: CudaEvent,
}

impl Shelves {
    /// A shelf of `bytes` bytes or more, for work on this stream alone until it is put back.
    pub(crate) fn take(&self, bytes: usize, stream: &CudaStream) -> Result<Shelf, DriverError> {
        let mut shelves = self.0.borrow_mut();
        let s = stream.cu_stream();
        let fits = |shelf: &Shelf| shelf.size >= bytes && (shelf.stream == s || shelf.used.is_complete());
        if let Some(index) = shelves.iter().position(fits) {
            let shelf = shelves.swap_remove(index);
            // No wait at all, unless this stream has the handle of one that was destroyed before its work was done.
            // SAFETY: both are alive.
            unsafe { result::stream::wait_event(s, shelf.used.cu_event(), CUevent_wait_flags::CU_EVENT_WAIT_DEFAULT)? };
            return Ok(shelf);
        }
        free_idle(&mut shelves); // they are too small
        let used = stream.context().new_event(None)?;
        // In the order of the stream: an allocation that waited for the GPU could wait for PEs that wait for this one.
        // SAFETY: allocates; what uses the memory is enqueued behind.
        let memory = unsafe { result::malloc_async(s, bytes)? };
        Ok(Shelf { memory, size: bytes, stream: s, used })
    }

    /// The last use of the shelf is what is enqueued on this stream so far. After an error nothing tells when it is over,
    /// and the shelf is lost.
    pub(crate) fn put_back(&self, mut shelf: Shelf, stream: &CudaStream) -> Result<(), DriverError> {
        shelf.stream = stream.cu_stream();
        // SAFETY: both are alive, and of the same context.
        unsafe { result::event::record(shelf.used.cu_event(), shelf.stream)? };
        self.0.borrow_mut().push(shelf);
        Ok(())
    }

    /// Frees what nothing uses any more.
    pub(crate) fn free_idle(&self) {
        free_idle(&mut self.0.borrow_mut());
    }
}

fn free_idle(shelves: &mut Vec<Shelf>) {
    for idle in shelves.extract_if(.., |shelf| shelf.used.is_complete()) {
        // SAFETY: allocated by `take`, and its last use is over: what was recorded behind it has been reached.
        let _ = unsafe { result::free_sync(idle.memory) };
    }
}

impl Shelf {
    /// The address of its first byte.
    pub(crate) fn memory(&self) -> CUdeviceptr {
        self.memory
    }
}
