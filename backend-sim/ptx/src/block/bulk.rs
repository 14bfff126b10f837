//! Bulk copies between global and shared memory, and within shared memory.
//!
//! The bytes move when a copy is issued, which PTX allows. As on a GPU, the [mbarrier](super::mbarrier) orders a copy: a thread that waits
//! for the phase comes after what the copying thread did before, and knows that the copy is over. [`Copies`](super::copies::Copies) finds accesses of threads that do not know.

use super::shared::{By, Touch};
use super::thread::Thread;
use super::{Block, FaultKind, Halt};
use crate::decode::window;
use crate::module::Place;
use crate::op::{AtomicForm, Bulk, MBarrier, Memory};
use crate::types::Space;
use crate::world::{Access, AccessKind, World};

impl Block {
    /// The [place](super::blocks::Blocks::place) in shared memory that an operand means. `in_space`: the operand may be an address in the space; a generic one is accepted always.
    pub(super) fn shared_address(&self, address: u64, in_space: bool, index: usize, place: Place) -> Result<u64, Halt> {
        match address & !(window::SHARED - 1) {
            0 if in_space => Ok(self.blocks.place(index, address)),
            window::SHARED => Ok(self.blocks.place(index, address - window::SHARED)),
            _ => Err(self.fault(
                FaultKind::OutOfBounds,
                index,
                place,
                format!("{address:#x} is no address of shared memory"),
            )),
        }
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
            let memory = Memory::plain(Space::Global, step);
            let access = self.access(index, &memory, global.wrapping_add(offset), access_kind, place);
            // a copy of elements may read less than it writes, and then accesses no more
            let read = if kind == Bulk::Elements { barrier.saturating_sub(offset).min(8) } else { 8 };
            if read > 0 {
                self.announce(world, &access)?;
            }
            let by = if kind == Bulk::Elements { By::Elements } else { By::COPY };
            let touch = if to_shared { Touch::write(index, place, by) } else { Touch::read(index, place, by) };
            self.touch(world, at, step.into(), touch)?;
            if to_shared {
                let value = match read >= u64::from(step) {
                    true => self.accepted(world.load(&access), &access, index)?,
                    false => self.load_a_part(world, &access, read, index)?,
                };
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
        self.end_copy(world, thread, (index, place), kind, barrier);
        match kind {
            Bulk::ToShared => {
                self.mbarrier(world, thread, index, (MBarrier::CompleteTx, false), (barrier, bytes), true, place)?;
            }
            Bulk::Elements => self.takes_off(index, (shared, bytes), place),
            Bulk::Within | Bulk::ToGlobal | Bulk::Reduce(_) => {}
        }
        (thread.copied, thread.copy) = (0, None);
        Ok(())
    }

    /// `[destination, source, bytes, mbarrier]`, all in the block's own shared memory.
    pub(super) fn bulk_within(
        &mut self,
        world: &mut impl World,
        thread: &mut Thread,
        index: usize,
        [target, source, bytes, barrier]: [u64; 4],
        place: Place,
    ) -> Result<(), Halt> {
        let target = self.shared_address(target, true, index, place)?;
        let source = self.shared_address(source, true, index, place)?;
        if !(target | source | bytes).is_multiple_of(16) {
            let message = format!(
                "a copy of {bytes} bytes from shared {source:#x} to shared {target:#x}: all three are multiples of 16"
            );
            return Err(self.fault(FaultKind::Misaligned, index, place, message));
        }
        self.begin_copy(world, thread, index, Bulk::ToShared, (target, bytes), place)?;
        self.copy_reads(thread, index, (source, bytes), place)?;
        let reads = Touch::read(index, place, By::COPY);
        for offset in (thread.copied..bytes).step_by(8) {
            let from = self.shared_range(index, source + offset, 8, place)?;
            let to = self.shared_range(index, target + offset, 8, place)?;
            self.touch(world, from, 8, reads)?;
            self.touch(world, to, 8, Touch { reads: false, writes: true, ..reads })?;
            self.shared.store(to, 8, self.shared.load(from, 8));
            self.changed(index, window::SHARED + to as u64, 8);
            thread.copied = offset + 8;
        }
        self.end_copy(world, thread, (index, place), Bulk::ToShared, barrier);
        self.mbarrier(world, thread, index, (MBarrier::CompleteTx, false), (barrier, bytes), true, place)?;
        (thread.copied, thread.copy) = (0, None);
        Ok(())
    }

    /// The first bytes of a word, and zeros behind them.
    fn load_a_part(&mut self, world: &mut impl World, word: &Access, bytes: u64, index: usize) -> Result<u64, Halt> {
        let (mut value, mut done) = (0, 0);
        while done < bytes {
            let size = 1 << (bytes - done).ilog2();
            let access = Access { address: word.address + done, bytes: size as u8, ..*word };
            value |= self.accepted(world.load(&access), &access, index)? << (8 * done);
            done += size;
        }
        Ok(value)
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
            let touch = Touch::read(index, place, By::COPY);
            self.touch(world, at, width.into(), touch)?;
            let value = self.shared.load(at, width);
            self.atomic(world, thread, index, form, target.wrapping_add(offset), (value, value), place)?;
            thread.copied = offset + u64::from(width);
        }
        self.end_copy(world, thread, (index, place), kind, 0);
        (thread.copied, thread.copy) = (0, None);
        Ok(())
    }
}
