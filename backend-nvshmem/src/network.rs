//! PEs behind a network: those that loads and stores do not reach. There, some calls of the library do not do what NVSHMEM's
//! documentation says. The backend composes these of other calls (`network-…` in `MEASURED.md`):
//!
//! * A get of the host returns before its data has arrived. A put of the host can return before its source has been read,
//!   though rarely. A quiet behind the call waits for that. But the library's quiet also waits for nbi operations of streams to
//!   PEs that loads and stores reach, and such a stream may wait for what this host does next. While there are such operations,
//!   a kernel makes the transfer, and waits for the network only.
//! * There is no `g`. A get brings the value to a *slot*: memory of the heap that the backend has for such purposes.
//! * `put_signal_nbi` on a stream sends data and signal, and no fence between them. Where the transport keeps no order, the
//!   signal may arrive first. The blocking form has a fence there, and is called instead (`stream.rs`).
//! * On a stream, the library reads the value of a `p` when the stream gets there. By then the value is no longer there. So the
//!   stream writes the value to a slot, and puts it from there.
//! * The heap is memory of the host. A copy between two places in memory of the host waits for its stream, so a stream's write
//!   goes through the GPU.
#![allow(unsafe_code)]

use std::cell::RefCell;
use std::ffi::{c_int, c_void};

use cudarc::driver::sys::{self, CUdeviceptr, CUevent_wait_flags, CUstream};
use cudarc::driver::{CudaEvent, CudaStream, DriverError, result};
use onesided::backend::{Op, Span, Values};
use onesided::{At, Backend, DType, Error, ErrorKind, Result};

use crate::cuda::device;
use crate::pe::Nvshmem;
use crate::room::SLOTS;
use crate::table::function;

/// The bytes of a slot: the largest value has 8.
const SLOT: usize = 64;
/// How many slots there are for streams. The last one is the host's.
const COUNT: usize = (SLOTS.end - SLOTS.start) / SLOT - 1;

/// The slots that streams have used. The memory of each follows from its place in the list.
#[derive(Debug, Default)]
pub(crate) struct Slots(RefCell<Vec<Slot>>);

#[derive(Debug)]
struct Slot {
    /// The stream that used it last, and the event behind that use.
    stream: CUstream,
    used: CudaEvent,
}

impl Slots {
    /// The number of a slot for work on this stream, until `used`; `None` if other streams still use all of them. A stream's
    /// own work is in order, so it can use its slot again at once.
    fn take(&self, stream: &CudaStream) -> Result<Option<usize>, DriverError> {
        let mut slots = self.0.borrow_mut();
        let s = stream.cu_stream();
        let own = slots.iter().position(|slot| slot.stream == s);
        let Some(number) = own.or_else(|| slots.iter().position(|slot| slot.used.is_complete())) else {
            if slots.len() == COUNT {
                return Ok(None);
            }
            slots.push(Slot { stream: s, used: stream.context().new_event(None)? });
            return Ok(Some(slots.len() - 1));
        };
        let slot = &mut slots[number];
        slot.stream = s;
        // The stream waits for nothing, unless it has the handle of a stream that was destroyed before its work was done.
        // SAFETY: both are alive.
        unsafe { result::stream::wait_event(s, slot.used.cu_event(), CUevent_wait_flags::CU_EVENT_WAIT_DEFAULT)? };
        Ok(Some(number))
    }

    /// Notes that the last use of a slot is what is enqueued on its stream so far.
    fn used(&self, number: usize) -> Result<(), DriverError> {
        let slot = &self.0.borrow()[number];
        // SAFETY: both are alive, and of the same context.
        unsafe { result::event::record(slot.used.cu_event(), slot.stream) }
    }
}

impl Nvshmem {
    /// Whether a PE is behind a network.
    #[inline]
    pub(crate) fn is_far(&self, pe: u32) -> bool {
        self.reaches_some_only && self.reachable.position(pe as usize).is_none()
    }

    /// Completes what the host has issued to PEs behind the network. Call this only if `quiet_waits_for_streams` is false.
    fn quiet_far(&self, call: &'static str, at: At) -> Result<()> {
        // SAFETY: takes nothing. The context is bound.
        unsafe { function!(self.table, nvshmem_quiet, call, at)() };
        self.unclaimed.clear();
        Ok(())
    }

    /// Whether a quiet of the library would wait for nbi operations to PEs that loads and stores reach.
    fn quiet_waits_for_streams(&self) -> bool {
        self.unclaimed.iter().any(|pe| self.reaches(pe))
    }

    /// Makes transfers of the host to a PE behind the network, all of them puts or all gets, and completes them.
    pub(crate) fn transfer_far(&self, transfers: impl Iterator<Item = Op>, call: &'static str, at: At) -> Result<()> {
        if self.quiet_waits_for_streams() {
            return self.transfer_far_by_kernels(transfers, call, at);
        }
        let put = function!(self.table, nvshmem_putmem_nbi, call, at);
        let get = function!(self.table, nvshmem_getmem_nbi, call, at);
        for transfer in transfers {
            // SAFETY: `Memory` asserts that each operand lies inside a living allocation. The context is bound.
            unsafe {
                match transfer {
                    Op::Put { dst, src, pe, .. } => {
                        put(self.memory.address(dst), self.memory.address(src), src.len, pe as c_int);
                    }
                    Op::Get { dst, src, pe, .. } => {
                        get(self.memory.address(dst), self.memory.address(src), src.len, pe as c_int);
                    }
                    _ => unreachable!("{transfer} is no transfer"),
                }
            }
        }
        self.quiet_far(call, at)
    }

