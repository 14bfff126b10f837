//! All schedules, up to equivalence: optimal dynamic partial-order reduction with wakeup trees.
//!
//! Two schedules are equivalent if they differ only in the order of steps that commute. After each run the search looks for
//! pairs of steps that do not commute and that nothing else orders ([`reversals`](super::reversals)). For each pair it notes a sequence
//! of steps that takes them the other way round, in a tree at the point before the first of them. A *sleep set* at each point
//! holds steps whose schedules have been visited; a sequence that begins with one of them is not noted. So every schedule that
//! is begun is one of a class of its own. (Abdulla, Aronis, Jonsson, Sagonas: Source Sets, JACM 2017; waits as in Jonsson, Lång,
//! Sagonas: Awaiting for Godot, FMCAD 2022.)
//!
//! In a proof, where a race is a finding, additions to counters commute and waits for steady words are no choices
//! (`machine/assumed.rs`).

use std::rc::Rc;

use super::Chooser;
use super::reversals::{Event, Order, Reversal};
use crate::machine::{Access, Assumptions, BlockedWait, Machine, Past, Patience, Step};

/// The search, across schedules.
#[derive(Debug, Default)]
pub(crate) struct All {
    path: Vec<Node>,
    /// The steps that were taken there.
    events: Vec<Event>,
    /// How many nodes of the path the current schedule has passed.
    depth: usize,
    /// Waits that did not end in the current schedule.
    blocked: Vec<BlockedWait>,
    /// A finding ended the current schedule: what it would have done next is not known.
    cut: bool,
    /// Every step possible was asleep: the rest of this schedule is not looked at.
    redundant: bool,
    /// The same picks led to other choices than before: the program is not deterministic.
    diverged: bool,
    /// How often polls are taken in vain. The machine has it while a schedule runs.
    patience: Patience,
    /// Whether polls in vain were left out.
    polls: bool,
    /// In a proof: what is assumed of words. The machine has it while a schedule runs.
    assumed: Option<Box<Assumptions>>,
}

/// Stands for the name of a poll in vain.
const IN_VAIN: u64 = u64::MAX;

/// A choice of the current schedule.
#[derive(Debug)]
struct Node {
    /// The names of the steps that are possible.
    choices: Vec<u64>,
    /// The one that is taken: its name, and its index once that is known.
    key: u64,
    pick: Option<u32>,
    /// How many steps were taken there before, with all that follows.
    finished: u32,
    sleep: Vec<Asleep>,
    /// Whether the step is taken before all others in any case, and depends on nothing.
    forced: bool,
    /// What the wakeup tree wants behind the step that is taken.
    behind: Vec<Branch>,
    /// What it wants in place of it.
    instead: Vec<Branch>,
}

/// A step that need not be taken, and what it touches.
#[derive(Clone, Debug)]
struct Asleep {
    key: u64,
    touches: Rc<[Access]>,
}

/// A step that is still to be taken, and those behind it.
#[derive(Debug)]
struct Branch {
    key: u64,
    /// `None`: not known.
    touches: Option<Rc<[Access]>>,
    behind: Vec<Branch>,
}

impl All {
    /// A search. A proof assumes something of words.
    pub(crate) fn new(proof: bool) -> All {
        All { assumed: proof.then(Box::default), ..All::default() }
    }

    /// Whether the schedule that just ended shows that something was assumed wrongly. Then the search has started again.
    pub(crate) fn starts_again(&mut self) -> bool {
        let given_up = self.assumed.as_mut().is_some_and(|assumed| assumed.give_up());
        let again = self.patience.has_grown() || given_up;
        if again {
            let (assumed, patience) = (self.assumed.take(), std::mem::take(&mut self.patience));
            *self = All { assumed, patience, ..All::default() };
        }
        again
    }

    /// Whether polls were left out because they would have read nothing new.
    pub(crate) fn leaves_out_polls(&self) -> bool {
        self.polls
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
        let mut picks: Vec<u32> = real.map(|node| node.pick.expect("it was taken")).collect();
        while picks.last() == Some(&0) {
            picks.pop();
        }
        picks
    }

