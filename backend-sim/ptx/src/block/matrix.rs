//! Matrices that a warp holds together: rows in shared memory, and what all 32 lanes compute.
//!
//! A row is an ordinary access of the lane that names it. Computing together does not order the lanes' accesses, because PTX does not promise that for
//! these instructions.

use super::thread::{State, Thread};
use super::{Block, FaultKind, Halt};
use crate::module::Place;
use crate::op::{Memory, Reg};
use crate::types::Space;
use crate::world::World;

impl Block {
    /// A row of a matrix in shared memory, 16 bytes at an address in the space or generic, is loaded or stored by a lane.
    #[inline(never)]
    pub(super) fn row(
        &mut self,
        world: &mut impl World,
        thread: &mut Thread,
        index: usize,
        (stores, address, in_space): (bool, u64, bool),
        mut row: [u64; 2],
        place: Place,
    ) -> Result<[u64; 2], Halt> {
        let address = self.shared_address(address, in_space, index, place)?;
        for (half, align) in row.iter_mut().zip([16, 8]) {
            let address = address + 16 - u64::from(align);
            let memory = Memory { align, ..Memory::plain(Space::Shared, 8) };
            match stores {
                true => self.store(world, thread, index, &memory, (address, *half), place, false)?,
                false => *half = self.load(world, thread, index, &memory, address, place, false)?,
            }
        }
        Ok(row)
    }

    /// All lanes of the warp that begins with this thread have come to an instruction on matrices.
    #[inline(never)]
    pub(super) fn matrices(&mut self, first: usize, how: u16) {
        let module = std::sync::Arc::clone(&self.module);
        let form = &module.code[usize::from(self.threads[first].frame.code)].matrices[usize::from(how)];
        let operands = form.operands.each_ref().map(|registers| {
            let of_lanes = |&register: &Reg| std::array::from_fn(|lane| self.get(first + lane, register));
            registers.iter().map(of_lanes).collect()
        });
        for (&d, row) in form.d.iter().zip(form.kind.apply(&operands)) {
            (0..32).for_each(|lane| self.set(first + lane, d, row[lane]));
        }
        self.threads[first..first + 32].iter_mut().for_each(|thread| thread.state = State::Ready);
    }

    pub(super) fn get(&self, thread: usize, register: Reg) -> u64 {
        let at = self.threads[thread].frame.registers as usize + usize::from(register);
        self.registers[thread / 32][at][thread % 32]
    }

    /// The fault of a lane that has come, while another lane of a full warp does not exist or has ended.
    #[cold]
    pub(super) fn lane_is_missing(&self, index: usize, members: &[usize], place: Place) -> Halt {
        let missing = (0..32).find(|lane| !members.iter().any(|member| member % 32 == *lane)).unwrap_or(0);
        let why = if self.warp_of(index).len() > missing { "has ended" } else { "is no thread of the block" };
        let message = format!("all 32 lanes of the warp compute with a matrix together, and lane {missing} {why}");
        self.fault(FaultKind::MissingLanes, index, place, message)
    }
}
