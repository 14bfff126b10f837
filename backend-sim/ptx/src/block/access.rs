//! Accesses to memory: to the right space, in bounds, at the right alignment, noted for races.

use super::lanes::{Lanes, Row, each_lane};
use super::shared::{By, Finding, Learned, Strength, Touch};
use super::thread::Thread;
use super::{Block, Fault, FaultKind, Halt, Stop, Unordered};
use crate::alu;
use crate::bytes;
use crate::count::count;
use crate::decode::window;
use crate::module::Place;
use crate::op::{AtomicForm, Memory};
use crate::types::{Order, Scope, Space, mask};
use crate::world::{Access, AccessKind, Asks, AtomicOp, Refusal, World, Written};

/// The space and the address within it. A generic address is resolved; any other address is returned as it is.
#[inline]
pub(super) fn route(space: Space, address: u64) -> (Space, u64) {
    if space != Space::Generic {
        return (space, address);
    }
    let within = address & (window::SHARED - 1);
    match address & !(window::SHARED - 1) {
        0 => (Space::Global, address),
        window::SHARED => (Space::Shared, within),
        window::LOCAL => (Space::Local, within),
        window::CONST => (Space::Const, within),
        window::PARAM => (Space::Param, within),
        _ => (Space::Global, address),
    }
}

/// Whether accesses are plain, of global memory, and aligned.
#[inline(always)]
fn plain_and_global(lanes: impl Lanes, memory: &Memory, addresses: &Row) -> bool {
    let bits = lanes.bits(addresses);
    !memory.order.is_strong()
        && matches!(memory.space, Space::Global | Space::Generic)
        && bits & (u64::from(memory.align) - 1) == 0
        && bits & !(window::SHARED - 1) == 0
}

impl Block {
    /// Whether threads must make an access one by one: it is strong, or the world stops one of them at it.
    #[inline(always)]
    pub(super) fn stops_at(
        &self,
        world: &mut impl World,
        first: usize,
        lanes: impl Lanes,
        memory: &Memory,
        kind: AccessKind,
        address: impl Fn(usize) -> u64,
    ) -> bool {
        memory.order.is_strong()
            || matches!(memory.space, Space::Global | Space::Generic)
                && lanes.iter().any(|lane| match route(memory.space, address(lane)) {
                    (Space::Global | Space::Generic, at) => {
                        world.stops(&self.access(first + lane, memory, at, kind, Place::default()))
                    }
                    _ => false,
                })
    }

    /// Threads of a warp load plainly from global memory, all at once. False if the loads must be made one by one; then none was made.
    #[expect(clippy::too_many_arguments, reason = "who, where, what and how of an access")]
    #[inline]
    pub(super) fn load_together(
        &mut self,
        world: &mut impl World,
        first: usize,
        lanes: impl Lanes,
        memory: &Memory,
        (from, into): (&Row, &mut Row),
        threads: &mut [Thread],
        place: Place,
    ) -> bool {
        let access = self.access(first + lanes.lead(), memory, from[lanes.lead()], AccessKind::Load, place);
        if !plain_and_global(lanes, memory, from) || !world.load_together(&access, lanes.mask(), from, into) {
            return false;
        }
        let noted = self.paces.active(first) & lanes.mask();
        each_lane(noted).for_each(|lane| threads[lane].spin.read(from[lane], memory.bytes, &self.changes));
        true
    }

    /// The same for stores. A store that changes nothing is noted like a read, because it would change the word after another store to it.
    #[expect(clippy::too_many_arguments, reason = "as for loads")]
    #[inline]
    pub(super) fn store_together(
        &mut self,
        world: &mut impl World,
        first: usize,
        lanes: impl Lanes,
        memory: &Memory,
        (to, values): (&Row, &Row),
        threads: &mut [Thread],
        place: Place,
    ) -> bool {
        let access = self.access(first + lanes.lead(), memory, to[lanes.lead()], AccessKind::Store, place);
        if !plain_and_global(lanes, memory, to) {
            return false;
        }
        let Some(changed) = world.store_together(&access, lanes.mask(), to, values) else { return false };
        let noted = self.paces.active(first) & lanes.mask() & !changed;
        each_lane(noted).for_each(|lane| threads[lane].spin.read(to[lane], memory.bytes, &self.changes));
        self.changed_together(first, changed, to, memory.bytes);
        true
    }

