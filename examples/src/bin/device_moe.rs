//! Mixture of experts: tokens go to the PEs that have their experts, and come back computed.
//!
//! Two kernels (`kernels/moe_dispatch.cu`), in the style of DeepEP and pplx-kernels. `dispatch` puts each token into the inbox of a PE;
//! then a signal to each PE says how many there are. `combine` waits for the signals, computes, and puts each token back with a
//! signal that counts. No host takes part, and no PE knows in advance how many tokens it gets.
//!
//! To see it break: `--broken` launches a kernel without the block's barrier in front of the signals. They then tell of fewer tokens
//! than there are, or of some that have not been sent.

#[macro_use]
#[path = "../kernels/mod.rs"]
mod kernels;

use std::process::ExitCode;

use onesided::{Backend, Grid, Pe, Result, args, expect_eq};
use onesided_harness::{Program, clap, main_with_options};

const THREADS: u32 = 32;
/// Elements of a token, as in the kernels.
const WIDTH: usize = 4;

#[derive(clap::Args)]
struct DeviceMoe {
    /// Tokens of each PE
    #[arg(long, default_value_t = 6, value_parser = clap::value_parser!(u16).range(1..=i64::from(THREADS)))]
    tokens: u16,
    /// Launches the broken twin, whose signals do not wait for all threads
    #[arg(long)]
    broken: bool,
    #[command(flatten)]
    compile: kernels::Compile,
}

impl Program for DeviceMoe {
    const NAME: &'static str = "device_moe";
    const ABOUT: &'static str = "Kernels send tokens to the PEs of their experts, and back.";
    const CHECKS: &'static str = "every token came back, computed by its expert";

    fn precondition(&self, n_pes: usize) -> std::result::Result<(), String> {
        if n_pes <= THREADS as usize {
            Ok(())
        } else {
            Err(format!("it needs a thread for each PE, and has {THREADS}"))
        }
    }

    fn run(&self, pe: &Pe<impl Backend>) -> Result<String> {
        let (me, n, count) = (pe.my_pe(), pe.n_pes(), usize::from(self.tokens));
        let experts = pe.alloc::<i32>(count)?;
        let tokens = pe.alloc::<f32>(count * WIDTH)?;
        let results = pe.alloc_zeroed::<f32>(count * WIDTH)?;
        let (inbox, origin) = (pe.alloc_zeroed::<f32>(n * count * WIDTH)?, pe.alloc_zeroed::<i32>(n * count)?);
        let (dispatched, combined) = (pe.alloc_zeroed::<u64>(n)?, pe.alloc_zeroed::<u64>(1)?);
        pe.write(&experts, &(0..count).map(|token| expert(me, token, n) as i32).collect::<Vec<_>>())?;
        pe.write(&tokens, &(0..count * WIDTH).map(|i| element(me, i)).collect::<Vec<_>>())?;

        let source = self.compile.source(&kernel_file!("moe_dispatch"), self.broken);
        let module = pe.module(&source)?;
        let stream = pe.stream()?;
        let number = count as i32;
        let grid = Grid::new(1, THREADS).collective();
        let dispatch = args![&experts, &tokens, number, &inbox, &origin, &dispatched];
        let combine = args![&inbox, &origin, number, &results, &dispatched, &combined];
        // SAFETY: the kernels take arrays for `count` tokens of `WIDTH` elements, of mine or from each PE, n signals and one; shared
        // memory has a number for each PE.
        unsafe {
            pe.on(&stream).launch(&module.kernel("dispatch")?, &grid.shared(4 * n as u32), dispatch)?;
            pe.on(&stream).launch(&module.kernel("combine")?, &grid, combine)?;
        }
        pe.synchronize(&stream)?;

        let computed = |i| element(me, i) * 2.0 + expert(me, i / WIDTH, n) as f32;
        let expected: Vec<f32> = (0..count * WIDTH).map(computed).collect();
        expect_eq(pe.read(&results)?, expected, "my tokens")?;
        pe.free(combined)?;
        pe.free(dispatched)?;
        pe.free(origin)?;
        pe.free(inbox)?;
        pe.free(results)?;
        pe.free(tokens)?;
        pe.free(experts)?;
        Ok(format!("PE {me} got {count} tokens back"))
    }
}

/// The PE of a token's expert.
fn expert(pe: usize, token: usize, n: usize) -> usize {
    (pe + token * token) % n
}

/// Element `i` of a PE's tokens.
fn element(pe: usize, i: usize) -> f32 {
    (100 * pe + i) as f32
}

fn main() -> ExitCode {
    main_with_options::<DeviceMoe>()
}
