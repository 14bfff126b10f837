//! A non-blocking get on a stream, the stream is synchronized, and its result is read.
//!
//! The get has started when the stream is done, and runs beside it. Only a quiet completes it.

use onesided::{Backend, Pe, Result, expect_eq};

use crate::{Edit, Label};

pub(crate) const LABEL: Label = Label::race(2)
    .on_nvlink_too()
    .seen("conformance suite, stream/synchronize_does_not_complete_get_nbi")
    .fixed_by(Edit::Quiet);

pub(crate) fn buggy(pe: &Pe<impl Backend>) -> Result<()> {
    let (dst, src) = (pe.alloc_zeroed::<u32>(1)?, pe.alloc::<u32>(1)?);
    pe.write(&src, &[7])?;
    pe.host().barrier_all()?;
    if pe.my_pe() == 0 {
        let stream = pe.stream()?;
        pe.on(&stream).get_nbi(&dst, &src, 1)?; // bug: first, fix
        pe.synchronize(&stream)?;
        let found = pe.read_one(&dst)?; // bug: second
        pe.on(&stream).quiet()?;
        pe.synchronize(&stream)?;
        expect_eq(found, 7, "what was fetched")?;
    }
    pe.free(src)?;
    pe.free(dst)
}

pub(crate) fn fixed(pe: &Pe<impl Backend>) -> Result<()> {
    let (dst, src) = (pe.alloc_zeroed::<u32>(1)?, pe.alloc::<u32>(1)?);
    pe.write(&src, &[7])?;
    pe.host().barrier_all()?;
    if pe.my_pe() == 0 {
        let stream = pe.stream()?;
        pe.on(&stream).get_nbi(&dst, &src, 1)?;
        pe.on(&stream).quiet()?;
        pe.synchronize(&stream)?;
        let found = pe.read_one(&dst)?;
        expect_eq(found, 7, "what was fetched")?;
    }
    pe.free(src)?;
    pe.free(dst)
}
