//! [`Unclaimed`]: the PEs to which nbi operations are outstanding that no quiet has claimed.
//!
//! Where loads and stores reach a PE, the library runs nbi operations on streams of its own. A quiet, flush or barrier on a stream
//! waits for those of them that are marked as busy when it is *called*, and marks them as idle: it claims their work. A later
//! quiet on another stream does not wait for them, even if the first stream has not yet reached its own quiet
//! (`claim-…` in `MEASURED.md`).
//!
//! NVSHMEM has no fence on streams, so a fence is composed as a quiet. But a fence must not take anything away from a later
//! quiet. So the fence is followed by a put of no bytes to each of these PEs, which marks the library's stream as busy again.
#![allow(unsafe_code)]

use std::cell::Cell;
use std::ffi::c_void;

use onesided::{At, Backend, Result};

use crate::pe::Nvshmem;
use crate::table::function;

#[derive(Debug)]
pub(crate) struct Unclaimed {
    /// Whether there is any such PE.
    any: Cell<bool>,
    pes: Box<[Cell<bool>]>,
}

impl Unclaimed {
    pub(crate) fn new(n_pes: usize) -> Unclaimed {
        Unclaimed { any: Cell::new(false), pes: vec![Cell::new(false); n_pes].into() }
    }

    /// Notes an nbi operation to a PE.
    #[inline]
    pub(crate) fn add(&self, pe: usize) {
        self.any.set(true);
        self.pes[pe].set(true);
    }

    /// Notes that everything was claimed.
    #[inline]
    pub(crate) fn clear(&self) {
        if self.any.replace(false) {
            self.pes.iter().for_each(|pe| pe.set(false));
        }
    }

    /// These PEs.
    pub(crate) fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        let any = self.any.get();
        self.pes.iter().enumerate().filter(move |(_, is)| any && is.get()).map(|(pe, _)| pe)
    }
}

impl Nvshmem {
    /// Gives back what the quiet of a composed fence has claimed.
    pub(crate) fn unclaim(&self, call: &'static str, at: At) -> Result<()> {
        let word = self.memory.room.first() as *mut c_void;
        for pe in self.unclaimed.iter().filter(|pe| self.reaches(*pe)) {
            let put = function!(self.table, nvshmem_putmem_nbi, call, at);
            // SAFETY: an address of the symmetric heap, from which and to which nothing is copied, and a PE that exists.
            unsafe { put(word, word, 0, pe as i32) };
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_outstanding_is_known_until_it_is_claimed() {
        let unclaimed = Unclaimed::new(4);
        assert_eq!(unclaimed.iter().count(), 0);
        for pe in [2, 0, 2] {
            unclaimed.add(pe);
        }
        assert_eq!(unclaimed.iter().collect::<Vec<_>>(), [0, 2]);
        unclaimed.clear();
        unclaimed.add(3);
        assert_eq!(unclaimed.iter().collect::<Vec<_>>(), [3]);
    }
}
