//! Each PE allocates as much symmetric memory as it has work.
//!
//! Symmetric means the same size everywhere. With sizes that differ, addresses on one PE mean something else on another.

use onesided::{Backend, Pe, Result};

use crate::{Class, Label};

pub(crate) const LABEL: Label = Label::new(Class::Mismatch, 2).on_nvlink_too().seen("MISUSE.md, row 10");

pub(crate) fn buggy(pe: &Pe<impl Backend>) -> Result<()> {
    let rows = pe.alloc::<f32>(4 - pe.my_pe())?; // bug: first, second
    pe.free(rows)
}

pub(crate) fn fixed(pe: &Pe<impl Backend>) -> Result<()> {
    let rows = pe.alloc::<f32>(4)?;
    pe.free(rows)
}
