//! A reduction is called on a stream that waits for another stream, where a later reduction of the same team runs first.
//!
//! Every PE does the same, so it looks harmless. Between GPUs, a team's collectives must run in the order of their calls:
//! libnvshmem hangs.

use onesided::{Backend, Cmp, Pe, ReduceOp, Result, SignalOp};

use crate::{Class, Label};

pub(crate) const LABEL: Label = Label::new(Class::Unordered, 2)
    .on_nvlink_too()
    .seen("MISUSE.md, row 29: libnvshmem 3.4.5 and 3.8.0 hang between GPUs");

pub(crate) fn buggy(pe: &Pe<impl Backend>) -> Result<()> {
    let (sums, parts) = (pe.alloc_zeroed::<u32>(2)?, pe.alloc_zeroed::<u32>(2)?);
    let (go, one, other) = (pe.alloc_zeroed::<u64>(1)?, pe.stream()?, pe.stream()?);
    pe.on(&one).signal_wait_until(go.signal(0), Cmp::Eq, 1)?;
    pe.on(&one).reduce(pe.world(), sums.at(0), parts.at(0), ReduceOp::Sum)?; // bug: first
    pe.on(&other).reduce(pe.world(), sums.at(1), parts.at(1), ReduceOp::Sum)?; // bug: second
    pe.on(&other).signal_op(go.signal(0), 1, SignalOp::Set, pe.my_pe())?;
    pe.synchronize(&one)?;
    pe.on(&other).quiet()?;
    pe.synchronize(&other)?;
    pe.free(go)?;
    pe.free(parts)?;
    pe.free(sums)
}

pub(crate) fn fixed(pe: &Pe<impl Backend>) -> Result<()> {
    let (sums, parts) = (pe.alloc_zeroed::<u32>(2)?, pe.alloc_zeroed::<u32>(2)?);
    let (go, one, other) = (pe.alloc_zeroed::<u64>(1)?, pe.stream()?, pe.stream()?);
    pe.on(&one).signal_wait_until(go.signal(0), Cmp::Eq, 1)?;
    pe.on(&other).reduce(pe.world(), sums.at(1), parts.at(1), ReduceOp::Sum)?;
    pe.on(&one).reduce(pe.world(), sums.at(0), parts.at(0), ReduceOp::Sum)?;
    pe.on(&other).signal_op(go.signal(0), 1, SignalOp::Set, pe.my_pe())?;
    pe.synchronize(&one)?;
    pe.on(&other).quiet()?;
    pe.synchronize(&other)?;
    pe.free(go)?;
    pe.free(parts)?;
    pe.free(sums)
}
