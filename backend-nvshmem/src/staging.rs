//! [`Staging`]: page-locked memory for values on their way to the device.
//!
//! A copy from ordinary memory may wait for the stream's earlier work before it returns. A program that enqueues a write
//! behind a wait would then never reach the call that ends the wait. A copy from page-locked memory is only enqueued.
#![allow(unsafe_code)]

use std::cell::RefCell;
use std::sync::Arc;

use cudarc::driver::sys::{CU_MEMHOSTALLOC_PORTABLE, CUdeviceptr};
use cudarc::driver::{CudaContext, CudaEvent, CudaStream, DriverError, result};

/// The size of the smallest block. Many small writes share few blocks over time.
const SMALLEST: usize = 4096;

/// Blocks of page-locked memory, used again when their copy has run. They stay as long as the PE.
#[derive(Debug, Default)]
pub(crate) struct Staging(RefCell<Vec<Block>>);

#[derive(Debug)]
struct Block {
    memory: *mut u8,
    size: usize,
    /// Recorded behind the block's last copy.
    copied: CudaEvent,
}

impl Staging {
    /// Enqueues a copy of `from`, which may change as soon as this returns.
    ///
    /// # Safety
    /// `dst` must be memory of at least `from.len()` bytes that the context can write, until the copy has run.
    pub(crate) unsafe fn copy(
        &self,
        context: &Arc<CudaContext>,
        dst: CUdeviceptr,
        from: &[u8],
        stream: &CudaStream,
    ) -> Result<(), DriverError> {
        let mut blocks = self.0.borrow_mut();
        // The smallest block that is large enough: a small write must not hold the block that the next large one needs.
        let free =
            blocks.iter().enumerate().filter(|(_, block)| block.size >= from.len() && block.copied.is_complete());
        let index = match free.min_by_key(|(_, block)| block.size) {
            Some((index, _)) => index,
            None => {
                blocks.push(Block::new(context, from.len())?);
                blocks.len() - 1
            }
        };
        let block = &blocks[index];
        // SAFETY: the block has room, and nothing reads it any more: its last copy has run.
        let staged = unsafe {
            std::ptr::copy_nonoverlapping(from.as_ptr(), block.memory, from.len());
            std::slice::from_raw_parts(block.memory, from.len())
        };
        // SAFETY: the caller's promise for `dst`; the block stays until the event behind the copy is complete.
        unsafe { result::memcpy_htod_async(dst, staged, stream.cu_stream())? };
        let recorded = block.copied.record(stream);
        if recorded.is_err() {
            // Nothing tells when the copy has run. So the block is never used again, and never freed.
            std::mem::forget(blocks.swap_remove(index));
        }
        recorded
    }
}

impl Block {
    fn new(context: &Arc<CudaContext>, bytes: usize) -> Result<Block, DriverError> {
        let size = bytes.next_power_of_two().max(SMALLEST);
        let copied = context.new_event(None)?;
        // SAFETY: allocates; the memory is written before it is read.
        let memory = unsafe { result::malloc_host(size, CU_MEMHOSTALLOC_PORTABLE)? };
        Ok(Block { memory: memory.cast(), size, copied })
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        // A copy that is still enqueued reads the block, and may wait for something that never happens. Then the block
        // stays until the process ends.
        if self.copied.is_complete() {
            // SAFETY: allocated by `new`, and nothing uses it any more.
            let _ = unsafe { result::free_host(self.memory.cast()) };
        }
    }
}
