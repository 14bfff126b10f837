//! One thread runs until it must wait: the loop that executes operations.

use std::sync::Arc;

use super::spin::Round;
use super::thread::{Frame, State, Thread, Together};
use super::{Block, FaultKind, Halt, Stop};
use crate::bytes;
use crate::module::Place;
use crate::op::{Op, Special};
use crate::types::Order;
use crate::world::World;

/// Calls deeper than this are taken for an endless recursion.
const DEEPEST: usize = 1000;

impl Block {
    pub(super) fn turn(&mut self, world: &mut impl World, index: usize) -> Result<(), Halt> {
        let mut thread = std::mem::take(&mut self.threads[index]);
        let mut registers = std::mem::take(&mut thread.registers);
        let result = self.execute(world, index, &mut thread, &mut registers);
        thread.registers = registers;
        self.threads[index] = thread;
        result?;
        // What the thread has come to may complete what others wait for.
        match self.threads[index].state {
            State::Ready => {
                self.current = (index + 1) % self.threads.len(); // it sleeps: the others come first
                Ok(())
            }
            State::Exited => self.exited(index),
            State::Barrier { number, .. } => self.arrived(index, number),
            State::Warp(together) => self.together(index, together),
            State::Call { .. } => self.called(index),
            State::Parked { .. } => Ok(()),
        }
    }

