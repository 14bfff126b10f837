//! Bulk copies between global and shared memory, and the mbarriers that count them.
//!
//! The bytes are moved at once: that is one of the times at which they may be. What orders a copy is the mbarrier, as on a GPU: who waits for the
//! phase knows what the copying thread did before, and that the copy is over. [`Copies`](super::copies::Copies) knows who does not.

use super::shared::Touch;
use super::thread::Thread;
use super::{Block, FaultKind, Halt};
use crate::decode::window;
use crate::module::Place;
use crate::op::{AtomicForm, Bulk, MBarrier, Memory};
use crate::types::{Order, Scope, Space, mask};
use crate::world::{Access, AccessKind, AtomicOp, World};

/// An mbarrier, as it lies in its 8 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct State {
    /// Arrivals that are missing in this phase.
    pending: u64,
    /// Arrivals that a phase takes.
    expected: u64,
    /// Bytes that are announced and have not come.
    bytes: i64,
    phase: u64,
    /// Whether it has begun, and was not given up. All that expect arrivals may have dropped out.
    is_valid: bool,
}

const COUNT: u64 = (1 << 20) - 1;
const BYTES: u64 = (1 << 22) - 1;
const VALID: u64 = 1 << 62;

impl State {
    fn unpack(word: u64) -> Self {
        let bytes = (word >> 40 & BYTES) as i64;
        let bytes = if bytes >> 21 == 1 { bytes - (1 << 22) } else { bytes };
        Self {
            pending: word & COUNT,
            expected: word >> 20 & COUNT,
            bytes,
            phase: word >> 63,
            is_valid: word & VALID != 0,
        }
    }

    fn pack(self) -> u64 {
        self.pending & COUNT
            | (self.expected & COUNT) << 20
            | (self.bytes.cast_unsigned() & BYTES) << 40
            | self.phase << 63
            | if self.is_valid { VALID } else { 0 }
    }

    /// When everything has come, the next phase begins.
    fn settled(mut self) -> Self {
        if self.pending == 0 && self.bytes == 0 {
            self.phase ^= 1;
            self.pending = self.expected;
        }
        self
    }
}

impl Block {
    /// The address of shared memory that an operand means: of the space, or generic.
    pub(super) fn shared_address(&self, address: u64, in_space: bool, index: usize, place: Place) -> Result<u64, Halt> {
        match address & !(window::SHARED - 1) {
            0 if in_space => Ok(address),
            window::SHARED => Ok(address - window::SHARED),
            _ => Err(self.fault(
                FaultKind::OutOfBounds,
                index,
                place,
                format!("{address:#x} is no address of shared memory"),
            )),
        }
    }

