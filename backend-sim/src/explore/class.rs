//! Which class of equivalent schedules a run belongs to: a hash of the order of all accesses to the same memory.
//!
//! The hash of a step is made of its name and the hashes of the last steps before it whose accesses do not commute with its own.
//! The hash of a run is the sum of them all. So two runs that differ in the order of steps that commute have the same hash. What
//! is no memory does not count, and neither do steps without memory: a search at random does not keep what a quiet has claimed where
//! nothing was in flight, so some steps are not there in every schedule of a class. What matters shows in the order of accesses.
//!
//! As in a search of all schedules, updates commute where nobody looks between them, and in a proof the ends of waits for steady words
//! do not count (`machine/assumed.rs`). Which words these are is seen in the first run.

use std::collections::BTreeMap;

use super::Chooser;
use crate::config::Reduce;
use crate::machine::{Access, Assumptions, Fold, GivenUp, Machine, Needs, Object, ObjectKind, Step, Touch};
use crate::mix::mixed;

/// A chooser whose runs are classified.
#[derive(Debug)]
pub(crate) struct Classified<'a, C> {
    chooser: C,
    class: &'a mut Class,
    /// The name of the step that was picked.
    key: u64,
}

impl<'a, C> Classified<'a, C> {
    /// `class` becomes that of the run.
    pub(crate) fn new(chooser: C, class: &'a mut Class) -> Classified<'a, C> {
        class.clear();
        Classified { chooser, class, key: 0 }
    }
}

impl<C: Chooser> Chooser for Classified<'_, C> {
    const NEEDS: Needs = Needs { noting: true, ..C::NEEDS };

    fn pick(&mut self, machine: &Machine, n: usize) -> usize {
        let index = self.chooser.pick(machine, n);
        self.key = machine.choice_key(index);
        index
    }

    fn took(&mut self, step: &Step) {
        self.class.add(self.key, &step.touched);
        self.chooser.took(step);
    }

    fn prepare(&mut self, machine: &mut Machine) {
        if let Some(assumed) = self.class.assumed.take() {
            machine.assume(assumed);
        }
        self.chooser.prepare(machine);
    }

    fn ended(&mut self, machine: &mut Machine, cut: bool) {
        self.class.assumed = machine.take_assumed();
        self.chooser.ended(machine, cut);
    }
}

/// The class of the steps of a run until now.
#[derive(Debug, Default)]
pub(crate) struct Class {
    sum: u64,
    /// How often a step of each name was taken, sorted by name. Only the steps of an agent have one name.
    times: Vec<(u64, u64)>,
    /// Which steps touched which bytes of each allocation, sorted and without overlaps.
    memory: BTreeMap<ObjectKind, Vec<Cell>>,
    /// What is assumed of words, if anything is. The machine has it during the run.
    assumed: Option<Box<Assumptions>>,
}

/// Kinds of updates of which two commute.
const FOLDS: usize = Fold::KINDS;

/// Bytes, and the steps that touched them, as far as later steps may not commute with those: sums of their hashes.
#[derive(Clone, Copy, Debug, Default)]
struct Cell {
    start: usize,
    end: usize,
    /// The last write or update.
    updated: u64,
    /// Reads since that, and additions.
    read: u64,
    added: u64,
    /// The same of updates that commute with their like, of each kind.
    folded: [u64; FOLDS],
}

impl Class {
    /// For runs of which the same is assumed as in a proof, or in a search of all outcomes.
    pub(crate) fn new(proof: bool, reduce: Reduce) -> Class {
        Class { assumed: Some(Box::new(Assumptions::new(proof, reduce).stepwise())), ..Class::default() }
    }

    /// For runs elsewhere, of which the same is assumed.
    pub(crate) fn given_up(&self) -> Option<GivenUp> {
        self.assumed.as_ref().map(|assumed| assumed.given_up())
    }

