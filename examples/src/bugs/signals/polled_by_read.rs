//! PE 1 polls a word by ordinary reads until PE 0 has set it.
//!
//! A compiler or a cache may keep the first value for ever. wait_until is the call that may poll.

use onesided::{Backend, Cmp, Pe, Result};

use crate::Label;

pub(crate) const LABEL: Label = Label::race(2).on_nvlink_too().seen("MISUSE.md, row 15");

pub(crate) fn buggy(pe: &Pe<impl Backend>) -> Result<()> {
    let ready = pe.alloc_zeroed::<u32>(1)?;
    if pe.my_pe() == 0 {
        pe.host().atomic_set(&ready, 1, 1)?; // bug: first
    } else {
        while pe.read_one(&ready)? == 0 {} // bug: second
    }
    pe.free(ready)
}

pub(crate) fn fixed(pe: &Pe<impl Backend>) -> Result<()> {
    let ready = pe.alloc_zeroed::<u32>(1)?;
    if pe.my_pe() == 0 {
        pe.host().atomic_set(&ready, 1, 1)?;
    } else {
        pe.host().wait_until(&ready, Cmp::Ne, 0)?;
    }
    pe.free(ready)
}
