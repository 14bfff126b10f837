//! Atomics of the host. libnvshmem exports them as stubs, so a kernel of one thread calls those of the device, on the stream on which
//! the backend runs other operations of the host.
//!
//! The host waits for an atomic that fetches, and the kernel writes the old value to page-locked memory of the host. An atomic
//! that does not fetch is complete when the stream is. A quiet of the host waits for the stream, as it does for signals.
#![allow(unsafe_code)]

use std::cell::OnceCell;
use std::ffi::c_void;

use cudarc::driver::result;
use cudarc::driver::sys::CU_MEMHOSTALLOC_PORTABLE;
use onesided::backend::{AmoOp, Op};
use onesided::{At, Error, ErrorKind, Result, Source};
use onesided_compile::gpu::{self, Installation, LinkOptions};

use crate::capabilities::{HeapKind, LOSES};
use crate::code::{Code, refused};
use crate::cuda::device;
use crate::kernels::{self, Function};
use crate::pe::Nvshmem;
use crate::table::Table;

const TEXT: &str = include_str!("atomics.cu");

/// The kernel, as a module of its own.
pub(crate) fn source() -> Source {
    Source::cuda("atomics.cu", TEXT)
}

const KERNEL: &str = "onesided_atomic";

/// Why the kernel must not run there: it would wait for ever.
const HANGS: &str =
    "the heap is memory of the host (NVSHMEM_HEAP_KIND=SYSMEM), where atomics of libraries before 3.8 do not end";

/// The first version whose atomics end there.
const ENDS: [i32; 3] = [3, 8, 0];

/// The kernel, when it is loaded.
#[derive(Debug, Default)]
pub(crate) struct Atomics {
    /// Why there are none, once somebody has asked.
    missing: OnceCell<Option<&'static str>>,
    loaded: OnceCell<Loaded>,
}

#[derive(Debug)]
struct Loaded {
    function: Function,
    /// A word of page-locked memory. The process keeps it.
    answer: *mut u64,
}

impl Atomics {
    /// Why atomics do not work here. Looks, the first time, whether what is needed is installed; compiles nothing.
    pub(crate) fn support(&self, table: &Table, heap: HeapKind) -> Option<&'static str> {
        *self.missing.get_or_init(|| {
            if heap.is_host && table.version < ENDS {
                return Some(HANGS);
            }
            if heap.loses_updates {
                return Some(LOSES);
            }
            let installed = Installation::of(&table.file, table.version);
            let ready = installed.and_then(|_| gpu::ready(&LinkOptions::new("sm_90")));
            ready.err().map(|why| {
                let why = format!("libnvshmem has stubs for them, and the kernel in their place cannot be made: {why}");
                &*Box::leak(why.into_boxed_str()) // once for a PE
            })
        })
    }
}

impl Nvshmem {
    /// Performs an atomic of the host. Returns the old value's bits if it fetches, else 0.
    pub(crate) fn atomic_from_host(&self, op: &Op, at: At) -> Result<u64> {
        let call = op.name();
        let Op::Amo { dst, dtype, op: what, value, cond, fetch, pe } = *op else { unreachable!("an atomic") };
        let Loaded { function, answer } = *self.atomics(call, at)?;
        let fetches = fetch || what == AmoOp::Fetch;
        let side = self.device().side(call, at)?;
        let mut word = self.memory.address(dst);
        let (mut value, mut cond, mut answer_at) = (value, cond, answer.cast::<c_void>());
        let mut numbers = [number(what), dtype.size() as i32, i32::from(fetches), pe as i32];
        let [op_at, size_at, fetches_at, pe_at] = numbers.each_mut().map(|number| (&raw mut *number).cast::<c_void>());
        let mut arguments: [*mut c_void; 8] = [
            (&raw mut word).cast(),
            (&raw mut value).cast(),
            (&raw mut cond).cast(),
            op_at,
            size_at,
            fetches_at,
            pe_at,
            (&raw mut answer_at).cast(),
        ];
        let one = (1, 1, 1);
        // SAFETY: the arguments have the types of the kernel's parameters, and live until the call returns. The word lies inside a
        // living allocation, as `Memory` asserts, and has the size of its type; the PE exists.
        let launched = unsafe { result::launch_kernel(function.0, one, one, 0, side.cu_stream(), &mut arguments) };
        launched.map_err(|error| device(call, error, at))?;
        if !fetches {
            self.side_used.set(true);
            return Ok(0);
        }
        side.synchronize().map_err(|error| device(call, error, at))?;
        // SAFETY: a word of the host's memory, which the kernel has written and nobody writes now.
        Ok(unsafe { answer.read_volatile() })
    }

    /// The kernel; compiled, linked and loaded when first needed.
    fn atomics(&self, call: &'static str, at: At) -> Result<&Loaded> {
        if let Some(loaded) = self.atomics.loaded.get() {
            return Ok(loaded);
        }
        if let Some(why) = self.atomics.support(self.table, self.memory.heap.get()) {
            return Err(Error::new(ErrorKind::Unsupported, call, why, at));
        }
        let architecture = self.device().architecture(call, at)?;
        let source = source();
        let installation = Installation::of(&self.table.file, self.table.version);
        let linked =
            Code::of(&source, architecture).and_then(|(code, _)| code.linked(&source, &installation?, architecture));
        let linked = linked.map_err(|why| refused(&why, call, at))?;
        let module = self.load_cubin(&linked, call, at)?;
        let function = kernels::function(module, KERNEL, call, at)?;
        // SAFETY: 8 bytes, which are written before they are read.
        let answer = unsafe { result::malloc_host(size_of::<u64>(), CU_MEMHOSTALLOC_PORTABLE) };
        let answer = answer.map_err(|error| device(call, error, at))?.cast();
        Ok(self.atomics.loaded.get_or_init(|| Loaded { function, answer }))
    }
}

/// As the kernel numbers them.
fn number(op: AmoOp) -> i32 {
    match op {
        AmoOp::Fetch => 0,
        AmoOp::Set => 1,
        AmoOp::Add => 2,
        AmoOp::And => 3,
        AmoOp::Or => 4,
        AmoOp::Xor => 5,
        AmoOp::CompareSwap => 6,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The enumeration of `atomics.cu`.
    #[test]
    fn operations_have_the_kernels_numbers() {
        let names = TEXT.split_once("enum {").unwrap().1.split_once('}').unwrap().0;
        let names: Vec<String> = names.split(',').map(|name| name.trim().to_lowercase()).collect();
        for op in AmoOp::ALL {
            assert_eq!(format!("atomic_{}", names[number(op) as usize]), op.verb(false));
        }
    }
}
