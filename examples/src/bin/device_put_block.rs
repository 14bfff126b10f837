//! Blocks put: the threads of each block fill a part of an array, and put it to the next PE together.
//!
//! NVSHMEM's `put-block` (`kernels/put_block.cu`). The block uses its part again after the put: `put_block` returns when the source has
//! been read, and `put_nbi_block` before.
//!
//! To see it break: `--broken` launches the kernel with `put_nbi_block`.

#[macro_use]
#[path = "../kernels/mod.rs"]
mod kernels;

use std::process::ExitCode;

use onesided::{Backend, Grid, Pe, Result, args, expect_eq};
use onesided_harness::{Program, clap, main_with_options};

const BLOCKS: u32 = 2;
const THREADS: u32 = 32;
/// The last block has work for half of its threads.
const ELEMENTS: usize = 48;

#[derive(clap::Args)]
struct DevicePutBlock {
    /// Launches the broken twin, which overwrites the source of a non-blocking put
    #[arg(long)]
    broken: bool,
    #[command(flatten)]
    compile: kernels::Compile,
}

impl Program for DevicePutBlock {
    const NAME: &'static str = "device_put_block";
    const ABOUT: &'static str = "The blocks of each PE's kernel put parts of an array to the next PE.";
    const CHECKS: &'static str = "the array it received is the one that the kernel of the PE before it made";

    fn run(&self, pe: &Pe<impl Backend>) -> Result<String> {
        let (me, n) = (pe.my_pe(), pe.n_pes());
        let previous = (me + n - 1) % n;
        let received = pe.alloc_zeroed::<f32>(ELEMENTS)?;
        let part = pe.alloc_zeroed::<f32>(ELEMENTS)?;

        let source = self.compile.source(&kernel_file!("put_block"), self.broken);
        let module = pe.module(&source)?;
        let stream = pe.stream()?;
        let arguments = args![&received, &part, ELEMENTS as i32];
        // SAFETY: the kernel takes two pointers and the number of elements behind both, and stays within them.
        unsafe { pe.on(&stream).launch(&module.kernel("set_and_shift")?, &Grid::new(BLOCKS, THREADS), arguments)? };
        pe.on(&stream).barrier_all()?;
        pe.synchronize(&stream)?;

        let expected: Vec<f32> = (0..ELEMENTS).map(|i| (1000 * previous + i) as f32).collect();
        expect_eq(pe.read(&received)?, expected, "what the previous PE's blocks put")?;
        pe.free(part)?;
        pe.free(received)?;
        Ok(format!("PE {me} received {ELEMENTS} elements from {BLOCKS} blocks of PE {previous}"))
    }
}

fn main() -> ExitCode {
    main_with_options::<DevicePutBlock>()
}