    /// For runs of which this is not assumed.
    pub(crate) fn without(given_up: Option<&GivenUp>) -> Class {
        let assumed = given_up.map(|given_up| Box::new(Assumptions::without(given_up)));
        Class { assumed, ..Class::default() }
    }

    /// Whether the run that just ended shows that something was assumed wrongly. Then it has the same class as others only if it
    /// is run again.
    pub(crate) fn starts_again(&mut self) -> bool {
        self.assumed.as_mut().is_some_and(|assumed| assumed.give_up())
    }

    /// The class, as a hash.
    pub(crate) fn hash(&self) -> u64 {
        self.sum
    }

    fn clear(&mut self) {
        self.sum = 0;
        self.times.clear();
        self.memory.values_mut().for_each(Vec::clear);
    }

    /// The step with this name is taken, and has touched this.
    fn add(&mut self, key: u64, touched: &[Access]) {
        let own = touched.iter().filter(|access| matches!(access.object, Object::Memory { .. }) && !is_the_end(access));
        if own.clone().next().is_some() {
            let mut before = 0_u64;
            for access in own.clone() {
                self.each_cell(access, |cell| before = before.wrapping_add(cell.before(access.touch)));
            }
            let before = before.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let hash = mixed(mixed(key).wrapping_add(mixed(self.count(key))) ^ before);
            own.for_each(|access| self.each_cell(access, |cell| cell.touch(access.touch, hash)));
            self.sum = self.sum.wrapping_add(mixed(hash));
        }
        for end in touched.iter().filter(|access| is_the_end(access)) {
            self.each_cell(end, |cell| cell.touch(end.touch, THE_END));
        }
    }

    /// How often a step of this name was taken before.
    fn count(&mut self, key: u64) -> u64 {
        if key >> 63 == 0 {
            return 0; // a transfer's
        }
        let at = self.times.binary_search_by_key(&key, |&(other, _)| other);
        let at = at.unwrap_or_else(|at| {
            self.times.insert(at, (key, 0));
            at
        });
        self.times[at].1 += 1;
        self.times[at].1 - 1
    }

    /// Visits cells that cover the memory of an access exactly.
    fn each_cell(&mut self, access: &Access, visit: impl FnMut(&mut Cell)) {
        if let Object::Memory { start, end, .. } = access.object {
            each_cell(self.memory.entry(access.object.kind()).or_default(), start, end, visit);
        }
    }
}

/// Whether an access is the end of an allocation. That is no step of anybody's: all PEs enter it, and whoever comes last does it.
fn is_the_end(access: &Access) -> bool {
    matches!(access.object, Object::Memory { end: usize::MAX, .. })
}

/// Stands for the hash of a step where an allocation has ended.
const THE_END: u64 = 1;

/// Visits cells that cover the bytes exactly. Where there are none yet, they are made; where one reaches beyond, it is cut.
fn each_cell(cells: &mut Vec<Cell>, start: usize, end: usize, mut visit: impl FnMut(&mut Cell)) {
    let mut at = cells.partition_point(|cell| cell.end <= start);
    let mut from = start;
    while from < end {
        let next = cells.get(at).copied().filter(|cell| cell.start < end);
        match next {
            Some(cell) if cell.start < from => {
                cells[at].end = from;
                cells.insert(at + 1, Cell { start: from, ..cell });
            }
            Some(cell) if cell.start == from => {
                if cell.end > end {
                    cells[at].end = end;
                    cells.insert(at + 1, Cell { start: end, ..cell });
                }
                visit(&mut cells[at]);
                from = cells[at].end;
            }
            _ => {
                let to = next.map_or(end, |cell| cell.start);
                cells.insert(at, Cell { start: from, end: to, ..Cell::default() });
                continue;
            }
        }
        at += 1;
    }
}

