//! The blocks of a cluster, which run as one: whose threads are whose, and where the shared memory of each lies.
//!
//! Threads have numbers that follow each other, block after block, and so has shared memory. Blocks do not share warps: where their threads fill no whole
//! warps, some numbers have no threads. A block's own shared memory begins at address 0 of the
//! space, in every block. `mapa` gives a name to that of a certain block: its rank plus one, in the bits above those of an offset.

use std::ops::Range;

use super::{Block, FaultKind, Halt, Launch};
use crate::module::Place;

/// Bits of an offset in a block's shared memory.
const OFFSET: u32 = 24;

/// A block's shared memory begins at a multiple of this: patterns by which tiles are stored repeat after so many bytes.
const ALIGN: usize = 1024;

#[derive(Clone, Copy, Debug)]
pub(super) struct Blocks {
    pub(super) count: usize,
    /// Threads of a block.
    pub(super) threads: usize,
    /// From the number of a block's first thread to that of the next one's.
    pitch: usize,
    /// From the beginning of a block's shared memory to that of the next one.
    stride: usize,
}

impl Blocks {
    /// `shared`: bytes of shared memory of a block.
    pub(super) fn new(launch: &Launch, shared: usize) -> Self {
        let (count, threads) = (launch.blocks_in_cluster() as usize, launch.threads_in_block() as usize);
        Self { count, threads, pitch: launch.pitch() as usize, stride: shared.max(1).next_multiple_of(ALIGN) }
    }

    /// How many numbers there are.
    pub(super) fn numbers(&self) -> usize {
        self.count * self.pitch
    }

    /// Whether a number is that of a thread.
    pub(super) fn has(&self, thread: usize) -> bool {
        thread < self.numbers() && self.within(thread) < self.threads
    }

    /// Bytes of shared memory of all blocks, where each has so many.
    pub(super) fn shared(&self, of_each: usize) -> usize {
        (self.count - 1) * self.stride + of_each
    }

    pub(super) fn are_several(&self) -> bool {
        self.count > 1
    }

    /// From the number of a block's first thread to that of the next one's, if there is a next one.
    pub(super) fn several(&self) -> Option<usize> {
        self.are_several().then_some(self.pitch)
    }

    /// The number of a thread's block.
    #[inline]
    pub(super) fn rank(&self, thread: usize) -> usize {
        if self.count == 1 { 0 } else { thread / self.pitch }
    }

    /// The number of a thread in its block.
    pub(super) fn within(&self, thread: usize) -> usize {
        thread - self.rank(thread) * self.pitch
    }

    /// All threads of a block.
    pub(super) fn threads_of(&self, rank: usize) -> Range<usize> {
        let first = rank * self.pitch;
        first..first + self.threads
    }

    /// Where the shared memory of a block begins.
    pub(super) fn begin(&self, rank: usize) -> usize {
        rank * self.stride
    }

    /// The block whose shared memory has this place, and the offset there.
    pub(super) fn owner(&self, at: usize) -> (usize, usize) {
        if self.count == 1 { (0, at) } else { (at / self.stride, at % self.stride) }
    }

    /// Where an address of the space lies for a thread, among the shared memory of all blocks. What is in no block has bits above the lower 32.
    #[inline]
    pub(super) fn place(&self, thread: usize, address: u64) -> u64 {
        if self.count == 1 { address } else { self.place_in_cluster(thread, address) }
    }

    fn place_in_cluster(&self, thread: usize, address: u64) -> u64 {
        let rank = match address >> OFFSET {
            0 => self.rank(thread),
            name => usize::try_from(name - 1).unwrap_or(usize::MAX),
        };
        let offset = (address & ((1 << OFFSET) - 1)) as usize;
        match rank < self.count && offset < self.stride {
            true => (rank * self.stride + offset) as u64,
            false => address | 1 << 32,
        }
    }

    /// `getctarank`: the block in whose shared memory an address of a thread lies.
    pub(super) fn rank_of(&self, thread: usize, address: u64) -> u64 {
        match (address & 0xffff_ffff) >> OFFSET {
            0 => self.rank(thread) as u64,
            name => name - 1,
        }
    }
}

impl Block {
    /// `mapa`: the address by which all threads of the cluster reach what lies at a thread's address, in the block of that rank.
    pub(super) fn in_cluster(&self, index: usize, address: u64, rank: u64, place: Place) -> Result<u64, Halt> {
        let (rank, count) = (u64::from(rank as u32), self.blocks.count as u64);
        if rank >= count {
            let message = match count {
                1 => format!("block {rank} of the cluster, which has one block"),
                _ => format!("block {rank} of the cluster, which has {count} blocks, from 0 on"),
            };
            return Err(self.fault(FaultKind::InvalidOperand, index, place, message));
        }
        let offset = (1 << OFFSET) - 1;
        let name = if self.blocks.are_several() { (rank + 1) << OFFSET } else { 0 };
        Ok(address & !(0xffff_ffff & !offset) | name)
    }
}
