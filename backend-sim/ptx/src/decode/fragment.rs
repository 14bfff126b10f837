//! `wmma`: fragments of whole matrices that a warp loads, multiplies and stores. Which lane has which element is left open by PTX: see
//! [`fragment`](crate::alu::fragment).

use super::builder::Builder;
use super::form::Form;
use crate::alu::fragment::Fragments;
use crate::alu::matrix::{Element, Matrix, Sum};
use crate::alu::round::Rounding;
use crate::alu::{float, packed};
use crate::error::Error;
use crate::op::{MatrixForm, Memory, Op, Reg, Special, Unit};
use crate::syntax::Operand;
use crate::types::{Space, Type};

/// Rows, columns and depth of products, and what `a` and `b` consist of.
const SHAPES: [(&str, [usize; 3], &[Element]); 5] = [
    ("m16n16k16", [16, 16, 16], &[Element::F16, Element::Bf16, Element::S8, Element::U8]),
    ("m8n32k16", [8, 32, 16], &[Element::F16, Element::Bf16, Element::S8, Element::U8]),
    ("m32n8k16", [32, 8, 16], &[Element::F16, Element::Bf16, Element::S8, Element::U8]),
    ("m16n16k8", [16, 16, 8], &[Element::Tf32]),
    ("m8n8k4", [8, 8, 4], &[Element::F64]),
];

/// A matrix in memory, and the registers that hold it.
struct Fragment {
    rows: usize,
    columns: usize,
    /// Bytes of an element.
    bytes: u8,
    /// How many elements a register holds.
    in_register: usize,
    /// More than are needed hold the same again.
    registers: usize,
}

impl Fragment {
    fn in_lane(&self) -> usize {
        self.rows * self.columns / 32
    }

    /// Registers without those that hold the same again.
    fn needed(&self) -> usize {
        self.in_lane() / self.in_register
    }

    fn of_factor(rows: usize, columns: usize, element: Element) -> Self {
        let in_register = element.in_register();
        let mut fragment = Self { rows, columns, bytes: element.bytes() as u8, in_register, registers: 0 };
        fragment.registers = if element == Element::F16 { 8 } else { fragment.needed() };
        fragment
    }

    fn of_sum(rows: usize, columns: usize, ty: Type) -> Self {
        let (bytes, in_register) = (ty.bytes() as u8, if ty == Type::F16 { 2 } else { 1 });
        let mut fragment = Self { rows, columns, bytes, in_register, registers: 0 };
        fragment.registers = fragment.needed();
        fragment
    }
}

