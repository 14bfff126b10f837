//! What the rounds of a loop leave behind in a register: nothing, where each round computes it anew before it is looked at, whichever way it takes.
//!
//! Compilers write `a || b` with a branch around the test of `b`. So a way to a look, or from it to the branch that decides, is often not the only one.

use std::collections::{BTreeMap, BTreeSet};

use super::again::{is_plain_load, is_strong_load};
use super::rounds::{MOST_STEPS, Walk, is_clock};
use super::text::{Known, Name, Text};
use super::unused::{self, Times};
use crate::syntax::Operand;

/// What rounds have left behind is followed for so many steps.
const MOST_FOLLOWED: usize = 100 * MOST_STEPS;

/// Looks for values that are computed anew.
pub(super) struct Anew<'t, 'a, 'l> {
    text: &'t Text<'a>,
    walk: &'t Walk<'a, 'l>,
    /// The looks of the loop. Between two of them lies a round.
    looks: BTreeSet<usize>,
    /// All registers that rounds write.
    written: BTreeSet<Name<'a>>,
    /// What was asked: a register, an instruction to which a thread comes, and whether that stands before the look of its round.
    asked: BTreeMap<(Name<'a>, usize, bool), bool>,
    /// The steps that are left.
    left: usize,
}

impl<'t, 'a, 'l> Anew<'t, 'a, 'l> {
    pub(super) fn new(text: &'t Text<'a>, walk: &'t Walk<'a, 'l>, looks: BTreeSet<usize>) -> Self {
        let written = walk.passed.iter().chain(&looks).flat_map(|&at| text.names_of(at)).collect();
        Self { text, walk, looks, written, asked: BTreeMap::new(), left: 10 * MOST_STEPS }
    }

    /// Whether a register has, when a thread comes to the look of its round, a value that the rounds before have not left behind.
    pub(super) fn is_at_look(&mut self, name: Name<'a>, look: usize) -> bool {
        self.is_anew(name, look, true)
    }

    /// The same, when a thread comes to an instruction behind the look.
    pub(super) fn is_behind_look(&mut self, name: Name<'a>, at: usize) -> bool {
        self.is_anew(name, at, false)
    }

    fn is_anew(&mut self, name: Name<'a>, at: usize, is_before: bool) -> bool {
        if is_clock(name.1) || self.walk.is_timed(&name) {
            return false;
        }
        if !self.written.contains(&name) {
            return true;
        }
        let question = (name, at, is_before);
        if let Some(answer) = self.asked.get(&question) {
            return *answer;
        }
        self.asked.insert(question, false); // where it depends on itself, a round before has left it behind
        let answer = self.is_written_on_all_ways(name, at, is_before).is_some();
        self.asked.insert(question, answer);
        answer
    }

    /// Goes back on all ways to what writes the register. Which way a thread has come must not depend on rounds before either.
    fn is_written_on_all_ways(&mut self, name: Name<'a>, at: usize, is_before: bool) -> Option<()> {
        let (mut seen, mut todo) = (BTreeSet::new(), vec![(at, is_before)]);
        while let Some((behind, is_before)) = todo.pop() {
            (behind > 0).then_some(())?; // the beginning
            for at in self.text.ways_to(behind)? {
                if !seen.insert((at, is_before)) {
                    continue;
                }
                self.left = self.left.checked_sub(1)?;
                let (scope, instruction) = self.text.body[at];
                let is_look = self.looks.contains(&at);
                let is_of_loop = is_look || !is_before || self.walk.passed.contains(&at);
                (is_of_loop && !self.walk.votes.contains(&at)).then_some(())?;
                if self.text.names_of(at).any(|other| other == name) {
                    (is_look || self.computes_anew(at, is_before)).then_some(())?;
                    continue;
                }
                if let Some((guard, _)) = instruction.guard {
                    self.is_anew(self.text.name(scope, guard), at, is_before).then_some(())?;
                }
                (!(is_look && is_before)).then_some(())?; // the round before
                todo.push((at, is_before || is_look));
            }
        }
        Some(())
    }

    fn computes_anew(&mut self, at: usize, is_before: bool) -> bool {
        let (scope, instruction) = self.text.body[at];
        let loads = is_strong_load(instruction) || is_plain_load(instruction);
        if instruction.guard.is_some() || !(self.text.computes(instruction) || loads) {
            return false;
        }
        let mut read = Times::new();
        instruction.operands[1..].iter().for_each(|operand| unused::count_names(operand, &mut read));
        read.into_keys().all(|source| self.is_anew(self.text.name(scope, source), at, is_before))
    }

