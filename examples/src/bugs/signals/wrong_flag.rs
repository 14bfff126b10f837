//! Two senders, two flags, and a receiver that waits for the first flag twice.
//!
//! One line was copied and its index was not changed. The second block is read before it has come.

use onesided::{Backend, Cmp, Pe, Result, SignalOp, expect_eq};

use crate::Label;

pub(crate) const LABEL: Label = Label::race(3).on_nvlink_too().seen("vdcores/vdcores, pull request 29");

pub(crate) fn buggy(pe: &Pe<impl Backend>) -> Result<()> {
    let (dst, src, flags) = (pe.alloc_zeroed::<u32>(3)?, pe.alloc::<u32>(1)?, pe.alloc_zeroed::<u64>(3)?);
    let me = pe.my_pe();
    if me > 0 {
        pe.write(&src, &[me as u32])?;
        pe.host().put_signal(dst.at(me), &src, flags.signal(me), 1, SignalOp::Set, 0)?; // bug: first
    } else {
        pe.host().signal_wait_until(flags.signal(1), Cmp::Eq, 1)?;
        pe.host().signal_wait_until(flags.signal(1), Cmp::Eq, 1)?;
        expect_eq(pe.read(dst.slice(1..))?, vec![1, 2], "both blocks")?; // bug: second
    }
    pe.free(flags)?;
    pe.free(src)?;
    pe.free(dst)
}

pub(crate) fn fixed(pe: &Pe<impl Backend>) -> Result<()> {
    let (dst, src, flags) = (pe.alloc_zeroed::<u32>(3)?, pe.alloc::<u32>(1)?, pe.alloc_zeroed::<u64>(3)?);
    let me = pe.my_pe();
    if me > 0 {
        pe.write(&src, &[me as u32])?;
        pe.host().put_signal(dst.at(me), &src, flags.signal(me), 1, SignalOp::Set, 0)?;
    } else {
        pe.host().signal_wait_until(flags.signal(1), Cmp::Eq, 1)?;
        pe.host().signal_wait_until(flags.signal(2), Cmp::Eq, 1)?;
        expect_eq(pe.read(dst.slice(1..))?, vec![1, 2], "both blocks")?;
    }
    pe.free(flags)?;
    pe.free(src)?;
    pe.free(dst)
}
