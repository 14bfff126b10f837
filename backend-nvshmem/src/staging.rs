//! [`Staging`]: page-locked memory for values on their way to the device, and for those that a kernel reads when its stream gets there.
//!
//! A copy from ordinary memory may wait for the stream's earlier work before it returns. A program that enqueues a write
//! behind a wait would then never reach the call that ends the wait. A copy from page-locked memory is only enqueued. Kernels read
//! page-locked memory at the host's address.
#![allow(unsafe_code)]

use std::cell::RefCell;
use std::sync::Arc;

use cudarc::driver::sys::{CU_MEMHOSTALLOC_PORTABLE, CUdeviceptr};
use cudarc::driver::{CudaContext, CudaEvent, CudaStream, DriverError, result};

/// The size of the smallest block. Many small writes share few blocks over time.
const SMALLEST: usize = 4096;

/// Blocks of page-locked memory, used again when what reads them has run. They stay as long as the PE.
#[derive(Debug, Default)]
pub(crate) struct Staging(RefCell<Vec<Block>>);

#[derive(Debug)]
struct Block {
    memory: *mut u8,
    size: usize,
    /// Recorded behind what reads the block.
    used: CudaEvent,
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
        self.lend(
            context,
            from.len(),
            |block| block.copy_from_slice(from),
            stream,
            |staged| {
                // SAFETY: the caller's promise for `dst`; the block is lent to the stream until the copy has run.
                unsafe { result::memcpy_htod_async(dst, staged, stream.cu_stream()) }
            },
        )
    }

    /// Lends a block to what `enqueue` puts on the stream, which may read it until that has run. `fill` writes the block before. After
    /// an error of `enqueue`, nothing may read it.
    pub(crate) fn lend(
        &self,
        context: &Arc<CudaContext>,
        bytes: usize,
        fill: impl FnOnce(&mut [u8]),
        stream: &CudaStream,
        enqueue: impl FnOnce(&[u8]) -> Result<(), DriverError>,
    ) -> Result<(), DriverError> {
        let mut blocks = self.0.borrow_mut();
        // The smallest block that is large enough: a small write must not hold the block that the next large one needs.
        let free = blocks.iter().enumerate().filter(|(_, block)| block.size >= bytes && block.used.is_complete());
        let index = match free.min_by_key(|(_, block)| block.size) {
            Some((index, _)) => index,
            None => {
                blocks.push(Block::new(context, bytes)?);
                blocks.len() - 1
            }
        };
        let block = &blocks[index];
        // SAFETY: the block has room and was written with zeros when it was made. Nothing reads it any more: its last use has
        // run.
        let staged = unsafe { std::slice::from_raw_parts_mut(block.memory, bytes) };
        fill(staged);
        enqueue(staged)?;
        let recorded = block.used.record(stream);
        if recorded.is_err() {
            // Nothing tells when the block has been read. So the block is never used again, and never freed.
            std::mem::forget(blocks.swap_remove(index));
        }
        recorded
    }
}

impl Block {
    fn new(context: &Arc<CudaContext>, bytes: usize) -> Result<Block, DriverError> {
        let size = bytes.next_power_of_two().max(SMALLEST);
        let used = context.new_event(None)?;
        // SAFETY: allocates so many bytes; they are written before anything reads them.
        let memory = unsafe {
            let memory = result::malloc_host(size, CU_MEMHOSTALLOC_PORTABLE)?.cast::<u8>();
            memory.write_bytes(0, size);
            memory
        };
        Ok(Block { memory, size, used })
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        // What is still enqueued reads the block, and may wait for something that never happens. Then the block
        // stays until the process ends.
        if self.used.is_complete() {
            // SAFETY: allocated by `new`, and nothing uses it any more.
            let _ = unsafe { result::free_host(self.memory.cast()) };
        }
    }
}
