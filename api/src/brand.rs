//! [`Brand`]: which `Pe` made a handle.

use std::fmt;
use std::sync::atomic::{AtomicU32, Ordering};

/// Which [`Pe`](crate::Pe) of this process made a handle. No two have the same brand: not two PEs of a simulation, not two
/// simulations, not a PE before finalize and the one that is initialized after it.
///
/// It depends on what else the process has done. So it shows nowhere: in no text, no order and no trace.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Brand(u32);

impl Brand {
    /// A new brand. Brands repeat after 2³² of them. A handle that is 2³² brands old is then accepted by mistake.
    pub(crate) fn fresh() -> Brand {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        Brand(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

impl fmt::Debug for Brand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Brand")
    }
}