impl<'a> Builder<'_, 'a> {
    pub(super) fn fragments(&mut self, form: &mut Form<'a>, operands: &[Operand<'a>]) -> Result<(), Error> {
        let shape = SHAPES.iter().find(|(name, ..)| form.has(name));
        let &(_, sizes, elements) = shape.ok_or_else(|| form.unknown())?;
        match (form.need(&["load", "store", "mma"])?, operands) {
            ("load", [held, address, stride @ ..]) => {
                let which = form.need(&["a", "b", "c"])?;
                self.fragment(form, (which, sizes, elements), held, address, stride)
            }
            ("store", [address, held, stride @ ..]) => {
                let which = form.need(&["d"])?;
                self.fragment(form, (which, sizes, elements), held, address, stride)
            }
            ("mma", [d, a, b, c]) => self.product_of_fragments(form, (sizes, elements), d, [a, b, c]),
            _ => Err(form.unknown()),
        }
    }

    /// `wmma.load.a.sync.aligned.row.m16n16k16.global.f16 held, [address], stride`, and the others.
    fn fragment(
        &mut self,
        form: &mut Form<'a>,
        (which, [m, n, k], elements): (&str, [usize; 3], &[Element]),
        held: &Operand<'a>,
        address: &Operand<'a>,
        stride: &[Operand<'a>],
    ) -> Result<(), Error> {
        let [name] = form.types_of_matrices().ok_or_else(|| form.unknown())?;
        let in_rows = form.need(&["row", "col"])? == "row";
        let space = form.space();
        if !matches!(space, Space::Generic | Space::Global | Space::Shared) {
            return Err(form.unknown());
        }
        let element = Element::parse(name).filter(|element| elements.contains(element));
        let fragment = match (which, element, Type::parse(name)) {
            ("a", Some(element), _) => Fragment::of_factor(m, k, element),
            ("b", Some(element), _) => Fragment::of_factor(k, n, element),
            ("c" | "d", _, Some(ty))
                if sum(elements[0], ty).is_some() || sum(elements[elements.len() - 1], ty).is_some() =>
            {
                Fragment::of_sum(m, n, ty)
            }
            _ => return Err(form.unknown()),
        };
        let held = Self::elements(form, held, fragment.registers as u8)?;
        let p = self.address(form, address)?;
        let stride = match stride {
            [] => self.constant(if in_rows { fragment.columns } else { fragment.rows } as u64)?,
            [stride] => self.source(stride, Type::U32)?,
            _ => return Err(form.unknown()),
        };
        self.all_lanes(MatrixForm { kind: Matrix::Meet, d: vec![], operands: [vec![], vec![], vec![]] })?;
        let (first, step) = self.first_of_lane(&fragment, p, stride, in_rows)?;
        if which == "d" {
            let sources = held.iter().map(|source| self.source(source, Type::B64)).collect::<Result<Vec<_>, _>>()?;
            self.store_fragment(form, &fragment, space, &sources, (first, step), in_rows)
        } else {
            let targets = self.targets(held)?;
            self.load_fragment(form, &fragment, space, &targets, (first, step), in_rows)
        }
    }

    /// The address of a lane's first element, and the bytes from one row or column in memory to the next.
    fn first_of_lane(&mut self, fragment: &Fragment, p: Reg, stride: Reg, in_rows: bool) -> Result<(Reg, Reg), Error> {
        // All of a lane's elements are in one row.
        let in_lane = self.constant(fragment.in_lane() as u64)?;
        let in_row = self.constant((fragment.columns / fragment.in_lane()) as u64)?;
        let bytes = self.constant(fragment.bytes.into())?;
        let [lane, row, column, step, a] = [(); 5].map(|()| self.temporary());
        let (lane, row, column, step, a) = (lane?, row?, column?, step?, a?);
        self.emit(Op::Special { d: lane, what: Special::Lane });
        self.emit(Op::Binary { f: |lane, in_row| lane / in_row, d: row, a: lane, b: in_row });
        self.emit(Op::Binary { f: |lane, in_row| lane % in_row, d: column, a: lane, b: in_row });
        self.emit(Op::Binary { f: u64::wrapping_mul, d: column, a: column, b: in_lane });
        self.emit(Op::Binary { f: u64::wrapping_mul, d: step, a: stride, b: bytes });
        let (line, within) = if in_rows { (row, column) } else { (column, row) };
        self.emit(Op::Binary { f: u64::wrapping_mul, d: a, a: line, b: step });
        self.emit(Op::Binary { f: u64::wrapping_mul, d: within, a: within, b: bytes });
        self.emit(Op::Add64 { d: a, a, b: within });
        self.emit(Op::Add64 { d: a, a, b: p });
        Ok((a, step))
    }

    /// The accesses of a lane, and how far behind its address each is: of columns, the address goes on with each.
    fn accesses(&mut self, fragment: &Fragment, space: Space, in_rows: bool) -> Vec<(Memory, i32)> {
        // Elements that lie one behind the other are accessed a register at a time.
        let bytes = if in_rows { fragment.bytes * fragment.in_register as u8 } else { fragment.bytes };
        let count = fragment.in_lane() * usize::from(fragment.bytes) / usize::from(bytes);
        if space != Space::Global {
            self.found.narrowest = self.found.narrowest.min(bytes);
        }
        let whole = (bytes * count as u8).min(16);
        let one = |access: usize| {
            let align = if in_rows && access == 0 { whole } else { bytes };
            let memory = Memory { align, unit: Unit::Fragment, ..Memory::plain(space, bytes) };
            (memory, if in_rows { access as i32 * i32::from(bytes) } else { 0 })
        };
        (0..count).map(one).collect()
    }

    fn load_fragment(
        &mut self,
        form: &Form<'a>,
        fragment: &Fragment,
        space: Space,
        targets: &[Reg],
        (a, step): (Reg, Reg),
        in_rows: bool,
    ) -> Result<(), Error> {
        let bits = u32::from(fragment.bytes) * 8;
        let one = self.temporary()?;
        for (access, (memory, offset)) in self.accesses(fragment, space, in_rows).into_iter().enumerate() {
            let (register, place) = match in_rows {
                true => (access, 0),
                false => (access / fragment.in_register, access % fragment.in_register),
            };
            let d = targets[register];
            self.emit(Op::load(if place == 0 { d } else { one }, a, offset, memory));
            if place > 0 {
                let f = packed::insert(bits, place).ok_or_else(|| form.unknown())?;
                self.emit(Op::Binary { f, d, a: d, b: one });
            }
            if !in_rows {
                self.emit(Op::Add64 { d: a, a, b: step });
            }
        }
        for (again, &d) in targets.iter().enumerate().skip(fragment.needed()) {
            self.emit(Op::Move { d, a: targets[again % fragment.needed()] });
        }
        Ok(())
    }

    fn store_fragment(
        &mut self,
        form: &Form<'a>,
        fragment: &Fragment,
        space: Space,
        sources: &[Reg],
        (a, step): (Reg, Reg),
        in_rows: bool,
    ) -> Result<(), Error> {
        let bits = u32::from(fragment.bytes) * 8;
        let one = self.temporary()?;
        for (access, (memory, offset)) in self.accesses(fragment, space, in_rows).into_iter().enumerate() {
            let s = if in_rows || fragment.in_register == 1 {
                sources[access]
            } else {
                let place = access % fragment.in_register;
                let f = packed::extract(bits, place).ok_or_else(|| form.unknown())?;
                self.emit(Op::Unary { f, d: one, a: sources[access / fragment.in_register] });
                one
            };
            self.emit(Op::store(s, a, offset, memory));
            if !in_rows {
                self.emit(Op::Add64 { d: a, a, b: step });
            }
        }
        Ok(())
    }

    /// `wmma.mma.sync.aligned.row.col.m16n16k16.f32.f16 d, a, b, c`; other kinds name `a` and `b` as well.
    fn product_of_fragments(
        &mut self,
        form: &mut Form<'a>,
        ([rows, columns, depth], elements): ([usize; 3], &[Element]),
        d: &Operand<'a>,
        operands: [&Operand<'a>; 3],
    ) -> Result<(), Error> {
        form.need(&["row", "col"])?;
        form.need(&["row", "col"])?;
        let saturates = form.has("satfinite");
        let rounding = form.one_of(&["rn", "rz", "rm", "rp"]).and_then(Rounding::parse);
        let is_tf32 = form.has("tf32") && form.has("tf32");
        let (to, factors, from) = match form.types[..] {
            [to, from] if is_tf32 => (to, [Element::Tf32; 2], from),
            [to, from] => (to, [Element::F16; 2], from),
            [to, Type::Bf16, Type::Bf16, from] => (to, [Element::Bf16; 2], from),
            [to, Type::F64, Type::F64, from] => (to, [Element::F64; 2], from),
            [to, a @ (Type::S8 | Type::U8), b @ (Type::S8 | Type::U8), from] => {
                (to, [a, b].map(|ty| if ty == Type::S8 { Element::S8 } else { Element::U8 }), from)
            }
            _ => return Err(form.unknown()),
        };
        let [a, b] = factors;
        let (Some(of_d), Some(of_c), true) = (sum(a, to), sum(a, from), elements.contains(&a)) else {
            return Err(form.unknown());
        };
        let of_d = match of_d {
            Sum::S32 { .. } => Sum::S32 { saturates },
            Sum::F64(_) => {
                let fma = float::fma(Type::F64, rounding.unwrap_or(Rounding::Nearest));
                Sum::F64(fma.ok_or_else(|| form.unknown())?)
            }
            other => other,
        };
        let is_fit =
            (!saturates || matches!(of_d, Sum::S32 { .. })) && (rounding.is_none() || matches!(of_d, Sum::F64(_)));
        if !is_fit {
            return Err(form.unknown());
        }
        let factor = if a == Element::F64 { Type::F64 } else { Type::B32 };
        let c = Fragment::of_sum(rows, columns, from);
        let counts = [
            (Fragment::of_factor(rows, depth, a).registers, factor),
            (Fragment::of_factor(depth, columns, b).registers, factor),
            (c.registers, if from == Type::F16 { Type::B32 } else { from }),
        ];
        let mut registers = [vec![], vec![], vec![]];
        for ((operand, (count, ty)), registers) in operands.into_iter().zip(counts).zip(&mut registers) {
            for source in Self::elements(form, operand, count as u8)? {
                registers.push(self.source(source, ty)?);
            }
        }
        let d = self.targets(Self::elements(form, d, Fragment::of_sum(rows, columns, to).registers as u8)?)?;
        let product = Fragments { rows, columns, depth, a, b, from: of_c, to: of_d };
        self.all_lanes(MatrixForm { kind: Matrix::Fragments(product), d, operands: registers })
    }
}

/// How products of these are added up to that.
fn sum(a: Element, ty: Type) -> Option<Sum> {
    Some(match (a, ty) {
        (Element::F16, Type::F16) => Sum::F16,
        (Element::F16 | Element::Bf16 | Element::Tf32, Type::F32) => Sum::F32,
        (Element::S8 | Element::U8, Type::S32) => Sum::S32 { saturates: false },
        (Element::F64, Type::F64) => Sum::F64(float::fma(Type::F64, Rounding::Nearest)?),
        _ => return None,
    })
}