    /// Looks at the schedule that just ended, and goes back to the last point with a step that is still to be taken; false when
    /// there is none.
    pub(crate) fn next_schedule(&mut self) -> bool {
        match (self.redundant, self.cut) {
            (true, _) => {}
            (false, false) => self.note_reversals(),
            (false, true) => {
                self.note_reversals();
                self.note_all_choices();
            }
        }
        self.depth = 0;
        self.redundant = false;
        self.cut = false;
        self.blocked.clear();
        debug_assert_eq!(self.path.len(), self.events.len());
        while let Some((node, event)) = self.path.last_mut().zip(self.events.pop()) {
            node.sleep.push(Asleep { key: node.key, touches: event.touches });
            if !node.instead.is_empty() {
                let Branch { key, behind, .. } = node.instead.remove(0);
                (node.key, node.pick, node.behind) = (key, None, behind);
                node.finished += 1;
                return true;
            }
            self.path.pop();
        }
        false
    }

    /// How many schedules there are, when `visited` were: the number itself behind the last one, else an estimate. All branches
    /// that are known at a point are taken to be of one size. Mostly that is too low, because schedules to come add branches.
    pub(crate) fn estimate(&self, visited: u64) -> u64 {
        let (mut share, mut done) = (1.0, 0.0);
        for Node { finished, instead, .. } in &self.path {
            let finished = f64::from(*finished);
            share /= finished + 1.0 + instead.len() as f64;
            done += share * finished;
        }
        if self.path.is_empty() || done == 0.0 { visited } else { (visited as f64 / done).round() as u64 }
    }

    /// Bytes of what the search remembers. What several points share counts once.
    pub(crate) fn memory(&self) -> usize {
        let shared = |touches: &Rc<[Access]>| size_of_val(&**touches) / Rc::strong_count(touches);
        let mut bytes: usize = self.events.iter().map(|event| event.memory() + shared(&event.touches)).sum();
        let mut branches: Vec<&Branch> = Vec::new();
        for node in &self.path {
            bytes += size_of_val(node) + size_of_val(&node.choices[..]) + size_of_val(&node.sleep[..]);
            bytes += node.sleep.iter().map(|asleep| shared(&asleep.touches)).sum::<usize>();
            branches.extend(node.behind.iter().chain(&node.instead));
        }
        while let Some(branch) = branches.pop() {
            bytes += size_of_val(branch) + branch.touches.as_ref().map_or(0, shared);
            branches.extend(&branch.behind);
        }
        bytes
    }

    /// For every pair of steps of the schedule that can be taken the other way round, notes how.
    fn note_reversals(&mut self) {
        let All { path, events, blocked, .. } = self;
        let order = Order::of(events, blocked);
        for Reversal { before, steps, last } in order.reversals() {
            let node = &mut path[before];
            let asleep = |asleep: &Asleep| order.is_weak_initial(asleep.key, Some(&asleep.touches), (&steps, &last));
            if !node.sleep.iter().any(asleep) {
                insert(&order, &mut node.instead, steps, &last);
            }
        }
    }

    /// A finding ended the schedule. Steps that were possible and were not taken might have changed that: each is tried first,
    /// wherever it was possible.
    fn note_all_choices(&mut self) {
        for Node { choices, key, sleep, instead, .. } in &mut self.path {
            for &other in choices.iter() {
                let known = other == *key
                    || other == IN_VAIN
                    || sleep.iter().any(|asleep| asleep.key == other)
                    || instead.iter().any(|branch| branch.key == other);
                if !known {
                    instead.push(Branch { key: other, touches: None, behind: Vec::new() });
                }
            }
        }
    }

    fn sleep_at_the_end(&self) -> Vec<Asleep> {
        let Some((node, event)) = self.path.last().zip(self.events.last()) else { return Vec::new() };
        let stays = |asleep: &&Asleep| asleep.key != node.key && !conflict(&asleep.touches, &event.touches);
        node.sleep.iter().filter(stays).cloned().collect()
    }
}

