//! PE 0 calls a barrier and then a broadcast, the others the broadcast first.
//!
//! Two branches of the program were written apart. On GPUs they hang, or the broadcast's data is taken for something else.

use onesided::{Backend, Pe, Result};

use crate::{Class, Label};

pub(crate) const LABEL: Label = Label::new(Class::Mismatch, 2).on_nvlink_too().seen("MISUSE.md, row 27");

pub(crate) fn buggy(pe: &Pe<impl Backend>) -> Result<()> {
    let (dst, src) = (pe.alloc_zeroed::<u32>(1)?, pe.alloc_zeroed::<u32>(1)?);
    if pe.my_pe() == 0 {
        pe.write(&src, &[7])?;
        pe.host().barrier_all()?; // bug: first
        pe.host().broadcast(pe.world(), &dst, &src, 0)?;
    } else {
        pe.host().broadcast(pe.world(), &dst, &src, 0)?; // bug: second
        pe.host().barrier_all()?;
    }
    pe.free(src)?;
    pe.free(dst)
}

pub(crate) fn fixed(pe: &Pe<impl Backend>) -> Result<()> {
    let (dst, src) = (pe.alloc_zeroed::<u32>(1)?, pe.alloc_zeroed::<u32>(1)?);
    if pe.my_pe() == 0 {
        pe.write(&src, &[7])?;
        pe.host().barrier_all()?;
        pe.host().broadcast(pe.world(), &dst, &src, 0)?;
    } else {
        pe.host().barrier_all()?;
        pe.host().broadcast(pe.world(), &dst, &src, 0)?;
    }
    pe.free(src)?;
    pe.free(dst)
}
