//! All schedules, up to equivalence: optimal dynamic partial-order reduction with wakeup trees.
//!
//! Two schedules are equivalent if they differ only in the order of steps that commute. After each run the search looks for
//! pairs of steps that do not commute and that nothing else orders ([`reversals`](super::reversals)). For each pair it notes a sequence
//! of steps that takes them the other way round, in a tree at the point before the first of them. A *sleep set* at each point
//! holds steps whose schedules have been visited; a sequence that begins with one of them is not noted. So every schedule that
//! is begun is one of a class of its own. (Abdulla, Aronis, Jonsson, Sagonas: Source Sets, JACM 2017; waits as in Jonsson, Lång,
//! Sagonas: Awaiting for Godot, FMCAD 2022.)
//!
//! Additions to counters commute, and in a proof, where a race is a finding, waits for steady words are no choices
//! (`machine/assumed.rs`).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::attempt::{Asleep, Attempt, Attempted, Given, IN_VAIN, Known, Met, Taken, stays};
use super::reversals::{Event, Instead, Order, Reversal};
use crate::config::Reduce;
use crate::exception::StepName;
use crate::machine::{Access, Assumptions, Past};
use crate::schedule::Choices;

/// The search, across schedules.
#[derive(Debug, Default)]
pub(crate) struct All {
    path: Vec<Node>,
    /// The steps that were taken there.
    events: Vec<Event>,
    /// The steps of the schedule that just ended, until it is noted how to take some of them the other way round.
    taken: Option<Taken>,
    /// A finding ended the current schedule: what it would have done next is not known.
    cut: bool,
    /// Every step possible was asleep: the rest of this schedule is not looked at.
    redundant: bool,
    /// The same picks led to other choices than before: the program is not deterministic.
    diverged: bool,
    /// A step of this schedule was derived from another one, and is not possible.
    astray: bool,
    /// What the current schedules have in common.
    given: Arc<Given>,
    /// Whether the schedule that just ended went on behind polls that were left out.
    impatient: bool,
    /// Whether polls in vain were left out.
    polls: bool,
    /// What is assumed of words, if anything is.
    assumed: Option<Box<Assumptions>>,
    /// So many steps at the beginning are never taken the other way round.
    fixed: usize,
    /// Branches that are being run ahead, by their tickets.
    ahead: BTreeMap<u64, Attempt>,
}

/// The most schedules that are run ahead and were not needed yet.
const HELD: usize = 4096;

/// A choice of the current schedule.
#[derive(Debug)]
struct Node {
    /// The names of the steps that are possible.
    choices: Vec<u64>,
    /// The one that is taken: its name, and its index once that is known.
    key: u64,
    pick: Option<u32>,
    /// What it touches, as far as that is known before it is taken.
    touches: Option<Arc<[Access]>>,
    /// How many steps were taken there before, with all that follows.
    finished: u32,
    sleep: Vec<Asleep>,
    /// Whether the step is taken before all others in any case, and depends on nothing.
    forced: bool,
    /// What the wakeup tree wants behind the step that is taken.
    behind: Vec<Branch>,
    /// What it wants in place of it.
    instead: Vec<Branch>,
    /// The ticket of the step that is taken, if it was run ahead.
    ticket: Option<u64>,
}

/// A step that is still to be taken, and those behind it.
#[derive(Debug)]
struct Branch {
    key: u64,
    /// `None`: not known.
    touches: Option<Arc<[Access]>>,
    behind: Vec<Branch>,
    /// If it is being run ahead.
    ticket: Option<u64>,
}

impl All {
    /// A search. A proof assumes more of words. `by_thread`: whether it may assume more of quiets in kernels, too.
    pub(crate) fn new(proof: bool, reduce: Reduce, by_thread: bool) -> All {
        let assumed = Assumptions::new(proof, reduce);
        let assumed = Some(Box::new(if by_thread { assumed.by_thread() } else { assumed }));
        let given = Given { given_up: assumed.as_ref().map(|assumed| assumed.given_up()), ..Given::default() };
        All { assumed, given: Arc::new(given), ..All::default() }
    }

