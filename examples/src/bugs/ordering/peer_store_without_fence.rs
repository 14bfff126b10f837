//! A store through a peer's pointer, then a signal to that peer.
//!
//! The pointer makes a put look like an assignment. For other PEs it is ordered like a put: by a fence, quiet, sync or barrier.

use onesided::{Backend, Cmp, Pe, Result, SignalOp, expect_eq};

use crate::{Edit, Label};

pub(crate) const LABEL: Label =
    Label::race(2).seen("conformance suite, order/peer_store_unfenced").fixed_by(Edit::Fence);

pub(crate) fn buggy(pe: &Pe<impl Backend>) -> Result<()> {
    let (data, flag) = (pe.alloc_zeroed::<i64>(1)?, pe.alloc_zeroed::<u64>(1)?);
    if pe.my_pe() == 0 {
        let peer = pe.peer(&data, 1)?.expect("both PEs are on one node");
        peer.write(&[7])?; // bug: first, fix
        pe.host().signal_op(flag.signal(0), 1, SignalOp::Set, 1)?;
    } else {
        pe.host().signal_wait_until(flag.signal(0), Cmp::Eq, 1)?;
        expect_eq(pe.read_one(&data)?, 7, "the data")?; // bug: second
    }
    pe.free(flag)?;
    pe.free(data)
}

pub(crate) fn fixed(pe: &Pe<impl Backend>) -> Result<()> {
    let (data, flag) = (pe.alloc_zeroed::<i64>(1)?, pe.alloc_zeroed::<u64>(1)?);
    if pe.my_pe() == 0 {
        let peer = pe.peer(&data, 1)?.expect("both PEs are on one node");
        peer.write(&[7])?;
        pe.host().fence()?;
        pe.host().signal_op(flag.signal(0), 1, SignalOp::Set, 1)?;
    } else {
        pe.host().signal_wait_until(flag.signal(0), Cmp::Eq, 1)?;
        expect_eq(pe.read_one(&data)?, 7, "the data")?;
    }
    pe.free(flag)?;
    pe.free(data)
}
