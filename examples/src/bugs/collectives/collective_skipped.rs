//! A PE that has nothing to do returns before the barrier.
//!
//! The others wait there for ever, or meet it in another call. It shows with the first input that does not divide evenly.

use onesided::{Backend, Pe, Result};

use crate::{Class, Label};

pub(crate) const LABEL: Label = Label::new(Class::Mismatch, 2).on_nvlink_too().seen("MISUSE.md, row 27");

pub(crate) fn buggy(pe: &Pe<impl Backend>) -> Result<()> {
    let rows = 1; // of the input
    if pe.my_pe() >= rows {
        return Ok(());
    }
    pe.host().barrier_all() // bug: first
}

pub(crate) fn fixed(pe: &Pe<impl Backend>) -> Result<()> {
    pe.host().barrier_all()
}