    fn execute(
        &mut self,
        world: &mut impl World,
        index: usize,
        thread: &mut Thread,
        registers: &mut Vec<u64>,
    ) -> Result<(), Halt> {
        let module = Arc::clone(&self.module);
        loop {
            let code = &module.code[usize::from(thread.frame.code)];
            let ops = &code.ops[..];
            let r = &mut registers[thread.frame.registers as usize..];
            let mut pc = thread.frame.pc as usize;
            macro_rules! get {
                ($register:expr) => {
                    r[usize::from($register)]
                };
            }
            macro_rules! place {
                () => {
                    Place(code.first_place + pc as u32)
                };
            }
            // The thread waits, and goes on behind this operation.
            macro_rules! wait {
                ($state:expr) => {{
                    thread.state = $state;
                    thread.frame.pc = pc as u32 + 1;
                    return Ok(());
                }};
            }
            // Jumps; the thread waits if all it does is to wait.
            macro_rules! jump {
                ($target:expr) => {{
                    let target: u32 = $target;
                    if target as usize <= pc {
                        thread.last_loop = (pc as u32, target);
                        if self.steps > self.launch.max_steps {
                            thread.frame.pc = pc as u32;
                            return Err(self.endless(
                                index,
                                thread,
                                "the block has executed more instructions than allowed",
                            ));
                        }
                        let round = thread.backward(target, r, &self.changes);
                        if let Round::Again(watch, changes) = &round {
                            world.looks_again(&watch.ranges, *changes);
                        }
                        if let Round::Waits(watch) = round {
                            if watch.ranges.is_empty() && !watch.any && !watch.met {
                                thread.frame.pc = pc as u32;
                                return Err(self.endless(index, thread, "a loop that nothing can end"));
                            }
                            let place = place!();
                            self.parked += 1;
                            thread.frame.pc = target;
                            thread.state = State::Parked { watch, place };
                            return Ok(());
                        }
                    }
                    pc = target as usize;
                    continue;
                }};
            }
            let call = loop {
                self.steps += 1;
                match ops[pc] {
                    Op::Move { d, a } => get!(d) = get!(a),
                    Op::Unary { f, d, a } => get!(d) = f(get!(a)),
                    Op::Binary { f, d, a, b } => get!(d) = f(get!(a), get!(b)),
                    Op::Ternary { f, d, a, b, c } => get!(d) = f(get!(a), get!(b), get!(c)),
                    Op::Quaternary { f, d, a, b, c, e } => get!(d) = f(get!(a), get!(b), get!(c), get!(e)),
                    Op::Add32 { d, a, b } => get!(d) = u64::from((get!(a) as u32).wrapping_add(get!(b) as u32)),
                    Op::Add64 { d, a, b } => get!(d) = get!(a).wrapping_add(get!(b)),
                    Op::MulWideS32 { d, a, b } => {
                        let product = i64::from(get!(a) as i32) * i64::from(get!(b) as i32);
                        get!(d) = product.cast_unsigned();
                    }
                    Op::FmaF32 { d, a, b, c } => {
                        let [a, b, c] = [a, b, c].map(|register| f32::from_bits(get!(register) as u32));
                        let result = a.mul_add(b, c);
                        get!(d) = u64::from(if result.is_nan() { 0x7fff_ffff } else { result.to_bits() });
                    }
                    Op::LessS32 { d, a, b } => get!(d) = u64::from((get!(a) as i32) < get!(b) as i32),
                    Op::Carry { f, d, a, b, c, uses, sets } => {
                        let (result, carry) = f(get!(a), get!(b), get!(c), uses && thread.carry);
                        get!(d) = result;
                        if sets {
                            thread.carry = carry;
                        }
                    }
                    Op::Convert { d, a, how } => get!(d) = code.conversions[usize::from(how)].apply(get!(a)),
                    Op::Special { d, what } => get!(d) = self.special(index, what),
                    Op::Global { d, variable, offset } => {
                        get!(d) = self.launch.globals[usize::from(variable)].wrapping_add_signed(offset.into());
                    }
                    Op::Local { d, offset } => get!(d) = u64::from(thread.frame.local) + u64::from(offset),
                    Op::Load { d, a, offset, memory } => {
                        let address = get!(a).wrapping_add_signed(offset.into());
                        thread.frame.pc = pc as u32;
                        get!(d) = self.load(world, thread, index, &memory, address, place!())?;
                    }
                    Op::Store { s, a, offset, memory } => {
                        let address = get!(a).wrapping_add_signed(offset.into());
                        thread.frame.pc = pc as u32;
                        self.store(world, thread, index, &memory, address, get!(s), place!())?;
                    }
                    Op::LoadParameter { d, offset, bytes } => {
                        get!(d) = bytes::get(&self.launch.parameters, offset as usize, bytes).unwrap_or(0)
                    }
                    Op::LoadSlot { d, offset, bytes } => {
                        get!(d) = bytes::get(&thread.slots, (thread.frame.slots + offset) as usize, bytes).unwrap_or(0)
                    }
                    Op::StoreSlot { s, offset, bytes } => {
                        bytes::put(&mut thread.slots, (thread.frame.slots + offset) as usize, bytes, get!(s));
                    }
                    Op::Atomic { d, a, b, c, how } => {
                        let form = &code.atomics[usize::from(how)];
                        let address = get!(a).wrapping_add_signed(form.offset);
                        thread.frame.pc = pc as u32;
                        get!(d) = self.atomic(world, thread, index, form, address, (get!(b), get!(c)), place!())?;
                    }
                    Op::Fence { fence, scope } => {
                        if !std::mem::take(&mut self.announced) && world.stops_at_fence(self.who(index), scope) {
                            self.announced = true;
                            thread.frame.pc = pc as u32;
                            return Err(Box::new(Stop::Fence(place!())));
                        }
                        self.order.fence(index);
                        self.tell(world);
                        if fence != crate::op::FenceKind::Proxy {
                            world.fence(self.who(index), scope, fence.is_sequential(), place!());
                        }
                    }
                    Op::Branch { target } => jump!(target),
                    Op::BranchIf { p, unless, target } => {
                        if (get!(p) & 1 == 1) != unless {
                            jump!(target);
                        }
                    }
                    Op::BranchTable { a, table } => {
                        match code.tables[usize::from(table)].get(get!(a) as u32 as usize) {
                            Some(&target) => jump!(target),
                            None => {
                                return Err(self.fault(
                                    FaultKind::InvalidOperand,
                                    index,
                                    place!(),
                                    "an indexed branch beyond its table",
                                ));
                            }
                        }
                    }
                    Op::Call { call } => {
                        thread.frame.pc = pc as u32;
                        break Some(call);
                    }
                    Op::Return => break None,
                    Op::Exit => wait!(State::Exited),
                    Op::Trap => return Err(self.fault(FaultKind::Trap, index, place!(), "the kernel has trapped")),
                    Op::Barrier { kind, d, a, b, p, aligned } => {
                        let arrival = super::barrier::Arrival {
                            kind,
                            number: get!(a) as u32,
                            count: b.map(|b| get!(b) as u32),
                            holds: get!(p) & 1 == 1,
                            aligned,
                            place: place!(),
                        };
                        let number = self.arrive(index, &arrival)?;
                        thread.spin.met();
                        if kind == crate::op::Barrier::Arrive {
                            // Those who wait for this thread go on; it does not.
                            self.complete(number)?;
                        } else {
                            wait!(State::Barrier { number, place: arrival.place, d });
                        }
                    }
                    Op::Warp { kind, d, q, a, b, c, mask } => {
                        thread.spin.met();
                        wait!(State::Warp(Together {
                            kind,
                            mask: get!(mask) as u32,
                            values: [get!(a), get!(b), get!(c)],
                            d,
                            q,
                            place: place!(),
                        }));
                    }
                    Op::MBarrier { kind, d, a, b, shared } => {
                        thread.frame.pc = pc as u32;
                        get!(d) = self.mbarrier(thread, index, kind, (get!(a), get!(b)), shared, place!())?;
                    }
                    Op::Bulk { kind, t, s, n, barrier } => {
                        thread.frame.pc = pc as u32;
                        self.bulk(world, thread, index, kind, [get!(t), get!(s), get!(n), get!(barrier)], place!())?;
                    }
                    Op::Sleep => wait!(State::Ready),
                }
                pc += 1;
            };
            let Some(call) = call else {
                // A return: the result goes into the caller's slot.
                let Some(caller) = thread.frames.pop() else {
                    thread.state = State::Exited;
                    return Ok(());
                };
                let result = module.code[usize::from(caller.code)].calls[usize::from(thread.frame.call)].result;
                if let (Some(from), Some(to)) = (code.result, result) {
                    let from = (thread.frame.slots + from.offset) as usize;
                    thread.slots.copy_within(from..from + to.size as usize, (caller.slots + to.offset) as usize);
                }
                registers.truncate(thread.frame.registers as usize);
                thread.slots.truncate(thread.frame.slots as usize);
                thread.local.truncate(thread.frame.local as usize);
                thread.frame = caller;
                thread.frame.pc += 1;
                continue;
            };
            if self.call(world, index, thread, registers, call)? {
                return Ok(());
            }
        }
    }

