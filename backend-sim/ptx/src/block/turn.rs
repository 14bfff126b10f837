//! Threads run until they must wait: the loop that executes operations.
//!
//! Threads of a warp that stand at the same operation execute it together, as on a GPU: arithmetic, plain accesses, branches. What others
//! can see, or wait for, each does alone and in order.

use std::sync::Arc;

use super::barrier::Arrival;
use super::lanes::{Lanes, Many, One, Row};
use super::spin::Round;
use super::thread::{Frame, State, Thread, Together};
use super::{Block, FaultKind, Halt, Stop};
use crate::bytes;
use crate::module::{Group, Place};
use crate::op::{Callee, Op, Special};
use crate::types::Order;
use crate::world::{AccessKind, World};

/// Calls deeper than this are taken for an endless recursion.
const DEEPEST: usize = 1000;

/// Why threads do not run on together.
enum End {
    /// Their states say what they wait for.
    Wait,
    /// They have come to a barrier; the condition holds for these.
    Barrier { arrival: Arrival, holding: u32 },
    /// They go on one by one, or in smaller groups.
    Apart,
    /// They sleep: others come first.
    Sleep,
}

impl Block {
    /// A thread runs until it must wait, and with it those of its warp that stand where it stands.
    pub(super) fn turn(&mut self, world: &mut impl World, index: usize) -> Result<(), Halt> {
        let alone = std::mem::take(&mut self.alone) || self.announced;
        let lanes = if alone { 1 << (index % 32) } else { self.beside(index) };
        let warp = self.warp_of(index);
        let mut threads = std::mem::take(&mut self.threads);
        let mut rows = std::mem::take(&mut self.registers[index / 32]);
        let members = &mut threads[warp.clone()];
        let end = match lanes.is_power_of_two() {
            true => self.execute(world, warp.start, One(index % 32), members, &mut rows),
            false => self.execute(world, warp.start, Many(lanes), members, &mut rows),
        };
        self.threads = threads;
        self.registers[index / 32] = rows;
        for (address, bytes) in std::mem::take(&mut self.changed) {
            self.wake_where(|watch| watch.met || watch.covers(address, bytes.into()));
        }
        let members = Many(lanes).iter().map(|lane| warp.start + lane);
        match end? {
            End::Apart => Ok(()),
            End::Sleep => {
                self.current = (index + 1) % self.threads.len();
                Ok(())
            }
            End::Barrier { arrival, holding } => self.come_to_barrier(members, &arrival, holding),
            End::Wait => self.have_come(members),
        }
    }

    /// What threads have come to may complete what others wait for.
    fn have_come(&mut self, members: impl Iterator<Item = usize>) -> Result<(), Halt> {
        for index in members {
            match self.threads[index].state {
                State::Ready | State::Barrier { .. } | State::Parked { .. } => {}
                State::Exited => self.exited(index)?,
                State::Warp(together) => self.together(index, together)?,
                // Those who have come with it, have come for the same call.
                State::Call { .. } => return self.called(index),
            }
        }
        Ok(())
    }

    /// The lanes of a thread's warp that stand where it stands, itself among them.
    fn beside(&self, index: usize) -> u32 {
        let mine = &self.threads[index];
        let warp = self.warp_of(index);
        let beside = |thread: &Thread| {
            thread.state == State::Ready && thread.frame == mine.frame && thread.frames == mine.frames
        };
        let of_warp = self.threads[warp].iter().enumerate();
        of_warp.fold(0, |lanes, (lane, thread)| lanes | u32::from(beside(thread)) << lane)
    }

