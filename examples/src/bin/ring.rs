//! Each PE puts its data into the next PE's buffer: the tutorial's first transfer.

use std::process::ExitCode;

use onesided::{Backend, Pe, Result, expect_eq};
use onesided_conformance::harness::{self, Program};

struct Ring;

impl Program for Ring {
    const NAME: &'static str = "ring";
    const ABOUT: &'static str = "Each PE puts an array into the next PE's buffer.";
    const CHECKS: &'static str = "the array it received is the one that the PE before it sent";

    fn run<B: Backend>(pe: &Pe<B>) -> Result<String> {
        let (me, n) = (pe.my_pe(), pe.n_pes());
        let (next, previous) = ((me + 1) % n, (me + n - 1) % n);
        let src = pe.alloc::<f32>(10)?;
        let dst = pe.alloc::<f32>(10)?;
        pe.write(&src, &[me as f32; 10])?;

        let stream = pe.stream()?;
        pe.on(&stream).put(&dst, &src, next)?;
        pe.on(&stream).barrier_all()?; // delivered everywhere, and everyone knows
        pe.synchronize(&stream)?;

        let received = pe.read(&dst)?;
        expect_eq(&received[..], &[previous as f32; 10], "the received array")?;
        pe.free(dst)?;
        pe.free(src)?;
        Ok(format!("PE {me} received {received:?} from PE {previous}"))
    }
}

fn main() -> ExitCode {
    harness::main::<Ring>()
}
