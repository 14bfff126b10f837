//! The order in which everything happens at once, with exceptions: steps that wait for others.

use std::collections::{BTreeMap, BTreeSet};

use onesided::At;

use super::Chooser;
use crate::exception::{Exception, StepName};
use crate::machine::{Machine, Needs};

/// Takes transfers' steps first, then lets the agent go on that went last, then the others; each in the order in which they became
/// possible. But no step is taken before what it waits for, unless nothing else is possible.
#[derive(Debug, Default)]
pub(crate) struct Exceptions {
    /// What each late step waits for.
    waits: BTreeMap<StepName, Vec<StepName>>,
    /// Steps that others wait for, and that have not been taken.
    awaited: BTreeSet<StepName>,
    /// Late steps that were possible before what they wait for.
    held: BTreeSet<StepName>,
    names: Names,
    /// The agent that went last.
    current: Option<u64>,
    /// When each step became possible, as a number.
    arrived: BTreeMap<u64, u64>,
    seen: u64,
    /// Steps of this call, by this PE, wait for everything else.
    last: Option<(At, usize)>,
    /// The steps that exceptions name, in words.
    pub(crate) words: BTreeMap<StepName, String>,
    /// Whether all other steps are put in words too.
    names_all: bool,
}

/// Names steps while a run goes on.
#[derive(Debug, Default)]
pub(super) struct Names {
    /// How many steps an agent has taken.
    times: BTreeMap<u64, u32>,
}

impl Names {
    pub(super) fn of(&self, machine: &Machine, index: usize) -> StepName {
        let key = machine.choice_key(index);
        StepName { key, times: self.times.get(&key).copied().unwrap_or(0) }
    }

    pub(super) fn take(&mut self, step: StepName) {
        *self.times.entry(step.key).or_default() += 1;
    }
}

impl Exceptions {
    pub(crate) fn new(exceptions: &[Exception]) -> Exceptions {
        let mut chooser = Exceptions::default();
        for Exception { late, after } in exceptions {
            chooser.waits.entry(*late).or_default().push(*after);
            chooser.awaited.insert(*after);
        }
        chooser
    }

    /// No exceptions. These steps are put in words when they are taken.
    pub(crate) fn naming(steps: impl Iterator<Item = StepName>) -> Exceptions {
        Exceptions { awaited: steps.collect(), ..Exceptions::default() }
    }

    /// With these exceptions; every step is put in words when it is taken.
    pub(crate) fn naming_all(exceptions: &[Exception]) -> Exceptions {
        Exceptions { names_all: true, ..Exceptions::new(exceptions) }
    }

    /// No exceptions, but the steps of a call by a PE come last, and so does what follows from them.
    pub(crate) fn with_last(call: At, pe: usize) -> Exceptions {
        Exceptions { last: Some((call, pe)), ..Exceptions::default() }
    }

    /// Whether nothing is waited for, or to be put in words, any more.
    pub(crate) fn is_settled(&self) -> bool {
        self.awaited.is_empty()
    }

    /// Whether every exception made a difference. Otherwise the list is of another program.
    pub(crate) fn fits(&self) -> bool {
        self.held.len() == self.waits.len()
    }

    /// Whether this exception's late step had to wait. Otherwise the run is the same without the exception.
    pub(crate) fn has_held(&self, exception: &Exception) -> bool {
        self.held.contains(&exception.late)
    }

    fn waits(&self, step: &StepName) -> bool {
        self.waits.get(step).is_some_and(|all| all.iter().any(|after| self.awaited.contains(after)))
    }
}

impl Chooser for Exceptions {
    fn pick(&mut self, machine: &Machine, n: usize) -> usize {
        let agents = machine.agent_choices();
        for index in 0..n {
            let number = self.seen;
            self.arrived.entry(machine.choice_key(index)).or_insert_with(|| {
                self.seen += 1;
                number
            });
        }
        let rank = |chooser: &Exceptions, index: usize| {
            let name = chooser.names.of(machine, index);
            let is_last = chooser.last.is_some_and(|(call, pe)| machine.choice_site(index) == (Some(call), pe));
            let (waits, is_agent) = (chooser.waits(&name), index < agents);
            let is_other = is_agent && chooser.current != Some(name.key);
            (waits, is_last, is_agent, is_other, chooser.arrived[&name.key], index)
        };
        if !self.waits.is_empty() {
            for index in 0..n {
                let name = self.names.of(machine, index);
                if self.waits(&name) && self.held.insert(name) {
                    self.words.insert(name, machine.choice_in_words(index));
                }
            }
        }
        let best = (0..n).map(|index| rank(self, index)).min();
        let (_, _, is_agent, .., index) = best.expect("there is a choice");
        let name = self.names.of(machine, index);
        self.arrived.remove(&name.key);
        if self.awaited.remove(&name) || self.names_all {
            self.words.insert(name, machine.choice_in_words(index));
        }
        self.names.take(name);
        if is_agent {
            self.current = Some(name.key);
        }
        index
    }
}

/// A chooser whose steps are named.
#[derive(Debug)]
pub(crate) struct Named<C> {
    pub(crate) chooser: C,
    names: Names,
    /// The steps that were taken.
    pub(crate) steps: Vec<StepName>,
}

impl<C> Named<C> {
    pub(crate) fn new(chooser: C) -> Named<C> {
        Named { chooser, names: Names::default(), steps: Vec::new() }
    }
}

impl<C: Chooser> Chooser for Named<C> {
    const NEEDS: Needs = C::NEEDS;

    fn prepare(&mut self, machine: &mut Machine) {
        self.chooser.prepare(machine);
    }

    fn pick(&mut self, machine: &Machine, n: usize) -> usize {
        let index = self.chooser.pick(machine, n);
        let name = self.names.of(machine, index);
        self.names.take(name);
        self.steps.push(name);
        index
    }

    fn took(&mut self, step: &crate::machine::Step) {
        self.chooser.took(step);
    }

    fn ended(&mut self, machine: &mut Machine, cut: bool) {
        self.chooser.ended(machine, cut);
    }
}