    /// A search of the schedules that begin with these steps, which assumes nothing of words.
    pub(crate) fn behind(steps: Vec<Known>) -> All {
        let fixed = steps.len();
        let path = steps.into_iter().map(|Known { key, pick, of, forced }| {
            let (sleep, behind, instead) = (Vec::new(), Vec::new(), Vec::new());
            let (choices, pick) = (vec![key; of], Some(pick));
            Node { choices, key, pick, touches: None, finished: 0, sleep, forced, behind, instead, ticket: None }
        });
        All { path: path.collect(), fixed, ..All::default() }
    }

    /// The names of the current schedule's steps.
    pub(crate) fn steps(&self) -> Vec<StepName> {
        let mut times: BTreeMap<u64, u32> = BTreeMap::new();
        let name = |node: &Node| {
            let times = times.entry(node.key).or_default();
            *times += 1;
            StepName { key: node.key, times: *times - 1 }
        };
        self.path.iter().map(name).collect()
    }

    /// The schedule to run now, and the ticket for it if it was run ahead.
    pub(crate) fn attempt(&mut self) -> (Attempt, Option<u64>) {
        let branch = self.path.split_last().filter(|_| self.path.len() > self.fixed);
        let Some((last, before)) = branch else {
            let known = self.path.iter().map(Node::known).collect();
            let (chain, sleep) = (Vec::new(), Vec::new());
            return (Attempt { given: Arc::clone(&self.given), known, branch: None, chain, sleep }, None);
        };
        let attempt = Attempt {
            given: Arc::clone(&self.given),
            known: before.iter().map(Node::known).collect(),
            branch: Some((last.key, last.choices.len())),
            chain: chain(&last.behind),
            sleep: last.sleep.iter().map(unshared).collect(),
        };
        let ticket = last.ticket;
        (attempt, ticket)
    }

    /// Whether what was run ahead for a ticket is this.
    pub(crate) fn is_as_foreseen(&mut self, ticket: u64, attempt: &Attempt) -> bool {
        self.ahead.remove(&ticket).is_some_and(|foreseen| foreseen.is(attempt))
    }

    /// Looks at the next `most` schedules that are known, and offers those that nobody runs yet. `offer` returns a ticket. A branch
    /// will be taken where it is now, behind the steps that it has now, once all branches before it are asleep.
    pub(crate) fn look_ahead(&mut self, most: usize, mut offer: impl FnMut(Attempt) -> u64) {
        let last = self.path.len().saturating_sub(1);
        let (mut known, mut next): (Option<Vec<Known>>, usize) = (None, 0);
        for at in (0..self.path.len()).rev() {
            let instead = &self.path[at].instead;
            if instead.iter().all(|branch| branch.ticket.is_some()) {
                next += instead.len();
                continue;
            }
            let steps = known.get_or_insert_with(|| self.path[..last].iter().map(Node::known).collect());
            let touches = if at == last { self.path[at].touches.clone() } else { Some(self.events[at].touches()) };
            let Node { key, choices, sleep, instead, .. } = &mut self.path[at];
            let mut before = Some((*key, touches));
            let mut sleep: Vec<Asleep> = sleep.iter().map(unshared).collect();
            for branch in instead {
                let Some((key, Some(touches))) = before.take() else { break };
                sleep.push(unshared(&Asleep { key, touches }));
                before = Some((branch.key, branch.touches.clone()));
                next += 1;
                if next > most || self.ahead.len() >= HELD {
                    return;
                }
                if branch.ticket.is_some() {
                    continue;
                }
                let attempt = Attempt {
                    given: Arc::clone(&self.given),
                    known: steps[..at].to_vec(),
                    branch: Some((branch.key, choices.len())),
                    chain: chain(&branch.behind),
                    sleep: sleep.clone(),
                };
                let ticket = offer(attempt.clone());
                branch.ticket = Some(ticket);
                self.ahead.insert(ticket, attempt);
            }
        }
    }

