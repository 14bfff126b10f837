//! Simpler forms of instructions, with the same effect, in which [waits](super::polls) are looked for.
//!
//! * A load of a vector becomes the loads of its elements, one behind the other, as a thread makes them.
//! * A ballot of which it is asked whether all lanes have voted for something, or any, becomes [that vote](super::ballots).
//! * A call that only looks at a word becomes a [load](super::fetches).
//! * Loads, atomics and comparisons name what a register is a copy of. Compilers copy an address in front of each piece of inline assembly.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

use super::unused::{self, Times};
use super::{ballots, fetches};
use crate::syntax::{Function, Instruction, Operand, Statement};
use crate::types::Type;

/// Which instruction of a function, and which element of it.
pub(super) type Part = (usize, usize);

/// The simpler forms of a function's instructions, by their numbers.
pub(super) struct Simpler<'a>(BTreeMap<usize, Vec<Instruction<'a>>>);

impl<'a> Simpler<'a> {
    /// `defined`: the functions of the module that have a body.
    pub(super) fn of(function: &Function<'a>, defined: &BTreeSet<&str>) -> Self {
        let originals = originals(function);
        let simpler = |instruction: &Instruction<'a>| {
            let named = with_originals(instruction, &originals);
            let elements = elements(named.as_ref().unwrap_or(instruction));
            elements.or_else(|| Some(vec![named?]))
        };
        let all = instructions(function).enumerate();
        let mut all: BTreeMap<usize, Vec<Instruction<'a>>> =
            all.filter_map(|(number, instruction)| Some((number, simpler(instruction)?))).collect();
        all.extend(ballots::of(function).into_iter().map(|(number, vote)| (number, vec![vote])));
        all.extend(fetches::of(function, defined));
        Self(all)
    }

    /// That of an instruction, by its number, if it has one.
    pub(super) fn get(&self, number: usize) -> Option<&[Instruction<'a>]> {
        self.0.get(&number).map(Vec::as_slice)
    }
}

fn instructions<'f, 'a>(function: &'f Function<'a>) -> impl Iterator<Item = &'f Instruction<'a>> {
    function.body.iter().flatten().filter_map(|statement| match statement {
        Statement::Instruction(instruction) => Some(instruction),
        _ => None,
    })
}

/// The elements of a load, one by one. `None`: it is none of a vector, or the first of them changes where the others are loaded from.
fn elements<'a>(load: &Instruction<'a>) -> Option<Vec<Instruction<'a>>> {
    let [Operand::Vector(targets), Operand::Address { base: Some(base), offset }] = &load.operands[..] else {
        return None;
    };
    let is_base = |target: &Operand<'_>| matches!(target, Operand::Name { name, .. } if name == base);
    if load.opcode != "ld" || targets.iter().any(is_base) {
        return None;
    }
    let is_number = |word: &&str| matches!(*word, "v2" | "v4" | "v8");
    let modifiers: Vec<&str> = load.modifiers.iter().copied().filter(|word| !is_number(word)).collect();
    let bytes = i64::from(Type::parse(modifiers.last()?)?.bytes());
    let element = |(number, target): (usize, &Operand<'a>)| Instruction {
        line: load.line,
        guard: load.guard,
        opcode: load.opcode,
        modifiers: modifiers.clone(),
        operands: vec![target.clone(), Operand::Address { base: Some(base), offset: offset + number as i64 * bytes }],
    };
    Some(targets.iter().enumerate().map(element).collect())
}

/// Registers that are copies, and of what: both are written by one instruction, the original first and in no loop, so they never differ.
fn originals<'a>(function: &Function<'a>) -> BTreeMap<&'a str, &'a str> {
    let (mut labels, mut local, mut depth, mut number) = (BTreeMap::new(), BTreeSet::new(), 0, 0);
    for statement in function.body.iter().flatten() {
        match statement {
            Statement::Begin => depth += 1,
            Statement::End => depth -= 1,
            Statement::Instruction(_) => number += 1,
            Statement::Label(name, _) => _ = labels.entry(*name).or_insert(number),
            Statement::Registers { name, .. } if depth > 0 => _ = local.insert(*name),
            _ => {}
        }
    }
    let mut writers: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    let mut loops: Vec<RangeInclusive<usize>> = Vec::new();
    for (number, instruction) in instructions(function).enumerate() {
        match (instruction.opcode, instruction.operands.first()) {
            ("brx", _) => return BTreeMap::new(), // it may lead to any label
            ("bra", Some(Operand::Name { name, .. })) => loops.extend(labels.get(name).map(|&begin| begin..=number)),
            (_, None | Some(Operand::Address { .. })) => {}
            (_, Some(target)) => {
                let mut names = Times::new();
                unused::count_names(target, &mut names);
                names.into_keys().for_each(|name| writers.entry(name).or_default().push(number));
            }
        }
    }
    let only_writer = |name: &str| match writers.get(name)?[..] {
        [only] if !name.contains('.') && !local.iter().any(|begin| name.starts_with(begin)) => Some(only),
        _ => None,
    };
    let is_in_loop = |at: usize| loops.iter().any(|all| all.contains(&at));
    let copies =
        instructions(function).filter_map(|instruction| match (instruction.opcode, &instruction.operands[..]) {
            ("mov", &[Operand::Name { name: to, offset: 0 }, Operand::Name { name: from, offset: 0 }])
                if instruction.guard.is_none() =>
            {
                let (copies, writes) = (only_writer(to)?, only_writer(from)?);
                (writes < copies && !is_in_loop(writes)).then_some((to, from))
            }
            _ => None,
        });
    copies.collect()
}

/// A load, atomic or comparison that names what registers are copies of. `None`: it does so already.
fn with_originals<'a>(
    instruction: &Instruction<'a>,
    originals: &BTreeMap<&'a str, &'a str>,
) -> Option<Instruction<'a>> {
    if originals.is_empty() || !matches!(instruction.opcode, "ld" | "atom" | "setp") {
        return None;
    }
    let mut simpler = instruction.clone();
    let mut is_other = false;
    for operand in simpler.operands.iter_mut().skip(1) {
        if let Operand::Name { name, .. } | Operand::Address { base: Some(name), .. } = operand {
            while let Some(original) = originals.get(name) {
                (*name, is_other) = (original, true);
            }
        }
    }
    is_other.then_some(simpler)
}
