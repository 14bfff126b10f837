//! Products of warp groups that may not be over: what they read in shared memory, and the registers that they work on.
//!
//! The race detector takes a product to read its matrices from its beginning until it is known to be over: by a thread that has waited for it, and by
//! every thread that comes after that wait. One thread's wait is enough, because a product ends for all four warps at once. Beside the clocks of threads,
//! [`Order`](super::order::Order) keeps how many products of each group are over.
//!
//! The registers of a product belong to it until their own warp waits. A fence must come between the last access to them and the product.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

use super::group::GROUP;
use super::shared::{By, Touch};
use super::thread::Frame;
use super::{Block, Fault, FaultKind, Halt, Stop};
use crate::count::count;
use crate::module::Place;
use crate::op::{Factor, GroupForm, Reg};
use crate::world::World;

/// How many products are kept for a group that does not wait for them. Older ones count as over.
const PRODUCTS: usize = 256;

#[derive(Clone, Debug, Default)]
pub(super) struct Groups {
    /// The number of the first group in a row of [`Order`](super::order::Order), behind the threads and the copies.
    first: usize,
    /// How many products each group has begun.
    begun: Vec<u32>,
    warps: Vec<OfWarp>,
    reading: Vec<Reading>,
}

#[derive(Clone, Debug, Default)]
struct OfWarp {
    /// For each committed set of products that the warp has not waited for: how many products its group had begun by then.
    closed: VecDeque<u32>,
    /// The registers that it has accessed since its last fence, and where: the function, the beginning of its frame's registers, and the register.
    accessed: BTreeMap<(u16, u32, Reg), Place>,
    has_fenced: bool,
    /// The products that it has begun and not waited for.
    held: VecDeque<Held>,
}

/// A product that works on registers.
#[derive(Clone, Copy, Debug)]
struct Held {
    number: u32,
    frame: Frame,
    how: u16,
    place: Place,
}

/// What a product reads that may not be over.
#[derive(Clone, Debug)]
struct Reading {
    group: usize,
    /// The number of the product in its group, from 1.
    number: u32,
    /// Bytes of shared memory, in their order.
    ranges: Vec<Range<usize>>,
    place: Place,
}

impl Groups {
    /// How many groups are told apart.
    pub(super) fn count(threads: usize, are_used: bool) -> usize {
        if are_used { threads.div_ceil(GROUP) } else { 0 }
    }

    pub(super) fn new(threads: usize, count: usize, first: usize) -> Self {
        let warps = if count > 0 { threads.div_ceil(32) } else { 0 };
        Self { first, begun: vec![0; count], warps: vec![OfWarp::default(); warps], reading: Vec::new() }
    }
}

impl GroupForm {
    /// Those that hold `d`, and perhaps `a`.
    fn registers(&self) -> impl Iterator<Item = Reg> {
        let of_a = if let Factor::Registers(of_a) = &self.a { &of_a[..] } else { &[] };
        self.d.iter().chain(of_a).copied()
    }
}

impl Reading {
    fn meets(&self, at: usize, bytes: usize) -> bool {
        let next = self.ranges.partition_point(|range| range.end <= at);
        self.ranges.get(next).is_some_and(|range| range.start < at + bytes)
    }
}

impl Block {
    pub(super) fn fence_in_group(&mut self, thread: usize) {
        if let Some(warp) = self.groups.warps.get_mut(thread / 32) {
            warp.accessed.clear();
            warp.has_fenced = true;
        }
    }

    /// The products that a warp has begun since the last time are a set.
    pub(super) fn commit_in_group(&mut self, thread: usize) {
        let begun = self.groups.begun.get(thread / GROUP).copied();
        if let (Some(begun), Some(warp)) = (begun, self.groups.warps.get_mut(thread / 32)) {
            warp.closed.push_back(begun);
            if warp.closed.len() > PRODUCTS {
                warp.closed.pop_front();
            }
        }
    }

