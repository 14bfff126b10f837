//! [`Span`]: bytes of an allocation, as operations carry them.

use std::fmt;

/// Names an allocation: the same number on every PE for symmetric memory, a private number for external memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AllocId(pub u32);

impl AllocId {
    const EXTERNAL: u32 = 1 << 31;

    /// The `n`-th external allocation of a PE.
    pub const fn new_external(n: u32) -> AllocId {
        AllocId(n | Self::EXTERNAL)
    }

    /// The private number, if this is external memory that is not registered symmetrically.
    pub const fn external(self) -> Option<u32> {
        if self.0 & Self::EXTERNAL != 0 { Some(self.0 & !Self::EXTERNAL) } else { None }
    }
}

/// Bytes of one allocation: what operations carry instead of pointers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span {
    /// The allocation.
    pub alloc: AllocId,
    /// First byte, from the start of the allocation.
    pub start: usize,
    /// Number of bytes.
    pub len: usize,
}

impl Span {
    /// Whether both spans share a byte (on the same PE). An empty span shares none.
    #[inline]
    pub fn overlaps(&self, other: &Span) -> bool {
        self.alloc == other.alloc && self.start.max(other.start) < (self.start + self.len).min(other.start + other.len)
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}+{}..{}", self.alloc, self.start, self.start + self.len)
    }
}

impl fmt::Display for AllocId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.external() {
            Some(n) => write!(f, "ext{n}"),
            None => write!(f, "buf{}", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlap_needs_the_same_allocation_and_a_shared_byte() {
        let span = |alloc, start, len| Span { alloc: AllocId(alloc), start, len };
        assert!(span(1, 0, 8).overlaps(&span(1, 7, 1)));
        assert!(!span(1, 0, 8).overlaps(&span(1, 8, 1)));
        assert!(!span(1, 0, 8).overlaps(&span(2, 0, 8)));
        assert!(!span(1, 0, 8).overlaps(&span(1, 4, 0)), "an empty span overlaps nothing");
    }
}
