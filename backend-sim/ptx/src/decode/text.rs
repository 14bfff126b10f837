//! A function's text, as the search for loops that only wait needs it: what its names are, who reads them, and where branches lead.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

use super::decides::Decides;
use super::simpler::{Part, Simpler};
use super::unused::{self, Times};
use crate::syntax::{Function, Instruction, Operand, Statement};
use crate::types::Type;

/// Instructions that only compute a register, their first operand, from the others.
const PURE: &[&str] = &[
    "add", "and", "bfe", "bfi", "cvt", "cvta", "mad", "max", "min", "mov", "mul", "neg", "not", "or", "prmt", "selp",
    "setp", "shl", "shr", "sub", "xor",
];

/// Instructions that compute nothing. What a fence orders, the last round orders as well.
const IDLE: &[&str] = &["nanosleep", "membar", "fence"];

/// Functions that return the same always.
const SAME: &[&str] = &["nvshmem_my_pe", "nvshmem_n_pes"];

/// A scope of names, by its number; the outermost has none.
pub(super) type Scope = Option<usize>;

/// A register or label, in the scope that declares it.
pub(super) type Name<'a> = (Scope, &'a str);

/// What is known of registers.
pub(super) type Known<'a> = BTreeMap<Name<'a>, u64>;

/// A function.
#[derive(Default)]
pub(super) struct Text<'a> {
    /// The scopes around each one, from within.
    around: Vec<Vec<usize>>,
    /// What scopes declare; `true`: several registers, whose names begin so.
    declared: BTreeSet<(usize, &'a str, bool)>,
    labels: BTreeMap<Name<'a>, usize>,
    /// Where labels stand.
    marked: BTreeSet<usize>,
    /// From where to where branches lead back.
    loops: Vec<(usize, usize)>,
    /// The branches that lead to a label.
    branches: BTreeMap<usize, Vec<usize>>,
    /// A branch may lead to any label.
    has_tables: bool,
    /// Registers that have the same value always.
    constants: BTreeMap<Name<'a>, u64>,
    /// Registers that count up.
    pub(super) counters: BTreeSet<Name<'a>>,
    /// It is a kernel's.
    pub(super) is_entry: bool,
    /// The function's name.
    pub(super) called: &'a str,
    /// The instructions, in a simpler form where they have one.
    pub(super) body: Vec<(Scope, &'a Instruction<'a>)>,
    /// Of each of them, which one of the function it is.
    pub(super) parts: Vec<Part>,
    /// The instructions that read a register.
    pub(super) readers: BTreeMap<Name<'a>, BTreeSet<usize>>,
    /// Comparisons of what [strong loads](super::besides) have loaded, and which.
    pub(super) compared: BTreeMap<usize, (usize, Decides<'a>)>,
}

impl<'a> Text<'a> {
    pub(super) fn of(function: &'a Function<'a>, simpler: &'a Simpler<'a>) -> Self {
        let mut number = 0;
        let mut text = Self { is_entry: function.is_entry, called: function.name, ..Self::default() };
        let mut open: Vec<usize> = Vec::new();
        for statement in function.body.iter().flatten() {
            let scope = open.last().copied();
            match statement {
                Statement::Begin => {
                    open.push(text.around.len());
                    text.around.push(open.iter().rev().copied().collect());
                }
                Statement::End => _ = open.pop(),
                Statement::Registers { name, count, .. } => {
                    text.declared.extend(scope.map(|scope| (scope, *name, count.is_some())));
                }
                Statement::Label(name, _) => _ = text.labels.insert((scope, name), text.body.len()),
                Statement::Instruction(instruction) => {
                    let elements = simpler.get(number).unwrap_or(std::slice::from_ref(instruction));
                    text.body.extend(elements.iter().map(|element| (scope, element)));
                    text.parts.extend((0..elements.len()).map(|element| (number, element)));
                    number += 1;
                }
                _ => {}
            }
        }
        for (at, &(scope, instruction)) in text.body.iter().enumerate() {
            let mut names = Times::new();
            names.extend(instruction.guard.map(|(guard, _)| (guard, 1)));
            let sources = &instruction.operands[usize::from(has_target(instruction))..];
            sources.iter().for_each(|operand| unused::count_names(operand, &mut names));
            for name in names.keys() {
                let name = name_in(&text.around, &text.declared, scope, name);
                text.readers.entry(name).or_default().insert(at);
            }
        }
        let counts = |&&(_, instruction): &&(Scope, &'a Instruction<'a>)| match &instruction.operands[..] {
            [Operand::Name { name: to, offset: 0 }, Operand::Name { name, offset: 0 }, Operand::Bits(by)] => {
                instruction.opcode == "add" && to == name && by.cast_signed() > 0
            }
            _ => false,
        };
        let counters = text.body.iter().filter(counts);
        text.counters = counters.filter_map(|(scope, add)| Some(text.name(*scope, target(add)?))).collect();
        text.constants = text.find_constants();
        text.marked = text.labels.values().copied().collect();
        let branches = (0..text.body.len()).filter(|&at| text.body[at].1.opcode == "bra");
        let branches: Vec<(usize, usize)> = branches.filter_map(|at| Some((text.branches_to(at)?, at))).collect();
        text.loops = branches.iter().copied().filter(|(to, at)| to <= at).collect();
        branches.into_iter().for_each(|(to, at)| text.branches.entry(to).or_default().push(at));
        text.has_tables = text.body.iter().any(|(_, instruction)| instruction.opcode == "brx");
        text.compared = text.find_compared();
        text
    }

    /// Registers into which one instruction moves a number, and nothing else writes.
    fn find_constants(&self) -> BTreeMap<Name<'a>, u64> {
        let mut written: BTreeMap<Name<'a>, Option<u64>> = BTreeMap::new();
        for &(scope, instruction) in &self.body {
            let number = match (&instruction.operands[..], instruction.guard) {
                (&[_, Operand::Bits(bits)], None) if instruction.opcode == "mov" => Some(bits),
                _ => None,
            };
            let mut targets = Times::new();
            instruction.operands.first().into_iter().for_each(|first| unused::count_names(first, &mut targets));
            for name in targets.keys() {
                let value = written.entry(self.name(scope, name)).or_insert(number);
                *value = value.filter(|value| number == Some(*value));
            }
        }
        written.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
    }

    /// An operand, or in place of a register with the same value always, that value.
    pub(super) fn known(&self, scope: Scope, operand: &Operand<'a>) -> Operand<'a> {
        let constant = match operand {
            Operand::Name { name, offset: 0 } => self.constants.get(&self.name(scope, name)),
            _ => None,
        };
        constant.map_or_else(|| operand.clone(), |bits| Operand::Bits(*bits))
    }

    /// Whether a branch leads back over an instruction.
    pub(super) fn is_in_loop(&self, at: usize) -> bool {
        self.loops.iter().any(|&(begin, end)| begin <= at && at <= end)
    }

    /// The instructions of the smallest loop around one.
    pub(super) fn loop_around(&self, at: usize) -> RangeInclusive<usize> {
        let around = self.loops.iter().filter(|&&(begin, end)| begin <= at && at <= end);
        around.min_by_key(|(begin, end)| end - begin).map_or(at..=at, |&(begin, end)| begin..=end)
    }

    /// All instructions from which a thread may come to one. `None`: nobody knows.
    pub(super) fn ways_to(&self, at: usize) -> Option<Vec<usize>> {
        let falls = at.checked_sub(1).filter(|&before| {
            let (_, previous) = self.body[before];
            let leaves = matches!(previous.opcode, "bra" | "brx" | "ret" | "exit" | "trap");
            !leaves || previous.guard.is_some()
        });
        let all = self.branches.get(&at).into_iter().flatten().copied().chain(falls).collect();
        (!self.has_tables).then_some(all)
    }

    /// Whether an instruction that is none of these reads a register.
    pub(super) fn is_read_beyond(&self, name: &Name<'a>, passed: &BTreeSet<usize>) -> bool {
        self.readers.get(name).is_some_and(|all| !all.is_subset(passed))
    }

    /// Whether a thread that goes on from an instruction may read a register before it writes it again.
    pub(super) fn is_read_from(&self, name: &Name<'a>, from: usize) -> bool {
        let Some(readers) = self.readers.get(name) else { return false };
        let (mut seen, mut todo) = (BTreeSet::new(), vec![from]);
        while let Some(at) = todo.pop() {
            let Some(&(_, instruction)) = self.body.get(at).filter(|_| seen.insert(at)) else { continue };
            if readers.contains(&at) {
                return true;
            }
            let is_always = instruction.guard.is_none();
            if is_always && self.names_of(at).any(|other| other == *name) {
                continue;
            }
            match instruction.opcode {
                "bra" => match self.branches_to(at) {
                    Some(to) => todo.push(to),
                    None => return true,
                },
                "brx" => return true, // it may lead to any
                _ => {}
            }
            if !(is_always && matches!(instruction.opcode, "bra" | "ret" | "exit" | "trap")) {
                todo.push(at + 1);
            }
        }
        false
    }

    /// Whether a branch may lead to any label.
    pub(super) fn jumps_anywhere(&self) -> bool {
        self.has_tables
    }

    /// Whether an instruction does nothing but compute registers from registers and numbers.
    pub(super) fn only_computes(&self, instruction: &Instruction<'_>) -> bool {
        PURE.contains(&instruction.opcode) && has_target(instruction) && !instruction.modifiers.contains(&"cc")
    }

    /// Whether something may jump to an instruction.
    pub(super) fn is_label(&self, at: usize) -> bool {
        self.marked.contains(&at)
    }

    /// The registers that an instruction computes.
    pub(super) fn names_of(&self, at: usize) -> impl Iterator<Item = Name<'a>> {
        let (scope, instruction) = self.body[at];
        let targets = if has_target(instruction) { instruction.operands.first() } else { None };
        let all = match targets {
            Some(Operand::Vector(all)) => &all[..],
            one => one.map_or(&[][..], std::slice::from_ref),
        };
        all.iter().filter_map(move |operand| match operand {
            Operand::Name { name, .. } | Operand::Part { name, .. } => Some(self.name(scope, name)),
            _ => None,
        })
    }

    /// Of the registers that are computed from one instruction to another, those that come from the first, and from what is not among `changing`.
    pub(super) fn computed_from(&self, first: usize, last: usize, changing: &BTreeSet<Name<'a>>) -> BTreeSet<Name<'a>> {
        let mut computed: BTreeSet<Name<'a>> = self.names_of(first).collect();
        for at in first + 1..=last {
            let (scope, instruction) = self.body[at];
            let mut read = Times::new();
            let sources = &instruction.operands[usize::from(has_target(instruction))..];
            sources.iter().for_each(|operand| unused::count_names(operand, &mut read));
            let is_kept = |name: &&str| {
                let name = self.name(scope, name);
                computed.contains(&name) || !changing.contains(&name)
            };
            match read.keys().all(is_kept) {
                true => computed.extend(self.names_of(at)),
                false => self.names_of(at).for_each(|name| _ = computed.remove(&name)),
            }
        }
        computed
    }

    pub(super) fn name(&self, scope: Scope, name: &'a str) -> Name<'a> {
        name_in(&self.around, &self.declared, scope, name)
    }

    /// Whether an instruction only computes a register, or nothing; or loads a constant by its name, or what is the thread's own, or stores an argument of a
    /// call, or asks for what is the same always.
    pub(super) fn computes(&self, instruction: &Instruction<'_>) -> bool {
        let &Instruction { opcode, ref modifiers, ref operands, .. } = instruction;
        let is_plain = |word: &&str| matches!(*word, "global" | "const" | "param") || Type::parse(word).is_some();
        let is_own = |word: &&str| matches!(*word, "local" | "const" | "param");
        match opcode {
            "ld" if modifiers.iter().any(is_own) => true,
            "ld" => modifiers.iter().all(is_plain) && operands.iter().skip(1).all(|from| self.is_variable(from)),
            "st" => modifiers.first() == Some(&"param"),
            "call" => operands.iter().any(|callee| matches!(callee, Operand::Name { name, .. } if SAME.contains(name))),
            _ if IDLE.contains(&opcode) => true,
            _ => self.only_computes(instruction),
        }
    }

    /// Whether an address is that of something with a name, which no register has.
    fn is_variable(&self, address: &Operand<'_>) -> bool {
        let Operand::Address { base: Some(base), .. } = address else { return false };
        !base.starts_with('%') && !self.declared.iter().any(|(_, name, _)| name == base)
    }

    /// The registers that an instruction computes. Their values are known from now on, or are not.
    pub(super) fn compute(&self, at: usize, known: &mut Known<'a>) {
        let (scope, instruction) = self.body[at];
        let value = self.value(scope, instruction, known);
        for name in self.names_of(at) {
            match value {
                Some(value) => known.insert(name, value),
                None => known.remove(&name),
            };
        }
    }

    /// What is known of an operand.
    pub(super) fn value_of(&self, scope: Scope, operand: &'a Operand<'a>, known: &Known<'a>) -> Option<u64> {
        match operand {
            Operand::Bits(bits) => Some(*bits),
            Operand::Name { name, offset: 0 } => known.get(&self.name(scope, name)).copied(),
            Operand::Not(name) => known.get(&self.name(scope, name)).map(|value| value ^ 1),
            _ => None,
        }
    }

    fn value(&self, scope: Scope, instruction: &'a Instruction<'a>, known: &Known<'a>) -> Option<u64> {
        let number = |operand: &'a Operand<'a>| self.value_of(scope, operand, known);
        let both = |one, other| [number(one), number(other)];
        let equal = |ty: &str, one, other| Some((number(one)? ^ number(other)?) & Type::parse(ty)?.mask() == 0);
        match (instruction.opcode, &instruction.modifiers[..], &instruction.operands[..]) {
            ("mov", ["pred"], [_, from]) => number(from).map(|value| value & 1), // -1 is true
            ("mov", _, [_, from]) => number(from),
            ("not", ["pred"], [_, from]) => Some(number(from)? ^ 1),
            ("xor", ["pred"], [_, one, other]) => Some(number(one)? ^ number(other)?),
            ("and", ["pred"], [_, one, other]) => match both(one, other) {
                [Some(0), _] | [_, Some(0)] => Some(0),
                all => Some(all[0]? & all[1]?),
            },
            ("or", ["pred"], [_, one, other]) => match both(one, other) {
                [Some(1), _] | [_, Some(1)] => Some(1),
                all => Some(all[0]? | all[1]?),
            },
            ("selp", _, [_, yes, no, which]) => number(if number(which)? == 1 { yes } else { no }),
            ("setp", ["eq", ty], [_, one, other]) => equal(ty, one, other).map(u64::from),
            ("setp", ["ne", ty], [_, one, other]) => equal(ty, one, other).map(|equal| u64::from(!equal)),
            _ => None,
        }
    }

    /// Where a branch leads.
    pub(super) fn branches_to(&self, at: usize) -> Option<usize> {
        let (scope, instruction) = self.body[at];
        let [Operand::Name { name, .. }] = &instruction.operands[..] else { return None };
        let around = scope.map_or(&[][..], |scope| &self.around[scope]);
        let mut scopes = around.iter().copied().map(Some).chain([None]);
        scopes.find_map(|scope| self.labels.get(&(scope, *name)).copied())
    }
}

/// A name, in the scope that declares it.
fn name_in<'a>(
    around: &[Vec<usize>],
    declared: &BTreeSet<(usize, &'a str, bool)>,
    scope: Scope,
    name: &'a str,
) -> Name<'a> {
    let is_number = |rest: &str| !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit());
    let declares = |scope: &usize| {
        let mut of_scope = declared.range((*scope, "", false)..).take_while(|(of, ..)| of == scope);
        of_scope.any(|&(_, begin, is_counted)| match is_counted {
            true => name.strip_prefix(begin).is_some_and(is_number),
            false => name == begin,
        })
    };
    let around = scope.map_or(&[][..], |scope| &around[scope]);
    (around.iter().find(|scope| declares(scope)).copied(), name)
}

/// Whether an instruction computes registers: its first operand.
fn has_target(instruction: &Instruction<'_>) -> bool {
    let is_several = || instruction.opcode == "mov" && matches!(instruction.operands.first(), Some(Operand::Vector(_)));
    target(instruction).is_some() || is_several()
}

/// The register that an instruction computes, if it is one.
pub(super) fn target<'a>(instruction: &Instruction<'a>) -> Option<&'a str> {
    match instruction.operands.first() {
        Some(Operand::Part { name, .. }) => Some(name),
        Some(Operand::Name { name, offset: 0 }) => match instruction.opcode {
            "bra" | "brx" => None,
            "bar" | "barrier" if !instruction.modifiers.contains(&"red") => None,
            opcode if IDLE.contains(&opcode) => None,
            _ => Some(name),
        },
        _ => None,
    }
}
