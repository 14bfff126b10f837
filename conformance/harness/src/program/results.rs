//! Whether the PEs return the same on every schedule. A program that checks nothing cannot fail; that its results differ is
//! worth a note.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use onesided_sim::{Run, VerdictKind};

/// So many different results are told apart: hashes of them are kept, and an exploration may be long.
const MOST: usize = 10_000;

/// What the PEs returned on the schedules visited, those left out on which not every PE returned.
#[derive(Debug, Default)]
pub(super) struct Results {
    seen: BTreeSet<u64>,
    other: Option<Run<String>>,
}

impl Results {
    /// Adds those of a run.
    pub(super) fn add(&mut self, run: &Run<String>) {
        if !matches!(run.verdict.kind, VerdictKind::Finished) || self.seen.len() >= MOST {
            return;
        }
        let mut hasher = DefaultHasher::new();
        run.results.hash(&mut hasher);
        if self.seen.insert(hasher.finish()) && self.seen.len() == 2 {
            self.other = Some(run.without_results());
        }
    }

    /// The first run whose results were not those of the first.
    pub(super) fn other(&self) -> Option<&Run<String>> {
        self.other.as_ref()
    }

    /// How many there are, in words.
    pub(super) fn count(&self) -> String {
        match self.seen.len() {
            MOST => format!("{MOST} or more"),
            few => few.to_string(),
        }
    }
}
