//! Symmetric heaps: where allocations lie, and their bytes on every PE.
//!
//! One allocation is one slab that holds every PE's part. An address is (allocation, PE, offset). [`Places`] models the limits
//! of a real heap (capacity, alignment, fragmentation) without holding memory.

use std::collections::BTreeMap;

use onesided::backend::{AllocId, Layout, Span};
use onesided::{At, count};

use crate::machine::{Id as _, PeId};

/// What fresh memory holds unless it was asked for zeroed: recognizable, and never mistaken for a result.
const POISON: u8 = 0xA5;

/// The library's granule: every allocation starts at a multiple of it.
const GRANULE: usize = 512;

/// All memory of all PEs.
#[derive(Debug, Default)]
pub(crate) struct Heap {
    symmetric: Vec<Option<Slab>>,
    /// The lines that made them, and whether each was zeroed.
    made: Vec<(At, bool)>,
    external: BTreeMap<(PeId, u32), External>,
    next_external: BTreeMap<PeId, u32>,
    /// Registrations of which parts are missing.
    incomplete: usize,
    places: Places,
    retired: Vec<Vec<u8>>,
    n_pes: usize,
    /// Bytes that all PEs' slabs together may still take.
    left: usize,
}

/// One symmetric allocation.
#[derive(Debug)]
struct Slab {
    bytes: usize,
    memory: Vec<u8>,
    place: Place,
}

/// Where a slab comes from: a block of the heap, or each PE's registered external memory.
#[derive(Debug)]
enum Place {
    Block {
        offset: usize,
    },
    Registered {
        externals: Vec<u32>,
        /// PEs that have not registered their part yet.
        missing: usize,
    },
}

/// One PE's memory outside the heap.
#[derive(Debug)]
struct External {
    memory: Vec<u8>,
}

impl Heap {
    /// Empties everything for a new run.
    pub(crate) fn reset(&mut self, n_pes: usize, capacity: usize, memory: usize) {
        for slab in self.symmetric.drain(..).flatten() {
            retire(&mut self.retired, slab.memory);
        }
        self.made.clear();
        self.external.clear();
        self.next_external.clear();
        self.incomplete = 0;
        self.places.reset(capacity);
        self.n_pes = n_pes;
        self.left = memory;
    }

    /// A new symmetric allocation, or why there is no room for it.
    pub(crate) fn alloc(&mut self, layout: Layout, at: At) -> Result<AllocId, String> {
        let align = layout.align.unwrap_or(GRANULE).max(GRANULE);
        let total = layout.bytes.checked_mul(self.n_pes).filter(|&total| total <= self.left).ok_or_else(|| {
            let (pes, bytes) = (count(self.n_pes, "PE"), count(layout.bytes, "byte"));
            let left = count(self.left, "byte");
            format!("{pes} x {bytes} is more memory than the simulation may still take ({left}; Config::memory)")
        })?;
        let offset = self.places.take(layout.bytes, align).ok_or_else(|| {
            let (bytes, largest) = (count(layout.bytes, "byte"), self.places.largest());
            format!(
                "there is no room for {bytes} in the symmetric heap, whose largest free block has {largest} (Config::heap)"
            )
        })?;
        self.left -= total;
        let memory = fresh(&mut self.retired, total, layout.zeroed);
        let slab = Slab { bytes: layout.bytes, memory, place: Place::Block { offset } };
        Ok(self.insert(slab, at, layout.zeroed))
    }

    fn insert(&mut self, slab: Slab, at: At, zeroed: bool) -> AllocId {
        self.made.push((at, zeroed));
        self.symmetric.push(Some(slab));
        AllocId(self.symmetric.len() as u32 - 1)
    }

    /// Frees a symmetric allocation.
    pub(crate) fn free(&mut self, alloc: AllocId) {
        let slab = self.symmetric[alloc.0 as usize].take().expect("handles are freed once");
        if let Place::Block { offset } = slab.place {
            self.places.give_back(offset, slab.bytes);
            self.left += slab.memory.len();
        }
        retire(&mut self.retired, slab.memory);
    }

