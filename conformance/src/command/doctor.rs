//! `onesided doctor`: what is found on this machine.

use std::path::PathBuf;
use std::process::ExitCode;

use onesided::{Backend, Pe, ReduceOp, Result};
use onesided_harness::say;
use onesided_harness::tool::command::failed;
use onesided_sim::{Config, Simulation};

const AFTER: &str =
    "Started as a program is, once for each PE (`onesided launch -n N -- onesided doctor`), the doctors \
                     also try whether the PEs meet, and wait 5 s for each other.

The exit status is 0 also where programs cannot run on GPUs: the simulator needs none.";

/// What `onesided doctor` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER)]
pub(super) struct Options {
    /// NVSHMEM's host library or the folder that holds it, instead of the usual places
    #[arg(long, value_name = "PATH")]
    library: Option<PathBuf>,
}

pub(super) fn run(options: &Options) -> ExitCode {
    say!("{}", onesided_nvshmem::doctor(options.library.as_deref()));
    match simulate() {
        Ok(pes) => say!("Tried just now: {pes} simulated PEs met in a reduction."),
        Err(why) => return failed(format!("the simulator does not work: {why}")),
    }
    ExitCode::SUCCESS
}

/// Runs a little program on the simulator: it needs memory for stacks and heaps, and nothing else.
fn simulate() -> Result<usize> {
    let results = Simulation::new(Config::default())?.run(count)?.into_results()?;
    onesided::expect_eq(&results, &vec![results.len() as u32; results.len()], "the number of PEs")?;
    Ok(results.len())
}

fn count<B: Backend>(pe: &Pe<B>) -> Result<u32> {
    let one = pe.alloc_zeroed::<u32>(1)?;
    let sum = pe.alloc_zeroed::<u32>(1)?;
    pe.write(&one, &[1])?;
    pe.host().reduce(pe.world(), &sum, &one, ReduceOp::Sum)?;
    let sum_of_ones = pe.read(&sum)?[0];
    pe.free(sum)?;
    pe.free(one)?;
    Ok(sum_of_ones)
}
