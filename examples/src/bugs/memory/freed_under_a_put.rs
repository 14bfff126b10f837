//! A put on a stream, the stream is synchronized, and the arrays are freed.
//!
//! On a network the put can still be on its way to the next PE, whose memory then belongs to somebody else. The tutorial of
//! NVSHMEM4Py frees like this.

use onesided::{Backend, Pe, Result};

use crate::{Class, Edit, Label};

pub(crate) const LABEL: Label =
    Label::new(Class::Freed, 2).seen("NVSHMEM4Py tutorial, ring put cell").fixed_by(Edit::Quiet);

pub(crate) fn buggy(pe: &Pe<impl Backend>) -> Result<()> {
    let (src, dst) = (pe.alloc::<f32>(1)?, pe.alloc::<f32>(1)?);
    let (stream, next) = (pe.stream()?, (pe.my_pe() + 1) % pe.n_pes());
    pe.write(&src, &[pe.my_pe() as f32])?;
    pe.on(&stream).put(&dst, &src, next)?; // bug: first, fix
    pe.synchronize(&stream)?;
    pe.free(src)?;
    pe.free(dst) // bug: second
}

pub(crate) fn fixed(pe: &Pe<impl Backend>) -> Result<()> {
    let (src, dst) = (pe.alloc::<f32>(1)?, pe.alloc::<f32>(1)?);
    let (stream, next) = (pe.stream()?, (pe.my_pe() + 1) % pe.n_pes());
    pe.write(&src, &[pe.my_pe() as f32])?;
    pe.on(&stream).put(&dst, &src, next)?;
    pe.on(&stream).quiet()?;
    pe.synchronize(&stream)?;
    pe.free(src)?;
    pe.free(dst)
}
