//! Rounds of loops that only look at something until it is so, and leave nothing behind where it is not.
//!
//! What follows a look in vain is walked through. All ways must lead to looks at the same, through instructions that compute registers at
//! which nothing else looks. Before its look, the thread may look at other words, also repeatedly: it need not see what it would see there in vain.
//! Only a branch that depends on a clock may lead elsewhere, as in loops that give up after some seconds: no time passes for a thread that waits.
//! And a loop that has gone round very often may fail.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;
use std::rc::Rc;

use super::again::{Way, is_plain_load, is_strong_load};
use super::decides::Decides;
use super::text::{Known, Name, Text, target};
use crate::syntax::{Instruction, Operand};
use crate::world::Until;

/// More steps than this on the ways from a look in vain: it is no wait.
pub(super) const MOST_STEPS: usize = 1_000;

/// The same limit for all looks of a loop together, with the steps on ways that were given up.
const MOST_TRIED: usize = 10 * MOST_STEPS;

/// A time limit below this may be over before the first look, and so many looks may be too few.
const SHORT: u64 = 1_000;

/// How a walk goes on where threads vote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AtVotes {
    /// Not at all.
    Fails,
    /// As a thread against all, where what is known decides.
    Decides,
    /// It ends there, as it ends at looks.
    Ends,
}

/// Where a walk is.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Step<'a> {
    pub(super) at: usize,
    pub(super) known: Known<'a>,
    /// Whether it has come from the look straight to instructions that compute from what was seen.
    sees: bool,
}

impl<'a> Step<'a> {
    pub(super) fn new(at: usize, known: Known<'a>) -> Self {
        Self { at, known, sees: false }
    }

    fn to(&self, at: usize) -> Self {
        Self { at, ..self.clone() }
    }
}

/// What a walk from a look in vain has come to.
#[derive(Clone)]
pub(super) struct Walk<'a, 'l> {
    /// Whether an instruction looks.
    looks: &'l dyn Fn(usize, &Instruction<'a>) -> bool,
    /// The instruction that compares what was seen, and its result.
    compares: Option<(usize, u64)>,
    /// Instructions that compute from what was seen. Nobody may come to them otherwise.
    computing: RangeInclusive<usize>,
    /// The comparisons among them, and their results.
    results: BTreeMap<usize, u64>,
    pub(super) at_votes: AtVotes,
    /// The only way to the look, which may load, and whose branches are known.
    pub(super) way: Way,
    /// Votes that it has come to.
    pub(super) votes: BTreeSet<usize>,
    /// Instructions that it has passed, and registers that those have written.
    pub(super) passed: BTreeSet<usize>,
    pub(super) written: BTreeSet<Name<'a>>,
    /// Loads besides that decide whether the loop goes on: the result with which it does, and what they must not find.
    pub(super) besides: BTreeMap<usize, (u64, Until<Operand<'a>>)>,
    /// Of the written registers, those that depend on a clock, and those that compare a counter with a large number.
    timed: BTreeSet<Name<'a>>,
    counted: BTreeSet<Name<'a>>,
    /// Where it has been, since the last look; `true`: all ways from there lead to looks.
    seen: BTreeMap<Step<'a>, bool>,
    /// The steps that it may still take, with all that are like it: a way that leads nowhere is found so only at its end.
    left: Rc<Cell<usize>>,
}

impl<'a, 'l> Walk<'a, 'l> {
    pub(super) fn new(looks: &'l dyn Fn(usize, &Instruction<'a>) -> bool, compares: Option<(usize, u64)>) -> Self {
        let [written, timed, counted] = [(); 3].map(|()| BTreeSet::new());
        let [passed, votes] = [(); 2].map(|()| BTreeSet::new());
        let (at_votes, way) = (AtVotes::Fails, Way::default());
        let (besides, seen, results) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        let (computing, left) = (RangeInclusive::new(1, 0), Rc::new(Cell::new(MOST_TRIED)));
        Self {
            looks,
            compares,
            computing,
            results,
            at_votes,
            way,
            votes,
            passed,
            written,
            besides,
            timed,
            counted,
            seen,
            left,
        }
    }

    /// Whether it takes an instruction for a look.
    pub(super) fn is_look(&self, at: usize, text: &Text<'a>) -> bool {
        (self.looks)(at, text.body[at].1)
    }

    /// Whether a register depends on a clock.
    pub(super) fn is_timed(&self, name: &Name<'a>) -> bool {
        self.timed.contains(name)
    }

    /// Whether a register says that there were very many rounds.
    pub(super) fn is_counted(&self, name: &Name<'a>) -> bool {
        self.counted.contains(name)
    }

    /// Whether this walk, or one that shares its limit, was too long. Then it is not known where a way leads whose end it has not reached.
    pub(super) fn is_given_up(&self) -> bool {
        self.left.get() == 0
    }

    /// Another walk begins, from another look.
    pub(super) fn again(&mut self, compares: Option<(usize, u64)>) {
        self.compares = compares;
        self.computing = RangeInclusive::new(1, 0);
        self.results.clear();
        self.seen.clear();
    }
}

