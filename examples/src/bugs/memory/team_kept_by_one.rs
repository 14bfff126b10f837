//! PE 0 destroys a team, and PE 1 keeps it.
//!
//! Destroying is collective. The team's resources stay taken, and there are few of them.

use onesided::{Backend, Pe, Result, TeamConfig};

use crate::{Class, Label};

pub(crate) const LABEL: Label = Label::new(Class::Leak, 2).on_nvlink_too().seen("MISUSE.md, row 40");

pub(crate) fn buggy(pe: &Pe<impl Backend>) -> Result<()> {
    let team = pe.team_split_strided(pe.world(), 0, 1, 2, TeamConfig::default())?; // bug: first
    if let Some(team) = team.filter(|_| pe.my_pe() == 0) {
        pe.team_destroy(team)?;
    }
    Ok(())
}

pub(crate) fn fixed(pe: &Pe<impl Backend>) -> Result<()> {
    let team = pe.team_split_strided(pe.world(), 0, 1, 2, TeamConfig::default())?;
    if let Some(team) = team {
        pe.team_destroy(team)?;
    }
    Ok(())
}
