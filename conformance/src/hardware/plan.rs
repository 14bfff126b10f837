//! Which cases can run on this machine, and which of them can share a job.

use std::collections::BTreeMap;

use onesided::{Backend, count};
use onesided_harness::launch::{Sharing, evenly};

use crate::case::Case;

/// What there is to run cases on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    /// GPUs of all nodes together.
    pub(super) gpus: usize,
    pub(super) nodes: usize,
    /// Why the PEs of a node have no access to each other's memory, if they have none.
    pub(super) no_peer_access: Option<&'static str>,
    /// How PEs share GPUs, if the user says so.
    pub(super) sharing: Option<Sharing>,
}

/// Cases with the same number of PEs, nodes and GPUs, which one job can run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Group {
    /// The number of nodes.
    pub(super) nodes: usize,
    /// The number of PEs.
    pub(super) pes: usize,
    /// The number of GPUs. PEs share GPUs if there are fewer.
    pub(super) gpus: usize,
    /// Whether its cases end their jobs: [`Case::breaks`].
    pub(super) breaks: bool,
    /// The cases' places in the suite.
    pub(super) cases: Vec<usize>,
}

/// Why a case cannot run here, with any library; `None` if it can.
pub(super) fn refusal<B: Backend>(case: &Case<B>, place: &Place) -> Option<String> {
    let &Place { gpus, nodes, no_peer_access, sharing } = place;
    if case.needs.verdict {
        return Some("ends in a verdict: for the simulator".to_string());
    }
    if case.nodes > nodes {
        return Some(format!("needs {} nodes", case.nodes));
    }
    if let Some(why) = no_peer_access.filter(|_| case.needs.peer_access) {
        return Some(format!("needs access to its peers' memory: {why}"));
    }
    if let Some(needed) = case.gpus.filter(|needed| *needed > gpus) {
        return Some(format!("needs {} with {} on each", count(needed, "GPU"), count(case.pes.div_ceil(needed), "PE")));
    }
    let (on_each, shared) = (case.pes / case.nodes, on_a_node(case, gpus));
    (sharing == Some(Sharing::None) && on_each > shared)
        .then(|| format!("needs {} a node, or MPS, which --mps none excludes", count(on_each, "GPU")))
}

/// How many GPUs each of a case's nodes uses. If there are fewer than nodes, all nodes use the same ones.
fn on_a_node<B: Backend>(case: &Case<B>, gpus: usize) -> usize {
    let used = used(case, gpus);
    evenly(case.pes / case.nodes, if used < case.nodes { used } else { used / case.nodes })
}

/// How many GPUs a case may use: one for each PE, or as many as it wants.
fn used<B: Backend>(case: &Case<B>, gpus: usize) -> usize {
    case.gpus.unwrap_or(case.pes).min(gpus)
}

/// The groups of the cases that can run, by size.
pub(super) fn groups<B: Backend>(cases: &[Case<B>], place: &Place) -> Vec<Group> {
    let mut groups: BTreeMap<(usize, usize, usize, bool), Vec<usize>> = BTreeMap::new();
    for (index, case) in cases.iter().enumerate().filter(|(_, case)| refusal(case, place).is_none()) {
        let own = if used(case, place.gpus) < case.nodes { 1 } else { case.nodes };
        let all = on_a_node(case, place.gpus) * own;
        groups.entry((case.nodes, case.pes, all, case.breaks)).or_default().push(index);
    }
    let group = |((nodes, pes, gpus, breaks), cases)| Group { nodes, pes, gpus, breaks, cases };
    groups.into_iter().map(group).collect()
}

#[cfg(test)]
mod tests {
    use onesided_sim::Sim;

    use super::*;

    fn case(pes: usize) -> Case<Sim> {
        Case::new("a/b", pes, |_| unreachable!())
    }

    fn place(gpus: usize) -> Place {
        Place { gpus, nodes: 1, no_peer_access: None, sharing: None }
    }

    #[test]
    fn cases_with_the_same_machine_share_a_job() {
        let cases = [case(2), case(1), case(2), case(4), case(2).gpus(1), case(4).nodes(2), case(3)];
        let group = |pes, gpus, cases: &[usize]| Group { nodes: 1, pes, gpus, breaks: false, cases: cases.to_vec() };
        let two = [group(1, 1, &[1]), group(2, 1, &[4]), group(2, 2, &[0, 2]), group(3, 1, &[6]), group(4, 2, &[3])];
        assert_eq!(groups(&cases, &place(2)), two);
        let one = [group(1, 1, &[1]), group(2, 1, &[0, 2, 4]), group(3, 1, &[6]), group(4, 1, &[3])];
        assert_eq!(groups(&cases, &place(1)), one);
        let broken = Group { breaks: true, ..group(2, 2, &[1]) };
        assert_eq!(groups(&[case(2), case(2).breaks(), case(2)], &place(2)), [group(2, 2, &[0, 2]), broken]);
    }

    #[test]
    fn nodes_have_gpus_of_their_own_or_share_them() {
        let on = |case: Case<Sim>, gpus| {
            let place = Place { nodes: 2, ..place(gpus) };
            groups(&[case], &place).pop().map(|group| (group.nodes, group.pes, group.gpus))
        };
        assert_eq!([1, 2, 4, 8].map(|gpus| on(case(4).nodes(2), gpus).unwrap().2), [1, 2, 4, 4]);
        assert_eq!([1, 3].map(|gpus| on(case(2).nodes(2), gpus).unwrap().2), [1, 2]);
        assert_eq!(on(case(4).nodes(4), 8), None);
        assert_eq!(on(case(4), 8), Some((1, 4, 4)));
        assert_eq!(on(case(4).nodes(2).gpus(1), 8), Some((2, 4, 1)));
    }

    #[test]
    fn what_cannot_run_says_why() {
        let network = Place { no_peer_access: Some("there is none"), ..place(1) };
        let alone = Place { nodes: 2, sharing: Some(Sharing::None), ..place(1) };
        for (case, place, why) in [
            (case(2).ends_in_verdict(), place(1), "ends in a verdict: for the simulator"),
            (case(4).nodes(2).gpus(2), place(1), "needs 2 nodes"),
            (case(4).gpus(2), place(1), "needs 2 GPUs with 2 PEs on each"),
            (case(2).needs_peer_access(), network, "needs access to its peers' memory: there is none"),
            (case(4).nodes(2), alone, "needs 2 GPUs a node, or MPS, which --mps none excludes"),
        ] {
            assert_eq!(refusal(&case, &place).as_deref(), Some(why));
        }
        assert_eq!(refusal(&case(4), &place(1)), None);
        assert_eq!(refusal(&case(2).nodes(2), &alone), None);
        assert_eq!(refusal(&case(2).needs_peer_access(), &place(1)), None);
    }
}
