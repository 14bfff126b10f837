//! What each round of a loop looks at besides the word that ends it, such as the other elements of a packet, or a flag by which all are told to give up.
//!
//! While a thread waits, others may change such a word. If the loop goes on with whatever it finds there, that does not matter. If it
//! goes on only while the word [says nothing](Beside::otherwise), the thread waits only as long as that is so.

use std::collections::BTreeMap;

use super::again::is_strong_load;
use super::decides::{Decides, decides};
use super::rounds::Walk;
use super::simpler::Part;
use super::text::{Known, Name, Text};
use crate::syntax::Operand;
use crate::world::Until;

/// So many instructions may stand between a look besides and the branch that it decides.
const MOST_BETWEEN: usize = 128;

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
    /// Walks the ways of a branch that a look besides decides. One of them may lead anywhere: then the loop goes on only while that look finds what leads
    /// to the other one. Returns whether one leads to looks. `None`: the branch is decided by something else.
    pub(super) fn walk_besides(
        &self,
        branch: usize,
        known: &Known<'a>,
        walk: &mut Walk<'a, '_>,
        looks: &mut Vec<usize>,
    ) -> Option<bool> {
        let (load, decides) = self.decided_besides(branch)?;
        // with the load before the look and the branch behind it, the branch would use a value from before the wait
        if !walk.passed.contains(&load) || walk.way.has(load) != walk.way.has(branch) {
            return None;
        }
        let (_, negated) = self.body[branch].1.guard?;
        let ways = [(u64::from(negated), branch + 1), (u64::from(!negated), self.branches_to(branch)?)];
        let mut leads = Vec::new();
        for (value, way) in ways {
            let (mut tried, mut seen) = (walk.clone(), looks.clone());
            if self.walk(way, known.clone(), &mut tried, &mut seen).is_some() {
                (*walk, *looks) = (tried, seen);
                leads.push(value);
            }
        }
        Some(match leads[..] {
            [] => false,
            [value] => {
                let goes_on = walk.besides.insert(load, (value, decides.until(value)));
                goes_on.is_none_or(|(before, _)| before == value)
            }
            _ => true,
        })
    }

    /// The strong load whose word alone a branch depends on, if nothing else leads to what stands between them.
    fn decided_besides(&self, branch: usize) -> Option<(usize, Decides<'a>)> {
        let (scope, instruction) = self.body[branch];
        let guard = self.name(scope, instruction.guard?.0);
        for at in (branch.saturating_sub(MOST_BETWEEN)..branch).rev() {
            let (_, instruction) = self.body[at];
            if self.is_label(at + 1) || instruction.opcode == "bra" && instruction.guard.is_none() {
                return None;
            }
            if instruction.guard.is_none()
                && is_strong_load(instruction)
                && let Some(decides) = decides(self, at)
                && decides.branches.is_empty()
                && self.names_of(decides.at).any(|name| name == guard)
            {
                let is_kept = !(decides.at + 1..branch).any(|at| self.names_of(at).any(|name| name == guard));
                return is_kept.then_some((at, decides));
            }
        }
        None
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
