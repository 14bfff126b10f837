//! A load of a signal's word becomes a call of `nvshmem_signal_fetch`.

use super::declared;
use crate::syntax::{Function, Instruction, Operand, Statement, Variable, VariableSpace};
use crate::types::Type;

pub(super) const NAME: &str = "nvshmem_signal_fetch";

/// The register with the address.
const AT: &str = "%onesided_at";
/// What the call is given.
const WORD: &str = "onesided_word";
/// What it gives back.
const VALUE: &str = "onesided_value";

/// The call in place of a load of 8 bytes, which is not of shared memory. `None` for another instruction.
pub(super) fn fetch<'a>(load: &Instruction<'a>) -> Option<Vec<Statement<'a>>> {
    let Instruction { line, guard: None, opcode: "ld", ref modifiers, ref operands } = *load else { return None };
    let (ty, is_shared) = (modifiers.last()?, modifiers.iter().any(|one| one.starts_with("shared")));
    let [to @ Operand::Name { offset: 0, .. }, Operand::Address { base: Some(base), offset }] = &operands[..] else {
        return None;
    };
    if is_shared || !matches!(*ty, "u64" | "s64" | "b64") {
        return None;
    }
    let name = |name| Operand::Name { name, offset: 0 };
    let at = |name| Operand::Address { base: Some(name), offset: 0 };
    let make = |opcode, modifiers: &[&'a str], operands| {
        Statement::Instruction(Instruction { line, guard: None, opcode, modifiers: modifiers.to_vec(), operands })
    };
    let list = |of| Operand::List(vec![name(of)]);
    Some(vec![
        Statement::Begin,
        Statement::Registers { ty: Type::B64, name: AT, count: None, line },
        Statement::Variable(parameter(WORD, line)),
        Statement::Variable(parameter(VALUE, line)),
        make("add", &["s64"], vec![name(AT), name(base), Operand::Bits(*offset as u64)]),
        make("st", &["param", "b64"], vec![at(WORD), name(AT)]),
        make("call", &["uni"], vec![list(VALUE), name(NAME), list(WORD)]),
        make("ld", &["param", "b64"], vec![to.clone(), at(VALUE)]),
        Statement::End,
    ])
}

/// Its declaration.
pub(super) fn declaration<'a>() -> Function<'a> {
    Function { result: Some(parameter(VALUE, 0)), parameters: vec![parameter(WORD, 0)], ..declared(NAME) }
}

fn parameter<'a>(name: &'static str, line: u32) -> Variable<'a> {
    Variable {
        name,
        line,
        space: VariableSpace::Param,
        ty: Type::B64,
        align: 8,
        size: Some(8),
        is_external: false,
        initial: Vec::new(),
    }
}
