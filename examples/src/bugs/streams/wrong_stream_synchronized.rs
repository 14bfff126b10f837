//! A reduction runs on one stream, and the host waits for another one.
//!
//! With two streams at hand it is easily done, above all when a library makes one of them. The host reads an old result.

use onesided::{Backend, Pe, ReduceOp, Result, expect_eq};

use crate::{Edit, Label};

pub(crate) const LABEL: Label =
    Label::race(2).on_nvlink_too().seen("NVIDIA/nvshmem, issue 66").fixed_by(Edit::Synchronize);

pub(crate) fn buggy(pe: &Pe<impl Backend>) -> Result<()> {
    let (sum, part) = (pe.alloc_zeroed::<u32>(1)?, pe.alloc::<u32>(1)?);
    let (compute, copy) = (pe.stream()?, pe.stream()?);
    pe.write(&part, &[3])?;
    pe.on(&compute).reduce(pe.world(), &sum, &part, ReduceOp::Sum)?; // bug: first, fix
    pe.synchronize(&copy)?;
    let found = pe.read_one(&sum)?; // bug: second
    pe.synchronize(&compute)?;
    expect_eq(found, 6, "the sum")?;
    pe.free(part)?;
    pe.free(sum)
}

pub(crate) fn fixed(pe: &Pe<impl Backend>) -> Result<()> {
    let (sum, part) = (pe.alloc_zeroed::<u32>(1)?, pe.alloc::<u32>(1)?);
    let compute = pe.stream()?;
    pe.write(&part, &[3])?;
    pe.on(&compute).reduce(pe.world(), &sum, &part, ReduceOp::Sum)?;
    pe.synchronize(&compute)?;
    let found = pe.read_one(&sum)?;
    expect_eq(found, 6, "the sum")?;
    pe.free(part)?;
    pe.free(sum)
}
