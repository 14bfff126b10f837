//! The host changes the source of a put that it has enqueued on a stream.
//!
//! "Blocking" is about the stream: its next operation waits until the source has been read. The host goes on at once.

use onesided::{Backend, Pe, Result, expect_eq};

use crate::{Edit, Label};

pub(crate) const LABEL: Label = Label::race(2).on_nvlink_too().seen("MISUSE.md, row 22").fixed_by(Edit::Synchronize);

pub(crate) fn buggy(pe: &Pe<impl Backend>) -> Result<()> {
    let (dst, src) = (pe.alloc_zeroed::<u32>(1)?, pe.alloc::<u32>(1)?);
    let stream = pe.stream()?;
    if pe.my_pe() == 0 {
        pe.write(&src, &[1])?;
        pe.on(&stream).put(&dst, &src, 1)?; // bug: first, fix
        pe.write(&src, &[2])?; // bug: second
    }
    pe.on(&stream).barrier_all()?;
    pe.synchronize(&stream)?;
    if pe.my_pe() == 1 {
        expect_eq(pe.read_one(&dst)?, 1, "the data")?;
    }
    pe.free(src)?;
    pe.free(dst)
}

pub(crate) fn fixed(pe: &Pe<impl Backend>) -> Result<()> {
    let (dst, src) = (pe.alloc_zeroed::<u32>(1)?, pe.alloc::<u32>(1)?);
    let stream = pe.stream()?;
    if pe.my_pe() == 0 {
        pe.write(&src, &[1])?;
        pe.on(&stream).put(&dst, &src, 1)?;
        pe.synchronize(&stream)?;
        pe.write(&src, &[2])?;
    }
    pe.on(&stream).barrier_all()?;
    pe.synchronize(&stream)?;
    if pe.my_pe() == 1 {
        expect_eq(pe.read_one(&dst)?, 1, "the data")?;
    }
    pe.free(src)?;
    pe.free(dst)
}
