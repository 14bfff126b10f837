//! [`Heap`]: where the library's heap is known to have room, from the addresses that it has given out.
//!
//! The library takes from its heap in `init`, and not for teams or anything else later (`MEASURED.md`): what lies above the
//! first allocation is given out by [`Memory`](crate::memory::Memory) or free.

use std::collections::BTreeMap;

/// What the library may put around an allocation, generously: a header, and what aligns to 512 bytes.
const AROUND: u64 = 1024;

/// What the heap holds and has held. The same on all PEs, but for the address at which it begins.
#[derive(Debug, Default)]
pub(crate) struct Heap {
    /// First byte and end of what is in use.
    live: BTreeMap<u64, u64>,
    /// The same of what was freed, and has not been used again: it can hold what is no larger.
    freed: BTreeMap<u64, u64>,
    /// As far as the heap has memory of the GPU, from its highest allocation on.
    end: u64,
}

impl Heap {
    /// Whether the heap is known to have `bytes` in one piece, at a multiple of `align`.
    pub(crate) fn fits(&self, bytes: usize, align: usize) -> bool {
        let (bytes, align) = (bytes as u64, align as u64);
        let as_before = |(start, end): (&u64, &u64)| end - start >= bytes && start.is_multiple_of(align);
        if self.freed.iter().any(as_before) {
            return true;
        }
        let Some(needed) = bytes.checked_add(align.saturating_add(AROUND)) else { return false };
        let above = self.live.keys().skip(1).copied().chain([self.end]);
        self.live.values().zip(above).any(|(end, next)| next.saturating_sub(*end) >= needed)
    }

    /// Notes an allocation, and as far as there is memory from there on.
    pub(crate) fn took(&mut self, start: u64, bytes: usize, mapped: u64) {
        let end = start + bytes as u64;
        self.freed.retain(|other, other_end| *other_end <= start || *other >= end);
        self.live.insert(start, end);
        self.end = self.end.max(mapped).max(end);
    }

    /// Notes its end.
    pub(crate) fn gave_back(&mut self, start: u64) {
        if let Some(end) = self.live.remove(&start) {
            self.freed.insert(start, end);
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
            heap.took(0x10_0000 + block * 0x4000, 16 * KIB, 0x11_0000);
        }
        heap.gave_back(0x10_4000);
        heap
    }

    #[test]
    fn an_empty_heap_is_not_known() {
        assert!(!Heap::default().fits(1, 1));
    }

    #[test]
    fn what_is_above_the_last_allocation_is_free() {
        let mut heap = Heap::default();
        heap.took(0x10_0000, 16 * KIB, 0x11_0000);
        assert!(heap.fits(46 * KIB, 512) && !heap.fits(48 * KIB, 512), "48 KiB are left, for what is around too");
        heap.took(0x10_4000, 46 * KIB, 0x11_0000);
        assert!(!heap.fits(KIB, 512));
    }

    #[test]
    fn what_was_freed_can_hold_as_much_again() {
        let heap = heap();
        assert!(heap.fits(16 * KIB, 512) && heap.fits(16 * KIB, 0x4000));
        assert!(!heap.fits(16 * KIB, 0x8000), "it lies at no multiple of 32 KiB");
        assert!(!heap.fits(16 * KIB + 1, 512));
    }

    #[test]
    fn what_is_used_again_is_no_longer_free() {
        let mut heap = heap();
        heap.took(0x10_4000, 8 * KIB, 0x11_0000);
        assert!(heap.fits(6 * KIB, 512) && !heap.fits(15 * KIB + 1, 512));
    }

    #[test]
    fn neighbours_that_were_freed_are_one_piece() {
        let mut heap = heap();
        heap.gave_back(0x10_8000);
        assert!(heap.fits(46 * KIB, 512), "from 16 KiB to the end");
        assert!(!heap.fits(48 * KIB, 512));
    }

    #[test]
    fn what_no_number_can_say_does_not_fit() {
        assert!(!heap().fits(usize::MAX, 512));
        assert!(!heap().fits(1, usize::MAX));
    }
}
