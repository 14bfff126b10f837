//! PE 0 sends data to PE 2 and tells PE 1, which tells PE 2.
//!
//! The message by way of PE 1 can be faster than the data. Neither signal says anything about a put to another PE.

use onesided::{Backend, Cmp, Pe, Result, SignalOp, expect_eq};

use crate::{Edit, Label};

pub(crate) const LABEL: Label = Label::race(3).seen("MISUSE.md, row 17").fixed_by(Edit::Quiet);

pub(crate) fn buggy(pe: &Pe<impl Backend>) -> Result<()> {
    let (data, flag) = (pe.alloc_zeroed::<i64>(1)?, pe.alloc_zeroed::<u64>(1)?);
    if pe.my_pe() == 0 {
        pe.host().p(&data, 7, 2)?; // bug: first, fix
        pe.host().signal_op(flag.signal(0), 1, SignalOp::Set, 1)?;
    } else {
        pe.host().signal_wait_until(flag.signal(0), Cmp::Eq, 1)?;
        if pe.my_pe() == 1 {
            pe.host().signal_op(flag.signal(0), 1, SignalOp::Set, 2)?;
        } else {
            expect_eq(pe.read_one(&data)?, 7, "the data")?; // bug: second
        }
    }
    pe.free(flag)?;
    pe.free(data)
}

pub(crate) fn fixed(pe: &Pe<impl Backend>) -> Result<()> {
    let (data, flag) = (pe.alloc_zeroed::<i64>(1)?, pe.alloc_zeroed::<u64>(1)?);
    if pe.my_pe() == 0 {
        pe.host().p(&data, 7, 2)?;
        pe.host().quiet()?;
        pe.host().signal_op(flag.signal(0), 1, SignalOp::Set, 1)?;
    } else {
        pe.host().signal_wait_until(flag.signal(0), Cmp::Eq, 1)?;
        if pe.my_pe() == 1 {
            pe.host().signal_op(flag.signal(0), 1, SignalOp::Set, 2)?;
        } else {
            expect_eq(pe.read_one(&data)?, 7, "the data")?;
        }
    }
    pe.free(flag)?;
    pe.free(data)
}
