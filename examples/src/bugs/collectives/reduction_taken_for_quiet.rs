//! A put, then a reduction, which nobody leaves before all have entered: it is taken for a barrier.
//!
//! It synchronizes the PEs and completes no put. Only a barrier is a quiet as well.

use onesided::{Backend, Pe, ReduceOp, Result, expect_eq};

use crate::{Edit, Label};

pub(crate) const LABEL: Label =
    Label::race(2).seen("conformance suite, collective/collective_completes_no_put").fixed_by(Edit::Quiet);

pub(crate) fn buggy(pe: &Pe<impl Backend>) -> Result<()> {
    let (x, sum, part) = (pe.alloc_zeroed::<u32>(1)?, pe.alloc::<u32>(1)?, pe.alloc_zeroed::<u32>(1)?);
    if pe.my_pe() == 0 {
        pe.host().p(&x, 7, 1)?; // bug: first, fix
    }
    pe.host().reduce(pe.world(), &sum, &part, ReduceOp::Sum)?;
    if pe.my_pe() == 1 {
        expect_eq(pe.read_one(&x)?, 7, "the data")?; // bug: second
    }
    pe.free(part)?;
    pe.free(sum)?;
    pe.free(x)
}

pub(crate) fn fixed(pe: &Pe<impl Backend>) -> Result<()> {
    let (x, sum, part) = (pe.alloc_zeroed::<u32>(1)?, pe.alloc::<u32>(1)?, pe.alloc_zeroed::<u32>(1)?);
    if pe.my_pe() == 0 {
        pe.host().p(&x, 7, 1)?;
        pe.host().quiet()?;
    }
    pe.host().reduce(pe.world(), &sum, &part, ReduceOp::Sum)?;
    if pe.my_pe() == 1 {
        expect_eq(pe.read_one(&x)?, 7, "the data")?;
    }
    pe.free(part)?;
    pe.free(sum)?;
    pe.free(x)
}
