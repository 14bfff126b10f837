//! [`Room`]: whether the heap can take an allocation, found out before the library is asked.
//!
//! The library grows its heap by physical memory of the GPU, and where there is none it ends the process (seen with
//! 3.4.5). Whether there is any is a matter of each PE, but all must decide alike: a PE that refuses while others call
//! `nvshmem_malloc` leaves them waiting. So for allocations that are large enough to matter the PEs first agree.
#![allow(unsafe_code)]

use std::cell::Cell;
use std::ffi::c_void;

use cudarc::driver::sys::CUdeviceptr;
use onesided::{At, DType, ReduceOp, Result};

use crate::cuda::Device;
use crate::memory::check;
use crate::table::{Form, Reduction, Table, function};
use crate::vmm::registration_step;

/// From this size on, PEs agree. Smaller allocations are left to the library, as are large ones for which the heap has
/// room in all, but not in one piece.
const LARGE: usize = 64 << 20;
/// What is left to others on the GPU, and to the library's own needs.
const RESERVE: usize = 256 << 20;

/// What the heap holds and has held.
#[derive(Debug, Default)]
pub(crate) struct Room {
    live: Cell<usize>,
    /// The most that was ever live: the heap keeps the physical memory that it has grown to, in whole steps.
    most: Cell<usize>,
    /// Two words of the heap, for the agreement; 0 until they are needed.
    words: Cell<u64>,
}

impl Room {
    /// Whether all PEs have room for `bytes` more on each. `sharing` is the number of PEs on this GPU, `pes` that of all.
    /// Collective, for sizes from [`LARGE`] on.
    pub(crate) fn has(
        &self,
        table: &Table,
        device: &Device,
        bytes: usize,
        (sharing, pes): (usize, usize),
        at: At,
    ) -> Result<bool> {
        if bytes < LARGE {
            return Ok(true);
        }
        let step = registration_step();
        let held = self.most.get().next_multiple_of(step) - self.live.get();
        let grows = bytes.saturating_sub(held).checked_next_multiple_of(step).unwrap_or(usize::MAX);
        let grows = grows.saturating_mul(sharing);
        let enough = bytes <= held || grows.saturating_add(RESERVE) <= device.free_memory();
        if pes == 1 {
            return Ok(enough);
        }
        self.agree(table, device, enough, at)
    }

    /// Notes an allocation.
    pub(crate) fn took(&self, bytes: usize) {
        self.live.set(self.live.get() + bytes);
        self.most.set(self.most.get().max(self.live.get()));
    }

    /// Notes its end.
    pub(crate) fn gave_back(&self, bytes: usize) {
        self.live.set(self.live.get() - bytes);
    }

    /// Whether every PE says yes.
    fn agree(&self, table: &Table, device: &Device, mine: bool, at: At) -> Result<bool> {
        const CALL: &str = "alloc";
        if self.words.get() == 0 {
            // SAFETY: the size is not 0. All PEs come here at the same allocation.
            let words = unsafe { function!(table, nvshmem_malloc, CALL, at)(16) };
            self.words.set(words as u64);
        }
        let base = self.words.get();
        if base == 0 {
            return Ok(false); // not even two words: on all PEs alike
        }
        let reduction = Reduction::of_words(DType::U64, ReduceOp::Min);
        let Some(min) = table.host_reduction(&reduction) else {
            return Err(table.missing_reduction(&reduction, "nvshmem", "", at));
        };
        let mut all = [0; 8];
        // SAFETY: two words of the heap, each used as one; the reduction is over the world, and all PEs are here.
        unsafe {
            device.write(base as CUdeviceptr, &u64::from(mine).to_ne_bytes(), at)?;
            check(min(0, (base + 8) as *mut c_void, base as *const c_void, 1), Form::Reduce.name(), CALL, at)?;
            device.read((base + 8) as CUdeviceptr, &mut all, at)?;
        }
        Ok(u64::from_ne_bytes(all) == 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_heap_keeps_what_it_has_grown_to() {
        let room = Room::default();
        room.took(100);
        room.took(50);
        room.gave_back(100);
        room.took(20);
        assert_eq!((room.live.get(), room.most.get()), (70, 150));
    }
}