    /// Loads a word. Accesses to global memory are inlined into the loop, because most accesses are of that kind. `asks`: the world may stop the
    /// thread here.
    #[expect(clippy::too_many_arguments, reason = "who, where, what and how of an access")]
    #[inline(always)]
    pub(super) fn load(
        &mut self,
        world: &mut impl World,
        thread: &mut Thread,
        index: usize,
        memory: &Memory,
        address: u64,
        place: Place,
        asks: bool,
    ) -> Result<u64, Halt> {
        let (space, at) = route(memory.space, address);
        if address & (u64::from(memory.align) - 1) != 0 {
            return Err(self.misaligned(index, memory, address, place));
        }
        if !matches!(space, Space::Global | Space::Generic) {
            return self.load_inside(world, thread, index, memory, (space, at), place);
        }
        let access = self.access(index, memory, at, AccessKind::Load, place);
        if asks {
            self.announce(world, &access)?;
        }
        let value = world.load(&access);
        let value = self.accepted(value, &access, index)?;
        self.has_read(thread, index, at, memory.bytes);
        if memory.order.is_strong() && world.found_older() {
            self.paces.visible(index); // it does not wait for a change of memory
        }
        Ok(value)
    }

    /// From the block's own memory.
    fn load_inside(
        &mut self,
        world: &mut impl World,
        thread: &mut Thread,
        index: usize,
        memory: &Memory,
        (space, at): (Space, u64),
        place: Place,
    ) -> Result<u64, Halt> {
        let bytes = memory.bytes;
        match space {
            Space::Global | Space::Generic => {
                Err(self.fault(FaultKind::OutOfBounds, index, place, "global memory is the world's"))
            }
            Space::Shared => {
                let at = self.shared_range(index, self.blocks.place(index, at), bytes, place)?;
                let generic = window::SHARED + at as u64;
                let strong = self.announce_inside(world, index, memory, generic, AccessKind::Load, place)?;
                self.touch(
                    world,
                    at,
                    bytes.into(),
                    Touch {
                        strength: Strength::of(memory.order, memory.scope),
                        ..Touch::read(index, place, By::Thread)
                    },
                )?;
                self.has_read(thread, index, generic, bytes);
                self.synchronize_read((index, place), generic, memory.order);
                if strong {
                    world.accessed_shared(&self.access(index, memory, generic, AccessKind::Load, place), None);
                }
                Ok(self.shared.load(at, bytes))
            }
            Space::Local => self.word(index, &thread.local, "local", at, bytes, place),
            Space::Const => self.word(index, &self.module.constants, "constant", at, bytes, place),
            Space::Param => self.word(index, &self.launch.parameters, "parameter", at, bytes, place),
        }
    }

    #[expect(clippy::too_many_arguments, reason = "who, where, what and how of an access")]
    #[inline(always)]
    pub(super) fn store(
        &mut self,
        world: &mut impl World,
        thread: &mut Thread,
        index: usize,
        memory: &Memory,
        (address, value): (u64, u64),
        place: Place,
        asks: bool,
    ) -> Result<(), Halt> {
        let (space, at) = route(memory.space, address);
        if at & (u64::from(memory.align) - 1) != 0 {
            return Err(self.misaligned(index, memory, at, place));
        }
        if !matches!(space, Space::Global | Space::Generic) {
            return self.store_inside(world, thread, index, memory, (space, at, value), place);
        }
        let access = self.access(index, memory, at, AccessKind::Store, place);
        if asks {
            self.announce(world, &access)?;
        }
        let changed = world.store(&access, value);
        let changed = self.accepted(changed, &access, index)?;
        match changed {
            true => self.changed(index, at, memory.bytes),
            false => self.has_read(thread, index, at, memory.bytes),
        }
        Ok(())
    }

