//! [`Memory`]: the addresses of the allocations that operations name.
#![allow(unsafe_code)]

use std::cell::{Cell, Ref, RefCell};
use std::ffi::{c_int, c_void};

use cudarc::driver::sys::CUdeviceptr;
use onesided::backend::{AllocId, Layout, Span};
use onesided::{At, Error, ErrorKind, Result, count};

use crate::capabilities::{HeapKind, NO_REGISTRATION, no_registration};
use crate::cuda::{self, Device};
use crate::room::Room;
use crate::table::{Table, function};
use crate::vmm::Mapping;

/// All memory of this PE that operations may name.
///
/// Symmetric memory is numbered in the order of the collective calls that made it. So a number means the same on every PE.
/// Numbers are not used twice.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    symmetric: RefCell<Vec<Region>>,
    external: RefCell<Vec<Option<Mapping>>>,
    pub(crate) room: Room,
    pub(crate) heap: Cell<HeapKind>,
}

/// A range of addresses; empty after it was freed.
#[derive(Clone, Copy, Debug, Default)]
struct Region {
    base: u64,
    len: usize,
    /// The number of the external allocation, for registered memory.
    registered: Option<u32>,
}

/// Turns the status of a library function into an error, unless it is 0.
#[inline]
pub(crate) fn check(status: c_int, symbol: &str, call: &'static str, at: At) -> Result<()> {
    if status == 0 { Ok(()) } else { Err(refused(status, symbol, call, at)) }
}

#[cold]
fn refused(status: c_int, symbol: &str, call: &'static str, at: At) -> Error {
    Error::new(ErrorKind::Device, call, format!("{symbol} returned {status} ({})", status_name(status)), at)
}

/// NVSHMEM's name of a status.
fn status_name(status: c_int) -> &'static str {
    match status {
        1 => "invalid value",
        2 => "out of memory",
        3 => "not supported",
        4 => "symmetry",
        5 => "no GPU selected",
        6 => "collective launch failed",
        7 => "internal error",
        _ => "unknown status",
    }
}

impl Memory {
    /// Whether a span is memory of the host.
    #[inline]
    pub(crate) fn is_host(&self, span: Span) -> bool {
        self.heap.get().is_host && span.alloc.external().is_none()
    }

    /// The address of a span's first byte.
    ///
    /// # Panics
    /// When the span is not inside a living allocation: `Pe` has checked that, and memory safety depends on it.
    #[inline]
    pub(crate) fn address(&self, span: Span) -> *mut c_void {
        let (base, len) = match span.alloc.external() {
            None => {
                let region = self.symmetric.borrow()[span.alloc.0 as usize];
                (region.base, region.len)
            }
            Some(number) => self.external(number),
        };
        if span.start.checked_add(span.len).is_none_or(|end| end > len) {
            outside(span);
        }
        (base + span.start as u64) as *mut c_void
    }

    #[inline(never)] // symmetric memory is what operations have most
    fn external(&self, number: u32) -> (u64, usize) {
        let mapping = self.mapping(number);
        (mapping.address(), mapping.size())
    }

