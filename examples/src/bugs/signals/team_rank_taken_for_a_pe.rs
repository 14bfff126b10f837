//! In a team of PEs 1 and 3, each signals the next rank of the team: the rank is used as the number of a PE.
//!
//! One-sided calls take numbers of the whole job, teams count from zero. The signals go astray and PE 3 waits for ever.

use onesided::{Backend, Cmp, Pe, Result, SignalOp, TeamConfig};

use crate::Label;

pub(crate) const LABEL: Label = Label::deadlock(4).on_nvlink_too().seen("memory model, section 6: roots and PEs");

pub(crate) fn buggy(pe: &Pe<impl Backend>) -> Result<()> {
    let flag = pe.alloc_zeroed::<u64>(1)?;
    if let Some(odd) = pe.team_split_strided(pe.world(), 1, 2, 2, TeamConfig::default())? {
        let next = (odd.my_pe() + 1) % odd.n_pes();
        pe.host().signal_op(flag.signal(0), 1, SignalOp::Set, next)?;
        pe.host().signal_wait_until(flag.signal(0), Cmp::Eq, 1)?; // bug: first
        pe.team_destroy(odd)?;
    }
    pe.free(flag) // bug: second
}

pub(crate) fn fixed(pe: &Pe<impl Backend>) -> Result<()> {
    let flag = pe.alloc_zeroed::<u64>(1)?;
    if let Some(odd) = pe.team_split_strided(pe.world(), 1, 2, 2, TeamConfig::default())? {
        let next = odd.members().get((odd.my_pe() + 1) % odd.n_pes());
        pe.host().signal_op(flag.signal(0), 1, SignalOp::Set, next)?;
        pe.host().signal_wait_until(flag.signal(0), Cmp::Eq, 1)?;
        pe.team_destroy(odd)?;
    }
    pe.free(flag)
}