/// Where all looks lead that are not in vain, if that is one place; and what is known there of each of them.
pub(super) fn lead_to_one<'a>(
    mut ends: impl Iterator<Item = Option<(usize, Known<'a>)>>,
) -> Option<(usize, Known<'a>)> {
    let (end, mut known) = ends.next()??;
    for other in ends {
        let (other_end, other_known) = other?;
        known.retain(|name, value| other_known.get(name) == Some(value));
        if other_end != end {
            return None;
        }
    }
    Some((end, known))
}

/// Whether this is a register of the hardware that nobody writes and that changes nevertheless.
pub(super) fn is_clock(name: &str) -> bool {
    ["%clock", "%globaltimer", "%pm"].iter().any(|begin| name.starts_with(begin))
}

/// Whether a call of this says that an assertion fails.
fn is_assertion(operand: &Operand<'_>) -> bool {
    matches!(operand, Operand::Name { name: "__assertfail", .. })
}

impl<'a> Text<'a> {
    /// Walks all ways from an instruction to the next looks.
    pub(super) fn walk(&self, mut step: Step<'a>, walk: &mut Walk<'a, '_>, looks: &mut Vec<usize>) -> Option<()> {
        let mut way = Vec::new();
        loop {
            let at = step.at;
            if walk.computing.contains(&at) != step.sees {
                step.sees.then_some(())?;
                step.sees = false; // a branch has led past the rest
            }
            match walk.seen.get(&step) {
                Some(true) => break,
                Some(false) => return None, // it goes round without a look
                None if walk.seen.len() > MOST_STEPS => walk.left.set(0),
                None => {}
            }
            walk.left.set(walk.left.get().checked_sub(1)?);
            let &(scope, instruction) = self.body.get(at)?;
            if !step.sees && (walk.looks)(at, instruction) {
                looks.push(at);
                break;
            }
            let is_on_way = walk.way.has(at);
            let looks_elsewhere = is_strong_load(instruction) && instruction.guard.is_none();
            walk.seen.insert(step.clone(), is_on_way && looks_elsewhere);
            way.push(step.clone());
            walk.passed.insert(at);
            if instruction.opcode == "bra" {
                let to = self.branches_to(at)?;
                let taken = match instruction.guard {
                    None => Some(true),
                    Some((guard, negated)) => {
                        step.known.get(&self.name(scope, guard)).map(|value| (*value == 1) != negated)
                    }
                };
                let taken =
                    taken.or_else(|| walk.way.branches.get(&at).copied().filter(|_| walk.at_votes == AtVotes::Decides));
                if taken.is_none() {
                    let guard = instruction.guard.map(|(guard, _)| self.name(scope, guard));
                    if guard.is_some_and(|guard| walk.timed.contains(&guard)) {
                        self.walk_in_time([step.to(at + 1), step.to(to)], walk, looks)?;
                        break;
                    }
                    if guard.is_some_and(|guard| walk.counted.contains(&guard))
                        && let Some(goes_on) = self.does_not_fail([at + 1, to], walk)
                    {
                        step.at = goes_on;
                        continue;
                    }
                    self.walk(step.to(at + 1), walk, looks)?;
                }
                step.at = if taken == Some(false) { at + 1 } else { to };
                self.forget_guard(at, &mut step);
                continue;
            }
            if let Some(vote) = self.vote(at).filter(|_| walk.at_votes != AtVotes::Fails) {
                walk.votes.insert(at);
                walk.written.insert(vote.target);
                if walk.at_votes == AtVotes::Ends {
                    break;
                }
                if self.value_of(scope, vote.of, &step.known) != Some(vote.decides) {
                    return None;
                }
                step.known.insert(vote.target, vote.decides);
                step.at += 1;
                continue;
            }
            let loads = || looks_elsewhere || is_on_way && is_plain_load(instruction);
            if !(self.computes(instruction) || loads()) || instruction.guard.is_some() {
                return None;
            }
            self.passes(at, &mut step.known, walk);
            step.at += 1;
            if let Some(result) = walk.results.get(&at) {
                step.known.insert(self.name(scope, target(instruction)?), *result);
            } else if let Some((load, decides)) = self.compared_besides(at, walk) {
                self.walk_besides((load, decides), &step, walk, looks)?;
                break;
            }
        }
        way.into_iter().for_each(|step| _ = walk.seen.insert(step, true));
        Some(())
    }

