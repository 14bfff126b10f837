//! DELIBERATELY BROKEN: data, then a flag that says "the data is there", and nothing that orders the two.
//!
//! This is the most common bug of one-sided programs. It works in order and on NVLink. On a network the flag can arrive first. The
//! simulator finds that order, and prints the command that replays it.
//!
//! To repair it: `pe.host().fence()?` between the two, or one `put_signal` for both (see that program).

use std::process::ExitCode;

use onesided::{Backend, Cmp, Pe, Result, SignalOp, expect_eq};
use onesided_harness::Program;

/// What PE 0 sends.
const DATA: [u32; 4] = [1, 2, 3, 4];

struct MissingFence;

impl Program for MissingFence {
    const NAME: &'static str = "missing_fence";
    const ABOUT: &'static str = "Deliberately broken: PE 0 puts data and then a signal, without a fence.";
    const CHECKS: &'static str = "PE 1 found the data complete when it saw the signal";
    const PES: usize = 2;
    const MIN_PES: usize = 2;

    fn run(&self, pe: &Pe<impl Backend>) -> Result<String> {
        let me = pe.my_pe();
        let src = pe.alloc::<u32>(DATA.len())?;
        let dst = pe.alloc_zeroed::<u32>(DATA.len())?;
        let flags = pe.alloc_zeroed::<u64>(1)?;

        let mut told = String::new();
        if me == 0 {
            pe.write(&src, &DATA)?;
            pe.host().put(&dst, &src, 1)?; // returns when `src` may be reused: nothing has to be at PE 1 yet
            // BUG: nothing orders the signal after the put
            pe.host().signal_op(flags.signal(0), 1, SignalOp::Set, 1)?;
        } else if me == 1 {
            pe.host().signal_wait_until(flags.signal(0), Cmp::Eq, 1)?;
            let found = pe.read(&dst)?;
            let what = "the signal overtook the data (a fence between them, or one put_signal, repairs it): the data";
            expect_eq(&found[..], &DATA, what)?;
            told = format!("PE 1 found {found:?}: this time the data came before the signal");
        }

        pe.free(flags)?;
        pe.free(dst)?;
        pe.free(src)?;
        Ok(told)
    }
}

fn main() -> ExitCode {
    onesided_harness::main(MissingFence)
}