    /// As `transfer_far`, with a kernel for each transfer. The last transfer completes all, because the library's proxy takes
    /// them in order.
    #[cold]
    fn transfer_far_by_kernels(&self, transfers: impl Iterator<Item = Op>, call: &'static str, at: At) -> Result<()> {
        let side = self.device().side(call, at)?;
        let mut transfers = transfers.peekable();
        while let Some(transfer) = transfers.next() {
            let nbi = transfers.peek().is_some();
            let transfer = match transfer {
                Op::Put { dst, src, dtype, pe, .. } => Op::Put { dst, src, dtype, pe, nbi, signal: None },
                Op::Get { dst, src, dtype, pe, .. } => Op::Get { dst, src, dtype, pe, nbi },
                _ => unreachable!("{transfer} is no transfer"),
            };
            self.issue_on(&transfer, &Values::NONE, side, at)?;
        }
        side.synchronize().map_err(|error| device(call, error, at))
    }

    fn slot(&self, number: usize) -> CUdeviceptr {
        self.memory.room.first() + (SLOTS.start + number * SLOT) as u64
    }

    /// Fetches a value from a PE behind the network. Returns its bits.
    pub(crate) fn fetch_far(&self, src: Span, dtype: DType, pe: u32, at: At) -> Result<u64> {
        const CALL: &str = "g";
        let (slot, size) = (self.slot(COUNT), dtype.size());
        let side = self.device().side(CALL, at)?;
        // SAFETY: the slot is memory of the heap that only the host uses, and its calls come one after the other. It has 8 bytes.
        // The source is an operand that `Memory` has found inside a living allocation. The context is bound.
        let word = unsafe {
            let (to, from, pe) = (slot as *mut c_void, self.memory.address(src), pe as c_int);
            if self.quiet_waits_for_streams() {
                function!(self.table, nvshmemx_getmem_on_stream, CALL, at)(to, from, size, pe, side.cu_stream().cast());
            } else {
                function!(self.table, nvshmem_getmem, CALL, at)(to, from, size, pe);
                self.quiet_far(CALL, at)?;
            }
            self.device().read_word(slot, side, CALL, at)?
        };
        Ok(word & (u64::MAX >> (64 - 8 * size))) // what stands behind the value is older
    }

    /// Enqueues a `p` to a PE behind the network.
    #[cold]
    pub(crate) fn put_value_far(
        &self,
        (dst, dtype, pe): (Span, DType, u32),
        value: u64,
        stream: &CudaStream,
        at: At,
    ) -> Result<()> {
        const CALL: &str = "p";
        let wrong = |error| device(CALL, error, at);
        let put = function!(self.table, nvshmemx_putmem_on_stream, CALL, at);
        let Some(number) = self.slots.take(stream).map_err(wrong)? else {
            let message =
                format!("{COUNT} streams have values under way to PEs behind the network; synchronize some of them");
            return Err(Error::new(ErrorKind::OutOfMemory, CALL, message, at));
        };
        let (slot, size) = (self.slot(number), dtype.size());
        // SAFETY: only this stream uses the slot, in order, until what is recorded behind the put has been reached. `Memory`
        // asserts that the target lies inside a living allocation. The context is bound.
        let enqueued = unsafe { set(slot, value, size, stream) }.map_err(wrong);
        if enqueued.is_ok() {
            // SAFETY: as above.
            unsafe {
                let (dst, s) = (self.memory.address(dst), stream.cu_stream().cast());
                put(dst, slot as *const c_void, size, pe as c_int, s);
            }
        }
        enqueued.and(self.slots.used(number).map_err(wrong))
    }
}

/// Enqueues the write of a value of so many bytes. The call keeps the value: nothing is read later.
///
/// # Safety
/// `dst` must be such memory, of the heap, that nothing else uses until the write has run.
unsafe fn set(dst: CUdeviceptr, value: u64, bytes: usize, stream: &CudaStream) -> Result<(), DriverError> {
    let s = stream.cu_stream();
    // SAFETY: the caller's promise; the address is aligned as a slot is.
    unsafe {
        match bytes {
            1 => sys::cuMemsetD8Async(dst, value as u8, 1, s).result(),
            2 => sys::cuMemsetD16Async(dst, value as u16, 1, s).result(),
            4 => sys::cuMemsetD32Async(dst, value as u32, 1, s).result(),
            _ => {
                sys::cuMemsetD32Async(dst, value as u32, 1, s).result()?;
                sys::cuMemsetD32Async(dst + 4, (value >> 32) as u32, 1, s).result()
            }
        }
    }
}
