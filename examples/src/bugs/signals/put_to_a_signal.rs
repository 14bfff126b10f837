//! A flag is written by a plain put and waited for as a signal.
//!
//! A signal wait promises to see signals. A put may reach the word in pieces, or by a way on which the wait does not look.

use onesided::{Backend, Cmp, Pe, Result, SignalOp};

use crate::Label;

pub(crate) const LABEL: Label = Label::race(2).on_nvlink_too().seen("MISUSE.md, row 25");

pub(crate) fn buggy(pe: &Pe<impl Backend>) -> Result<()> {
    let flag = pe.alloc_zeroed::<u64>(1)?;
    if pe.my_pe() == 0 {
        pe.host().p(flag.at(0), 1, 1)?; // bug: first
    } else {
        pe.host().signal_wait_until(flag.signal(0), Cmp::Eq, 1)?; // bug: second
    }
    pe.free(flag)
}

pub(crate) fn fixed(pe: &Pe<impl Backend>) -> Result<()> {
    let flag = pe.alloc_zeroed::<u64>(1)?;
    if pe.my_pe() == 0 {
        pe.host().signal_op(flag.signal(0), 1, SignalOp::Set, 1)?;
    } else {
        pe.host().signal_wait_until(flag.signal(0), Cmp::Eq, 1)?;
    }
    pe.free(flag)
}