    /// A warp waits: all its threads know what is over.
    pub(super) fn wait_in_group(&mut self, warp: Range<usize>, most: usize) {
        let Some(OfWarp { closed, held, .. }) = self.groups.warps.get_mut(warp.start / 32) else { return };
        let mut over = None;
        while closed.len() > most {
            over = closed.pop_front();
        }
        if let Some(over) = over {
            held.retain(|held| held.number > over);
            let name = (self.groups.first + warp.start / GROUP, over);
            warp.for_each(|thread| self.order.learns_over(thread, name));
        }
    }

    /// A group reads these units of 16 bytes from now on until a thread waits. All its threads must come after the writes to them, or it is a race.
    pub(super) fn reads_in_group(
        &mut self,
        world: &mut impl World,
        group: Range<usize>,
        mut units: Vec<usize>,
        place: Place,
    ) -> Result<(), Halt> {
        units.sort_unstable();
        units.dedup();
        let end = self.shared.bytes.len();
        let follow = units.chunk_by(|one, next| one + 1 == *next);
        let ranges: Vec<Range<usize>> =
            follow.map(|units| units[0] * 16..((units[0] + units.len()) * 16).min(end)).collect();
        for range in &ranges {
            self.reads_together(world, group.clone(), range.clone(), place)?;
        }
        if self.launch.checks.races
            && let Some(begun) = self.groups.begun.get_mut(group.start / GROUP)
        {
            *begun += 1;
            let (number, group) = (*begun, group.start / GROUP);
            let reading = Reading { group, number, ranges, place };
            let (first, order) = (self.groups.first, &self.order);
            let count = self.groups.reading.iter().filter(|other| other.group == reading.group).count();
            let oldest = if count >= PRODUCTS { reading.number - PRODUCTS as u32 } else { 0 };
            self.groups.reading.retain(|other| {
                let is_kept = other.group != reading.group || other.number > oldest;
                is_kept && !order.is_over((first + other.group, other.number))
            });
            self.groups.reading.push(reading);
        }
        Ok(())
    }

    /// All of these threads read bytes of shared memory together. If one of them does not come after a write to the bytes, that is a race. The reads themselves are
    /// not noted here.
    fn reads_together(
        &mut self,
        world: &mut impl World,
        threads: Range<usize>,
        range: Range<usize>,
        place: Place,
    ) -> Result<(), Halt> {
        let (at, bytes) = (range.start, range.len());
        let touch = |thread| Touch::read(thread, place, By::PRODUCT);
        self.meets_copy(at, bytes, &touch(threads.start))?;
        let checks = self.launch.checks;
        if checks.races {
            self.tell(world);
            for thread in threads.clone() {
                self.meets_copies(world, (at, bytes), &touch(thread))?;
            }
            let learned = &mut |thread, of, moment| world.comes_after(thread as u32, of as u32, moment);
            let found = self.shared.written_beside(at, bytes, threads.clone(), &self.order, learned);
            if let Some((thread, finding)) = found {
                return Err(self.race(at, bytes, &touch(thread), finding));
            }
        }
        match checks.uninitialized && !self.shared.is_written(at, bytes) {
            true => Err(self.unwritten(at, bytes, &touch(threads.start))),
            false => Ok(()),
        }
    }

    /// The warps of a group have begun a product that works on their registers.
    pub(super) fn hold(&mut self, group: Range<usize>, how: u16, place: Place) {
        let Some(&number) = self.groups.begun.get(group.start / GROUP) else { return };
        for warp in group.step_by(32) {
            let held = &mut self.groups.warps[warp / 32].held;
            if held.len() >= PRODUCTS {
                held.pop_front();
            }
            held.push_back(Held { number, frame: self.threads[warp].frame, how, place });
        }
    }

