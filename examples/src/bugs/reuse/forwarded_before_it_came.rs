//! In a chain, PE 1 passes a block on to PE 2 and waits for it afterwards.
//!
//! It forwards what was in the buffer before. Two lines stand in the wrong order.

use onesided::{Backend, Cmp, Pe, Result, SignalOp, expect_eq};

use crate::Label;

pub(crate) const LABEL: Label = Label::race(3).on_nvlink_too().seen("MISUSE.md, row 15");

pub(crate) fn buggy(pe: &Pe<impl Backend>) -> Result<()> {
    let (block, new, flag) = (pe.alloc_zeroed::<u32>(1)?, pe.alloc::<u32>(1)?, pe.alloc_zeroed::<u64>(1)?);
    let signal = flag.signal(0);
    if pe.my_pe() == 0 {
        pe.write(&new, &[7])?;
        pe.host().put_signal(&block, &new, signal, 1, SignalOp::Set, 1)?; // bug: first
    } else if pe.my_pe() == 1 {
        pe.host().put_signal(&block, &block, signal, 1, SignalOp::Set, 2)?; // bug: second
        pe.host().signal_wait_until(signal, Cmp::Eq, 1)?;
    } else {
        pe.host().signal_wait_until(signal, Cmp::Eq, 1)?;
        expect_eq(pe.read_one(&block)?, 7, "the block")?;
    }
    pe.free(flag)?;
    pe.free(new)?;
    pe.free(block)
}

pub(crate) fn fixed(pe: &Pe<impl Backend>) -> Result<()> {
    let (block, new, flag) = (pe.alloc_zeroed::<u32>(1)?, pe.alloc::<u32>(1)?, pe.alloc_zeroed::<u64>(1)?);
    let signal = flag.signal(0);
    if pe.my_pe() == 0 {
        pe.write(&new, &[7])?;
        pe.host().put_signal(&block, &new, signal, 1, SignalOp::Set, 1)?;
    } else if pe.my_pe() == 1 {
        pe.host().signal_wait_until(signal, Cmp::Eq, 1)?;
        pe.host().put_signal(&block, &block, signal, 1, SignalOp::Set, 2)?;
    } else {
        pe.host().signal_wait_until(signal, Cmp::Eq, 1)?;
        expect_eq(pe.read_one(&block)?, 7, "the block")?;
    }
    pe.free(flag)?;
    pe.free(new)?;
    pe.free(block)
}
