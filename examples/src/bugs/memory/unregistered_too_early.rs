//! Memory that is the source of a non-blocking put is unregistered right after the call.
//!
//! The put may not have read it yet. On a network the card then reads memory that it may no longer reach.

use onesided::{Backend, Pe, Result};

use crate::{Class, Edit, Label};

pub(crate) const LABEL: Label =
    Label::new(Class::Freed, 2).on_nvlink_too().seen("MISUSE.md, row 11").fixed_by(Edit::Flush);

pub(crate) fn buggy(pe: &Pe<impl Backend>) -> Result<()> {
    let dst = pe.alloc_zeroed::<u32>(1)?;
    let src = pe.register_local(pe.alloc_external::<u32>(1)?)?;
    pe.write(&src, &[7])?;
    if pe.my_pe() == 0 {
        pe.host().put_nbi(&dst, &src, 1)?; // bug: first, fix
    }
    pe.free_external(pe.unregister_local(src)?)?; // bug: second
    pe.free(dst)
}

pub(crate) fn fixed(pe: &Pe<impl Backend>) -> Result<()> {
    let dst = pe.alloc_zeroed::<u32>(1)?;
    let src = pe.register_local(pe.alloc_external::<u32>(1)?)?;
    pe.write(&src, &[7])?;
    if pe.my_pe() == 0 {
        pe.host().put_nbi(&dst, &src, 1)?;
        pe.host().flush()?;
    }
    pe.free_external(pe.unregister_local(src)?)?;
    pe.free(dst)
}
