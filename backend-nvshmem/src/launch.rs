//! Launches kernels, with what they would otherwise fail for checked before; and says of a fault which kernels ran.
#![allow(unsafe_code)]

use std::cell::RefCell;
use std::convert::Infallible;
use std::ffi::{c_int, c_void};

use cudarc::driver::sys::{self, CUdevice_attribute, CUfunction_attribute, CUresult};
use cudarc::driver::{CudaStream, DriverError, result};
use onesided::backend::{ArgumentValue, LaunchRequest};
use onesided::{At, Error, Grid, Result, Together};

use crate::cuda::device;
use crate::kernels::{CudaModule, Function};
use crate::pe::Nvshmem;

const CALL: &str = "launch";

/// Shared memory that a kernel may have without asking for more.
const PLAIN_SHARED: u32 = 48 << 10;

/// As many launches are remembered for the error of a fault.
const REMEMBERED: usize = 32;

/// Kernels that may still run: for the error, if one of them faults.
#[derive(Debug, Default)]
pub(crate) struct Launched(RefCell<Vec<(usize, String, At)>>);

impl Launched {
    fn add(&self, stream: &CudaStream, name: &str, at: At) {
        let mut all = self.0.borrow_mut();
        let own = (stream.cu_stream() as usize, name.to_string(), at);
        if !all.contains(&own) {
            if all.len() == REMEMBERED {
                all.remove(0);
            }
            all.push(own);
        }
    }

    /// Notes that everything on a stream has ended; on all streams if `None`.
    pub(crate) fn ended(&self, stream: Option<&CudaStream>) {
        let mut all = self.0.borrow_mut();
        match stream {
            Some(stream) => all.retain(|(its, _, _)| *its != stream.cu_stream() as usize),
            None => all.clear(),
        }
    }

    /// The error of a call in which CUDA failed. If a kernel has faulted, with the kernels that may have been it.
    #[cold]
    pub(crate) fn fault(&self, call: &'static str, error: DriverError, at: At) -> Error {
        let plain = device(call, error, at);
        let all = self.0.borrow();
        if all.is_empty() || !is_fault(error.0) {
            return plain;
        }
        let message = format!("{}; {}", plain.message(), which(&all));
        Error::new(plain.kind(), call, message, at)
    }
}

/// Which kernels it may have been, the last first.
fn which(launched: &[(usize, String, At)]) -> String {
    let kernels: Vec<_> =
        launched.iter().rev().map(|(_, name, at)| format!("{name}, launched at {}:{}", at.file(), at.line())).collect();
    let one = if kernels.len() == 1 { "in the kernel" } else { "in one of the kernels" };
    format!("{one} {}; no call of CUDA works in this process any more", kernels.join("; "))
}

/// Whether a kernel's own mistake leads to this error.
fn is_fault(error: CUresult) -> bool {
    use CUresult as E;
    matches!(
        error,
        E::CUDA_ERROR_ILLEGAL_ADDRESS
            | E::CUDA_ERROR_LAUNCH_FAILED
            | E::CUDA_ERROR_LAUNCH_TIMEOUT
            | E::CUDA_ERROR_ASSERT
            | E::CUDA_ERROR_HARDWARE_STACK_ERROR
            | E::CUDA_ERROR_ILLEGAL_INSTRUCTION
            | E::CUDA_ERROR_MISALIGNED_ADDRESS
            | E::CUDA_ERROR_INVALID_ADDRESS_SPACE
            | E::CUDA_ERROR_INVALID_PC
    )
}

impl Nvshmem {
    /// Enqueues a kernel.
    pub(crate) fn launch_kernel(
        &self,
        request: &LaunchRequest<'_, CudaModule>,
        stream: &CudaStream,
        at: At,
    ) -> Result<()> {
        self.device().bind(CALL, at)?;
        let function = request.module.functions[request.kernel];
        let Grid { blocks, threads, shared, together } = *request.grid;
        self.check_fits(function, request, at)?;
        let (mut values, offsets) = self.values(request.arguments);
        let base = values.as_mut_ptr();
        // SAFETY: each offset lies inside the values, which are not moved until the call returns.
        let mut pointers: Vec<*mut c_void> =
            offsets.into_iter().map(|offset| unsafe { base.add(offset) }.cast()).collect();
        let ([x, y, z], [tx, ty, tz]) = (blocks, threads);
        let (grid, block, s) = ((x, y, z), (tx, ty, tz), stream.cu_stream());
        // SAFETY: a kernel of a loaded module of the context that is bound, and as many pointers to values as it has parameters,
        // each of the parameter's size, as `Pe` checked. What the kernel does with them is the caller's promise.
        let launched = unsafe {
            match together {
                Together::Nothing => result::launch_kernel(function.0, grid, block, shared, s, &mut pointers),
                // `nvshmemx_collective_launch` takes kernels of the runtime API only. It does this, on a stream of its own.
                Together::Grid | Together::AllPes => {
                    result::launch_cooperative_kernel(function.0, grid, block, shared, s, &mut pointers)
                }
            }
        };
        launched.map_err(|error| self.launched.fault(CALL, error, at))?;
        self.launched.add(stream, request.name, at);
        Ok(())
    }

