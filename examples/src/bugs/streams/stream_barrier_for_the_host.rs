//! A put of the host, then a barrier on a stream, which is synchronized.
//!
//! The barrier completes what its own scope has issued: streams. The host's put can still be on its way.

use onesided::{Backend, Pe, Result, expect_eq};

use crate::{Edit, Label};

pub(crate) const LABEL: Label = Label::race(2).seen("MISUSE.md, row 20").fixed_by(Edit::Quiet);

pub(crate) fn buggy(pe: &Pe<impl Backend>) -> Result<()> {
    let dst = pe.alloc_zeroed::<u32>(1)?;
    let stream = pe.stream()?;
    if pe.my_pe() == 0 {
        pe.host().p(&dst, 7, 1)?; // bug: first, fix
    }
    pe.on(&stream).barrier_all()?;
    pe.synchronize(&stream)?;
    if pe.my_pe() == 1 {
        expect_eq(pe.read_one(&dst)?, 7, "the data")?; // bug: second
    }
    pe.free(dst)
}

pub(crate) fn fixed(pe: &Pe<impl Backend>) -> Result<()> {
    let dst = pe.alloc_zeroed::<u32>(1)?;
    if pe.my_pe() == 0 {
        pe.host().p(&dst, 7, 1)?;
    }
    pe.host().barrier_all()?;
    if pe.my_pe() == 1 {
        expect_eq(pe.read_one(&dst)?, 7, "the data")?;
    }
    pe.free(dst)
}
