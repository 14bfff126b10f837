//! Every PE gets a counter, adds one, and puts it back.
//!
//! Two PEs that get the same value lose one of the additions. It shows under load, and the sum is a little too small.

use onesided::{Backend, Pe, Result, expect_eq};

use crate::Label;

pub(crate) const LABEL: Label = Label::race(2).on_nvlink_too().seen("MISUSE.md, row 25");

pub(crate) fn buggy(pe: &Pe<impl Backend>) -> Result<()> {
    let counter = pe.alloc_zeroed::<u32>(1)?;
    pe.host().p(&counter, pe.host().g(&counter, 0)? + 1, 0)?; // bug: first, second
    pe.host().barrier_all()?;
    if pe.my_pe() == 0 {
        expect_eq(pe.read_one(&counter)?, 2, "the count")?;
    }
    pe.free(counter)
}

pub(crate) fn fixed(pe: &Pe<impl Backend>) -> Result<()> {
    let counter = pe.alloc_zeroed::<u32>(1)?;
    pe.host().atomic_inc(&counter, 0)?;
    pe.host().barrier_all()?;
    if pe.my_pe() == 0 {
        expect_eq(pe.read_one(&counter)?, 2, "the count")?;
    }
    pe.free(counter)
}
