//! Each PE zeroes its destination and then enters an fcollect.
//!
//! A PE that has entered may write everybody's destination at once. The zeroing of a slow PE deletes what has come.

use onesided::{Backend, Pe, Result, expect_eq};

use crate::{Edit, Label};

pub(crate) const LABEL: Label = Label::race(2).on_nvlink_too().seen("MISUSE.md, row 30").fixed_by(Edit::Barrier);

pub(crate) fn buggy(pe: &Pe<impl Backend>) -> Result<()> {
    let (all, mine) = (pe.alloc::<u32>(2)?, pe.alloc::<u32>(1)?);
    pe.write(&mine, &[pe.my_pe() as u32 + 1])?;
    pe.write(&all, &[0, 0])?; // bug: first, fix
    pe.host().fcollect(pe.world(), &all, &mine)?; // bug: second
    expect_eq(pe.read(&all)?, vec![1, 2], "what was collected")?;
    pe.free(mine)?;
    pe.free(all)
}

pub(crate) fn fixed(pe: &Pe<impl Backend>) -> Result<()> {
    let (all, mine) = (pe.alloc::<u32>(2)?, pe.alloc::<u32>(1)?);
    pe.write(&mine, &[pe.my_pe() as u32 + 1])?;
    pe.write(&all, &[0, 0])?;
    pe.host().barrier_all()?;
    pe.host().fcollect(pe.world(), &all, &mine)?;
    expect_eq(pe.read(&all)?, vec![1, 2], "what was collected")?;
    pe.free(mine)?;
    pe.free(all)
}