    /// A new external allocation of `pe`, zeroed, or why there is no room for it.
    pub(crate) fn alloc_external(&mut self, pe: PeId, bytes: usize) -> Result<AllocId, String> {
        self.left = self.left.checked_sub(bytes).ok_or_else(|| {
            let [bytes, left] = [bytes, self.left].map(|bytes| count(bytes, "byte"));
            format!("{bytes} is more memory than the simulation may still take ({left}; Config::memory)")
        })?;
        let next = self.next_external.entry(pe).or_default();
        let number = *next;
        *next += 1;
        self.external.insert((pe, number), External { memory: vec![0; bytes] });
        Ok(AllocId::new_external(number))
    }

    /// Frees one.
    pub(crate) fn free_external(&mut self, pe: PeId, alloc: AllocId) {
        if let Some(external) = self.external.remove(&(pe, external_number(alloc))) {
            self.left += external.memory.len();
        }
    }

    /// Size of an external allocation.
    pub(crate) fn external_len(&self, pe: PeId, alloc: AllocId) -> usize {
        self.external[&(pe, external_number(alloc))].memory.len()
    }

    /// A symmetric allocation for external memory of so many bytes on each PE, which each PE brings in.
    pub(crate) fn begin_registration(&mut self, bytes: usize, at: At) -> AllocId {
        let memory = vec![0; bytes * self.n_pes];
        let place = Place::Registered { externals: vec![u32::MAX; self.n_pes], missing: self.n_pes };
        self.incomplete += 1;
        self.insert(Slab { bytes, memory, place }, at, true) // external memory is
    }

    /// Moves a PE's external memory into it; whether that was the last part.
    pub(crate) fn register_part(&mut self, alloc: AllocId, pe: PeId, part: AllocId) -> bool {
        let slab = self.symmetric[alloc.0 as usize].as_mut().expect("the registration has begun");
        let Place::Registered { externals, missing } = &mut slab.place else {
            unreachable!("only registrations have parts")
        };
        let number = external_number(part);
        externals[pe.index()] = number;
        *missing -= 1;
        let complete = *missing == 0;
        let start = pe.index() * slab.bytes;
        let external = self.external.get_mut(&(pe, number)).expect("registered memory is not freed");
        slab.memory[start..start + slab.bytes].copy_from_slice(&std::mem::take(&mut external.memory));
        self.incomplete -= usize::from(complete);
        complete
    }

    /// Whether parts of a registration are missing.
    #[inline]
    pub(crate) fn is_incomplete(&self, alloc: AllocId) -> bool {
        self.incomplete > 0 && self.misses_parts(alloc)
    }

    fn misses_parts(&self, alloc: AllocId) -> bool {
        let slab = self.symmetric.get(alloc.0 as usize).and_then(Option::as_ref);
        slab.is_some_and(|slab| matches!(slab.place, Place::Registered { missing, .. } if missing > 0))
    }

    /// Moves the content back and ends the symmetric allocation.
    pub(crate) fn unregister(&mut self, alloc: AllocId) {
        let slab = self.symmetric[alloc.0 as usize].take().expect("registrations are ended once");
        let Place::Registered { externals, .. } = slab.place else {
            unreachable!("only registrations are unregistered")
        };
        for (pe, (number, part)) in externals.iter().zip(slab.memory.chunks_exact(slab.bytes)).enumerate() {
            if let Some(external) = self.external.get_mut(&(PeId::new(pe), *number)) {
                external.memory = part.to_vec();
            }
        }
    }

    /// Bytes of an allocation of `pe`, if it is there.
    pub(crate) fn len(&self, pe: PeId, alloc: AllocId) -> Option<usize> {
        match alloc.external() {
            Some(number) => self.external.get(&(pe, number)).map(|external| external.memory.len()),
            None => self.symmetric.get(alloc.0 as usize)?.as_ref().map(|slab| slab.bytes),
        }
    }

