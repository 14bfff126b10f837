//! The consumer copies the block away on a stream, and its host gives the credit back at once.
//!
//! The copy has only been enqueued. The producer's next block can be what it finds in the slot.

use onesided::{Backend, Cmp, Pe, Result, SignalOp, expect_eq};

use crate::{Edit, Label};

pub(crate) const LABEL: Label = Label::race(2).on_nvlink_too().seen("MISUSE.md, row 22").fixed_by(Edit::Synchronize);

pub(crate) fn buggy(pe: &Pe<impl Backend>) -> Result<()> {
    let (slot, block, out) = (pe.alloc_zeroed::<u64>(1)?, pe.alloc::<u64>(1)?, pe.alloc::<u64>(1)?);
    let flags = pe.alloc_zeroed::<u64>(2)?;
    let (full, empty, stream) = (flags.signal(0), flags.signal(1), pe.stream()?);
    if pe.my_pe() == 0 {
        for round in 1..=2 {
            pe.write(&block, &[round])?;
            pe.host().put_signal(&slot, &block, full, round, SignalOp::Set, 1)?; // bug: second
            pe.host().signal_wait_until(empty, Cmp::Ge, 1)?;
        }
    } else {
        pe.host().signal_wait_until(full, Cmp::Ge, 1)?;
        pe.on(&stream).get(&out, &slot, 1)?; // bug: first, fix
        pe.host().signal_op(empty, 1, SignalOp::Set, 0)?;
        pe.synchronize(&stream)?;
        expect_eq(pe.read_one(&out)?, 1, "the copy of the block")?;
    }
    pe.free(flags)?;
    pe.free(out)?;
    pe.free(block)?;
    pe.free(slot)
}

pub(crate) fn fixed(pe: &Pe<impl Backend>) -> Result<()> {
    let (slot, block, out) = (pe.alloc_zeroed::<u64>(1)?, pe.alloc::<u64>(1)?, pe.alloc::<u64>(1)?);
    let flags = pe.alloc_zeroed::<u64>(2)?;
    let (full, empty, stream) = (flags.signal(0), flags.signal(1), pe.stream()?);
    if pe.my_pe() == 0 {
        for round in 1..=2 {
            pe.write(&block, &[round])?;
            pe.host().put_signal(&slot, &block, full, round, SignalOp::Set, 1)?;
            pe.host().signal_wait_until(empty, Cmp::Ge, 1)?;
        }
    } else {
        pe.host().signal_wait_until(full, Cmp::Ge, 1)?;
        pe.on(&stream).get(&out, &slot, 1)?;
        pe.synchronize(&stream)?;
        pe.host().signal_op(empty, 1, SignalOp::Set, 0)?;
        expect_eq(pe.read_one(&out)?, 1, "the copy of the block")?;
    }
    pe.free(flags)?;
    pe.free(out)?;
    pe.free(block)?;
    pe.free(slot)
}
