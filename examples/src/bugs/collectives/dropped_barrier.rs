//! The program calls a barrier of its own library, and the library's backend does nothing there.
//!
//! It compiles, it returns, and it synchronizes nobody. PyTorch's symmetric memory had such a barrier on NVSHMEM.

use onesided::{Backend, Pe, Result, expect_eq};

use crate::{Edit, Label};

pub(crate) const LABEL: Label =
    Label::race(2).on_nvlink_too().seen("pytorch/pytorch, issue 191858").fixed_by(Edit::Barrier);

pub(crate) fn buggy(pe: &Pe<impl Backend>) -> Result<()> {
    fn barrier(_pe: &Pe<impl Backend>) -> Result<()> {
        Ok(())
    }
    let x = pe.alloc_zeroed::<u32>(1)?;
    let mut found = 7; // what PE 1 finds
    if pe.my_pe() == 0 {
        pe.host().p(&x, 7, 1)?; // bug: first
    }
    barrier(pe)?; // bug: fix
    if pe.my_pe() == 1 {
        found = pe.read_one(&x)?; // bug: second
    }
    pe.free(x)?;
    expect_eq(found, 7, "the data")
}

pub(crate) fn fixed(pe: &Pe<impl Backend>) -> Result<()> {
    fn barrier(pe: &Pe<impl Backend>) -> Result<()> {
        pe.host().barrier_all()
    }
    let x = pe.alloc_zeroed::<u32>(1)?;
    let mut found = 7; // what PE 1 finds
    if pe.my_pe() == 0 {
        pe.host().p(&x, 7, 1)?;
    }
    barrier(pe)?;
    if pe.my_pe() == 1 {
        found = pe.read_one(&x)?;
    }
    pe.free(x)?;
    expect_eq(found, 7, "the data")
}
