//! PE 0 puts to PE 2, and each waits at a barrier of its own half of the PEs.
//!
//! Both call "the barrier of my team", and it is not the same team. Nothing orders a put with a read across the halves.

use onesided::{Backend, Pe, Result, TeamConfig, expect_eq};

use crate::{Edit, Label};

pub(crate) const LABEL: Label = Label::race(4).on_nvlink_too().seen("MISUSE.md, row 15").fixed_by(Edit::Barrier);

pub(crate) fn buggy(pe: &Pe<impl Backend>) -> Result<()> {
    let x = pe.alloc_zeroed::<u32>(1)?;
    let (half, across) = pe.team_split_2d(pe.world(), 2, TeamConfig::default(), TeamConfig::default())?;
    if pe.my_pe() == 0 {
        pe.host().p(&x, 7, 2)?; // bug: first
    }
    pe.host().barrier(&half)?; // bug: fix
    if pe.my_pe() == 2 {
        expect_eq(pe.read_one(&x)?, 7, "the data")?; // bug: second
    }
    pe.team_destroy(across)?;
    pe.team_destroy(half)?;
    pe.free(x)
}

pub(crate) fn fixed(pe: &Pe<impl Backend>) -> Result<()> {
    let x = pe.alloc_zeroed::<u32>(1)?;
    let (half, across) = pe.team_split_2d(pe.world(), 2, TeamConfig::default(), TeamConfig::default())?;
    if pe.my_pe() == 0 {
        pe.host().p(&x, 7, 2)?;
    }
    pe.host().barrier(&across)?;
    if pe.my_pe() == 2 {
        expect_eq(pe.read_one(&x)?, 7, "the data")?;
    }
    pe.team_destroy(across)?;
    pe.team_destroy(half)?;
    pe.free(x)
}