    /// Whether a thread whose look was not in vain goes on alike from an instruction, however many rounds there were before. `left`: registers in which these may
    /// have left something behind. Nothing but a limit on time, or a failure, may look at that, or at what is computed from it.
    pub(super) fn goes_on_alike(&self, end: usize, left: BTreeSet<Name<'a>>) -> bool {
        let mut at_all: BTreeMap<usize, BTreeSet<Name<'a>>> = BTreeMap::new();
        let left: BTreeSet<Name<'a>> = left.into_iter().filter(|name| self.text.is_read_from(name, end)).collect();
        let (mut todo, mut steps) = (vec![(end, left)], 0);
        while let Some((at, new)) = todo.pop() {
            steps += 1;
            if steps > MOST_FOLLOWED {
                return false;
            }
            if new.is_empty() || self.looks.contains(&at) || at >= self.text.body.len() {
                continue;
            }
            let left = at_all.entry(at).or_default();
            if left.is_superset(&new) {
                continue;
            }
            left.extend(new);
            let mut left = left.clone();
            let (scope, instruction) = self.text.body[at];
            let is_left = |name: &Name<'a>| left.contains(name);
            let mut read = Times::new();
            let sources = usize::from(self.text.names_of(at).next().is_some());
            instruction.operands.iter().skip(sources).for_each(|operand| unused::count_names(operand, &mut read));
            let reads = read.into_keys().any(|name| is_left(&self.text.name(scope, name)));
            let guard = instruction.guard.map(|(guard, _)| self.text.name(scope, guard));
            let decides = guard.as_ref().is_some_and(is_left);
            if decides && !guard.is_some_and(|guard| self.is_limit(&guard, at)) && !self.leads_back(at) {
                return false;
            }
            let is_kept = self.text.computes(instruction) && !self.stores(at) || self.walk.passed.contains(&at);
            if reads && !is_kept {
                return false;
            }
            for name in self.text.names_of(at) {
                if reads || decides {
                    left.insert(name);
                } else if guard.is_none() {
                    left.remove(&name);
                }
            }
            match instruction.opcode {
                "bra" => todo.extend(self.text.branches_to(at).map(|to| (to, left.clone()))),
                "brx" => return false, // it may lead to any
                _ => {}
            }
            if guard.is_some() || !matches!(instruction.opcode, "bra" | "ret" | "exit" | "trap") {
                todo.push((at + 1, left));
            }
        }
        true
    }

    /// Whether a branch says that a time is over, or fails after very many rounds.
    fn is_limit(&self, guard: &Name<'a>, branch: usize) -> bool {
        let fails = || {
            let ways = self.text.branches_to(branch).into_iter().chain([branch + 1]);
            ways.into_iter().any(|way| self.text.fails_behind(way).is_some())
        };
        self.walk.is_timed(guard) || self.walk.is_counted(guard) && fails()
    }

    /// Whether all ways of a branch stay within the loop and lead to its looks, as those of one that says how long to sleep.
    fn leads_back(&self, branch: usize) -> bool {
        let (mut seen, mut todo) = (BTreeSet::new(), vec![branch]);
        while let Some(at) = todo.pop() {
            if self.looks.contains(&at) || !seen.insert(at) {
                continue;
            }
            if !self.walk.passed.contains(&at) {
                return false;
            }
            let (_, instruction) = self.text.body[at];
            if instruction.opcode == "bra" {
                todo.extend(self.text.branches_to(at));
            }
            if instruction.opcode != "bra" || instruction.guard.is_some() {
                todo.push(at + 1);
            }
        }
        true
    }

    /// Whether it stores an argument of a call.
    fn stores(&self, at: usize) -> bool {
        self.text.body[at].1.opcode == "st"
    }

    /// Whether what threads vote depends on nothing that rounds before have left behind.
    pub(super) fn votes_anew(&mut self) -> bool {
        let votes = self.walk.votes.clone();
        votes.into_iter().all(|at| {
            let (scope, _) = self.text.body[at];
            let name = match self.text.vote(at).map(|vote| vote.of) {
                Some(Operand::Name { name, .. } | Operand::Not(name)) => name,
                _ => return true,
            };
            self.is_behind_look(self.text.name(scope, name), at)
        })
    }
}

impl<'a> Text<'a> {
    /// Predicates of the loop around an instruction that are the same number whenever a thread comes there.
    pub(super) fn always_known(&self, at: usize) -> Known<'a> {
        let moves = |&at: &usize| {
            let (_, instruction) = self.body[at];
            instruction.opcode == "mov" && instruction.modifiers == ["pred"]
        };
        let names: BTreeSet<Name<'a>> =
            self.loop_around(at).filter(moves).take(MOST_STEPS).flat_map(|at| self.names_of(at)).collect();
        names.into_iter().filter_map(|name| Some((name, self.number_on_all_ways(name, at)?))).collect()
    }

    /// The number that is moved into a predicate on all ways to an instruction.
    fn number_on_all_ways(&self, name: Name<'a>, at: usize) -> Option<u64> {
        let (mut found, mut seen, mut todo) = (None, BTreeSet::new(), vec![at]);
        while let Some(behind) = todo.pop() {
            if behind == 0 {
                return None; // the beginning, where it has none
            }
            for at in self.ways_to(behind)? {
                if !seen.insert(at) {
                    continue;
                }
                if seen.len() > MOST_STEPS {
                    return None;
                }
                if !self.names_of(at).any(|other| other == name) {
                    todo.push(at);
                    continue;
                }
                let number = match (&self.body[at].1.operands[..], self.body[at].1.guard) {
                    (&[_, Operand::Bits(bits)], None) if self.body[at].1.opcode == "mov" => bits & 1,
                    _ => return None,
                };
                if found.is_some_and(|found| found != number) {
                    return None;
                }
                found = Some(number);
            }
        }
        found
    }
}
