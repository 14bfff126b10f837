//! Ballots of which only one thing is asked: whether all lanes have voted for it, or any. They are votes by another name, as in
//! `while (__ballot_sync(mask, seen) != mask);`.
//!
//! A lane that alone votes against it decides such a ballot. So for the search for waits, the ballot becomes a vote, and the comparison behind it a copy of the result.

use std::collections::BTreeMap;

use super::unused::{self, Times};
use crate::syntax::{Function, Instruction, Operand, Statement};

/// So many instructions may stand between a ballot and the comparison.
const MOST_BETWEEN: usize = 16;

/// Says that a vote is a ballot: threads that vote otherwise do not take part in it.
pub(super) const BALLOT: &str = "ballot";

/// The votes and copies that stand for instructions, by the numbers of these.
pub(super) fn of<'a>(function: &Function<'a>) -> BTreeMap<usize, Instruction<'a>> {
    let (times, constants) = (unused::names_of(function), constants(function));
    let mut all: Vec<Option<&Instruction<'a>>> = Vec::new();
    let mut depth = 0;
    for statement in function.body.iter().flatten() {
        match statement {
            Statement::Instruction(instruction) => all.push(Some(instruction)),
            // somebody may come there by another way, or a register may be another one of its name
            Statement::Label(..) => all.push(None),
            Statement::Begin => depth += 1,
            Statement::End => depth -= 1,
            _ => {}
        }
        if depth > 0 && matches!(statement, Statement::Registers { .. }) {
            all.push(None);
        }
    }
    let mut found = BTreeMap::new();
    let mut number = 0;
    for (at, ballot) in all.iter().enumerate() {
        let Some(ballot) = ballot else { continue };
        let behind = all[at + 1..].iter().take(MOST_BETWEEN).map_while(|one| *one);
        if let Some((distance, vote, copy)) = vote(ballot, behind, (&times, &constants)) {
            found.insert(number, vote);
            found.insert(number + distance, copy);
        }
        number += 1;
    }
    found
}

/// The registers that instructions write, and the number, if one alone moves that there.
fn constants<'a>(function: &Function<'a>) -> BTreeMap<&'a str, Option<u64>> {
    let mut constants = BTreeMap::new();
    for statement in function.body.iter().flatten() {
        let Statement::Instruction(instruction) = statement else { continue };
        let number = match (&instruction.operands[..], instruction.guard) {
            ([_, Operand::Bits(bits)], None) if instruction.opcode == "mov" => Some(*bits),
            _ => None,
        };
        let mut names = Times::new();
        instruction.operands.first().into_iter().for_each(|first| unused::count_names(first, &mut names));
        for name in names.into_keys() {
            constants.entry(name).and_modify(|number| *number = None).or_insert(number);
        }
    }
    constants
}

/// A ballot as a vote, and the comparison behind it as a copy, with its distance.
fn vote<'i, 'a: 'i>(
    ballot: &Instruction<'a>,
    behind: impl Iterator<Item = &'i Instruction<'a>>,
    (times, constants): (&Times<'a>, &BTreeMap<&'a str, Option<u64>>),
) -> Option<(usize, Instruction<'a>, Instruction<'a>)> {
    let [Operand::Name { name: lanes, offset: 0 }, of, mask] = &ballot.operands[..] else { return None };
    if ballot.opcode != "vote" || ballot.modifiers != ["sync", BALLOT, "b32"] || ballot.guard.is_some() {
        return None;
    }
    let mut between = Times::new();
    unused::count_names(of, &mut between);
    for (distance, compares) in behind.enumerate() {
        if compares.opcode == "bra" {
            return None;
        }
        let [Operand::Name { name: result, offset: 0 }, Operand::Name { name, offset: 0 }, number] =
            &compares.operands[..]
        else {
            unused::count(compares, &mut between);
            continue;
        };
        if compares.opcode != "setp" || name != lanes {
            unused::count(compares, &mut between);
            continue;
        }
        // nothing else looks at the lanes, and nothing between has the register of the result
        let is_alone = times.get(lanes) == Some(&2) && compares.guard.is_none() && !between.contains_key(result);
        let (is_equal, _) = match compares.modifiers[..] {
            ["eq", ty @ ("b32" | "s32" | "u32")] => (true, ty),
            ["ne", ty @ ("b32" | "s32" | "u32")] => (false, ty),
            _ => return None,
        };
        let bits = |operand: &Operand<'_>| match operand {
            Operand::Bits(bits) => Some(*bits as u32),
            Operand::Name { name, offset: 0 } => Some((*constants.get(name)?)? as u32),
            _ => None,
        };
        let (kind, is_true) = match (bits(number)?, bits(mask)?) {
            (0, _) => ("any", !is_equal),
            (number, mask) if number == mask => ("all", is_equal),
            _ => return None,
        };
        let target = || Operand::Name { name: result, offset: 0 };
        let vote = Instruction {
            modifiers: vec!["sync", kind, "pred", BALLOT],
            operands: vec![target(), of.clone(), mask.clone()],
            ..ballot.clone()
        };
        let copy = Instruction {
            opcode: if is_true { "mov" } else { "not" },
            modifiers: vec!["pred"],
            operands: vec![target(), target()],
            ..(*compares).clone()
        };
        return is_alone.then_some((distance + 1, vote, copy));
    }
    None
}
