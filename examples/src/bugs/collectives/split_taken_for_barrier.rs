//! A team is split off between a put and the read of its data.
//!
//! All PEs take part in a split, and the library at hand may synchronize there. No text promises that it does.

use onesided::{Backend, Pe, Result, TeamConfig, expect_eq};

use crate::{Edit, Label};

pub(crate) const LABEL: Label = Label::race(2).on_nvlink_too().seen("MISUSE.md, row 19").fixed_by(Edit::Barrier);

pub(crate) fn buggy(pe: &Pe<impl Backend>) -> Result<()> {
    let x = pe.alloc_zeroed::<u32>(1)?;
    let mut found = 7; // what PE 1 finds
    if pe.my_pe() == 0 {
        pe.host().p(&x, 7, 1)?; // bug: first
        pe.host().quiet()?;
    }
    let team = pe.team_split_strided(pe.world(), 0, 1, 2, TeamConfig::default())?; // bug: fix
    if pe.my_pe() == 1 {
        found = pe.read_one(&x)?; // bug: second
    }
    pe.team_destroy(team.expect("both PEs are members"))?;
    pe.free(x)?;
    expect_eq(found, 7, "the data")
}

pub(crate) fn fixed(pe: &Pe<impl Backend>) -> Result<()> {
    let x = pe.alloc_zeroed::<u32>(1)?;
    let mut found = 7; // what PE 1 finds
    if pe.my_pe() == 0 {
        pe.host().p(&x, 7, 1)?;
        pe.host().quiet()?;
    }
    let team = pe.team_split_strided(pe.world(), 0, 1, 2, TeamConfig::default())?;
    pe.host().barrier_all()?;
    if pe.my_pe() == 1 {
        found = pe.read_one(&x)?;
    }
    pe.team_destroy(team.expect("both PEs are members"))?;
    pe.free(x)?;
    expect_eq(found, 7, "the data")
}
