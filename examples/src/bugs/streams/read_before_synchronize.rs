//! A get is enqueued on a stream, and the host reads its result at once.
//!
//! The result comes when the stream gets there. In a debugger it is always there in time.

use onesided::{Backend, Pe, Result, expect_eq};

use crate::{Edit, Label};

pub(crate) const LABEL: Label = Label::race(2).on_nvlink_too().seen("MISUSE.md, row 22").fixed_by(Edit::Synchronize);

pub(crate) fn buggy(pe: &Pe<impl Backend>) -> Result<()> {
    let (dst, src) = (pe.alloc_zeroed::<u32>(1)?, pe.alloc::<u32>(1)?);
    pe.write(&src, &[7])?;
    pe.host().barrier_all()?;
    if pe.my_pe() == 0 {
        let stream = pe.stream()?;
        pe.on(&stream).get(&dst, &src, 1)?; // bug: first, fix
        let found = pe.read_one(&dst)?; // bug: second
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
        pe.on(&stream).get(&dst, &src, 1)?;
        pe.synchronize(&stream)?;
        let found = pe.read_one(&dst)?;
        expect_eq(found, 7, "what was fetched")?;
    }
    pe.free(src)?;
    pe.free(dst)
}
