//! A barrier between neighbours counts arrivals in one word, and the next barrier counts on.
//!
//! A fast neighbour signals twice, for this barrier and the next, before the slow one has signalled at all. The count is
//! right and the barrier opens too early. Kernels of JAX that shared a barrier's semaphore met each other like this.

use onesided::{Backend, Cmp, Pe, Result, SignalOp, SymmetricBuf, expect_eq};

use crate::Label;

pub(crate) const LABEL: Label = Label::race(4).on_nvlink_too().seen("jax-ml/jax, pull request 27963");

pub(crate) fn buggy(pe: &Pe<impl Backend>) -> Result<()> {
    fn barrier(pe: &Pe<impl Backend>, arrived: &SymmetricBuf<u64>, step: u64) -> Result<()> {
        let (left, right) = neighbours(pe);
        pe.host().signal_op(arrived.signal(0), 1, SignalOp::Add, left)?;
        pe.host().signal_op(arrived.signal(0), 1, SignalOp::Add, right)?;
        pe.host().signal_wait_until(arrived.signal(0), Cmp::Ge, 2 * step)?;
        Ok(())
    }
    let (x, arrived) = (pe.alloc_zeroed::<u64>(2)?, pe.alloc_zeroed::<u64>(2)?);
    for step in 1..=2 {
        pe.write(x.at(step - 1), &[step as u64])?; // bug: first
        barrier(pe, &arrived, step as u64)?;
        let found = pe.host().g(x.at(step - 1), neighbours(pe).1)?; // bug: second
        expect_eq(found, step as u64, "the value of the neighbour")?;
    }
    pe.free(arrived)?;
    pe.free(x)
}

pub(crate) fn fixed(pe: &Pe<impl Backend>) -> Result<()> {
    fn barrier(pe: &Pe<impl Backend>, arrived: &SymmetricBuf<u64>, step: u64) -> Result<()> {
        let (left, right) = neighbours(pe);
        pe.host().signal_op(arrived.signal(0), 1, SignalOp::Add, left)?;
        pe.host().signal_op(arrived.signal(1), 1, SignalOp::Add, right)?;
        pe.host().signal_wait_until(arrived.signal(0), Cmp::Ge, step)?;
        pe.host().signal_wait_until(arrived.signal(1), Cmp::Ge, step)?;
        Ok(())
    }
    let (x, arrived) = (pe.alloc_zeroed::<u64>(2)?, pe.alloc_zeroed::<u64>(2)?);
    for step in 1..=2 {
        pe.write(x.at(step - 1), &[step as u64])?;
        barrier(pe, &arrived, step as u64)?;
        let found = pe.host().g(x.at(step - 1), neighbours(pe).1)?;
        expect_eq(found, step as u64, "the value of the neighbour")?;
    }
    pe.free(arrived)?;
    pe.free(x)
}

/// The PEs to the left and to the right.
fn neighbours(pe: &Pe<impl Backend>) -> (usize, usize) {
    let (me, n) = (pe.my_pe(), pe.n_pes());
    ((me + n - 1) % n, (me + 1) % n)
}
