//! PEs 2 and 3 make a team of their own, and tell team_init the number of PEs in the world.
//!
//! The call waits for four members, and two come. The teams cell of NVSHMEM4Py's tutorial does this.

use onesided::{Backend, Pe, Result, TeamConfig, TeamUniqueId};

use crate::Label;

pub(crate) const LABEL: Label = Label::deadlock(4).on_nvlink_too().seen("NVSHMEM4Py tutorial, teams cell");

pub(crate) fn buggy(pe: &Pe<impl Backend>) -> Result<()> {
    let x = pe.alloc_zeroed::<u32>(1)?;
    let (me, n) = (pe.my_pe(), pe.n_pes());
    if me >= 2 {
        let config = TeamConfig { unique_id: Some(TeamUniqueId(1004)), ..TeamConfig::default() };
        let team = pe.team_init(config, n, me)?; // bug: first
        pe.team_destroy(team)?;
    }
    pe.free(x) // bug: second
}

pub(crate) fn fixed(pe: &Pe<impl Backend>) -> Result<()> {
    let x = pe.alloc_zeroed::<u32>(1)?;
    let me = pe.my_pe();
    if me >= 2 {
        let config = TeamConfig { unique_id: Some(TeamUniqueId(1004)), ..TeamConfig::default() };
        let team = pe.team_init(config, 2, me - 2)?;
        pe.team_destroy(team)?;
    }
    pe.free(x)
}
