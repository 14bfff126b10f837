//! A one-step all-reduce for small arrays: every PE's kernel puts its array to all others, waits for theirs, and adds.
//!
//! `kernels/allreduce.cu`, in the style of the all-reduce kernels of inference engines. It is launched several times without a barrier:
//! two sets of slots alternate, and a signal for each PE counts launches.
//!
//! To see it break: `--broken` launches a kernel without the block's barrier behind the wait. Some threads have then waited for
//! nobody.

#[macro_use]
#[path = "../kernels/mod.rs"]
mod kernels;

use std::process::ExitCode;

use onesided::{Backend, Grid, Pe, Result, args, expect_eq};
use onesided_harness::{Program, clap, main_with_options};

const THREADS: u32 = 32;
const ELEMENTS: usize = 8;
const ROUNDS: usize = 3;

#[derive(clap::Args)]
struct DeviceAllreduce {
    /// Launches the broken twin, whose threads do not wait for each other
    #[arg(long)]
    broken: bool,
    #[command(flatten)]
    compile: kernels::Compile,
}

impl Program for DeviceAllreduce {
    const NAME: &'static str = "device_allreduce";
    const ABOUT: &'static str = "Kernels sum small arrays over all PEs in one step, again and again without a barrier.";
    const CHECKS: &'static str = "it holds the sums of all rounds, in every element";

    fn precondition(&self, n_pes: usize) -> std::result::Result<(), String> {
        if n_pes <= THREADS as usize {
            Ok(())
        } else {
            Err(format!("it needs a thread for each PE, and has {THREADS}"))
        }
    }

    fn run(&self, pe: &Pe<impl Backend>) -> Result<String> {
        let (me, n) = (pe.my_pe(), pe.n_pes());
        let mine = pe.alloc::<f32>(ROUNDS * ELEMENTS)?;
        let sums = pe.alloc_zeroed::<f32>(ROUNDS * ELEMENTS)?;
        let slots = pe.alloc_zeroed::<f32>(2 * n * ELEMENTS)?;
        let arrived = pe.alloc_zeroed::<u64>(n)?;
        pe.write(&mine, &(0..ROUNDS * ELEMENTS).map(|i| contribution(me, i)).collect::<Vec<_>>())?;

        let source = self.compile.source(&kernel_file!("allreduce"), self.broken);
        let module = pe.module(&source)?;
        let (kernel, stream) = (module.kernel("allreduce")?, pe.stream()?);
        let grid = Grid::new(1, THREADS).collective();
        for round in 0..ROUNDS {
            let part = round * ELEMENTS..(round + 1) * ELEMENTS;
            let (sum, mine) = (sums.slice(part.clone()), mine.slice(part));
            let arguments = args![sum, mine, &slots, ELEMENTS as i32, &arrived, round as i32 + 1];
            // SAFETY: the kernel takes two arrays of so many elements, 2 n slots for such arrays, and n signals.
            unsafe { pe.on(&stream).launch(&kernel, &grid, arguments)? };
        }
        pe.synchronize(&stream)?;

        // Small whole numbers: the sum is exact in any order.
        let sum_of = |i| (0..n).map(|pe| contribution(pe, i)).sum();
        let expected: Vec<f32> = (0..ROUNDS * ELEMENTS).map(sum_of).collect();
        expect_eq(pe.read(&sums)?, expected, "the sums over all PEs")?;
        pe.free(arrived)?;
        pe.free(slots)?;
        pe.free(sums)?;
        pe.free(mine)?;
        Ok(if me == 0 { format!("all {n} PEs hold the sums of {ROUNDS} rounds") } else { String::new() })
    }
}

/// Element `i` of what a PE brings, all rounds in a row.
fn contribution(pe: usize, i: usize) -> f32 {
    (10 * pe + i) as f32
}

fn main() -> ExitCode {
    main_with_options::<DeviceAllreduce>()
}
