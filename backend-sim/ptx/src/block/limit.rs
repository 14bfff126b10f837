//! How long a block runs: up to the limit of its launch, and as long as the world wants it to.

use super::thread::Thread;
use super::{Block, FaultKind, Halt};
use crate::module::Place;
use crate::world::World;

/// Instructions after which the world is asked again: some milliseconds, also where each is a strong access.
const SLICE: u64 = 1 << 16;

impl Block {
    /// A thread jumps back in a block that has run for some time. Fails if the block may not go on.
    #[cold]
    pub(super) fn may_go_on(
        &mut self,
        world: &mut impl World,
        index: usize,
        thread: &Thread,
        (end, begin): (Place, u32),
    ) -> Result<(), Halt> {
        if self.steps > self.launch.max_steps {
            let begin = Place(self.module.code[usize::from(thread.frame.code)].first_place + begin);
            let message = format!("{}: its last line and its first", self.too_many());
            return Err(self.fault_with(FaultKind::StepLimit, (index, end), (index, begin), message));
        }
        self.asks(world, index, end)
    }

    /// The same, where a thread calls: a tree of calls needs no loop.
    #[cold]
    pub(super) fn may_call(&mut self, world: &mut impl World, index: usize, place: Place) -> Result<(), Halt> {
        if self.steps > self.launch.max_steps {
            return Err(self.fault(FaultKind::StepLimit, index, place, format!("{}: its last call", self.too_many())));
        }
        self.asks(world, index, place)
    }

    fn asks(&mut self, world: &mut impl World, index: usize, place: Place) -> Result<(), Halt> {
        if !world.goes_on() {
            return Err(self.fault(FaultKind::Stopped, index, place, "the block was ended from outside"));
        }
        self.asks_at = self.launch.max_steps.min(self.steps + SLICE);
        Ok(())
    }

    fn too_many(&self) -> String {
        format!("given up after {} instructions", self.launch.max_steps)
    }
}