impl Cell {
    /// The steps that a step does not commute with which touches it so. Each byte counts, so it does not matter how the bytes
    /// are cut into cells.
    fn before(&self, touch: Touch) -> u64 {
        let folded = |except: Option<Fold>| {
            let others =
                self.folded.iter().enumerate().filter(|(kind, _)| except.is_none_or(|own| own.kind() != *kind));
            others.fold(0_u64, |sum, (_, steps)| sum.wrapping_add(*steps))
        };
        let steps = match touch {
            Touch::Read => self.updated.wrapping_add(self.added).wrapping_add(folded(None)),
            Touch::Add { .. } => self.updated.wrapping_add(self.read).wrapping_add(folded(None)),
            Touch::Fold(own) => {
                self.updated.wrapping_add(self.read).wrapping_add(self.added).wrapping_add(folded(Some(own)))
            }
            Touch::Write | Touch::Atomic | Touch::Last(_) => {
                self.updated.wrapping_add(self.read).wrapping_add(self.added).wrapping_add(folded(None))
            }
            Touch::Ends => 0,
        };
        steps.wrapping_mul((self.end - self.start) as u64)
    }

    fn touch(&mut self, touch: Touch, step: u64) {
        match touch {
            Touch::Read => self.read = self.read.wrapping_add(step),
            Touch::Add { .. } => self.added = self.added.wrapping_add(step),
            Touch::Fold(kind) => {
                let folded = &mut self.folded[kind.kind()];
                *folded = folded.wrapping_add(step);
            }
            Touch::Ends => {}
            Touch::Write | Touch::Atomic | Touch::Last(_) => {
                (self.updated, self.read, self.added, self.folded) = (step, 0, 0, [0; FOLDS]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::{Actor, PeId};
    use onesided::backend::{AllocId, Span};
    use proptest::prelude::*;

    fn access(start: usize, len: usize, touch: Touch) -> Access {
        let object = Object::memory(PeId(0), Span { alloc: AllocId(0), start, len });
        Access { object, touch, by: Actor { agent: None, scope: None, call: "put", at: None } }
    }

    fn class(steps: &[(u64, Vec<Access>)]) -> u64 {
        let mut class = Class::default();
        steps.iter().for_each(|(key, touched)| class.add(*key, touched));
        class.sum
    }

    /// Steps with some accesses each to a few bytes.
    fn steps() -> impl Strategy<Value = Vec<(u64, Vec<Access>)>> {
        let folds = [Fold::And, Fold::Or, Fold::Greatest].map(Touch::Fold);
        let touches = [&[Touch::Read, Touch::Write, Touch::Atomic, Touch::Add { by: 1 }][..], &folds].concat();
        let touch = prop::sample::select(touches);
        let access = (0usize..12, 1usize..6, touch).prop_map(|(start, len, touch)| access(start, len, touch));
        let step = prop::collection::vec(access, 0..3);
        prop::collection::vec(step, 2..9).prop_map(|steps| (0..).zip(steps).collect())
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
        /// Neighbours that commute can change places, and no others can.
        #[test]
        fn only_the_order_of_steps_that_do_not_commute_matters(steps in steps(), at in 0usize..7) {
            let at = at % (steps.len() - 1);
            let mut other = steps.clone();
            other.swap(at, at + 1);
            let conflict = steps[at].1.iter().any(|a| steps[at + 1].1.iter().any(|b| a.conflicts(b)));
            prop_assert_eq!(class(&steps) == class(&other), !conflict);
        }
    }

    #[test]
    fn the_steps_of_an_agent_have_an_order() {
        let (agent, transfer) = (1 << 63, 7);
        let (read, write) = (access(0, 8, Touch::Read), access(0, 8, Touch::Write));
        let of = |order: [(u64, Access); 3]| class(&order.map(|(key, access)| (key, vec![access])));
        let late = of([(agent, read), (agent, read), (transfer, write)]);
        assert_ne!(late, of([(agent, read), (transfer, write), (agent, read)]));
        assert_ne!(late, of([(transfer, write), (agent, read), (agent, read)]));
    }
}
