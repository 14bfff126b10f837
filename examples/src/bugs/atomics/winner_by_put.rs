//! PEs elect a leader: each puts its number into a word at PE 0, and the last one wins.
//!
//! Each PE that looks at another time may see another winner. A compare-and-swap has one.

use onesided::{Backend, Pe, Result};

use crate::Label;

pub(crate) const LABEL: Label = Label::race(2).on_nvlink_too().seen("MISUSE.md, row 15");

pub(crate) fn buggy(pe: &Pe<impl Backend>) -> Result<()> {
    let leader = pe.alloc_zeroed::<u32>(1)?;
    let me = pe.my_pe() as u32 + 1;
    pe.host().p(&leader, me, 0)?; // bug: first, second
    pe.free(leader)
}

pub(crate) fn fixed(pe: &Pe<impl Backend>) -> Result<()> {
    let leader = pe.alloc_zeroed::<u32>(1)?;
    let me = pe.my_pe() as u32 + 1;
    pe.host().atomic_compare_swap(&leader, 0, me, 0)?;
    pe.free(leader)
}
