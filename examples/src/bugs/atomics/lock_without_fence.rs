//! A lock and what it protects lie at PE 0. The lock is released while the put inside may still be on its way.
//!
//! The next holder reads half of it. OpenSHMEM says of its own locks that the release completes what was issued before.

use onesided::{Backend, Pe, Result, SymmetricBuf, expect_eq};

use crate::{Edit, Label};

pub(crate) const LABEL: Label =
    Label::race(2).seen("openshmem-org/specification, pull request 213").fixed_by(Edit::Fence);

pub(crate) fn buggy(pe: &Pe<impl Backend>) -> Result<()> {
    let (pair, new, lock) = (pe.alloc_zeroed::<u32>(2)?, pe.alloc::<u32>(2)?, pe.alloc_zeroed::<u32>(1)?);
    pe.write(&new, &[1, 1])?;
    acquire(pe, &lock)?;
    if pe.my_pe() == 1 {
        pe.host().put(&pair, &new, 0)?; // bug: first, fix
    } else {
        let found = pe.read(&pair)?; // bug: second
        expect_eq(found[0], found[1], "the second of the pair")?;
    }
    pe.host().atomic_set(&lock, 0, 0)?;
    pe.free(lock)?;
    pe.free(new)?;
    pe.free(pair)
}

pub(crate) fn fixed(pe: &Pe<impl Backend>) -> Result<()> {
    let (pair, new, lock) = (pe.alloc_zeroed::<u32>(2)?, pe.alloc::<u32>(2)?, pe.alloc_zeroed::<u32>(1)?);
    pe.write(&new, &[1, 1])?;
    acquire(pe, &lock)?;
    if pe.my_pe() == 1 {
        pe.host().put(&pair, &new, 0)?;
        pe.host().fence()?;
    } else {
        let found = pe.read(&pair)?;
        expect_eq(found[0], found[1], "the second of the pair")?;
    }
    pe.host().atomic_set(&lock, 0, 0)?;
    pe.free(lock)?;
    pe.free(new)?;
    pe.free(pair)
}

/// Takes the lock at PE 0.
fn acquire(pe: &Pe<impl Backend>, lock: &SymmetricBuf<u32>) -> Result<()> {
    while pe.host().atomic_compare_swap(lock, 0, 1, 0)? != 0 {}
    Ok(())
}
