//! Each round of a ping-pong resets its own flag first, and nothing makes the other PE wait for that.
//!
//! The faster PE sends its ping, the slower one overwrites it with zero and waits for ever. The latency benchmark of NVSHMEM
//! hung like this.

use onesided::{Backend, Cmp, Pe, Result, SignalOp};

use crate::{Edit, Label};

pub(crate) const LABEL: Label =
    Label::race(2).on_nvlink_too().seen("NVIDIA/nvshmem, pull request 98").fixed_by(Edit::Barrier);

pub(crate) fn buggy(pe: &Pe<impl Backend>) -> Result<()> {
    let flag = pe.alloc_zeroed::<u64>(1)?;
    for _round in 0..2 {
        pe.write(&flag, &[0])?; // bug: first, fix
        if pe.my_pe() == 0 {
            pe.host().signal_op(flag.signal(0), 1, SignalOp::Set, 1)?; // bug: second
            pe.host().signal_wait_until(flag.signal(0), Cmp::Eq, 1)?;
        } else {
            pe.host().signal_wait_until(flag.signal(0), Cmp::Eq, 1)?;
            pe.host().signal_op(flag.signal(0), 1, SignalOp::Set, 0)?;
        }
    }
    pe.free(flag)
}

pub(crate) fn fixed(pe: &Pe<impl Backend>) -> Result<()> {
    let flag = pe.alloc_zeroed::<u64>(1)?;
    for _round in 0..2 {
        pe.write(&flag, &[0])?;
        pe.host().barrier_all()?;
        if pe.my_pe() == 0 {
            pe.host().signal_op(flag.signal(0), 1, SignalOp::Set, 1)?;
            pe.host().signal_wait_until(flag.signal(0), Cmp::Eq, 1)?;
        } else {
            pe.host().signal_wait_until(flag.signal(0), Cmp::Eq, 1)?;
            pe.host().signal_op(flag.signal(0), 1, SignalOp::Set, 0)?;
        }
    }
    pe.free(flag)
}
