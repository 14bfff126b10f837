//! [`Room`]: whether the heap can take an allocation, found out before the library is asked.
//!
//! The library grows its heap by physical memory of the GPU, and where there is none it ends the process (3.4.5) or says so
//! (3.8.0). Whether there is any is a matter of each PE, but all must decide alike: a PE that refuses while others call
//! `nvshmem_malloc` leaves them waiting. So the PEs agree first.
#![allow(unsafe_code)]

use std::cell::{Cell, RefCell};
use std::ffi::c_void;

use cudarc::driver::sys::CUdeviceptr;
use onesided::{At, DType, ReduceOp, Result};

use crate::cuda::Device;
use crate::heap::Heap;
use crate::memory::check;
use crate::table::{Form, Reduction, Table, function};
use crate::vmm::{mapped_end, registration_step};

const CALL: &str = "alloc";

/// What is left to others on the GPU, and to the library's own needs.
const RESERVE: usize = 256 << 20;
/// What the library aligns to.
const ALIGNMENT: usize = 512;

#[derive(Debug, Default)]
pub(crate) struct Room {
    heap: RefCell<Heap>,
    /// Whether memory was registered symmetrically: it is mapped behind the heap, and no longer told apart.
    registered: Cell<bool>,
    /// Two words of the heap, for the agreement; 0 until they are needed.
    words: Cell<u64>,
}

impl Room {
    /// Whether all PEs have room for `bytes` more on each, at a multiple of `align`. `sharing` is the number of PEs on this
    /// GPU, `pes` that of all. Collective.
    pub(crate) fn has(
        &self,
        table: &Table,
        device: &Device,
        (bytes, align): (usize, Option<usize>),
        (sharing, pes): (usize, usize),
        at: At,
    ) -> Result<bool> {
        if self.words.get() == 0 {
            // The heap has some memory from the start, of which `init` leaves more than this.
            // SAFETY: the size is not 0. All PEs come here at their first allocation.
            let words = unsafe { function!(table, nvshmem_malloc, CALL, at)(16) } as u64;
            if words == 0 {
                return Ok(false); // on all PEs alike
            }
            self.words.set(words);
            self.took(words, 16);
        }
        let enough = self.has_here(device, bytes, align.unwrap_or(1).max(ALIGNMENT), sharing);
        if pes == 1 {
            return Ok(enough);
        }
        self.agree(table, device, enough, at)
    }

    /// Whether this PE has, as long as no other program takes the GPU's memory.
    fn has_here(&self, device: &Device, bytes: usize, align: usize, sharing: usize) -> bool {
        self.heap.borrow().fits(bytes, align) || {
            let grows = bytes.checked_add(align).and_then(|most| most.checked_next_multiple_of(registration_step()));
            let all = grows.unwrap_or(usize::MAX).saturating_mul(sharing);
            all.saturating_add(RESERVE) <= device.free_memory()
        }
    }

    /// Notes an allocation.
    pub(crate) fn took(&self, base: u64, bytes: usize) {
        let end = base + bytes as u64;
        let mapped = if self.registered.get() { end } else { mapped_end(end - 1).unwrap_or(end) };
        self.heap.borrow_mut().took(base, bytes, mapped);
    }

    /// Notes its end.
    pub(crate) fn gave_back(&self, base: u64) {
        self.heap.borrow_mut().gave_back(base);
    }

    /// Notes that memory was registered symmetrically.
    pub(crate) fn registered(&self) {
        self.registered.set(true);
    }

    /// Whether every PE says yes.
    fn agree(&self, table: &Table, device: &Device, mine: bool, at: At) -> Result<bool> {
        let reduction = Reduction::of_words(DType::U64, ReduceOp::Min);
        let Some(min) = table.host_reduction(&reduction) else {
            return Err(table.missing_reduction(&reduction, "nvshmem", "", at));
        };
        let base = self.words.get();
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
