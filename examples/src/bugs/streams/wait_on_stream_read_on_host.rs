//! The wait for a signal is enqueued on a stream, and the host reads the data at once.
//!
//! The call has only enqueued the wait. The host does not wait for it.

use onesided::{Backend, Cmp, Pe, Result, SignalOp, expect_eq};

use crate::{Edit, Label};

pub(crate) const LABEL: Label = Label::race(2).on_nvlink_too().seen("MISUSE.md, row 22").fixed_by(Edit::Synchronize);

pub(crate) fn buggy(pe: &Pe<impl Backend>) -> Result<()> {
    let (dst, src, flag) = (pe.alloc_zeroed::<u32>(1)?, pe.alloc::<u32>(1)?, pe.alloc_zeroed::<u64>(1)?);
    pe.write(&src, &[7])?;
    let stream = pe.stream()?;
    let mut found = 7; // what PE 1 finds
    if pe.my_pe() == 0 {
        pe.host().put_signal(&dst, &src, flag.signal(0), 1, SignalOp::Set, 1)?; // bug: first
    } else {
        pe.on(&stream).signal_wait_until(flag.signal(0), Cmp::Eq, 1)?; // bug: fix
        found = pe.read_one(&dst)?; // bug: second
    }
    pe.synchronize(&stream)?;
    pe.free(flag)?;
    pe.free(src)?;
    pe.free(dst)?;
    expect_eq(found, 7, "the data")
}

pub(crate) fn fixed(pe: &Pe<impl Backend>) -> Result<()> {
    let (dst, src, flag) = (pe.alloc_zeroed::<u32>(1)?, pe.alloc::<u32>(1)?, pe.alloc_zeroed::<u64>(1)?);
    pe.write(&src, &[7])?;
    let stream = pe.stream()?;
    let mut found = 7; // what PE 1 finds
    if pe.my_pe() == 0 {
        pe.host().put_signal(&dst, &src, flag.signal(0), 1, SignalOp::Set, 1)?;
    } else {
        pe.on(&stream).signal_wait_until(flag.signal(0), Cmp::Eq, 1)?;
        pe.synchronize(&stream)?;
        found = pe.read_one(&dst)?;
    }
    pe.synchronize(&stream)?;
    pe.free(flag)?;
    pe.free(src)?;
    pe.free(dst)?;
    expect_eq(found, 7, "the data")
}
