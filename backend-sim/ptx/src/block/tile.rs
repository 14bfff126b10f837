//! Tiles of tensors between global and shared memory, as a [tensor map](TensorMap) describes them.
//!
//! They are bulk copies. Their bytes move when they are issued, which PTX allows, and they are in flight until a thread waits for them
//! (see [`copies`](super::copies)). A load fills in what lies outside of the tensor. A store leaves it alone, except that it rounds the end of a row up to a
//! multiple of 16 bytes.

use super::shared::{By, Touch};
use super::thread::Thread;
use super::{Block, FaultKind, Halt};
use crate::decode::window;
use crate::module::Place;
use crate::op::{AtomicForm, Bulk, MBarrier, Memory};
use crate::tensor::{TensorMap, Tile, TileKind};
use crate::types::{Order, Scope, Space};
use crate::world::{AccessKind, AtomicOp, World};

impl Block {
    pub(super) fn copy_tile(
        &mut self,
        world: &mut impl World,
        thread: &mut Thread,
        index: usize,
        kind: TileKind,
        tile: &Tile,
        place: Place,
    ) -> Result<(), Halt> {
        let shared = self.shared_address(tile.shared, true, index, place)?;
        let map = match &thread.tensor {
            Some(map) => **map, // it was stopped within
            None => self.begin_tile(world, thread, index, kind, (tile, shared), place)?,
        };
        // for the race detector, a reduction is like a copy
        let bulk = if kind == TileKind::Load { Bulk::ToShared } else { Bulk::ToGlobal };
        self.begin_copy(world, thread, index, bulk, (shared, map.extent()), place)?;
        while thread.copied < map.bytes() {
            let at = map.in_shared(shared, thread.copied);
            let found = map.in_global(&tile.corner, thread.copied, kind != TileKind::Load);
            // eight bytes at once if they are contiguous and aligned, otherwise one element
            let is_wide = |(address, left): (u64, u64)| (address | thread.copied).is_multiple_of(8) && left >= 8;
            let step = match kind {
                TileKind::Load | TileKind::Store if found.is_some_and(is_wide) => 8,
                _ => map.width() as u8,
            };
            let address = found.map(|(address, _)| address);
            match kind {
                TileKind::Load => self.load_part(world, index, &map, (address, at, step), place)?,
                TileKind::Store => self.store_part(world, index, (address, at, step), place)?,
                TileKind::Reduce(op) => self.reduce_part(world, thread, index, (op, &map), (address, at), place)?,
            }
            thread.copied += u64::from(step);
        }
        self.end_copy(world, thread, (index, place), bulk, tile.barrier);
        if kind == TileKind::Load {
            let counted = (tile.barrier, map.bytes());
            self.mbarrier(world, thread, index, (MBarrier::CompleteTx, false), counted, true, place)?;
        }
        (thread.copied, thread.copy, thread.tensor) = (0, None, None);
        Ok(())
    }

    /// The tensor map of an instruction, if all that it asks for is possible.
    fn begin_tile(
        &mut self,
        world: &mut impl World,
        thread: &mut Thread,
        index: usize,
        kind: TileKind,
        (tile, shared): (&Tile, u64),
        place: Place,
    ) -> Result<TensorMap, Halt> {
        let map = self.tensor_map(world, thread, index, tile.map, place)?;
        let (rank, extent, end) = (map.rank, map.extent(), u64::from(self.shared_bytes));
        let within = self.blocks.owner(shared as u32 as usize).1 as u64;
        let (wrong, message) = match kind {
            _ if tile.rank != rank => {
                (FaultKind::InvalidOperand, format!("a tile of {}d, of a tensor of {rank}d", tile.rank))
            }
            _ if !shared.is_multiple_of(128) => {
                (FaultKind::Misaligned, format!("a tile at shared {shared:#x}: it begins at a multiple of 128"))
            }
            _ if shared >> 32 != 0 || within + extent > end => (
                FaultKind::OutOfBounds,
                format!("a tile of {extent} bytes at {within:#x} is beyond shared memory, which has {end} bytes"),
            ),
            _ if i64::from(tile.corner[0]) * map.width() as i64 % 16 != 0 => (
                FaultKind::Misaligned,
                format!(
                    "a tile at {:?} of elements of {} bytes: its rows begin at multiples of 16 bytes, so the first coordinate is a multiple of {}",
                    &tile.corner[..rank],
                    map.width(),
                    16 / map.width()
                ),
            ),
            TileKind::Store | TileKind::Reduce(_) if tile.corner[..rank].iter().any(|at| *at < 0) => (
                FaultKind::InvalidOperand,
                format!(
                    "a tile is stored at {:?}: it may reach beyond the end of the tensor, and does not begin before its beginning",
                    &tile.corner[..rank]
                ),
            ),
            TileKind::Reduce(op) if !map.reduces_with(op) => {
                (FaultKind::InvalidOperand, format!("elements of type {:?} do not reduce with {op:?}", map.ty))
            }
            _ => {
                thread.tensor = Some(Box::new(map));
                return Ok(map);
            }
        };
        Err(self.fault(wrong, index, place, message))
    }

