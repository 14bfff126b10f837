//! Launches kernels. Checks before a launch whether the GPU can run it. After a fault, says which kernels may have caused it.
#![allow(unsafe_code)]

use std::cell::{Cell, RefCell};
use std::ffi::{c_int, c_void};
use std::ptr;

use cudarc::driver::sys::{self, CUdevice_attribute, CUfunction_attribute, CUresult};
use cudarc::driver::{CudaStream, DriverError, result};
use onesided::backend::{ArgumentValue, LaunchRequest, Tensor};
use onesided::{Argument, At, Error, Grid, Result, Together, count};

use crate::cuda::device;
use crate::kernels::{CudaModule, Function};
use crate::pe::Nvshmem;

const CALL: &str = "launch";

/// Shared memory that a block may have without asking for more: what the kernel declares and what the launch adds.
const PLAIN_SHARED: u32 = 48 << 10;

/// Up to so many arguments, and words of arguments, are passed without allocating.
const FEW: usize = 16;

/// How many launches are remembered, for the error of a fault.
const REMEMBERED: usize = 32;

/// Kernels that may still run: for the error, if one of them faults.
#[derive(Debug, Default)]
pub(crate) struct Launched(RefCell<Vec<Launch>>);

#[derive(Debug)]
struct Launch {
    stream: usize,
    function: Function,
    name: String,
    at: At,
}

impl Launched {
    #[inline]
    fn add(&self, stream: &CudaStream, function: Function, name: &str, at: At) {
        let mut all = self.0.borrow_mut();
        let stream = stream.cu_stream() as usize;
        // Most launches repeat the last one.
        let is_this = |of: &Launch| of.stream == stream && of.function.0 == function.0 && of.at.is_same(&at);
        if !all.iter().rev().any(is_this) {
            remember(&mut all, Launch { stream, function, name: name.to_string(), at });
        }
    }

    /// Notes that everything on a stream has ended; on all streams if `None`.
    pub(crate) fn ended(&self, stream: Option<&CudaStream>) {
        let mut all = self.0.borrow_mut();
        match stream {
            Some(stream) => all.retain(|launch| launch.stream != stream.cu_stream() as usize),
            None => all.clear(),
        }
    }

