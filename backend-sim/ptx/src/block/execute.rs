//! The loop that executes operations, of one thread or of several of a warp together.
//!
//! Threads that stand at the same operation do it together, as on a GPU: arithmetic, plain accesses, branches. What others can see, or
//! wait for, each does alone and in order.

use std::sync::Arc;

use super::barrier::Arrival;
use super::lanes::{self, Lanes, Many, Row};
use super::straight::Straight;
use super::thread::{State, Thread, Together};
use super::turn::End;
use super::{Block, FaultKind, Halt, Stop};
use crate::bytes;
use crate::module::{Group, Place};
use crate::op::{Bulk, Callee, FenceKind, Multi, Op};
use crate::world::{AccessKind, World};

/// Why operations do not follow each other.
enum Next {
    Call(u16),
    Return,
    End(End),
}

impl Block {
    /// `first` is the number of the warp's first thread.
    pub(super) fn execute<L: Lanes>(
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
            let (callers, r) = rows.split_at_mut(frame.registers as usize);
            let r = &mut r[..code.registers.len()];
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
                    lanes.each(|lane| threads[lane].frame.pc = at as u32);
                }};
            }
            // Each thread waits, and later goes on behind this operation.
            macro_rules! wait {
                (|$lane:ident| $state:expr) => {{
                    lanes.each(|$lane| threads[$lane].state = $state);
                    stand!(pc + 1);
                    break Ok(Next::End(End::Wait));
                }};
            }
            // Each thread executes the operation alone. The thread whose turn it is begins.
            macro_rules! alone {
                () => {
                    if L::MANY {
                        self.alone = true;
                        stand!(pc);
                        break Ok(Next::End(End::Apart));
                    }
                };
            }
            macro_rules! attempt {
                ($result:expr) => {
                    match $result {
                        Ok(value) => value,
                        Err(halt) => break Err(halt),
                    }
                };
            }
            // One thread's access may end the turn. The lanes before it have made theirs.
            macro_rules! each {
                (|$lane:ident| $done:expr) => {{
                    let mut ended = None;
                    for $lane in lanes.iter() {
                        if let Err(halt) = $done {
                            ended = Some(($lane, halt));
                            break;
                        }
                    }
                    if let Some((ends, halt)) = ended {
                        lanes.iter().for_each(|lane| threads[lane].frame.pc = (pc + usize::from(lane < ends)) as u32);
                        self.current = first + ends;
                        break Err(halt);
                    }
                }};
            }
            // Jumps; threads wait if all they do is to wait.
            macro_rules! jump {
                ($target:expr) => {{
                    let target: u32 = $target;
                    if target as usize <= pc
                        && attempt!(self.jump_back(world, (first, lanes), threads, [callers, r], (place!(), target)))
                    {
                        stand!(target as usize);
                        break Ok(Next::End(End::Apart));
                    }
                    pc = target as usize;
                    continue;
                }};
            }
            let next = loop {
                match attempt!(self.straight(world, (first, lanes), code, pc, threads, (callers, r))) {
                    Straight::Before(operation) => pc = operation,
                    Straight::End(end) => break Ok(Next::End(end)),
                }
                self.steps += lanes.count();
                match ops[pc] {
                    Op::Quaternary { f, d, a, b, c, e } => {
                        for lane in lanes.iter() {
                            let [a, b, c, e] = [a, b, c, e].map(|register| r[usize::from(register)][lane]);
                            r[usize::from(d)][lane] = f(a, b, c, e);
                        }
                    }
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
                    Op::Special { d, what } if what.is_of_warp() => {
                        let value = self.special(first + lead, what);
                        lanes.each(|lane| r[usize::from(d)][lane] = value);
                    }
                    Op::Special { d, what } => {
                        lanes.each(|lane| {
                            threads[lane].looked_at_clock(what);
                            r[usize::from(d)][lane] = self.special(first + lane, what);
                        });
                    }
                    Op::Local { d, offset } => {
                        let address = u64::from(frame.local) + u64::from(offset);
                        lanes.iter().for_each(|lane| r[usize::from(d)][lane] = address);
                    }
                    Op::Load { d, a, offset, memory }
                    | Op::Load4 { d, a, offset, memory }
                    | Op::Load8 { d, a, offset, memory } => {
                        let (d, a) = (usize::from(d), usize::from(a));
                        let address = |r: &[Row], lane: usize| memory.at(r[a][lane], offset.into());
                        if L::MANY {
                            let from = lanes::plus(&r[a], offset);
                            if self.load_together(world, first, lanes, &memory, (&from, &mut r[d]), threads, place!()) {
                                pc += 1;
                                continue;
                            }
                            if self.stops_at(world, first, lanes, &memory, AccessKind::Load, |lane| address(r, lane)) {
                                alone!();
                            }
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
                    Op::Store { s, a, offset, memory }
                    | Op::Store4 { s, a, offset, memory }
                    | Op::Store8 { s, a, offset, memory } => {
                        let (s, a) = (usize::from(s), usize::from(a));
                        let address = |lane: usize| memory.at(r[a][lane], offset.into());
                        if L::MANY {
                            let to = lanes::plus(&r[a], offset);
                            if self.store_together(world, first, lanes, &memory, (&to, &r[s]), threads, place!()) {
                                pc += 1;
                                continue;
                            }
                            if self.stops_at(world, first, lanes, &memory, AccessKind::Store, address) {
                                alone!();
                            }
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
                    Op::LoadSlot { d, offset, bytes } => {
                        let at = (frame.slots + offset) as usize;
                        for lane in lanes.iter() {
                            r[usize::from(d)][lane] = bytes::get(&threads[lane].slots, at, bytes).unwrap_or(0);
                        }
                    }
                    Op::StoreSlot { s, offset, bytes } => {
                        let at = (frame.slots + offset) as usize;
                        let row = &r[usize::from(s)];
                        let mut put = |lane: usize, bytes| bytes::put(&mut threads[lane].slots, at, bytes, row[lane]);
                        match bytes {
                            8 => lanes.each(|lane| _ = put(lane, 8)),
                            4 => lanes.each(|lane| _ = put(lane, 4)),
                            other => lanes.each(|lane| _ = put(lane, other)),
                        }
                    }
                    Op::Atomic { d, a, b, c, how } => {
                        alone!();
                        let form = &code.atomics[usize::from(how)];
                        let [address, b, c] = [a, b, c].map(|register| r[usize::from(register)][lead]);
                        let address = form.memory.at(address, form.offset);
                        let thread = &mut threads[lead];
                        thread.frame.pc = pc as u32;
                        let old = self.atomic(world, thread, first + lead, form, address, (b, c), place!());
                        r[usize::from(d)][lead] = attempt!(old);
                    }
                    Op::Wide { kind, d, a, b, c, how } => {
                        alone!();
                        let form = &code.atomics[usize::from(how)];
                        let address = form.memory.at(r[usize::from(a)][lead], form.offset);
                        let [b, c] = [b, c].map(|low| [0, 1].map(|word| r[usize::from(low) + word][lead]));
                        let thread = &mut threads[lead];
                        thread.frame.pc = pc as u32;
                        let old = self.wide(world, thread, first + lead, (kind, form), address, [b, c], place!());
                        let old = attempt!(old);
                        (r[usize::from(d)][lead], r[usize::from(d) + 1][lead]) = (old[0], old[1]);
                    }
                    Op::Fence { fence, scope } => {
                        alone!();
                        let index = first + lead;
                        let sequential = fence.is_sequential();
                        if !std::mem::take(&mut self.announced) && world.stops_at_fence(index as u32, scope, sequential)
                        {
                            stand!(pc);
                            break Err(Box::new(Stop::Fence(index, place!())));
                        }
                        self.tell(world);
                        // a fence between proxies orders accesses of its own thread, and orders nothing for others
                        match fence {
                            FenceKind::AsyncProxy => self.order.fence_for_copies(index),
                            FenceKind::OtherProxy => {}
                            FenceKind::Shared => self.order.fence(index),
                            FenceKind::AcquireRelease | FenceKind::Sequential => {
                                self.order.fence(index);
                                world.fence(index as u32, scope, sequential, place!());
                            }
                        }
                    }
                    Op::BranchIf { p, unless, target } => {
                        let row = &r[usize::from(p)];
                        let taken = lanes.those(|lane| (row[lane] & 1 == 1) != unless);
                        // Some go there, some here.
                        stand!(pc + 1);
                        if target as usize <= pc {
                            attempt!(self.jump_back(
                                world,
                                (first, Many(taken)),
                                threads,
                                [callers, r],
                                (place!(), target)
                            ));
                        }
                        Many(taken).iter().for_each(|lane| threads[lane].frame.pc = target);
                        break Ok(Next::End(End::Apart));
                    }
                    Op::BranchTable { a, table } => {
                        if !lanes.agree(r, a) {
                            alone!();
                        }
                        match code.tables[usize::from(table)].get(r[usize::from(a)][lead] as u32 as usize) {
                            Some(&target) => jump!(target),
                            None => {
                                break Err(self.fault(
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
                            let site = &code.calls[usize::from(call)];
                            lanes.each(|lane| threads[lane].take_result(site, value));
                        } else {
                            stand!(pc);
                            break Ok(Next::Call(call));
                        }
                    }
                    Op::Return => break Ok(Next::Return),
                    Op::Exit => wait!(|lane| State::Exited),
                    Op::Trap => {
                        break Err(self.fault(FaultKind::Trap, first + lead, place!(), "the kernel has trapped"));
                    }
                    Op::Barrier { kind, d, a, b, p, aligned } => {
                        if !lanes.agree(r, a) || b.is_some_and(|b| !lanes.agree(r, b)) {
                            alone!();
                        }
                        stand!(pc + 1);
                        let holding = lanes.those(|lane| r[usize::from(p)][lane] & 1 == 1);
                        let number = r[usize::from(a)][lead] as u32;
                        let count = b.map(|b| r[usize::from(b)][lead] as u32);
                        let arrival = Arrival { kind, number, count, aligned, d, place: place!() };
                        break Ok(Next::End(End::Barrier { arrival, holding }));
                    }
                    Op::Warp { kind, d, q, a, b, c, mask } => {
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
                    Op::Held { register, writes } => {
                        let who = (first + lead, frame, register);
                        attempt!(self.accesses_held(who, writes, place!()));
                    }
                    Op::Row { stores, t, a, lanes: rows, shared } => {
                        let t = usize::from(t);
                        each!(|lane| {
                            let row = [r[t][lane], r[t + 1][lane]];
                            let what = (stores, r[usize::from(a)][lane], shared);
                            let row = match lane < usize::from(rows) {
                                true => self.row(world, &mut threads[lane], first + lane, what, row, place!()),
                                false => Ok(row),
                            };
                            row.map(|[low, high]| (r[t][lane], r[t + 1][lane]) = (low, high))
                        });
                    }
                    Op::MBarrier { kind, d, a, b, shared, relaxed } => {
                        alone!();
                        let operands = (r[usize::from(a)][lead], r[usize::from(b)][lead]);
                        let thread = &mut threads[lead];
                        thread.frame.pc = pc as u32;
                        let result =
                            self.mbarrier(world, thread, first + lead, (kind, relaxed), operands, shared, place!());
                        r[usize::from(d)][lead] = attempt!(result);
                    }
                    Op::Bulk { kind, t, s, n, barrier } => {
                        alone!();
                        let operands = [t, s, n, barrier].map(|register| r[usize::from(register)][lead]);
                        let thread = &mut threads[lead];
                        thread.frame.pc = pc as u32;
                        let done = match kind {
                            Bulk::Reduce(how) => {
                                let form = &code.atomics[usize::from(how)];
                                self.reduce_in_bulk(world, thread, first + lead, (kind, form), operands, place!())
                            }
                            Bulk::Within => self.bulk_within(world, thread, first + lead, operands, place!()),
                            _ => self.bulk(world, thread, first + lead, kind, operands, place!()),
                        };
                        attempt!(done);
                    }
                    Op::Tile { how } => {
                        alone!();
                        let form = &code.tiles[usize::from(how)];
                        let tile = form.values(|register| r[usize::from(register)][lead]);
                        let thread = &mut threads[lead];
                        thread.frame.pc = pc as u32;
                        attempt!(self.copy_tile(world, thread, first + lead, form.kind, &tile, place!()));
                    }
                    Op::Group { group, bulk: false } => each!(|lane| self.element_group(world, first + lane, group)),
                    Op::Group { group, bulk: true } => {
                        alone!();
                        self.bulk_group(world, first + lead, group);
                    }
                    Op::UnderWay { a, bytes, barrier, before } => each!(|lane| {
                        let [a, barrier, before] = [a, barrier, before].map(|register| r[usize::from(register)][lane]);
                        self.is_under_way(first + lane, (a, bytes), (barrier, before), place!())
                    }),
                    Op::Multi { kind, r: value, a, how } => {
                        alone!();
                        let form = &code.atomics[usize::from(how)];
                        let (value, address) = (usize::from(value), r[usize::from(a)][lead]);
                        let address = address.wrapping_add_signed(form.offset);
                        let thread = &mut threads[lead];
                        thread.frame.pc = pc as u32;
                        let operand = r[value][lead];
                        let what = (kind, form);
                        let result = self.multicast(world, thread, first + lead, what, address, operand, place!());
                        let result = attempt!(result);
                        if kind == Multi::Load {
                            r[value][lead] = result;
                        }
                    }
                    Op::InCluster { d, a, b } => {
                        alone!();
                        let [a, b] = [a, b].map(|register| r[usize::from(register)][lead]);
                        r[usize::from(d)][lead] = attempt!(self.in_cluster(first + lead, a, b, place!()));
                    }
                    Op::RankOf { d, a } => {
                        let blocks = self.blocks;
                        lanes.each(|lane| {
                            r[usize::from(d)][lane] = blocks.rank_of(first + lane, r[usize::from(a)][lane]);
                        });
                    }
                    Op::Cluster { waits, releases } => {
                        stand!(pc + 1);
                        break Ok(Next::End(End::Cluster { waits, releases, place: place!() }));
                    }
                    Op::Mark { reason } => {
                        let reason = reason.map(|reason| &code.reasons[usize::from(reason)][..]);
                        self.tell(world);
                        lanes.each(|lane| world.marks((first + lane) as u32, reason, place!()));
                    }
                    Op::Sleep => {
                        stand!(pc + 1);
                        break Ok(Next::End(End::Sleep));
                    }
                    Op::Move { .. }
                    | Op::Unary { .. }
                    | Op::Binary { .. }
                    | Op::Ternary { .. }
                    | Op::Convert { .. }
                    | Op::Add32 { .. }
                    | Op::Add64 { .. }
                    | Op::MulWideS32 { .. }
                    | Op::FmaF32 { .. }
                    | Op::LessS32 { .. }
                    | Op::Global { .. }
                    | Op::LoadParameter { .. }
                    | Op::Branch { .. } => unreachable!("straight code"),
                }
                pc += 1;
            };
            let call = match next? {
                Next::Call(call) => call,
                Next::Return => {
                    lanes.iter().for_each(|lane| threads[lane].leave(&module));
                    if !threads[lead].is_live() {
                        return Ok(End::Wait);
                    }
                    continue;
                }
                Next::End(end) => return Ok(end),
            };
            match code.calls[usize::from(call)].callee {
                Callee::Function(callee) => {
                    if self.steps > self.asks_at {
                        self.may_call(world, first + lead, place!())?;
                    }
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
                Callee::External(external) => {
                    if L::MANY && module.externals[usize::from(external)].group == Group::Thread {
                        self.alone = true;
                        return Ok(End::Apart);
                    }
                    for lane in lanes.iter() {
                        threads[lane].state = State::Call { external, call, place: place!(), issued: false };
                    }
                    stand!(pc + 1);
                    return Ok(End::Wait);
                }
                Callee::Print | Callee::AssertFail if L::MANY => {
                    self.alone = true;
                    return Ok(End::Apart);
                }
                Callee::Print => {
                    self.print(world, first + lead, &mut threads[lead], call)?;
                }
                Callee::AssertFail => {
                    return Err(self.assertion(world, first + lead, &mut threads[lead], call)?);
                }
            }
        }
    }
}
