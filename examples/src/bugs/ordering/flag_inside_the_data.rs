//! The last element of a put is its flag: when it has come, the rest is taken to be there.
//!
//! A put arrives element by element, in any order. Benchmarks of OpenSHMEM time their ping-pong like this. It works where
//! the network writes from front to back.

use onesided::{Backend, Cmp, Pe, Result, SignalOp, expect_eq};

use crate::Label;

pub(crate) const LABEL: Label = Label::race(2).on_nvlink_too().seen("openucx/ucx, pull request 1348");

pub(crate) fn buggy(pe: &Pe<impl Backend>) -> Result<()> {
    let (dst, src) = (pe.alloc_zeroed::<u64>(3)?, pe.alloc::<u64>(3)?);
    if pe.my_pe() == 0 {
        pe.write(&src, &[7, 8, 1])?;
        pe.host().put(&dst, &src, 1)?; // bug: first
    } else {
        pe.host().wait_until(dst.at(2), Cmp::Eq, 1)?;
        expect_eq(pe.read(dst.slice(..2))?, vec![7, 8], "the data")?; // bug: second
    }
    pe.free(src)?;
    pe.free(dst)
}

pub(crate) fn fixed(pe: &Pe<impl Backend>) -> Result<()> {
    let (dst, src) = (pe.alloc_zeroed::<u64>(3)?, pe.alloc::<u64>(3)?);
    if pe.my_pe() == 0 {
        pe.write(&src, &[7, 8, 1])?;
        pe.host().put_signal(dst.slice(..2), src.slice(..2), dst.signal(2), 1, SignalOp::Set, 1)?;
    } else {
        pe.host().signal_wait_until(dst.signal(2), Cmp::Eq, 1)?;
        expect_eq(pe.read(dst.slice(..2))?, vec![7, 8], "the data")?;
    }
    pe.free(src)?;
    pe.free(dst)
}
