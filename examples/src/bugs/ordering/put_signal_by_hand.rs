//! A put and a signal take the place of one put_signal, and nothing orders the two.
//!
//! Over NVLink the data arrives first. On a network the signal can overtake it, and PE 1 reads what was there before. Sandia
//! OpenSHMEM once implemented its own put_signal like this.

use onesided::{Backend, Cmp, Pe, Result, SignalOp, expect_eq};

use crate::{Edit, Label};

pub(crate) const LABEL: Label = Label::race(2).seen("Sandia-OpenSHMEM/SOS, pull request 825").fixed_by(Edit::Fence);

pub(crate) fn buggy(pe: &Pe<impl Backend>) -> Result<()> {
    let (dst, src, flag) = (pe.alloc::<u32>(2)?, pe.alloc::<u32>(2)?, pe.alloc_zeroed::<u64>(1)?);
    if pe.my_pe() == 0 {
        pe.write(&src, &[1, 2])?;
        pe.host().put(&dst, &src, 1)?; // bug: first, fix
        pe.host().signal_op(flag.signal(0), 1, SignalOp::Set, 1)?;
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
        pe.host().put(&dst, &src, 1)?;
        pe.host().fence()?;
        pe.host().signal_op(flag.signal(0), 1, SignalOp::Set, 1)?;
    } else {
        pe.host().signal_wait_until(flag.signal(0), Cmp::Eq, 1)?;
        expect_eq(pe.read(&dst)?, vec![1, 2], "the data")?;
    }
    pe.free(flag)?;
    pe.free(src)?;
    pe.free(dst)
}
