//! A kernel puts: each PE's thread stores its rank into the next PE's memory, from the device.
//!
//! The first kernel of NVIDIA's guide (`kernels/device_ring.cu`). The kernel completes its put by a quiet. When it has ended, the PEs
//! only meet: a sync on the stream completes nothing. (A barrier there would complete what the kernel has left.)
//!
//! To see it break: `--broken` launches the kernel without its quiet.

#[macro_use]
#[path = "../kernels/mod.rs"]
mod kernels;

use std::process::ExitCode;

use onesided::{Backend, Grid, Pe, Result, args, expect_eq};
use onesided_harness::{Program, clap, main_with_options};

#[derive(clap::Args)]
struct DeviceRing {
    /// Launches the broken twin, which has no quiet
    #[arg(long)]
    broken: bool,
    #[command(flatten)]
    compile: kernels::Compile,
}

impl Program for DeviceRing {
    const NAME: &'static str = "device_ring";
    const ABOUT: &'static str = "Each PE's kernel puts its rank into the next PE's memory.";
    const CHECKS: &'static str = "it holds the rank of the PE before it";

    fn run(&self, pe: &Pe<impl Backend>) -> Result<String> {
        let (me, n) = (pe.my_pe(), pe.n_pes());
        let previous = (me + n - 1) % n;
        let dst = pe.alloc::<i32>(1)?;
        pe.write(&dst, &[-1])?;
        pe.host().barrier_all()?; // nobody puts before it is written

        let source = self.compile.source(&kernel_file!("device_ring"), self.broken);
        let module = pe.module(&source)?;
        let stream = pe.stream()?;
        // SAFETY: the kernel takes a pointer to one integer, and writes no other memory.
        unsafe { pe.on(&stream).launch(&module.kernel("ring")?, &Grid::new(1, 1), args![&dst])? };
        pe.on(&stream).sync_all()?;
        pe.synchronize(&stream)?;

        let received = pe.read(&dst)?;
        expect_eq(received[0], previous as i32, "what the previous PE's kernel put")?;
        pe.free(dst)?;
        Ok(format!("PE {me} received {} from PE {previous}", received[0]))
    }
}

fn main() -> ExitCode {
    main_with_options::<DeviceRing>()
}
