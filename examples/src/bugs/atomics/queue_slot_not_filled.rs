//! A queue at PE 0: producers take a slot by adding to its end, then put their item there. PE 0 reads up to the end.
//!
//! The end says which slots are taken, not which are filled. PE 0 reads a slot whose item is still on its way.

use onesided::{Backend, Cmp, Pe, Result, expect_eq};

use crate::Label;

pub(crate) const LABEL: Label = Label::race(3).on_nvlink_too().seen("MISUSE.md, row 16");

pub(crate) fn buggy(pe: &Pe<impl Backend>) -> Result<()> {
    let (items, end) = (pe.alloc_zeroed::<u32>(2)?, pe.alloc_zeroed::<u32>(1)?);
    if pe.my_pe() > 0 {
        let slot = pe.host().atomic_fetch_inc(&end, 0)? as usize;
        pe.host().p(items.at(slot), pe.my_pe() as u32, 0)?; // bug: first
    } else {
        pe.host().wait_until(&end, Cmp::Eq, 2)?;
        expect_eq(pe.read(&items)?.iter().sum(), 3, "the sum of the items")?; // bug: second
    }
    pe.free(end)?;
    pe.free(items)
}

pub(crate) fn fixed(pe: &Pe<impl Backend>) -> Result<()> {
    let (items, end) = (pe.alloc_zeroed::<u32>(2)?, pe.alloc_zeroed::<u32>(1)?);
    let filled = pe.alloc_zeroed::<u32>(1)?;
    if pe.my_pe() > 0 {
        let slot = pe.host().atomic_fetch_inc(&end, 0)? as usize;
        pe.host().p(items.at(slot), pe.my_pe() as u32, 0)?;
        pe.host().fence()?;
        pe.host().atomic_inc(&filled, 0)?;
    } else {
        pe.host().wait_until(&filled, Cmp::Eq, 2)?;
        expect_eq(pe.read(&items)?.iter().sum(), 3, "the sum of the items")?;
    }
    pe.free(filled)?;
    pe.free(end)?;
    pe.free(items)
}
