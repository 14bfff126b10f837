//! Every way to get memory that NVSHMEM can use, and how each is given back.
//!
//! The tutorial's "Memory Management". Arrays are typed from the start; the owner of a buffer is the only one who can
//! free it, so using freed memory does not compile.
//!
//! To see it break: forget one `free` (reported as a leak, with the line that allocated), or allocate on PE 0 only
//! (allocation is collective: a deadlock, or a mismatch with the next collective).

use std::process::ExitCode;

use onesided::{Backend, Pe, Result, Support, expect_eq};
use onesided_harness::Program;

/// Elements of each buffer.
const LEN: usize = 4;
/// Alignment of the aligned buffer, in bytes.
const ALIGN: usize = 256;

struct Buffers;

impl Program for Buffers {
    const NAME: &'static str = "buffers";
    const ABOUT: &'static str = "Allocates, reads, writes, registers and frees memory of every kind.";
    const CHECKS: &'static str = "each kind of memory holds what was written or transferred to it";

    fn run(&self, pe: &Pe<impl Backend>) -> Result<String> {
        let (me, can) = (pe.my_pe(), pe.capabilities());
        symmetric(pe)?;
        if let Support::Missing(why) = can.registration {
            let told = format!("external memory was left out: {why}");
            return Ok(if me == 0 { told } else { String::new() });
        }
        registered_local(pe)?;
        if let Support::Missing(why) = can.symmetric_registration {
            let told = format!("external memory did not join the symmetric heap: {why}");
            return Ok(if me == 0 { told } else { String::new() });
        }
        let theirs = registered_symmetric(pe)?;
        Ok(format!("PE {me} read {theirs:?} from its neighbour's registered memory"))
    }
}

/// Memory of the symmetric heap: the same length on every PE.
fn symmetric(pe: &Pe<impl Backend>) -> Result<()> {
    let plain = pe.alloc::<f32>(LEN)?; // undefined content
    let zeroed = pe.alloc_zeroed::<u64>(LEN)?; // zeros on every PE when this returns
    let aligned = pe.alloc_aligned::<u8>(LEN, ALIGN)?;

    pe.write(&plain, &[1.0, 2.0, 3.0, 4.0])?;
    pe.write(plain.slice(1..3), &[20.0, 30.0])?; // a slice is a view: nothing is allocated or copied
    pe.write(aligned.at(LEN - 1), &[7])?;
    expect_eq(pe.read(&plain)?, vec![1.0, 20.0, 30.0, 4.0], "the plain buffer")?;
    expect_eq(pe.read(&zeroed)?, vec![0; LEN], "the zeroed buffer")?;
    expect_eq(pe.read(aligned.at(LEN - 1))?, vec![7], "the last aligned element")?;

    pe.free(aligned)?;
    pe.free(zeroed)?;
    pe.free(plain)
}

/// An application's own memory joins the symmetric heap: other PEs can then reach it.
fn registered_symmetric(pe: &Pe<impl Backend>) -> Result<Vec<f32>> {
    let next = (pe.my_pe() + 1) % pe.n_pes();
    let weights = pe.alloc_external::<f32>(LEN)?;
    pe.write(&weights, &[pe.my_pe() as f32; LEN])?;

    let shared = pe.register_symmetric(weights)?; // ends with a barrier: everyone has written
    let copy = pe.alloc::<f32>(LEN)?;
    pe.host().get(&copy, &shared, next)?;
    let theirs = pe.read(&copy)?;
    expect_eq(&theirs[..], &[next as f32; LEN], "the next PE's weights")?;
    pe.free(copy)?;

    let weights = pe.unregister_symmetric(shared)?; // private again, content kept
    expect_eq(pe.read(&weights)?, vec![pe.my_pe() as f32; LEN], "my own weights after unregistering")?;
    pe.free_external(weights)?;
    Ok(theirs)
}

/// An application's own memory becomes the *local* side of transfers: no copy to the symmetric heap first.
fn registered_local(pe: &Pe<impl Backend>) -> Result<()> {
    let (me, n) = (pe.my_pe(), pe.n_pes());
    let (next, previous) = ((me + 1) % n, (me + n - 1) % n);
    let message = pe.alloc_external::<u32>(LEN)?;
    pe.write(&message, &[me as u32; LEN])?;

    let source = pe.register_local(message)?; // local: each PE may do so or not
    let inbox = pe.alloc::<u32>(LEN)?;
    pe.host().put(&inbox, &source, next)?;
    pe.host().barrier_all()?;
    expect_eq(pe.read(&inbox)?, vec![previous as u32; LEN], "the message of the PE before")?;

    pe.free(inbox)?;
    let message = pe.unregister_local(source)?;
    pe.free_external(message)
}

fn main() -> ExitCode {
    onesided_harness::main(Buffers)
}
