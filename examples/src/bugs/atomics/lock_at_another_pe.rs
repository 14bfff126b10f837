//! The lock lies at PE 0 and what it protects at PE 2. A fence stands between the put and the release.
//!
//! A fence orders what goes to the same PE, and these go to two. The next holder reads half of the data.

use onesided::{Backend, Pe, Result, SymmetricBuf, expect_eq};

use crate::{Edit, Label};

pub(crate) const LABEL: Label = Label::race(3).seen("MISUSE.md, row 17").fixed_by(Edit::Quiet);

pub(crate) fn buggy(pe: &Pe<impl Backend>) -> Result<()> {
    let (pair, new, lock) = (pe.alloc_zeroed::<u32>(2)?, pe.alloc::<u32>(2)?, pe.alloc_zeroed::<u32>(1)?);
    pe.write(&new, &[1, 1])?;
    if pe.my_pe() > 0 {
        acquire(pe, &lock)?;
        if pe.my_pe() == 1 {
            pe.host().put(&pair, &new, 2)?; // bug: first, fix
            pe.host().fence()?;
        } else {
            let found = pe.read(&pair)?; // bug: second
            expect_eq(found[0], found[1], "the second of the pair")?;
        }
        pe.host().atomic_set(&lock, 0, 0)?;
    }
    pe.free(lock)?;
    pe.free(new)?;
    pe.free(pair)
}

pub(crate) fn fixed(pe: &Pe<impl Backend>) -> Result<()> {
    let (pair, new, lock) = (pe.alloc_zeroed::<u32>(2)?, pe.alloc::<u32>(2)?, pe.alloc_zeroed::<u32>(1)?);
    pe.write(&new, &[1, 1])?;
    if pe.my_pe() > 0 {
        acquire(pe, &lock)?;
        if pe.my_pe() == 1 {
            pe.host().put(&pair, &new, 2)?;
            pe.host().quiet()?;
        } else {
            let found = pe.read(&pair)?;
            expect_eq(found[0], found[1], "the second of the pair")?;
        }
        pe.host().atomic_set(&lock, 0, 0)?;
    }
    pe.free(lock)?;
    pe.free(new)?;
    pe.free(pair)
}

/// Takes the lock at PE 0.
fn acquire(pe: &Pe<impl Backend>, lock: &SymmetricBuf<u32>) -> Result<()> {
    while pe.host().atomic_compare_swap(lock, 0, 1, 0)? != 0 {}
    Ok(())
}
