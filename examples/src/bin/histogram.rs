//! A histogram spread over all PEs: each PE owns a few bins, and any PE counts in any bin by an atomic increment.
//!
//! Beyond the tutorial: NVSHMEM4Py's host calls and libnvshmem have no atomics of the host. On GPUs they are a kernel of the backend's, for
//! which NVRTC and nvJitLink must be installed. `pe.capabilities().host_atomics` tells it beforehand.
//!
//! To see it break: count by `g` and `p` instead of `atomic_inc` (increments get lost), or leave the barrier out (an
//! atomic that fetches nothing completes like a put).

use std::process::ExitCode;

use onesided::{Backend, Pe, Result, expect_eq};
use onesided_harness::Program;

/// Bins that each PE owns.
const BINS_PER_PE: usize = 2;
/// Values that each PE sorts into bins.
const VALUES_PER_PE: usize = 5;

struct Histogram;

impl Program for Histogram {
    const NAME: &'static str = "histogram";
    const ABOUT: &'static str = "All PEs count their values in the bins of one distributed histogram.";
    const CHECKS: &'static str = "its bins hold the counts that a serial program finds, and the total is right";

    fn run(&self, pe: &Pe<impl Backend>) -> Result<String> {
        let (me, n) = (pe.my_pe(), pe.n_pes());
        let bins = pe.alloc_zeroed::<u64>(BINS_PER_PE)?; // mine; everyone counts in them
        let total = pe.alloc_zeroed::<u64>(1)?; // PE 0's is used

        for bin in bins_of(me, n) {
            let (owner, local) = (bin / BINS_PER_PE, bin % BINS_PER_PE);
            pe.host().atomic_inc(bins.at(local), owner)?;
        }
        pe.host().atomic_add(&total, VALUES_PER_PE as u64, 0)?;
        pe.host().barrier_all()?; // every increment of every PE is visible

        let mut expected = vec![0; BINS_PER_PE * n];
        for bin in (0..n).flat_map(|pe| bins_of(pe, n)) {
            expected[bin] += 1;
        }
        let counts = pe.read(&bins)?;
        let first = me * BINS_PER_PE;
        expect_eq(&counts[..], &expected[first..first + BINS_PER_PE], "the counts of my bins")?;
        if me == 0 {
            expect_eq(pe.read(&total)?[0], (VALUES_PER_PE * n) as u64, "the number of all values")?;
        }

        pe.free(total)?;
        pe.free(bins)?;
        Ok(format!("PE {me}: bins {first} to {} hold {counts:?}", first + BINS_PER_PE - 1))
    }
}

/// The bins of a PE's values, which are scattered squares so that PEs meet in some bins and leave others empty.
fn bins_of(pe: usize, n_pes: usize) -> impl Iterator<Item = usize> {
    (0..VALUES_PER_PE).map(move |i| (pe + i * i) % (BINS_PER_PE * n_pes))
}

fn main() -> ExitCode {
    onesided_harness::main(Histogram)
}
