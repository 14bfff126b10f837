//! Loops that only look at a word: what ends them, and what they look at in shared memory. Which loops those are, [`polls`](crate::decode) says.

use super::fault::Fault;
use super::order::ToldInBlock;
use super::shared::{By, Touch};
use super::thread::Frame;
use super::{Block, Stop};
use crate::decode::window;
use crate::op::Reg;
use crate::world::{Access, Until, World};

impl Block {
    /// A thread was stopped at a load or a compare-and-swap: if it is in a loop that does nothing else, what ends that. A round of the loop that goes on leaves
    /// nothing behind, so the thread may as well be let go on only when what it finds ends the loop.
    pub fn ends_loop(&self, look: &Access) -> Option<Until> {
        let index = look.thread as usize;
        let Frame { code, registers, .. } = self.threads[index].frame;
        let code = &self.module.code[usize::from(code)];
        let Until { compare, ty, against, view, is_used, reloads } =
            *code.polls.get(&look.place.0.checked_sub(code.first_place)?)?;
        let rows = &self.registers[index / 32];
        let value = |register: Reg| rows[registers as usize + usize::from(register)][index % 32] & ty.mask();
        Some(Until {
            compare,
            ty,
            against: value(against),
            view: view.map(|&register| Some(value(register)))?,
            is_used,
            reloads,
        })
    }

    /// A thread begins to wait in such a loop for a word of shared memory. It looks there now: that may race with what others do, or nobody may have
    /// written there. The [fault](Stop::Fault), if it does.
    pub fn looks(&mut self, world: &mut impl World, look: &Access) -> Option<Box<Fault>> {
        let touch = Touch {
            thread: look.thread as usize,
            place: look.place,
            reads: true,
            writes: false,
            strong: true,
            repeats: false,
            by: By::Thread,
        };
        let stop = self.touch(world, offset(look.address), look.bytes.into(), touch).err()?;
        let Stop::Fault(fault) = *stop else { unreachable!("it is no step") };
        self.fault = Some(fault.clone());
        Some(fault)
    }

    /// The look that ends the loop comes after this, and not after what the word has told later. `None`: after nothing. The thread goes on
    /// next.
    pub fn reads_as_of(&mut self, thread: usize, told: Option<&ToldInBlock>) {
        self.order.reads_as_of(thread, told);
    }

    /// The word of shared memory that lies at a generic address within it.
    pub fn found_in_shared(&self, address: u64, bytes: u8) -> u64 {
        self.shared.load(offset(address), bytes)
    }

    /// What lies there, in words.
    pub fn named_in_shared(&self, address: u64) -> String {
        self.in_shared(offset(address))
    }
}

fn offset(address: u64) -> usize {
    (address % window::SHARED) as usize
}
