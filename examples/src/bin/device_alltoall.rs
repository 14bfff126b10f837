//! An all-to-all of blocks: each block of the kernel sends to some of the PEs; the last block to finish meets the other PEs.
//!
//! `kernels/alltoall.cu`. What the blocks have put is completed by a quiet of each, before they count themselves as finished: the
//! sync of the last one completes nothing.
//!
//! To see it break: `--broken` launches the kernel without the quiet.

#[macro_use]
#[path = "../kernels/mod.rs"]
mod kernels;

use std::process::ExitCode;

use onesided::{Backend, Grid, Pe, Result, args, expect_eq};
use onesided_harness::{Program, clap, main_with_options};

const BLOCKS: u32 = 2;
const THREADS: u32 = 32;
/// Elements for each PE.
const ELEMENTS: usize = 4;

#[derive(clap::Args)]
struct DeviceAlltoall {
    /// Launches the broken twin, whose PEs meet while puts are on their way
    #[arg(long)]
    broken: bool,
    #[command(flatten)]
    compile: kernels::Compile,
}

impl Program for DeviceAlltoall {
    const NAME: &'static str = "device_alltoall";
    const ABOUT: &'static str = "The blocks of each PE's kernel send a part of an array to every PE.";
    const CHECKS: &'static str = "it holds its part of every PE's array";

    fn run(&self, pe: &Pe<impl Backend>) -> Result<String> {
        let (me, n) = (pe.my_pe(), pe.n_pes());
        let parts = pe.alloc::<i32>(n * ELEMENTS)?;
        let received = pe.alloc_zeroed::<i32>(n * ELEMENTS)?;
        let arrived = pe.alloc_zeroed::<u32>(1)?;
        let part = |from: usize, to: usize| (0..ELEMENTS).map(move |i| (1000 * from + 10 * to + i) as i32);
        pe.write(&parts, &(0..n).flat_map(|to| part(me, to)).collect::<Vec<_>>())?;

        let source = self.compile.source(&kernel_file!("alltoall"), self.broken);
        let module = pe.module(&source)?;
        let stream = pe.stream()?;
        let arguments = args![&received, &parts, ELEMENTS as i32, &arrived];
        let grid = Grid::new(BLOCKS, THREADS).collective();
        // SAFETY: the kernel takes two arrays with so many elements for each PE, and a counter.
        unsafe { pe.on(&stream).launch(&module.kernel("alltoall")?, &grid, arguments)? };
        pe.synchronize(&stream)?;

        let expected: Vec<i32> = (0..n).flat_map(|from| part(from, me)).collect();
        expect_eq(pe.read(&received)?, expected, "the parts of all PEs")?;
        pe.free(arrived)?;
        pe.free(received)?;
        pe.free(parts)?;
        Ok(if me == 0 { format!("all {n} PEs hold {n} parts of {ELEMENTS} elements") } else { String::new() })
    }
}

fn main() -> ExitCode {
    main_with_options::<DeviceAlltoall>()
}
