//! A fence between a non-blocking get and the use of its result.
//!
//! Fences order puts. No fence orders or completes a get.

use onesided::{Backend, Pe, Result, expect_eq};

use crate::{Edit, Label};

pub(crate) const LABEL: Label =
    Label::race(2).seen("conformance suite, order/fence_does_not_order_get_nbi").fixed_by(Edit::Quiet);

pub(crate) fn buggy(pe: &Pe<impl Backend>) -> Result<()> {
    let (dst, src) = (pe.alloc_zeroed::<u32>(1)?, pe.alloc::<u32>(1)?);
    pe.write(&src, &[7])?;
    pe.host().barrier_all()?;
    if pe.my_pe() == 0 {
        pe.host().get_nbi(&dst, &src, 1)?; // bug: first, fix
        pe.host().fence()?;
        expect_eq(pe.read_one(&dst)?, 7, "what was fetched")?; // bug: second
    }
    pe.free(src)?;
    pe.free(dst)
}

pub(crate) fn fixed(pe: &Pe<impl Backend>) -> Result<()> {
    let (dst, src) = (pe.alloc_zeroed::<u32>(1)?, pe.alloc::<u32>(1)?);
    pe.write(&src, &[7])?;
    pe.host().barrier_all()?;
    if pe.my_pe() == 0 {
        pe.host().get_nbi(&dst, &src, 1)?;
        pe.host().quiet()?;
        expect_eq(pe.read_one(&dst)?, 7, "what was fetched")?;
    }
    pe.free(src)?;
    pe.free(dst)
}
