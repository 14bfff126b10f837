//! One stream produces a block, another one sends it, and no event orders the two.
//!
//! The calls stand in the right order, but they only enqueue. Streams run at the same time, so PE 1 may get the old block.

use onesided::{Backend, Pe, Result, expect_eq};

use crate::{Edit, Label};

pub(crate) const LABEL: Label = Label::race(2).on_nvlink_too().seen("MISUSE.md, row 22").fixed_by(Edit::Synchronize);

pub(crate) fn buggy(pe: &Pe<impl Backend>) -> Result<()> {
    let (dst, block) = (pe.alloc_zeroed::<u32>(1)?, pe.alloc_zeroed::<u32>(1)?);
    let (produce, send) = (pe.stream()?, pe.stream()?);
    if pe.my_pe() == 0 {
        pe.on(&produce).write(&block, &[7])?; // bug: first, fix
        pe.on(&send).put(&dst, &block, 1)?; // bug: second
        pe.synchronize(&produce)?;
    }
    pe.on(&send).barrier_all()?;
    pe.synchronize(&send)?;
    if pe.my_pe() == 1 {
        expect_eq(pe.read_one(&dst)?, 7, "the block")?;
    }
    pe.free(block)?;
    pe.free(dst)
}

pub(crate) fn fixed(pe: &Pe<impl Backend>) -> Result<()> {
    let (dst, block) = (pe.alloc_zeroed::<u32>(1)?, pe.alloc_zeroed::<u32>(1)?);
    let (produce, send, ready) = (pe.stream()?, pe.stream()?, pe.event()?);
    if pe.my_pe() == 0 {
        pe.on(&produce).write(&block, &[7])?;
        pe.record(&ready, &produce)?;
        pe.wait_event(&ready, &send)?;
        pe.on(&send).put(&dst, &block, 1)?;
        pe.synchronize(&produce)?;
    }
    pe.on(&send).barrier_all()?;
    pe.synchronize(&send)?;
    if pe.my_pe() == 1 {
        expect_eq(pe.read_one(&dst)?, 7, "the block")?;
    }
    pe.free(block)?;
    pe.free(dst)
}