    /// The arguments' values, and where each begins, counted in words.
    fn values(&self, arguments: &[ArgumentValue]) -> (Vec<u64>, Vec<usize>) {
        let (mut values, mut offsets) = (Vec::new(), Vec::with_capacity(arguments.len()));
        for argument in arguments {
            offsets.push(values.len());
            let mut address = |span| Ok::<_, Infallible>(self.memory.address(span) as u64);
            let Ok(bytes) = argument.bytes(&mut address, &|team| self.handle(team) as u32);
            values.extend(bytes.chunks(8).map(|chunk| {
                let mut word = [0; 8];
                word[..chunk.len()].copy_from_slice(chunk);
                u64::from_ne_bytes(word)
            }));
        }
        values.push(0); // an empty structure points there
        (values, offsets)
    }

    /// Whether the GPU can run it: threads of a block, shared memory, and blocks that must run at the same time.
    fn check_fits(&self, function: Function, request: &LaunchRequest<'_, CudaModule>, at: At) -> Result<()> {
        let Grid { blocks, threads, shared, together } = *request.grid;
        let name = request.name;
        let refuse = |why: String| Err(Error::invalid(CALL, format!("{name}: {why}"), at));
        let failed = |error| device(CALL, error, at);
        let per_block: u32 = threads.iter().product();
        use CUfunction_attribute as F;
        let most = attribute(function, F::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK).map_err(failed)?;
        if per_block > most {
            let registers = attribute(function, F::CU_FUNC_ATTRIBUTE_NUM_REGS).map_err(failed)?;
            return refuse(format!(
                "{per_block} threads in a block; with {registers} registers a thread it runs {most}"
            ));
        }
        if shared > PLAIN_SHARED {
            let own = attribute(function, F::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES).map_err(failed)?;
            use CUdevice_attribute as D;
            let most = self.device().attribute(D::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, CALL, at)?;
            if u64::from(shared) + u64::from(own) > u64::from(most) {
                return refuse(format!(
                    "{shared} bytes of shared memory, and {own} that it declares; a block of this GPU has {most}"
                ));
            }
            let what = F::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
            // SAFETY: a kernel of a loaded module.
            unsafe { sys::cuFuncSetAttribute(function.0, what, shared as c_int) }.result().map_err(failed)?;
        }
        if together == Together::Nothing {
            return Ok(());
        }
        let mut resident: c_int = 0;
        // SAFETY: a kernel of a loaded module; writes one number.
        let asked = unsafe {
            sys::cuOccupancyMaxActiveBlocksPerMultiprocessor(
                &raw mut resident,
                function.0,
                per_block as c_int,
                shared as usize,
            )
        };
        asked.result().map_err(failed)?;
        use CUdevice_attribute as D;
        let processors = self.device().attribute(D::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, CALL, at)?;
        let total: u64 = blocks.iter().map(|&n| u64::from(n)).product();
        let most = resident.max(0) as u64 * u64::from(processors);
        if total > most {
            return refuse(format!(
                "{total} blocks that must run at the same time; {most} do: {resident} on each of {processors} multiprocessors, with \
                 {per_block} threads and {shared} bytes of shared memory a block"
            ));
        }
        Ok(())
    }
}

fn attribute(function: Function, what: CUfunction_attribute) -> std::result::Result<u32, DriverError> {
    // SAFETY: a kernel of a loaded module.
    unsafe { result::function::get_function_attribute(function.0, what) }.map(|value| value.max(0) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_names_the_kernels_that_may_still_run() {
        let at = At::caller();
        let launched = Launched::default();
        launched.0.borrow_mut().extend([(1, "first".to_string(), at), (2, "second".to_string(), at)]);
        let (file, line) = (at.file(), at.line());
        let end = "; no call of CUDA works in this process any more";
        assert_eq!(
            which(&launched.0.borrow()),
            format!("in one of the kernels second, launched at {file}:{line}; first, launched at {file}:{line}{end}")
        );
        assert_eq!(which(&launched.0.borrow()[..1]), format!("in the kernel first, launched at {file}:{line}{end}"));
        launched.ended(None);
        assert!(launched.0.borrow().is_empty());
        assert!(is_fault(CUresult::CUDA_ERROR_ILLEGAL_ADDRESS) && !is_fault(CUresult::CUDA_ERROR_OUT_OF_MEMORY));
    }
}
