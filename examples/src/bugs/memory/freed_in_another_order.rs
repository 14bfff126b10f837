//! Two PEs free the same two buffers in different orders.
//!
//! A free is collective: all PEs must free the same buffer at a time. It happens where a garbage collector or a destructor
//! decides.

use onesided::{Backend, Pe, Result};

use crate::{Class, Label};

pub(crate) const LABEL: Label = Label::new(Class::Mismatch, 2).on_nvlink_too().seen("MISUSE.md, row 10");

pub(crate) fn buggy(pe: &Pe<impl Backend>) -> Result<()> {
    let (a, b) = (pe.alloc::<f32>(1)?, pe.alloc::<f32>(1)?);
    let (first, second) = if pe.my_pe() == 0 { (a, b) } else { (b, a) };
    pe.free(first)?; // bug: first, second
    pe.free(second)
}

pub(crate) fn fixed(pe: &Pe<impl Backend>) -> Result<()> {
    let (a, b) = (pe.alloc::<f32>(1)?, pe.alloc::<f32>(1)?);
    let (first, second) = (a, b);
    pe.free(first)?;
    pe.free(second)
}
