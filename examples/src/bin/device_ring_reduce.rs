//! A ring all-reduce in one launch: the kernel sends chunks around the ring, and waits for those of the PE before it.
//!
//! What `allreduce` does on the host, from the device (`kernels/ring_reduce.cu`). The kernel waits for other PEs, so that all PEs
//! launch it together: a collective launch, which makes sure that all blocks run at the same time.
//!
//! To see it break: `--broken` launches a kernel that sends data and signal as two operations, without a fence.

#[macro_use]
#[path = "../kernels/mod.rs"]
mod kernels;

use std::process::ExitCode;

use onesided::{Backend, Grid, Pe, Result, args, expect_eq};
use onesided_harness::{Program, clap, main_with_options};

const THREADS: u32 = 32;
/// Elements of a chunk; the array has as many chunks as there are PEs.
const CHUNK: usize = 8;

#[derive(clap::Args)]
struct DeviceRingReduce {
    /// Launches the broken twin, whose signals can overtake the data
    #[arg(long)]
    broken: bool,
    #[command(flatten)]
    compile: kernels::Compile,
}

impl Program for DeviceRingReduce {
    const NAME: &'static str = "device_ring_reduce";
    const ABOUT: &'static str = "Kernels sum an array over all PEs around a ring, in one launch.";
    const CHECKS: &'static str = "it holds the sum over all PEs, in every element";

    fn run(&self, pe: &Pe<impl Backend>) -> Result<String> {
        let (me, n) = (pe.my_pe(), pe.n_pes());
        let mine = pe.alloc::<f32>(n * CHUNK)?;
        let slots = pe.alloc_zeroed::<f32>(n * CHUNK)?;
        let total = pe.alloc_zeroed::<f32>(n * CHUNK)?;
        let signals = pe.alloc_zeroed::<u64>(2 * n)?;
        pe.write(&mine, &(0..n * CHUNK).map(|i| contribution(me, i)).collect::<Vec<_>>())?;

        let source = self.compile.source(&kernel_file!("ring_reduce"), self.broken);
        let module = pe.module(&source)?;
        let stream = pe.stream()?;
        let arguments = args![&mine, &slots, &total, CHUNK as i32, &signals];
        let grid = Grid::new(1, THREADS).collective();
        // SAFETY: the kernel takes arrays of n chunks and 2 n signals, as they are here, and the length of a chunk.
        unsafe { pe.on(&stream).launch(&module.kernel("ring_reduce")?, &grid, arguments)? };
        pe.synchronize(&stream)?;

        // Small whole numbers: the sum is exact in any order.
        let expected: Vec<f32> = (0..n * CHUNK).map(|i| (0..n).map(|pe| contribution(pe, i)).sum()).collect();
        expect_eq(pe.read(&total)?, expected, "the sum over all PEs")?;
        pe.free(signals)?;
        pe.free(total)?;
        pe.free(slots)?;
        pe.free(mine)?;
        Ok(if me == 0 { format!("all {n} PEs hold the sum of {} elements", n * CHUNK) } else { String::new() })
    }
}

/// Element `i` of the array that a PE brings.
fn contribution(pe: usize, i: usize) -> f32 {
    (10 * pe + i) as f32
}

fn main() -> ExitCode {
    main_with_options::<DeviceRingReduce>()
}