    /// What a branch depends on need not be known behind it, if nothing there reads it: then the walk is where others of it have been.
    fn forget_guard(&self, branch: usize, behind: &mut Step<'a>) {
        let (scope, instruction) = self.body[branch];
        let guard = instruction.guard.map(|(guard, _)| self.name(scope, guard));
        let guard = guard.filter(|guard| behind.known.contains_key(guard) && !self.is_read_from(guard, behind.at));
        guard.into_iter().for_each(|guard| _ = behind.known.remove(&guard));
    }

    /// A walk passes an instruction that computes.
    fn passes(&self, at: usize, known: &mut Known<'a>, walk: &mut Walk<'a, '_>) {
        if self.is_of_a_clock(at, &walk.timed) {
            walk.timed.extend(self.names_of(at));
        }
        if self.compares_a_counter(at) {
            walk.counted.extend(self.names_of(at));
        }
        walk.passed.insert(at);
        walk.written.extend(self.names_of(at));
        self.compute(at, known);
    }

    /// Walks all ways from a look whose comparison has this result to the next looks; also those on which a branch is taken before it is compared.
    pub(super) fn walk_from(
        &self,
        look: usize,
        decides: &Decides<'a>,
        result: u64,
        walk: &mut Walk<'a, '_>,
        looks: &mut Vec<usize>,
    ) -> Option<()> {
        walk.again(None);
        walk.passed.insert(look);
        (walk.computing, walk.results) = (look + 1..=decides.at, decides.results(result)?);
        self.walk(Step { at: look + 1, known: self.always_known(look), sees: true }, walk, looks)
    }

    /// Walks the two ways of a branch that depends on a clock. One may lead anywhere: it is the one that gives up.
    fn walk_in_time(&self, ways: [Step<'a>; 2], walk: &mut Walk<'a, '_>, looks: &mut Vec<usize>) -> Option<()> {
        let mut leads = None;
        for way in ways {
            if let Some(fails) = self.fails_behind(way.at) {
                walk.passed.extend(fails); // it may look once more, to say what it has found
                continue;
            }
            let (mut tried, mut seen) = (walk.clone(), looks.clone());
            if self.walk(way, &mut tried, &mut seen).is_some() {
                (*walk, *looks) = (tried, seen);
                leads = Some(());
            }
        }
        leads
    }

    /// Of the two ways of a branch that depends on how often a loop has gone round: the one that goes on, if the other one fails.
    fn does_not_fail(&self, ways: [usize; 2], walk: &mut Walk<'a, '_>) -> Option<usize> {
        let [one, other] = ways.map(|way| self.fails_behind(way));
        let (goes_on, fails) = match (one, other) {
            (Some(fails), None) => (ways[1], fails),
            (None, Some(fails)) => (ways[0], fails),
            _ => return None,
        };
        walk.passed.extend(fails);
        Some(goes_on)
    }

    /// Whether an instruction compares what counts up with a number that is not small.
    fn compares_a_counter(&self, at: usize) -> bool {
        let (scope, instruction) = self.body[at];
        match &instruction.operands[..] {
            [_, Operand::Name { name, offset: 0 }, Operand::Bits(limit)] => {
                instruction.opcode == "setp"
                    && limit.cast_signed() >= SHORT.cast_signed()
                    && self.counters.contains(&self.name(scope, name))
            }
            _ => false,
        }
    }

    /// If all that follows is to say so, and to fail: the instructions of that, which may look at what the rounds have computed.
    pub(super) fn fails_behind(&self, mut at: usize) -> Option<Vec<usize>> {
        let mut all = Vec::new();
        while all.len() < MOST_STEPS {
            let &(_, instruction) = self.body.get(at)?;
            all.push(at);
            match (instruction.opcode, instruction.guard) {
                ("trap", None) => return Some(all),
                ("call", _) if instruction.operands.iter().any(is_assertion) => return Some(all),
                ("bra", None) => at = self.branches_to(at)?,
                ("bra" | "brx" | "ret" | "exit", _) => return None,
                _ => at += 1,
            }
        }
        None
    }

    /// Whether what an instruction computes depends on a clock, and does not compare that with a short time.
    fn is_of_a_clock(&self, at: usize, timed: &BTreeSet<Name<'a>>) -> bool {
        let (scope, instruction) = self.body[at];
        let sources = instruction.operands.get(1..).unwrap_or_default();
        let is_short =
            |operand: &Operand<'_>| matches!(operand, Operand::Bits(bits) if bits.cast_signed() < SHORT.cast_signed());
        let is_clock = |operand: &Operand<'a>| match operand {
            Operand::Name { name, .. } => is_clock(name) || timed.contains(&self.name(scope, name)),
            _ => false,
        };
        sources.iter().any(is_clock) && !(instruction.opcode == "setp" && sources.iter().any(is_short))
    }