    /// `first` is the number of the warp's first thread.
    fn execute<L: Lanes>(
        &mut self,
        world: &mut impl World,
        first: usize,
        lanes: L,
        threads: &mut [Thread],
        rows: &mut Vec<Row>,
    ) -> Result<End, Halt> {
        let module = Arc::clone(&self.module);
        let lead = lanes.lead();
        loop {
            let frame = threads[lead].frame;
            let code = &module.code[usize::from(frame.code)];
            let ops = &code.ops[..];
            let r = &mut rows[frame.registers as usize..][..code.registers.len()];
            let mut pc = frame.pc as usize;
            macro_rules! place {
                () => {
                    Place(code.first_place + pc as u32)
                };
            }
            // All threads stand at an operation.
            macro_rules! stand {
                ($at:expr) => {{
                    let at: usize = $at;
                    lanes.iter().for_each(|lane| threads[lane].frame.pc = at as u32);
                }};
            }
            // Each thread waits, and goes on behind this operation.
            macro_rules! wait {
                (|$lane:ident| $state:expr) => {{
                    for $lane in lanes.iter() {
                        threads[$lane].state = $state;
                    }
                    stand!(pc + 1);
                    return Ok(End::Wait);
                }};
            }
            // The operation is one for each thread alone. Whose turn it is begins.
            macro_rules! alone {
                () => {
                    if L::MANY {
                        self.alone = true;
                        stand!(pc);
                        return Ok(End::Apart);
                    }
                };
            }
            // What one thread does may end the turn: those before it have done it.
            macro_rules! each {
                (|$lane:ident| $done:expr) => {
                    for $lane in lanes.iter() {
                        if let Err(halt) = $done {
                            lanes
                                .iter()
                                .for_each(|lane| threads[lane].frame.pc = (pc + usize::from(lane < $lane)) as u32);
                            self.current = first + $lane;
                            return Err(halt);
                        }
                    }
                };
            }
            // Jumps; threads wait if all they do is to wait.
            macro_rules! jump {
                ($target:expr) => {{
                    let target: u32 = $target;
                    if target as usize <= pc {
                        let mut parked = false;
                        for lane in lanes.iter() {
                            parked |= self.jump_back(
                                world,
                                first + lane,
                                &mut threads[lane],
                                r,
                                (pc as u32, target),
                                place!(),
                            )?;
                        }
                        if parked {
                            stand!(target as usize);
                            return Ok(End::Apart);
                        }
                    }
                    pc = target as usize;
                    continue;
                }};
            }
            let call = loop {
                self.steps += lanes.count();
                match ops[pc] {
                    Op::Move { d, a } => lanes.unary(r, d, a, |a| a),
                    Op::Unary { f, d, a } => lanes.unary(r, d, a, f),
                    Op::Binary { f, d, a, b } => lanes.binary(r, d, a, b, f),
                    Op::Ternary { f, d, a, b, c } => lanes.ternary(r, d, [a, b, c], f),
                    Op::Quaternary { f, d, a, b, c, e } => {
                        for lane in lanes.iter() {
                            let [a, b, c, e] = [a, b, c, e].map(|register| r[usize::from(register)][lane]);
                            r[usize::from(d)][lane] = f(a, b, c, e);
                        }
                    }
                    Op::Add32 { d, a, b } => {
                        lanes.binary(r, d, a, b, |a, b| u64::from((a as u32).wrapping_add(b as u32)));
                    }
                    Op::Add64 { d, a, b } => lanes.binary(r, d, a, b, u64::wrapping_add),
                    Op::MulWideS32 { d, a, b } => {
                        lanes.binary(r, d, a, b, |a, b| (i64::from(a as i32) * i64::from(b as i32)).cast_unsigned());
                    }
                    Op::FmaF32 { d, a, b, c } => lanes.ternary(r, d, [a, b, c], |a, b, c| {
                        let [a, b, c] = [a, b, c].map(|bits| f32::from_bits(bits as u32));
                        let result = a.mul_add(b, c);
                        u64::from(if result.is_nan() { 0x7fff_ffff } else { result.to_bits() })
                    }),
                    Op::LessS32 { d, a, b } => lanes.binary(r, d, a, b, |a, b| u64::from((a as i32) < b as i32)),
                    Op::Carry { f, d, a, b, c, uses, sets } => {
                        for lane in lanes.iter() {
                            let [a, b, c] = [a, b, c].map(|register| r[usize::from(register)][lane]);
                            let (result, carry) = f(a, b, c, uses && threads[lane].carry);
                            r[usize::from(d)][lane] = result;
                            if sets {
                                threads[lane].carry = carry;
                            }
                        }
                    }
                    Op::Convert { d, a, how } => {
                        let conversion = &code.conversions[usize::from(how)];
                        lanes.unary(r, d, a, |a| conversion.apply(a));
                    }
                    Op::Special { d, what } => {
                        lanes.iter().for_each(|lane| r[usize::from(d)][lane] = self.special(first + lane, what));
                    }
                    Op::Global { d, variable, offset } => {
                        let address = self.launch.globals[usize::from(variable)].wrapping_add_signed(offset.into());
                        lanes.iter().for_each(|lane| r[usize::from(d)][lane] = address);
                    }
                    Op::Local { d, offset } => {
                        let address = u64::from(frame.local) + u64::from(offset);
                        lanes.iter().for_each(|lane| r[usize::from(d)][lane] = address);
                    }
                    Op::Load { d, a, offset, memory } => {
                        let (d, a) = (usize::from(d), usize::from(a));
                        let address = |r: &[Row], lane: usize| r[a][lane].wrapping_add_signed(offset.into());
                        if L::MANY
                            && self.stops_at(world, first, lanes, &memory, AccessKind::Load, |lane| address(r, lane))
                        {
                            alone!();
                        }
                        each!(|lane| self
                            .load(
                                world,
                                &mut threads[lane],
                                first + lane,
                                &memory,
                                address(r, lane),
                                place!(),
                                !L::MANY
                            )
                            .map(|value| r[d][lane] = value));
                    }
                    Op::Store { s, a, offset, memory } => {
                        let (s, a) = (usize::from(s), usize::from(a));
                        let address = |lane: usize| r[a][lane].wrapping_add_signed(offset.into());
                        if L::MANY && self.stops_at(world, first, lanes, &memory, AccessKind::Store, address) {
                            alone!();
                        }
                        each!(|lane| self.store(
                            world,
                            &mut threads[lane],
                            first + lane,
                            &memory,
                            (address(lane), r[s][lane]),
                            place!(),
                            !L::MANY
                        ));
                    }
                    Op::LoadParameter { d, offset, bytes } => {
                        let value = bytes::get(&self.launch.parameters, offset as usize, bytes).unwrap_or(0);
                        lanes.iter().for_each(|lane| r[usize::from(d)][lane] = value);
                    }
                    Op::LoadSlot { d, offset, bytes } => {
                        let at = (frame.slots + offset) as usize;
                        for lane in lanes.iter() {
                            r[usize::from(d)][lane] = bytes::get(&threads[lane].slots, at, bytes).unwrap_or(0);
                        }
                    }
                    Op::StoreSlot { s, offset, bytes } => {
                        let at = (frame.slots + offset) as usize;
                        for lane in lanes.iter() {
                            bytes::put(&mut threads[lane].slots, at, bytes, r[usize::from(s)][lane]);
                        }
                    }
                    Op::Atomic { d, a, b, c, how } => {
                        alone!();
                        let form = &code.atomics[usize::from(how)];
                        let [address, b, c] = [a, b, c].map(|register| r[usize::from(register)][lead]);
                        let address = address.wrapping_add_signed(form.offset);
                        let thread = &mut threads[lead];
                        thread.frame.pc = pc as u32;
                        let old = self.atomic(world, thread, first + lead, form, address, (b, c), place!())?;
                        r[usize::from(d)][lead] = old;
                    }
                    Op::Fence { fence, scope } => {
                        alone!();
                        let index = first + lead;
                        if !std::mem::take(&mut self.announced) && world.stops_at_fence(self.who(index), scope) {
                            self.announced = true;
                            stand!(pc);
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
                        let row = &r[usize::from(p)];
                        let taken = lanes.those(|lane| (row[lane] & 1 == 1) != unless);
                        if taken == lanes.mask() {
                            jump!(target);
                        } else if taken != 0 {
                            // Some go there, some here.
                            stand!(pc + 1);
                            for lane in Many(taken).iter() {
                                if target as usize <= pc {
                                    let thread = &mut threads[lane];
                                    self.jump_back(world, first + lane, thread, r, (pc as u32, target), place!())?;
                                }
                                threads[lane].frame.pc = target;
                            }
                            return Ok(End::Apart);
                        }
                    }
                    Op::BranchTable { a, table } => {
                        if !lanes.agree(r, a) {
                            alone!();
                        }
                        match code.tables[usize::from(table)].get(r[usize::from(a)][lead] as u32 as usize) {
                            Some(&target) => jump!(target),
                            None => {
                                return Err(self.fault(
                                    FaultKind::InvalidOperand,
                                    first + lead,
                                    place!(),
                                    "an indexed branch beyond its table",
                                ));
                            }
                        }
                    }
                    Op::Call { call } => {
                        if let Callee::External(external) = code.calls[usize::from(call)].callee
                            && let Some(value) = world.query(external.into())
                        {
                            for lane in lanes.iter() {
                                threads[lane].take_result(&code.calls[usize::from(call)], value);
                            }
                        } else {
                            stand!(pc);
                            break Some(call);
                        }
                    }
                    Op::Return => break None,
                    Op::Exit => wait!(|lane| State::Exited),
                    Op::Trap => {
                        return Err(self.fault(FaultKind::Trap, first + lead, place!(), "the kernel has trapped"));
                    }
                    Op::Barrier { kind, d, a, b, p, aligned } => {
                        if !lanes.agree(r, a) || b.is_some_and(|b| !lanes.agree(r, b)) {
                            alone!();
                        }
                        stand!(pc + 1);
                        let holding = lanes.those(|lane| r[usize::from(p)][lane] & 1 == 1);
                        let number = r[usize::from(a)][lead] as u32;
                        let count = b.map(|b| r[usize::from(b)][lead] as u32);
                        lanes.iter().for_each(|lane| threads[lane].spin.met());
                        let arrival = Arrival { kind, number, count, aligned, d, place: place!() };
                        return Ok(End::Barrier { arrival, holding });
                    }
                    Op::Warp { kind, d, q, a, b, c, mask } => {
                        lanes.iter().for_each(|lane| threads[lane].spin.met());
                        let get = |register, lane: usize| r[usize::from(register)][lane];
                        wait!(|lane| State::Warp(Together {
                            kind,
                            mask: get(mask, lane) as u32,
                            values: [get(a, lane), get(b, lane), get(c, lane)],
                            d,
                            q,
                            place: place!(),
                        }));
                    }
                    Op::MBarrier { kind, d, a, b, shared } => {
                        alone!();
                        let operands = (r[usize::from(a)][lead], r[usize::from(b)][lead]);
                        let thread = &mut threads[lead];
                        thread.frame.pc = pc as u32;
                        let result = self.mbarrier(thread, first + lead, kind, operands, shared, place!())?;
                        r[usize::from(d)][lead] = result;
                    }
                    Op::Bulk { kind, t, s, n, barrier } => {
                        alone!();
                        let operands = [t, s, n, barrier].map(|register| r[usize::from(register)][lead]);
                        let thread = &mut threads[lead];
                        thread.frame.pc = pc as u32;
                        self.bulk(world, thread, first + lead, kind, operands, place!())?;
                    }
                    Op::Sleep => {
                        stand!(pc + 1);
                        return Ok(End::Sleep);
                    }
                }
                pc += 1;
            };
            let Some(call) = call else {
                for lane in lanes.iter() {
                    threads[lane].leave(&module);
                }
                if !threads[lead].is_live() {
                    return Ok(End::Wait);
                }
                continue;
            };
            match code.calls[usize::from(call)].callee {
                Callee::Function(callee) => {
                    for lane in lanes.iter() {
                        self.enter(first + lane, &mut threads[lane], callee, call, place!())?;
                    }
                    let callee = &module.code[usize::from(callee)];
                    let begin = threads[lead].frame.registers as usize;
                    rows.resize(rows.len().max(begin + callee.registers.len()), [0; 32]);
                    for (row, &value) in rows[begin..].iter_mut().zip(&callee.registers) {
                        lanes.iter().for_each(|lane| row[lane] = value);
                    }
                }
                Callee::External(external) if module.externals[usize::from(external)].group != Group::Thread => {
                    wait!(|lane| State::Call { external, call, place: place!(), issued: false });
                }
                _ => {
                    alone!();
                    if self.call(world, first + lead, &mut threads[lead], call)? {
                        return Ok(End::Wait);
                    }
                }
            }
        }
    }

    /// A thread jumps back. Whether it waits from now on: all that it does is to wait.
    #[inline]
    fn jump_back(
        &mut self,
        world: &mut impl World,
        index: usize,
        thread: &mut Thread,
        registers: &[Row],
        (from, to): (u32, u32),
        place: Place,
    ) -> Result<bool, Halt> {
        thread.last_loop = (from, to);
        if self.steps > self.launch.max_steps {
            return Err(self.endless(index, thread, "the block has executed more instructions than allowed"));
        }
        let watch = match thread.backward(to, registers, index % 32, &self.changes) {
            Round::Goes => return Ok(false),
            Round::Again(watch, changes) => {
                world.looks_again(&watch.ranges, changes);
                return Ok(false);
            }
            Round::Waits(watch) => watch,
        };
        if watch.ranges.is_empty() && !watch.any && !watch.met {
            return Err(self.endless(index, thread, "a loop that nothing can end"));
        }
        self.parked += 1;
        thread.state = State::Parked { watch, place };
        Ok(true)
    }

    /// Enters a device function: a frame behind the caller's, with the arguments in its slots.
    pub(super) fn enter(
        &self,
        index: usize,
        thread: &mut Thread,
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
        let mine = module.code[usize::from(thread.frame.code)].registers.len() as u32;
        thread.frames.push(thread.frame);
        thread.frame = Frame {
            code: callee,
            pc: 0,
            registers: thread.frame.registers + mine,
            slots: slots_begin as u32,
            local: local_begin as u32,
            call,
        };
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