    /// The line that made a symmetric allocation, which may be freed by now.
    pub(crate) fn made_at(&self, alloc: AllocId) -> Option<At> {
        self.made.get(alloc.0 as usize).map(|(at, _)| *at)
    }

    /// The same, and whether bytes that nobody has written are zero.
    pub(crate) fn made(&self, alloc: AllocId) -> (Option<At>, bool) {
        self.made.get(alloc.0 as usize).map_or((None, true), |(at, zeroed)| (Some(*at), *zeroed))
    }

    /// The bytes of `span` on `pe`.
    #[inline(always)] // the hottest line of the simulator
    pub(crate) fn bytes(&self, pe: PeId, span: Span) -> &[u8] {
        match self.symmetric.get(span.alloc.0 as usize) {
            Some(Some(slab)) => {
                let start = slab.place_of(pe, span);
                &slab.memory[start..start + span.len]
            }
            _ => self.external_bytes(pe, span),
        }
    }

    /// The bytes of `span` on `pe`, to be written.
    #[inline(always)] // likewise
    pub(crate) fn bytes_mut(&mut self, pe: PeId, span: Span) -> &mut [u8] {
        match self.symmetric.get_mut(span.alloc.0 as usize) {
            Some(Some(slab)) => {
                let start = slab.place_of(pe, span);
                &mut slab.memory[start..start + span.len]
            }
            _ => {
                let external = self.external.get_mut(&(pe, external_number(span.alloc)));
                let external = external.expect("freed memory is never accessed");
                &mut external.memory[span.start..span.start + span.len]
            }
        }
    }

    #[cold]
    fn external_bytes(&self, pe: PeId, span: Span) -> &[u8] {
        let external = self.external.get(&(pe, external_number(span.alloc))).expect("freed memory is never accessed");
        &external.memory[span.start..span.start + span.len]
    }

    /// Copies `src` on `src_pe` to `dst` on `dst_pe`, once, whatever they are.
    #[inline(always)] // likewise
    pub(crate) fn copy(&mut self, dst_pe: PeId, dst: Span, src_pe: PeId, src: Span) {
        debug_assert_eq!(dst.len, src.len);
        if dst.len == 8 {
            let value = self.load(src_pe, src);
            return self.store(dst_pe, dst, value);
        }
        self.copy_bytes(dst_pe, dst, src_pe, src);
    }

    #[inline(never)]
    fn copy_bytes(&mut self, dst_pe: PeId, dst: Span, src_pe: PeId, src: Span) {
        if dst.alloc == src.alloc && dst.alloc.external().is_none() {
            let slab = self.symmetric[dst.alloc.0 as usize].as_mut().expect("freed memory is never accessed");
            let (to, from) = (slab.place_of(dst_pe, dst), slab.place_of(src_pe, src));
            return slab.memory.copy_within(from..from + src.len, to);
        }
        if let (None, None) = (dst.alloc.external(), src.alloc.external()) {
            let pair = self.symmetric.get_disjoint_mut([dst.alloc.0 as usize, src.alloc.0 as usize]);
            if let Ok([Some(to), Some(from)]) = pair {
                let (start, end) = (to.place_of(dst_pe, dst), from.place_of(src_pe, src));
                return to.memory[start..start + dst.len].copy_from_slice(&from.memory[end..end + src.len]);
            }
        }
        let bytes = self.bytes(src_pe, src).to_vec();
        self.bytes_mut(dst_pe, dst).copy_from_slice(&bytes);
    }

    /// An element of at most 8 bytes, zero-extended.
    #[inline(always)] // likewise
    pub(crate) fn load(&self, pe: PeId, span: Span) -> u64 {
        match *self.bytes(pe, span) {
            // a copy whose length is known needs no call
            [a, b, c, d] => u32::from_le_bytes([a, b, c, d]).into(),
            [a, b, c, d, e, f, g, h] => u64::from_le_bytes([a, b, c, d, e, f, g, h]),
            ref bytes => bytes.iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte)),
        }
    }

    /// Stores an element of at most 8 bytes.
    #[inline(always)] // likewise
    pub(crate) fn store(&mut self, pe: PeId, span: Span, value: u64) {
        let new = value.to_le_bytes();
        match self.bytes_mut(pe, span) {
            [a, b, c, d] => [*a, *b, *c, *d] = [new[0], new[1], new[2], new[3]],
            [a, b, c, d, e, f, g, h] => [*a, *b, *c, *d, *e, *f, *g, *h] = new,
            bytes => bytes.copy_from_slice(&new[..bytes.len()]),
        }
    }
}

