//! What every PE can find out alone: which PE it is, of how many, and what works here.
//!
//! The tutorial's "Querying and Status". Nothing is initialized or finalized by hand: the harness does both, and a
//! program starts with a ready [`Pe`].
//!
//! To see it break: expect another status, or another number of PEs than the user asked for.

use std::process::ExitCode;

use onesided::{Backend, InitStatus, Pe, Result, Version, expect_eq};
use onesided_harness::Program;

struct Hello;

impl Program for Hello {
    const NAME: &'static str = "hello";
    const ABOUT: &'static str = "Each PE tells who it is; PE 0 also tells what it runs on.";
    const CHECKS: &'static str = "the library is initialized and the world counts the PEs as the job does";

    fn run(&self, pe: &Pe<impl Backend>) -> Result<String> {
        let (me, n) = (pe.my_pe(), pe.n_pes());
        expect_eq(pe.init_status() >= InitStatus::Initialized, true, "being initialized")?;
        expect_eq((pe.world().my_pe(), pe.world().n_pes()), (me, n), "my rank in the world, and its size")?;

        let hello = format!("PE {me} of {n} says hello");
        // Versions, levels and capabilities are the same on all PEs, so one PE is enough to tell them.
        Ok(if me == 0 { format!("{}\n{}\n{hello}", platform(pe), capabilities(pe)) } else { hello })
    }
}

/// Versions, status and thread level, in one line.
fn platform(pe: &Pe<impl Backend>) -> String {
    let Version { openshmem_spec: (major, minor), onesided, library } = pe.version();
    let (name, status, threads) = (pe.name(), pe.init_status().name(), pe.query_thread().name());
    format!("onesided {onesided} on {name} ({library}, OpenSHMEM {major}.{minor}): {status}, threads: {threads}")
}

/// The families of calls in which libraries differ, in one line.
fn capabilities(pe: &Pe<impl Backend>) -> String {
    let can = pe.capabilities();
    let families = [
        ("host atomics", can.host_atomics),
        ("host signals", can.host_signals),
        ("stream fence", can.stream_fence),
        ("peer access", can.peer_access),
        ("multicast", can.multicast),
        ("registration", can.registration),
    ];
    families.map(|(family, support)| format!("{family}: {support}")).join("; ")
}

fn main() -> ExitCode {
    onesided_harness::main(Hello)
}