    /// Enters a device function: a frame behind the caller's, with the arguments in its slots.
    pub(super) fn enter(
        &self,
        index: usize,
        thread: &mut Thread,
        registers: &mut Vec<u64>,
        callee: u16,
        call: u16,
        place: Place,
    ) -> Result<(), Halt> {
        let module = &self.module;
        let code = &module.code[usize::from(callee)];
        let site = &module.code[usize::from(thread.frame.code)].calls[usize::from(call)];
        let local_begin = thread.local.len().next_multiple_of(16);
        if thread.frames.len() >= DEEPEST || local_begin + code.local as usize > 512 << 10 {
            return Err(self.fault(FaultKind::StackOverflow, index, place, "calls are nested too deeply"));
        }
        let slots_begin = thread.slots.len().next_multiple_of(16);
        thread.slots.resize(slots_begin + code.slots as usize, 0);
        for (from, to) in site.arguments.iter().zip(&code.parameters) {
            let begin = (thread.frame.slots + from.offset) as usize;
            thread.slots.copy_within(begin..begin + from.size as usize, slots_begin + to.offset as usize);
        }
        thread.local.resize(local_begin + code.local as usize, 0);
        thread.frames.push(thread.frame);
        thread.frame = Frame {
            code: callee,
            pc: 0,
            registers: registers.len() as u32,
            slots: slots_begin as u32,
            local: local_begin as u32,
            call,
        };
        registers.extend_from_slice(&code.registers);
        Ok(())
    }

    fn endless(&self, index: usize, thread: &Thread, message: &str) -> Halt {
        let first = self.module.code[usize::from(thread.frame.code)].first_place;
        let (end, begin) = thread.last_loop;
        self.fault_with(
            FaultKind::EndlessLoop,
            (index, Place(first + end)),
            (index, Place(first + begin)),
            format!("{message}: its last line and its first"),
        )
    }

    fn special(&self, index: usize, what: Special) -> u64 {
        let lane = index % 32;
        let axis = |values: [u32; 3], axis: u8| u64::from(values[usize::from(axis)]);
        match what {
            Special::Thread(at) => axis(self.who(index).thread, at),
            Special::BlockSize(at) => axis(self.launch.block, at),
            Special::Block(at) => axis(self.position, at),
            Special::GridSize(at) => axis(self.launch.grid, at),
            Special::Lane => lane as u64,
            Special::Warp => (index / 32) as u64,
            Special::Warps => self.threads.len().div_ceil(32) as u64,
            Special::LaneMask | Special::Active => 1 << lane,
            Special::LanesBelow => (1 << lane) - 1,
            Special::LanesUpTo => (2 << lane) - 1,
            Special::LanesFrom => 0xffff_ffff & !((1 << lane) - 1),
            Special::LanesAbove => 0xffff_ffff & !((2 << lane) - 1),
            Special::Environment(1) => self.launch.workspace >> 32,
            Special::Environment(2) => self.launch.workspace & 0xffff_ffff,
            Special::Environment(_) => 0,
            Special::DynamicShared => self.launch.dynamic_shared.into(),
            Special::TotalShared => self.shared_bytes.into(),
            Special::Clock => self.events,
            Special::Constant(value) => value.into(),
        }
    }
}

/// The order of the interpreter's own accesses.
pub(super) const PLAIN: Order = Order::Weak;
