//! Teams: the library's calls for each request.
#![allow(unsafe_code)]

use std::ffi::c_int;

use onesided::backend::{NewTeams, TeamId, TeamRequest};
use onesided::{At, Error, ErrorKind, Members, Result, TeamConfig, TeamUniqueId};

use crate::bindings::{NVSHMEM_TEAM_INVALID, nvshmem_team_t};
use crate::layout;
use crate::memory::check;
use crate::pe::Nvshmem;
use crate::table::function;

/// The library's handle of the team of all PEs.
pub(crate) const WORLD: nvshmem_team_t = 0;

impl Nvshmem {
    /// The library's handle. After each initialization the library gives out the same handles; the API refuses a team of
    /// an earlier PE.
    #[inline]
    pub(crate) fn handle(&self, team: TeamId) -> nvshmem_team_t {
        team.0 as nvshmem_team_t
    }

    /// The world ranks of a team's members, if this PE is a member.
    pub(crate) fn members(&self, team: nvshmem_team_t) -> Option<Members> {
        let functions = &self.table.functions;
        let (Ok(my_pe), Ok(n_pes), Ok(translate)) =
            (&functions.nvshmem_team_my_pe, &functions.nvshmem_team_n_pes, &functions.nvshmem_team_translate_pe)
        else {
            return None; // `init` refused a library without them: `Table::check_complete`
        };
        // SAFETY: the handle is a predefined one or one that the library gave out; each rank is below the size.
        let world: Vec<u32> = unsafe {
            if my_pe(team) < 0 {
                return None;
            }
            (0..n_pes(team)).map(|pe| translate(team, pe, WORLD) as u32).collect()
        };
        Some(as_members(&world))
    }

    /// Makes or ends a team. Collective over the parent, the new members, or the team.
    pub(crate) fn perform(&self, request: &TeamRequest<'_>, at: At) -> Result<NewTeams> {
        match *request {
            TeamRequest::SplitStrided { parent, start, stride, members, config } => {
                const CALL: &str = "team_split_strided";
                const SYMBOL: &str = "nvshmem_team_split_strided";
                self.device().bind(CALL, at)?;
                let split = function!(self.table, nvshmem_team_split_strided, CALL, at);
                self.check_slots(parent, 1, members.position(self.my_pe).is_some(), CALL, at)?;
                let (config, mask) = Self::team_config(config);
                let mut team = NVSHMEM_TEAM_INVALID;
                let [start, stride, size] = [start, stride, members.len()].map(|number| number as c_int);
                // SAFETY: `Pe` checked that the triple lies inside the parent, of which this PE is a member; the
                // configuration and the new handle are places of this call.
                let status = unsafe { split(self.handle(parent), start, stride, size, &config, mask, &mut team) };
                self.check_team(status, SYMBOL, CALL, at)?;
                let first = self.accept(team, members, SYMBOL, CALL, at)?;
                Ok(NewTeams { first, second: None })
            }
            TeamRequest::Split2d { parent, xrange, x_members, y_members, x_config, y_config } => {
                const CALL: &str = "team_split_2d";
                const SYMBOL: &str = "nvshmem_team_split_2d";
                self.device().bind(CALL, at)?;
                let split = function!(self.table, nvshmem_team_split_2d, CALL, at);
                self.check_slots(parent, 2, true, CALL, at)?;
                let (x_config, x_mask) = Self::team_config(x_config);
                let (y_config, y_mask) = Self::team_config(y_config);
                let (mut x, mut y) = (NVSHMEM_TEAM_INVALID, NVSHMEM_TEAM_INVALID);
                // SAFETY: as above; the range is not 0.
                let status = unsafe {
                    let xrange = xrange as c_int;
                    split(self.handle(parent), xrange, &x_config, x_mask, &mut x, &y_config, y_mask, &mut y)
                };
                self.check_team(status, SYMBOL, CALL, at)?;
                let first = self.accept(x, x_members, SYMBOL, CALL, at)?;
                let second = self.accept(y, y_members, SYMBOL, CALL, at)?;
                Ok(NewTeams { first, second })
            }
            TeamRequest::Init { unique_id, n_pes, index, config } => {
                const CALL: &str = "team_init";
                const SYMBOL: &str = "nvshmemx_team_init";
                self.device().bind(CALL, at)?;
                let init = function!(self.table, nvshmemx_team_init, CALL, at);
                let (mut config, mask) = Self::team_config(TeamConfig { unique_id: Some(unique_id), ..config });
                let mut team = NVSHMEM_TEAM_INVALID;
                // SAFETY: the unique id is set, the index below the size; places of this call.
                let status = unsafe { init(&mut team, &mut config, mask, n_pes as c_int, index as c_int) };
                self.check_team(status, SYMBOL, CALL, at)?;
                if team == NVSHMEM_TEAM_INVALID {
                    return Err(no_handle(SYMBOL, CALL, at));
                }
                Ok(NewTeams { first: Some(self.adopt_team(team)), second: None })
            }
            TeamRequest::Destroy { team } => {
                const CALL: &str = "team_destroy";
                self.device().synchronize(CALL, at)?;
                let destroy = function!(self.table, nvshmem_team_destroy, CALL, at);
                // SAFETY: a team that the library made and that was not ended before: the API's handles see to that.
                // Nothing of this PE uses it any more.
                unsafe { destroy(self.handle(team)) };
                self.forget_team(team);
                Ok(NewTeams::default())
            }
        }
    }

