//! A turn: a thread runs until it must wait, together with the threads of its warp that are at the same instruction.

use std::sync::Arc;

use super::barrier::Arrival;
use super::cycle::Read;
use super::lanes::{Lanes, Many, One, Row, each_lane};
use super::spin::Round;
use super::thread::{Frame, State, Thread};
use super::{Block, Fault, FaultKind, Halt, Stop};
use crate::module::Place;
use crate::op::Special;
use crate::world::World;

/// Calls deeper than this are taken for an endless recursion.
const DEEPEST: usize = 1000;

/// Bytes of the arguments of all calls that a thread is in.
const MOST_SLOTS: usize = 16 << 20;

/// Registers of all functions that a thread is in.
const MOST_REGISTERS: usize = 1 << 18;

/// Why threads do not run on together.
pub(super) enum End {
    /// Their states say what they wait for.
    Wait,
    /// They have come to a barrier; the condition holds for these.
    Barrier { arrival: Arrival, holding: u32 },
    /// They have come to the barrier of the cluster, and arrive or wait there.
    Cluster { waits: bool, releases: bool, place: Place },
    /// They go on one by one, or in smaller groups.
    Apart,
    /// They sleep: others come first.
    Sleep,
}

impl Block {
    /// A thread runs until it must wait, together with the threads of its warp that are at the same instruction.
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
            self.wake_where(|watch| watch.covers(address, bytes.into()));
        }
        let members = Many(lanes).iter().map(|lane| warp.start + lane);
        let end = end?;
        if std::mem::take(&mut self.others_first) {
            self.current = (index + 1) % self.threads.len();
            return Err(Box::new(Stop::Looks));
        }
        match end {
            End::Apart => Ok(()),
            End::Sleep => {
                self.current = (index + 1) % self.threads.len();
                Ok(())
            }
            End::Barrier { arrival, holding } => self.come_to_barrier(world, members, &arrival, holding),
            End::Cluster { waits, releases, place } => self.come_to_cluster(world, members, waits, releases, place),
            End::Wait => self.have_come(world, members),
        }
    }

    /// What threads have come to may complete what others wait for.
    fn have_come(&mut self, world: &mut impl World, members: impl Iterator<Item = usize>) -> Result<(), Halt> {
        let mut is_first = true;
        for index in members {
            match self.threads[index].state {
                State::Ready
                | State::Barrier { .. }
                | State::Parked { .. }
                | State::Stopped { .. }
                | State::Failed { .. } => {}
                State::Exited => self.exited(world, index, std::mem::take(&mut is_first))?,
                State::Warp(together) => self.together(world, index, together)?,
                // all of them have come to the same call, so looking at one is enough
                State::Call { .. } => return self.called(index),
            }
        }
        Ok(())
    }

    /// The lanes of a thread's warp that stand where it stands, itself among them.
    fn beside(&self, index: usize) -> u32 {
        let mine = &self.threads[index];
        let warp = self.warp_of(index);
        // Without callers, frames differ only by where they stand.
        let is_same = |thread: &Thread| match mine.frames.is_empty() {
            true => thread.frames.is_empty(),
            false => thread.frame == mine.frame && thread.frames == mine.frames,
        };
        let beside = |thread: &Thread| {
            matches!(thread.state, State::Ready) && thread.frame.pc == mine.frame.pc && is_same(thread)
        };
        let of_warp = self.threads[warp].iter().enumerate();
        of_warp.fold(0, |lanes, (lane, thread)| lanes | u32::from(beside(thread)) << lane)
    }

    /// Threads jump back. True if their turn ends: one of them only waits, or others come first.
    pub(super) fn jump_back(
        &mut self,
        world: &mut impl World,
        (first, lanes): (usize, impl Lanes),
        threads: &mut [Thread],
        registers: [&[Row]; 2],
        jump: (Place, u32),
    ) -> Result<bool, Halt> {
        let quiet = self.paces.round(first, lanes);
        self.looks_around(world, (first, lanes), quiet, threads, registers, jump)
    }

    /// The same, where those on the lanes of `quiet` have done nothing visible for some time.
    pub(super) fn looks_around(
        &mut self,
        world: &mut impl World,
        (first, lanes): (usize, impl Lanes),
        quiet: u32,
        threads: &mut [Thread],
        registers: [&[Row]; 2],
        jump: (Place, u32),
    ) -> Result<bool, Halt> {
        let mut waits = false;
        for lane in each_lane(quiet) {
            waits |= self.looks_back(world, first + lane, &mut threads[lane], registers, jump)?;
        }
        if self.steps > self.asks_at {
            self.may_go_on(world, first + lanes.lead(), &threads[lanes.lead()], jump)?;
        }
        Ok(waits)
    }

    /// A thread that may only wait jumps back. True if its turn ends: it is parked, or others come first.
    fn looks_back(
        &mut self,
        world: &mut impl World,
        index: usize,
        thread: &mut Thread,
        registers: [&[Row]; 2],
        (from, to): (Place, u32),
    ) -> Result<bool, Halt> {
        if !self.paces.is_active(index) {
            self.paces.activate(index);
            thread.keep(to, registers, index % 32, 1, &self.changes);
            thread.spin.begins_to_look();
            return Ok(false);
        }
        let watch = match thread.backward(to, registers, index % 32, &self.changes) {
            Round::Goes => {
                self.others_first |= thread.spin.has_looked_long() && world.others_first();
                return Ok(self.others_first);
            }
            Round::Again(reads) => {
                looks_again(world, index, &reads);
                return Ok(false);
            }
            Round::Waits(watch) => watch,
        };
        if watch.is_empty() {
            if thread.spin.waits_for_time() {
                self.paces.skip(index, DELAY); // nothing else ends the loop
                thread.spin.compares_soon();
                return Ok(false);
            }
            return Err(self.endless(index, thread, (from, to)));
        }
        self.parked += 1;
        let reads = watch.ranges.clone();
        thread.state = State::Parked { watch: Arc::new(watch), reads, place: from };
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
        let local_begin = thread.local.len().next_multiple_of(code.local_align as usize);
        let slots_begin = thread.slots.len().next_multiple_of(16);
        let is_too_large = |begin: usize, bytes: u32, most: usize| begin + bytes as usize > most;
        let mine = module.code[usize::from(thread.frame.code)].registers.len();
        let registers_begin = thread.frame.registers as usize + mine;
        if thread.frames.len() >= DEEPEST
            || registers_begin + code.registers.len() > MOST_REGISTERS
            || is_too_large(local_begin, code.local, 512 << 10)
            || is_too_large(slots_begin, code.slots, MOST_SLOTS)
        {
            return Err(self.fault(FaultKind::StackOverflow, index, place, "calls are nested too deeply"));
        }
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
            registers: registers_begin as u32,
            slots: slots_begin as u32,
            local: local_begin as u32,
            call,
        };
        Ok(())
    }

    /// A loop that reads no memory does the same in each round, for ever.
    fn endless(&self, index: usize, thread: &Thread, (end, begin): (Place, u32)) -> Halt {
        let begin = Place(self.module.code[usize::from(thread.frame.code)].first_place + begin);
        let is_one_line = self.module.describe(begin) == self.module.describe(end);
        let lines = if is_one_line { "" } else { "; its last line and its first" };
        let message = format!("a loop that nothing can end, because it reads no memory{lines}");
        let fault = Fault::new(&self.module, FaultKind::EndlessLoop, self.who(index), end, message);
        let fault = if is_one_line { fault } else { fault.with(&self.module, self.who(index), begin) };
        let missing = "a volatile or atomic load, if the loop is to poll: a plain one the compiler has taken out of it";
        Box::new(Stop::Fault(Box::new(fault.lacking(missing.into()))))
    }

    pub(super) fn special(&self, index: usize, what: Special) -> u64 {
        let lane = index % 32;
        let axis = |values: [u32; 3], axis: u8| u64::from(values[usize::from(axis)]);
        match what {
            Special::Thread(at) => axis(self.who(index).thread, at),
            Special::BlockSize(at) => axis(self.launch.block, at),
            Special::Block(at) if !self.blocks.are_several() => axis(self.position, at),
            Special::GridSize(at) => axis(self.launch.grid, at),
            Special::Lane => lane as u64,
            Special::Warp => (self.blocks.within(index) / 32) as u64,
            Special::Warps => self.blocks.threads.div_ceil(32) as u64,
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
            Special::Clock => self.paces.time(index),
            Special::Constant(value) => value.into(),
            of_cluster => self.special_of_cluster(index, of_cluster),
        }
    }

    /// What a thread sees of its cluster, and of its block there.
    #[cold]
    fn special_of_cluster(&self, index: usize, what: Special) -> u64 {
        let axis = |values: [u32; 3], axis: u8| u64::from(values[usize::from(axis)]);
        match what {
            Special::Block(at) => axis(self.who(index).block, at),
            Special::Cluster(at) => axis(self.position, at) / axis(self.launch.cluster_size(), at),
            Special::Clusters(at) => axis(self.launch.clusters(), at),
            Special::InCluster(at) => axis(self.launch.in_cluster(self.blocks.rank(index) as u32), at),
            Special::ClusterSize(at) => axis(self.launch.cluster_size(), at),
            Special::Rank => self.blocks.rank(index) as u64,
            Special::Ranks => self.blocks.count as u64,
            Special::HasClusters => self.launch.cluster.is_some().into(),
            _ => unreachable!("it says nothing of clusters"),
        }
    }
}

/// How far the clock of a thread jumps when the thread only looks at it. So a wait for a second of nanoseconds takes 15,000 looks.
pub(super) const DELAY: u64 = 1 << 16;

/// Says that a thread looks again at what it has read.
pub(super) fn looks_again(world: &mut impl World, thread: usize, reads: &[Read]) {
    let reads: Vec<(u64, u8, u64)> = reads.iter().map(|read| (read.address, read.bytes, read.when.now)).collect();
    world.looks_again(thread as u32, &reads);
}
