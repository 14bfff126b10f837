//! The signal is sent before the data that it announces.
//!
//! Two lines stand in the wrong order. PE 1 reads old data on every fabric, unless it is slow.

use onesided::{Backend, Cmp, Pe, Result, SignalOp, expect_eq};

use crate::Label;

pub(crate) const LABEL: Label = Label::race(2).on_nvlink_too().seen("MISUSE.md, row 15");

pub(crate) fn buggy(pe: &Pe<impl Backend>) -> Result<()> {
    let (data, flag) = (pe.alloc_zeroed::<i64>(1)?, pe.alloc_zeroed::<u64>(1)?);
    if pe.my_pe() == 0 {
        pe.host().signal_op(flag.signal(0), 1, SignalOp::Set, 1)?;
        pe.host().p(&data, 7, 1)?; // bug: first
        pe.host().quiet()?;
    } else {
        pe.host().signal_wait_until(flag.signal(0), Cmp::Eq, 1)?;
        expect_eq(pe.read_one(&data)?, 7, "the data")?; // bug: second
    }
    pe.free(flag)?;
    pe.free(data)
}

pub(crate) fn fixed(pe: &Pe<impl Backend>) -> Result<()> {
    let (data, flag) = (pe.alloc_zeroed::<i64>(1)?, pe.alloc_zeroed::<u64>(1)?);
    if pe.my_pe() == 0 {
        pe.host().p(&data, 7, 1)?;
        pe.host().quiet()?;
        pe.host().signal_op(flag.signal(0), 1, SignalOp::Set, 1)?;
    } else {
        pe.host().signal_wait_until(flag.signal(0), Cmp::Eq, 1)?;
        expect_eq(pe.read_one(&data)?, 7, "the data")?;
    }
    pe.free(flag)?;
    pe.free(data)
}
