//! The source of a non-blocking put is changed right after the call.
//!
//! The put may read its source at any time until a flush or quiet, so PE 1 may get the new value. With small data it rarely
//! does.

use onesided::{Backend, Pe, Result, expect_eq};

use crate::{Edit, Label};

pub(crate) const LABEL: Label = Label::race(2).on_nvlink_too().seen("MISUSE.md, row 13").fixed_by(Edit::Flush);

pub(crate) fn buggy(pe: &Pe<impl Backend>) -> Result<()> {
    let (dst, src) = (pe.alloc_zeroed::<u32>(1)?, pe.alloc::<u32>(1)?);
    if pe.my_pe() == 0 {
        pe.write(&src, &[1])?;
        pe.host().put_nbi(&dst, &src, 1)?; // bug: first, fix
        pe.write(&src, &[2])?; // bug: second
    }
    pe.host().barrier_all()?;
    if pe.my_pe() == 1 {
        expect_eq(pe.read_one(&dst)?, 1, "the data")?;
    }
    pe.free(src)?;
    pe.free(dst)
}

pub(crate) fn fixed(pe: &Pe<impl Backend>) -> Result<()> {
    let (dst, src) = (pe.alloc_zeroed::<u32>(1)?, pe.alloc::<u32>(1)?);
    if pe.my_pe() == 0 {
        pe.write(&src, &[1])?;
        pe.host().put_nbi(&dst, &src, 1)?;
        pe.host().flush()?;
        pe.write(&src, &[2])?;
    }
    pe.host().barrier_all()?;
    if pe.my_pe() == 1 {
        expect_eq(pe.read_one(&dst)?, 1, "the data")?;
    }
    pe.free(src)?;
    pe.free(dst)
}
