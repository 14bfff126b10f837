//! The consumer gives its credit back when the block has come, and reads the block afterwards.
//!
//! With the credit the producer may fill the slot again, under the eyes of the reader. Two lines stand in the wrong order.

use onesided::{Backend, Cmp, Pe, Result, SignalOp, expect_eq};

use crate::Label;

pub(crate) const LABEL: Label = Label::race(2).on_nvlink_too().seen("MISUSE.md, row 15");

pub(crate) fn buggy(pe: &Pe<impl Backend>) -> Result<()> {
    let (slot, block, flags) = (pe.alloc_zeroed::<u64>(1)?, pe.alloc::<u64>(1)?, pe.alloc_zeroed::<u64>(2)?);
    let (full, empty) = (flags.signal(0), flags.signal(1));
    for round in 1..=2 {
        if pe.my_pe() == 0 {
            pe.write(&block, &[round])?;
            pe.host().put_signal(&slot, &block, full, round, SignalOp::Set, 1)?; // bug: second
            pe.host().signal_wait_until(empty, Cmp::Ge, round)?;
        } else {
            pe.host().signal_wait_until(full, Cmp::Ge, round)?;
            pe.host().signal_op(empty, round, SignalOp::Set, 0)?;
            expect_eq(pe.read_one(&slot)?, round, "the block")?; // bug: first
        }
    }
    pe.free(flags)?;
    pe.free(block)?;
    pe.free(slot)
}

pub(crate) fn fixed(pe: &Pe<impl Backend>) -> Result<()> {
    let (slot, block, flags) = (pe.alloc_zeroed::<u64>(1)?, pe.alloc::<u64>(1)?, pe.alloc_zeroed::<u64>(2)?);
    let (full, empty) = (flags.signal(0), flags.signal(1));
    for round in 1..=2 {
        if pe.my_pe() == 0 {
            pe.write(&block, &[round])?;
            pe.host().put_signal(&slot, &block, full, round, SignalOp::Set, 1)?;
            pe.host().signal_wait_until(empty, Cmp::Ge, round)?;
        } else {
            pe.host().signal_wait_until(full, Cmp::Ge, round)?;
            expect_eq(pe.read_one(&slot)?, round, "the block")?;
            pe.host().signal_op(empty, round, SignalOp::Set, 0)?;
        }
    }
    pe.free(flags)?;
    pe.free(block)?;
    pe.free(slot)
}
