//! A ring passes chunks on, and one counter says how many have come: it is taken to say which ones.
//!
//! All put_signals are in flight together, and a later chunk can be the first to arrive. It satisfies the wait for an
//! earlier one. NVSHMEM's own example of a ring reduction computed wrong sums like this over InfiniBand.

use onesided::{Backend, Cmp, Pe, Result, SignalOp, expect_eq};

use crate::{Edit, Label};

pub(crate) const LABEL: Label = Label::race(2).on_nvlink_too().seen("NVIDIA/nvshmem, issue 84").fixed_by(Edit::Fence);

pub(crate) fn buggy(pe: &Pe<impl Backend>) -> Result<()> {
    let (me, next) = (pe.my_pe() as u32, (pe.my_pe() + 1) % pe.n_pes());
    let (sums, mine, arrived) = (pe.alloc_zeroed::<u32>(2)?, pe.alloc::<u32>(2)?, pe.alloc_zeroed::<u64>(1)?);
    pe.write(&mine, &[me + 1; 2])?;
    for chunk in 0..2 {
        let signal = arrived.signal(0);
        pe.host().put_signal_nbi(sums.at(chunk), mine.at(chunk), signal, 1, SignalOp::Add, next)?; // bug: first, fix
    }
    for chunk in 0..2 {
        pe.host().signal_wait_until(arrived.signal(0), Cmp::Ge, chunk as u64 + 1)?;
        let sum = pe.read_one(sums.at(chunk))? + me + 1; // bug: second
        expect_eq(sum, 3, "the sum of a chunk")?;
    }
    pe.free(arrived)?;
    pe.free(mine)?;
    pe.free(sums)
}

pub(crate) fn fixed(pe: &Pe<impl Backend>) -> Result<()> {
    let (me, next) = (pe.my_pe() as u32, (pe.my_pe() + 1) % pe.n_pes());
    let (sums, mine, arrived) = (pe.alloc_zeroed::<u32>(2)?, pe.alloc::<u32>(2)?, pe.alloc_zeroed::<u64>(1)?);
    pe.write(&mine, &[me + 1; 2])?;
    for chunk in 0..2 {
        let signal = arrived.signal(0);
        pe.host().put_signal_nbi(sums.at(chunk), mine.at(chunk), signal, 1, SignalOp::Add, next)?;
        pe.host().fence()?;
    }
    for chunk in 0..2 {
        pe.host().signal_wait_until(arrived.signal(0), Cmp::Ge, chunk as u64 + 1)?;
        let sum = pe.read_one(sums.at(chunk))? + me + 1;
        expect_eq(sum, 3, "the sum of a chunk")?;
    }
    pe.free(arrived)?;
    pe.free(mine)?;
    pe.free(sums)
}
