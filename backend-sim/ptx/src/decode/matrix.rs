//! Matrices that a warp holds together: loads and stores of them, and products.

use super::builder::Builder;
use super::form::Form;
use crate::alu::float;
use crate::alu::matrix::{Element, Matrix, Multiply, Sum};
use crate::alu::round::Rounding;
use crate::error::Error;
use crate::op::{MatrixForm, Op, Reg, Warp};
use crate::syntax::Operand;
use crate::types::Type;

/// Products that PTX has: rows, depth, and what `a` consists of.
const SHAPES: [(&str, usize, usize, &[Element]); 6] = [
    ("m8n8k4", 8, 4, &[Element::F64]),
    ("m8n8k16", 8, 16, &[Element::S8, Element::U8]),
    ("m16n8k4", 16, 4, &[Element::Tf32, Element::F64]),
    ("m16n8k8", 16, 8, &[Element::F16, Element::Bf16, Element::Tf32, Element::F64]),
    (
        "m16n8k16",
        16,
        16,
        &[Element::F16, Element::Bf16, Element::F64, Element::S8, Element::U8, Element::E4m3, Element::E5m2],
    ),
    ("m16n8k32", 16, 32, &[Element::S8, Element::U8, Element::E4m3, Element::E5m2]),
];

/// Whether products of these are known: of integers or of 8 bits any, else only of the same kind.
pub(super) fn are_alike(a: Element, b: Element) -> bool {
    match a {
        Element::S8 | Element::U8 => matches!(b, Element::S8 | Element::U8),
        Element::E4m3 | Element::E5m2 => matches!(b, Element::E4m3 | Element::E5m2),
        _ => a == b,
    }
}

