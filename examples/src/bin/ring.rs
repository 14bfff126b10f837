//! Each PE puts an array into the next PE's memory: the first transfer that one writes.
//!
//! The tutorial's "Point-to-Point Remote Memory Access", first cell. That cell ends with `stream.synchronize()`, after
//! which a PE knows only that its *own* put may reuse its source; to read what *arrived*, it needs the barrier here.
//!
//! To see it break: take the barrier away, make it a `sync_all` (which completes no transfer), or call it through
//! `pe.host()` (a barrier of the host does not cover what a stream issued).

use std::process::ExitCode;

use onesided::{Backend, Pe, Result, expect_eq};
use onesided_harness::Program;

/// Elements that each PE sends.
const SIZE: usize = 10;

struct Ring;

impl Program for Ring {
    const NAME: &'static str = "ring";
    const ABOUT: &'static str = "Each PE puts an array into the next PE's buffer.";
    const CHECKS: &'static str = "the array it received is the one that the PE before it sent";

    fn run(&self, pe: &Pe<impl Backend>) -> Result<String> {
        let (me, n) = (pe.my_pe(), pe.n_pes());
        let (next, previous) = ((me + 1) % n, (me + n - 1) % n);
        let src = pe.alloc::<f32>(SIZE)?;
        let dst = pe.alloc::<f32>(SIZE)?;
        pe.write(&src, &[me as f32; SIZE])?;

        let stream = pe.stream()?;
        pe.on(&stream).put(&dst, &src, next)?;
        pe.on(&stream).barrier_all()?; // delivered everywhere, and everyone knows
        pe.synchronize(&stream)?;

        let received = pe.read(&dst)?;
        expect_eq(&received[..], &[previous as f32; SIZE], "the received array")?;
        pe.free(dst)?;
        pe.free(src)?;
        Ok(format!("PE {me} received {received:?} from PE {previous}"))
    }
}

fn main() -> ExitCode {
    onesided_harness::main(Ring)
}
