//! A stream waits for a signal and then puts without blocking. The host calls quiet before it sends that signal.
//!
//! The host's quiet waits until all non-blocking transfers of its PE have started, and this one cannot: it hangs.
//! Measured on H200s.

use onesided::{Backend, Cmp, Pe, Result, SignalOp};

use crate::Label;

pub(crate) const LABEL: Label = Label::deadlock(2).on_nvlink_too().seen("MISUSE.md, row 53, on an H200");

pub(crate) fn buggy(pe: &Pe<impl Backend>) -> Result<()> {
    let (dst, src, go) = (pe.alloc_zeroed::<u32>(1)?, pe.alloc_zeroed::<u32>(1)?, pe.alloc_zeroed::<u64>(1)?);
    let stream = pe.stream()?;
    if pe.my_pe() == 0 {
        pe.on(&stream).signal_wait_until(go.signal(0), Cmp::Eq, 1)?; // bug: first
        pe.on(&stream).put_nbi(&dst, &src, 1)?;
        pe.host().quiet()?; // bug: second
        pe.host().signal_op(go.signal(0), 1, SignalOp::Set, 0)?;
        pe.on(&stream).quiet()?;
        pe.synchronize(&stream)?;
    }
    pe.free(go)?;
    pe.free(src)?;
    pe.free(dst)
}

pub(crate) fn fixed(pe: &Pe<impl Backend>) -> Result<()> {
    let (dst, src, go) = (pe.alloc_zeroed::<u32>(1)?, pe.alloc_zeroed::<u32>(1)?, pe.alloc_zeroed::<u64>(1)?);
    let stream = pe.stream()?;
    if pe.my_pe() == 0 {
        pe.on(&stream).signal_wait_until(go.signal(0), Cmp::Eq, 1)?;
        pe.on(&stream).put_nbi(&dst, &src, 1)?;
        pe.host().signal_op(go.signal(0), 1, SignalOp::Set, 0)?;
        pe.on(&stream).quiet()?;
        pe.synchronize(&stream)?;
    }
    pe.free(go)?;
    pe.free(src)?;
    pe.free(dst)
}
