//! Accesses to multicast addresses: one to each copy, one after the other. The world may stop the thread before each.

use super::thread::Thread;
use super::{Block, Halt};
use crate::alu;
use crate::module::Place;
use crate::op::{AtomicForm, Multi};
use crate::world::{AccessKind, World};

impl Block {
    /// An element of a multicast access. `value` is what is stored or added; the result is that of a load.
    #[expect(clippy::too_many_arguments, reason = "who, where, what and how of an access")]
    pub(super) fn multicast(
        &mut self,
        world: &mut impl World,
        thread: &mut Thread,
        index: usize,
        (kind, form): (Multi, &AtomicForm),
        address: u64,
        value: u64,
        place: Place,
    ) -> Result<u64, Halt> {
        let memory = &form.memory;
        if address & (u64::from(memory.align) - 1) != 0 {
            return Err(self.misaligned(index, memory, address, place));
        }
        let access = match kind {
            Multi::Load => AccessKind::Load,
            Multi::Store => AccessKind::Store,
            Multi::Reduce => AccessKind::Atomic(form.op),
        };
        let access = self.access(index, memory, address, access, place);
        let copies = world.copies(&access);
        let copies = self.accepted(copies, &access, index)?;
        while let Some(&copy) = copies.get(thread.copied as usize) {
            match kind {
                Multi::Load => {
                    let one = self.load(world, thread, index, memory, copy, place, true)?;
                    let first = thread.copied == 0;
                    thread.reduced = if first { one } else { alu::atomic(form.op, form.ty, thread.reduced, one, 0) };
                }
                Multi::Store => self.store(world, thread, index, memory, (copy, value), place, true)?,
                Multi::Reduce => _ = self.atomic(world, thread, index, form, copy, (value, value), place)?,
            }
            thread.copied += 1;
        }
        thread.copied = 0;
        Ok(thread.reduced)
    }
}
