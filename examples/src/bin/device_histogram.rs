//! A histogram whose bins are spread over the PEs: every thread counts its values by atomic operations, from the device.
//!
//! `kernels/histogram.cu`. What `histogram` does on the host. Threads of all blocks of all PEs count in the same bins.
//!
//! To see it break: `--broken` launches a kernel that fetches a bin and stores it, incremented: counts are lost.

#[macro_use]
#[path = "../kernels/mod.rs"]
mod kernels;

use std::process::ExitCode;

use onesided::{Backend, Grid, Pe, Result, args, expect_eq};
use onesided_harness::{Program, clap, main_with_options};

const BLOCKS: u32 = 2;
const THREADS: u32 = 8;
const BINS: usize = 5;
/// Values of each PE.
const VALUES: usize = 20;

#[derive(clap::Args)]
struct DeviceHistogram {
    /// Launches the broken twin, which counts by a fetch and a store
    #[arg(long)]
    broken: bool,
    #[command(flatten)]
    compile: kernels::Compile,
}

impl Program for DeviceHistogram {
    const NAME: &'static str = "device_histogram";
    const ABOUT: &'static str = "Kernels count values in bins that are spread over the PEs.";
    const CHECKS: &'static str = "its bins hold the numbers of all PEs' values";

    fn run(&self, pe: &Pe<impl Backend>) -> Result<String> {
        let (me, n) = (pe.my_pe(), pe.n_pes());
        let bins = pe.alloc_zeroed::<u32>(BINS.div_ceil(n))?;
        let values = pe.alloc::<i32>(VALUES)?;
        pe.write(&values, &(0..VALUES).map(|i| value(me, i) as i32).collect::<Vec<_>>())?;

        let source = self.compile.source(&kernel_file!("histogram"), self.broken);
        let module = pe.module(&source)?;
        let stream = pe.stream()?;
        let arguments = args![&bins, &values, VALUES as i32];
        // SAFETY: the kernel takes the bins of this PE, as every PE has them, and so many values, all of them numbers of bins.
        unsafe { pe.on(&stream).launch(&module.kernel("histogram")?, &Grid::new(BLOCKS, THREADS), arguments)? };
        pe.on(&stream).barrier_all()?;
        pe.synchronize(&stream)?;

        let all = || (0..n).flat_map(|pe| (0..VALUES).map(move |i| value(pe, i)));
        let count = |bin: usize| all().filter(|&value| value == bin * n + me).count() as u32;
        let expected: Vec<u32> = (0..BINS.div_ceil(n)).map(count).collect();
        let found = pe.read(&bins)?;
        expect_eq(&found, &expected, "my bins")?;
        pe.free(values)?;
        pe.free(bins)?;
        Ok(format!("PE {me} has the bins {found:?}"))
    }
}

/// Value `i` of a PE: a number of a bin.
fn value(pe: usize, i: usize) -> usize {
    (i * i + pe) % BINS
}

fn main() -> ExitCode {
    main_with_options::<DeviceHistogram>()
}
