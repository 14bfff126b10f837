//! PE 0 sets a counter to its first value after the allocation, and the others add to it at once.
//!
//! The allocation is where the PEs meet, and the value is written behind it. An addition that comes early is overwritten.

use onesided::{Backend, Pe, Result, expect_eq};

use crate::{Edit, Label};

pub(crate) const LABEL: Label =
    Label::race(2).on_nvlink_too().seen("pytorch/pytorch, pull request 196546").fixed_by(Edit::Barrier);

pub(crate) fn buggy(pe: &Pe<impl Backend>) -> Result<()> {
    let counter = pe.alloc::<u32>(1)?;
    pe.write(&counter, &[100])?; // bug: first, fix
    if pe.my_pe() == 1 {
        pe.host().atomic_add(&counter, 5, 0)?; // bug: second
    }
    pe.host().barrier_all()?;
    if pe.my_pe() == 0 {
        expect_eq(pe.read_one(&counter)?, 105, "the count")?;
    }
    pe.free(counter)
}

pub(crate) fn fixed(pe: &Pe<impl Backend>) -> Result<()> {
    let counter = pe.alloc::<u32>(1)?;
    pe.write(&counter, &[100])?;
    pe.host().barrier_all()?;
    if pe.my_pe() == 1 {
        pe.host().atomic_add(&counter, 5, 0)?;
    }
    pe.host().barrier_all()?;
    if pe.my_pe() == 0 {
        expect_eq(pe.read_one(&counter)?, 105, "the count")?;
    }
    pe.free(counter)
}
