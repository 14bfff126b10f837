//! A sync in place of a barrier: everybody has arrived, and the put may not have.
//!
//! A barrier completes what its PE has issued, a sync only waits for the others. Over NVLink a blocking put has arrived when it
//! returns, and both work.

use onesided::{Backend, Pe, Result, expect_eq};

use crate::{Edit, Label};

pub(crate) const LABEL: Label = Label::race(2).seen("MISUSE.md, row 19").fixed_by(Edit::Quiet);

pub(crate) fn buggy(pe: &Pe<impl Backend>) -> Result<()> {
    let (dst, src) = (pe.alloc_zeroed::<u32>(2)?, pe.alloc::<u32>(2)?);
    if pe.my_pe() == 0 {
        pe.write(&src, &[1, 2])?;
        pe.host().put(&dst, &src, 1)?; // bug: first, fix
    }
    pe.host().sync_all()?;
    if pe.my_pe() == 1 {
        expect_eq(pe.read(&dst)?, vec![1, 2], "the data")?; // bug: second
    }
    pe.free(src)?;
    pe.free(dst)
}

pub(crate) fn fixed(pe: &Pe<impl Backend>) -> Result<()> {
    let (dst, src) = (pe.alloc_zeroed::<u32>(2)?, pe.alloc::<u32>(2)?);
    if pe.my_pe() == 0 {
        pe.write(&src, &[1, 2])?;
        pe.host().put(&dst, &src, 1)?;
    }
    pe.host().barrier_all()?;
    if pe.my_pe() == 1 {
        expect_eq(pe.read(&dst)?, vec![1, 2], "the data")?;
    }
    pe.free(src)?;
    pe.free(dst)
}
