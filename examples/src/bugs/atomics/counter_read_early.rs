//! All PEs add to a histogram at PE 0, which reads it when it has added its own part.
//!
//! The parts of the others may still be on their way. The total is right on one PE and wrong on many.

use onesided::{Backend, Pe, Result, expect_eq};

use crate::{Edit, Label};

pub(crate) const LABEL: Label = Label::race(2).on_nvlink_too().seen("MISUSE.md, row 25").fixed_by(Edit::Barrier);

pub(crate) fn buggy(pe: &Pe<impl Backend>) -> Result<()> {
    let bin = pe.alloc_zeroed::<u32>(1)?;
    if pe.my_pe() == 1 {
        pe.host().atomic_add(&bin, 5, 0)?; // bug: first
    } // bug: fix
    if pe.my_pe() == 0 {
        expect_eq(pe.read_one(&bin)?, 5, "the total")?; // bug: second
    }
    pe.free(bin)
}

pub(crate) fn fixed(pe: &Pe<impl Backend>) -> Result<()> {
    let bin = pe.alloc_zeroed::<u32>(1)?;
    if pe.my_pe() == 1 {
        pe.host().atomic_add(&bin, 5, 0)?;
    }
    pe.host().barrier_all()?;
    if pe.my_pe() == 0 {
        expect_eq(pe.read_one(&bin)?, 5, "the total")?;
    }
    pe.free(bin)
}
