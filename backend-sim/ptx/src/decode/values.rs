//! Registers that have the same value. A compiler computes a number again where it needs it, as what a compare-and-swap looks for and what its result is
//! compared with.

use std::collections::BTreeSet;

use super::rounds::is_clock;
use super::text::{Name, Text};
use super::unused::{self, Times};
use crate::syntax::Operand;

/// A value that is computed from more parts than this is like no other.
const MOST_PARTS: u32 = 64;

/// What a register has at an instruction.
#[derive(PartialEq)]
enum Value<'a> {
    Of(Name<'a>),
    /// What an instruction makes of others.
    Computed {
        opcode: &'a str,
        modifiers: Vec<&'a str>,
        operands: Vec<Operand<'a>>,
        sources: Vec<Value<'a>>,
    },
}

impl<'a> Text<'a> {
    /// Whether a register has the same value at an instruction as another one has at a later one, to which the first leads straight.
    pub(super) fn are_same(&self, (one, at): (Name<'a>, usize), (other, later): (Name<'a>, usize)) -> bool {
        let mut from = BTreeSet::new();
        let mut value = |name, at| self.value_at(name, at, &mut from, &mut { MOST_PARTS });
        let is_same = match (value(one, at), value(other, later)) {
            (Some(one), Some(other)) => one == other,
            _ => false,
        };
        is_same && !(at..later).flat_map(|at| self.names_of(at)).any(|name| from.contains(&name))
    }

    /// What a register has when a thread comes to an instruction. `from`: the registers from which it is computed.
    fn value_at(&self, name: Name<'a>, at: usize, from: &mut BTreeSet<Name<'a>>, left: &mut u32) -> Option<Value<'a>> {
        *left = left.checked_sub(1)?;
        let computed = self.computed_at(name, at);
        let Some(writer) = computed else {
            from.insert(name);
            return (!is_clock(name.1)).then_some(Value::Of(name));
        };
        let (scope, instruction) = self.body[writer];
        if let ("mov", [_, Operand::Name { name, offset: 0 }]) = (instruction.opcode, &instruction.operands[..]) {
            return self.value_at(self.name(scope, name), at, from, left);
        }
        let mut read = Times::new();
        instruction.operands[1..].iter().for_each(|operand| unused::count_names(operand, &mut read));
        let of = |source: &'a str| self.value_at(self.name(scope, source), at, from, left);
        let sources = read.into_keys().map(of).collect::<Option<_>>()?;
        let (opcode, modifiers, operands) =
            (instruction.opcode, instruction.modifiers.clone(), instruction.operands[1..].to_vec());
        Some(Value::Computed { opcode, modifiers, operands, sources })
    }

    /// The instruction that computes a register for all threads that come to another one, if what it reads is the same there still.
    fn computed_at(&self, name: Name<'a>, at: usize) -> Option<usize> {
        let mut writers = (0..self.body.len()).filter(|&at| self.names_of(at).any(|other| other == name));
        let (Some(writer), None) = (writers.next(), writers.next()) else { return None };
        let (scope, instruction) = self.body[writer];
        let is_one = matches!(instruction.operands.first(), Some(Operand::Name { offset: 0, .. }));
        if !is_one || instruction.guard.is_some() || !self.only_computes(instruction) {
            return None;
        }
        let goes_around = self.led_to(0, writer)?.contains(&at);
        let mut read = Times::new();
        instruction.operands[1..].iter().for_each(|operand| unused::count_names(operand, &mut read));
        let read: BTreeSet<Name<'a>> = read.into_keys().map(|source| self.name(scope, source)).collect();
        let writes = |at: usize| self.names_of(at).any(|name| read.contains(&name));
        let behind = self.led_to(writer + 1, writer)?;
        let mut changes = behind.into_iter().filter(|&between| writes(between));
        let is_changed = writes(writer)
            || changes.any(|change| self.led_to(change + 1, writer).is_none_or(|behind| behind.contains(&at)));
        (!goes_around && !is_changed).then_some(writer)
    }

    /// The instructions to which a thread may come from one without another. `None`: nobody knows.
    fn led_to(&self, from: usize, without: usize) -> Option<BTreeSet<usize>> {
        let (mut seen, mut todo) = (BTreeSet::new(), vec![from]);
        while let Some(at) = todo.pop() {
            let Some(&(_, instruction)) = self.body.get(at).filter(|_| at != without && seen.insert(at)) else {
                continue;
            };
            match instruction.opcode {
                "bra" => todo.push(self.branches_to(at)?),
                "brx" => return None,
                _ => {}
            }
            if !(instruction.guard.is_none() && matches!(instruction.opcode, "bra" | "ret" | "exit" | "trap")) {
                todo.push(at + 1);
            }
        }
        Some(seen)
    }
}
