//! [`Workspaces`]: memory of the GPU in which a large reducescatter lays this PE's own block by (`reduction.rs`).
//!
//! It is kept and used again, but never such as another stream still uses: if streams waited for each other here, PEs that
//! enqueue collectives of two teams in different orders would, too.
#![allow(unsafe_code)]

use std::cell::RefCell;

use cudarc::driver::sys::{CUdeviceptr, CUevent_wait_flags, CUstream};
use cudarc::driver::{CudaEvent, CudaStream, DriverError, result};

/// Workspaces that nobody has taken.
#[derive(Debug, Default)]
pub(crate) struct Workspaces(RefCell<Vec<Workspace>>);

/// A block of memory. Dropped, it stays allocated: something on the GPU may use it.
#[derive(Debug)]
pub(crate) struct Workspace {
    memory: CUdeviceptr,
    size: usize,
    /// Where it was used last, and what is recorded there behind the use.
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
            // No wait at all, unless this stream has the handle of one that was destroyed before its work was done.
            // SAFETY: both are alive.
            unsafe {
                result::stream::wait_event(s, workspace.used.cu_event(), CUevent_wait_flags::CU_EVENT_WAIT_DEFAULT)?
            };
            return Ok(workspace);
        }
        free_idle(&mut workspaces); // they are too small
        let used = stream.context().new_event(None)?;
        // In the order of the stream: an allocation that waited for the GPU could wait for PEs that wait for this one.
        // SAFETY: allocates; what uses the memory is enqueued behind.
        let memory = unsafe { result::malloc_async(s, bytes)? };
        Ok(Workspace { memory, size: bytes, stream: s, used })
    }

    /// The last use of the workspace is what is enqueued on this stream so far. After an error nothing tells when it is over,
    /// and the workspace is lost.
    pub(crate) fn put_back(&self, mut workspace: Workspace, stream: &CudaStream) -> Result<(), DriverError> {
        workspace.stream = stream.cu_stream();
        // SAFETY: both are alive, and of the same context.
        unsafe { result::event::record(workspace.used.cu_event(), workspace.stream)? };
        self.0.borrow_mut().push(workspace);
        Ok(())
    }

    /// Frees what nothing uses any more.
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
