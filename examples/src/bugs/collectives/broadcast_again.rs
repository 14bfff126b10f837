//! PE 0 broadcasts in every step, into the same destination.
//!
//! A collective does not wait on entry. The root can be in the next broadcast, and write, while another PE still reads the
//! result of the last one.

use onesided::{Backend, Pe, Result, expect_eq};

use crate::{Edit, Label};

pub(crate) const LABEL: Label = Label::race(2).on_nvlink_too().seen("MISUSE.md, row 30").fixed_by(Edit::Barrier);

pub(crate) fn buggy(pe: &Pe<impl Backend>) -> Result<()> {
    let (dst, src) = (pe.alloc_zeroed::<u32>(1)?, pe.alloc::<u32>(1)?);
    let mut found = Vec::new();
    for step in 1..=2 {
        pe.write(&src, &[step])?;
        pe.host().broadcast(pe.world(), &dst, &src, 0)?; // bug: second
        found.push(pe.read_one(&dst)?); // bug: first, fix
    }
    pe.free(src)?;
    pe.free(dst)?;
    expect_eq(found, vec![1, 2], "what was broadcast")
}

pub(crate) fn fixed(pe: &Pe<impl Backend>) -> Result<()> {
    let (dst, src) = (pe.alloc_zeroed::<u32>(1)?, pe.alloc::<u32>(1)?);
    let mut found = Vec::new();
    for step in 1..=2 {
        pe.write(&src, &[step])?;
        pe.host().broadcast(pe.world(), &dst, &src, 0)?;
        found.push(pe.read_one(&dst)?);
        pe.host().barrier_all()?;
    }
    pe.free(src)?;
    pe.free(dst)?;
    expect_eq(found, vec![1, 2], "what was broadcast")
}
