//! Calls that only look at a word, such as `nvshmem_signal_fetch(flag)` and `nvshmem_int_atomic_fetch(flag, pe)`. In a [simpler form](super::simpler) they are strong loads of what they return,
//! so a loop around one is found as a loop around a load is. Calls that may take the word, such as `nvshmem_int_atomic_compare_swap(lock, 0, 1, pe)`, are atomics.
//!
//! A call that asks which PE it is, as in `nvshmem_int_atomic_fetch(flag, nvshmem_my_pe())`, is a copy of a register that nobody writes.
//!
//! What such a call is asked besides, it must be asked in each round: it stands behind the address, as what an atomic takes does.

use std::collections::{BTreeMap, BTreeSet};

use crate::syntax::{Function, Instruction, Operand, Statement};

/// Functions whose results never change while a thread runs, and registers of the same values, which nobody writes.
const SAME: [(&str, &str); 2] = [("nvshmem_my_pe", "%nvshmem_my_pe"), ("nvshmem_n_pes", "%nvshmem_n_pes")];

/// Functions that swap a word: the atomic, and how many parameters they have.
const SWAPS: [(&str, &str, usize); 2] = [("_atomic_compare_swap", "cas", 4), ("_atomic_swap", "exch", 3)];

/// The atomic that a function is.
fn swap(name: &str) -> Option<&'static str> {
    let of_type = name.strip_prefix("nvshmem_")?;
    SWAPS.into_iter().find(|(function, ..)| of_type.ends_with(function)).map(|(_, atomic, _)| atomic)
}

/// How many parameters a function has that does nothing else, the word's address first. `None`: it is another function.
fn parameters(name: &str) -> Option<usize> {
    let typed = [
        ("_atomic_fetch", 2),
        (SWAPS[0].0, SWAPS[0].2),
        (SWAPS[1].0, SWAPS[1].2),
        ("_test", 3),
        ("_test_all", 5),
        ("_test_any", 5),
        ("_test_some", 6),
        ("_test_all_vector", 5),
        ("_test_any_vector", 5),
        ("_test_some_vector", 6),
    ];
    let of_type = name.strip_prefix("nvshmem_")?;
    match name {
        "nvshmem_signal_fetch" => Some(1),
        _ => typed.into_iter().find(|(function, _)| of_type.ends_with(function)).map(|(_, parameters)| parameters),
    }
}

/// Whether a simpler form is that of a call: its last operand is then no operand of the atomic, but the PE.
pub(super) fn is_of_call(instruction: &Instruction<'_>) -> bool {
    instruction.modifiers.iter().any(|word| word.starts_with("nvshmem_"))
}

/// Where such calls stand, by the numbers of instructions: the call becomes a load, and those around it, which give it its arguments and take its result,
/// nothing. `defined`: the functions that have a body. These may do anything.
pub(super) fn of<'a>(function: &Function<'a>, defined: &BTreeSet<&str>) -> BTreeMap<usize, Vec<Instruction<'a>>> {
    let (mut found, mut given, mut called, mut number) = (BTreeMap::new(), Given::new(), None, 0);
    for statement in function.body.iter().flatten() {
        let instruction = match statement {
            Statement::Instruction(instruction) => instruction,
            Statement::Label(..) | Statement::Begin | Statement::End => {
                (given, called) = (Given::new(), None);
                continue;
            }
            _ => continue,
        };
        let is_of_call = instruction.modifiers.first() == Some(&"param") && instruction.guard.is_none();
        let before = called.take();
        match (instruction.opcode, &instruction.operands[..]) {
            ("st", [Operand::Address { base: Some(to), offset: 0 }, value]) if is_of_call => {
                given.insert(*to, (number, value));
            }
            ("call", _) => {
                let given = std::mem::take(&mut given);
                called = load(instruction, &given, defined).map(|(result, load)| (number, given, result, load));
            }
            ("ld", [to @ Operand::Name { offset: 0, .. }, Operand::Address { base: Some(from), offset: 0 }])
                if is_of_call =>
            {
                if let Some((call, given, result, mut load)) = before
                    && result == *from
                {
                    load.modifiers.extend(instruction.modifiers.last());
                    load.operands.insert(0, to.clone());
                    found.extend(given.into_values().map(|(argument, _)| (argument, Vec::new())));
                    found.extend([(call, vec![load]), (number, Vec::new())]);
                }
                given.clear();
            }
            _ => given.clear(),
        }
        number += 1;
    }
    found
}

/// The arguments of the next call, by the names of its parameters: the instructions that store them, and what.
type Given<'a, 'f> = BTreeMap<&'a str, (usize, &'f Operand<'a>)>;

/// The load or atomic that a call is, or the copy, without its target and type; and what the result is called.
fn load<'a>(
    call: &Instruction<'a>,
    given: &Given<'a, '_>,
    defined: &BTreeSet<&str>,
) -> Option<(&'a str, Instruction<'a>)> {
    let [Operand::List(results), Operand::Name { name, offset: 0 }, Operand::List(arguments)] = &call.operands[..]
    else {
        return None;
    };
    let [Operand::Name { name: result, offset: 0 }] = results[..] else { return None };
    if let Some((_, same)) = SAME.into_iter().find(|(function, _)| function == name)
        && arguments.is_empty()
        && !defined.contains(name)
        && call.guard.is_none()
    {
        let (modifiers, operands) = (Vec::new(), vec![Operand::Name { name: same, offset: 0 }]);
        return Some((result, Instruction { opcode: "mov", modifiers, operands, ..call.clone() }));
    }
    let all = (parameters(name), given.len());
    let is_one = all == (Some(arguments.len()), arguments.len()) && !defined.contains(name) && call.guard.is_none();
    let value = |argument: &Operand<'a>| match argument {
        Operand::Name { name, offset: 0 } => given.get(name).map(|(_, value)| (*value).clone()),
        _ => None,
    };
    let mut operands = arguments.iter().map(value).collect::<Option<Vec<_>>>().filter(|_| is_one)?;
    let Operand::Name { name: base, offset: 0 } = operands[0] else { return None };
    operands[0] = Operand::Address { base: Some(base), offset: 0 };
    let mut modifiers = vec!["relaxed", "sys", *name]; // another function looks for something else
    let atomic = swap(name);
    modifiers.extend(atomic);
    let opcode = if atomic.is_some() { "atom" } else { "ld" };
    Some((result, Instruction { opcode, modifiers, operands, ..call.clone() }))
}
