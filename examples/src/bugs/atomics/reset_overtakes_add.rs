//! PE 1 resets a counter at PE 0 by an atomic set, then adds to it.
//!
//! Both are atomic, so there is no race. But no fence orders them, and the set can arrive last and delete the addition.

use onesided::{Backend, Pe, Result, expect_eq};

use crate::{Class, Edit, Label};

pub(crate) const LABEL: Label =
    Label::new(Class::WrongResult, 2).seen("conformance suite, atomic/set_then_add").fixed_by(Edit::Fence);

pub(crate) fn buggy(pe: &Pe<impl Backend>) -> Result<()> {
    let counter = pe.alloc_zeroed::<u32>(1)?;
    if pe.my_pe() == 1 {
        pe.host().atomic_set(&counter, 0, 0)?; // bug: fix
        pe.host().atomic_add(&counter, 5, 0)?;
    }
    pe.host().barrier_all()?;
    if pe.my_pe() == 0 {
        expect_eq(pe.read_one(&counter)?, 5, "the count")?; // bug: first
    }
    pe.free(counter)
}

pub(crate) fn fixed(pe: &Pe<impl Backend>) -> Result<()> {
    let counter = pe.alloc_zeroed::<u32>(1)?;
    if pe.my_pe() == 1 {
        pe.host().atomic_set(&counter, 0, 0)?;
        pe.host().fence()?;
        pe.host().atomic_add(&counter, 5, 0)?;
    }
    pe.host().barrier_all()?;
    if pe.my_pe() == 0 {
        expect_eq(pe.read_one(&counter)?, 5, "the count")?;
    }
    pe.free(counter)
}
