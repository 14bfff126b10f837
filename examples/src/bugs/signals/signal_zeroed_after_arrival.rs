//! Each PE zeroes its signal after the collective allocation, and PE 0 sends at once.
//!
//! The allocation is where the PEs meet, so the signal may come before the zero, which deletes it. PE 1 then waits for ever.
//! PyTorch's allocator for NVSHMEM zeroed its signals like this, and so does the tutorial of NVSHMEM4Py.

use onesided::{Backend, Cmp, Pe, Result, SignalOp, expect_eq};

use crate::{Edit, Label};

pub(crate) const LABEL: Label = Label::race(2)
    .on_nvlink_too()
    .seen("NVSHMEM4Py tutorial, put-with-signal cell; pytorch/pytorch, pull request 196546")
    .fixed_by(Edit::Barrier);

pub(crate) fn buggy(pe: &Pe<impl Backend>) -> Result<()> {
    let (dst, src, signal) = (pe.alloc::<f32>(1)?, pe.alloc::<f32>(1)?, pe.alloc::<u64>(1)?);
    pe.write(&src, &[pe.my_pe() as f32 + 1.0])?;
    pe.write(&signal, &[0])?; // bug: first, fix
    if pe.my_pe() == 0 {
        pe.host().put_signal(&dst, &src, signal.signal(0), 1, SignalOp::Set, 1)?; // bug: second
    } else {
        pe.host().signal_wait_until(signal.signal(0), Cmp::Eq, 1)?;
        expect_eq(pe.read_one(&dst)?, 1.0, "the data")?;
    }
    pe.free(signal)?;
    pe.free(src)?;
    pe.free(dst)
}

pub(crate) fn fixed(pe: &Pe<impl Backend>) -> Result<()> {
    let (dst, src, signal) = (pe.alloc::<f32>(1)?, pe.alloc::<f32>(1)?, pe.alloc::<u64>(1)?);
    pe.write(&src, &[pe.my_pe() as f32 + 1.0])?;
    pe.write(&signal, &[0])?;
    pe.host().barrier_all()?;
    if pe.my_pe() == 0 {
        pe.host().put_signal(&dst, &src, signal.signal(0), 1, SignalOp::Set, 1)?;
    } else {
        pe.host().signal_wait_until(signal.signal(0), Cmp::Eq, 1)?;
        expect_eq(pe.read_one(&dst)?, 1.0, "the data")?;
    }
    pe.free(signal)?;
    pe.free(src)?;
    pe.free(dst)
}
