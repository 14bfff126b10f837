//! [`Room`]: whether the heap has room for an allocation. It is asked before the library is.
//!
//! The library grows its heap by physical memory of the GPU. If there is none, 3.4.5 ends the process and 3.8.0 returns NULL. The
//! memory differs from PE to PE, but all PEs must decide alike: a PE that refuses while others call `nvshmem_malloc` leaves them
//! waiting. So the PEs agree first.
#![allow(unsafe_code)]

use std::cell::{Cell, RefCell};
use std::ffi::c_void;
use std::ops::Range;

use cudarc::driver::sys::CUdeviceptr;
use onesided::{At, DType, Error, ErrorKind, ReduceOp, Result};

use crate::bindings::nvshmem_team_t;
use crate::cuda::Device;
use crate::heap::Heap;
use crate::memory::check;
use crate::table::{Form, Reduction, Table, function};
use crate::team::WORLD;
use crate::vmm::{mapped_end, registration_step};

const CALL: &str = "alloc";

/// What stays free on the GPU for others and for the library's own needs.
const RESERVE: usize = 256 << 20;
/// The size of the first block that the library gives out. It is larger than any hole between the library's own allocations, so
/// that all memory above the block is free. (Seen with 3.4.5 and 3.8.0: `full-malloc` in `MEASURED.md`.)
const FIRST: usize = 1 << 20;
/// Where in the first block the slots lie (`network.rs`): words that the PEs agree on come before and behind.
pub(crate) const SLOTS: Range<usize> = FIRST / 4..FIRST / 2;
/// The library's own alignment.
const ALIGNMENT: usize = 512;

#[derive(Debug, Default)]
pub(crate) struct Room {
    heap: RefCell<Heap>,
    /// Whether memory was registered symmetrically. It is mapped behind the heap, and cannot be told apart from it.
    registered: Cell<bool>,
    /// The address of the first block, through which the PEs agree.
    first: Cell<u64>,
}

impl Room {
    /// Takes the first block and returns its address. The PEs also agree for the first time, so that the kernel for it is
    /// loaded. Collective, at the end of `init`.
    pub(crate) fn prepare(&self, table: &Table, device: &Device, pes: usize, at: At) -> Result<u64> {
        // SAFETY: the size is not 0, and all PEs come here.
        let first = unsafe { function!(table, nvshmem_malloc, "init", at)(FIRST) } as u64;
        if first == 0 {
            let message = "the symmetric heap has no room for what the backend itself needs";
            return Err(Error::new(ErrorKind::OutOfMemory, "init", message, at));
        }
        self.first.set(first);
        self.took(first, FIRST, None);
        if pes > 1 {
            self.agree(table, device, true, at)?;
        }
        Ok(first)
    }

    /// The address of the first block.
    pub(crate) fn first(&self) -> u64 {
        self.first.get()
    }

    /// Why some PE has no room for `bytes` more at a multiple of `align`; `None` if all have it. `sharing` is the number of
    /// PEs on this GPU, `pes` the number of all. Collective.
    pub(crate) fn lacks(
        &self,
        table: &Table,
        device: &Device,
        (bytes, align): (usize, Option<usize>),
        (sharing, pes): (usize, usize),
        at: At,
    ) -> Result<Option<String>> {
        let here = self.lacks_here(device, bytes, align, sharing);
        if pes == 1 || self.agree(table, device, here.is_none(), at)? {
            return Ok(here);
        }
        Ok(here.or_else(|| Some("that of another PE cannot grow".to_string())))
    }

    /// Why this PE has no room, as far as it knows.
    fn lacks_here(&self, device: &Device, bytes: usize, align: Option<usize>, sharing: usize) -> Option<String> {
        if self.heap.borrow().fits(bytes, align) {
            return None;
        }
        let step = registration_step();
        let most = bytes.checked_add(align.unwrap_or(1).max(ALIGNMENT));
        let grows = most.and_then(|most| most.checked_next_multiple_of(step)).unwrap_or(usize::MAX);
        let free = device.free_memory();
        let is_enough = grows.saturating_mul(sharing).saturating_add(RESERVE) <= free;
        (!is_enough).then(|| {
            let [grows, free, left] = [grows, free, RESERVE].map(|bytes| bytes >> 20);
            format!(
                "it may have to grow by {grows} MiB, for each of {sharing} PE(s) on this GPU, which has {free} MiB free, \
                 and {left} MiB stay free for others"
            )
        })
    }

    /// Notes an allocation.
    pub(crate) fn took(&self, base: u64, bytes: usize, align: Option<usize>) {
        let end = base + bytes as u64;
        let mapped = if self.registered.get() { end } else { mapped_end(end - 1).unwrap_or(end) };
        self.heap.borrow_mut().took(base, bytes, align, mapped);
    }

    /// Notes that an allocation was freed.
    pub(crate) fn gave_back(&self, base: u64) {
        self.heap.borrow_mut().gave_back(base);
    }

    /// Notes that memory was registered symmetrically.
    pub(crate) fn registered(&self) {
        self.registered.set(true);
    }

    /// Whether every PE says yes.
    fn agree(&self, table: &Table, device: &Device, enough: bool, at: At) -> Result<bool> {
        self.combined(table, device, (WORLD, ReduceOp::Min), [u64::from(enough)], CALL, at).map(|[all]| all == 1)
    }

    /// Reduces the members' words, one by one. Collective over the team.
    pub(crate) fn combined<const WORDS: usize>(
        &self,
        table: &Table,
        device: &Device,
        (team, op): (nvshmem_team_t, ReduceOp),
        mut words: [u64; WORDS],
        call: &'static str,
        at: At,
    ) -> Result<[u64; WORDS]> {
        let reduction = Reduction::of_words(DType::U64, op);
        let Some(reduce) = table.host_reduction(&reduction) else {
            return Err(table.missing_reduction(&reduction, "nvshmem", "", at));
        };
        assert!(8 * WORDS <= SLOTS.start, "{WORDS} words are more than there is room for");
        let (mine, everyones) = (self.first.get(), self.first.get() + (FIRST / 2) as u64);
        // SAFETY: two places in the heap of this many words, each used as one; all members of the team are here. Words are
        // bytes, and any bytes are words.
        unsafe {
            let bytes = std::slice::from_raw_parts_mut(words.as_mut_ptr().cast::<u8>(), 8 * WORDS);
            device.write(mine as CUdeviceptr, bytes, at)?;
            let status = reduce(team, everyones as *mut c_void, mine as *const c_void, WORDS);
            check(status, Form::Reduce.name(), call, at)?;
            device.read(everyones as CUdeviceptr, bytes, at)?;
        }
        Ok(words)
    }
}
