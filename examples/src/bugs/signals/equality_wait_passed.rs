//! Two PEs add to a counter, and a third waits until it is exactly one.
//!
//! If both additions come before the wait looks, the counter is two and the wait never ends. It hangs now and then, when
//! the waiting PE is late.

use onesided::{Backend, Cmp, Pe, Result, SignalOp};

use crate::Label;

pub(crate) const LABEL: Label = Label::deadlock(3).on_nvlink_too().seen("MISUSE.md, row 26");

pub(crate) fn buggy(pe: &Pe<impl Backend>) -> Result<()> {
    let arrived = pe.alloc_zeroed::<u64>(1)?;
    if pe.my_pe() > 0 {
        pe.host().signal_op(arrived.signal(0), 1, SignalOp::Add, 0)?;
    } else {
        pe.host().signal_wait_until(arrived.signal(0), Cmp::Eq, 1)?; // bug: first
    }
    pe.free(arrived) // bug: second
}

pub(crate) fn fixed(pe: &Pe<impl Backend>) -> Result<()> {
    let arrived = pe.alloc_zeroed::<u64>(1)?;
    if pe.my_pe() > 0 {
        pe.host().signal_op(arrived.signal(0), 1, SignalOp::Add, 0)?;
    } else {
        pe.host().signal_wait_until(arrived.signal(0), Cmp::Ge, 1)?;
    }
    pe.free(arrived)
}
