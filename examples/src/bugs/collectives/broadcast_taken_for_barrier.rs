//! A broadcast is taken for a barrier, because everybody takes part.
//!
//! The root leaves it at once, and gets from PE 1 before PE 1 has written. The authors of the Parallel Research Kernels had to
//! argue about what a broadcast promises.

use onesided::{Backend, Pe, Result, expect_eq};

use crate::{Edit, Label};

pub(crate) const LABEL: Label =
    Label::race(2).on_nvlink_too().seen("ParRes/Kernels, pull request 124").fixed_by(Edit::Barrier);

pub(crate) fn buggy(pe: &Pe<impl Backend>) -> Result<()> {
    let (x, dst, src) = (pe.alloc_zeroed::<u32>(1)?, pe.alloc::<u32>(1)?, pe.alloc_zeroed::<u32>(1)?);
    if pe.my_pe() == 1 {
        pe.write(&x, &[7])?; // bug: first
    }
    pe.host().broadcast(pe.world(), &dst, &src, 0)?; // bug: fix
    if pe.my_pe() == 0 {
        expect_eq(pe.host().g(&x, 1)?, 7, "the value of PE 1")?; // bug: second
    }
    pe.free(src)?;
    pe.free(dst)?;
    pe.free(x)
}

pub(crate) fn fixed(pe: &Pe<impl Backend>) -> Result<()> {
    let (x, dst, src) = (pe.alloc_zeroed::<u32>(1)?, pe.alloc::<u32>(1)?, pe.alloc_zeroed::<u32>(1)?);
    if pe.my_pe() == 1 {
        pe.write(&x, &[7])?;
    }
    pe.host().broadcast(pe.world(), &dst, &src, 0)?;
    pe.host().barrier_all()?;
    if pe.my_pe() == 0 {
        expect_eq(pe.host().g(&x, 1)?, 7, "the value of PE 1")?;
    }
    pe.free(src)?;
    pe.free(dst)?;
    pe.free(x)
}
