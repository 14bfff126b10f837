//! One schedule of an exhaustive search, as far as the search decides about it beforehand.
//!
//! It follows the steps to a branch of the search's tree, takes the branch, follows what the tree wants behind it, and then goes on
//! with any step that is not asleep. So it depends on nothing but an [`Attempt`], and can be run by whoever has time.

use std::sync::Arc;

use super::Chooser;
use super::reversals::{Event, Order, Reversal};
use crate::machine::{Access, Assumptions, BlockedWait, GivenUp, Machine, Needs, Patience, Sightings, Step};

/// Stands for the name of a poll in vain.
pub(super) const IN_VAIN: u64 = u64::MAX;

/// What a schedule depends on.
#[derive(Clone, Debug)]
pub(crate) struct Attempt {
    /// What all schedules since the search began again have in common.
    pub(super) given: Arc<Given>,
    /// The steps before the branch.
    pub(super) known: Vec<Known>,
    /// The branch, and of how many choices it is one; `None` in the first schedule.
    pub(super) branch: Option<(u64, usize)>,
    /// Steps behind it.
    pub(super) chain: Vec<u64>,
    /// What is asleep where it is taken.
    pub(super) sleep: Vec<Asleep>,
}

/// What is assumed in a schedule.
#[derive(Debug, Default)]
pub(super) struct Given {
    /// What is not assumed of words; `None` where nothing is assumed.
    pub(super) given_up: Option<GivenUp>,
    pub(super) patience: Patience,
}

/// A step that was taken before.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Known {
    pub(super) key: u64,
    pub(super) pick: u32,
    /// How many there were to choose from.
    pub(super) of: usize,
    pub(super) forced: bool,
}

/// A step that need not be taken, and what it touches.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Asleep {
    pub(super) key: u64,
    pub(super) touches: Arc<[Access]>,
}

/// A choice that was met behind the branch.
#[derive(Debug)]
pub(super) struct Met {
    /// The names of the steps that were possible.
    pub(super) choices: Vec<u64>,
    pub(super) key: u64,
    pub(super) pick: u32,
    /// Whether the step is taken before all others in any case.
    pub(super) forced: bool,
}

/// What came of an attempt.
#[derive(Debug)]
pub(crate) struct Attempted {
    /// The index of the branch among the choices.
    pub(super) pick: Option<u32>,
    pub(super) met: Vec<Met>,
    pub(super) taken: Taken,
    /// A finding ended the schedule: what it would have done next is not known.
    pub(super) cut: bool,
    /// Every step possible was asleep: the rest of this schedule was not looked at.
    pub(super) redundant: bool,
    /// The same picks led to other choices than before: the program is not deterministic.
    pub(super) diverged: bool,
    /// A step was not possible that the search has derived from another schedule. If the program is deterministic, it has a race: what made the
    /// step possible there was a plain access, which is no step.
    pub(super) astray: bool,
    /// Polls in vain were left out.
    pub(super) polls: bool,
    pub(super) patience: Patience,
    pub(super) sightings: Option<Sightings>,
}

/// The steps of a schedule.
#[derive(Debug)]
pub(super) enum Taken {
    /// As they were taken, with the waits that did not end.
    Steps(Vec<Event>, Vec<BlockedWait>),
    /// With their order, and pairs of them that can be taken the other way round.
    Ordered(Order, Vec<Reversal>),
}

/// If this many deliveries are possible, the oldest goes first: a loop that issues ever more may be waiting for it.
const CROWD: usize = 256;

/// The order of more steps than this is found only when it is needed: that takes time in the square of their number, and may never be needed.
const FEW: usize = 4000;

impl Taken {
    /// What a step touches.
    pub(super) fn touches(&self, step: usize) -> &[Access] {
        match self {
            Taken::Steps(steps, _) => steps[step].touched(),
            Taken::Ordered(order, _) => order.touched(step),
        }
    }

    /// The order of the steps.
    pub(super) fn ordered(self) -> (Order, Vec<Reversal>) {
        match self {
            Taken::Steps(steps, blocked) => {
                let order = Order::of(steps, &blocked);
                let reversals = order.reversals().collect();
                (order, reversals)
            }
            Taken::Ordered(order, reversals) => (order, reversals),
        }
    }
}

impl Attempted {
    /// Finds the order of the steps where somebody has time for it.
    pub(crate) fn ordered(self) -> Attempted {
        let taken = match self.taken {
            Taken::Steps(steps, blocked) if !self.redundant && steps.len() <= FEW => {
                let (order, reversals) = Taken::Steps(steps, blocked).ordered();
                Taken::Ordered(order, reversals)
            }
            taken => taken,
        };
        Attempted { taken, ..self }
    }
}

impl Attempt {
    /// Whether both lead to the same schedule.
    pub(super) fn is(&self, other: &Attempt) -> bool {
        Arc::ptr_eq(&self.given, &other.given)
            && (self.branch, &self.chain, &self.sleep) == (other.branch, &other.chain, &other.sleep)
            && self.known == other.known
    }
}

/// Takes the steps of an attempt.
#[derive(Debug)]
pub(crate) struct Attempting {
    attempt: Attempt,
    /// How much of the chain was taken.
    chained: usize,
    /// What is asleep behind the last step.
    sleep: Vec<Asleep>,
    pick: Option<u32>,
    met: Vec<Met>,
    events: Vec<Event>,
    depth: usize,
    blocked: Vec<BlockedWait>,
    cut: bool,
    redundant: bool,
    diverged: bool,
    astray: bool,
    polls: bool,
    patience: Patience,
    sightings: Option<Sightings>,
}

