//! Two reductions of one team run on two streams, to overlap them.
//!
//! A team has one collective at a time. On GPUs they use the same scratch memory. Two teams may overlap.

use onesided::{Backend, Pe, ReduceOp, Result};

use crate::{Class, Label};

pub(crate) const LABEL: Label = Label::new(Class::Unordered, 2).on_nvlink_too().seen("MISUSE.md, row 29");

pub(crate) fn buggy(pe: &Pe<impl Backend>) -> Result<()> {
    let (sums, parts) = (pe.alloc_zeroed::<u32>(2)?, pe.alloc_zeroed::<u32>(2)?);
    let (one, other) = (pe.stream()?, pe.stream()?);
    pe.on(&one).reduce(pe.world(), sums.at(0), parts.at(0), ReduceOp::Sum)?; // bug: first
    pe.on(&other).reduce(pe.world(), sums.at(1), parts.at(1), ReduceOp::Sum)?; // bug: second
    pe.synchronize(&one)?;
    pe.synchronize(&other)?;
    pe.free(parts)?;
    pe.free(sums)
}

pub(crate) fn fixed(pe: &Pe<impl Backend>) -> Result<()> {
    let (sums, parts) = (pe.alloc_zeroed::<u32>(2)?, pe.alloc_zeroed::<u32>(2)?);
    let one = pe.stream()?;
    pe.on(&one).reduce(pe.world(), sums.at(0), parts.at(0), ReduceOp::Sum)?;
    pe.on(&one).reduce(pe.world(), sums.at(1), parts.at(1), ReduceOp::Sum)?;
    pe.synchronize(&one)?;
    pe.free(parts)?;
    pe.free(sums)
}