    fn mapping(&self, number: u32) -> Ref<'_, Mapping> {
        Ref::map(self.external.borrow(), |all| all[number as usize].as_ref().expect("external memory that was freed"))
    }

    /// Symmetric memory (`nvshmem_malloc`, `nvshmem_calloc`, `nvshmem_align`).
    ///
    /// `sharing` is the number of PEs on this GPU, `pes` that of all.
    pub(crate) fn alloc(
        &self,
        table: &Table,
        device: &Device,
        layout: Layout,
        (sharing, pes): (usize, usize),
        at: At,
    ) -> Result<AllocId> {
        const CALL: &str = "alloc";
        let Layout { bytes, align, zeroed } = layout;
        device.bind(CALL, at)?;
        // The library may end the process if the heap cannot grow.
        if let Some(why) = self.room.lacks(table, device, (bytes, align), (sharing, pes), at)? {
            return Err(no_room(bytes, &why, at));
        }
        let base = match (align, zeroed) {
            // SAFETY: the size is not 0.
            (None, false) => unsafe { function!(table, nvshmem_malloc, CALL, at)(bytes) },
            // One element of all bytes, because 3.4.5 grows the heap by the size of one element only.
            // SAFETY: neither number is 0 and their product is `bytes`.
            (None, true) => unsafe { function!(table, nvshmem_calloc, CALL, at)(1, bytes) },
            // SAFETY: `Pe` checked that the alignment is a power of two, at least 8.
            (Some(align), _) => unsafe { function!(table, nvshmem_align, CALL, at)(align, bytes) },
        };
        if base.is_null() {
            return Err(no_room(bytes, "the library has none", at));
        }
        self.room.took(base as u64, bytes, align);
        let alloc = self.adopt(Region { base: base as u64, len: bytes, registered: None });
        if zeroed && align.is_some() {
            // SAFETY: just allocated with this size. The barrier makes the zeros older than anything others put there;
            // they count on it also where this PE has failed.
            unsafe {
                let done = device.zero(base as CUdeviceptr, bytes, at);
                function!(table, nvshmem_barrier_all, CALL, at)();
                done?;
            }
        }
        Ok(alloc)
    }

    fn adopt(&self, region: Region) -> AllocId {
        let mut symmetric = self.symmetric.borrow_mut();
        symmetric.push(region);
        AllocId(symmetric.len() as u32 - 1)
    }

    /// Frees symmetric memory (`nvshmem_free`).
    pub(crate) fn free(&self, table: &Table, device: &Device, alloc: AllocId, at: At) -> Result<()> {
        device.bind("free", at)?;
        let free = function!(table, nvshmem_free, "free", at);
        let region = std::mem::take(&mut self.symmetric.borrow_mut()[alloc.0 as usize]);
        assert!(region.base != 0 && region.registered.is_none(), "{alloc} is no allocation that can be freed");
        // SAFETY: the start of an allocation that has not been freed: it was forgotten in the line above.
        unsafe { free(region.base as *mut c_void) };
        self.room.gave_back(region.base);
        Ok(())
    }

    /// Device memory outside the heap, zeroed.
    pub(crate) fn alloc_external(&self, device: &Device, bytes: usize, at: At) -> Result<AllocId> {
        const CALL: &str = "alloc_external";
        device.bind(CALL, at)?;
        let mapping = Mapping::new(device.context(), bytes).map_err(|error| cuda::device(CALL, error, at))?;
        // SAFETY: just mapped with this size.
        unsafe { device.zero(mapping.address(), mapping.size(), at)? };
        let mut external = self.external.borrow_mut();
        external.push(Some(mapping));
        Ok(AllocId::new_external(external.len() as u32 - 1))
    }

    /// Frees it.
    pub(crate) fn free_external(&self, device: &Device, alloc: AllocId, at: At) -> Result<()> {
        // Unmapping memory under a copy would fault.
        device.synchronize("free_external", at)?;
        let number = alloc.external().expect("external memory");
        let mapping = self.external.borrow_mut()[number as usize].take();
        assert!(mapping.is_some(), "{alloc} was freed before");
        Ok(())
    }

    /// Makes external memory a local operand (`nvshmemx_buffer_register`).
    pub(crate) fn register_local(&self, table: &Table, device: &Device, alloc: AllocId, at: At) -> Result<()> {
        const CALL: &str = "register_local";
        if let Some(why) = no_registration(self.heap.get(), table.version) {
            let message = format!("{why}; remedy: NVSHMEM 3.8 or later, or a heap on the GPU");
            return Err(Error::new(ErrorKind::Unsupported, CALL, message, at));
        }
        device.bind(CALL, at)?;
        let register = function!(table, nvshmemx_buffer_register, CALL, at);
        let mapping = self.mapping(alloc.external().expect("external memory"));
        // SAFETY: the whole of a mapping, which stays until it is unregistered: the API's handles see to that.
        let status = unsafe { register(mapping.address() as *mut c_void, mapping.size()) };
        if status == 0 { Ok(()) } else { Err(not_registered(status, mapping.size(), self.heap.get(), at)) }
    }

    /// Ends that (`nvshmemx_buffer_unregister`).
    pub(crate) fn unregister_local(&self, table: &Table, device: &Device, alloc: AllocId, at: At) -> Result<()> {
        const CALL: &str = "unregister_local";
        device.synchronize(CALL, at)?;
        let unregister = function!(table, nvshmemx_buffer_unregister, CALL, at);
        let mapping = self.mapping(alloc.external().expect("external memory"));
        // SAFETY: an address that was registered.
        let status = unsafe { unregister(mapping.address() as *mut c_void) };
        check(status, "nvshmemx_buffer_unregister", CALL, at)
    }

    /// Makes external memory symmetric (`nvshmemx_buffer_register_symmetric`): it then has a second address.
    pub(crate) fn register_symmetric(&self, table: &Table, device: &Device, alloc: AllocId, at: At) -> Result<AllocId> {
        const CALL: &str = "register_symmetric";
        device.bind(CALL, at)?;
        let register = function!(table, nvshmemx_buffer_register_symmetric, CALL, at);
        let number = alloc.external().expect("external memory");
        let (address, len) = {
            let mapping = self.mapping(number);
            (mapping.address(), mapping.size())
        };
        if self.heap.get().is_host {
            return Err(Error::new(ErrorKind::Unsupported, CALL, NO_REGISTRATION, at));
        }
        self.room.registered();
        // SAFETY: the whole of a mapping of CUDA's virtual memory management, which stays until it is unregistered.
        let base = unsafe { register(address as *mut c_void, len, 0) };
        if base.is_null() {
            let message = "nvshmemx_buffer_register_symmetric returned no address".to_string();
            return Err(Error::new(ErrorKind::Device, CALL, message, at));
        }
        Ok(self.adopt(Region { base: base as u64, len, registered: Some(number) }))
    }

    /// Ends that (`nvshmemx_buffer_unregister_symmetric`).
    pub(crate) fn unregister_symmetric(&self, table: &Table, device: &Device, alloc: AllocId, at: At) -> Result<()> {
        const CALL: &str = "unregister_symmetric";
        device.synchronize(CALL, at)?;
        let unregister = function!(table, nvshmemx_buffer_unregister_symmetric, CALL, at);
        let barrier_all = function!(table, nvshmem_barrier_all, CALL, at);
        let region = self.symmetric.borrow()[alloc.0 as usize];
        assert!(region.registered.is_some(), "{alloc} is no registered memory");
        // SAFETY: registered with this address and size. The barrier first: no PE's transfer may still be under way when
        // the address goes.
        let status = unsafe {
            barrier_all();
            unregister(region.base as *mut c_void, region.len)
        };
        check(status, "nvshmemx_buffer_unregister_symmetric", CALL, at)?;
        self.symmetric.borrow_mut()[alloc.0 as usize] = Region::default();
        Ok(())
    }
}

