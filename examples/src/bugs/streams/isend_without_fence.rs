//! A put and then a signal on one stream: the order of the stream is taken for the order of arrival.
//!
//! The stream starts them in order, and a network may deliver them in another. FLUX sends like this; a comment in its code asks
//! whether a quiet is needed.

use onesided::{Backend, Cmp, Pe, Result, SignalOp, expect_eq};

use crate::{Edit, Label};

pub(crate) const LABEL: Label = Label::race(2).seen("bytedance/flux, isendrecv.cc").fixed_by(Edit::Fence);

pub(crate) fn buggy(pe: &Pe<impl Backend>) -> Result<()> {
    let (dst, src, flag) = (pe.alloc_zeroed::<u32>(1)?, pe.alloc::<u32>(1)?, pe.alloc_zeroed::<u64>(1)?);
    pe.write(&src, &[7])?;
    let stream = pe.stream()?;
    if pe.my_pe() == 0 {
        pe.on(&stream).put(&dst, &src, 1)?; // bug: first, fix
        pe.on(&stream).signal_op(flag.signal(0), 1, SignalOp::Set, 1)?;
        pe.on(&stream).quiet()?;
        pe.synchronize(&stream)?;
    } else {
        pe.on(&stream).signal_wait_until(flag.signal(0), Cmp::Eq, 1)?;
        pe.synchronize(&stream)?;
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
        pe.on(&stream).signal_op(flag.signal(0), 1, SignalOp::Set, 1)?;
        pe.on(&stream).quiet()?;
        pe.synchronize(&stream)?;
    } else {
        pe.on(&stream).signal_wait_until(flag.signal(0), Cmp::Eq, 1)?;
        pe.synchronize(&stream)?;
        expect_eq(pe.read_one(&dst)?, 7, "the data")?;
    }
    pe.free(flag)?;
    pe.free(src)?;
    pe.free(dst)
}
