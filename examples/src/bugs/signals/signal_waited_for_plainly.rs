//! A flag is set by signal_op and waited for by wait_until instead of signal_wait_until.
//!
//! NVSHMEM promises that signals are seen by signal waits. The other wait may never see one. A test of PyTorch's symmetric
//! memory hung like this.

use onesided::{Backend, Cmp, Pe, Result, SignalOp, expect_eq};

use crate::{Class, Label};

pub(crate) const LABEL: Label = Label::new(Class::Lint, 2).on_nvlink_too().seen("pytorch/pytorch, pull request 158167");

pub(crate) fn buggy(pe: &Pe<impl Backend>) -> Result<()> {
    let (data, flag) = (pe.alloc_zeroed::<i64>(1)?, pe.alloc_zeroed::<u64>(1)?);
    if pe.my_pe() == 0 {
        pe.host().p(&data, 7, 1)?;
        pe.host().fence()?;
        pe.host().signal_op(flag.signal(0), 1, SignalOp::Set, 1)?; // bug: first
    } else {
        pe.host().wait_until(flag.at(0), Cmp::Eq, 1)?; // bug: second
        expect_eq(pe.read_one(&data)?, 7, "the data")?;
    }
    pe.free(flag)?;
    pe.free(data)
}

pub(crate) fn fixed(pe: &Pe<impl Backend>) -> Result<()> {
    let (data, flag) = (pe.alloc_zeroed::<i64>(1)?, pe.alloc_zeroed::<u64>(1)?);
    if pe.my_pe() == 0 {
        pe.host().p(&data, 7, 1)?;
        pe.host().fence()?;
        pe.host().signal_op(flag.signal(0), 1, SignalOp::Set, 1)?;
    } else {
        pe.host().signal_wait_until(flag.signal(0), Cmp::Eq, 1)?;
        expect_eq(pe.read_one(&data)?, 7, "the data")?;
    }
    pe.free(flag)?;
    pe.free(data)
}