fn conflict(a: &[Access], b: &[Access]) -> bool {
    a.iter().any(|access| b.iter().any(|other| access.conflicts(other)))
}

/// Adds a sequence to the branches of a tree, unless it is covered. `last`: what comes before the last of its steps.
fn insert(order: &Order<'_>, branches: &mut Vec<Branch>, mut steps: Vec<usize>, last: &Past) {
    for branch in branches.iter_mut() {
        if order.is_weak_initial(branch.key, branch.touches.as_deref(), (&steps, last)) {
            let mut last = last;
            if let Some(at) = steps.iter().position(|&step| order.key(step) == branch.key) {
                steps.remove(at); // an agent's later steps have the same name
                if let Some(&end) = steps.last().filter(|_| at == steps.len()) {
                    last = order.before(end);
                }
            }
            if !branch.behind.is_empty() && !steps.is_empty() {
                insert(order, &mut branch.behind, steps, last);
            }
            return;
        }
    }
    let mut behind = Vec::new();
    for &step in steps.iter().rev() {
        behind = vec![Branch { key: order.key(step), touches: Some(order.touches(step)), behind }];
    }
    branches.append(&mut behind);
}

impl Chooser for All {
    const TRACKING: bool = true;

    fn pick(&mut self, machine: &Machine, n: usize) -> usize {
        if self.redundant {
            return 0;
        }
        let find = |key: u64| (0..n).find(|&index| machine.choice_key(index) == key);
        if let Some(node) = self.path.get_mut(self.depth) {
            let index = match node.pick {
                Some(pick) => Some(pick as usize).filter(|&pick| pick < n && machine.choice_key(pick) == node.key),
                None => find(node.key),
            };
            let Some(index) = index.filter(|_| node.choices.len() == n) else {
                (self.diverged, self.redundant) = (true, true);
                return 0;
            };
            node.pick = Some(index as u32);
            return index;
        }
        let sleep = self.sleep_at_the_end();
        let mut instead = self.path.last_mut().map_or_else(Vec::new, |node| std::mem::take(&mut node.behind));
        if let Some(index) = machine.forced() {
            let (key, behind) = (machine.choice_key(index), instead);
            let (choices, instead) = (vec![key; n], Vec::new());
            let pick = Some(index as u32);
            self.path.push(Node { choices, key, pick, finished: 0, sleep, forced: true, behind, instead });
            return index;
        }
        let (index, behind) = match instead.is_empty() {
            true => {
                let awake = |index: &usize| {
                    let key = machine.choice_key(*index);
                    sleep.iter().all(|asleep| asleep.key != key)
                };
                self.polls |= (0..n).any(|index| machine.is_in_vain(index));
                ((0..n).find(|index| awake(index) && !machine.is_in_vain(*index)), Vec::new())
            }
            false => {
                let Branch { key, behind, .. } = instead.remove(0);
                let index = find(key);
                self.diverged |= index.is_none();
                (index, behind)
            }
        };
        let Some(index) = index else {
            self.redundant = true;
            return 0;
        };
        let key = machine.choice_key(index);
        let name = |index| if machine.is_in_vain(index) { IN_VAIN } else { machine.choice_key(index) };
        let choices = (0..n).map(name).collect();
        let pick = Some(index as u32);
        self.path.push(Node { choices, key, pick, finished: 0, sleep, forced: false, behind, instead });
        index
    }

    fn took(&mut self, step: &Step) {
        if self.redundant {
            return;
        }
        let Node { key, forced, .. } = self.path[self.depth];
        let event = Event::new(key, step, forced);
        match self.events.get_mut(self.depth) {
            Some(known) => *known = event,
            None => self.events.push(event),
        }
        self.depth += 1;
    }

    fn prepare(&mut self, machine: &mut Machine) {
        if let Some(assumed) = self.assumed.take() {
            machine.assume(assumed);
        }
        machine.be_patient(std::mem::take(&mut self.patience));
    }

