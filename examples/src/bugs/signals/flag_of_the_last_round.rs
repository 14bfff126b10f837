//! Every round sends the same flag value, and nobody resets it.
//!
//! The first round works. In the second the wait is satisfied by the flag of the first, before the data has come.

use onesided::{Backend, Cmp, Pe, Result, SignalOp, expect_eq};

use crate::Label;

pub(crate) const LABEL: Label = Label::race(2).on_nvlink_too().seen("MISUSE.md, row 15");

pub(crate) fn buggy(pe: &Pe<impl Backend>) -> Result<()> {
    let (dst, src, flags) = (pe.alloc_zeroed::<u32>(2)?, pe.alloc::<u32>(2)?, pe.alloc_zeroed::<u64>(2)?);
    let mut found = Vec::new();
    pe.write(&src, &[1, 2])?;
    for round in 0..2 {
        let flag = flags.signal(0);
        if pe.my_pe() == 0 {
            pe.host().put_signal(dst.at(round), src.at(round), flag, 1, SignalOp::Set, 1)?; // bug: first
        } else {
            pe.host().signal_wait_until(flag, Cmp::Eq, 1)?;
            found.push(pe.read_one(dst.at(round))?); // bug: second
        }
    }
    pe.free(flags)?;
    pe.free(src)?;
    pe.free(dst)?;
    if pe.my_pe() == 1 { expect_eq(found, vec![1, 2], "the data of the rounds") } else { Ok(()) }
}

pub(crate) fn fixed(pe: &Pe<impl Backend>) -> Result<()> {
    let (dst, src, flags) = (pe.alloc_zeroed::<u32>(2)?, pe.alloc::<u32>(2)?, pe.alloc_zeroed::<u64>(2)?);
    let mut found = Vec::new();
    pe.write(&src, &[1, 2])?;
    for round in 0..2 {
        let flag = flags.signal(round);
        if pe.my_pe() == 0 {
            pe.host().put_signal(dst.at(round), src.at(round), flag, 1, SignalOp::Set, 1)?;
        } else {
            pe.host().signal_wait_until(flag, Cmp::Eq, 1)?;
            found.push(pe.read_one(dst.at(round))?);
        }
    }
    pe.free(flags)?;
    pe.free(src)?;
    pe.free(dst)?;
    if pe.my_pe() == 1 { expect_eq(found, vec![1, 2], "the data of the rounds") } else { Ok(()) }
}
