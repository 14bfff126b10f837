//! Strong accesses and atomics of 16 bytes: two words, and no access of another thread comes between them.
//!
//! The world may stop the thread before the first word, as before any strong access. It is not asked again before the second.

use super::thread::Thread;
use super::{Block, Halt};
use crate::module::Place;
use crate::op::{AtomicForm, Memory, Wide};
use crate::world::{AtomicOp, Within, World};

impl Block {
    /// Accesses 16 bytes, and returns what was there before; for a store, the result means nothing. `b` is the operand or the value to compare with; `c` is stored if `b` is equal.
    #[expect(clippy::too_many_arguments, reason = "who, where, what and how of an access")]
    #[inline(never)]
    pub(super) fn wide(
        &mut self,
        world: &mut impl World,
        thread: &mut Thread,
        index: usize,
        (kind, form): (Wide, &AtomicForm),
        address: u64,
        [b, c]: [[u64; 2]; 2],
        place: Place,
    ) -> Result<[u64; 2], Halt> {
        let low = Memory { within: Within::Low, ..form.memory };
        let memories = [low, Memory { align: 8, within: Within::High, ..form.memory }];
        let mut old = [0; 2];
        if kind == Wide::CompareSwap {
            let mut atomic = |block: &mut Self, word: usize, op, b, c| {
                let form = AtomicForm { op, memory: memories[word], ..*form };
                let at = form.memory.at(address, 8 * word as i64);
                let old = block.atomic(world, thread, index, &form, at, (b, c), place)?;
                block.announced = true;
                Ok::<_, Halt>(old)
            };
            // a swap of a number for itself only reads it
            old[0] = atomic(self, 0, AtomicOp::CompareSwap, b[0], b[0])?;
            let new = if old[0] == b[0] { c[1] } else { b[1] };
            old[1] = atomic(self, 1, AtomicOp::CompareSwap, b[1], new)?;
            if old == b {
                atomic(self, 0, AtomicOp::Exchange, c[0], 0)?;
            }
            self.announced = false;
            return Ok(old);
        }
        for (word, memory) in memories.iter().enumerate() {
            let at = form.memory.at(address, 8 * word as i64);
            match kind {
                Wide::Load => old[word] = self.load(world, thread, index, memory, at, place, true)?,
                Wide::Store => self.store(world, thread, index, memory, (at, b[word]), place, true)?,
                _ => {
                    let form = AtomicForm { memory: *memory, ..*form };
                    old[word] = self.atomic(world, thread, index, &form, at, (b[word], 0), place)?;
                }
            }
            self.announced = true;
        }
        self.announced = false;
        Ok(old)
    }
}