    /// To the block's own memory.
    fn store_inside(
        &mut self,
        world: &mut impl World,
        thread: &mut Thread,
        index: usize,
        memory: &Memory,
        (space, at, value): (Space, u64, u64),
        place: Place,
    ) -> Result<(), Halt> {
        let bytes = memory.bytes;
        match space {
            Space::Global | Space::Generic => {
                return Err(self.fault(FaultKind::OutOfBounds, index, place, "global memory is the world's"));
            }
            Space::Shared => {
                let at = self.shared_range(index, self.blocks.place(index, at), bytes, place)?;
                let generic = window::SHARED + at as u64;
                let strong = self.announce_inside(world, index, memory, generic, AccessKind::Store, place)?;
                let repeats = !strong && self.shared.load(at, bytes) == value & mask(u32::from(bytes) * 8);
                self.touch(
                    world,
                    at,
                    bytes.into(),
                    Touch {
                        strength: Strength::of(memory.order, memory.scope),
                        repeats,
                        ..Touch::write(index, place, By::Thread)
                    },
                )?;
                self.synchronize_write((index, place), generic, memory.order, false);
                let before = strong.then(|| self.shared.around(at));
                let changed = self.shared.store(at, bytes, value);
                if let Some(before) = before {
                    self.wrote_shared(
                        world,
                        &self.access(index, memory, generic, AccessKind::Store, place),
                        at,
                        before,
                    );
                }
                match changed {
                    true => self.changed(index, generic, bytes),
                    false => self.has_read(thread, index, generic, bytes),
                }
            }
            Space::Local => {
                let (end, at) = (thread.local.len(), usize::try_from(at).unwrap_or(usize::MAX));
                if self.paces.is_active(index) && !thread.writes_own(at) {
                    self.paces.visible(index);
                }
                if bytes::put(&mut thread.local, at, bytes, value).is_none() {
                    return Err(self.out_of_bounds(index, "local", at as u64, bytes, end, place));
                }
            }
            Space::Const | Space::Param => {
                return Err(self.fault(
                    FaultKind::OutOfBounds,
                    index,
                    place,
                    "a write to memory that can only be read",
                ));
            }
        }
        Ok(())
    }

