//! Two puts to one address, without a fence between them.
//!
//! Nothing keeps the second from arriving first. Then the first value stays, and PE 1 waits for ever. A test of OpenSHMEM
//! hung like this on a cluster of A64FX.

use onesided::{Backend, Cmp, Pe, Result};

use crate::{Edit, Label};

pub(crate) const LABEL: Label = Label::race(2).seen("openshmem-org/tests-sos, issue 22").fixed_by(Edit::Fence);

pub(crate) fn buggy(pe: &Pe<impl Backend>) -> Result<()> {
    let x = pe.alloc_zeroed::<i32>(1)?;
    if pe.my_pe() == 0 {
        pe.host().p(&x, 1, 1)?; // bug: first, fix
        pe.host().p(&x, 2, 1)?; // bug: second
    } else {
        pe.host().wait_until(&x, Cmp::Eq, 2)?;
    }
    pe.free(x)
}

pub(crate) fn fixed(pe: &Pe<impl Backend>) -> Result<()> {
    let x = pe.alloc_zeroed::<i32>(1)?;
    if pe.my_pe() == 0 {
        pe.host().p(&x, 1, 1)?;
        pe.host().fence()?;
        pe.host().p(&x, 2, 1)?;
    } else {
        pe.host().wait_until(&x, Cmp::Eq, 2)?;
    }
    pe.free(x)
}
