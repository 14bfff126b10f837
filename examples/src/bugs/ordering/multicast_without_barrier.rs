//! PE 0 stores to everybody through a multicast pointer, and the others read at once.
//!
//! One store reaches all members, but it tells none of them that it has.

use onesided::{Backend, Pe, Result, expect_eq};

use crate::{Edit, Label};

pub(crate) const LABEL: Label = Label::race(2).on_nvlink_too().seen("MISUSE.md, row 15").fixed_by(Edit::Barrier);

pub(crate) fn buggy(pe: &Pe<impl Backend>) -> Result<()> {
    let x = pe.alloc_zeroed::<i64>(1)?;
    let mut found = 7; // what PE 1 finds
    if pe.my_pe() == 0 {
        let all = pe.multicast(pe.world(), &x)?.expect("a cluster with multicast");
        all.write(&[7])?; // bug: first
    } // bug: fix
    if pe.my_pe() == 1 {
        found = pe.read_one(&x)?; // bug: second
    }
    pe.free(x)?;
    expect_eq(found, 7, "the value of PE 0")
}

pub(crate) fn fixed(pe: &Pe<impl Backend>) -> Result<()> {
    let x = pe.alloc_zeroed::<i64>(1)?;
    let mut found = 7; // what PE 1 finds
    if pe.my_pe() == 0 {
        let all = pe.multicast(pe.world(), &x)?.expect("a cluster with multicast");
        all.write(&[7])?;
    }
    pe.host().barrier_all()?;
    if pe.my_pe() == 1 {
        found = pe.read_one(&x)?;
    }
    pe.free(x)?;
    expect_eq(found, 7, "the value of PE 0")
}
