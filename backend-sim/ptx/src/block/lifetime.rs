//! How long a block's shared memory is there for the other blocks of its cluster: from the block's beginning to its end. Each of their accesses must come
//! after the one and before the other.

use std::ops::Range;

use super::shared::{Finding, Touch};
use super::{Block, Fault, FaultKind, Halt, Stop};
use crate::count::count;
use crate::module::Place;
use crate::world::World;

impl Block {
    /// An access to another block's shared memory is a race if that block may not have begun yet, or if it has ended.
    pub(super) fn is_alive(&self, (at, bytes): (usize, usize), touch: &Touch) -> Result<(), Halt> {
        let (owner, _) = self.blocks.owner(at);
        if owner == self.blocks.rank(touch.thread) {
            return Ok(());
        }
        let what = if touch.writes { "write" } else { "read" };
        let here = self.module.describe(touch.place);
        let (wrong, missing) = if self.live_of[owner] == 0 {
            ("comes when that block has ended".to_owned(), format!("{SYNC} behind {here}, before the block ends"))
        } else if self.has_begun(owner, touch.thread) {
            return Ok(());
        } else {
            ("may come before that block has begun".to_owned(), format!("{SYNC} before {here}"))
        };
        let message =
            format!("race in shared memory: the {what} of {} at {} {wrong}", count(bytes, "byte"), self.in_shared(at));
        let fault = Fault::new(&self.module, FaultKind::Race, self.who(touch.thread), touch.place, message);
        Err(Box::new(Stop::Fault(Box::new(fault.lacking(missing)))))
    }

    /// Whether a thread knows that another block has begun: it comes after something that one of its threads has done, or has waited for all of them.
    fn has_begun(&self, block: usize, thread: usize) -> bool {
        let is_told = |other| self.order.before(1, other, 1, thread);
        self.blocks.threads_of(block).any(is_told) || self.cluster.has_been_passed_by(thread)
    }

    /// The last thread of a block has ended, at `place`. What other blocks have done in its shared memory must come before something that a thread of the block
    /// has done.
    pub(super) fn ends(&self, world: &mut impl World, (last, place): (usize, Place)) -> Result<(), Halt> {
        if !self.blocks.are_several() || !self.launch.checks.races {
            return Ok(());
        }
        let rank = self.blocks.rank(last);
        let (threads, memory) = (self.blocks.threads_of(rank), self.memory_of(rank));
        let is_own = |thread| threads.contains(&thread);
        let mut comes_after = |other: usize, epoch: u32, clock: u32, moment: u64| {
            is_own(other)
                || threads.clone().any(|thread| {
                    self.order.before(epoch, other, clock, thread)
                        || world.comes_after(thread as u32, other as u32, moment)
                })
        };
        let told = |name| threads.clone().any(|thread| self.order.knows_over(thread, name));
        if let Some((_, by, at)) = self.copies.over(memory.clone()).find(|(name, by, _)| !is_own(*by) && !told(*name)) {
            let wait = "a wait of the block for the phase of the copy's mbarrier";
            return Err(self.too_early((rank, last, place), "bulk copy", (by, at), wait));
        }
        match self.shared.outlives(memory, &mut comes_after) {
            None => Ok(()),
            Some(Finding { thread, place: at, wrote, .. }) => {
                let what = if wrote { "write" } else { "read" };
                Err(self.too_early((rank, last, place), what, (thread, at), SYNC))
            }
        }
    }

    /// Where the shared memory of a block lies.
    fn memory_of(&self, rank: usize) -> Range<usize> {
        let begin = self.blocks.begin(rank);
        begin..begin + self.shared_bytes as usize
    }

    #[cold]
    fn too_early(
        &self,
        (rank, last, place): (usize, usize, Place),
        what: &str,
        (other, at): (usize, Place),
        wait: &str,
    ) -> Halt {
        let message = format!(
            "race in shared memory: block {rank} of the cluster ends, and nothing orders that behind another block's {what} in its shared memory"
        );
        let fault = Fault::new(&self.module, FaultKind::Race, self.who(last), place, message);
        let [here, there] = [place, at].map(|place| self.module.describe(place));
        let missing = format!("{wait} between {there} and {here}");
        let fault = fault.with(&self.module, self.who(other), at).lacking(missing);
        Box::new(Stop::Fault(Box::new(fault)))
    }
}

const SYNC: &str = "a barrier of the cluster (cluster.sync())";
