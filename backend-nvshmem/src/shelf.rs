//! [`Shelves`]: memory of the GPU in which a large reducescatter lays this PE's own block by (`reduction.rs`).
//!
//! One for each team. Collectives of a team run one after the other, so its shelf is free when the next one begins. Were
//! it shared between teams, a stream would have to wait for another team's collective, and two PEs that enqueue the two
//! in different orders would wait for each other.
#![allow(unsafe_code)]

use std::cell::RefCell;
use std::collections::BTreeMap;

use cudarc::driver::sys::CUdeviceptr;
use cudarc::driver::{CudaEvent, CudaStream, DriverError, result};
use onesided::TeamId;

/// The shelves of all teams that needed one. They stay as large as they have been, until the team ends.
#[derive(Debug, Default)]
pub(crate) struct Shelves(RefCell<BTreeMap<TeamId, Shelf>>);

#[derive(Debug)]
struct Shelf {
    memory: CUdeviceptr,
    size: usize,
    /// Recorded behind the last use.
    used: CudaEvent,
}

impl Shelves {
    /// Memory of `bytes` bytes or more, which is the caller's alone from where the stream is now until it is put back.
    pub(crate) fn take(&self, team: TeamId, bytes: usize, stream: &CudaStream) -> Result<CUdeviceptr, DriverError> {
        let mut shelves = self.0.borrow_mut();
        let Some(shelf) = shelves.get_mut(&team) else {
            return Ok(shelves.entry(team).or_insert(Shelf::new(bytes, stream)?).memory);
        };
        stream.wait(&shelf.used)?; // which may have been on another stream
        if shelf.size < bytes {
            shelf.grow(bytes, stream)?;
        }
        Ok(shelf.memory)
    }

    /// What is enqueued so far was the last use.
    pub(crate) fn put_back(&self, team: TeamId, stream: &CudaStream) -> Result<(), DriverError> {
        let mut shelves = self.0.borrow_mut();
        let recorded = shelves[&team].used.record(stream);
        if recorded.is_err() {
            // Nothing tells when the last use is over: it is never used again, and never freed.
            std::mem::forget(shelves.remove(&team));
        }
        recorded
    }

    /// The team ends, and nothing of it runs any more.
    pub(crate) fn end(&self, team: TeamId) {
        self.0.borrow_mut().remove(&team);
    }

    /// The same for all teams.
    pub(crate) fn end_all(&self) {
        self.0.take();
    }
}

impl Shelf {
    fn new(bytes: usize, stream: &CudaStream) -> Result<Shelf, DriverError> {
        let used = stream.context().new_event(None)?;
        Ok(Shelf { memory: allocate(bytes, stream)?, size: bytes, used })
    }

    /// In the order of the stream, behind the last use.
    fn grow(&mut self, bytes: usize, stream: &CudaStream) -> Result<(), DriverError> {
        let larger = allocate(bytes, stream)?;
        let smaller = std::mem::replace(&mut self.memory, larger);
        self.size = bytes;
        // SAFETY: allocated by `allocate`; what is enqueued behind here uses the larger one.
        unsafe { result::free_async(smaller, stream.cu_stream()) }
    }
}

/// In the order of the stream: an allocation that waited for the GPU could wait for PEs that wait for this one.
fn allocate(bytes: usize, stream: &CudaStream) -> Result<CUdeviceptr, DriverError> {
    // SAFETY: allocates; what uses the memory is enqueued behind.
    unsafe { result::malloc_async(stream.cu_stream(), bytes) }
}

impl Drop for Shelf {
    fn drop(&mut self) {
        // SAFETY: allocated by `allocate`, and its last use is over: `end` and `end_all` are called then only.
        let _ = unsafe { result::free_sync(self.memory) };
    }
}
