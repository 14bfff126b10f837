//! What is the same in each round of a loop: the way to the look, and values that are computed on it from what does not change.

use std::collections::{BTreeMap, BTreeSet};

use super::rounds::{MOST_STEPS, Walk, is_clock};
use super::text::{Name, Text};
use super::unused::{self, Times};
use crate::syntax::{Instruction, Operand};

/// A value that is computed from more parts than this counts as a new one in each round.
const MOST_PARTS: u32 = 256;

/// The only way to an instruction, from the last place to which several ways lead: every thread that comes to the instruction has passed it.
#[derive(Clone, Debug, Default)]
pub(super) struct Way {
    /// The instructions, in this order.
    passed: Vec<usize>,
    /// Branches among them, and whether they are taken.
    pub(super) branches: BTreeMap<usize, bool>,
}

impl Way {
    pub(super) fn has(&self, at: usize) -> bool {
        self.passed.contains(&at)
    }

    /// The instructions before one of them, and that one with those behind it. `None`: all come before.
    fn around(&self, at: Option<usize>) -> (&[usize], &[usize]) {
        let end = at.and_then(|at| self.passed.iter().position(|&other| other == at));
        self.passed.split_at(end.unwrap_or(self.passed.len()))
    }
}

/// A value that is the same in every round.
#[derive(Debug, PartialEq)]
pub(super) enum Same<'a> {
    /// What a register has that the loop does not write.
    Kept(Name<'a>),
    /// What an instruction makes of others.
    Computed {
        opcode: &'a str,
        modifiers: Vec<&'a str>,
        operands: Vec<Operand<'a>>,
        sources: BTreeMap<&'a str, Same<'a>>,
    },
}

/// Spaces that are the thread's own, or that nobody writes to.
const OWN: &[&str] = &["local", "param", "const"];

/// Whether an instruction is a plain load of what others may change.
pub(super) fn is_plain_load(instruction: &Instruction<'_>) -> bool {
    const STRONG: &[&str] = &["volatile", "relaxed", "acquire", "mmio"];
    instruction.opcode == "ld" && !instruction.modifiers.iter().any(|word| OWN.contains(word) || STRONG.contains(word))
}

/// Whether an instruction is a strong load of what others may change.
pub(super) fn is_strong_load(instruction: &Instruction<'_>) -> bool {
    let is_strong = |word: &&str| matches!(*word, "volatile" | "relaxed" | "acquire");
    let is_own = |word: &&str| OWN.contains(word);
    instruction.opcode == "ld"
        && instruction.modifiers.iter().any(is_strong)
        && !instruction.modifiers.iter().any(is_own)
}

impl<'a> Text<'a> {
    /// The only way to an instruction, as far as that is not very long.
    pub(super) fn way_to(&self, mut at: usize) -> Way {
        let mut way = Way::default();
        let goes_on = |way: &Way, before: &usize| way.passed.len() < MOST_STEPS && !way.passed.contains(before);
        while let Some((before, taken)) = self.only_way_to(at).filter(|(before, _)| goes_on(&way, before)) {
            way.passed.push(before);
            way.branches.extend(taken.map(|taken| (before, taken)));
            at = before;
        }
        way.passed.reverse();
        way
    }

    /// The only instruction from which a thread comes to this one. For a branch that depends on a predicate, also whether it was taken. `None`: there are
    /// several.
    fn only_way_to(&self, at: usize) -> Option<(usize, Option<bool>)> {
        let before = at.checked_sub(1)?;
        let (_, previous) = self.body[before];
        let leaves = matches!(previous.opcode, "bra" | "brx" | "ret" | "exit" | "trap");
        let falls = (!leaves || previous.guard.is_some()).then_some(before);
        let mut branches = self.is_label(at).then(|| self.branches_to_label(at)).into_iter().flatten();
        match (falls, branches.next(), branches.next()) {
            (Some(before), None, _) => Some((before, (previous.opcode == "bra").then_some(false))),
            (None, Some(from), None) => Some((from, self.body[from].1.guard.map(|_| true))),
            _ => None,
        }
    }

