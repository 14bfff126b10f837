//! How a grid synchronizes: the code that the compiler makes of `grid.sync()` counts arrivals in a word of the launch's workspace, and polls it.
//!
//! Nobody else sees that word, and nobody goes on before all have come. So neither an arrival nor a look is a step: the order of arrivals
//! makes no difference. Who goes on comes after all that the others had done when they came.

use std::collections::BTreeMap;

use onesided::backend::{AllocId, Span};

use super::super::Machine;
use super::super::ids::{BlockId, PeId};
use super::super::past::Past;
use super::address;

/// The words by which grids synchronize.
#[derive(Debug, Default)]
pub(super) struct Workspaces {
    /// By PE, with how many launches have theirs there.
    allocs: BTreeMap<PeId, Vec<(AllocId, usize)>>,
    /// In a search: what comes before each synchronization, by its launch.
    met: BTreeMap<(PeId, AllocId, usize), Past>,
}

impl Workspaces {
    pub(super) fn clear(&mut self) {
        self.allocs.clear();
        self.met.clear();
    }

    /// Whether memory is a workspace.
    #[inline]
    pub(super) fn has(&self, pe: PeId, alloc: AllocId) -> bool {
        self.allocs.get(&pe).is_some_and(|allocs| allocs.iter().any(|(of, _)| *of == alloc))
    }
}

/// Bytes of a launch.
const BYTES: usize = 16;
/// Launches whose words lie together.
const LAUNCHES: usize = 256;

impl Machine {
    /// The address of the words by which a grid synchronizes. Launches of a stream follow each other, and each has its own.
    pub(super) fn workspace(&mut self, pe: PeId) -> Result<u64, String> {
        let allocs = self.kernels.workspaces.allocs.entry(pe).or_default();
        if allocs.last().is_none_or(|(_, used)| *used == LAUNCHES) {
            allocs.push((self.heap.alloc_external(pe, LAUNCHES * BYTES)?, 0));
        }
        let (alloc, used) = allocs.last_mut().expect("there is one");
        *used += 1;
        address::join(pe, *alloc, (*used - 1) * BYTES)
    }

    /// A thread comes to the synchronization of its grid, or looks whether all have come.
    pub(super) fn meets_in_grid(&mut self, id: BlockId, thread: usize, (pe, word): (PeId, Span)) {
        if self.mode.needs.tracking {
            let own = self.past_of_threads(id, &[thread]);
            let met = self.kernels.workspaces.met.entry((pe, word.alloc, word.start / BYTES)).or_default();
            met.join(&own);
            self.kernels.blocks[id].pasts.entry(thread).or_default().join(met);
        }
    }
}
