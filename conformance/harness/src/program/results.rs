//! Whether the PEs return the same on every schedule. Results that differ are not a finding, because a program fails only by
//! what it checks; they are worth a note.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use onesided_sim::{Run, VerdictKind};

/// What came out of a run, as a hash: what the PEs returned, or how the run ended that did not finish.
pub(super) fn outcome(run: &Run<String>) -> u64 {
    let mut hasher = DefaultHasher::new();
    match run.verdict.kind {
        _ if run.verdict.given_up.is_some() => "given up".hash(&mut hasher),
        // a race or a lint takes nothing back of what the PEs returned
        VerdictKind::Finished | VerdictKind::Race | VerdictKind::Lint => run.results.hash(&mut hasher),
        _ => run.verdict.kind.outcome().hash(&mut hasher),
    }
    hasher.finish()
}

/// The most different results that are counted. Each is kept as a hash.
const MOST: usize = 10_000;

/// The different results of the schedules on which every PE returned.
#[derive(Debug, Default)]
pub(super) struct Results {
    seen: BTreeSet<u64>,
    other: Option<Run<String>>,
}

impl Results {
    /// Adds the results of a run.
    pub(super) fn add(&mut self, run: &Run<String>) {
        if !matches!(run.verdict.kind, VerdictKind::Finished) || self.seen.len() >= MOST {
            return;
        }
        if self.seen.insert(outcome(run)) && self.seen.len() == 2 {
            self.other = Some(run.without_results());
        }
    }

    /// The results before a proof.
    pub(super) fn before_proof(&self) -> BTreeSet<u64> {
        self.seen.clone()
    }

    /// Notes that a proof has begun again: only the results from before the proof are kept.
    pub(super) fn begin_again(&mut self, before: &BTreeSet<u64>) {
        (self.seen, self.other) = (before.clone(), None);
    }

    /// The first run whose results differ from those of the run before it.
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

#[cfg(test)]
mod tests {
    use onesided_sim::{Config, Simulation};

    use super::*;

    #[test]
    fn a_proof_that_begins_again_has_what_was_seen_before_it() {
        let run = |text: &str| Simulation::new(Config::pes(1)).unwrap().run(|_| Ok(text.to_string())).unwrap();
        let mut results = Results::default();
        results.add(&run("in order"));
        let before = results.before_proof();
        results.add(&run("withdrawn"));
        assert_eq!((results.count().as_str(), results.other().is_some()), ("2", true));
        results.begin_again(&before);
        assert_eq!((results.count().as_str(), results.other().is_some()), ("1", false));
        results.add(&run("in order"));
        assert_eq!(results.count(), "1");
    }
}
