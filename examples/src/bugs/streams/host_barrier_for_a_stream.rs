//! A put on a stream, then a barrier of the host.
//!
//! The host's barrier does not wait for streams. PE 1 may read before the put has even begun, on every fabric.

use onesided::{Backend, Pe, Result, expect_eq};

use crate::Label;

pub(crate) const LABEL: Label = Label::race(2).on_nvlink_too().seen("MISUSE.md, row 20");

pub(crate) fn buggy(pe: &Pe<impl Backend>) -> Result<()> {
    let (dst, src) = (pe.alloc_zeroed::<u32>(1)?, pe.alloc::<u32>(1)?);
    pe.write(&src, &[7])?;
    let stream = pe.stream()?;
    if pe.my_pe() == 0 {
        pe.on(&stream).put(&dst, &src, 1)?; // bug: first
    }
    pe.host().barrier_all()?;
    if pe.my_pe() == 1 {
        expect_eq(pe.read_one(&dst)?, 7, "the data")?; // bug: second
    }
    pe.on(&stream).quiet()?;
    pe.synchronize(&stream)?;
    pe.free(src)?;
    pe.free(dst)
}

pub(crate) fn fixed(pe: &Pe<impl Backend>) -> Result<()> {
    let (dst, src) = (pe.alloc_zeroed::<u32>(1)?, pe.alloc::<u32>(1)?);
    pe.write(&src, &[7])?;
    let stream = pe.stream()?;
    if pe.my_pe() == 0 {
        pe.on(&stream).put(&dst, &src, 1)?;
    }
    pe.on(&stream).barrier_all()?;
    pe.synchronize(&stream)?;
    if pe.my_pe() == 1 {
        expect_eq(pe.read_one(&dst)?, 7, "the data")?;
    }
    pe.free(src)?;
    pe.free(dst)
}
