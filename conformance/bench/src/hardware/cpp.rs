//! The loops of `../peers/nvshmem_loops.cpp`, opened by a process of ours: C++ in the place of the API, on the same
//! memory and stream.
#![allow(unsafe_code)]

use std::error::Error as _;
use std::ffi::{c_int, c_void};
use std::mem::ManuallyDrop;
use std::path::Path;

use libloading::Library;
use onesided::{At, Element, Error, ErrorKind, Own, Pe, Result, Stream};
use onesided_nvshmem::{DeviceAccess, Nvshmem};

use super::loops::{Calls, Loops, Operands};

/// `cudaStream_t`.
type RawStream = *mut c_void;

type Status = unsafe extern "C" fn() -> c_int;
type Put = unsafe extern "C" fn(u32, *mut c_void, *const c_void, usize, RawStream);
type HostGet = unsafe extern "C" fn(u32, *mut c_void, *const c_void, usize);
type PingPong = unsafe extern "C" fn(u32, *mut c_void, *const c_void, usize, *mut u64, u64, c_int, RawStream);
type Barrier = unsafe extern "C" fn(u32, RawStream);
type Reduce = unsafe extern "C" fn(u32, *mut f32, *const f32, usize, RawStream) -> c_int;
type Launch = unsafe extern "C" fn(u32, c_int, *mut c_void, *const c_void, *mut u64, c_int, RawStream) -> c_int;

/// `nvshmemx_init_status` of a library that can communicate: initialized, with or without limits of sharing a GPU.
const INITIALIZED: c_int = 2;

/// The loops of a shared object, which stays open for good, as the library does that it needs.
#[derive(Debug)]
pub(super) struct Cpp {
    put: Put,
    get: Put,
    host_get: HostGet,
    ping_pong: PingPong,
    barrier: Barrier,
    reduce: Reduce,
    launch: Launch,
}

impl Cpp {
    /// Opens the object of a PE's process, whose library has been initialized.
    ///
    /// # Errors
    /// In words: it cannot be opened, is not what it should be, or would call another copy of the library.
    pub(super) fn open(file: &Path) -> std::result::Result<Cpp, String> {
        let wrong = |error: libloading::Error| {
            let why = error.source().map_or_else(|| error.to_string(), ToString::to_string);
            format!("the C++ loops cannot be opened: {why}")
        };
        // SAFETY: the object has no initializer of its own, and the library that it needs is open already. The types are
        // those of nvshmem_loops.cpp, and the functions stay where they are because the object is never closed.
        unsafe {
            let object = ManuallyDrop::new(Library::new(file).map_err(wrong)?);
            let status: Status = *object.get("loop_status").map_err(wrong)?;
            let status = status();
            if status < INITIALIZED {
                return Err(format!("the C++ loops would call another copy of the library: its status is {status}"));
            }
            Ok(Cpp {
                put: *object.get("loop_put").map_err(wrong)?,
                get: *object.get("loop_get").map_err(wrong)?,
                host_get: *object.get("loop_host_get").map_err(wrong)?,
                ping_pong: *object.get("loop_ping_pong").map_err(wrong)?,
                barrier: *object.get("loop_barrier").map_err(wrong)?,
                reduce: *object.get("loop_reduce").map_err(wrong)?,
                launch: *object.get("loop_launch").map_err(wrong)?,
            })
        }
    }
}

