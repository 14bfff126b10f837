//! [`Workspaces`]: memory of the GPU to which a large reducescatter copies this PE's own block (`reduction.rs`).
//!
//! The memory is kept and used again, but not while another stream still uses it. If a stream waited for another one here, two
//! PEs that enqueue collectives of two teams in different orders would wait for each other.
#![allow(unsafe_code)]

use std::cell::RefCell;

use cudarc::driver::sys::{CUdeviceptr, CUevent_wait_flags, CUstream};
use cudarc::driver::{CudaEvent, CudaStream, DriverError, result};

/// Workspaces that nobody has taken.
#[derive(Debug, Default)]
pub(crate) struct Workspaces(RefCell<Vec<Workspace>>);

/// A block of memory. It stays allocated when it is dropped, because something on the GPU may use it.
#[derive(Debug)]
pub(crate) struct Workspace {
    memory: CUdeviceptr,
    size: usize,
    /// The stream that used it last, and the event behind that use.
    stream: CUstream,
    used: CudaEvent,
}

impl Workspaces {
    /// A workspace of `bytes` bytes or more, for work on this stream alone until it is put back.
    pub(crate) fn take(&self, bytes: usize, stream: &CudaStream) -> Result<Workspace, DriverError> {
        let mut workspaces = self.0.borrow_mut();
        let s = stream.cu_stream();
        let fits =
            |workspace: &Workspace| workspace.size >= bytes && (workspace.stream == s || workspace.used.is_complete());
        if let Some(index) = workspaces.iter().position(fits) {
            let workspace = workspaces.swap_remove(index);
            // The stream waits for nothing, unless it has the handle of a stream that was destroyed before its work was done.
            // SAFETY: both are alive.
            unsafe {
                result::stream::wait_event(s, workspace.used.cu_event(), CUevent_wait_flags::CU_EVENT_WAIT_DEFAULT)?
            };
            return Ok(workspace);
        }
        free_idle(&mut workspaces); // they are too small
        let used = stream.context().new_event(None)?;
        // In stream order: an allocation that waits for the GPU could wait for PEs that wait for this one.
        // SAFETY: allocates; what uses the memory is enqueued behind.
        let memory = unsafe { result::malloc_async(s, bytes)? };
        Ok(Workspace { memory, size: bytes, stream: s, used })
    }

    /// Puts a workspace back. Its last use is what is enqueued on this stream so far. After an error nothing tells when that
    /// use is over, and the workspace is lost.
    pub(crate) fn put_back(&self, mut workspace: Workspace, stream: &CudaStream) -> Result<(), DriverError> {
        workspace.stream = stream.cu_stream();
        // SAFETY: both are alive, and of the same context.
        unsafe { result::event::record(workspace.used.cu_event(), workspace.stream)? };
        self.0.borrow_mut().push(workspace);
        Ok(())
    }

    /// Frees the workspaces that nothing uses any more.
    pub(crate) fn free_idle(&self) {
        free_idle(&mut self.0.borrow_mut());
    }
}

fn free_idle(workspaces: &mut Vec<Workspace>) {
    for idle in workspaces.extract_if(.., |workspace| workspace.used.is_complete()) {
        // SAFETY: allocated by `take`, and its last use is over: what was recorded behind it has been reached.
        let _ = unsafe { result::free_sync(idle.memory) };
    }
}

impl Workspace {
    /// The address of its first byte.
    pub(crate) fn memory(&self) -> CUdeviceptr {
        self.memory
    }
}
