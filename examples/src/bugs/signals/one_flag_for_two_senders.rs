//! Two senders set the same flag, and the receiver takes it to speak for both.
//!
//! The first signal ends the wait. The block of the other sender may be on its way, on every fabric.

use onesided::{Backend, Cmp, Pe, Result, SignalOp, expect_eq};

use crate::Label;

pub(crate) const LABEL: Label = Label::race(3).on_nvlink_too().seen("MISUSE.md, row 15");

pub(crate) fn buggy(pe: &Pe<impl Backend>) -> Result<()> {
    let (dst, src, flag) = (pe.alloc_zeroed::<u32>(3)?, pe.alloc::<u32>(1)?, pe.alloc_zeroed::<u64>(1)?);
    let mut found = vec![1, 2]; // what PE 0 finds
    let me = pe.my_pe();
    if me > 0 {
        pe.write(&src, &[me as u32])?;
        pe.host().put_signal(dst.at(me), &src, flag.signal(0), 1, SignalOp::Set, 0)?; // bug: first
    } else {
        pe.host().signal_wait_until(flag.signal(0), Cmp::Eq, 1)?;
        found = pe.read(dst.slice(1..))?; // bug: second
    }
    pe.free(flag)?;
    pe.free(src)?;
    pe.free(dst)?;
    expect_eq(found, vec![1, 2], "both blocks")
}

pub(crate) fn fixed(pe: &Pe<impl Backend>) -> Result<()> {
    let (dst, src, flag) = (pe.alloc_zeroed::<u32>(3)?, pe.alloc::<u32>(1)?, pe.alloc_zeroed::<u64>(1)?);
    let mut found = vec![1, 2]; // what PE 0 finds
    let me = pe.my_pe();
    if me > 0 {
        pe.write(&src, &[me as u32])?;
        pe.host().put_signal(dst.at(me), &src, flag.signal(0), 1, SignalOp::Add, 0)?;
    } else {
        pe.host().signal_wait_until(flag.signal(0), Cmp::Eq, 2)?;
        found = pe.read(dst.slice(1..))?;
    }
    pe.free(flag)?;
    pe.free(src)?;
    pe.free(dst)?;
    expect_eq(found, vec![1, 2], "both blocks")
}
