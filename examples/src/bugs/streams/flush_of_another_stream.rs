//! A non-blocking put on one stream, a flush on another, then the source is changed.
//!
//! A flush is about its own stream. The put may still read its source, and PE 1 may get the new value.

use onesided::{Backend, Pe, Result, expect_eq};

use crate::Label;

pub(crate) const LABEL: Label = Label::race(2).on_nvlink_too().seen("MISUSE.md, row 13");

pub(crate) fn buggy(pe: &Pe<impl Backend>) -> Result<()> {
    let (dst, src) = (pe.alloc_zeroed::<u32>(1)?, pe.alloc::<u32>(1)?);
    let (one, other) = (pe.stream()?, pe.stream()?);
    if pe.my_pe() == 0 {
        pe.write(&src, &[1])?;
        pe.on(&one).put_nbi(&dst, &src, 1)?; // bug: first
        pe.on(&other).flush()?;
        pe.synchronize(&other)?;
        pe.write(&src, &[2])?; // bug: second
    }
    pe.on(&one).barrier_all()?;
    pe.synchronize(&one)?;
    if pe.my_pe() == 1 {
        expect_eq(pe.read_one(&dst)?, 1, "the data")?;
    }
    pe.free(src)?;
    pe.free(dst)
}

pub(crate) fn fixed(pe: &Pe<impl Backend>) -> Result<()> {
    let (dst, src) = (pe.alloc_zeroed::<u32>(1)?, pe.alloc::<u32>(1)?);
    let one = pe.stream()?;
    if pe.my_pe() == 0 {
        pe.write(&src, &[1])?;
        pe.on(&one).put_nbi(&dst, &src, 1)?;
        pe.on(&one).flush()?;
        pe.synchronize(&one)?;
        pe.write(&src, &[2])?;
    }
    pe.on(&one).barrier_all()?;
    pe.synchronize(&one)?;
    if pe.my_pe() == 1 {
        expect_eq(pe.read_one(&dst)?, 1, "the data")?;
    }
    pe.free(src)?;
    pe.free(dst)
}
