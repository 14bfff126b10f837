//! Loops that only look at a word: what ends them, and what they look at in shared memory. [`polls`](crate::decode) finds these loops.

use super::access::route;
use super::fault::Fault;
use super::order::ToldInBlock;
use super::shared::{By, Strength, Touch};
use super::{Block, Call, Stop};
use crate::decode::window;
use crate::module::Place;
use crate::op::{self, Memory, Op, Reg};
use crate::types::{Order, Space};
use crate::world::{Access, AccessKind, LookBeside, Looks, Until, World};

impl Block {
    /// What ends the loop of a thread that was stopped at a load or an atomic, if the loop does nothing else; and the look that does. `None` if the access is
    /// not in such a loop. A round that does not end the loop leaves nothing behind, so the world may let the thread go on only when its look would
    /// end the loop. The look is the access, or that of a later element of a vector, which is made with it. `words`: whether the world accesses
    /// [words](World::accesses_words).
    pub fn ends_loop(&self, first: &Access, words: bool) -> Option<(Access, Looks)> {
        let thread = first.thread as usize;
        let code = &self.module.code[usize::from(self.threads[thread].frame.code)];
        let mut at = first.place.0.checked_sub(code.first_place)?;
        let (mut look, mut besides) = (*first, Vec::new());
        let poll = loop {
            if let Some(poll) = code.polls.get(&at) {
                break poll;
            }
            if !words || !look.within.goes_on() {
                return None;
            }
            besides.push(LookBeside { access: look, is_call: false, otherwise: None });
            let next = code.ops[at as usize + 1..].iter().position(|op| matches!(op, Op::Load { .. }))?;
            at += next as u32 + 1;
            let Op::Load { ref memory, .. } = code.ops[at as usize] else { unreachable!("it was found") };
            let address = look.address + u64::from(look.bytes);
            look = self.access(thread, memory, address, AccessKind::Load, Place(code.first_place + at));
        };
        Some((look, self.looks_of(thread, poll, besides)?))
    }

    /// What the call of a thread must return that it does not make in vain, if it is in such a loop. The word that it looks at is the caller's to know.
    pub fn call_ends_loop(&self, call: &Call) -> Option<Looks> {
        let &[thread] = &call.threads[..] else { return None };
        let code = &self.module.code[usize::from(self.threads[thread].frame.code)];
        let poll = code.polls.get(&call.place.0.checked_sub(code.first_place)?)?;
        self.looks_of(thread, poll, Vec::new())
    }

    /// What a thread asks in a loop, which also makes these looks besides.
    fn looks_of(&self, thread: usize, poll: &op::Looks, mut besides: Vec<LookBeside>) -> Option<Looks> {
        let code = &self.module.code[usize::from(self.threads[thread].frame.code)];
        for &op::LookBeside { load, base, offset, otherwise } in &poll.besides {
            let fetches = Memory { order: Order::Relaxed, ..Memory::plain(Space::Generic, 8) };
            let (memory, is_call) = match &code.ops[load as usize] {
                Op::Load { memory, .. } => (memory, false),
                Op::Call { .. } => (&fetches, true),
                _ => return None,
            };
            let address = memory.at(self.value(thread, base), offset);
            let address = match route(memory.space, address) {
                (Space::Global | Space::Generic, at) => at,
                (Space::Shared, at) if at < window::SHARED => window::SHARED + self.blocks.place(thread, at),
                _ => return None,
            };
            let place = Place(code.first_place + load);
            let access = self.access(thread, memory, address, AccessKind::Load, place);
            let otherwise = otherwise.map(|otherwise| self.asked(thread, &otherwise));
            besides.push(LookBeside { access, is_call, otherwise });
        }
        Some(Looks { until: self.asked(thread, &poll.until), besides })
    }

    /// What a thread asks, with the numbers that its registers have.
    fn asked(&self, thread: usize, until: &Until<Reg>) -> Until {
        let Until { compare, ty, against, ref view, is_used, reloads } = *until;
        let value = |register: Reg| self.value(thread, register) & ty.mask();
        let view = view.map(|&register| Some(value(register))).expect("there is one for each");
        Until { compare, ty, against: value(against), view, is_used, reloads }
    }

    fn value(&self, thread: usize, register: Reg) -> u64 {
        let (rows, begin) = (&self.registers[thread / 32], self.threads[thread].frame.registers);
        rows[begin as usize + usize::from(register)][thread % 32]
    }

    /// A thread begins to wait in such a loop for a word of shared memory, and looks at it now. Returns the [fault](Stop::Fault) if the look races, or if
    /// nobody has written the word; `None` if nothing is wrong.
    pub fn looks(&mut self, world: &mut impl World, look: &Access) -> Option<Box<Fault>> {
        let strength = Strength::of(look.order, look.scope);
        let touch = Touch { strength, ..Touch::read(look.thread as usize, look.place, By::Thread) };
        let stop = self.touch(world, offset(look.address), look.bytes.into(), touch).err()?;
        let Stop::Fault(fault) = *stop else { unreachable!("it is no step") };
        self.fault = Some(fault.clone());
        Some(fault)
    }

    /// The look that ends the loop learns `told`, and nothing that was released at the word later. With `None` it learns nothing. Call it just before the thread goes
    /// on.
    pub fn reads_as_of(&mut self, thread: usize, told: Option<&ToldInBlock>) {
        self.order.reads_as_of(thread, told);
    }

    /// The word of shared memory that lies at a generic address within it.
    pub fn found_in_shared(&self, address: u64, bytes: u8) -> u64 {
        self.shared.load(offset(address), bytes)
    }

    /// The name of what lies there, for reports.
    pub fn named_in_shared(&self, address: u64) -> String {
        self.in_shared(offset(address))
    }
}

fn offset(address: u64) -> usize {
    (address % window::SHARED) as usize
}
