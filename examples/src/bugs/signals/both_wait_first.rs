//! Two PEs exchange signals, and each waits for the other's before it sends its own.
//!
//! Nobody begins. It hangs every time.

use onesided::{Backend, Cmp, Pe, Result, SignalOp};

use crate::Label;

pub(crate) const LABEL: Label = Label::deadlock(2).on_nvlink_too().seen("conformance suite, misuse/both_wait_first");

pub(crate) fn buggy(pe: &Pe<impl Backend>) -> Result<()> {
    let flag = pe.alloc_zeroed::<u64>(1)?;
    pe.host().signal_wait_until(flag.signal(0), Cmp::Eq, 1)?; // bug: first, second
    pe.host().signal_op(flag.signal(0), 1, SignalOp::Set, 1 - pe.my_pe())?;
    pe.free(flag)
}

pub(crate) fn fixed(pe: &Pe<impl Backend>) -> Result<()> {
    let flag = pe.alloc_zeroed::<u64>(1)?;
    pe.host().signal_op(flag.signal(0), 1, SignalOp::Set, 1 - pe.my_pe())?;
    pe.host().signal_wait_until(flag.signal(0), Cmp::Eq, 1)?;
    pe.free(flag)
}
