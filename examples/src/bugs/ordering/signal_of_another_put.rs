//! A put, then a put_signal: the signal is taken to cover both.
//!
//! The signal of a put_signal waits for the data of its own put only. On a network the earlier put can still be on its way.

use onesided::{Backend, Cmp, Pe, Result, SignalOp, expect_eq};

use crate::{Edit, Label};

pub(crate) const LABEL: Label = Label::race(2).seen("MISUSE.md, row 18").fixed_by(Edit::Fence);

pub(crate) fn buggy(pe: &Pe<impl Backend>) -> Result<()> {
    let (dst, src, flag) = (pe.alloc::<u32>(2)?, pe.alloc::<u32>(2)?, pe.alloc_zeroed::<u64>(1)?);
    if pe.my_pe() == 0 {
        pe.write(&src, &[1, 2])?;
        pe.host().put(dst.at(0), src.at(0), 1)?; // bug: first, fix
        pe.host().put_signal(dst.at(1), src.at(1), flag.signal(0), 1, SignalOp::Set, 1)?;
    } else {
        pe.host().signal_wait_until(flag.signal(0), Cmp::Eq, 1)?;
        expect_eq(pe.read(&dst)?, vec![1, 2], "the data")?; // bug: second
    }
    pe.free(flag)?;
    pe.free(src)?;
    pe.free(dst)
}

pub(crate) fn fixed(pe: &Pe<impl Backend>) -> Result<()> {
    let (dst, src, flag) = (pe.alloc::<u32>(2)?, pe.alloc::<u32>(2)?, pe.alloc_zeroed::<u64>(1)?);
    if pe.my_pe() == 0 {
        pe.write(&src, &[1, 2])?;
        pe.host().put(dst.at(0), src.at(0), 1)?;
        pe.host().fence()?;
        pe.host().put_signal(dst.at(1), src.at(1), flag.signal(0), 1, SignalOp::Set, 1)?;
    } else {
        pe.host().signal_wait_until(flag.signal(0), Cmp::Eq, 1)?;
        expect_eq(pe.read(&dst)?, vec![1, 2], "the data")?;
    }
    pe.free(flag)?;
    pe.free(src)?;
    pe.free(dst)
}
