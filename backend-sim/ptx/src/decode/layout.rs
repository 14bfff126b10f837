//! Where variables and parameters lie.

use std::collections::BTreeMap;

use super::{Found, Names, Symbol, window};
use crate::error::Error;
use crate::lexer::Float;
use crate::module::{Global, SharedVariable};
use crate::op::Slot;
use crate::syntax::{Function, Initial, Statement, Text, Variable, VariableSpace};
use crate::types::Type;

/// More than any GPU has: larger sizes are mistakes.
const MOST: u64 = 1 << 30;

/// The next multiple of the alignment, and the end of what is placed there.
pub(super) fn place(at: u64, align: u32, size: u64, line: u32) -> Result<(u64, u64), Error> {
    let begin = at.next_multiple_of(u64::from(align.max(1)));
    let end = begin.checked_add(size).filter(|&end| end <= MOST);
    Ok((begin, end.ok_or_else(|| Error::new(line, "variables of more than 1 GiB"))?))
}

/// Parameters follow each other, each at its alignment.
pub(super) fn parameters(variables: &[Variable<'_>]) -> Result<(Vec<Slot>, u32), Error> {
    let (mut slots, mut at) = (Vec::new(), 0);
    for variable in variables {
        let size = variable
            .size
            .ok_or_else(|| Error::new(variable.line, format!("the parameter {} has no size", variable.name)))?;
        let (begin, end) = place(at, variable.align, size, variable.line)?;
        slots.push(Slot { offset: begin as u32, size: size as u32 });
        at = end;
    }
    Ok((slots, at as u32))
}

/// Bytes of parameters that a kernel may have.
const MOST_PARAMETERS: u32 = 32_764;
/// The same, before PTX 8.1.
const MOST_PARAMETERS_BEFORE: u32 = 4352;

/// Bytes of shared variables that a kernel may have. More is only what a launch gives.
const MOST_SHARED: u64 = 48 << 10;

/// Refuses more parameters than `ptxas` takes.
pub(super) fn check_parameters(kernel: &Function<'_>, bytes: u32, version: (u32, u32)) -> Result<(), Error> {
    let (most, when) = match version < (8, 1) {
        true => (MOST_PARAMETERS_BEFORE, " before PTX 8.1"),
        false => (MOST_PARAMETERS, ""),
    };
    if bytes <= most {
        return Ok(());
    }
    let message = format!("the kernel {} has {bytes} bytes of parameters; at most {most}{when}", kernel.name);
    Err(Error::new(kernel.line, message))
}

/// Refuses more shared variables than `ptxas` takes: those of all functions that a kernel comes to, and those of the module that one of them names. Gaps between them do not
/// count, because `ptxas` may place them in another order.
pub(super) fn check_shared<'f>(
    kernel: &Function<'_>,
    of_module: &[SharedVariable],
    functions: impl Iterator<Item = &'f Found> + Clone,
) -> Result<(), Error> {
    let is_named = |variable: &SharedVariable| functions.clone().any(|one| one.named_shared.contains(&variable.begin));
    let named = of_module.iter().filter(|variable| is_named(variable));
    let named: u64 = named.filter_map(|variable| Some(variable.end? - variable.begin)).sum();
    let bytes = named + functions.clone().map(|one| one.own_shared).sum::<u64>();
    if bytes <= MOST_SHARED {
        return Ok(());
    }
    let message = format!(
        "the kernel {} declares {bytes} bytes of shared memory; at most {MOST_SHARED}. More is what a launch gives for an array that is declared extern",
        kernel.name
    );
    Err(Error::new(kernel.line, message))
}

