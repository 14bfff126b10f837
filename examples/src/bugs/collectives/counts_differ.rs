//! Each PE reduces as many elements as it has rows, and the last PE has one less.
//!
//! All members must give the same count. On GPUs the sums are wrong, or it hangs.

use onesided::{Backend, Pe, ReduceOp, Result};

use crate::{Class, Label};

pub(crate) const LABEL: Label = Label::new(Class::Mismatch, 2).on_nvlink_too().seen("MISUSE.md, row 28");

pub(crate) fn buggy(pe: &Pe<impl Backend>) -> Result<()> {
    let (sums, parts) = (pe.alloc_zeroed::<u32>(2)?, pe.alloc_zeroed::<u32>(2)?);
    let rows = 2 - pe.my_pe();
    let (sum, part) = (sums.slice(..rows), parts.slice(..rows));
    pe.host().reduce(pe.world(), sum, part, ReduceOp::Sum)?; // bug: first, second
    pe.free(parts)?;
    pe.free(sums)
}

pub(crate) fn fixed(pe: &Pe<impl Backend>) -> Result<()> {
    let (sums, parts) = (pe.alloc_zeroed::<u32>(2)?, pe.alloc_zeroed::<u32>(2)?);
    let rows = 2;
    let (sum, part) = (sums.slice(..rows), parts.slice(..rows));
    pe.host().reduce(pe.world(), sum, part, ReduceOp::Sum)?;
    pe.free(parts)?;
    pe.free(sums)
}
