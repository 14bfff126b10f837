//! Data and the news of its arrival in one operation: PE 1 needs no barrier to know that PE 0's data is there.
//!
//! The tutorial's "Signalling". That cell zeroes the signal and the destination *after* the collective allocation, when PE 0 may
//! already have sent. `alloc_zeroed` zeroes before its barrier, so nothing can arrive too early.
//!
//! To see it break: allocate plainly and zero by `pe.write`, or send the data by `put` and the signal by `signal_op`
//! (see `missing_fence`).

use std::process::ExitCode;

use onesided::{Backend, Cmp, Pe, Result, SignalOp, expect_eq};
use onesided_harness::Program;

/// Elements of the 4×4 matrix that is sent.
const SIZE: usize = 4 * 4;
/// The signal's value when the data has arrived.
const ARRIVED: u64 = 1;

struct PutSignal;

impl Program for PutSignal {
    const NAME: &'static str = "put_signal";
    const ABOUT: &'static str = "PE 0 puts a matrix to PE 1 with a signal that says so.";
    const CHECKS: &'static str = "the matrix was complete on PE 1 when the signal was seen, and untouched elsewhere";
    const PES: usize = 2;
    const MIN_PES: usize = 2;

    fn run(&self, pe: &Pe<impl Backend>) -> Result<String> {
        let me = pe.my_pe();
        let src = pe.alloc::<f32>(SIZE)?;
        let dst = pe.alloc_zeroed::<f32>(SIZE)?;
        let flags = pe.alloc_zeroed::<u64>(1)?;
        let signal = flags.signal(0);
        pe.write(&src, &[me as f32 + 1.0; SIZE])?;

        let stream = pe.stream()?;
        match me {
            0 => pe.on(&stream).put_signal(&dst, &src, signal, ARRIVED, SignalOp::Set, 1)?,
            1 => pe.on(&stream).signal_wait_until(signal, Cmp::Eq, ARRIVED)?,
            _ => {}
        }
        pe.synchronize(&stream)?;

        let (expected, flag) = if me == 1 { (1.0, ARRIVED) } else { (0.0, 0) };
        expect_eq(pe.host().signal_fetch(signal)?, flag, "the signal")?;
        expect_eq(&pe.read(&dst)?[..], &[expected; SIZE], "the received matrix")?;

        pe.free(flags)?;
        pe.free(dst)?;
        pe.free(src)?;
        Ok(match me {
            0 => "PE 0 sent its 4x4 matrix of ones to PE 1, with a signal".to_string(),
            1 => "PE 1 saw the signal and found the whole matrix".to_string(),
            _ => String::new(),
        })
    }
}

fn main() -> ExitCode {
    onesided_harness::main(PutSignal)
}
