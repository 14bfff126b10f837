//! What is not in order in a run: two accesses, and what would order them.

use onesided::At;

use crate::race::{MissingEdge, Part, Race};
use crate::verdict::{Verdict, VerdictKind};

/// Two accesses that nothing orders.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Lacking {
    /// Their lines.
    pub(super) lines: [At; 2],
    /// What would order them.
    pub(super) missing: MissingEdge,
    /// Whether the first is what a get brings.
    pub(super) fetches: bool,
}

impl From<&Race> for Lacking {
    fn from(race: &Race) -> Lacking {
        let lines = [race.first.at, race.second.at];
        let fetches = race.first.part == Part::Delivery && race.first.pe == race.pe;
        Lacking { lines, missing: race.missing, fetches }
    }
}

/// The races of a run, also of one in shared memory where a fence would order the two.
pub(crate) fn lacking(verdict: &Verdict) -> Vec<Lacking> {
    let in_shared = match verdict.kind {
        VerdictKind::Kernel { at, races_with: Some(other), missing: Some(missing), .. } => {
            Some(Lacking { lines: [other, at], missing, fetches: false })
        }
        _ => None,
    };
    in_shared.into_iter().chain(verdict.races.iter().map(Lacking::from)).collect()
}
