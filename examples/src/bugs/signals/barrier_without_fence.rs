//! A barrier made of atomic sets: each PE sets its epoch at every other one, and no fence orders one barrier after the last.
//!
//! On a network that keeps no order, the epoch of the second barrier arrives before that of the first, which then
//! overwrites it. The next wait never ends. NVSHMEM's initialization hung like this.

use onesided::{Backend, Cmp, Pe, Result, SymmetricBuf};

use crate::{Edit, Label};

pub(crate) const LABEL: Label = Label::deadlock(2).seen("NVIDIA/nvshmem, pull request 36").fixed_by(Edit::Fence);

pub(crate) fn buggy(pe: &Pe<impl Backend>) -> Result<()> {
    fn barrier(pe: &Pe<impl Backend>, arrived: &SymmetricBuf<u64>, epoch: u64) -> Result<()> {
        let (me, other) = (pe.my_pe(), 1 - pe.my_pe());
        pe.host().atomic_set(arrived.at(me), epoch, other)?; // bug: fix
        pe.host().wait_until(arrived.at(other), Cmp::Ge, epoch) // bug: first
    }
    let arrived = pe.alloc_zeroed::<u64>(2)?;
    barrier(pe, &arrived, 1)?;
    barrier(pe, &arrived, 2)?;
    pe.free(arrived) // bug: second
}

pub(crate) fn fixed(pe: &Pe<impl Backend>) -> Result<()> {
    fn barrier(pe: &Pe<impl Backend>, arrived: &SymmetricBuf<u64>, epoch: u64) -> Result<()> {
        let (me, other) = (pe.my_pe(), 1 - pe.my_pe());
        pe.host().fence()?;
        pe.host().atomic_set(arrived.at(me), epoch, other)?;
        pe.host().wait_until(arrived.at(other), Cmp::Ge, epoch)
    }
    let arrived = pe.alloc_zeroed::<u64>(2)?;
    barrier(pe, &arrived, 1)?;
    barrier(pe, &arrived, 2)?;
    pe.free(arrived)
}
