//! PE 0 reports stages one and two by the value of a flag, and PE 1 waits until it is exactly one.
//!
//! If PE 1 is slow, the flag has passed one already. A wait for "at least" misses nothing.

use onesided::{Backend, Cmp, Pe, Result, SignalOp};

use crate::Label;

pub(crate) const LABEL: Label = Label::deadlock(2).on_nvlink_too().seen("MISUSE.md, row 26");

pub(crate) fn buggy(pe: &Pe<impl Backend>) -> Result<()> {
    let stage = pe.alloc_zeroed::<u64>(1)?;
    if pe.my_pe() == 0 {
        pe.host().signal_op(stage.signal(0), 1, SignalOp::Set, 1)?;
        pe.host().fence()?;
        pe.host().signal_op(stage.signal(0), 2, SignalOp::Set, 1)?;
    } else {
        pe.host().signal_wait_until(stage.signal(0), Cmp::Eq, 1)?; // bug: first
    }
    pe.free(stage) // bug: second
}

pub(crate) fn fixed(pe: &Pe<impl Backend>) -> Result<()> {
    let stage = pe.alloc_zeroed::<u64>(1)?;
    if pe.my_pe() == 0 {
        pe.host().signal_op(stage.signal(0), 1, SignalOp::Set, 1)?;
        pe.host().fence()?;
        pe.host().signal_op(stage.signal(0), 2, SignalOp::Set, 1)?;
    } else {
        pe.host().signal_wait_until(stage.signal(0), Cmp::Ge, 1)?;
    }
    pe.free(stage)
}