    #[expect(clippy::too_many_arguments, reason = "who, where, what and how of an access")]
    pub(super) fn atomic(
        &mut self,
        world: &mut impl World,
        thread: &mut Thread,
        index: usize,
        form: &AtomicForm,
        address: u64,
        (b, c): (u64, u64),
        place: Place,
    ) -> Result<u64, Halt> {
        let memory = &form.memory;
        let (space, at) = route(memory.space, address);
        if at & (u64::from(memory.align) - 1) != 0 {
            return Err(self.misaligned(index, memory, at, place));
        }
        let bytes = memory.bytes;
        let (mut wrote, mut in_vain) = (None, None);
        let (old, address, changed) = match space {
            Space::Global | Space::Generic => {
                let access = self.atomic_access(index, form, at, (b, c), place);
                self.announce(world, &access)?;
                let result = world.atomic(&access, form.ty, b, c);
                let (old, changed) = self.accepted(result, &access, index)?;
                (old, at, changed)
            }
            Space::Shared => {
                let at = self.shared_range(index, self.blocks.place(index, at), bytes, place)?;
                let access = self.atomic_access(index, form, window::SHARED + at as u64, (b, c), place);
                self.announce(world, &access)?;
                let (old, before) = (self.shared.load(at, bytes), self.shared.around(at));
                in_vain = access.asks.filter(|asks| old != asks.number.into()).map(|asks| (form.op, asks));
                let follows = in_vain.is_some_and(|asks| self.order.follows_in_vain(access.address, asks));
                let touch = Touch {
                    is_blind: form.commutes || follows,
                    writes: true,
                    strength: Strength::of(memory.order, memory.scope),
                    ..Touch::read(index, place, By::Thread)
                };
                self.touch(world, at, bytes.into(), touch)?;
                let changed = self.shared.store(at, bytes, alu::atomic(form.op, form.ty, old, b, c));
                wrote = Some((access, at, before));
                (old, access.address, changed)
            }
            _ => {
                return Err(self.fault(
                    FaultKind::OutOfBounds,
                    index,
                    place,
                    "an atomic on neither global nor shared memory",
                ));
            }
        };
        self.has_read(thread, index, address, bytes);
        let is_shared = crate::world::is_shared(address);
        if let Some(asks) = in_vain {
            let (acquires, releases) = (memory.order.acquires(), memory.order.releases());
            self.order.counts_in_vain((index, place), address, (acquires, releases), asks);
        } else if is_shared {
            if !form.commutes {
                self.synchronize_read((index, place), address, memory.order);
            }
            // A compare-and-swap that fails writes nothing, and releases nothing.
            if changed || form.op != AtomicOp::CompareSwap {
                self.synchronize_write((index, place), address, memory.order, true);
            }
        }
        if let Some((access, at, before)) = wrote {
            self.wrote_shared(world, &access, at, before); // with what it tells
        }
        if changed {
            self.changed(index, address, bytes);
        }
        Ok(old)
    }

    #[inline]
    pub(super) fn access(&self, index: usize, memory: &Memory, address: u64, kind: AccessKind, place: Place) -> Access {
        let Memory { bytes, order, scope, within, .. } = *memory;
        let scope = if !order.is_strong() || order == Order::Volatile { Scope::Sys } else { scope };
        Access { order, scope, within, ..Access::plain(index, address, bytes, kind, place) }
    }

    fn atomic_access(
        &self,
        index: usize,
        form: &AtomicForm,
        address: u64,
        (by, number): (u64, u64),
        place: Place,
    ) -> Access {
        let access = self.access(index, &form.memory, address, AccessKind::Atomic(form.op), place);
        let asks = || {
            let [by, number] = [by, number].map(|value| u32::try_from(value & form.ty.mask()).ok());
            Some(Asks { by: by?, number: number? }).filter(|asks| form.op != AtomicOp::Add || asks.by != 0)
        };
        let asks = if form.asks { asks() } else { None };
        Access { commutes: form.commutes, is_used: form.is_used, asks, ..access }
    }

    /// Stops the thread before a strong access to shared memory, at this generic address, unless it was let go on. Returns whether the access is strong.
    #[inline]
    pub(super) fn announce_inside(
        &mut self,
        world: &mut impl World,
        index: usize,
        memory: &Memory,
        address: u64,
        kind: AccessKind,
        place: Place,
    ) -> Result<bool, Halt> {
        let strong = memory.order.is_strong();
        if strong {
            self.announce(world, &self.access(index, memory, address, kind, place))?;
        }
        Ok(strong)
    }

    /// Stops the thread before an access at which the world stops it, unless it was let go on.
    #[inline]
    pub(super) fn announce(&mut self, world: &mut impl World, access: &Access) -> Result<(), Halt> {
        self.tell(world);
        if access.within.follows() && access.order.is_strong() && world.accesses_words() {
            return Ok(()); // with the element before it
        }
        if std::mem::take(&mut self.announced) {
            if access.kind == AccessKind::Load {
                self.paces.looked(access.thread as usize); // each look that a loop makes in vain is a step more
            }
            return Ok(());
        }
        if !world.stops(access) {
            return Ok(());
        }
        Err(Box::new(Stop::Access(*access)))
    }

