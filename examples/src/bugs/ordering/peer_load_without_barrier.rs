//! PE 1 loads through a pointer what PE 0 is writing to its own memory.
//!
//! It is shared memory without synchronization: the load finds the old value or the new one.

use onesided::{Backend, Pe, Result, expect_eq};

use crate::{Edit, Label};

pub(crate) const LABEL: Label = Label::race(2).on_nvlink_too().seen("MISUSE.md, row 15").fixed_by(Edit::Barrier);

pub(crate) fn buggy(pe: &Pe<impl Backend>) -> Result<()> {
    let x = pe.alloc_zeroed::<i64>(1)?;
    let mut found = vec![7]; // what PE 1 finds
    if pe.my_pe() == 0 {
        pe.write(&x, &[7])?; // bug: first
    } // bug: fix
    if pe.my_pe() == 1 {
        let peer = pe.peer(&x, 0)?.expect("both PEs are on one node");
        found = peer.read()?; // bug: second
    }
    pe.free(x)?;
    expect_eq(found, vec![7], "the value of PE 0")
}

pub(crate) fn fixed(pe: &Pe<impl Backend>) -> Result<()> {
    let x = pe.alloc_zeroed::<i64>(1)?;
    let mut found = vec![7]; // what PE 1 finds
    if pe.my_pe() == 0 {
        pe.write(&x, &[7])?;
    }
    pe.host().barrier_all()?;
    if pe.my_pe() == 1 {
        let peer = pe.peer(&x, 0)?.expect("both PEs are on one node");
        found = peer.read()?;
    }
    pe.free(x)?;
    expect_eq(found, vec![7], "the value of PE 0")
}
