//! Addresses that kernels see: numbers that say PE, allocation and offset, so that pointer arithmetic works within an allocation,
//! leads to no other one, and means the same in every run.
//!
//! | bits | symmetric memory | memory of one PE |
//! |---|---|---|
//! | 55, 54 | 1, 0 | 0, 1 |
//! | 45 to 53 | PE | PE |
//! | 33 to 44 | allocation | allocation |
//! | 0 to 32 | offset, and 1 GiB more | offset, and 1 GiB more |
//!
//! So an address before an allocation, as of an element -1, is one of that allocation still, and an error says so.
//!
//! A multicast address has 1, 1 in bits 55 and 54, and no PE.

use onesided::backend::{AllocId, Span};
use onesided::count;

use crate::machine::Machine;
use crate::machine::ids::{Id as _, PeId};

const SYMMETRIC: u64 = 1 << 55;
const PRIVATE: u64 = 1 << 54;
const PE: u32 = 45;
const ALLOC: u32 = 33;
/// Most PEs, allocations and bytes of one that addresses have room for.
const PES: u64 = 1 << (54 - PE);
const ALLOCS: u64 = 1 << (PE - ALLOC);
const BYTES: usize = (1 << ALLOC) - BEFORE as usize;
/// The bytes before an allocation of which addresses say whose they are.
const BEFORE: u64 = 1 << 30;

/// What an address means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Spot {
    pub(super) pe: PeId,
    pub(super) alloc: AllocId,
    pub(super) offset: usize,
}

/// Splits an address, if it has the form of one, and does not lie before its allocation.
#[inline]
pub(super) fn split(address: u64) -> Option<Spot> {
    split_signed(address).filter(|(_, before)| *before == 0).map(|(spot, _)| spot)
}

/// The same, and how many bytes it lies before its allocation. The offset is 0 there.
#[inline]
fn split_signed(address: u64) -> Option<(Spot, u64)> {
    let pe = PeId((address >> PE) as u32 & (PES as u32 - 1));
    let number = (address >> ALLOC) as u32 & (ALLOCS as u32 - 1);
    let within = address & ((1 << ALLOC) - 1);
    let (offset, before) = (within.saturating_sub(BEFORE) as usize, BEFORE.saturating_sub(within));
    match address >> 54 {
        0b10 => Some((Spot { pe, alloc: AllocId(number), offset }, before)),
        0b01 => Some((Spot { pe, alloc: AllocId::new_external(number), offset }, before)),
        _ => None,
    }
}

/// Where an address lies in its allocation. Before that, it is a number so large that nothing lies there.
#[inline]
pub(super) fn offset(address: u64) -> usize {
    (address & ((1 << ALLOC) - 1)).wrapping_sub(BEFORE) as usize
}

/// Whether bytes from an [`offset`] on lie within an allocation of so many.
#[inline]
pub(super) fn is_within(offset: usize, bytes: usize, len: usize) -> bool {
    offset.checked_add(bytes).is_some_and(|end| end <= len)
}

/// Whether two addresses lie in the same allocation of the same PE, as far as numbers tell.
#[inline]
pub(super) fn same_allocation(one: u64, other: u64) -> bool {
    one >> ALLOC == other >> ALLOC
}

/// The address of a PE's memory.
///
/// # Errors
/// If addresses have no room for it.
pub(super) fn join(pe: PeId, alloc: AllocId, offset: usize) -> Result<u64, String> {
    let (window, number) = match alloc.external() {
        Some(number) => (PRIVATE, number),
        None => (SYMMETRIC, alloc.0),
    };
    if u64::from(pe.0) >= PES || u64::from(number) >= ALLOCS || offset >= BYTES {
        return Err(format!(
            "kernels have addresses for {PES} PEs, {ALLOCS} allocations of each kind and {BYTES} bytes of each; this is \
             {alloc} + {offset} on PE {}",
            pe.index()
        ));
    }
    Ok(window | u64::from(pe.0) << PE | u64::from(number) << ALLOC | (offset as u64 + BEFORE))
}

/// The multicast address of symmetric memory, by the address of a PE's own.
pub(super) fn multicast(address: u64) -> u64 {
    let within = (1 << PE) - 1;
    SYMMETRIC | PRIVATE | address & within
}

/// The address of a PE's copy, if an address is a multicast one.
fn copy(address: u64, pe: PeId) -> Option<u64> {
    let is_multicast = address >> 54 == 0b11;
    is_multicast.then(|| address & !PRIVATE | u64::from(pe.0) << PE)
}

/// The memory at an address that a kernel has read, by itself or by a call: a call reaches every PE.
pub(super) fn place(address: u64, bytes: usize) -> Option<(PeId, Span)> {
    let Spot { pe, alloc, offset } = split(address)?;
    Some((pe, Span { alloc, start: offset, len: bytes }))
}

impl Machine {
    /// What lies at an address of `me`, for so many bytes.
    ///
    /// # Errors
    /// Why nothing of `me`'s lies there, in words.
    pub(super) fn at_address(&self, me: PeId, address: u64, bytes: usize) -> Result<(PeId, Span), String> {
        self.find_address(me, address, bytes).ok_or_else(|| self.why_not_at_address(me, address, bytes))
    }

