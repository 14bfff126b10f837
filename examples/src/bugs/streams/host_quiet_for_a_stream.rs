//! A put on a stream, completed by a quiet of the host.
//!
//! The host's quiet completes what the host has issued. The put of the stream can arrive after the signal.

use onesided::{Backend, Cmp, Pe, Result, SignalOp, expect_eq};

use crate::{Edit, Label};

pub(crate) const LABEL: Label = Label::race(2).seen("MISUSE.md, row 20").fixed_by(Edit::Quiet);

pub(crate) fn buggy(pe: &Pe<impl Backend>) -> Result<()> {
    let (dst, src, flag) = (pe.alloc_zeroed::<u32>(1)?, pe.alloc::<u32>(1)?, pe.alloc_zeroed::<u64>(1)?);
    pe.write(&src, &[7])?;
    let stream = pe.stream()?;
    if pe.my_pe() == 0 {
        pe.on(&stream).put(&dst, &src, 1)?; // bug: first, fix
        pe.synchronize(&stream)?;
        pe.host().quiet()?;
        pe.host().signal_op(flag.signal(0), 1, SignalOp::Set, 1)?;
        pe.on(&stream).quiet()?;
        pe.synchronize(&stream)?;
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
    let stream = pe.stream()?;
    if pe.my_pe() == 0 {
        pe.on(&stream).put(&dst, &src, 1)?;
        pe.on(&stream).quiet()?;
        pe.synchronize(&stream)?;
        pe.host().signal_op(flag.signal(0), 1, SignalOp::Set, 1)?;
    } else {
        pe.host().signal_wait_until(flag.signal(0), Cmp::Eq, 1)?;
        expect_eq(pe.read_one(&dst)?, 7, "the data")?;
    }
    pe.free(flag)?;
    pe.free(src)?;
    pe.free(dst)
}
