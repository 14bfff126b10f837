//! Data goes to PE 1, a flag to PE 2, and a fence stands between them.
//!
//! A fence orders what goes to the same PE. PE 2 sees the flag, gets the data from PE 1, and may find the old value.

use onesided::{Backend, Cmp, Pe, Result, SignalOp, expect_eq};

use crate::{Edit, Label};

pub(crate) const LABEL: Label = Label::race(3).seen("MISUSE.md, row 17").fixed_by(Edit::Quiet);

pub(crate) fn buggy(pe: &Pe<impl Backend>) -> Result<()> {
    let (data, flag) = (pe.alloc_zeroed::<i64>(1)?, pe.alloc_zeroed::<u64>(1)?);
    if pe.my_pe() == 0 {
        pe.host().p(&data, 7, 1)?; // bug: first, fix
        pe.host().fence()?;
        pe.host().signal_op(flag.signal(0), 1, SignalOp::Set, 2)?;
    } else if pe.my_pe() == 2 {
        pe.host().signal_wait_until(flag.signal(0), Cmp::Eq, 1)?;
        expect_eq(pe.host().g(&data, 1)?, 7, "the data")?; // bug: second
    }
    pe.free(flag)?;
    pe.free(data)
}

pub(crate) fn fixed(pe: &Pe<impl Backend>) -> Result<()> {
    let (data, flag) = (pe.alloc_zeroed::<i64>(1)?, pe.alloc_zeroed::<u64>(1)?);
    if pe.my_pe() == 0 {
        pe.host().p(&data, 7, 1)?;
        pe.host().quiet()?;
        pe.host().signal_op(flag.signal(0), 1, SignalOp::Set, 2)?;
    } else if pe.my_pe() == 2 {
        pe.host().signal_wait_until(flag.signal(0), Cmp::Eq, 1)?;
        expect_eq(pe.host().g(&data, 1)?, 7, "the data")?;
    }
    pe.free(flag)?;
    pe.free(data)
}
