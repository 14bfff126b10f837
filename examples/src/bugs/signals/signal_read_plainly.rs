//! PE 1 looks whether a signal has come, by an ordinary read.
//!
//! An ordinary read may find an old value for ever, and what it finds says nothing about the data. signal_fetch is the call that
//! may look.

use onesided::{Backend, Pe, Result, SignalOp};

use crate::Label;

pub(crate) const LABEL: Label = Label::race(2).on_nvlink_too().seen("MISUSE.md, row 25");

pub(crate) fn buggy(pe: &Pe<impl Backend>) -> Result<()> {
    let flag = pe.alloc_zeroed::<u64>(1)?;
    if pe.my_pe() == 0 {
        pe.host().signal_op(flag.signal(0), 1, SignalOp::Set, 1)?; // bug: first
    } else {
        let _has_come = pe.read_one(flag.at(0))? == 1; // bug: second
    }
    pe.free(flag)
}

pub(crate) fn fixed(pe: &Pe<impl Backend>) -> Result<()> {
    let flag = pe.alloc_zeroed::<u64>(1)?;
    if pe.my_pe() == 0 {
        pe.host().signal_op(flag.signal(0), 1, SignalOp::Set, 1)?;
    } else {
        let _has_come = pe.host().signal_fetch(flag.signal(0))? == 1;
    }
    pe.free(flag)
}