    /// The error of a call in which CUDA failed. If a kernel has faulted, the error names the kernels that may have caused it.
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

#[cold]
fn remember(all: &mut Vec<Launch>, launch: Launch) {
    if all.len() == REMEMBERED {
        all.remove(0);
    }
    all.push(launch);
}

/// Which kernels it may have been, the last first.
fn which(launched: &[Launch]) -> String {
    let kernel = |Launch { name, at, .. }: &Launch| format!("{name}, launched at {}:{}", at.file(), at.line());
    let kernels: Vec<_> = launched.iter().rev().map(kernel).collect();
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

/// Whether it may be the error of a launch while another context is current, or none. Nothing was launched then.
fn depends_on_context(error: CUresult) -> bool {
    use CUresult as E;
    matches!(error, E::CUDA_ERROR_INVALID_CONTEXT | E::CUDA_ERROR_INVALID_HANDLE | E::CUDA_ERROR_INVALID_VALUE)
}

impl Nvshmem {
    /// Enqueues a kernel.
    pub(crate) fn launch_kernel(
        &self,
        request: &LaunchRequest<'_, CudaModule>,
        stream: &CudaStream,
        at: At,
    ) -> Result<()> {
        let (function, limits) = &request.module.functions[request.kernel];
        self.check_fits(*function, limits, request, at)?;
        // Most launches have few arguments, and need no memory for them.
        let (mut words, mut pointers) = ([0; FEW], [ptr::null_mut(); FEW]);
        let (mut many_words, mut many_pointers);
        let (count, room) = (request.arguments.len(), request.arguments.iter().map(words_of).sum::<usize>());
        let (words, pointers) = if count.max(room) <= FEW {
            (&mut words[..room], &mut pointers[..count])
        } else {
            (many_words, many_pointers) = (vec![0; room], vec![ptr::null_mut(); count]);
            (&mut many_words[..], &mut many_pointers[..])
        };
        self.fill(words, pointers, request.arguments, at)?;
        let (mut attributes, count) = attributes(request.grid);
        let config = config(request.grid, stream, &mut attributes[..count]);
        // SAFETY: a kernel of a loaded module and a stream of the same context, and as many pointers to values as the kernel has
        // parameters, each of the parameter's size, as `Pe` checked. What the kernel does with them is the caller's promise.
        let mut launch = || unsafe {
            sys::cuLaunchKernelEx(&raw const config, function.0, pointers.as_mut_ptr(), ptr::null_mut()).result()
        };
        let launched = launch().or_else(|error| {
            // The kernel and the stream determine the context. The driver may also want it to be current. Asking for that
            // before each launch would make every launch slower, so the context is made current only after an error.
            self.device().bind(CALL, at)?;
            if depends_on_context(error.0) { launch() } else { Err(error) }
                .map_err(|error| self.launched.fault(CALL, error, at))
        });
        launched?;
        self.launched.add(stream, *function, request.name, at);
        Ok(())
    }

    /// Writes the arguments' values, each from the next word on, and where each begins.
    #[inline]
    fn fill(&self, mut words: &mut [u64], pointers: &mut [*mut c_void], arguments: &[Argument], at: At) -> Result<()> {
        for (pointer, argument) in pointers.iter_mut().zip(arguments) {
            let (own, behind) = words.split_at_mut(words_of(argument));
            *pointer = own.as_mut_ptr().cast();
            match argument.value() {
                // Numbers are little-endian, here as on the GPU: a word begins with the bytes of each shorter one.
                ArgumentValue::Bits { bits, .. } => own[0] = *bits,
                ArgumentValue::Memory(span) => own[0] = self.memory.address(*span) as u64,
                ArgumentValue::Team(team) => own[0] = u64::from(self.handle(*team) as u32),
                structure => self.fill_structure(own, structure, at)?,
            }
            words = behind;
        }
        Ok(())
    }

    #[inline(never)] // most arguments are single words
    fn fill_structure(&self, words: &mut [u64], structure: &ArgumentValue, at: At) -> Result<()> {
        // SAFETY: words and bytes may have any value.
        let (_, bytes, _) = unsafe { words.align_to_mut::<u8>() };
        let mut address = |span| Ok(self.memory.address(span) as u64);
        let team = |team| self.handle(team) as u32;
        let tensor = |tensor: &Tensor, address| self.tensor_map(tensor, address, at);
        structure.write(&mut bytes[..structure.size()], &mut address, &team, &tensor)
    }

    /// Whether the GPU can run it: threads of a block, shared memory, and blocks that must run at the same time.
    fn check_fits(
        &self,
        function: Function,
        limits: &Limits,
        request: &LaunchRequest<'_, CudaModule>,
        at: At,
    ) -> Result<()> {
        let Grid { blocks, threads, shared, together, .. } = *request.grid;
        let refuse = |why: String| Err(Error::invalid(CALL, format!("{}: {why}", request.name), at));
        let failed = |error| device(CALL, error, at);
        let per_block: u32 = threads.iter().product();
        if per_block > limits.threads {
            let Limits { threads: most, registers, .. } = limits;
            let (threads, registers) = (count(per_block, "thread"), count(*registers, "register"));
            return refuse(format!("{threads} in a block; with {registers} a thread it runs {most}"));
        }
        if shared > PLAIN_SHARED.saturating_sub(limits.shared) {
            self.device().bind(CALL, at)?;
            let own = limits.shared;
            use CUdevice_attribute as D;
            let most = self.device().attribute(D::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, CALL, at)?;
            if u64::from(shared) + u64::from(own) > u64::from(most) {
                let shared = count(shared, "byte");
                return refuse(format!(
                    "{shared} of shared memory, and {own} that it declares; a block of this GPU has {most}"
                ));
            }
            let what = CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
            // SAFETY: a kernel of a loaded module.
            unsafe { sys::cuFuncSetAttribute(function.0, what, shared as c_int) }.result().map_err(failed)?;
        }
        if together == Together::Nothing {
            return Ok(());
        }
        let known = limits.resident.get().filter(|known| (known.threads, known.shared) == (per_block, shared));
        let Resident { on_each, processors, .. } = match known {
            Some(known) => known,
            None => self.resident(function, per_block, shared, at)?,
        };
        limits.resident.set(Some(Resident { threads: per_block, shared, on_each, processors }));
        let total: u64 = blocks.iter().map(|&n| u64::from(n)).product();
        let most = u64::from(on_each) * u64::from(processors);
        if total > most {
            let [blocks, threads, shared] = [(total, "block"), (per_block.into(), "thread"), (shared.into(), "byte")]
                .map(|(n, what)| count(n, what));
            return refuse(format!(
                "{blocks} that must run at the same time; {most} do: {on_each} on each of {processors} multiprocessors, with \
                 {threads} and {shared} of shared memory a block"
            ));
        }
        Ok(())
    }

    /// How many blocks run at the same time.
    fn resident(&self, function: Function, threads: u32, shared: u32, at: At) -> Result<Resident> {
        self.device().bind(CALL, at)?;
        let mut on_each: c_int = 0;
        // SAFETY: a kernel of a loaded module; writes one number.
        let asked = unsafe {
            sys::cuOccupancyMaxActiveBlocksPerMultiprocessor(
                &raw mut on_each,
                function.0,
                threads as c_int,
                shared as usize,
            )
        };
        asked.result().map_err(|error| device(CALL, error, at))?;
        let what = CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT;
        let processors = self.device().attribute(what, CALL, at)?;
        Ok(Resident { threads, shared, on_each: on_each.max(0) as u32, processors })
    }
}

/// What is special about a launch, and how much of it there is.
#[inline]
fn attributes(grid: &Grid) -> ([sys::CUlaunchAttribute; 2], usize) {
    use sys::CUlaunchAttributeID as Id;
    let attribute = |id, value| sys::CUlaunchAttribute { id, pad: Default::default(), value };
    // `nvshmemx_collective_launch` takes kernels of the runtime API only. It too makes a cooperative launch, but on a
    // stream of its own.
    let cooperative = attribute(Id::CU_LAUNCH_ATTRIBUTE_COOPERATIVE, sys::CUlaunchAttributeValue { cooperative: 1 });
    let Some([x, y, z]) = grid.cluster else {
        return ([cooperative; 2], (grid.together != Together::Nothing).into());
    };
    let dims = sys::CUlaunchAttributeValue_union__bindgen_ty_1 { x, y, z };
    let cluster =
        attribute(Id::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, sys::CUlaunchAttributeValue { clusterDim: dims });
    ([cluster, cooperative], 1 + usize::from(grid.together != Together::Nothing))
}

/// What the driver is told of a grid.
#[inline]
fn config(grid: &Grid, stream: &CudaStream, attributes: &mut [sys::CUlaunchAttribute]) -> sys::CUlaunchConfig {
    let Grid { blocks: [x, y, z], threads: [tx, ty, tz], shared, .. } = *grid;
    sys::CUlaunchConfig {
        gridDimX: x,
        gridDimY: y,
        gridDimZ: z,
        blockDimX: tx,
        blockDimY: ty,
        blockDimZ: tz,
        sharedMemBytes: shared,
        hStream: stream.cu_stream(),
        attrs: attributes.as_mut_ptr(),
        numAttrs: attributes.len() as u32,
    }
}

/// Words that an argument takes.
#[inline]
fn words_of(argument: &Argument) -> usize {
    match argument.value() {
        ArgumentValue::Bits { .. } | ArgumentValue::Memory(_) | ArgumentValue::Team(_) => 1,
        structure => structure.size().div_ceil(size_of::<u64>()),
    }
}

/// What the driver says of a kernel. It is asked once: a launch takes 4 µs, and each question a part of one.
#[derive(Debug)]
pub(crate) struct Limits {
    /// Threads that a block has at most.
    threads: u32,
    /// Registers of a thread.
    registers: u32,
    /// Bytes of shared memory that it declares.
    shared: u32,
    /// The blocks of its clusters in each dimension, if it was compiled for clusters.
    pub(crate) cluster: Option<[u32; 3]>,
    /// The last answer.
    resident: Cell<Option<Resident>>,
}

/// How many blocks of so many threads, with so many bytes of shared memory, run at the same time.
#[derive(Clone, Copy, Debug)]
struct Resident {
    threads: u32,
    shared: u32,
    on_each: u32,
    processors: u32,
}

impl Limits {
    /// Those of a kernel of a loaded module.
    pub(crate) fn of(function: Function) -> std::result::Result<Limits, DriverError> {
        let ask = |what| {
            // SAFETY: a kernel of a loaded module.
            unsafe { result::function::get_function_attribute(function.0, what) }.map(|value| value.max(0) as u32)
        };
        use CUfunction_attribute as F;
        let cluster = [
            F::CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH,
            F::CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT,
            F::CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH,
        ];
        Ok(Limits {
            threads: ask(F::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK)?,
            registers: ask(F::CU_FUNC_ATTRIBUTE_NUM_REGS)?,
            shared: ask(F::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES)?,
            // a driver that does not know clusters loads no kernel that has them
            cluster: Some(cluster.map(|what| ask(what).unwrap_or(0))).filter(|cluster| !cluster.contains(&0)),
            resident: Cell::new(None),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_names_the_kernels_that_may_still_run() {
        let at = At::caller();
        let launched = Launched::default();
        let launch = |stream, name: &str| Launch {
            stream,
            function: Function(std::ptr::null_mut()),
            name: name.to_string(),
            at,
        };
        launched.0.borrow_mut().extend([launch(1, "first"), launch(2, "second")]);
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