    /// A fresh id for `team_init`.
    pub(crate) fn fresh_team_id(&self, at: At) -> Result<TeamUniqueId> {
        const CALL: &str = "team_unique_id";
        self.device().bind(CALL, at)?;
        let make = function!(self.table, nvshmemx_team_get_uniqueid, CALL, at);
        let mut id = 0;
        // SAFETY: writes the id.
        let status = unsafe { make(&mut id) };
        check(status, "nvshmemx_team_get_uniqueid", CALL, at)?;
        Ok(TeamUniqueId(id))
    }

    fn team_config(config: TeamConfig) -> (crate::bindings::nvshmem_team_config_t, std::ffi::c_long) {
        layout::team_config(config.num_contexts, config.unique_id.map(|id| id.0))
    }

    /// The new team's id on a member, `None` elsewhere. Some versions report success without a team.
    fn accept(
        &self,
        team: nvshmem_team_t,
        members: &Members,
        symbol: &str,
        call: &'static str,
        at: At,
    ) -> Result<Option<TeamId>> {
        let member = members.position(self.my_pe).is_some();
        match (member, team) {
            (true, NVSHMEM_TEAM_INVALID) => Err(no_handle(symbol, call, at)),
            (true, team) => Ok(Some(self.adopt_team(team))),
            (false, _) => Ok(None),
        }
    }

    fn check_team(&self, status: c_int, symbol: &str, call: &'static str, at: At) -> Result<()> {
        // `Pe` has checked the arguments, so only one cause is left. 3.4.5 returns an internal error for it.
        const NO_ROOM: [c_int; 2] = [2, 7];
        if NO_ROOM.contains(&status) {
            let message = format!("{}; it returned {status}", no_more(symbol));
            return Err(Error::new(ErrorKind::OutOfTeams, call, message, at));
        }
        check(status, symbol, call, at)
    }
}

fn no_more(symbol: &str) -> String {
    format!("{symbol} made no team: there may be no room for another one (NVSHMEM_MAX_TEAMS)")
}

fn no_handle(symbol: &str, call: &'static str, at: At) -> Error {
    Error::new(ErrorKind::OutOfTeams, call, no_more(symbol), at)
}

/// World ranks, as a start and a stride if that describes them.
fn as_members(world: &[u32]) -> Members {
    let start = world.first().copied().unwrap_or(0);
    let stride = world.get(1).map_or(1, |second| second.saturating_sub(start));
    let strided = Members::Strided { start, stride, size: world.len() as u32 };
    if stride > 0 && strided.iter().eq(world.iter().map(|&pe| pe as usize)) {
        strided
    } else {
        Members::List(world.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_strided_where_they_can_be() {
        assert_eq!(as_members(&[1, 3, 5]), Members::Strided { start: 1, stride: 2, size: 3 });
        assert_eq!(as_members(&[2]), Members::Strided { start: 2, stride: 1, size: 1 });
        assert_eq!(as_members(&[0, 1, 3]), Members::List([0, 1, 3].into()));
        assert_eq!(as_members(&[3, 1]), Members::List([3, 1].into()));
    }
}