impl<'a> Builder<'_, 'a> {
    pub(super) fn matrix(
        &mut self,
        form: &mut Form<'a>,
        opcode: &str,
        operands: &[Operand<'a>],
    ) -> Result<bool, Error> {
        if !matches!(opcode, "ldmatrix" | "stmatrix" | "movmatrix" | "mma" | "wmma" | "wgmma") {
            return Ok(false);
        }
        if !form.has("sync") || !form.has("aligned") {
            return Err(form.unknown());
        }
        match (opcode, operands) {
            ("ldmatrix", [held, address]) => self.rows(form, false, held, address)?,
            ("stmatrix", [address, held]) => self.rows(form, true, held, address)?,
            ("movmatrix", [d, a]) if form.has("m8n8") && form.has("trans") && form.ty()? == Type::B16 => {
                let (a, d) = (self.source(a, Type::B32)?, self.target(d)?.0);
                self.all_lanes(MatrixForm {
                    kind: Matrix::Transpose,
                    d: vec![d],
                    operands: [vec![a], vec![], vec![]],
                })?;
            }
            ("mma", [d, a, b, c]) => self.multiply(form, d, [a, b, c])?,
            ("wmma", operands) => self.fragments(form, operands)?,
            ("wgmma", operands) => self.in_group(form, operands)?,
            _ => return Err(form.unknown()),
        }
        Ok(true)
    }

    /// Each lane loads the row that it names, then all share the rows out; or the other way round.
    fn rows(
        &mut self,
        form: &mut Form<'a>,
        stores: bool,
        held: &Operand<'a>,
        address: &Operand<'a>,
    ) -> Result<(), Error> {
        let matrices = match form.need(&["x1", "x2", "x4"])? {
            "x1" => 1,
            "x2" => 2,
            _ => 4,
        };
        let transposed = form.has("trans");
        let shared = form.one_of(&["shared", "shared::cta"]).is_some();
        if !form.has("m8n8") || form.ty()? != Type::B16 {
            return Err(form.unknown());
        }
        let held = Self::elements(form, held, matrices)?;
        let a = self.address(form, address)?;
        let (t, high) = (self.temporary()?, self.temporary()?);
        let row = Op::Row { stores, t, a, lanes: 8 * matrices, shared };
        let halves = vec![t, high];
        if stores {
            let sources = held.iter().map(|source| self.source(source, Type::B32)).collect::<Result<_, _>>()?;
            let kind = Matrix::Gather { transposed };
            self.all_lanes(MatrixForm { kind, d: halves, operands: [sources, vec![], vec![]] })?;
            self.emit(row);
        } else {
            let d = self.targets(held)?;
            self.emit(row);
            let kind = Matrix::Spread { transposed };
            self.all_lanes(MatrixForm { kind, d, operands: [halves, vec![], vec![]] })?;
        }
        Ok(())
    }

    /// `mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 d, a, b, c`.
    fn multiply(&mut self, form: &mut Form<'a>, d: &Operand<'a>, operands: [&Operand<'a>; 3]) -> Result<(), Error> {
        let types = form.types_of_matrices().ok_or_else(|| form.unknown())?;
        let shape = SHAPES.iter().find(|(name, ..)| form.has(name));
        let &(_, rows, depth, elements) = shape.ok_or_else(|| form.unknown())?;
        let layouts = form.has("row") && form.has("col");
        let saturates = form.has("satfinite");
        let rounding = form.one_of(&["rn", "rz", "rm", "rp"]).and_then(Rounding::parse);
        let [to, a, b, from] = types;
        let (Some(a), Some(b), true, true) = (Element::parse(a), Element::parse(b), to == from, layouts) else {
            return Err(form.unknown());
        };
        let (sum, ty) = match (a, to) {
            (Element::F16 | Element::E4m3 | Element::E5m2, "f16") => (Sum::F16, Type::B32),
            (Element::F16 | Element::Bf16 | Element::Tf32 | Element::E4m3 | Element::E5m2, "f32") => {
                (Sum::F32, Type::F32)
            }
            (Element::S8 | Element::U8, "s32") => (Sum::S32 { saturates }, Type::S32),
            (Element::F64, "f64") => {
                let fma = float::fma(Type::F64, rounding.unwrap_or(Rounding::Nearest));
                (Sum::F64(fma.ok_or_else(|| form.unknown())?), Type::F64)
            }
            _ => return Err(form.unknown()),
        };
        let fits = elements.contains(&a)
            && are_alike(a, b)
            && (!saturates || matches!(sum, Sum::S32 { .. }))
            && (rounding.is_none() || matches!(sum, Sum::F64(_)));
        if !fits {
            return Err(form.unknown());
        }
        let multiply = Multiply { rows, depth, a, b, sum };
        let factor = if a == Element::F64 { Type::F64 } else { Type::B32 };
        let [of_a, of_b, of_c] = multiply.registers();
        let mut registers = [vec![], vec![], vec![]];
        for (place, (operand, (count, ty))) in
            operands.into_iter().zip([(of_a, factor), (of_b, factor), (of_c, ty)]).enumerate()
        {
            for source in Self::elements(form, operand, count as u8)? {
                registers[place].push(self.source(source, ty)?);
            }
        }
        let d = self.targets(Self::elements(form, d, of_c as u8)?)?;
        self.all_lanes(MatrixForm { kind: Matrix::Multiply(multiply), d, operands: registers })
    }

    pub(super) fn targets(&mut self, operands: &[Operand<'a>]) -> Result<Vec<Reg>, Error> {
        operands.iter().map(|operand| Ok(self.target(operand)?.0)).collect()
    }

    pub(super) fn all_lanes(&mut self, form: MatrixForm) -> Result<(), Error> {
        let how = u16::try_from(self.code.matrices.len());
        let how = how.map_err(|_| self.error("more than 65,535 instructions on matrices in a function"))?;
        self.code.matrices.push(form);
        let mask = self.constant(u32::MAX.into())?;
        // The registers are those of the form.
        self.emit(Op::Warp { kind: Warp::Matrix(how), d: 0, q: 0, a: mask, b: mask, c: mask, mask });
        Ok(())
    }
}