    /// Takes over what came of the schedule.
    pub(crate) fn took(&mut self, attempted: Attempted) {
        let Attempted { pick, met, mut taken, cut, redundant, diverged, astray, polls, mut patience, sightings } =
            attempted;
        (self.cut, self.redundant, self.diverged, self.astray) = (cut, redundant, diverged, astray);
        self.polls |= polls;
        self.impatient = patience.has_grown();
        if self.impatient {
            self.given = Arc::new(Given { patience, given_up: self.given.given_up.clone() });
        }
        if let Some((assumed, mut sightings)) = self.assumed.as_mut().zip(sightings) {
            if redundant {
                sightings.drop_doubts();
            } else if sightings.is_in_doubt() {
                let (order, reversals) = taken.ordered();
                sightings.settle(|step| Some(order.before(step)));
                taken = Taken::Ordered(order, reversals);
            }
            assumed.learn(sightings);
        }
        if let (Some(last), Some(_)) = (self.path.last_mut(), pick) {
            last.pick = pick;
        }
        for Met { choices, key, pick, forced } in met {
            let step = self.path.len().checked_sub(1).map(|last| (last, taken.touches(last)));
            let sleep = step.map_or_else(Vec::new, |(last, touches)| {
                let Node { key, sleep, .. } = &self.path[last];
                sleep.iter().filter(|asleep| stays(asleep, *key, touches)).cloned().collect()
            });
            let mut instead = self.path.last_mut().map_or_else(Vec::new, |node| std::mem::take(&mut node.behind));
            let behind = match instead.is_empty() {
                true => Vec::new(),
                false if forced => std::mem::take(&mut instead),
                false => std::mem::take(&mut instead.remove(0).behind),
            };
            let (pick, touches, ticket, finished) = (Some(pick), None, None, 0);
            self.path.push(Node { choices, key, pick, touches, finished, sleep, forced, behind, instead, ticket });
        }
        self.taken = Some(taken);
    }

    /// How the current schedule has ended: whether nothing is wrong.
    pub(crate) fn has_ended(&mut self, well: bool) {
        self.assumed.iter_mut().for_each(|assumed| assumed.has_ended(well));
    }

    /// Whether quiets in kernels are taken to be about less than the program may rely on, as far as a schedule depended on it.
    pub(crate) fn is_by_thread(&self) -> bool {
        self.assumed.as_ref().is_some_and(|assumed| assumed.is_by_thread())
    }

    /// Whether the schedule that just ended shows that something was assumed wrongly. Then the search has started again, and what
    /// was run ahead is not needed.
    pub(crate) fn starts_again(&mut self, mut forget: impl FnMut(u64)) -> bool {
        let given_up = self.assumed.as_mut().is_some_and(|assumed| assumed.give_up());
        let again = self.impatient || given_up;
        if again {
            let (assumed, patience) = (self.assumed.take(), self.given.patience.clone());
            let given_up = assumed.as_ref().map(|assumed| assumed.given_up());
            self.ahead.keys().for_each(|ticket| forget(*ticket));
            *self = All { assumed, given: Arc::new(Given { patience, given_up }), ..All::default() };
        }
        again
    }

    /// Whether polls were left out because they would have read nothing new.
    pub(crate) fn leaves_out_polls(&self) -> bool {
        self.polls
    }

    /// Whether the schedule that just ended did not do again what the one before it did up to their difference. `races`: whether
    /// a schedule had a race, which may be why a step was not possible.
    pub(crate) fn has_diverged(&self, races: bool) -> bool {
        self.diverged || self.astray && !races
    }

    /// Whether a step of the schedule that just ended was derived from another one, and is not possible.
    pub(crate) fn is_astray(&self) -> bool {
        self.astray
    }

    /// Whether the schedule that just ended is equivalent to an earlier one, or was not possible.
    pub(crate) fn is_redundant(&self) -> bool {
        self.redundant
    }

    /// The choices of the current schedule.
    pub(crate) fn choices(&self) -> Choices {
        let is_stepwise = self.assumed.as_ref().is_some_and(|assumed| assumed.is_stepwise());
        if is_stepwise { Choices::Stepwise(self.picks()) } else { Choices::Picks(self.picks()) }
    }

