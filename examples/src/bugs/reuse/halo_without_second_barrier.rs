//! A stencil puts its edge into its neighbour's ghost cell, waits at a barrier, and computes; then the next step begins.
//!
//! A PE that is ahead puts its next edge while its neighbour still computes with the last one. One barrier a step is not
//! enough.

use onesided::{Backend, Pe, Result, expect_eq};

use crate::{Edit, Label};

pub(crate) const LABEL: Label = Label::race(2).on_nvlink_too().seen("MISUSE.md, row 15").fixed_by(Edit::Barrier);

pub(crate) fn buggy(pe: &Pe<impl Backend>) -> Result<()> {
    let (ghost, other) = (pe.alloc_zeroed::<u32>(1)?, 1 - pe.my_pe());
    for step in 1..=2 {
        pe.host().p(&ghost, step, other)?; // bug: second
        pe.host().barrier_all()?;
        expect_eq(pe.read_one(&ghost)?, step, "the edge of the neighbour")?; // bug: first, fix
    }
    pe.free(ghost)
}

pub(crate) fn fixed(pe: &Pe<impl Backend>) -> Result<()> {
    let (ghost, other) = (pe.alloc_zeroed::<u32>(1)?, 1 - pe.my_pe());
    for step in 1..=2 {
        pe.host().p(&ghost, step, other)?;
        pe.host().barrier_all()?;
        expect_eq(pe.read_one(&ghost)?, step, "the edge of the neighbour")?;
        pe.host().barrier_all()?;
    }
    pe.free(ghost)
}
