//! Two streams work independently, and each calls quiet for its own puts.
//!
//! The quiet that is called first takes over the other stream's non-blocking put. That stream's own quiet then waits for nothing,
//! and its signal overtakes the put. Measured on an H200.

use onesided::{Backend, Cmp, Pe, Result, SignalOp, expect_eq};

use crate::{Edit, Label};

pub(crate) const LABEL: Label =
    Label::race(2).on_nvlink_too().seen("MISUSE.md, row 21, on an H200").fixed_by(Edit::Fence);

pub(crate) fn buggy(pe: &Pe<impl Backend>) -> Result<()> {
    let (dst, src, flag) = (pe.alloc_zeroed::<u32>(1)?, pe.alloc::<u32>(1)?, pe.alloc_zeroed::<u64>(1)?);
    pe.write(&src, &[7])?;
    let (one, other) = (pe.stream()?, pe.stream()?);
    if pe.my_pe() == 0 {
        pe.on(&one).put_nbi(&dst, &src, 1)?; // bug: first, fix
        pe.on(&other).quiet()?;
        pe.on(&one).quiet()?;
        pe.on(&one).signal_op(flag.signal(0), 1, SignalOp::Set, 1)?;
        pe.on(&one).quiet()?;
        pe.synchronize(&one)?;
        pe.synchronize(&other)?;
    } else {
        pe.host().signal_wait_until(flag.signal(0), Cmp::Eq, 1)?;
        expect_eq(pe.read_one(&dst)?, 7, "the data")?; // bug: second
    }
    pe.free(flag)?;
    pe.free(src)?;
    pe.free(dst)
}

pub(crate) fn fixed(pe: &Pe<impl Backend>) -> Result<()> {
    let (dst, src, flag) = (pe.alloc_zeroed::<u32>(1)?, pe.alloc::<u32>(1)?, pe.alloc_zeroed::<u64>(1)?);
    pe.write(&src, &[7])?;
    let (one, other) = (pe.stream()?, pe.stream()?);
    if pe.my_pe() == 0 {
        pe.on(&one).put_nbi(&dst, &src, 1)?;
        pe.on(&one).quiet()?;
        pe.on(&other).quiet()?;
        pe.on(&one).signal_op(flag.signal(0), 1, SignalOp::Set, 1)?;
        pe.on(&one).quiet()?;
        pe.synchronize(&one)?;
        pe.synchronize(&other)?;
    } else {
        pe.host().signal_wait_until(flag.signal(0), Cmp::Eq, 1)?;
        expect_eq(pe.read_one(&dst)?, 7, "the data")?;
    }
    pe.free(flag)?;
    pe.free(src)?;
    pe.free(dst)
}