    /// Its picks, as [`super::Replay`] takes them.
    fn picks(&self) -> Vec<u32> {
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
        self.events = match self.taken.take() {
            Some(Taken::Steps(steps, _)) if self.redundant => steps,
            Some(taken) => {
                let (order, reversals) = taken.ordered();
                self.note(&order, reversals);
                if self.cut {
                    self.note_all_choices();
                }
                order.into_steps()
            }
            None => std::mem::take(&mut self.events),
        };
        debug_assert!(self.path.len() - self.events.len() <= 1);
        while self.path.len() > self.fixed {
            // a step that was not possible has no event
            let was_taken = self.events.len() == self.path.len();
            let Some(node) = self.path.last_mut() else { break };
            if let Some(event) = self.events.pop_if(|_| was_taken) {
                node.sleep.push(Asleep { key: node.key, touches: event.touches });
            }
            if !node.instead.is_empty() {
                let mut branch = node.instead.remove(0);
                let (key, ticket) = (branch.key, branch.ticket);
                let (touches, behind) = (branch.touches.take(), std::mem::take(&mut branch.behind));
                (node.key, node.touches, node.pick, node.behind, node.ticket) = (key, touches, None, behind, ticket);
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
        let shared = |touches: &Arc<[Access]>| size_of_val(&**touches) / Arc::strong_count(touches);
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
    fn note(&mut self, order: &Order, reversals: Vec<Reversal>) {
        for Reversal { before, steps, last } in reversals.into_iter().filter(|reversal| reversal.before >= self.fixed) {
            let node = &mut self.path[before];
            let instead = Instead { steps: &steps, last: &last, is_reversed: true };
            let asleep = |asleep: &Asleep| order.is_weak_initial(asleep.key, Some(&asleep.touches), instead);
            if !node.sleep.iter().any(asleep) {
                insert(order, &mut node.instead, steps, &last);
            }
        }
    }

    /// A finding ended the schedule. Steps that were possible and were never taken might have changed that: each is tried first,
    /// wherever it was possible.
    fn note_all_choices(&mut self) {
        let mut taken = BTreeSet::new();
        for Node { choices, key, sleep, instead, .. } in self.path[self.fixed..].iter_mut().rev() {
            taken.insert(*key);
            for &other in choices.iter() {
                let known = other == IN_VAIN
                    || taken.contains(&other)
                    || sleep.iter().any(|asleep| asleep.key == other)
                    || instead.iter().any(|branch| branch.key == other);
                if !known {
                    instead.push(Branch { key: other, touches: None, behind: Vec::new(), ticket: None });
                }
            }
        }
    }
}

/// Without recursion, as a tree can be deep.
impl Drop for Branch {
    fn drop(&mut self) {
        let mut all = std::mem::take(&mut self.behind);
        while let Some(mut branch) = all.pop() {
            all.append(&mut branch.behind);
        }
    }
}

impl Node {
    fn known(&self) -> Known {
        let pick = self.pick.expect("it was taken");
        Known { key: self.key, pick, of: self.choices.len(), forced: self.forced }
    }
}

/// The steps that a schedule takes first, of those that the tree wants.
fn chain(mut branches: &[Branch]) -> Vec<u64> {
    let mut chain = Vec::new();
    while let Some(Branch { key, behind, .. }) = branches.first() {
        chain.push(*key);
        branches = behind;
    }
    chain
}

/// A copy of its own, so that what runs ahead does not count in the memory of the search.
fn unshared(Asleep { key, touches }: &Asleep) -> Asleep {
    Asleep { key: *key, touches: Arc::from(&touches[..]) }
}

/// Adds a sequence to the branches of a tree, unless it is covered. `last`: what comes before the last of its steps. A tree can be as deep as a schedule is
/// long: there is no recursion here.
fn insert<'a>(order: &'a Order, mut branches: &mut Vec<Branch>, mut steps: Vec<usize>, mut last: &'a Past) {
    let mut is_reversed = true;
    loop {
        let instead = Instead { steps: &steps, last, is_reversed };
        let covers = |branch: &Branch| order.is_weak_initial(branch.key, branch.touches.as_deref(), instead);
        let Some(index) = branches.iter().position(covers) else { break };
        let Branch { key, ref mut behind, .. } = branches[index];
        if let Some(at) = steps.iter().position(|&step| order.key(step) == key) {
            steps.remove(at); // an agent's later steps have the same name
            if let Some(&end) = steps.last().filter(|_| at == steps.len()) {
                (last, is_reversed) = (order.before(end), false);
            }
        }
        if behind.is_empty() || steps.is_empty() {
            return;
        }
        branches = behind;
    }
    let mut behind = Vec::new();
    let instead = Instead { steps: &steps, last, is_reversed };
    for (at, &step) in steps.iter().enumerate().rev() {
        let touches = Some(order.touches_in(instead, at));
        behind = vec![Branch { key: order.key(step), touches, behind, ticket: None }];
    }
    branches.append(&mut behind);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(key: u64, pick: u32, possible: u64) -> Node {
        let choices = (0..possible).collect();
        let (sleep, behind, instead, touches, ticket) = (vec![], vec![], vec![], None, None);
        Node { choices, key, pick: Some(pick), touches, finished: 0, sleep, forced: false, behind, instead, ticket }
    }

    fn branch(key: u64) -> Branch {
        Branch { key, touches: None, behind: vec![], ticket: None }
    }

    fn events(n: usize) -> Vec<Event> {
        std::iter::repeat_with(Event::default).take(n).collect()
    }

    /// A schedule can have a million steps, and a thread's stack has room for some thousand calls.
    #[test]
    fn a_tree_can_be_as_deep_as_a_schedule_is_long() {
        const STEPS: usize = 200_000;
        let order = Order::of(events(STEPS), &[]);
        let mut branches = Vec::new();
        let nothing = Past::default();
        for _ in 0..2 {
            insert(&order, &mut branches, (0..STEPS).collect(), &nothing);
        }
        assert_eq!(chain(&branches).len(), STEPS);
        drop(branches);
    }

    #[test]
    fn the_search_goes_back_to_the_deepest_branch_first() {
        let path = vec![node(1, 0, 2), node(2, 0, 1), node(3, 0, 3)];
        let mut all = All { path, events: events(3), ..All::default() };
        all.path[0].instead = vec![branch(5)];
        all.path[2].instead = vec![branch(6), branch(7)];
        let mut taken = Vec::new();
        while all.next_schedule() {
            let node = all.path.last().expect("there is a branch");
            taken.push((all.path.len(), node.key, node.sleep.iter().map(|asleep| asleep.key).collect::<Vec<_>>()));
            all.events.push(Event::default());
        }
        assert_eq!(taken, [(3, 6, vec![3]), (3, 7, vec![3, 6]), (1, 5, vec![1])]);
        assert!(all.path.is_empty());
    }

    #[test]
    fn behind_a_finding_every_choice_is_tried_that_is_not_known() {
        let taken = Some(Taken::Steps(events(1), Vec::new()));
        let mut all = All { path: vec![node(1, 1, 4)], taken, cut: true, ..All::default() };
        all.path[0].instead = vec![branch(3)];
        all.path[0].sleep = vec![Asleep { key: 0, touches: Arc::from([]) }];
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
        // half of the schedules are behind 1, and of those a third behind each of 2, 6 and 7
        let mut totals = Vec::new();
        for visited in 1.. {
            let has_more = all.next_schedule();
            totals.push(all.estimate(visited));
            if !has_more {
                break;
            }
            all.events.resize_with(all.path.len(), Event::default);
        }
        assert_eq!(totals, [6, 6, 6, 4]);
    }

    #[test]
    fn what_is_shared_counts_once_in_the_memory_of_a_search() {
        let mut all = All { path: vec![node(1, 0, 2)], events: events(1), ..All::default() };
        let alone = all.memory();
        let touches: Arc<[Access]> = Arc::clone(&all.events[0].touches);
        all.path[0].sleep.push(Asleep { key: 2, touches: Arc::clone(&touches) });
        all.path[0].instead.push(Branch { key: 3, touches: Some(touches), behind: vec![branch(4)], ticket: None });
        assert_eq!(all.memory(), alone + size_of::<Asleep>() + 2 * size_of::<Branch>());
        assert!(alone >= size_of::<Node>() + size_of::<Event>());
    }

    #[test]
    fn picks_are_those_of_real_choices_without_the_zeros_at_the_end() {
        let path = vec![node(1, 0, 3), node(2, 0, 1), node(3, 1, 2), node(4, 0, 2), node(5, 0, 4)];
        let all = All { path, ..All::default() };
        assert_eq!(all.picks(), [0, 1]);
        assert!(All::new(false, Reduce::Everything, false).picks().is_empty());
    }
}