impl Slab {
    #[inline(always)] // likewise
    fn place_of(&self, pe: PeId, span: Span) -> usize {
        assert!(span.start + span.len <= self.bytes, "{span} lies outside its allocation of {} bytes", self.bytes);
        pe.index() * self.bytes + span.start
    }
}

fn external_number(alloc: AllocId) -> u32 {
    alloc.external().expect("freed memory is never accessed")
}

/// Memory for a new slab, reusing what small slabs of earlier runs left.
fn fresh(retired: &mut Vec<Vec<u8>>, len: usize, zeroed: bool) -> Vec<u8> {
    if len > SMALL {
        // calloc: untouched pages cost nothing, whatever the size
        return if zeroed { vec![0; len] } else { vec![POISON; len] };
    }
    let mut memory = retired.pop().unwrap_or_else(|| Vec::with_capacity(SMALL));
    memory.clear();
    memory.resize(len, if zeroed { 0 } else { POISON });
    memory
}

fn retire(retired: &mut Vec<Vec<u8>>, memory: Vec<u8>) {
    if memory.capacity() == SMALL && retired.len() < 64 {
        retired.push(memory);
    }
}

/// Slabs up to this size are kept for the next run, which saves most of the cost of short schedules.
const SMALL: usize = 4096;

/// Which bytes of the heap are free: first fit, like a heap that all PEs manage alike.
#[derive(Debug, Default)]
struct Places {
    /// Free blocks as start and length, by start.
    free: Vec<(usize, usize)>,
}

impl Places {
    fn reset(&mut self, capacity: usize) {
        self.free.clear();
        self.free.push((0, capacity));
    }

    fn take(&mut self, bytes: usize, align: usize) -> Option<usize> {
        let bytes = bytes.checked_next_multiple_of(GRANULE)?;
        let (index, at) = self.free.iter().enumerate().find_map(|(index, &(start, len))| {
            let at = start.checked_next_multiple_of(align)?;
            (at.checked_add(bytes)? <= start + len).then_some((index, at))
        })?;
        let (start, len) = self.free[index];
        let before = (start, at - start);
        let after = (at + bytes, start + len - at - bytes);
        match (before.1 > 0, after.1 > 0) {
            (false, false) => {
                self.free.remove(index);
            }
            (true, false) => self.free[index] = before,
            (false, true) => self.free[index] = after,
            (true, true) => {
                self.free[index] = before;
                self.free.insert(index + 1, after);
            }
        }
        Some(at)
    }

    fn give_back(&mut self, offset: usize, bytes: usize) {
        let bytes = bytes.next_multiple_of(GRANULE);
        let index = self.free.partition_point(|&(start, _)| start < offset);
        let joins_after = self.free.get(index).is_some_and(|&(start, _)| offset + bytes == start);
        let joins_before = index.checked_sub(1).is_some_and(|i| self.free[i].0 + self.free[i].1 == offset);
        match (joins_before, joins_after) {
            (true, true) => self.free[index - 1].1 += bytes + self.free.remove(index).1,
            (true, false) => self.free[index - 1].1 += bytes,
            (false, true) => self.free[index] = (offset, bytes + self.free[index].1),
            (false, false) => self.free.insert(index, (offset, bytes)),
        }
    }

