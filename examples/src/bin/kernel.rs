//! Kernels of your own between verbs: each PE scales a vector on its GPU, puts it to the next PE, and adds to the next PE's
//! copy through its pointer. Only on GPUs: it launches its kernels by cudarc. `device_ring` launches them by `Issue::launch`, and runs in the
//! simulator too.
//!
//! Verbs and kernels share a stream, so each begins when the one before has ended. NVSHMEM does not know the kernel that writes
//! through a peer's pointer. The barrier on the stream tells the peer that the kernel has ended.
//!
//! To see it break: leave out the first barrier. The peer's pointer then reaches memory that a put may still be writing.

use std::process::ExitCode;

use cudarc::driver::{LaunchConfig, PushKernelArg};
use cudarc::nvrtc;
use onesided::{At, Bootstrap, Error, ErrorKind, InitMethod, Pe, Result, expect_eq};
use onesided_harness::tool::command;
use onesided_harness::{complain, say};
use onesided_nvshmem::{DeviceAccess, Nvshmem, Process, Settings};

const ELEMENTS: usize = 1 << 20;

const KERNELS: &str = r#"
extern "C" __global__ void scale(float *data, float factor, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) data[i] *= factor;
}
extern "C" __global__ void increment(float *data, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) data[i] += 1.0f;
}
"#;

fn run(pe: &Pe<Nvshmem>) -> Result<()> {
    let (me, n) = (pe.my_pe(), pe.n_pes());
    let (next, previous) = ((me + 1) % n, (me + n - 1) % n);
    let (src, dst) = (pe.alloc::<f32>(ELEMENTS)?, pe.alloc_zeroed::<f32>(ELEMENTS)?);
    pe.write(&src, &vec![me as f32 + 1.0; ELEMENTS])?;

    let module = pe.cuda().load_module(compile()?).map_err(cuda)?;
    let (scale, increment) =
        (module.load_function("scale").map_err(cuda)?, module.load_function("increment").map_err(cuda)?);
    let stream = pe.stream()?;
    let gpu = stream.backend_stream().cuda();
    let launch = LaunchConfig::for_num_elems(ELEMENTS as u32);
    let count = ELEMENTS as i32;

    // SAFETY: the kernel stays inside `src`, and everything on the stream is over before `src` is freed.
    unsafe {
        let address = pe.device_ptr(&src)?;
        gpu.launch_builder(&scale).arg(&address).arg(&10.0f32).arg(&count).launch(launch).map_err(cuda)?;
    }
    pe.on(&stream).put(&dst, &src, next)?;
    pe.on(&stream).barrier_all()?;
    // SAFETY: as above, on the next PE's copy of `dst`: the barrier before says that nobody else writes it, the one
    // after says so to the next PE.
    if let Some(address) = unsafe { pe.peer_ptr(&dst, next)? } {
        // SAFETY: as above.
        unsafe { gpu.launch_builder(&increment).arg(&address).arg(&count).launch(launch).map_err(cuda)? };
    }
    pe.on(&stream).barrier_all()?;
    pe.synchronize(&stream)?;

    // SAFETY: nothing is accessed. PEs of one node reach each other, so this one says what the previous PE could do.
    let incremented = unsafe { pe.peer_ptr(&dst, previous)? }.is_some();
    let expected = 10.0 * (previous as f32 + 1.0) + if incremented { 1.0 } else { 0.0 };
    expect_eq(pe.read(&dst)?, vec![expected; ELEMENTS], "what the previous PE's kernels left here")?;
    say!("PE {me} of {n}: {ELEMENTS} elements scaled, put and incremented, each {expected}");
    pe.free(dst)?;
    pe.free(src)
}

/// Compiles the kernels for the GPU at hand.
fn compile() -> Result<nvrtc::Ptx> {
    // SAFETY: looks whether the compiler's library can be opened.
    if !unsafe { nvrtc::sys::is_culib_present() } {
        return Err(failed("libnvrtc is not found; add the folder that holds libnvrtc.so.13 to LD_LIBRARY_PATH"));
    }
    nvrtc::compile_ptx(KERNELS).map_err(|error| failed(format!("{error:?}")))
}

fn cuda(error: cudarc::driver::DriverError) -> Error {
    failed(error.to_string())
}

#[track_caller]
fn failed(why: impl Into<String>) -> Error {
    Error::new(ErrorKind::Device, "kernel", why, At::caller())
}

/// It takes no options: the launcher says which PE it is.
const USAGE: &str = "Scales, puts and increments vectors by kernels of its own, on GPUs only.

Usage: onesided launch -n N [--mps] -- kernel";

fn main() -> ExitCode {
    command::ended(match std::env::args().nth(1).as_deref() {
        None => run_as_pe(),
        Some("-h" | "--help") => {
            say!("{USAGE}");
            Ok(ExitCode::SUCCESS)
        }
        Some(argument) => Err(format!("unexpected argument {argument}\n\n{USAGE}")),
    })
}

/// Runs as the PE that the launcher says. The exit status is 1 for a wrong result, as it is for other programs.
fn run_as_pe() -> Result<ExitCode, String> {
    let start = || {
        let pe = Process::open(Settings::from_environment()?)?.init(InitMethod::Launcher)?;
        run(&pe)?;
        pe.finalize()
    };
    match start() {
        Ok(()) => Ok(ExitCode::SUCCESS),
        Err(error) if error.kind() == ErrorKind::WrongResult => {
            complain!("error: {error}");
            Ok(ExitCode::from(1))
        }
        Err(error) => Err(error.to_string()),
    }
}
