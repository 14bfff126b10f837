//! A non-blocking put of the host, then a quiet on a stream for other work, then a quiet of the host.
//!
//! The first quiet that is called takes over all non-blocking transfers of its PE, and the host's quiet then waits for
//! none. Measured on an H200: the data was old every time.

use onesided::{Backend, Cmp, Pe, Result, SignalOp, expect_eq};

use crate::{Edit, Label};

pub(crate) const LABEL: Label =
    Label::race(2).on_nvlink_too().seen("MISUSE.md, row 21, on an H200").fixed_by(Edit::Fence);

pub(crate) fn buggy(pe: &Pe<impl Backend>) -> Result<()> {
    let (dst, src, flag) = (pe.alloc_zeroed::<u32>(1)?, pe.alloc::<u32>(1)?, pe.alloc_zeroed::<u64>(1)?);
    pe.write(&src, &[7])?;
    let stream = pe.stream()?;
    if pe.my_pe() == 0 {
        pe.host().put_nbi(&dst, &src, 1)?; // bug: first, fix
        pe.on(&stream).quiet()?;
        pe.host().quiet()?;
        pe.host().signal_op(flag.signal(0), 1, SignalOp::Set, 1)?;
    } else {
        pe.host().signal_wait_until(flag.signal(0), Cmp::Eq, 1)?;
        expect_eq(pe.read_one(&dst)?, 7, "the data")?; // bug: second
    }
    pe.synchronize(&stream)?;
    pe.free(flag)?;
    pe.free(src)?;
    pe.free(dst)
}

pub(crate) fn fixed(pe: &Pe<impl Backend>) -> Result<()> {
    let (dst, src, flag) = (pe.alloc_zeroed::<u32>(1)?, pe.alloc::<u32>(1)?, pe.alloc_zeroed::<u64>(1)?);
    pe.write(&src, &[7])?;
    let stream = pe.stream()?;
    if pe.my_pe() == 0 {
        pe.host().put_nbi(&dst, &src, 1)?;
        pe.on(&stream).quiet()?;
        pe.synchronize(&stream)?;
        pe.host().quiet()?;
        pe.host().signal_op(flag.signal(0), 1, SignalOp::Set, 1)?;
    } else {
        pe.host().signal_wait_until(flag.signal(0), Cmp::Eq, 1)?;
        expect_eq(pe.read_one(&dst)?, 7, "the data")?;
    }
    pe.synchronize(&stream)?;
    pe.free(flag)?;
    pe.free(src)?;
    pe.free(dst)
}