#[cold]
fn outside(span: Span) -> ! {
    panic!("{span} is outside its allocation")
}

/// The library refused to register memory of the GPU: its own reason, and what may help.
#[cold]
fn not_registered(status: c_int, bytes: usize, heap: HeapKind, at: At) -> Error {
    let kind = match status {
        2 => ErrorKind::OutOfMemory,
        3 => ErrorKind::Unsupported,
        _ => ErrorKind::Device,
    };
    let (bytes, name) = (count(bytes, "byte"), status_name(status));
    let beside = match heap.is_host {
        true => "; the heap is memory of the host (NVSHMEM_HEAP_KIND=SYSMEM); remedy: a heap on the GPU",
        false => "",
    };
    let message = format!("nvshmemx_buffer_register of {bytes} of the GPU returned {status} ({name}){beside}");
    Error::new(kind, "register_local", message, at)
}

fn no_room(bytes: usize, why: &str, at: At) -> Error {
    let message = format!("the symmetric heap has no room for {}: {why}", count(bytes, "byte"));
    Error::new(ErrorKind::OutOfMemory, "alloc", message, at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_registration_fails_for_a_reason() {
        let host = HeapKind { is_host: true, loses_updates: false };
        let error = |status, heap| not_registered(status, 2 << 20, heap, At::caller());
        let kinds = [1, 2, 3, 7].map(|status| error(status, HeapKind::default()).kind());
        assert_eq!(kinds, [ErrorKind::Device, ErrorKind::OutOfMemory, ErrorKind::Unsupported, ErrorKind::Device]);
        let said = error(7, host).to_string();
        assert!(
            said.contains("2097152 bytes of the GPU returned 7 (internal error); the heap is memory of the host"),
            "{said}"
        );
    }

    #[test]
    fn a_span_inside_its_allocation_has_an_address() {
        let memory = Memory::default();
        let alloc = memory.adopt(Region { base: 0x1000, len: 64, registered: None });
        assert_eq!(memory.address(Span { alloc, start: 8, len: 56 }) as u64, 0x1008);
    }

    #[test]
    #[should_panic(expected = "outside its allocation")]
    fn a_span_past_the_end_has_none() {
        let memory = Memory::default();
        let alloc = memory.adopt(Region { base: 0x1000, len: 64, registered: None });
        memory.address(Span { alloc, start: 8, len: 57 });
    }

    #[test]
    fn a_status_is_named() {
        let at = At::caller();
        assert!(check(0, "f", "call", at).is_ok());
        let error = check(7, "nvshmem_barrier", "barrier", at).unwrap_err();
        assert_eq!((error.kind(), error.message()), (ErrorKind::Device, "nvshmem_barrier returned 7 (internal error)"));
    }
}