/// Where the shared variables of each function begin, and those of every kernel: functions that a kernel calls keep theirs apart.
pub(super) fn shared_bases(functions: &[&Function<'_>], module: u64) -> Result<(Vec<u64>, u64), Error> {
    let (mut bases, mut end) = (Vec::new(), module);
    for function in functions {
        bases.push(end);
        for statement in function.body.iter().flatten().filter(|_| !function.is_entry) {
            if let Statement::Variable(variable) = statement
                && variable.space == VariableSpace::Shared
            {
                (_, end) = place(end, variable.align, variable.size.unwrap_or(0), variable.line)?;
            }
        }
    }
    Ok((bases, end))
}

/// A variable in shared memory.
pub(super) fn shared(variable: &Variable<'_>, kernel: Option<u16>, begin: u64, end: Option<u64>) -> SharedVariable {
    SharedVariable { name: variable.name.to_owned(), kernel, begin, end }
}

/// Places the module's variables: gives them their symbols, and fills in what they begin with.
pub(super) fn variables<'a>(text: &Text<'a>, names: &mut Names<'a>) -> Result<(Vec<Global>, Vec<u8>), Error> {
    let mut global_index = BTreeMap::new();
    let mut constants_end = 0;
    for variable in &text.variables {
        let line = variable.line;
        let symbol = match (variable.space, variable.size) {
            (VariableSpace::Global, _) => {
                let index =
                    u16::try_from(global_index.len()).map_err(|_| Error::new(line, "more than 65535 variables"))?;
                global_index.insert(variable.name, usize::from(index));
                Symbol::Global(index)
            }
            // An external array of no elements is the one whose length a launch gives, too.
            (VariableSpace::Shared, None | Some(0)) => {
                place(0, variable.align, 0, line)?;
                names.dynamic_align = names.dynamic_align.max(variable.align);
                names.shared_variables.push(shared(variable, None, 0, None));
                Symbol::SharedDynamic
            }
            (VariableSpace::Shared, Some(size)) => {
                let (begin, end) = place(names.shared, variable.align, size, line)?;
                names.shared = end;
                names.shared_variables.push(shared(variable, None, begin, Some(end)));
                Symbol::Shared(begin)
            }
            (VariableSpace::Const, Some(size)) if !variable.is_external => {
                let (begin, end) = place(constants_end, variable.align, size, line)?;
                if end > 1 << 16 {
                    return Err(Error::new(line, "more than 64 KiB of constants"));
                }
                constants_end = end;
                Symbol::Const(begin)
            }
            _ => return Err(Error::new(line, format!("the variable {} is not defined here", variable.name))),
        };
        let first = names.symbols.insert(variable.name, symbol).is_none();
        if !first {
            return Err(Error::new(line, format!("the variable {} is defined twice", variable.name)));
        }
    }

    let mut constants = vec![0; constants_end as usize];
    let mut globals = Vec::new();
    for variable in &text.variables {
        match (variable.space, names.symbols[variable.name]) {
            (VariableSpace::Global, _) => globals.push(global(variable, names, &global_index)?),
            (VariableSpace::Const, Symbol::Const(at)) => {
                let (bytes, addresses) = initial(variable, names, &global_index)?;
                if !addresses.is_empty() {
                    return Err(Error::new(
                        variable.line,
                        format!("{} holds addresses of global variables, unknown here", variable.name),
                    ));
                }
                constants[at as usize..][..bytes.len()].copy_from_slice(&bytes);
            }
            _ => {}
        }
    }
    Ok((globals, constants))
}

fn global(variable: &Variable<'_>, names: &Names<'_>, index: &BTreeMap<&str, usize>) -> Result<Global, Error> {
    let (bytes, addresses) = initial(variable, names, index)?;
    Ok(Global {
        name: variable.name.to_owned(),
        size: variable.size.unwrap_or(0),
        align: variable.align,
        initial: bytes,
        addresses,
        is_external: variable.is_external,
    })
}

/// Offset, variable and what is added to its address.
type Addresses = Vec<(u64, usize, i64)>;

/// The bytes that a variable begins with, and the addresses of global variables among them.
fn initial(
    variable: &Variable<'_>,
    names: &Names<'_>,
    index: &BTreeMap<&str, usize>,
) -> Result<(Vec<u8>, Addresses), Error> {
    let error = |message: String| Error::new(variable.line, message);
    let width = variable.ty.bytes() as usize;
    let (mut bytes, mut addresses) = (Vec::new(), Vec::new());
    for element in &variable.initial {
        let value = match *element {
            Initial::Bits(bits) => bits,
            Initial::Float(value) => {
                float_bits(value, variable.ty).ok_or_else(|| error(format!("{} is no float", variable.name)))?
            }
            Initial::Address { name, offset, generic } => {
                if variable.ty.bytes() != 8 {
                    return Err(error(format!("{} is too narrow for an address", variable.name)));
                }
                let base = |window: u64| if generic { window } else { 0 };
                match names.symbols.get(name) {
                    Some(Symbol::Global(_)) => {
                        addresses.push((bytes.len() as u64, index[name], offset));
                        0
                    }
                    Some(&Symbol::Const(at)) => (at + base(window::CONST)).wrapping_add_signed(offset),
                    Some(&Symbol::Shared(at)) => (at + base(window::SHARED)).wrapping_add_signed(offset),
                    _ => {
                        return Err(error(format!(
                            "{} begins with the address of {name}, which is no variable here",
                            variable.name
                        )));
                    }
                }
            }
        };
        let value = u128::from(value).to_le_bytes();
        bytes.extend_from_slice(&value[..width.min(16)]);
    }
    Ok((bytes, addresses))
}

/// The bits of a literal in a type; an `f32` literal may stand for a double and the other way round.
pub(super) fn float_bits(value: Float, ty: Type) -> Option<u64> {
    use crate::alu::round::{Format, Rounding};
    let double = match value {
        Float::Single(value) if ty == Type::F32 || ty == Type::B32 => return Some(value.to_bits().into()),
        Float::Double(value) if ty == Type::F64 || ty == Type::B64 => return Some(value.to_bits()),
        Float::Single(value) => f64::from(value),
        Float::Double(value) => value,
    };
    Some(Format::of(ty)?.round(double, Rounding::Nearest))
}
