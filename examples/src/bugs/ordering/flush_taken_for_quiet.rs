//! A flush between a non-blocking put and its signal.
//!
//! A flush says that the source may be used again. It says nothing about the target, where the signal can be first: over NVLink
//! too, because non-blocking puts run beside everything else.

use onesided::{Backend, Cmp, Pe, Result, SignalOp, expect_eq};

use crate::{Edit, Label};

pub(crate) const LABEL: Label = Label::race(2).on_nvlink_too().seen("MISUSE.md, row 16").fixed_by(Edit::Fence);

pub(crate) fn buggy(pe: &Pe<impl Backend>) -> Result<()> {
    let (dst, src, flag) = (pe.alloc_zeroed::<u32>(1)?, pe.alloc::<u32>(1)?, pe.alloc_zeroed::<u64>(1)?);
    if pe.my_pe() == 0 {
        pe.write(&src, &[7])?;
        pe.host().put_nbi(&dst, &src, 1)?; // bug: first, fix
        pe.host().flush()?;
        pe.host().signal_op(flag.signal(0), 1, SignalOp::Set, 1)?;
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
    if pe.my_pe() == 0 {
        pe.write(&src, &[7])?;
        pe.host().put_nbi(&dst, &src, 1)?;
        pe.host().fence()?;
        pe.host().signal_op(flag.signal(0), 1, SignalOp::Set, 1)?;
    } else {
        pe.host().signal_wait_until(flag.signal(0), Cmp::Eq, 1)?;
        expect_eq(pe.read_one(&dst)?, 7, "the data")?;
    }
    pe.free(flag)?;
    pe.free(src)?;
    pe.free(dst)
}
