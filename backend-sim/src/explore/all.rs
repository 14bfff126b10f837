//! All schedules, by depth-first search, with sleep sets.
//!
//! Two schedules that only differ in the order of steps that commute (no byte touched by both, or only read) have the
//! same outcome. A *sleep set* holds steps that need not be taken from here, because the schedules that begin with them
//! have been visited and nothing since has touched what they touch. Of every class of equivalent schedules exactly one
//! is completed; some more are begun and found redundant on the way, and are not counted.

use super::Chooser;
use crate::machine::{Access, Machine, Step};

/// The search, across schedules.
#[derive(Debug, Default)]
pub(crate) struct All {
    path: Vec<Node>,
    /// How many nodes of the path the current schedule has passed.
    depth: usize,
    /// Every step possible was asleep: the rest of this schedule is not looked at.
    redundant: bool,
    /// The same picks led to other choices than before: the program is not deterministic.
    diverged: bool,
}

/// A point of the current schedule with more than one step possible, or with steps asleep.
#[derive(Debug)]
struct Node {
    /// Names of the steps that are possible.
    choices: Vec<u64>,
    /// Which of them is taken.
    taken: usize,
    /// What that step touched.
    touched: Vec<Access>,
    sleep: Vec<Asleep>,
}

/// A step that need not be taken, and what it touches.
#[derive(Clone, Debug)]
struct Asleep {
    step: u64,
    touches: Vec<Access>,
}

impl All {
    pub(crate) fn new() -> All {
        All::default()
    }

    /// Whether the schedule that just ended did not do again what the one before it did up to their difference.
    pub(crate) fn has_diverged(&self) -> bool {
        self.diverged || (!self.redundant && self.depth < self.path.len())
    }

    /// Whether the schedule that just ended is equivalent to an earlier one.
    pub(crate) fn is_redundant(&self) -> bool {
        self.redundant
    }

    /// The picks of the current schedule, as [`super::Replay`] takes them.
    pub(crate) fn picks(&self) -> Vec<u32> {
        let real = self.path.iter().filter(|node| node.choices.len() > 1);
        let mut picks: Vec<u32> = real.map(|node| node.taken as u32).collect();
        while picks.last() == Some(&0) {
            picks.pop();
        }
        picks
    }

    /// Goes back to the last point with a step that is still to be taken; false when there is none.
    pub(crate) fn next_schedule(&mut self) -> bool {
        self.depth = 0;
        self.redundant = false;
        while let Some(node) = self.path.last_mut() {
            let done = Asleep { step: node.choices[node.taken], touches: std::mem::take(&mut node.touched) };
            node.sleep.push(done);
            if let Some(next) = node.first_awake() {
                node.taken = next;
                return true;
            }
            self.path.pop();
        }
        false
    }
}

impl Node {
    fn first_awake(&self) -> Option<usize> {
        self.choices.iter().position(|step| self.sleep.iter().all(|asleep| asleep.step != *step))
    }

    /// What sleeps after the node's step: everything that does not touch what it touched.
    fn sleep_after(&self) -> Vec<Asleep> {
        let commutes = |asleep: &&Asleep| {
            asleep.touches.iter().all(|access| self.touched.iter().all(|other| !access.conflicts(other)))
        };
        let step = self.choices[self.taken];
        self.sleep.iter().filter(commutes).filter(|asleep| asleep.step != step).cloned().collect()
    }
}

impl Chooser for All {
    const TRACKING: bool = true;

    fn pick(&mut self, machine: &Machine, n: usize) -> usize {
        if self.redundant {
            return 0;
        }
        if let Some(node) = self.path.get(self.depth) {
            if node.choices.len() != n || machine.choice_key(node.taken) != node.choices[node.taken] {
                self.diverged = true;
                self.redundant = true;
                return 0;
            }
            return node.taken;
        }
        let sleep = self.path.last().map_or_else(Vec::new, Node::sleep_after);
        let choices = (0..n).map(|index| machine.choice_key(index)).collect();
        let mut node = Node { choices, taken: 0, touched: Vec::new(), sleep };
        let Some(first) = node.first_awake() else {
            self.redundant = true;
            return 0;
        };
        node.taken = first;
        self.path.push(node);
        first
    }

    fn took(&mut self, step: &Step) {
        if self.redundant {
            return;
        }
        let Some(node) = self.path.get_mut(self.depth) else { return };
        if node.touched.is_empty() {
            node.touched.extend_from_slice(&step.touched);
        }
        self.depth += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::{Actor, Object, PeId, Touch};
    use onesided::backend::{AllocId, Span};

    fn access(start: usize, write: bool) -> Access {
        let touch = if write { Touch::Write } else { Touch::Read };
        let object = Object::memory(PeId(0), Span { alloc: AllocId(0), start, len: 8 });
        Access { object, touch, by: Actor { agent: None, scope: None, call: "put", at: None } }
    }

    fn asleep(step: u64, touches: Access) -> Asleep {
        Asleep { step, touches: vec![touches] }
    }

    fn node(choices: &[u64], taken: usize, touched: Access, sleep: Vec<Asleep>) -> Node {
        Node { choices: choices.to_vec(), taken, touched: vec![touched], sleep }
    }

    #[test]
    fn only_what_the_step_does_not_touch_stays_asleep() {
        let sleep = vec![asleep(1, access(0, false)), asleep(2, access(8, true)), asleep(3, access(4, true))];
        let stays = |touched| {
            let stays = node(&[1, 2, 3, 4], 3, touched, sleep.clone()).sleep_after();
            stays.iter().map(|asleep| asleep.step).collect::<Vec<_>>()
        };
        assert_eq!(stays(access(0, false)), [1, 2]); // two reads commute, overlapping ranges do not
        assert_eq!(stays(access(0, true)), [2]);
        assert_eq!(stays(access(16, true)), [1, 2, 3]);
    }

    #[test]
    fn a_step_that_has_been_visited_sleeps_and_the_next_one_is_taken() {
        let first = node(&[5, 6, 7], 0, access(0, true), vec![asleep(6, access(8, true))]);
        let mut all = All { path: vec![first], ..All::default() };
        assert!(all.next_schedule());
        assert_eq!(all.path[0].taken, 2, "6 is asleep already");
        assert!(all.path[0].touched.is_empty(), "not known yet");
        assert!(!all.next_schedule() && all.path.is_empty());
    }

    #[test]
    fn the_search_goes_back_to_the_deepest_choice_first() {
        let path = vec![node(&[1, 2], 0, access(0, true), vec![]), node(&[2], 0, access(0, true), vec![])];
        let mut all = All { path, depth: 2, redundant: true, ..All::default() };
        assert!(all.next_schedule());
        assert_eq!((all.path.len(), all.depth, all.is_redundant()), (1, 0, false));
        assert_eq!(all.path[0].taken, 1);
    }

    #[test]
    fn picks_are_those_of_real_choices_without_the_zeros_at_the_end() {
        let node = |n: u64, taken| node(&Vec::from_iter(0..n), taken, access(0, true), vec![]);
        let all = All { path: vec![node(3, 0), node(1, 0), node(2, 1), node(2, 0), node(4, 0)], ..All::default() };
        assert_eq!(all.picks(), [0, 1]);
        assert!(All::new().picks().is_empty());
    }
}
