//! A function returns early, and the buffer that it made is not given back.
//!
//! Nothing is wrong at once. A program that calls it often runs out of symmetric memory.

use onesided::{Backend, Pe, Result};

use crate::{Class, Label};

pub(crate) const LABEL: Label = Label::new(Class::Leak, 2).on_nvlink_too().seen("MISUSE.md, row 3");

pub(crate) fn buggy(pe: &Pe<impl Backend>) -> Result<()> {
    let scratch = pe.alloc_zeroed::<f32>(4)?; // bug: first
    if pe.read_one(scratch.at(0))? == 0.0 {
        return Ok(());
    }
    pe.free(scratch)
}

pub(crate) fn fixed(pe: &Pe<impl Backend>) -> Result<()> {
    let scratch = pe.alloc_zeroed::<f32>(4)?;
    if pe.read_one(scratch.at(0))? == 0.0 {
        return pe.free(scratch);
    }
    pe.free(scratch)
}