    /// The same, without the reason.
    #[inline]
    pub(super) fn find_address(&self, me: PeId, address: u64, bytes: usize) -> Option<(PeId, Span)> {
        let Spot { pe, alloc, offset } = split(address)?;
        if pe != me && (alloc.external().is_some() || !self.is_near(me, pe)) {
            return None;
        }
        let len = self.heap.len(pe, alloc)?;
        is_within(offset, bytes, len).then_some((pe, Span { alloc, start: offset, len: bytes }))
    }

    /// The addresses of all PEs' copies of what lies at a multicast address, for so many bytes.
    ///
    /// # Errors
    /// If it is none, or nothing lies there.
    pub(super) fn copies(&self, me: PeId, address: u64, bytes: usize) -> Result<Vec<u64>, String> {
        let copies: Option<Vec<u64>> = self.pes.ids().map(|pe| copy(address, pe)).collect();
        let Some(copies) = copies else {
            return Err(format!("{address:#x} is no multicast address, as nvshmemx_mc_ptr gives it"));
        };
        match copies.iter().find(|copy| self.find_address(me, **copy, bytes).is_none()) {
            Some(&copy) => Err(self.why_not_at_address(me, copy, bytes)),
            None => Ok(copies),
        }
    }

    /// The multicast address of a PE's memory, or null where loads and stores do not reach all PEs, and for memory that not all of them have.
    pub(super) fn multicast_pointer(&self, me: PeId, members: usize, address: u64) -> u64 {
        let is_symmetric = split(address).is_some_and(|spot| spot.pe == me && spot.alloc.external().is_none());
        let reaches_all = members == self.pes.len() && self.pes.ids().all(|pe| self.is_near(me, pe));
        let can = self.config.capabilities.multicast.is_available();
        if is_symmetric && reaches_all && can { multicast(address) } else { 0 }
    }

    /// Why nothing of `me`'s lies at an address, in words.
    #[cold]
    pub(super) fn why_not_at_address(&self, me: PeId, address: u64, bytes: usize) -> String {
        let Some((Spot { pe, alloc, offset }, before)) = split_signed(address) else {
            return match address {
                0..4096 if self.pes.ids().any(|pe| !self.is_near(me, pe)) => {
                    format!(
                        "{address:#x} is a null pointer, or near to one; nvshmem_ptr returns null for a PE that is not reached by loads and stores"
                    )
                }
                0..4096 => format!("{address:#x} is a null pointer, or near to one"),
                _ if copy(address, me).is_some() => {
                    format!("{address:#x} is a multicast address, which only multimem instructions access")
                }
                _ => format!("{address:#x} is no address of global memory that this PE was given"),
            };
        };
        let len = match alloc.external() {
            Some(_) if pe != me => return format!("{alloc} is memory of PE {} alone", pe.index()),
            _ => self.heap.len(pe, alloc),
        };
        let Some(len) = len else {
            return format!("{alloc} is not there: it was freed, or never made{}", self.made(alloc));
        };
        if pe != me && !self.is_near(me, pe) {
            return format!(
                "{alloc} on PE {} cannot be loaded or stored from here: nvshmem_ptr returns null",
                pe.index()
            );
        }
        let bytes = count(bytes, "byte");
        match before {
            0 => format!("{bytes} at offset {offset} of {alloc}, which has {len}{}", self.made(alloc)),
            _ => format!("{bytes}, {before} before {alloc}, which has {len}{}", self.made(alloc)),
        }
    }

    /// What memory an address is of, for a message.
    pub(super) fn memory_at(&self, address: u64) -> Option<String> {
        let Spot { pe, alloc, offset } = split(address)?;
        self.heap.len(pe, alloc)?;
        Some(format!("; it is offset {offset} of {alloc}{}", self.made(alloc)))
    }

    /// The line that made it, for a message.
    fn made(&self, alloc: AllocId) -> String {
        self.heap.made_at(alloc).map(|at| format!(" (made at {at})")).unwrap_or_default()
    }

    /// Whether loads and stores of a PE reach another's memory.
    pub(super) fn is_near(&self, me: PeId, pe: PeId) -> bool {
        let per_node = self.config.pes_per_node();
        self.config.capabilities.peer_access.is_available() && pe.index() / per_node == me.index() / per_node
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_split_as_they_were_joined() {
        for (pe, alloc, offset) in [
            (0, AllocId(0), 0),
            (3, AllocId(17), 4096),
            (511, AllocId(4095), BYTES - 1),
            (2, AllocId::new_external(5), 8),
        ] {
            let address = join(PeId(pe), alloc, offset).unwrap();
            assert_eq!(split(address), Some(Spot { pe: PeId(pe), alloc, offset }));
            assert!(address < 1 << 56, "the interpreter's windows lie above");
        }
        assert!(join(PeId(512), AllocId(0), 0).is_err());
        assert!(join(PeId(0), AllocId(4096), 0).is_err());
        assert_eq!(split(8), None);
        let begin = join(PeId(3), AllocId(17), 0).unwrap();
        assert_eq!(split(begin - 1), None);
        assert!(
            same_allocation(begin - BEFORE, begin + BYTES as u64 - 1) && !same_allocation(begin - BEFORE - 1, begin)
        );
        assert!(is_within(offset(begin), 4, 4) && !is_within(offset(begin - 4), 4, 4));
        assert_eq!(split(3 << 54), None);
    }
}
