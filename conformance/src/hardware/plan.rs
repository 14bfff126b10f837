//! Which cases can run on this machine, and which of them can share a job.

use std::collections::BTreeMap;

use onesided::Backend;
use onesided_harness::launch;

use crate::case::Case;

/// Cases with the same number of PEs and GPUs, which one job can run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Group {
    /// The number of PEs.
    pub(super) pes: usize,
    /// The number of GPUs. PEs share GPUs if there are fewer.
    pub(super) gpus: usize,
    /// Whether its cases end their jobs: [`Case::breaks`].
    pub(super) breaks: bool,
    /// The cases' places in the suite.
    pub(super) cases: Vec<usize>,
}

impl Group {
    /// The number of PEs on the GPU with the most PEs.
    pub(super) fn pes_per_gpu(&self) -> usize {
        self.pes / self.gpus
    }
}

/// Why a case cannot run on one machine with so many GPUs, with any library; `None` if it can.
pub(super) fn refusal<B: Backend>(case: &Case<B>, gpus: usize) -> Option<String> {
    if case.needs.verdict {
        return Some("ends in a verdict: for the simulator".to_string());
    }
    if case.nodes > 1 {
        return Some(format!("needs {} nodes", case.nodes));
    }
    match case.gpus {
        Some(needed) if needed > gpus => {
            Some(format!("needs {needed} GPUs with {} PEs on each", case.pes.div_ceil(needed)))
        }
        _ => None,
    }
}

/// The groups of the cases that can run, by size.
pub(super) fn groups<B: Backend>(cases: &[Case<B>], gpus: usize) -> Vec<Group> {
    let mut groups: BTreeMap<(usize, usize, bool), Vec<usize>> = BTreeMap::new();
    for (index, case) in cases.iter().enumerate().filter(|(_, case)| refusal(case, gpus).is_none()) {
        let shared = launch::evenly(case.pes, case.gpus.unwrap_or(case.pes).min(gpus));
        groups.entry((case.pes, shared, case.breaks)).or_default().push(index);
    }
    groups.into_iter().map(|((pes, gpus, breaks), cases)| Group { pes, gpus, breaks, cases }).collect()
}

#[cfg(test)]
mod tests {
    use onesided_sim::Sim;

    use super::*;

    fn case(pes: usize) -> Case<Sim> {
        Case::new("a/b", pes, |_| unreachable!())
    }

    #[test]
    fn cases_with_the_same_machine_share_a_job() {
        let cases = [case(2), case(1), case(2), case(4), case(2).gpus(1), case(4).nodes(2), case(3)];
        let group = |pes, gpus, cases: &[usize]| Group { pes, gpus, breaks: false, cases: cases.to_vec() };
        let two = [group(1, 1, &[1]), group(2, 1, &[4]), group(2, 2, &[0, 2]), group(3, 1, &[6]), group(4, 2, &[3])];
        assert_eq!(groups(&cases, 2), two);
        let one = [group(1, 1, &[1]), group(2, 1, &[0, 2, 4]), group(3, 1, &[6]), group(4, 1, &[3])];
        assert_eq!(groups(&cases, 1), one);
        assert_eq!((two[4].pes_per_gpu(), one[3].pes_per_gpu()), (2, 4));
        let broken = Group { breaks: true, ..group(2, 2, &[1]) };
        assert_eq!(groups(&[case(2), case(2).breaks(), case(2)], 2), [group(2, 2, &[0, 2]), broken]);
    }

    #[test]
    fn what_cannot_run_says_why() {
        for (case, why) in [
            (case(2).ends_in_verdict(), "ends in a verdict: for the simulator"),
            (case(4).nodes(2).gpus(2), "needs 2 nodes"),
            (case(4).gpus(2), "needs 2 GPUs with 2 PEs on each"),
        ] {
            assert_eq!(refusal(&case, 1).as_deref(), Some(why));
        }
        assert_eq!(refusal(&case(4), 1), None);
    }
}