    /// Fails unless each warp has fenced after its last access to the registers of a product that begins.
    pub(super) fn fenced_before(&self, group: Range<usize>, form: &GroupForm, place: Place) -> Result<(), Halt> {
        for thread in group.step_by(32) {
            let Some(warp) = self.groups.warps.get(thread / 32) else { return Ok(()) };
            let Frame { code, registers, .. } = self.threads[thread].frame;
            let accessed = form.registers().find_map(|register| warp.accessed.get(&(code, registers, register)));
            let message = match accessed {
                None if warp.has_fenced => continue,
                None => "a warp group begins a product, and its threads have come to no wgmma.fence before",
                Some(_) => "a warp group begins a product whose registers a thread may still be accessing",
            };
            let fault = Fault::new(&self.module, FaultKind::Unawaited, self.who(thread), place, message);
            let [here, there] = [Some(&place), accessed].map(|place| place.map(|place| self.module.describe(*place)));
            let here = here.unwrap_or_default();
            let fault = match (accessed, there) {
                (Some(&before), Some(there)) => fault
                    .with(&self.module, self.who(thread), before)
                    .lacking(format!("wgmma.fence between {there} and {here}")),
                _ => fault.lacking(format!("wgmma.fence before {here}")),
            };
            return Err(Box::new(Stop::Fault(Box::new(fault))));
        }
        Ok(())
    }

    /// Threads of a warp access a register that products work on. Fails if one of these products is under way.
    #[inline(never)]
    pub(super) fn accesses_held(
        &mut self,
        (index, frame, register): (usize, Frame, Reg),
        writes: bool,
        place: Place,
    ) -> Result<(), Halt> {
        let Some(warp) = self.groups.warps.get_mut(index / 32) else { return Ok(()) };
        let products = &self.module.code[usize::from(frame.code)].products;
        let is_sum = |held: &Held| products[usize::from(held.how)].d.contains(&register);
        let is_input = |held: &Held| writes && products[usize::from(held.how)].registers().any(|one| one == register);
        let meets = |held: &&Held| {
            (held.frame.registers, held.frame.code) == (frame.registers, frame.code) && (is_sum(held) || is_input(held))
        };
        if let Some(&held) = warp.held.iter().find(meets) {
            let message = match is_sum(&held) {
                true => "a register is accessed that a product of a warp group may not have written yet",
                false => "a register is written that a product of a warp group may still be reading",
            };
            let [here, there] = [place, held.place].map(|place| self.module.describe(place));
            let fault = Fault::new(&self.module, FaultKind::Unawaited, self.who(index), place, message);
            let fault = fault.with(&self.module, self.who(index), held.place);
            let missing = format!("wgmma.wait_group, behind wgmma.commit_group, between {there} and {here}");
            return Err(Box::new(Stop::Fault(Box::new(fault.lacking(missing)))));
        }
        let matters = writes || products.iter().any(|product| product.d.contains(&register));
        if matters {
            warp.accessed.insert((frame.code, frame.registers, register), place);
        }
        Ok(())
    }

    /// Fails if an access writes to shared memory that a product may still be reading: that is a race.
    pub(super) fn meets_product(&self, at: usize, bytes: usize, touch: &Touch) -> Result<(), Halt> {
        if !touch.writes {
            return Ok(());
        }
        let races = |reading: &&Reading| {
            reading.meets(at, bytes)
                && !self.order.knows_over(touch.thread, (self.groups.first + reading.group, reading.number))
        };
        match self.groups.reading.iter().find(races) {
            Some(reading) => Err(self.races_with_product(reading, at, bytes, touch)),
            None => Ok(()),
        }
    }

    #[cold]
    fn races_with_product(&self, reading: &Reading, at: usize, bytes: usize, touch: &Touch) -> Halt {
        let message = format!(
            "race in shared memory: the write of {} at {} may come before a product of a warp group that reads there is over",
            count(bytes, "byte"),
            self.in_shared(at)
        );
        let [here, there] = [touch.place, reading.place].map(|place| self.module.describe(place));
        let told = match touch.thread / GROUP == reading.group {
            true => String::new(),
            false => format!(" and, behind that, what tells thread {} of it,", touch.thread),
        };
        let missing = format!("wgmma.wait_group, behind wgmma.commit_group,{told} between {there} and {here}");
        let fault = Fault::new(&self.module, FaultKind::Race, self.who(touch.thread), touch.place, message);
        let fault = fault.with(&self.module, self.who(reading.group * GROUP), reading.place).lacking(missing);
        Box::new(Stop::Fault(Box::new(fault)))
    }
}
