//! `wgmma`: products of the four warps of a group, which run beside its threads.

use std::collections::BTreeSet;

use super::builder::Builder;
use super::form::Form;
use super::matrix::are_alike;
use super::unused::{Times, count_names};
use crate::alu::group::GroupProduct;
use crate::alu::matrix::{Element, Sum};
use crate::error::Error;
use crate::op::{Factor, GroupForm, InGroup, Op, Reg, Warp};
use crate::syntax::{Function, Instruction, Operand, Statement};
use crate::types::Type;

/// The names of all registers of a function that a product of a warp group works on.
pub(super) fn held<'a>(function: &Function<'a>) -> BTreeSet<&'a str> {
    let mut names = Times::new();
    for statement in function.body.iter().flatten() {
        if let Statement::Instruction(instruction) = statement
            && instruction.opcode == "wgmma"
        {
            // `d`, and perhaps `a`
            let vectors = instruction.operands.iter().filter(|operand| matches!(operand, Operand::Vector(_)));
            vectors.for_each(|vector| count_names(vector, &mut names));
        }
    }
    names.into_keys().collect()
}

impl<'a> Builder<'_, 'a> {
    /// Another instruction accesses registers of products. Moves do not count: compilers copy registers where they like, also between a fence and a
    /// product, and ptxas takes the copies away.
    pub(super) fn note_held(&mut self, instruction: &Instruction<'a>) {
        if self.held.is_empty() || matches!(instruction.opcode, "wgmma" | "mov") {
            return;
        }
        let (mut written, mut all) = (Times::new(), Times::new());
        if let Some(target @ (Operand::Name { .. } | Operand::Part { .. } | Operand::Vector(_) | Operand::Pair(..))) =
            instruction.operands.first()
        {
            count_names(target, &mut written);
        }
        instruction.operands.iter().for_each(|operand| count_names(operand, &mut all));
        for name in all.into_keys().filter(|name| self.held.contains(name)).collect::<Vec<_>>() {
            if let Some((register, _)) = self.register(name) {
                self.emit(Op::Held { register, writes: written.contains_key(name) });
            }
        }
    }

    pub(super) fn in_group(&mut self, form: &mut Form<'a>, operands: &[Operand<'a>]) -> Result<(), Error> {
        let what = match (form.need(&["mma_async", "fence", "commit_group", "wait_group"])?, operands) {
            ("mma_async", [d, a, b, adds, rest @ ..]) => {
                let form = self.product_in_group(form, d, [a, b], adds, rest)?;
                let how = u16::try_from(self.code.products.len());
                let how = how.map_err(|_| self.error("more than 65,535 products of warp groups in a function"))?;
                self.code.products.push(form);
                InGroup::Multiply(how)
            }
            ("fence", []) => InGroup::Fence,
            ("commit_group", []) => InGroup::Commit,
            ("wait_group", &[Operand::Bits(most)]) => InGroup::Wait(u32::try_from(most).map_err(|_| form.unknown())?),
            _ => return Err(form.unknown()),
        };
        self.found.multiplies = true;
        let mask = self.constant(u32::MAX.into())?;
        // The registers are those of the form.
        self.emit(Op::Warp { kind: Warp::Group(what), d: 0, q: 0, a: mask, b: mask, c: mask, mask });
        Ok(())
    }

    /// `wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 d, a, b, adds, 1, 1, 0, 0`.
    fn product_in_group(
        &mut self,
        form: &mut Form<'a>,
        d: &Operand<'a>,
        [a_operand, b_operand]: [&Operand<'a>; 2],
        adds: &Operand<'a>,
        rest: &[Operand<'a>],
    ) -> Result<GroupForm, Error> {
        let [to, a, b] = form.types_of_matrices().ok_or_else(|| form.unknown())?;
        let shape = form.behind("m64n").and_then(|shape| shape.split_once('k'));
        let saturates = form.has("satfinite");
        let (Some((columns, depth)), Some(a), Some(b)) = (shape, Element::parse(a), Element::parse(b)) else {
            return Err(form.unknown());
        };
        let (Ok(columns), Ok(depth)) = (columns.parse::<usize>(), depth.parse::<usize>()) else {
            return Err(form.unknown());
        };
        let sum = match (a, to) {
            (Element::F16 | Element::E4m3 | Element::E5m2, "f16") => Sum::F16,
            (Element::F16 | Element::Bf16 | Element::Tf32 | Element::E4m3 | Element::E5m2, "f32") => Sum::F32,
            (Element::S8 | Element::U8, "s32") => Sum::S32 { saturates },
            _ => return Err(form.unknown()),
        };
        let is_integer = matches!(sum, Sum::S32 { .. });
        let has_width = match columns {
            8..=256 if is_integer => columns.is_multiple_of(16) || columns == 8 || columns == 24,
            8..=256 => columns.is_multiple_of(8),
            _ => false,
        };
        let fits = has_width && depth * a.bytes() == 32 && are_alike(a, b) && (!saturates || is_integer);
        if !fits {
            return Err(form.unknown());
        }
        let in_registers = matches!(a_operand, Operand::Vector(_));
        // Two signs unless the numbers are integers; matrices of 16 bits may be transposed in shared memory.
        let (negates, transposed) = match (is_integer, a.bytes(), in_registers, rest) {
            (true, _, _, []) => (false, [false; 2]),
            (false, 2, true, [of_a, of_b, b]) => {
                (self.sign(of_a)? != self.sign(of_b)?, [false, self.is_transposed(b)?])
            }
            (false, 2, false, [of_a, of_b, a, b]) => {
                (self.sign(of_a)? != self.sign(of_b)?, [self.is_transposed(a)?, self.is_transposed(b)?])
            }
            (false, 1 | 4, _, [of_a, of_b]) => (self.sign(of_a)? != self.sign(of_b)?, [false; 2]),
            _ => return Err(form.error(format!("{} has other operands behind its matrices", form.name()))),
        };
        let kind = GroupProduct { columns, a, b, sum, negates };
        let adds = self.condition(adds)?;
        let a = match in_registers {
            true => {
                let held = Self::elements(form, a_operand, 4)?;
                let held = held.iter().map(|register| self.source(register, Type::B32)).collect::<Result<_, _>>()?;
                Factor::Registers(held)
            }
            false => self.in_shared_memory(a_operand, transposed[0])?,
        };
        let b = self.in_shared_memory(b_operand, transposed[1])?;
        let d = self.targets(Self::elements(form, d, kind.sums() as u8)?)?;
        Ok(GroupForm { kind, d, a, b, adds })
    }

    fn in_shared_memory(&mut self, operand: &Operand<'a>, transposed: bool) -> Result<Factor, Error> {
        Ok(Factor::Shared { descriptor: self.source(operand, Type::B64)?, transposed })
    }

    fn sign(&self, operand: &Operand<'a>) -> Result<i64, Error> {
        match *operand {
            Operand::Bits(bits) if matches!(bits.cast_signed(), 1 | -1) => Ok(bits.cast_signed()),
            _ => Err(self.error("a matrix is scaled with 1 or -1")),
        }
    }

    fn is_transposed(&self, operand: &Operand<'a>) -> Result<bool, Error> {
        match *operand {
            Operand::Bits(bits @ (0 | 1)) => Ok(bits == 1),
            _ => Err(self.error("a matrix is transposed (1) or not (0)")),
        }
    }

    /// A predicate, or 0 or 1.
    fn condition(&mut self, operand: &Operand<'a>) -> Result<Reg, Error> {
        match *operand {
            Operand::Bits(0 | 1) | Operand::Not(_) => {}
            Operand::Name { name, .. } if self.register(name).is_some_and(|(_, ty)| ty == Type::Pred) => {}
            _ => return Err(self.error("whether a product is added to is a predicate, or 0 or 1")),
        }
        self.source(operand, Type::Pred)
    }
}
