//! Shared memory, and its shadow: who wrote and read each word last, for races and for what nobody wrote.

use super::order::Order;
use crate::bytes;
use crate::module::Place;

/// One access, as the shadow remembers it. Epoch 0: there was none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Stamp {
    epoch: u32,
    clock: u32,
    place: Place,
    thread: u16,
    strong: bool,
}

/// The last write, the last read, and the last read by another thread than that one.
#[derive(Clone, Copy, Debug, Default)]
struct Cell {
    write: Stamp,
    read: Stamp,
    other_read: Stamp,
}

#[derive(Clone, Debug)]
pub(super) struct Shared {
    pub(super) bytes: Vec<u8>,
    cells: Vec<Cell>,
    /// Bytes of a cell, as a shift.
    granularity: u32,
}

/// Who accesses, and how.
#[derive(Clone, Copy, Debug)]
pub(super) struct Touch {
    pub(super) thread: usize,
    pub(super) place: Place,
    pub(super) reads: bool,
    pub(super) writes: bool,
    /// Strong accesses do not race with each other.
    pub(super) strong: bool,
}

/// A race with an earlier access, which wrote or only read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Finding {
    pub(super) thread: usize,
    pub(super) place: Place,
    pub(super) wrote: bool,
}

impl Shared {
    /// `narrowest` is the width of the narrowest access that the kernel makes: 1, 2 or 4.
    pub(super) fn new(bytes: usize, narrowest: u8, shadow: bool) -> Self {
        let granularity = u32::from(narrowest.clamp(1, 4)).trailing_zeros();
        let cells = if shadow { bytes.div_ceil(1 << granularity) } else { 0 };
        Self { bytes: vec![0; bytes], cells: vec![Cell::default(); cells], granularity }
    }

    /// A word that lies within.
    #[inline]
    pub(super) fn load(&self, at: usize, bytes: u8) -> u64 {
        bytes::get(&self.bytes, at, bytes).unwrap_or(0)
    }

    /// Whether that changed the memory.
    #[inline]
    pub(super) fn store(&mut self, at: usize, bytes: u8, value: u64) -> bool {
        bytes::put(&mut self.bytes, at, bytes, value).unwrap_or(false)
    }

    /// Notes an access to bytes that exist. The first race, if there is one, and whether bytes are read that nobody wrote.
    pub(super) fn touch(
        &mut self,
        at: usize,
        bytes: usize,
        touch: Touch,
        order: &Order,
        races: bool,
    ) -> (Option<Finding>, bool) {
        let (mut finding, mut uninitialized) = (None, false);
        if self.cells.is_empty() {
            return (None, false);
        }
        let Touch { thread, place, reads, writes, strong } = touch;
        let stamp = Stamp { epoch: order.epoch, clock: order.clock(thread), place, thread: thread as u16, strong };
        for cell in &mut self.cells[at >> self.granularity..(at + bytes).div_ceil(1 << self.granularity)] {
            let conflicts = |earlier: &Stamp| {
                earlier.epoch != 0
                    && !(earlier.strong && strong)
                    && !order.before(earlier.epoch, earlier.thread.into(), earlier.clock, thread)
            };
            let race =
                |earlier: &Stamp, wrote: bool| Finding { thread: earlier.thread.into(), place: earlier.place, wrote };
            uninitialized |= reads && cell.write.epoch == 0;
            if races && finding.is_none() {
                if conflicts(&cell.write) {
                    finding = Some(race(&cell.write, true));
                } else if writes {
                    finding = [&cell.read, &cell.other_read]
                        .into_iter()
                        .find(|read| conflicts(read))
                        .map(|read| race(read, false));
                }
            }
            if writes {
                *cell = Cell { write: stamp, ..Cell::default() };
            } else {
                if cell.read.epoch != 0 && cell.read.thread != stamp.thread {
                    cell.other_read = cell.read;
                }
                cell.read = stamp;
            }
        }
        (finding, uninitialized)
    }
}
