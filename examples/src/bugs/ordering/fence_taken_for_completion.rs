//! A fence and a sync take the place of a barrier.
//!
//! A fence orders puts and completes none, and a sync promises nothing about them. Over NVLink a fence completes too, so the
//! mistake shows on a network.

use onesided::{Backend, Pe, Result, expect_eq};

use crate::{Edit, Label};

pub(crate) const LABEL: Label = Label::race(2).seen("MISUSE.md, row 17").fixed_by(Edit::Quiet);

pub(crate) fn buggy(pe: &Pe<impl Backend>) -> Result<()> {
    let data = pe.alloc_zeroed::<i64>(1)?;
    if pe.my_pe() == 0 {
        pe.host().p(&data, 7, 1)?; // bug: first, fix
    }
    pe.host().fence()?;
    pe.host().sync_all()?;
    if pe.my_pe() == 1 {
        expect_eq(pe.read_one(&data)?, 7, "the data")?; // bug: second
    }
    pe.free(data)
}

pub(crate) fn fixed(pe: &Pe<impl Backend>) -> Result<()> {
    let data = pe.alloc_zeroed::<i64>(1)?;
    if pe.my_pe() == 0 {
        pe.host().p(&data, 7, 1)?;
    }
    pe.host().quiet()?;
    pe.host().sync_all()?;
    if pe.my_pe() == 1 {
        expect_eq(pe.read_one(&data)?, 7, "the data")?;
    }
    pe.free(data)
}
