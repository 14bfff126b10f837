//! Products of warp groups (`wgmma`): four warps begin one together, and it runs beside their threads until they have waited for it.
//!
//! It is computed when all 128 threads have come, which PTX allows. [`under_way`](super::under_way) keeps what it may still be reading and
//! writing after that.

use std::ops::Range;
use std::sync::Arc;

use super::thread::{State, Together};
use super::{Block, FaultKind, Halt};
use crate::alu::group::Tile;
use crate::alu::matrix::Element;
use crate::module::Place;
use crate::op::{Factor, GroupForm, InGroup, Reg, Warp};
use crate::world::World;

/// The threads of a group.
pub(super) const GROUP: usize = 128;

impl Block {
    /// The threads that wait together with one: of its warp, or for a product of its group. Not all of them need exist.
    pub(super) fn partners(index: usize, kind: Warp) -> Range<usize> {
        let count = if let Warp::Group(InGroup::Multiply(_)) = kind { GROUP } else { 32 };
        let first = index / count * count;
        first..first + count
    }

    /// A thread has come to an instruction on products of its group. If it is the last one, the instruction is executed.
    pub(super) fn come_in_group(
        &mut self,
        world: &mut impl World,
        index: usize,
        what: InGroup,
        together: Together,
    ) -> Result<(), Halt> {
        let place = together.place;
        let partners = Self::partners(index, together.kind);
        let is_live = |&thread: &usize| self.threads.get(thread).is_some_and(super::Thread::is_live);
        if let Some(missing) = partners.clone().find(|thread| !is_live(thread)) {
            let why = if self.blocks.has(missing) { "has ended" } else { "is no thread of the block" };
            let message = format!(
                "{} of a warp group come to one instruction together, and thread {} of the group {why}",
                if partners.len() == GROUP { "all 128 threads" } else { "all 32 threads of a warp" },
                missing % GROUP
            );
            return Err(self.fault(FaultKind::MissingLanes, index, place, message));
        }
        let has_come =
            |thread: usize| matches!(self.threads[thread].state, State::Warp(theirs) if theirs.is_with(&together));
        if !partners.clone().all(has_come) {
            return Ok(());
        }
        match what {
            InGroup::Fence => self.fence_in_group(index),
            InGroup::Multiply(how) => self.multiply_in_group(world, partners.clone(), how, place)?,
            InGroup::Commit => self.commit_in_group(index),
            InGroup::Wait(most) => self.wait_in_group(partners.clone(), most as usize),
        }
        self.threads[partners.clone()].iter_mut().for_each(|thread| thread.state = State::Ready);
        self.meet_otherwise(partners);
        Ok(())
    }

    #[inline(never)]
    fn multiply_in_group(
        &mut self,
        world: &mut impl World,
        group: Range<usize>,
        how: u16,
        place: Place,
    ) -> Result<(), Halt> {
        let module = Arc::clone(&self.module);
        let form = &module.code[usize::from(self.threads[group.start].frame.code)].products[usize::from(how)];
        let GroupForm { kind, d, a, b, adds } = form;
        self.fenced_before(group.clone(), form, place)?;
        let adds = self.agreed(group.clone(), *adds, 1, "whether it adds", place)? == 1;
        let mut read = Vec::new();
        let rows = match a {
            Factor::Registers(_) => None,
            Factor::Shared { descriptor, transposed } => {
                let descriptor = self.agreed(group.clone(), *descriptor, u64::MAX, "the descriptor of a", place)?;
                let tile = Tile::new(descriptor, kind.a, *transposed);
                Some(self.matrix(group.start, &tile, kind.a, (64, kind.depth()), &mut read, place)?)
            }
        };
        let Factor::Shared { descriptor, transposed } = b else { return Ok(()) };
        let descriptor = self.agreed(group.clone(), *descriptor, u64::MAX, "the descriptor of b", place)?;
        let tile = Tile::new(descriptor, kind.b, *transposed);
        let columns = self.matrix(group.start, &tile, kind.b, (kind.columns, kind.depth()), &mut read, place)?;
        self.reads_in_group(world, group.clone(), read, place)?;
        self.hold(group.clone(), how, place);
        for (warp, first) in group.step_by(32).enumerate() {
            let held = |registers: &[Reg]| -> Vec<[u64; 32]> {
                let row = |&register: &Reg| std::array::from_fn(|lane| self.get(first + lane, register));
                registers.iter().map(row).collect()
            };
            let of_warp = match (&rows, a) {
                (Some(rows), _) => &rows[16 * warp..16 * warp + 16],
                (None, Factor::Registers(registers)) => &kind.rows_of(&held(registers)),
                (None, _) => &[],
            };
            let before = if adds { held(d) } else { vec![[0; 32]; d.len()] };
            for (&register, row) in d.iter().zip(kind.apply(of_warp, &columns, &before)) {
                (0..32).for_each(|lane| self.set(first + lane, register, row[lane]));
            }
        }
        Ok(())
    }

    /// The value of a register, masked, that all threads of a group must agree on. Fails if they do not; `what` names the value in the fault.
    fn agreed(&self, group: Range<usize>, register: Reg, mask: u64, what: &str, place: Place) -> Result<u64, Halt> {
        let first = self.get(group.start, register) & mask;
        match group.clone().find(|&thread| self.get(thread, register) & mask != first) {
            None => Ok(first),
            Some(other) => {
                let message =
                    format!("the threads of a warp group come to a product together, and do not agree on {what}");
                let (here, there) = ((other, place), (group.start, place));
                Err(self.fault_with(FaultKind::InvalidOperand, here, there, message))
            }
        }
    }

    /// The elements of a matrix in shared memory, and where they lie in units of 16 bytes.
    fn matrix(
        &self,
        index: usize,
        tile: &Tile,
        element: Element,
        (majors, depth): (usize, usize),
        read: &mut Vec<usize>,
        place: Place,
    ) -> Result<Vec<Vec<f64>>, Halt> {
        let bytes = element.bytes() as u8;
        let mut one = |major: usize, k: usize| {
            let at = self.blocks.place(index, tile.address(major, k));
            let at = self.shared_range(index, at, bytes, place)?;
            read.push(at / 16);
            Ok(element.value(self.shared.load(at, bytes)))
        };
        (0..majors).map(|major| (0..depth).map(|k| one(major, k)).collect()).collect()
    }
}