    fn ended(&mut self, machine: &mut Machine, cut: bool) {
        self.blocked = machine.blocked_waits();
        self.cut = cut;
        self.patience = machine.take_patience();
        self.assumed = machine.take_assumed();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(key: u64, pick: u32, possible: u64) -> Node {
        let choices = (0..possible).collect();
        let (sleep, behind, instead) = (vec![], vec![], vec![]);
        Node { choices, key, pick: Some(pick), finished: 0, sleep, forced: false, behind, instead }
    }

    fn branch(key: u64) -> Branch {
        Branch { key, touches: None, behind: vec![] }
    }

    fn events(n: usize) -> Vec<Event> {
        std::iter::repeat_with(Event::default).take(n).collect()
    }

    #[test]
    fn the_search_goes_back_to_the_deepest_branch_first() {
        let path = vec![node(1, 0, 2), node(2, 0, 1), node(3, 0, 3)];
        let mut all = All { path, events: events(3), depth: 3, redundant: true, ..All::default() };
        all.path[0].instead = vec![branch(5)];
        all.path[2].instead = vec![branch(6), branch(7)];
        let mut taken = Vec::new();
        while all.next_schedule() {
            let node = all.path.last().expect("there is a branch");
            taken.push((all.path.len(), node.key, node.sleep.iter().map(|asleep| asleep.key).collect::<Vec<_>>()));
            all.events.push(Event::default());
            all.redundant = true;
        }
        assert_eq!(taken, [(3, 6, vec![3]), (3, 7, vec![3, 6]), (1, 5, vec![1])]);
        assert!(all.path.is_empty());
    }

    #[test]
    fn behind_a_finding_every_choice_is_tried_that_is_not_known() {
        let mut all = All { path: vec![node(1, 1, 4)], events: events(1), cut: true, ..All::default() };
        all.path[0].instead = vec![branch(3)];
        all.path[0].sleep = vec![Asleep { key: 0, touches: Rc::from([]) }];
        assert!(all.next_schedule());
        assert_eq!(all.path[0].key, 3);
        assert_eq!(all.path[0].instead.iter().map(|branch| branch.key).collect::<Vec<_>>(), [2]);
    }

    #[test]
    fn an_estimate_gives_all_known_branches_of_a_point_the_same_size() {
        let mut all = All { path: vec![node(1, 0, 2), node(2, 0, 3)], events: events(2), ..All::default() };
        assert_eq!(all.estimate(1), 1);
        all.path[0].instead = vec![branch(5)];
        all.path[1].instead = vec![branch(6), branch(7)];
        all.redundant = true;
        // half of the schedules are behind 1, and of those a third behind each of 2, 6 and 7
        let mut totals = Vec::new();
        for visited in 1.. {
            let has_more = all.next_schedule();
            totals.push(all.estimate(visited));
            if !has_more {
                break;
            }
            all.events.resize_with(all.path.len(), Event::default);
            all.redundant = true;
        }
        assert_eq!(totals, [6, 6, 6, 4]);
    }

    #[test]
    fn what_is_shared_counts_once_in_the_memory_of_a_search() {
        let mut all = All { path: vec![node(1, 0, 2)], events: events(1), ..All::default() };
        let alone = all.memory();
        let touches: Rc<[Access]> = Rc::clone(&all.events[0].touches);
        all.path[0].sleep.push(Asleep { key: 2, touches: Rc::clone(&touches) });
        all.path[0].instead.push(Branch { key: 3, touches: Some(touches), behind: vec![branch(4)] });
        assert_eq!(all.memory(), alone + size_of::<Asleep>() + 2 * size_of::<Branch>());
        assert!(alone >= size_of::<Node>() + size_of::<Event>());
    }

    #[test]
    fn picks_are_those_of_real_choices_without_the_zeros_at_the_end() {
        let path = vec![node(1, 0, 3), node(2, 0, 1), node(3, 1, 2), node(4, 0, 2), node(5, 0, 4)];
        let all = All { path, ..All::default() };
        assert_eq!(all.picks(), [0, 1]);
        assert!(All::new(false).picks().is_empty());
    }
}
