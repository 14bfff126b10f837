//! A store through a peer's pointer, then a get of the same word.
//!
//! The PE's own loads through the pointer see the store at once. A get is a transfer: it may find the value before it. A quiet between them is
//! enough, and where a fence completes, as over NVLink, a fence is.

use onesided::{Backend, Pe, Result, expect_eq};

use crate::Label;

pub(crate) const LABEL: Label = Label::race(2).on_nvlink_too().seen("conformance suite, buffer/peer_store_then_get");

pub(crate) fn buggy(pe: &Pe<impl Backend>) -> Result<()> {
    let data = pe.alloc_zeroed::<i64>(1)?;
    if pe.my_pe() == 0 {
        let peer = pe.peer(&data, 1)?.expect("both PEs are on one node");
        peer.write(&[7])?; // bug: first
        expect_eq(pe.host().g(&data, 1)?, 7, "the data")?; // bug: second
    }
    pe.free(data)
}

pub(crate) fn fixed(pe: &Pe<impl Backend>) -> Result<()> {
    let data = pe.alloc_zeroed::<i64>(1)?;
    if pe.my_pe() == 0 {
        let peer = pe.peer(&data, 1)?.expect("both PEs are on one node");
        peer.write(&[7])?;
        pe.host().quiet()?;
        expect_eq(pe.host().g(&data, 1)?, 7, "the data")?;
    }
    pe.free(data)
}