    #[expect(clippy::too_many_arguments, reason = "who, where, what and how of an access")]
    pub(super) fn mbarrier(
        &mut self,
        world: &mut impl World,
        thread: &mut Thread,
        index: usize,
        kind: MBarrier,
        (address, operand): (u64, u64),
        in_space: bool,
        place: Place,
    ) -> Result<u64, Halt> {
        let address = self.shared_address(address, in_space, index, place)?;
        if !address.is_multiple_of(8) {
            return Err(self.fault(
                FaultKind::Misaligned,
                index,
                place,
                format!("an mbarrier at {address:#x}, no multiple of 8"),
            ));
        }
        let at = self.shared_range(index, address, 8, place)?;
        let generic = window::SHARED + address;
        let mut access = self.mbarrier_access(index, kind, generic, place);
        if access.order.is_strong() {
            self.announce(world, &access)?;
        }
        // Its own operations do not race; before it is initialized, there is none.
        let reads = kind != MBarrier::Init;
        let touch = Touch {
            thread: index,
            place,
            reads,
            writes: true,
            strong: kind != MBarrier::Init,
            repeats: false,
            by_copy: false,
        };
        self.touch(world, at, 8, touch)?;
        let word = self.shared.load(at, 8);
        let old = State::unpack(word);
        let invalid =
            |block: &Self, message: String| Err(block.fault(FaultKind::InvalidOperand, index, place, message));
        let mut new = old;
        match kind {
            MBarrier::Init => {
                if operand == 0 || operand > COUNT {
                    return invalid(
                        self,
                        format!("an mbarrier for {operand} arrivals; at least 1 and at most {COUNT}"),
                    );
                }
                new = State { pending: operand, expected: operand, bytes: 0, phase: 0, is_valid: true };
            }
            MBarrier::Invalidate => new = State::unpack(0),
            _ if !old.is_valid => return invalid(self, "an mbarrier that is not initialized".into()),
            MBarrier::Test { parity } => {
                let waited = if parity { operand & 1 } else { operand >> 63 };
                self.has_read(thread, index, generic, 8);
                let done = old.phase != waited;
                if done {
                    self.order.read(index, generic, true);
                    self.is_in_phase(address, old.phase == 1);
                }
                world.accessed_shared(&access, false);
                return Ok(u64::from(done));
            }
            MBarrier::ExpectTx => new.bytes += operand as i64,
            MBarrier::ArriveExpectTx => {
                new.bytes += operand as i64;
                new.pending = new.pending.wrapping_sub(1);
            }
            MBarrier::Arrive => new.pending = new.pending.wrapping_sub(operand),
            MBarrier::ArriveDrop => {
                new.pending = new.pending.wrapping_sub(operand);
                new.expected = new.expected.saturating_sub(operand);
            }
            MBarrier::CompleteTx => new.bytes -= operand as i64,
            MBarrier::ArriveBehindCopies { counts } => {
                self.follow(world, index, address, old.phase == 1)?;
                new.pending = new.pending.wrapping_sub(counts.into());
            }
        }
        if new.pending > COUNT || new.bytes.unsigned_abs() > BYTES / 2 {
            return invalid(self, "more arrivals or bytes than the mbarrier's phase takes".into());
        }
        if !matches!(kind, MBarrier::Init | MBarrier::Invalidate) {
            new = new.settled();
        }
        if let AccessKind::Arrive { odd, ends } = &mut access.kind {
            (*odd, *ends) = (old.phase == 1, new.phase != old.phase);
        }
        self.order.write(index, generic, true, true);
        let changed = self.shared.store(at, 8, new.pack());
        if access.order.is_strong() {
            world.accessed_shared(&access, changed);
        }
        if changed {
            self.changed(index, generic, 8);
        }
        Ok(word)
    }

    /// What an operation on an mbarrier is to the world. Arrivals commute in one phase: what they return says which that is.
    fn mbarrier_access(&self, index: usize, kind: MBarrier, address: u64, place: Place) -> Access {
        let (order, kind) = match kind {
            MBarrier::Init => (Order::Weak, AccessKind::Store),
            MBarrier::Invalidate => (Order::Relaxed, AccessKind::Store),
            MBarrier::Test { .. } => (Order::Acquire, AccessKind::Load),
            // bytes that are announced after the last arrival are those of the next phase
            MBarrier::ExpectTx => (Order::Release, AccessKind::Atomic(AtomicOp::Add)),
            MBarrier::Arrive
            | MBarrier::ArriveExpectTx
            | MBarrier::ArriveDrop
            | MBarrier::CompleteTx
            | MBarrier::ArriveBehindCopies { .. } => (Order::Release, AccessKind::Arrive { odd: false, ends: false }),
        };
        let memory = Memory { space: Space::Shared, bytes: 8, align: 8, order, scope: Scope::Cta };
        let commutes = matches!(kind, AccessKind::Arrive { .. });
        Access { commutes, ..self.access(index, &memory, address, kind, place) }
    }

