//! The PE that reads calls quiet, to be sure that the data has come.
//!
//! A quiet completes what its own PE has issued. What others have sent to it, only they can complete.

use onesided::{Backend, Pe, Result, expect_eq};

use crate::{Edit, Label};

pub(crate) const LABEL: Label =
    Label::race(2).seen("conformance suite, order/quiet_of_the_reader").fixed_by(Edit::Quiet);

pub(crate) fn buggy(pe: &Pe<impl Backend>) -> Result<()> {
    let data = pe.alloc_zeroed::<i64>(1)?;
    if pe.my_pe() == 0 {
        pe.host().p(&data, 7, 1)?; // bug: first, fix
        pe.host().sync_all()?;
    } else {
        pe.host().sync_all()?;
        pe.host().quiet()?;
        expect_eq(pe.read_one(&data)?, 7, "the data")?; // bug: second
    }
    pe.free(data)
}

pub(crate) fn fixed(pe: &Pe<impl Backend>) -> Result<()> {
    let data = pe.alloc_zeroed::<i64>(1)?;
    if pe.my_pe() == 0 {
        pe.host().p(&data, 7, 1)?;
        pe.host().quiet()?;
        pe.host().sync_all()?;
    } else {
        pe.host().sync_all()?;
        expect_eq(pe.read_one(&data)?, 7, "the data")?;
    }
    pe.free(data)
}
