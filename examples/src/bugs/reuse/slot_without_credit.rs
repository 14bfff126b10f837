//! A producer puts one block after the other into the same slot, and the consumer never says that it is done with one.
//!
//! A fast producer overwrites the block that is being read. DeepEP keeps two sets of buffers because its signals go one way only.

use onesided::{Backend, Cmp, Pe, Result, SignalOp, expect_eq};

use crate::{Edit, Label};

pub(crate) const LABEL: Label =
    Label::race(2).on_nvlink_too().seen("deepseek-ai/DeepEP, issue 166").fixed_by(Edit::Barrier);

pub(crate) fn buggy(pe: &Pe<impl Backend>) -> Result<()> {
    let (slot, block, full) = (pe.alloc_zeroed::<u64>(1)?, pe.alloc::<u64>(1)?, pe.alloc_zeroed::<u64>(1)?);
    for round in 1..=2 {
        if pe.my_pe() == 0 {
            pe.write(&block, &[round])?;
            pe.host().put_signal(&slot, &block, full.signal(0), round, SignalOp::Set, 1)?; // bug: second
            pe.host().quiet()?;
        } else {
            pe.host().signal_wait_until(full.signal(0), Cmp::Ge, round)?;
            expect_eq(pe.read_one(&slot)?, round, "the block")?; // bug: first
        } // bug: fix
    }
    pe.free(full)?;
    pe.free(block)?;
    pe.free(slot)
}

pub(crate) fn fixed(pe: &Pe<impl Backend>) -> Result<()> {
    let (slot, block, full) = (pe.alloc_zeroed::<u64>(1)?, pe.alloc::<u64>(1)?, pe.alloc_zeroed::<u64>(1)?);
    let empty = pe.alloc_zeroed::<u64>(1)?;
    for round in 1..=2 {
        if pe.my_pe() == 0 {
            pe.write(&block, &[round])?;
            pe.host().put_signal(&slot, &block, full.signal(0), round, SignalOp::Set, 1)?;
            pe.host().signal_wait_until(empty.signal(0), Cmp::Ge, round)?;
        } else {
            pe.host().signal_wait_until(full.signal(0), Cmp::Ge, round)?;
            expect_eq(pe.read_one(&slot)?, round, "the block")?;
            pe.host().signal_op(empty.signal(0), round, SignalOp::Set, 0)?;
        }
    }
    pe.free(empty)?;
    pe.free(full)?;
    pe.free(block)?;
    pe.free(slot)
}