    #[inline]
    pub(super) fn accepted<T>(&mut self, result: Result<T, Refusal>, access: &Access, index: usize) -> Result<T, Halt> {
        result.map_err(|refusal| self.refused(refusal, access, index))
    }

    #[cold]
    pub(super) fn refused(&mut self, refusal: Refusal, access: &Access, index: usize) -> Halt {
        match refusal {
            Refusal::Wait => Box::new(Stop::Access(*access)),
            Refusal::Fault(message) => self.fault(FaultKind::Memory, index, access.place, *message),
        }
    }

    #[inline]
    fn synchronize_read(&mut self, by: (usize, Place), address: u64, order: Order) {
        if order.is_strong() {
            self.order.read(by, address, order.acquires());
        }
    }

    #[inline]
    fn synchronize_write(&mut self, by: (usize, Place), address: u64, order: Order, atomic: bool) {
        if order.is_strong() {
            self.order.write(by, address, order.releases(), atomic);
        }
    }

    #[cold]
    pub(super) fn misaligned(&self, index: usize, memory: &Memory, address: u64, place: Place) -> Halt {
        let message = format!("address {address:#x} is no multiple of {}{}", memory.align, memory.unit.rule());
        let fault = Fault::new(&self.module, FaultKind::Misaligned, self.who(index), place, message);
        Box::new(Stop::Fault(Box::new(fault.of_address(address))))
    }

    /// A range of shared memory that lies in one block, by its [place](super::blocks::Blocks::place).
    #[inline]
    pub(super) fn shared_range(&self, index: usize, at: u64, bytes: u8, place: Place) -> Result<usize, Halt> {
        // An address of shared memory has 32 bits: one with bits above them is out of bounds.
        let begin = at as u32 as usize;
        if at >> 32 == 0 && self.blocks.owner(begin).1 + usize::from(bytes) <= self.shared_bytes as usize {
            return Ok(begin);
        }
        let at = if at >> 32 == 0 { self.blocks.owner(begin).1 as u64 } else { at };
        Err(self.out_of_bounds(index, "shared", at, bytes, self.shared_bytes as usize, place))
    }

    fn out_of_bounds(&self, index: usize, space: &str, at: u64, bytes: u8, end: usize, place: Place) -> Halt {
        let asks = |variable: &crate::module::SharedVariable| variable.end.is_none();
        let lacks = space == "shared" && self.launch.dynamic_shared == 0 && self.module.shared.iter().any(asks);
        let message = format!(
            "an access of {} at {at:#x} is beyond {space} memory, which has {}{}",
            count(bytes, "byte"),
            count(end, "byte"),
            if lacks { ": the launch gives none for what is declared extern (Grid::shared)" } else { "" }
        );
        self.fault(FaultKind::OutOfBounds, index, place, message)
    }

    fn word(&self, index: usize, memory: &[u8], space: &str, at: u64, bytes: u8, place: Place) -> Result<u64, Halt> {
        let word = usize::try_from(at).ok().and_then(|at| bytes::get(memory, at, bytes));
        word.ok_or_else(|| self.out_of_bounds(index, space, at, bytes, memory.len(), place))
    }

    /// A strong write to shared memory has been made. `before`: what was around it.
    pub(super) fn wrote_shared(&mut self, world: &mut impl World, access: &Access, at: usize, before: u64) {
        self.tell(world);
        let told = self.order.told_at(access.address);
        world.accessed_shared(access, Some(&Written { before, now: self.shared.around(at), told }));
    }

