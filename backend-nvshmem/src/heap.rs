//! [`Heap`]: where the library's heap has room, derived from the addresses that it has given out.
//!
//! The library takes memory from its heap in `init`, and nothing later, not even for teams (`MEASURED.md`). The first block that
//! it gives out afterwards is too large for any hole between its own. So all memory above that block is given out or free.

use std::collections::BTreeMap;

/// What the library may put around an allocation, at most: a header, and padding to 512 bytes.
const AROUND: u64 = 1024;

/// What the heap holds and has held. It is the same on all PEs, apart from the address at which the heap begins.
#[derive(Debug, Default)]
pub(crate) struct Heap {
    /// The allocations in use, by their first byte.
    live: BTreeMap<u64, Block>,
    /// First byte and end of each block that was freed and has not been used again.
    freed: BTreeMap<u64, u64>,
    /// The end of the GPU memory that is mapped behind the highest allocation.
    end: u64,
}

/// An allocation.
#[derive(Clone, Copy, Debug)]
struct Block {
    end: u64,
    /// The end of what the library may keep behind the allocation.
    kept: u64,
}

impl Heap {
    /// Whether the heap has `bytes` in one piece, as far as is known. With an alignment, the library looks for a piece that is
    /// larger by the alignment, in which it can move the block.
    pub(crate) fn fits(&self, bytes: usize, align: Option<usize>) -> bool {
        let bytes = bytes as u64;
        if align.is_none() && self.freed.iter().any(|(start, end)| end - start >= bytes) {
            return true;
        }
        let more = (align.unwrap_or(0) as u64).saturating_add(AROUND);
        let Some(needed) = bytes.checked_add(more) else { return false };
        let above = self.live.keys().skip(1).copied().chain([self.end]);
        self.live.values().zip(above).any(|(block, next)| next.saturating_sub(block.kept) >= needed)
    }

    /// Notes an allocation, and where the memory that is mapped there ends.
    pub(crate) fn took(&mut self, start: u64, bytes: usize, align: Option<usize>, mapped: u64) {
        let end = start + bytes as u64;
        // The library looks for more than an aligned block needs. The rest stays with the block, behind it.
        let kept = end.saturating_add(align.unwrap_or(0) as u64);
        self.freed.retain(|other, other_end| *other_end <= start || *other >= kept);
        self.live.insert(start, Block { end, kept });
        self.end = self.end.max(mapped).max(end);
    }

    /// Notes that an allocation was freed.
    pub(crate) fn gave_back(&mut self, start: u64) {
        if let Some(block) = self.live.remove(&start) {
            self.freed.insert(start, block.end);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIB: usize = 1024;

    /// A heap of 64 KiB at 0x10_0000, of which the first 16 KiB and the third are in use.
    fn heap() -> Heap {
        let mut heap = Heap::default();
        for block in 0..3 {
            heap.took(0x10_0000 + block * 0x4000, 16 * KIB, None, 0x11_0000);
        }
        heap.gave_back(0x10_4000);
        heap
    }

    #[test]
    fn an_empty_heap_is_not_known() {
        assert!(!Heap::default().fits(1, None));
    }

    #[test]
    fn what_is_above_the_last_allocation_is_free() {
        let mut heap = Heap::default();
        heap.took(0x10_0000, 16 * KIB, None, 0x11_0000);
        assert!(heap.fits(46 * KIB, None) && !heap.fits(48 * KIB, None), "48 KiB are left, for what is around too");
        heap.took(0x10_4000, 46 * KIB, None, 0x11_0000);
        assert!(!heap.fits(KIB + 1, None));
    }

    #[test]
    fn what_was_freed_can_hold_as_much_again() {
        let heap = heap();
        assert!(heap.fits(16 * KIB, None) && !heap.fits(16 * KIB + 1, None));
    }

    #[test]
    fn what_is_used_again_is_no_longer_free() {
        let mut heap = heap();
        heap.took(0x10_4000, 8 * KIB, None, 0x11_0000);
        assert!(heap.fits(7 * KIB, None) && !heap.fits(15 * KIB + 1, None));
    }

    #[test]
    fn neighbours_that_were_freed_are_one_piece() {
        let mut heap = heap();
        heap.gave_back(0x10_8000);
        assert!(heap.fits(46 * KIB, None), "from 16 KiB to the end");
        assert!(!heap.fits(48 * KIB, None));
    }

    /// The library asks for a block with as much more as the alignment, and keeps what is behind the part that it gives.
    #[test]
    fn an_alignment_needs_as_much_more_and_keeps_it() {
        let mut heap = Heap::default();
        heap.took(0x10_0000, 16 * KIB, None, 0x11_0000);
        assert!(heap.fits(30 * KIB, Some(16 * KIB)) && !heap.fits(32 * KIB, Some(16 * KIB)));
        heap.took(0x10_8000, 8 * KIB, Some(16 * KIB), 0x11_0000);
        assert!(!heap.fits(16 * KIB, None), "8 KiB above it may be kept, and 16 KiB below it are less than that");
        heap.gave_back(0x10_8000);
        assert!(heap.fits(46 * KIB, None) && !heap.fits(46 * KIB, Some(4 * KIB)));
    }

    #[test]
    fn what_no_number_can_say_does_not_fit() {
        assert!(!heap().fits(usize::MAX, None));
        assert!(!heap().fits(1, Some(usize::MAX)));
    }
}
