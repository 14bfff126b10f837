//! A flag lies in memory that was allocated and never zeroed.
//!
//! What is in fresh memory depends on who had it before. If it is not zero the wait ends at once, and PE 1 reads too early. In
//! tests on a fresh GPU it is zero.

use onesided::{Backend, Cmp, Pe, Result, SignalOp, expect_eq};

use crate::Label;

pub(crate) const LABEL: Label = Label::race(2).on_nvlink_too().seen("MISUSE.md, row 15");

pub(crate) fn buggy(pe: &Pe<impl Backend>) -> Result<()> {
    let (dst, src) = (pe.alloc_zeroed::<u32>(1)?, pe.alloc::<u32>(1)?);
    let mut found = 7; // what PE 1 finds
    let flag = pe.alloc::<u64>(1)?;
    if pe.my_pe() == 0 {
        pe.write(&src, &[7])?;
        pe.host().put_signal(&dst, &src, flag.signal(0), 1, SignalOp::Set, 1)?; // bug: first
    } else {
        pe.host().signal_wait_until(flag.signal(0), Cmp::Ge, 1)?;
        found = pe.read_one(&dst)?; // bug: second
    }
    pe.free(flag)?;
    pe.free(src)?;
    pe.free(dst)?;
    expect_eq(found, 7, "the data")
}

pub(crate) fn fixed(pe: &Pe<impl Backend>) -> Result<()> {
    let (dst, src) = (pe.alloc_zeroed::<u32>(1)?, pe.alloc::<u32>(1)?);
    let mut found = 7; // what PE 1 finds
    let flag = pe.alloc_zeroed::<u64>(1)?;
    if pe.my_pe() == 0 {
        pe.write(&src, &[7])?;
        pe.host().put_signal(&dst, &src, flag.signal(0), 1, SignalOp::Set, 1)?;
    } else {
        pe.host().signal_wait_until(flag.signal(0), Cmp::Ge, 1)?;
        found = pe.read_one(&dst)?;
    }
    pe.free(flag)?;
    pe.free(src)?;
    pe.free(dst)?;
    expect_eq(found, 7, "the data")
}
