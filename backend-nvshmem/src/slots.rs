//! Whether the library has a slot for another team. It is asked before the library is.
//!
//! If 3.8.0 is asked for one team too many, it returns an error, and ends the process at a later call about teams. (3.4.5 goes
//! on.) A team has the same slot on all its members, and its handle is the number of the slot. So before a split, the PEs of the
//! parent agree which slots none of the future members uses.

use onesided::backend::TeamId;
use onesided::{At, Error, ErrorKind, ReduceOp, Result};

use crate::pe::Nvshmem;
use crate::setting;

/// The number of slots that are counted: more than any version has, unless `NVSHMEM_MAX_TEAMS` says more.
const MOST: usize = 1024;
const WORDS: usize = MOST / 64;

/// Bit `i` stands for slot `i`.
type Slots = [u64; WORDS];

/// How many slots a library has; `None` if running out of them does no harm.
pub(crate) fn of_library(version: [i32; 3]) -> Option<usize> {
    let unless_set = match version {
        [3, ..5, _] => return None,
        [3, ..8, _] => 128,
        _ => 256,
    };
    Some(setting::count("NVSHMEM_MAX_TEAMS").unwrap_or(unless_set))
}

impl Nvshmem {
    /// Refuses `wanted` new teams with the same members, unless there are as many slots that no member uses. `is_member` says
    /// whether this PE will be a member. Collective over the parent: all its PEs decide alike.
    pub(crate) fn check_slots(
        &self,
        parent: TeamId,
        wanted: usize,
        is_member: bool,
        call: &'static str,
        at: At,
    ) -> Result<()> {
        let Some(slots) = of_library(self.table.version).filter(|slots| *slots <= MOST) else { return Ok(()) };
        let mut used = if is_member { mask(self.team_handles()) } else { [0; WORDS] };
        if self.team_size(parent) > 1 {
            let any = (self.handle(parent), ReduceOp::Or);
            used = self.memory.room.combined(self.table, self.device(), any, used, call, at)?;
        }
        if free(&used, slots) >= wanted {
            return Ok(());
        }
        let message = format!(
            "the members have {} of the {slots} teams that this library can have at a time, the predefined ones included; \
             NVSHMEM_MAX_TEAMS, the same on all PEs, allows more",
            slots - free(&used, slots)
        );
        Err(Error::new(ErrorKind::OutOfTeams, call, message, at))
    }
}

fn mask(handles: impl Iterator<Item = usize>) -> Slots {
    let mut slots = [0; WORDS];
    handles.filter(|handle| *handle < MOST).for_each(|handle| slots[handle / 64] |= 1 << (handle % 64));
    slots
}

/// Slots below `slots` that are not used.
fn free(used: &Slots, slots: usize) -> usize {
    (0..slots).filter(|slot| used[slot / 64] >> (slot % 64) & 1 == 0).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_that_nobody_uses_are_free() {
        let used = mask([0, 1, 2, 3, 4, 5, 6, 64, 255, 5000].into_iter());
        assert_eq!((free(&used, 7), free(&used, 12), free(&used, 256)), (0, 5, 247));
        assert_eq!(free(&mask(0..256), 256), 0);
    }

    #[test]
    fn libraries_differ_in_how_many_there_are() {
        let of = [[3, 4, 5], [3, 5, 1], [3, 7, 0], [3, 8, 0], [3, 9, 0]].map(of_library);
        assert_eq!(of, [None, Some(128), Some(128), Some(256), Some(256)]);
    }
}
