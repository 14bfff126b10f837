//! Data by one put, a flag by the next, and the order of the calls taken for the order of arrival.
//!
//! Puts to one PE keep no order. Over NVLink they do, so the mistake shows on the first network that delivers out of order.

use onesided::{Backend, Cmp, Pe, Result, expect_eq};

use crate::{Edit, Label};

pub(crate) const LABEL: Label = Label::race(2).seen("MISUSE.md, row 16").fixed_by(Edit::Fence);

pub(crate) fn buggy(pe: &Pe<impl Backend>) -> Result<()> {
    let (data, flag) = (pe.alloc_zeroed::<i64>(1)?, pe.alloc_zeroed::<i32>(1)?);
    if pe.my_pe() == 0 {
        pe.host().p(&data, 7, 1)?; // bug: first, fix
        pe.host().p(&flag, 1, 1)?;
    } else {
        pe.host().wait_until(&flag, Cmp::Eq, 1)?;
        expect_eq(pe.read_one(&data)?, 7, "the data")?; // bug: second
    }
    pe.free(flag)?;
    pe.free(data)
}

pub(crate) fn fixed(pe: &Pe<impl Backend>) -> Result<()> {
    let (data, flag) = (pe.alloc_zeroed::<i64>(1)?, pe.alloc_zeroed::<i32>(1)?);
    if pe.my_pe() == 0 {
        pe.host().p(&data, 7, 1)?;
        pe.host().fence()?;
        pe.host().p(&flag, 1, 1)?;
    } else {
        pe.host().wait_until(&flag, Cmp::Eq, 1)?;
        expect_eq(pe.read_one(&data)?, 7, "the data")?;
    }
    pe.free(flag)?;
    pe.free(data)
}