    /// The value of a register when a thread comes to the end of a way, or to one of its instructions, if it is the same in every round: the loop does not write
    /// the register, or computes it on this way each time, from others like that.
    pub(super) fn same_again(
        &self,
        name: Name<'a>,
        way: &Way,
        before: Option<usize>,
        walk: &Walk<'a, '_>,
    ) -> Option<Same<'a>> {
        self.same_of_few(name, way, before, walk, &mut { MOST_PARTS })
    }

    /// The same, if so many values are enough.
    fn same_of_few(
        &self,
        name: Name<'a>,
        way: &Way,
        before: Option<usize>,
        walk: &Walk<'a, '_>,
        left: &mut u32,
    ) -> Option<Same<'a>> {
        *left = left.checked_sub(1)?;
        let writes = |at: &usize| self.names_of(*at).any(|other| other == name);
        let (passed, behind) = way.around(before);
        if is_clock(name.1) || walk.is_timed(&name) {
            return None;
        }
        if !walk.passed.iter().any(writes) {
            let is_kept = !behind.iter().any(writes); // also before the loop, behind this
            return is_kept.then_some(Same::Kept(name));
        }
        let &at = passed.iter().rev().find(|at| writes(at))?;
        let (scope, Instruction { opcode, modifiers, operands, guard: None, .. }) = self.body[at] else { return None };
        if !(self.computes(self.body[at].1) || is_plain_load(self.body[at].1)) {
            return None;
        }
        let mut read = Times::new();
        operands[1..].iter().for_each(|operand| unused::count_names(operand, &mut read));
        let of =
            |source: &'a str| Some((source, self.same_of_few(self.name(scope, source), way, Some(at), walk, left)?));
        let sources = read.into_keys().map(of).collect::<Option<_>>()?;
        Some(Same::Computed { opcode, modifiers: modifiers.clone(), operands: operands[1..].to_vec(), sources })
    }

    /// Whether a register has the same value in every round when the thread comes to a look, from the first round on, and at the loop's end.
    pub(super) fn is_always_same(&self, name: Name<'a>, way: &Way, walk: &Walk<'a, '_>) -> bool {
        let mut written = walk.passed.iter().filter(|&&at| self.names_of(at).any(|other| other == name));
        let is_one = written.next().is_none_or(|&at| way.has(at)) && written.next().is_none();
        is_one && self.same_again(name, way, None, walk).is_some()
    }

    /// Whether each round computes the value of a register anew before it looks, from what it loads there and from what the loop does not change.
    pub(super) fn is_of_its_round(&self, name: Name<'a>, way: &Way, walk: &Walk<'a, '_>) -> bool {
        let writes = |at: &&usize| self.names_of(**at).any(|other| other == name);
        walk.passed.iter().filter(writes).all(|&at| way.has(at))
            && self.is_computed_anew(name, way, None, walk, &mut { MOST_PARTS })
    }

    /// Whether each round computes anew what a branch depends on, before it comes to that: so it is nothing that rounds before have left behind.
    pub(super) fn branches_on_its_round(&self, branch: usize, walk: &Walk<'a, '_>) -> bool {
        let (scope, instruction) = self.body[branch];
        let way = self.way_to(branch);
        instruction.guard.is_some_and(|(guard, _)| {
            self.is_computed_anew(self.name(scope, guard), &way, None, walk, &mut { MOST_PARTS })
        })
    }

    fn is_computed_anew(
        &self,
        name: Name<'a>,
        way: &Way,
        before: Option<usize>,
        walk: &Walk<'a, '_>,
        left: &mut u32,
    ) -> bool {
        let Some(fewer) = left.checked_sub(1) else { return false };
        *left = fewer;
        if self.same_again(name, way, before, walk).is_some() {
            return true;
        }
        let (passed, _) = way.around(before);
        let writes = |at: &&usize| self.names_of(**at).any(|other| other == name);
        let Some(&at) = passed.iter().rev().find(writes) else { return false };
        let (scope, instruction) = self.body[at];
        let is_clean = instruction.guard.is_none() && !is_clock(name.1) && !walk.is_timed(&name);
        if !is_clean || !(self.computes(instruction) || is_strong_load(instruction) || is_plain_load(instruction)) {
            return false;
        }
        let mut read = Times::new();
        instruction.operands[1..].iter().for_each(|operand| unused::count_names(operand, &mut read));
        read.into_keys().all(|source| self.is_computed_anew(self.name(scope, source), way, Some(at), walk, left))
    }

    /// Whether all that a loop loads plainly is the same in every round, and was loaded before the thread looked for the first time.
    pub(super) fn loads_the_same(&self, way: &Way, walk: &Walk<'a, '_>) -> bool {
        let is_same = |name| self.same_again(name, way, None, walk).is_some();
        self.loaded(walk).all(|at| way.has(at) && self.names_of(at).all(is_same))
    }

    /// Whether a loop loads anything plainly.
    pub(super) fn reloads(&self, walk: &Walk<'a, '_>) -> bool {
        self.loaded(walk).next().is_some()
    }

    /// What a loop loads plainly, but constants.
    fn loaded(&self, walk: &Walk<'a, '_>) -> impl Iterator<Item = usize> {
        let is_load = |at: &usize| {
            let (_, instruction) = self.body[*at];
            is_plain_load(instruction) && !self.computes(instruction) && !walk.is_look(*at, self)
        };
        walk.passed.iter().copied().filter(is_load)
    }

    /// The branches that lead to a label.
    fn branches_to_label(&self, at: usize) -> impl Iterator<Item = usize> {
        let leads = move |from: &usize| match self.body[*from].1.opcode {
            "bra" => self.branches_to(*from) == Some(at),
            opcode => opcode == "brx", // it may lead to any
        };
        (0..self.body.len()).filter(leads)
    }

    /// The registers that the branches of a way depend on, as far as a walk has come to them, and whether they are the same in every round.
    pub(super) fn branches_alike(&self, way: &Way, walk: &Walk<'a, '_>) -> bool {
        let passed: BTreeSet<usize> = way.branches.keys().copied().filter(|at| walk.passed.contains(at)).collect();
        passed.into_iter().all(|at| {
            let (scope, branch) = self.body[at];
            branch
                .guard
                .is_none_or(|(guard, _)| self.same_again(self.name(scope, guard), way, Some(at), walk).is_some())
        })
    }
}