    /// `[destination, source, bytes, mbarrier]`; of a thread's own copy, the bytes to read instead of an mbarrier.
    pub(super) fn bulk(
        &mut self,
        world: &mut impl World,
        thread: &mut Thread,
        index: usize,
        kind: Bulk,
        [target, source, bytes, barrier]: [u64; 4],
        place: Place,
    ) -> Result<(), Halt> {
        let to_shared = kind != Bulk::ToGlobal;
        let (shared, global) = if to_shared { (target, source) } else { (source, target) };
        let shared = self.shared_address(shared, true, index, place)?;
        // a thread's own copy is of one element, of so many bytes
        let unit = match (kind, bytes) {
            (Bulk::Elements, 4 | 8 | 16) => bytes,
            (Bulk::Elements, _) => {
                let message = format!("cp.async of {bytes} bytes: it copies 4, 8 or 16");
                return Err(self.fault(FaultKind::InvalidOperand, index, place, message));
            }
            _ => 16,
        };
        if !(shared | global | bytes).is_multiple_of(unit) {
            let message = format!(
                "a copy of {bytes} bytes between {global:#x} and shared {shared:#x}: all three are multiples of {unit}"
            );
            return Err(self.fault(FaultKind::Misaligned, index, place, message));
        }
        let step = unit.min(8) as u8;
        self.begin_copy(world, thread, index, kind, (shared, bytes), place)?;
        let access_kind = if to_shared { AccessKind::BulkLoad } else { AccessKind::BulkStore };
        for offset in (thread.copied..bytes).step_by(step.into()) {
            let at = self.shared_range(index, shared + offset, step, place)?;
            let memory =
                Memory { space: Space::Global, bytes: step, align: step, order: Order::Weak, scope: Scope::Sys };
            let access = self.access(index, &memory, global.wrapping_add(offset), access_kind, place);
            self.announce(world, &access)?;
            let touch = Touch {
                thread: index,
                place,
                reads: !to_shared,
                writes: to_shared,
                strong: false,
                repeats: false,
                by_copy: kind != Bulk::Elements,
            };
            self.touch(world, at, step.into(), touch)?;
            if to_shared {
                // Of a copy that reads less than it writes, only what is read is accessed.
                let read = if kind == Bulk::Elements { barrier.saturating_sub(offset) } else { u64::MAX };
                let value = if read == 0 { Ok(0) } else { world.load(&access) };
                let value = self.accepted(value, &access, index)? & mask(read.min(8) as u32 * 8);
                self.shared.store(at, step, value);
                self.changed(index, window::SHARED + at as u64, step);
            } else {
                let changed = world.store(&access, self.shared.load(at, step));
                if self.accepted(changed, &access, index)? {
                    self.changed(index, access.address, step);
                }
            }
            thread.copied = offset + u64::from(step);
        }
        self.end_copy(world, thread, kind, barrier);
        match kind {
            Bulk::ToShared => {
                self.mbarrier(world, thread, index, MBarrier::CompleteTx, (barrier, bytes), true, place)?;
            }
            Bulk::Elements => self.takes_off(index, (shared, bytes), place),
            Bulk::ToGlobal | Bulk::Reduce(_) => {}
        }
        (thread.copied, thread.copy) = (0, None);
        Ok(())
    }

    /// `[destination, source, bytes, –]`: elements of shared memory are combined with those of global memory, each by an atomic of its own.
    pub(super) fn reduce_in_bulk(
        &mut self,
        world: &mut impl World,
        thread: &mut Thread,
        index: usize,
        (kind, form): (Bulk, &AtomicForm),
        [target, source, bytes, _]: [u64; 4],
        place: Place,
    ) -> Result<(), Halt> {
        let shared = self.shared_address(source, true, index, place)?;
        if !(shared | target | bytes).is_multiple_of(16) {
            let message = format!(
                "a reduction of {bytes} bytes from shared {shared:#x} to {target:#x}: all three are multiples of 16"
            );
            return Err(self.fault(FaultKind::Misaligned, index, place, message));
        }
        let width = form.memory.bytes;
        self.begin_copy(world, thread, index, kind, (shared, bytes), place)?;
        for offset in (thread.copied..bytes).step_by(width.into()) {
            let at = self.shared_range(index, shared + offset, width, place)?;
            let touch = Touch {
                thread: index,
                place,
                reads: true,
                writes: false,
                strong: false,
                repeats: false,
                by_copy: true,
            };
            self.touch(world, at, width.into(), touch)?;
            let value = self.shared.load(at, width);
            self.atomic(world, thread, index, form, target.wrapping_add(offset), (value, value), place)?;
            thread.copied = offset + u64::from(width);
        }
        self.end_copy(world, thread, kind, 0);
        (thread.copied, thread.copy) = (0, None);
        Ok(())
    }

    /// A thread has made an asynchronous store to shared memory, counted by an mbarrier that was in a state before.
    pub(super) fn is_under_way(
        &mut self,
        index: usize,
        (address, bytes): (u64, u8),
        (barrier, before): (u64, u64),
        place: Place,
    ) -> Result<(), Halt> {
        let phase = (self.shared_address(barrier, true, index, place)?, State::unpack(before).phase == 1);
        self.takes_off_for(index, (address, bytes.into()), phase, place);
        Ok(())
    }
}
