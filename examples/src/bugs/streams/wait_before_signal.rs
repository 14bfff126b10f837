//! Both PEs exchange blocks on a stream, and each enqueues its wait before its put_signal.
//!
//! A stream does one thing after the other, so nobody sends. It hangs every time.

use onesided::{Backend, Cmp, Pe, Result, SignalOp};

use crate::Label;

pub(crate) const LABEL: Label = Label::deadlock(2).on_nvlink_too().seen("MISUSE.md, row 53");

pub(crate) fn buggy(pe: &Pe<impl Backend>) -> Result<()> {
    let (dst, src, flag) = (pe.alloc_zeroed::<u32>(1)?, pe.alloc_zeroed::<u32>(1)?, pe.alloc_zeroed::<u64>(1)?);
    let (stream, other) = (pe.stream()?, 1 - pe.my_pe());
    pe.on(&stream).signal_wait_until(flag.signal(0), Cmp::Eq, 1)?; // bug: first
    pe.on(&stream).put_signal(&dst, &src, flag.signal(0), 1, SignalOp::Set, other)?;
    pe.on(&stream).quiet()?;
    pe.synchronize(&stream)?; // bug: second
    pe.free(flag)?;
    pe.free(src)?;
    pe.free(dst)
}

pub(crate) fn fixed(pe: &Pe<impl Backend>) -> Result<()> {
    let (dst, src, flag) = (pe.alloc_zeroed::<u32>(1)?, pe.alloc_zeroed::<u32>(1)?, pe.alloc_zeroed::<u64>(1)?);
    let (stream, other) = (pe.stream()?, 1 - pe.my_pe());
    pe.on(&stream).put_signal(&dst, &src, flag.signal(0), 1, SignalOp::Set, other)?;
    pe.on(&stream).signal_wait_until(flag.signal(0), Cmp::Eq, 1)?;
    pe.on(&stream).quiet()?;
    pe.synchronize(&stream)?;
    pe.free(flag)?;
    pe.free(src)?;
    pe.free(dst)
}