impl Attempting {
    pub(crate) fn new(attempt: Attempt) -> Attempting {
        Attempting {
            attempt,
            chained: 0,
            sleep: Vec::new(),
            pick: None,
            met: Vec::new(),
            events: Vec::new(),
            depth: 0,
            blocked: Vec::new(),
            cut: false,
            redundant: false,
            diverged: false,
            astray: false,
            polls: false,
            patience: Patience::default(),
            sightings: None,
        }
    }

    /// What came of it, once the run is over.
    pub(crate) fn done(self) -> Attempted {
        let Attempting { attempt, pick, met, events, depth, blocked, cut, redundant, astray, polls, .. } = self;
        let decided = attempt.known.len() + usize::from(attempt.branch.is_some());
        let diverged = self.diverged || !redundant && depth < decided;
        let (patience, sightings, taken) = (self.patience, self.sightings, Taken::Steps(events, blocked));
        Attempted { pick, met, taken, cut, redundant, diverged, astray, polls, patience, sightings }
    }

    /// The step that was decided about, if this is one: its index among the choices, if it is there.
    fn decided(&mut self, machine: &Machine, n: usize) -> Option<Option<usize>> {
        let Attempt { known, branch, .. } = &self.attempt;
        if let Some(Known { key, pick, of, .. }) = known.get(self.depth) {
            let pick = *pick as usize;
            return Some((n == *of && pick < n && machine.choice_key(pick) == *key).then_some(pick));
        }
        let (key, of) = branch.filter(|_| self.depth == known.len())?;
        let index = find(machine, n, key).filter(|_| n == of);
        self.pick = index.map(|index| index as u32);
        Some(index)
    }

    /// The next step, where nothing was decided: its index, if any is possible that is not asleep.
    fn next(&mut self, machine: &Machine, n: usize) -> Option<usize> {
        if let Some(&key) = self.attempt.chain.get(self.chained) {
            self.chained += 1;
            let index = find(machine, n, key);
            self.astray |= index.is_none();
            return index;
        }
        let awake = |index: &usize| {
            let key = machine.choice_key(*index);
            self.sleep.iter().all(|asleep| asleep.key != key)
        };
        self.polls |= (0..n).any(|index| machine.is_in_vain(index));
        let mut possible = (0..n).filter(|index| awake(index) && !machine.is_in_vain(*index));
        let agents = machine.agent_choices();
        match n - agents > CROWD {
            true => {
                possible.min_by_key(|&index| if index >= agents { Ok(machine.issue_order(index)) } else { Err(index) })
            }
            false => possible.next(),
        }
    }
}

fn find(machine: &Machine, n: usize, key: u64) -> Option<usize> {
    (0..n).find(|&index| machine.choice_key(index) == key)
}

/// What stays asleep behind a step.
pub(super) fn stays(asleep: &Asleep, key: u64, touches: &[Access]) -> bool {
    let changes = |touched: &Access| asleep.touches.iter().any(|access| touched.changes(access));
    asleep.key != key && !touches.iter().any(changes)
}

impl Chooser for Attempting {
    const NEEDS: Needs = Needs::PASTS;

    fn pick(&mut self, machine: &Machine, n: usize) -> usize {
        if self.redundant {
            return 0;
        }
        if let Some(index) = self.decided(machine, n) {
            if index.is_none() {
                let is_branch =
                    self.attempt.branch.is_some_and(|(_, of)| n == of && self.depth == self.attempt.known.len());
                (self.astray, self.diverged, self.redundant) = (is_branch, !is_branch, true);
            }
            return index.unwrap_or(0);
        }
        if let Some(index) = machine.forced() {
            let key = machine.choice_key(index);
            self.met.push(Met { choices: vec![key; n], key, pick: index as u32, forced: true });
            return index;
        }
        let Some(index) = self.next(machine, n) else {
            self.redundant = true;
            return 0;
        };
        let key = machine.choice_key(index);
        let name = |index| if machine.is_in_vain(index) { IN_VAIN } else { machine.choice_key(index) };
        let choices = (0..n).map(name).collect();
        self.met.push(Met { choices, key, pick: index as u32, forced: false });
        index
    }

    fn took(&mut self, step: &Step) {
        if self.redundant {
            return;
        }
        let Attempt { known, branch, .. } = &self.attempt;
        let (key, forced) = match (self.depth.checked_sub(known.len()), branch) {
            (None, _) => (known[self.depth].key, known[self.depth].forced),
            (Some(0), Some((key, _))) => (*key, false),
            (Some(_), _) => self.met.last().map(|met| (met.key, met.forced)).expect("it was just picked"),
        };
        let event = Event::new(key, step, forced);
        let is_branch = branch.is_some() && self.depth == known.len();
        if is_branch {
            self.sleep = std::mem::take(&mut self.attempt.sleep);
        }
        self.sleep.retain(|asleep| stays(asleep, key, &event.touches));
        self.events.push(event);
        self.depth += 1;
    }

    fn prepare(&mut self, machine: &mut Machine) {
        if let Some(given_up) = &self.attempt.given.given_up {
            machine.assume(Box::new(Assumptions::without(given_up)));
        }
        machine.be_patient(self.attempt.given.patience.clone());
    }

    fn ended(&mut self, machine: &mut Machine, cut: bool) {
        self.blocked = machine.blocked_waits();
        self.cut = cut;
        self.patience = machine.take_patience();
        self.sightings = machine.take_assumed().map(|assumed| assumed.sightings());
    }
}