    /// Reads a tensor map. That is no access of the kernel.
    fn tensor_map(
        &mut self,
        world: &mut impl World,
        thread: &mut Thread,
        index: usize,
        address: u64,
        place: Place,
    ) -> Result<TensorMap, Halt> {
        let inside = match address & !(window::SHARED - 1) {
            window::SHARED => Some("shared"),
            window::LOCAL => Some("local"),
            _ => None,
        };
        if let Some(inside) = inside {
            let message = format!(
                "a tensor map in {inside} memory: it lies among the parameters of the kernel (const __grid_constant__ CUtensorMap), in constant or in global memory"
            );
            return Err(self.fault(FaultKind::InvalidOperand, index, place, message));
        }
        if !address.is_multiple_of(64) {
            let message = format!("a tensor map at {address:#x}: it lies at a multiple of 64");
            return Err(self.fault(FaultKind::Misaligned, index, place, message));
        }
        let mut bytes = [0; 128];
        for (word, at) in bytes.chunks_exact_mut(8).zip((address..).step_by(8)) {
            word.copy_from_slice(&self.inspect(world, thread, index, at, 8, place)?.to_le_bytes());
        }
        let message = || format!("what lies at {address:#x} is no tensor map, or was changed");
        TensorMap::decode(&bytes).ok_or_else(|| self.fault(FaultKind::InvalidOperand, index, place, message()))
    }

    /// Bytes of a tile come into shared memory, at `at`: from an address, or from outside of the tensor.
    fn load_part(
        &mut self,
        world: &mut impl World,
        index: usize,
        map: &TensorMap,
        (address, at, step): (Option<u64>, u64, u8),
        place: Place,
    ) -> Result<(), Halt> {
        let at = self.shared_range(index, at, step, place)?;
        let access = address.map(|address| {
            self.access(index, &Memory::plain(Space::Global, step), address, AccessKind::BulkLoad, place)
        });
        if let Some(access) = &access {
            self.announce(world, access)?;
        }
        self.touch(world, at, step.into(), touch(index, place, true))?;
        let value = match &access {
            Some(access) => {
                let value = world.load(access);
                self.accepted(value, access, index)?
            }
            None => map.outside(),
        };
        self.shared.store(at, step, value);
        self.changed(index, window::SHARED + at as u64, step);
        Ok(())
    }

    /// Bytes of a tile at `at` in shared memory go to an address, if they lie in the tensor.
    fn store_part(
        &mut self,
        world: &mut impl World,
        index: usize,
        (address, at, step): (Option<u64>, u64, u8),
        place: Place,
    ) -> Result<(), Halt> {
        let Some(address) = address else { return Ok(()) };
        let at = self.shared_range(index, at, step, place)?;
        let access = self.access(index, &Memory::plain(Space::Global, step), address, AccessKind::BulkStore, place);
        self.announce(world, &access)?;
        self.touch(world, at, step.into(), touch(index, place, false))?;
        let changed = world.store(&access, self.shared.load(at, step));
        if self.accepted(changed, &access, index)? {
            self.changed(index, address, step);
        }
        Ok(())
    }

    /// An element of a tile at `at` in shared memory is combined with that at an address, by an atomic of its own.
    fn reduce_part(
        &mut self,
        world: &mut impl World,
        thread: &mut Thread,
        index: usize,
        (op, map): (AtomicOp, &TensorMap),
        (address, at): (Option<u64>, u64),
        place: Place,
    ) -> Result<(), Halt> {
        let Some(address) = address else { return Ok(()) };
        let (order, scope) = (Order::Relaxed, Scope::Gpu);
        let memory = Memory { order, scope, ..Memory::plain(Space::Global, map.width() as u8) };
        let commutes = !map.ty.is_float() && !matches!(op, AtomicOp::Inc | AtomicOp::Dec);
        let form = AtomicForm { op, ty: map.ty, memory, offset: 0, commutes, is_used: false, asks: false };
        let at = self.shared_range(index, at, memory.bytes, place)?;
        self.touch(world, at, memory.bytes.into(), touch(index, place, false))?;
        let value = self.shared.load(at, memory.bytes);
        self.atomic(world, thread, index, &form, address, (value, value), place)?;
        Ok(())
    }
}

/// The access of a copy to shared memory.
fn touch(thread: usize, place: Place, writes: bool) -> Touch {
    if writes { Touch::write(thread, place, By::COPY) } else { Touch::read(thread, place, By::COPY) }
}
