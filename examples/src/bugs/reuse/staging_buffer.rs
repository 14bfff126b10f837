//! One staging buffer serves all peers: it is filled for each in turn, and put without blocking.
//!
//! The fill for the next peer can come before the put to this one has read the buffer. Then a PE gets its neighbour's data.

use onesided::{Backend, Pe, Result, expect_eq};

use crate::{Edit, Label};

pub(crate) const LABEL: Label = Label::race(3).on_nvlink_too().seen("MISUSE.md, row 13").fixed_by(Edit::Flush);

pub(crate) fn buggy(pe: &Pe<impl Backend>) -> Result<()> {
    let (inbox, staging) = (pe.alloc_zeroed::<u32>(1)?, pe.alloc::<u32>(1)?);
    if pe.my_pe() == 0 {
        for peer in 1..pe.n_pes() {
            pe.write(&staging, &[peer as u32])?; // bug: second
            pe.host().put_nbi(&inbox, &staging, peer)?; // bug: first, fix
        }
    }
    pe.host().barrier_all()?;
    expect_eq(pe.read_one(&inbox)?, pe.my_pe() as u32, "what is in the inbox")?;
    pe.free(staging)?;
    pe.free(inbox)
}

pub(crate) fn fixed(pe: &Pe<impl Backend>) -> Result<()> {
    let (inbox, staging) = (pe.alloc_zeroed::<u32>(1)?, pe.alloc::<u32>(1)?);
    if pe.my_pe() == 0 {
        for peer in 1..pe.n_pes() {
            pe.write(&staging, &[peer as u32])?;
            pe.host().put_nbi(&inbox, &staging, peer)?;
            pe.host().flush()?;
        }
    }
    pe.host().barrier_all()?;
    expect_eq(pe.read_one(&inbox)?, pe.my_pe() as u32, "what is in the inbox")?;
    pe.free(staging)?;
    pe.free(inbox)
}