    fn largest(&self) -> usize {
        self.free.iter().map(|&(_, len)| len).max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heap(n_pes: usize, capacity: usize) -> Heap {
        let mut heap = Heap::default();
        heap.reset(n_pes, capacity, 1 << 30);
        heap
    }

    fn layout(bytes: usize) -> Layout {
        Layout { bytes, align: None, zeroed: true }
    }

    fn span(alloc: AllocId, start: usize, len: usize) -> Span {
        Span { alloc, start, len }
    }

    #[test]
    fn parts_of_different_pes_are_separate() {
        let mut heap = heap(3, 1 << 20);
        let a = heap.alloc(layout(16), At::caller()).unwrap();
        heap.store(PeId(1), span(a, 8, 8), 7);
        assert_eq!([0, 1, 2].map(|pe| heap.load(PeId(pe), span(a, 8, 8))), [0, 7, 0]);
        heap.copy(PeId(2), span(a, 0, 8), PeId(1), span(a, 8, 8));
        assert_eq!(heap.load(PeId(2), span(a, 0, 8)), 7);
    }

    #[test]
    fn copies_between_allocations_and_external_memory() {
        let mut heap = heap(2, 1 << 20);
        let a = heap.alloc(layout(4), At::caller()).unwrap();
        let b = heap.alloc(layout(4), At::caller()).unwrap();
        let e = heap.alloc_external(PeId(1), 4).unwrap();
        heap.store(PeId(0), span(a, 0, 4), 0x0403_0201);
        heap.copy(PeId(1), span(b, 0, 4), PeId(0), span(a, 0, 4));
        heap.copy(PeId(1), span(e, 0, 4), PeId(1), span(b, 0, 4));
        assert_eq!(heap.bytes(PeId(1), span(e, 1, 2)), [2, 3]);
    }

    #[test]
    fn a_full_heap_says_what_is_left_and_recovers() {
        let mut heap = heap(1, 4096);
        let a = heap.alloc(layout(2048), At::caller()).unwrap();
        let full = heap.alloc(layout(4096), At::caller()).unwrap_err();
        assert!(full.contains("largest free block has 2048"), "{full}");
        heap.free(a);
        assert!(heap.alloc(layout(4096), At::caller()).is_ok());
    }

    #[test]
    fn memory_of_all_pes_together_is_limited() {
        let mut heap = heap(1 << 20, 1 << 30);
        let much = heap.alloc(layout(1 << 20), At::caller()).unwrap_err();
        assert!(much.contains("more memory than the simulation may still take"), "{much}");
    }

    #[test]
    fn registration_keeps_the_content_both_ways() {
        let mut heap = heap(2, 4096);
        let parts = [0, 1].map(|pe| heap.alloc_external(PeId(pe), 8).unwrap());
        heap.store(PeId(1), span(parts[1], 0, 8), 11);
        let symmetric = heap.begin_registration(8, At::caller());
        assert!(!heap.register_part(symmetric, PeId(1), parts[1]) && heap.is_incomplete(symmetric));
        assert!(heap.register_part(symmetric, PeId(0), parts[0]) && !heap.is_incomplete(symmetric));
        assert_eq!(heap.load(PeId(1), span(symmetric, 0, 8)), 11);
        heap.store(PeId(0), span(symmetric, 0, 8), 5);
        heap.unregister(symmetric);
        assert_eq!(heap.load(PeId(0), span(parts[0], 0, 8)), 5);
    }

    #[test]
    fn freed_neighbours_join() {
        let mut places = Places::default();
        places.reset(3 * GRANULE);
        let [a, b, c] = [(); 3].map(|()| places.take(1, GRANULE).unwrap());
        assert_eq!(places.take(1, GRANULE), None);
        places.give_back(a, 1);
        places.give_back(c, 1);
        assert_eq!(places.largest(), GRANULE);
        places.give_back(b, 1);
        assert_eq!(places.largest(), 3 * GRANULE);
    }

    #[test]
    fn alignment_is_kept() {
        let mut places = Places::default();
        places.reset(1 << 20);
        places.take(1, GRANULE).unwrap();
        assert_eq!(places.take(1, 4096).unwrap() % 4096, 0);
        assert_eq!(places.take(1, GRANULE), Some(GRANULE), "the gap before an aligned block is used");
    }
}
