//! A pipeline of two kernels that run at the same time: one produces blocks of numbers for the next PE, the other consumes them there.
//!
//! `kernels/pipeline.cu`. Each kernel has a stream of its own. There are two slots, and signals in both directions: a slot is full, a
//! slot is empty again.
//!
//! To see it break: `--broken` launches a producer that does not ask whether a slot is empty.

#[macro_use]
#[path = "../kernels/mod.rs"]
mod kernels;

use std::process::ExitCode;

use onesided::{Backend, Grid, Pe, Result, args, expect_eq};
use onesided_harness::{Program, clap, main_with_options};

const THREADS: u32 = 32;
/// Slots, as in the kernels.
const SLOTS: usize = 2;
/// Elements of a block.
const ELEMENTS: usize = 4;

#[derive(clap::Args)]
struct DevicePipeline {
    /// Blocks that each PE produces
    #[arg(long, default_value_t = 5)]
    blocks: u16,
    /// Launches the broken twin, which overwrites slots that are in use
    #[arg(long)]
    broken: bool,
    #[command(flatten)]
    compile: kernels::Compile,
}

impl Program for DevicePipeline {
    const NAME: &'static str = "device_pipeline";
    const ABOUT: &'static str = "A kernel produces for the next PE what another kernel consumes there.";
    const CHECKS: &'static str = "it consumed every block of the PE before it, once";

    fn run(&self, pe: &Pe<impl Backend>) -> Result<String> {
        let (me, n, blocks) = (pe.my_pe(), pe.n_pes(), i32::from(self.blocks));
        let previous = (me + n - 1) % n;
        let (slots, staging) = (pe.alloc_zeroed::<i32>(SLOTS * ELEMENTS)?, pe.alloc_zeroed::<i32>(ELEMENTS)?);
        let sums = pe.alloc_zeroed::<i32>(ELEMENTS)?;
        let (full, empty) = (pe.alloc_zeroed::<u64>(SLOTS)?, pe.alloc_zeroed::<u64>(SLOTS)?);

        let source = self.compile.source(&kernel_file!("pipeline"), self.broken);
        let module = pe.module(&source)?;
        let (producing, consuming) = (pe.stream()?, pe.stream()?);
        let elements = ELEMENTS as i32;
        let grid = Grid::new(1, THREADS);
        let produce = args![&slots, &staging, elements, blocks, &full, &empty];
        let consume = args![&sums, &slots, elements, blocks, &full, &empty];
        // SAFETY: the kernels take two slots of so many elements with two signals each, and an array of one block.
        unsafe {
            pe.on(&producing).launch(&module.kernel("produce")?, &grid, produce)?;
            pe.on(&consuming).launch(&module.kernel("consume")?, &grid, consume)?;
        }
        pe.synchronize(&producing)?;
        pe.synchronize(&consuming)?;

        let expected = (0..blocks).map(|block| 100 * previous as i32 + block).sum();
        expect_eq(&pe.read(&sums)?[..], &[expected; ELEMENTS], "the sums of all blocks")?;
        pe.free(empty)?;
        pe.free(full)?;
        pe.free(sums)?;
        pe.free(staging)?;
        pe.free(slots)?;
        Ok(format!("PE {me} consumed {blocks} blocks of PE {previous}"))
    }
}

fn main() -> ExitCode {
    main_with_options::<DevicePipeline>()
}