    /// Notes an access to shared memory; a race or a read of what nobody wrote ends the block.
    pub(super) fn touch(&mut self, world: &mut impl World, at: usize, bytes: usize, touch: Touch) -> Result<(), Halt> {
        self.meets_copy(at, bytes, &touch)?;
        let checks = self.launch.checks;
        let (thread, mut moment) = (touch.thread as u32, 0);
        if checks.races {
            self.tell(world); // what has ordered threads so far was before
            if self.blocks.are_several() {
                self.is_alive((at, bytes), &touch)?;
            }
            moment = world.moment(thread);
            self.meets_copies(world, (at, bytes), &touch)?;
            self.meets_product(at, bytes, &touch)?;
        }
        let learned: Learned<'_> = &mut |of, moment| world.comes_after(thread, of as u32, moment);
        let learned = checks.races.then_some(learned);
        let (finding, uninitialized) = self.shared.touch(at, bytes, (touch, moment), &self.order, learned);
        if let Some(finding) = finding {
            return Err(self.race(at, bytes, &touch, finding));
        }
        if uninitialized && checks.uninitialized {
            return Err(self.unwritten(at, bytes, &touch));
        }
        Ok(())
    }

    #[cold]
    pub(super) fn race(
        &self,
        at: usize,
        bytes: usize,
        touch: &Touch,
        Finding { thread, place, wrote, invisible, strength, moment }: Finding,
    ) -> Halt {
        if let By::Async(what) = touch.by
            && invisible
        {
            return self.may_not_see((at, bytes), (what, touch), (thread, place));
        }
        let what = |writes: bool| if writes { "write" } else { "read" };
        let message = format!(
            "race in shared memory: nothing orders the {} of {} at {} and an earlier {} there",
            what(touch.writes),
            count(bytes, "byte"),
            self.in_shared(at),
            what(wrote)
        );
        let fault = Fault::new(&self.module, FaultKind::Race, self.who(touch.thread), touch.place, message);
        let fault = fault.with(&self.module, self.who(thread), place);
        let fault = match [touch.strength, strength].contains(&Strength::Weak) {
            true => Fault {
                unordered: Some(Unordered { first: thread, moment, second: touch.thread }),
                ..fault.lacking(self.missing((touch.thread, touch.place), (thread, place)))
            },
            false => fault.lacking(self.wider_scope([(touch.strength, touch.place), (strength, place)])),
        };
        Box::new(Stop::Fault(Box::new(fault)))
    }

    /// What would make no race of two strong accesses.
    fn wider_scope(&self, both: [(Strength, Place); 2]) -> String {
        let narrow = both.iter().filter(|(strength, _)| *strength == Strength::InBlock);
        let mut lines: Vec<String> = narrow.map(|(_, place)| self.module.describe(*place)).collect();
        lines.dedup();
        format!(
            "scope cluster or gpu (atomicAdd, cuda::thread_scope_device, ld.acquire.cluster) in place of the narrower one at {}: to another block such an access is no atomic",
            lines.join(" and ")
        )
    }

    #[cold]
    pub(super) fn unwritten(&self, at: usize, bytes: usize, touch: &Touch) -> Halt {
        let variable = self.in_shared(at);
        let message = format!(
            "a read of {} of shared memory at {variable}, which nobody has written in full",
            count(bytes, "byte")
        );
        self.fault(FaultKind::Uninitialized, touch.thread, touch.place, message)
    }

    /// What would order two threads of the block.
    fn missing(&self, (thread, at): (usize, Place), (other, before): (usize, Place)) -> String {
        let [at, before] = [at, before].map(|place| self.module.describe(place));
        // Within a warp its own barrier would do for these two. Which one does for all of a larger block is not known here.
        let barrier = match self.order.threads() <= 32 {
            true => "a barrier of the block (__syncthreads) or of the warp (__syncwarp)",
            false if self.blocks.rank(thread) != self.blocks.rank(other) => "a barrier of the cluster (cluster.sync())",
            false => "a barrier of the block (__syncthreads)",
        };
        match at == before {
            false => format!("{barrier} between {before} and {at}"),
            true => format!("one thread at {at} in place of several, or an atomic, or {barrier} between them"),
        }
    }
}
