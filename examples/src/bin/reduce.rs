//! An all-reduce on a stream: every PE contributes an array, and every PE gets the sum.
//!
//! The tutorial's "Collective operations", with a maximum of integers beside the sum of floats.
//!
//! To see it break: skip the reduction on one PE (a deadlock), ask for `Min` on one PE (a mismatch), or read before
//! `synchronize`.

use std::process::ExitCode;

use onesided::{Backend, Pe, ReduceOp, Result, expect_eq};
use onesided_harness::Program;

/// Elements of the array of floats.
const SIZE: usize = 10;

struct Reduce;

impl Program for Reduce {
    const NAME: &'static str = "reduce";
    const ABOUT: &'static str = "Sums an array over all PEs, and finds the largest of one number a PE.";
    const CHECKS: &'static str = "it holds the sum and the maximum over all PEs";

    fn run(&self, pe: &Pe<impl Backend>) -> Result<String> {
        let (me, n) = (pe.my_pe(), pe.n_pes());
        let src = pe.alloc::<f32>(SIZE)?;
        let sums = pe.alloc::<f32>(SIZE)?;
        let score = pe.alloc::<i32>(1)?;
        let best = pe.alloc::<i32>(1)?;
        pe.write(&src, &[me as f32 + 1.0; SIZE])?;
        pe.write(&score, &[score_of(me)])?;

        // Both are enqueued at once; the second starts when the first has ended here.
        let stream = pe.stream()?;
        pe.on(&stream).reduce(pe.world(), &sums, &src, ReduceOp::Sum)?;
        pe.on(&stream).reduce(pe.world(), &best, &score, ReduceOp::Max)?;
        pe.synchronize(&stream)?;

        // A sum of floats promises no order and would need a tolerance; small whole numbers add up exactly.
        let expected = (n * (n + 1) / 2) as f32;
        expect_eq(&pe.read(&sums)?[..], &[expected; SIZE], "the sum of 1 to n")?;
        let found = pe.read(&best)?[0];
        expect_eq(Some(found), (0..n).map(score_of).max(), "the best score")?;

        pe.free(best)?;
        pe.free(score)?;
        pe.free(sums)?;
        pe.free(src)?;
        Ok(format!("PE {me} added {}, all got {expected}; its score is {}, the best {found}", me + 1, score_of(me)))
    }
}

/// Some number of each PE, positive or negative.
fn score_of(pe: usize) -> i32 {
    (pe as i32 * 7 + 3) % 11 - 5
}

fn main() -> ExitCode {
    onesided_harness::main(Reduce)
}
