//! PE 1 gets what PE 0 has just written to its own memory, and nobody waits for anybody.
//!
//! Both calls are right by themselves. Whether PE 1 finds the new value depends on who is faster, on every fabric.

use onesided::{Backend, Pe, Result, expect_eq};

use crate::{Edit, Label};

pub(crate) const LABEL: Label = Label::race(2).on_nvlink_too().seen("MISUSE.md, row 15").fixed_by(Edit::Barrier);

pub(crate) fn buggy(pe: &Pe<impl Backend>) -> Result<()> {
    let x = pe.alloc_zeroed::<i64>(1)?;
    let mut found = 7; // what PE 1 finds
    if pe.my_pe() == 0 {
        pe.write(&x, &[7])?; // bug: first
    } // bug: fix
    if pe.my_pe() == 1 {
        found = pe.host().g(&x, 0)?; // bug: second
    }
    pe.free(x)?;
    expect_eq(found, 7, "the value of PE 0")
}

pub(crate) fn fixed(pe: &Pe<impl Backend>) -> Result<()> {
    let x = pe.alloc_zeroed::<i64>(1)?;
    let mut found = 7; // what PE 1 finds
    if pe.my_pe() == 0 {
        pe.write(&x, &[7])?;
    }
    pe.host().barrier_all()?;
    if pe.my_pe() == 1 {
        found = pe.host().g(&x, 0)?;
    }
    pe.free(x)?;
    expect_eq(found, 7, "the value of PE 0")
}
