//! What each round of a loop looks at besides the word that ends it, such as the other elements of a packet, or a flag by which all are told to give up.
//!
//! While a thread waits, others may change such a word. If the loop goes on with whatever it finds there, that does not matter. If it
//! goes on only while the word [says nothing](Beside::otherwise), the thread waits only as long as that is so.

use std::collections::BTreeMap;

use super::again::is_strong_load;
use super::decides::{Decides, decides};
use super::rounds::{Step, Walk};
use super::simpler::Part;
use super::text::{Name, Text};
use crate::syntax::Operand;
use crate::world::Until;

/// A load that each round makes besides.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Beside<'a> {
    pub(super) load: Part,
    /// Where it loads from: a register that the loop does not change, and a distance.
    pub(super) base: Operand<'a>,
    pub(super) offset: i64,
    /// What it must not find, if the loop is to go on.
    pub(super) otherwise: Option<Until<Operand<'a>>>,
}

impl<'a> Text<'a> {
    /// Walks on with each result that the comparison of a look besides may have. One of them may lead anywhere: then the loop goes on only while that
    /// look finds what leads to the other one. `None`: neither leads to looks. `behind`: the step behind the comparison.
    pub(super) fn walk_besides(
        &self,
        (load, decides): (usize, &Decides<'a>),
        behind: &Step<'a>,
        walk: &mut Walk<'a, '_>,
        looks: &mut Vec<usize>,
    ) -> Option<()> {
        let mut leads = Vec::new();
        for value in [0, 1] {
            let (mut tried, mut seen, mut step) = (walk.clone(), looks.clone(), behind.clone());
            self.names_of(decides.at).for_each(|name| _ = step.known.insert(name, value));
            if self.walk(step, &mut tried, &mut seen).is_some() {
                (*walk, *looks) = (tried, seen);
                leads.push(value);
            }
        }
        match leads[..] {
            [] => None,
            [value] => {
                let goes_on = walk.besides.insert(load, (value, decides.until(value)));
                goes_on.is_none_or(|(before, _)| before == value).then_some(())
            }
            _ => Some(()),
        }
    }

    /// The strong load that an instruction compares, if it is none of the loop's own looks.
    pub(super) fn compared_besides(&self, at: usize, walk: &Walk<'a, '_>) -> Option<(usize, &Decides<'a>)> {
        let (load, decides) = self.compared.get(&at)?;
        // with the load before the look and the comparison behind it, that would be of a value from before the wait
        (!walk.is_look(*load, self) && walk.way.has(*load) == walk.way.has(at)).then_some((*load, decides))
    }

    /// Comparisons of the word of a strong load alone, where nothing else leads to what stands between them.
    pub(super) fn find_compared(&self) -> BTreeMap<usize, (usize, Decides<'a>)> {
        let compared = |load: usize| {
            let (_, instruction) = self.body[load];
            let decides = decides(self, load).filter(|_| instruction.guard.is_none() && is_strong_load(instruction))?;
            let is_straight = decides.branches.is_empty() && !(load + 1..=decides.at).any(|at| self.is_label(at));
            is_straight.then_some((decides.at, (load, decides)))
        };
        (0..self.body.len()).filter_map(compared).collect()
    }

    /// What the rounds look at besides that a walk has come through. `None`: nobody can tell where that is.
    pub(super) fn looked_at_besides(
        &self,
        walk: &Walk<'a, '_>,
        is_before: impl Fn(usize) -> bool,
    ) -> Option<Vec<Beside<'a>>> {
        let is_written = |name: Name<'a>| walk.passed.iter().any(|&at| self.names_of(at).any(|other| other == name));
        let mut besides = BTreeMap::new();
        for &load in &walk.passed {
            let (scope, instruction) = self.body[load];
            let otherwise = walk.besides.get(&load).map(|(_, until)| until.clone());
            let is_one = is_strong_load(instruction) && !walk.is_look(load, self);
            if !is_one || otherwise.is_none() && is_before(load) {
                continue;
            }
            let [_, Operand::Address { base: Some(base), offset }] = &instruction.operands[..] else { return None };
            let numbers = otherwise.iter().flat_map(|until| until.view.numbers().chain([&until.against]));
            let names = numbers.filter_map(|number| match number {
                Operand::Name { name, .. } => Some(self.name(scope, name)),
                _ => None,
            });
            if names.chain([self.name(scope, base)]).any(is_written) {
                return None;
            }
            let base = Operand::Name { name: base, offset: 0 };
            besides.insert(load, Beside { load: self.parts[load], base, offset: *offset, otherwise });
        }
        Some(besides.into_values().collect())
    }
}
