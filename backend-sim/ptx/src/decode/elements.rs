//! Loads of vectors, as the loads of their elements: so a thread makes them, one behind the other.

use std::collections::BTreeMap;

use crate::syntax::{Function, Instruction, Operand, Statement};
use crate::types::Type;

/// Which instruction of a function, and which element of it.
pub(super) type Part = (usize, usize);

/// The elements of a function's loads of vectors, by the numbers of these instructions.
pub(super) struct Elements<'a>(BTreeMap<usize, Vec<Instruction<'a>>>);

impl<'a> Elements<'a> {
    pub(super) fn of(function: &Function<'a>) -> Self {
        let instructions = function.body.iter().flatten().filter_map(|statement| match statement {
            Statement::Instruction(instruction) => Some(instruction),
            _ => None,
        });
        Self(instructions.enumerate().filter_map(|(number, load)| Some((number, elements(load)?))).collect())
    }

    /// Those of an instruction, by its number, if it is such a load.
    pub(super) fn get(&self, number: usize) -> Option<&[Instruction<'a>]> {
        self.0.get(&number).map(Vec::as_slice)
    }
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
