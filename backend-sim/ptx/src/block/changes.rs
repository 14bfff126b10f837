//! The last changes of memory that a block has seen, and when they were.

use super::cycle::{Read, overlap};

/// How many changes of memory are kept. A thread whose round saw more than these looks again.
const KEPT_CHANGES: usize = 64;

/// The last changes of memory that the block has seen. They are kept because a round of a spin may have read a word before or after it changed.
#[derive(Clone, Debug)]
pub(super) struct Changes {
    last: [(u64, u64); KEPT_CHANGES],
    count: u64,
    /// The time, as the [world](crate::World::now) counts it.
    pub(super) now: u64,
}

impl Default for Changes {
    fn default() -> Changes {
        Changes { last: [(0, 0); KEPT_CHANGES], count: 0, now: 0 }
    }
}

impl Changes {
    #[inline]
    pub(super) fn note(&mut self, address: u64, bytes: u64) {
        self.last[self.count as usize % KEPT_CHANGES] = (address, bytes);
        self.count += 1;
    }

    /// Now, and how many changes there were.
    pub(super) fn begin(&self) -> Begin {
        Begin { changes: self.count, now: self.now }
    }

    /// Whether something that was read in a round has changed after it was read. `since`: when the round began. `any`: more was read than `reads` says.
    pub(super) fn touch(&self, reads: &[Read], any: bool, since: Begin) -> bool {
        let changed = |read: &Read| {
            (read.when.changes..self.count).any(|number| {
                let (address, bytes) = self.last[number as usize % KEPT_CHANGES];
                overlap((read.address, read.bytes), address, bytes)
            })
        };
        self.count - since.changes > KEPT_CHANGES as u64
            || any && self.count > since.changes
            || reads.iter().any(changed)
    }
}

/// When a round began, or something was read.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Begin {
    /// So many changes of memory there were.
    changes: u64,
    /// What the world said that it was.
    pub(super) now: u64,
}
