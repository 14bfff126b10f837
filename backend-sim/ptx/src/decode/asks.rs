//! Atomics that count, of whose old value a thread only asks whether it is some number: `if (atomicAdd(&count, 1) == gridDim.x - 1)`, who comes last.
//!
//! Behind a branch on the answer yes, compilers read the old value in place of that number.
//!
//! When the atomic is made, that number must be known. Mostly it is computed before. If instructions behind the atomic compute it, from what never changes
//! once it is known, they can be made before the atomic as well.

use std::collections::{BTreeMap, BTreeSet};

use super::builder::Builder;
use super::text::{Name, Scope, Text};
use super::unused::{self, Times};
use crate::alu::integer;
use crate::error::Error;
use crate::op::{Op, Reg};
use crate::syntax::{Function, Instruction, Operand, Statement};
use crate::types::Type;

/// Registers that nothing writes, and that are the same always.
const SAME: &[&str] = &["%nctaid", "%ntid", "%ctaid", "%tid", "%nwarpid", "%cluster_nctarank", "%nvshmem_n_pes"];

/// So many instructions may compute the number.
const MOST: usize = 16;

/// The question.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Asks {
    /// Instructions that are made before the atomic, by their numbers in the function.
    pub(super) before: Vec<usize>,
    /// The comparison, and which of its operands the number is.
    pub(super) number: (usize, usize),
    /// What is added to the old value before it is compared.
    pub(super) plus: u64,
    pub(super) ty: Type,
}

/// The atomics of a function that are asked so, by their numbers.
pub(super) fn of<'a>(text: &Text<'a>, function: &'a Function<'a>) -> BTreeMap<usize, Asks> {
    let counts = |&at: &usize| {
        let (_, Instruction { opcode, modifiers, .. }) = text.body[at];
        *opcode == "atom" && modifiers.iter().any(|word| matches!(*word, "add" | "inc" | "dec"))
    };
    let atomics: Vec<usize> = (0..text.body.len()).filter(counts).collect();
    if atomics.is_empty() {
        return BTreeMap::new();
    }
    let of = Registers::of(text, function);
    atomics.into_iter().filter_map(|at| Some((text.parts[at].0, of.asks(at)?))).collect()
}

/// The registers of a function.
struct Registers<'t, 'a> {
    text: &'t Text<'a>,
    /// The instructions as they are written.
    written: Vec<&'a Instruction<'a>>,
    /// Who writes a register.
    writers: BTreeMap<Name<'a>, Vec<usize>>,
}

impl<'t, 'a> Registers<'t, 'a> {
    fn of(text: &'t Text<'a>, function: &'a Function<'a>) -> Self {
        let mut writers: BTreeMap<Name<'a>, Vec<usize>> = BTreeMap::new();
        for at in 0..text.body.len() {
            text.names_of(at).for_each(|name| writers.entry(name).or_default().push(at));
        }
        Registers { text, written: instructions(function).collect(), writers }
    }

    /// The only instruction that writes a register.
    fn writer(&self, name: &Name<'a>) -> Option<usize> {
        match self.writers.get(name)?[..] {
            [only] => Some(only),
            _ => None,
        }
    }

