//! All PEs register a buffer between a put and the read of its data.
//!
//! A registration is collective and promises no synchronization. A barrier does.

use onesided::{Backend, Pe, Result, expect_eq};

use crate::{Edit, Label};

pub(crate) const LABEL: Label = Label::race(2).on_nvlink_too().seen("MISUSE.md, row 19").fixed_by(Edit::Barrier);

pub(crate) fn buggy(pe: &Pe<impl Backend>) -> Result<()> {
    let (x, weights) = (pe.alloc_zeroed::<u32>(1)?, pe.alloc_external::<u32>(1)?);
    let mut found = 7; // what PE 1 finds
    if pe.my_pe() == 0 {
        pe.host().p(&x, 7, 1)?; // bug: first
        pe.host().quiet()?;
    }
    let weights = pe.register_symmetric(weights)?; // bug: fix
    if pe.my_pe() == 1 {
        found = pe.read_one(&x)?; // bug: second
    }
    pe.free_external(pe.unregister_symmetric(weights)?)?;
    pe.free(x)?;
    expect_eq(found, 7, "the data")
}

pub(crate) fn fixed(pe: &Pe<impl Backend>) -> Result<()> {
    let (x, weights) = (pe.alloc_zeroed::<u32>(1)?, pe.alloc_external::<u32>(1)?);
    let mut found = 7; // what PE 1 finds
    if pe.my_pe() == 0 {
        pe.host().p(&x, 7, 1)?;
        pe.host().quiet()?;
    }
    let weights = pe.register_symmetric(weights)?;
    pe.host().barrier_all()?;
    if pe.my_pe() == 1 {
        found = pe.read_one(&x)?;
    }
    pe.free_external(pe.unregister_symmetric(weights)?)?;
    pe.free(x)?;
    expect_eq(found, 7, "the data")
}