impl Loops<Nvshmem> for Cpp {
    fn issue(
        &self,
        pe: &Pe<Nvshmem>,
        stream: &Stream<Nvshmem>,
        calls: Calls<'_, Nvshmem>,
        operations: u32,
    ) -> Result<()> {
        let stream: RawStream = stream.backend_stream().cuda().cu_stream().cast();
        match calls {
            Calls::Put { dst, src }
            | Calls::Get { dst, src }
            | Calls::HostGet { dst, src }
            | Calls::PingPong { dst, src, .. } => assert_eq!(dst.len(), src.len()),
            Calls::Reduce { sums, addends } => assert_eq!(sums.len(), addends.len()),
            Calls::Barrier | Calls::Launch { .. } => {}
            Calls::Device { .. } => return Err(Error::wrong_result("no C++ makes calls of kernels here".to_string())),
        }
        let failed = |call: &'static str, what: &str, status: c_int| {
            Err(Error::new(ErrorKind::Device, call, format!("{what} returned status {status}"), At::caller()))
        };
        // SAFETY: the addresses are those of whole views, and the lengths are theirs, as was just asserted; a flag has a
        // word. The measurements wait for the stream before they free the memory, and free nothing after an error. They
        // have called the API on this thread before, which bound the context. PE 1 exists: a job has two PEs.
        unsafe {
            match calls {
                Calls::Put { dst, src } => {
                    (self.put)(operations, address(pe, dst), address(pe, src), src.len(), stream);
                }
                Calls::Get { dst, src } => {
                    (self.get)(operations, address(pe, dst), address(pe, src), src.len(), stream);
                }
                Calls::HostGet { dst, src } => {
                    (self.host_get)(operations, address(pe, dst), address(pe, src), src.len());
                }
                Calls::PingPong { dst, src, flag, turn } => {
                    let flag = flag.slice(..1);
                    let (me, bytes, flag) = (pe.my_pe() as c_int, src.len(), address(pe, flag).cast());
                    (self.ping_pong)(operations, address(pe, dst), address(pe, src), bytes, flag, turn, me, stream);
                }
                Calls::Barrier => (self.barrier)(operations, stream),
                Calls::Reduce { sums, addends } => {
                    let (to, from) = (address(pe, sums).cast(), address(pe, addends).cast());
                    let status = (self.reduce)(operations, to, from, sums.len(), stream);
                    if status != 0 {
                        return failed("reduce", "nvshmemx_float_sum_reduce_on_stream", status);
                    }
                }
                Calls::Launch { is_cooperative, operands, .. } => {
                    let Operands { dst, src, flag } = operands;
                    let (to, from, flag) = (address(pe, dst), address(pe, src), address(pe, flag.slice(..1)).cast());
                    let count = operands.count();
                    let status = (self.launch)(operations, is_cooperative.into(), to, from, flag, count, stream);
                    if status != 0 {
                        return failed("launch", "a call of CUDA", status);
                    }
                }
                Calls::Device { .. } => {}
            }
        }
        Ok(())
    }
}

/// The address of my memory.
///
/// # Safety
/// As [`DeviceAccess::device_ptr`].
unsafe fn address<T: Element>(pe: &Pe<Nvshmem>, view: impl Own<T>) -> *mut c_void {
    // SAFETY: the caller's promise.
    unsafe { pe.device_ptr(view).expect("memory that this PE made") as *mut c_void }
}

#[cfg(test)]
mod tests {
    use onesided_nvshmem::HostLibrary;

    use super::super::super::peers::Nvshmem;
    use super::Cpp;

    /// The genuine library, which no test initializes: the loops find it, and say that it is not the one of a PE.
    #[test]
    fn loops_of_a_library_that_is_not_initialized_are_refused() {
        let Ok(HostLibrary { file: library, .. }) = onesided_nvshmem::host_library(None) else {
            println!("not run: no library");
            return;
        };
        let nvshmem = match Nvshmem::compile(&library) {
            Ok(nvshmem) => nvshmem,
            Err(why) => {
                println!("not run: {why}"); // whether it should compile is tested beside it
                return;
            }
        };
        let why = Cpp::open(&nvshmem.compile_loops().unwrap()).unwrap_err();
        assert_eq!(why, "the C++ loops would call another copy of the library: its status is 0");
    }

    #[test]
    fn what_is_no_object_is_refused_with_the_reason() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("loops.so");
        for content in [None, Some("no object")] {
            if let Some(content) = content {
                std::fs::write(&file, content).unwrap();
            }
            let why = Cpp::open(&file).unwrap_err();
            assert!(why.starts_with("the C++ loops cannot be opened: ") && why.contains("loops.so"), "{why}");
        }
    }
}