    fn asks(&self, at: usize) -> Option<Asks> {
        let (scope, atomic) = self.text.body[at];
        let ty = atomic.modifiers.last().and_then(|ty| Type::parse(ty)).filter(|ty| ty.is_integer())?;
        let [Operand::Name { name: old, offset: 0 }, ..] = atomic.operands[..] else { return None };
        let (mut old, mut plus, mut asked) = (self.text.name(scope, old), 0_u64, at);
        let mut registers = Vec::new();
        loop {
            self.writer(&old)?;
            let reader = *self.text.readers.get(&old)?.range(asked..).next()?;
            asked = reader;
            registers.push((old, reader));
            let (inner, instruction) = self.text.body[reader];
            let is_old = |operand: &Operand<'a>| match operand {
                Operand::Name { name, offset: 0 } => self.text.name(inner, name) == old,
                _ => false,
            };
            match (instruction.opcode, &instruction.modifiers[..], &instruction.operands[..]) {
                ("mov", &[_], [to, from]) if is_old(from) => old = self.named(inner, to)?,
                ("add", &[of], [to, from, by]) if is_old(from) && Type::parse(of)?.bytes() == ty.bytes() => {
                    let Operand::Bits(by) = self.text.known(inner, by) else { return None };
                    plus = plus.wrapping_add(by);
                    old = self.named(inner, to)?;
                }
                ("setp", &[compare @ ("eq" | "ne"), .., of], [_, one, other, ..])
                    if Type::parse(of)?.bytes() == ty.bytes() =>
                {
                    let is_asked_only = |(name, reader): &(_, usize)| self.text.readers[name].iter().eq([reader]);
                    if !registers.iter().all(is_asked_only) {
                        self.are_known_elsewhere(&registers, (reader, compare == "eq"))?;
                    }
                    let number = match [is_old(one), is_old(other)] {
                        [true, false] => 2,
                        [false, true] => 1,
                        _ => return None,
                    };
                    let (setp, element) = self.text.parts[reader];
                    let operand = self.written[setp].operands.get(number).filter(|_| element == 0)?;
                    let mut before = Vec::new();
                    self.early((inner, operand), (scope, at), &mut before)?;
                    let before = before.into_iter().map(|early| self.text.parts[early].0).collect();
                    return Some(Asks { before, number: (setp, number), plus, ty });
                }
                _ => return None,
            }
        }
    }

    /// Whether the value is read elsewhere only where the answer is yes: there it is known. `registers`: each with the instruction that asks.
    fn are_known_elsewhere(
        &self,
        registers: &[(Name<'a>, usize)],
        (comparison, is_equal): (usize, bool),
    ) -> Option<()> {
        let (scope, Instruction { modifiers, operands, .. }) = self.text.body[comparison];
        let answer = self.named(scope, &operands[0]).filter(|_| modifiers.len() == 2)?;
        let branches = |at: &usize| self.text.body[*at].1.opcode == "bra";
        let branch = (comparison + 1..self.text.body.len()).take_while(|&at| !self.text.is_label(at)).find(branches)?;
        let (scope, instruction) = self.text.body[branch];
        let (_, negated) = instruction.guard.filter(|(guard, _)| self.text.name(scope, guard) == answer)?;
        let to_no = if negated == is_equal { self.text.branches_to(branch)? } else { branch + 1 };
        let is_known = |(name, asks): &(Name<'a>, usize)| {
            let near = self.text.readers[name].range(..=branch).all(|reader| reader == asks);
            near && !self.text.is_read_from(name, to_no)
        };
        registers.iter().all(is_known).then_some(())
    }

    fn named(&self, scope: Scope, operand: &Operand<'a>) -> Option<Name<'a>> {
        match operand {
            Operand::Name { name, offset: 0 } => Some(self.text.name(scope, name)),
            _ => None,
        }
    }

    /// Whether an operand is known before the atomic, once these instructions have been made.
    fn early(
        &self,
        (scope, operand): (Scope, &Operand<'a>),
        (of_atomic, at): (Scope, usize),
        before: &mut Vec<usize>,
    ) -> Option<()> {
        let mut names = Times::new();
        unused::count_names(operand, &mut names);
        for name in names.into_keys() {
            let here = self.text.name(scope, name);
            if here != self.text.name(of_atomic, name) {
                return None; // another register has the name where the atomic stands
            }
            let Some(writer) = self.writer(&here) else {
                let is_same = SAME.contains(&name.split('.').next()?) && !self.writers.contains_key(&here);
                is_same.then_some(())?;
                continue;
            };
            let is_known = writer < at && !self.text.is_in_loop(writer) && !self.text.jumps_anywhere();
            if is_known || before.contains(&writer) {
                continue; // it is written once, and no way leads back there
            }
            let instruction = self.written[self.text.parts[writer].0];
            let computes = instruction.guard.is_none() && self.text.only_computes(instruction) && writer != at;
            if !computes || before.len() == MOST {
                return None;
            }
            for source in &instruction.operands[1..] {
                self.early((self.text.body[writer].0, source), (of_atomic, at), before)?;
            }
            if !before.contains(&writer) {
                before.push(writer);
            }
        }
        Some(())
    }
}

fn instructions<'f, 'a>(function: &'f Function<'a>) -> impl Iterator<Item = &'f Instruction<'a>> {
    function.body.iter().flatten().filter_map(|statement| match statement {
        Statement::Instruction(instruction) => Some(instruction),
        _ => None,
    })
}

/// The instructions that atomics need before them, and the comparisons.
pub(super) fn needed<'f, 'a>(
    asks: &BTreeMap<usize, Asks>,
    function: &'f Function<'a>,
) -> BTreeMap<usize, &'f Instruction<'a>> {
    let all: BTreeSet<usize> =
        asks.values().flat_map(|asks| asks.before.iter().copied().chain([asks.number.0])).collect();
    match all.is_empty() {
        true => BTreeMap::new(),
        false => instructions(function).enumerate().filter(|(number, _)| all.contains(number)).collect(),
    }
}

/// # Decoding
impl Builder<'_, '_> {
    /// The atomic that is decoded: if it only asks whether the old value is some number, that number's register.
    pub(super) fn asked_number(&mut self) -> Result<Option<Reg>, Error> {
        let Some(Asks { before, number: (comparison, operand), plus, ty }) = self.asks.remove(&(self.instructions - 1))
        else {
            return Ok(None);
        };
        for number in before {
            self.instruction(self.needed[&number], None)?;
        }
        let number = match &self.needed[&comparison].operands[operand] {
            Operand::Bits(bits) => return self.constant(bits.wrapping_sub(plus) & ty.mask()).map(Some),
            operand => self.source(operand, ty)?,
        };
        let Some(f) = integer::binary("sub", ty).filter(|_| plus & ty.mask() != 0) else { return Ok(Some(number)) };
        let (d, b) = (self.temporary()?, self.constant(plus & ty.mask())?);
        self.emit(Op::Binary { f, d, a: number, b });
        Ok(Some(d))
    }
}

#[cfg(test)]
mod tests {
    use super::super::simpler::Simpler;
    use super::*;

    /// Of a kernel with this body: which atomics ask, what is made before each, and what is added.
    fn asked(body: &str) -> Vec<(usize, Vec<usize>, u64)> {
        let text = format!(
            ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u32 n)\n{{\n.reg .b32 %r<9>;\n.reg .pred %p<9>;\n\
             .reg .b64 %rd<4>;\n{body}\nret;\n}}\n"
        );
        let text = crate::parser::parse(&text).unwrap();
        let function = &text.functions[0];
        let simpler = Simpler::of(function, &BTreeSet::new());
        let asks = of(&Text::of(function, &simpler), function);
        asks.into_iter().map(|(at, asks)| (at, asks.before, asks.plus)).collect()
    }

    const ADD: &str = "atom.global.add.u32 %r1, [%rd1], 1;";

    #[test]
    fn a_number_is_known_before_or_can_be_computed_there() {
        assert_eq!(asked(&format!("{ADD} setp.eq.s32 %p1, %r1, 7;")), [(0, vec![], 0)]);
        assert_eq!(asked(&format!("ld.param.u32 %r2, [n]; {ADD} setp.ne.u32 %p1, %r2, %r1;")), [(1, vec![], 0)]);
        let size = "mov.u32 %r3, %nctaid.x; add.s32 %r4, %r3, -1;";
        assert_eq!(asked(&format!("{ADD} {size} setp.eq.s32 %p1, %r1, %r4;")), [(0, vec![1, 2], 0)]);
        assert_eq!(asked(&format!("{size} {ADD} setp.eq.s32 %p1, %r1, %r4;")), [(2, vec![], 0)]);
        let more = format!("{ADD} mov.u32 %r2, %r1; add.s32 %r3, %r2, 2; setp.eq.and.s32 %p1, %r3, 7, %p2;");
        assert_eq!(asked(&more), [(0, vec![], 2)]);
    }

    #[test]
    fn whoever_looks_at_the_value_does_not_just_ask() {
        let no = |body: &str| assert_eq!(asked(body), [], "{body}");
        no(&format!("{ADD} setp.gt.u32 %p1, %r1, 7;"));
        no(&format!("{ADD} setp.eq.s32 %p1, %r1, 7; st.global.u32 [%rd2], %r1;"));
        no(&format!("{ADD} setp.eq.s32 %p1, %r1, 7; setp.eq.s32 %p2, %r1, 8;"));
        no(&format!("{ADD} mov.u32 %r1, 3; setp.eq.s32 %p1, %r1, 7;"));
        no(&format!("{ADD} setp.eq.s32 %p1, %r1, %r1;"));
        no("atom.global.exch.b32 %r1, [%rd1], 1; setp.eq.s32 %p1, %r1, 0;");
        no("atom.global.add.f32 %r1, [%rd1], %r2; setp.eq.s32 %p1, %r1, 0;");
    }

    #[test]
    fn where_the_answer_is_yes_the_value_is_known() {
        let uses = "st.global.u32 [%rd2], %r1;";
        let yes = |body: &str| assert_eq!(asked(body), [(0, vec![], 0)], "{body}");
        let no = |body: &str| assert_eq!(asked(body), [], "{body}");
        yes(&format!("{ADD} setp.ne.s32 %p1, %r1, 7; @%p1 bra L; {uses} L: mov.u32 %r5, 1;"));
        yes(&format!("{ADD} setp.eq.s32 %p1, %r1, 7; @!%p1 bra L; {uses} L: mov.u32 %r5, 1;"));
        yes(&format!("{ADD} setp.eq.s32 %p1, %r1, 7; @%p1 bra L; ret; L: {uses}"));
        no(&format!("{ADD} setp.ne.s32 %p1, %r1, 7; @%p1 bra L; mov.u32 %r5, 1; L: {uses}"));
        no(&format!("{ADD} setp.eq.s32 %p1, %r1, 7; @%p1 bra L; {uses} L: mov.u32 %r5, 1;"));
        no(&format!("{ADD} setp.ne.s32 %p1, %r1, 7; {uses} @%p1 bra L; mov.u32 %r5, 1; L: mov.u32 %r5, 2;"));
        no(&format!("{ADD} setp.ne.s32 %p1, %r1, 7; @%p2 bra L; {uses} L: mov.u32 %r5, 1;"));
    }

    #[test]
    fn a_number_that_may_change_is_not_known() {
        let no = |body: &str| assert_eq!(asked(body), [], "{body}");
        no(&format!("{ADD} ld.global.u32 %r2, [%rd2]; setp.eq.s32 %p1, %r1, %r2;"));
        no(&format!("{ADD} mov.u32 %r2, %clock; setp.eq.s32 %p1, %r1, %r2;"));
        no(&format!("mov.u32 %r2, 1; {ADD} add.s32 %r2, %r2, 1; setp.eq.s32 %p1, %r1, %r2;"));
        no(&format!("L: ld.global.u32 %r2, [%rd2]; {ADD} setp.eq.s32 %p1, %r1, %r2; @%p1 bra L;"));
        no(&format!("{ADD} @%p2 mov.u32 %r2, 1; setp.eq.s32 %p1, %r1, %r2;"));
    }
}