    /// Where a look leads that is not in vain, behind all that only the walk looks at; and what is known there.
    pub(super) fn leads_to(
        &self,
        mut at: usize,
        mut known: Known<'a>,
        walk: &Walk<'a, '_>,
    ) -> Option<(usize, Known<'a>)> {
        for _ in 0..MOST_STEPS {
            let Some(&(scope, instruction)) = self.body.get(at) else { return Some((at, known)) };
            if instruction.opcode == "bra" {
                let is_taken = match instruction.guard {
                    None => true,
                    Some((guard, negated)) => match known.get(&self.name(scope, guard)) {
                        Some(value) => (*value == 1) != negated,
                        None => return Some((at, known)),
                    },
                };
                at = if is_taken { self.branches_to(at)? } else { at + 1 };
                continue;
            }
            if !walk.passed.contains(&at) || !self.computes(instruction) {
                return Some((at, known));
            }
            self.compute(at, &mut known);
            if let Some((_, result)) = walk.compares.filter(|(compares, _)| *compares == at) {
                known.insert(self.name(scope, target(instruction)?), 1 - result);
            }
            at += 1;
        }
        None
    }

    /// A thread may look once more before it goes on, so that some looks that are not in vain lead to other looks. Where these lead to in the end.
    pub(super) fn behind_looks_again(
        &self,
        leads: &BTreeMap<usize, (usize, Known<'a>)>,
        walk: &mut Walk<'a, '_>,
    ) -> Option<Vec<(usize, Known<'a>)>> {
        let next = |(&look, &(end, _)): (&usize, &(usize, Known<'a>))| {
            Some((look, self.next_look(end, |at| leads.contains_key(&at))?))
        };
        let again: BTreeMap<usize, usize> = leads.iter().filter_map(next).collect();
        for (look, next) in &again {
            let mut behind = std::iter::successors(Some(*next), |look| again.get(look).copied());
            behind.nth(again.len()).is_none().then_some(())?; // it goes round where nothing is in vain
            let (end, _) = leads[look];
            (end..*next).for_each(|at| walk.written.extend(self.names_of(at)));
        }
        Some(leads.iter().filter(|(look, _)| !again.contains_key(look)).map(|(_, end)| end.clone()).collect())
    }

    /// The look that comes next, behind instructions that compute.
    pub(super) fn next_look(&self, mut at: usize, is_look: impl Fn(usize) -> bool) -> Option<usize> {
        while at < self.body.len() && !is_look(at) {
            let (_, instruction) = self.body[at];
            (instruction.guard.is_none() && self.computes(instruction)).then_some(())?;
            at += 1;
        }
        (at < self.body.len()).then_some(at)
    }
}
