//! Arithmetic, logic and comparison.

use super::builder::Builder;
use super::form::Form;
use crate::alu::round::Rounding;
use crate::alu::{bits, convert::Conversion, float, integer, packed, small};
use crate::error::Error;
use crate::op::{Op, Reg};
use crate::syntax::Operand;
use crate::types::Type;

impl<'a> Builder<'_, 'a> {
    /// Whether the opcode is one of these.
    pub(super) fn arithmetic(
        &mut self,
        form: &mut Form<'a>,
        opcode: &str,
        operands: &[Operand<'a>],
    ) -> Result<bool, Error> {
        match opcode {
            "add" | "sub" | "addc" | "subc" if self.carries(form, opcode, operands)? => {}
            "add" | "sub" | "mul" | "div" | "min" | "max" | "copysign" if form.ty().is_ok_and(Type::is_float) => {
                self.float_binary(form, opcode, operands)?;
            }
            "add" | "sub" | "mul" | "div" | "rem" | "min" | "max" | "and" | "or" | "xor" | "shl" | "shr" => {
                self.integer_binary(form, opcode, operands)?;
            }
            "mad" | "fma" if form.ty().is_ok_and(Type::is_float) => self.fma(form, operands)?,
            "mad" | "madc" | "sad" => self.mad(form, opcode, operands)?,
            "neg" | "abs" | "not" | "cnot" | "popc" | "clz" | "brev" | "bfind" => self.unary(form, opcode, operands)?,
            "rcp" | "sqrt" | "rsqrt" | "sin" | "cos" | "lg2" | "ex2" | "tanh" => {
                self.function(form, opcode, operands)?
            }
            "bfe" | "prmt" | "shf" | "fns" | "dp4a" | "dp2a" => self.bits_ternary(form, opcode, operands)?,
            "bmsk" | "szext" => {
                let [d, a, b] = Self::expect(form, operands)?;
                let name = format!("{opcode}.{}", form.need(&["clamp", "wrap"])?);
                let f = bits::binary(&name, form.ty()?).ok_or_else(|| form.unknown())?;
                let (a, b) = (self.source(a, Type::U32)?, self.source(b, Type::U32)?);
                let (d, _) = self.target(d)?;
                self.emit(Op::Binary { f, d, a, b });
            }
            "lop3" => self.lop3(form, operands)?,
            "bfi" => self.bits_quaternary(form, opcode, operands)?,
            "vadd2" | "vadd4" | "vsub2" | "vsub4" | "vavrg2" | "vavrg4" | "vabsdiff2" | "vabsdiff4" | "vmin2"
            | "vmin4" | "vmax2" | "vmax4" | "vset2" | "vset4" => self.video(form, opcode, operands)?,
            "setp" => self.setp(form, operands)?,
            "set" => self.set(form, operands)?,
            "testp" => {
                let what = form.need(&["finite", "infinite", "number", "notanumber", "normal", "subnormal"])?;
                let f = float::test(what, form.ty()?).ok_or_else(|| form.unknown())?;
                self.emit_unary(form, f, operands)?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn expect<'o, const N: usize>(form: &Form<'_>, operands: &'o [Operand<'a>]) -> Result<&'o [Operand<'a>; N], Error> {
        let wrong = || form.error(format!("{} has {} operands here, not {N}", form.name(), operands.len()));
        operands.try_into().map_err(|_| wrong())
    }

    fn emit_unary(&mut self, form: &Form<'a>, f: crate::op::Unary, operands: &[Operand<'a>]) -> Result<(), Error> {
        let [d, a] = Self::expect(form, operands)?;
        let a = self.source(a, form.ty()?)?;
        let (d, _) = self.target(d)?;
        self.emit(Op::Unary { f, d, a });
        Ok(())
    }

    /// The type of the result: twice as wide for `mul.wide`.
    fn integer_binary(&mut self, form: &mut Form<'a>, opcode: &str, operands: &[Operand<'a>]) -> Result<(), Error> {
        let [d, a, b] = Self::expect(form, operands)?;
        let ty = form.ty()?;
        let part = if opcode == "mul" { form.one_of(&["lo", "hi", "wide"]) } else { None };
        let saturate = if form.has("sat") { Some("sat") } else { None };
        let name = [Some(opcode), part, saturate].into_iter().flatten().collect::<Vec<_>>().join(".");
        let f = packed::binary(&name, ty).or_else(|| integer::binary(&name, ty)).ok_or_else(|| form.unknown())?;
        // The amount of a shift is a word of 32 bits, whatever is shifted.
        let amount = if matches!(opcode, "shl" | "shr") { Type::U32 } else { ty };
        let (a, b) = (self.source(a, ty)?, self.source(b, amount)?);
        let (d, register) = self.target(d)?;
        self.emit(match (&name[..], ty) {
            ("add", Type::U32 | Type::S32) => Op::Add32 { d, a, b },
            ("add", Type::U64 | Type::S64) => Op::Add64 { d, a, b },
            ("mul.wide", Type::S32) => Op::MulWideS32 { d, a, b },
            _ => Op::Binary { f, d, a, b },
        });
        if part != Some("wide") {
            self.fit(d, ty, register);
        }
        Ok(())
    }

    /// `add.cc`, `addc`, `addc.cc` and those of subtraction. Whether it is one of them.
    fn carries(&mut self, form: &mut Form<'a>, opcode: &str, operands: &[Operand<'a>]) -> Result<bool, Error> {
        let sets = form.has("cc");
        let uses = matches!(opcode, "addc" | "subc");
        if !sets && !uses {
            return Ok(false);
        }
        let [d, a, b] = Self::expect(form, operands)?;
        let ty = form.ty()?;
        let f =
            integer::carry(if opcode.starts_with("add") { "add" } else { "sub" }, ty).ok_or_else(|| form.unknown())?;
        let (a, b) = (self.source(a, ty)?, self.source(b, ty)?);
        let (d, _) = self.target(d)?;
        self.emit(Op::Carry { f, d, a, b, c: a, uses, sets });
        Ok(true)
    }

    fn mad(&mut self, form: &mut Form<'a>, opcode: &str, operands: &[Operand<'a>]) -> Result<(), Error> {
        let [d, a, b, c] = Self::expect(form, operands)?;
        let ty = form.ty()?;
        let part = form.one_of(&["lo", "hi", "wide"]);
        let (sets, uses) = (form.has("cc"), opcode == "madc");
        let saturate = if form.has("sat") { Some("sat") } else { None };
        let opcode = if uses { "mad" } else { opcode };
        let name = [Some(opcode), part, saturate].into_iter().flatten().collect::<Vec<_>>().join(".");
        let wide = if part == Some("wide") { Type::U64 } else { ty };
        let (a, b, c) = (self.source(a, ty)?, self.source(b, ty)?, self.source(c, wide)?);
        let (d, _) = self.target(d)?;
        if sets || uses {
            let f = integer::carry(&name, ty).ok_or_else(|| form.unknown())?;
            self.emit(Op::Carry { f, d, a, b, c, uses, sets });
        } else {
            let f = integer::ternary(&name, ty).ok_or_else(|| form.unknown())?;
            self.emit(Op::Ternary { f, d, a, b, c });
        }
        Ok(())
    }

    /// The operand, with subnormal numbers flushed to zero if the instruction does that.
    fn float_source(&mut self, operand: &Operand<'a>, ty: Type, flush: bool) -> Result<Reg, Error> {
        let a = self.source(operand, ty)?;
        let Some(f) = float::unary("flush", ty).filter(|_| flush) else { return Ok(a) };
        let d = self.temporary()?;
        self.emit(Op::Unary { f, d, a });
        Ok(d)
    }

    /// What `.ftz` and `.sat` do to the result.
    fn float_result(&mut self, form: &Form<'a>, d: Reg, ty: Type, flush: bool, saturate: bool) -> Result<(), Error> {
        for (name, wanted) in [("flush", flush), ("saturate", saturate)] {
            if wanted {
                let f = float::unary(name, ty).ok_or_else(|| form.unknown())?;
                self.emit(Op::Unary { f, d, a: d });
            }
        }
        Ok(())
    }

    fn float_binary(&mut self, form: &mut Form<'a>, opcode: &str, operands: &[Operand<'a>]) -> Result<(), Error> {
        let [d, a, b] = Self::expect(form, operands)?;
        let ty = form.ty()?;
        let (flush, saturate) = (form.has("ftz"), form.has("sat"));
        // Only arithmetic rounds and saturates. Minima, maxima and signs are exact.
        let is_rounded = matches!(opcode, "add" | "sub" | "mul" | "div");
        let rounding = if is_rounded { form.rounding() } else { None };
        let is_single = matches!(ty, Type::F32 | Type::F16 | Type::F16x2);
        if (flush || saturate) && !is_single || saturate && !(is_rounded && opcode != "div") {
            return Err(form.unknown());
        }
        if opcode == "div" {
            // Division up to an error: rounded to the nearest, it is within the error.
            let is_approximate = form.one_of(&["approx", "full"]).is_some();
            if is_approximate == rounding.is_some() || is_approximate && ty != Type::F32 {
                return Err(form.unknown());
            }
        }
        let rounding = rounding.unwrap_or(Rounding::Nearest);
        let is_of_magnitudes = matches!(opcode, "min" | "max") && form.has("xorsign");
        if is_of_magnitudes && !form.has("abs") {
            return Err(form.unknown());
        }
        let mut name = if form.has("NaN") { format!("{opcode}.NaN") } else { opcode.to_owned() };
        if is_of_magnitudes {
            name.push_str(".xorsign");
        }
        let f = float::binary_rounded(&name, ty, rounding).ok_or_else(|| form.unknown())?;
        let (a, b) = (self.float_source(a, ty, flush)?, self.float_source(b, ty, flush)?);
        let (d, _) = self.target(d)?;
        self.emit(Op::Binary { f, d, a, b });
        self.float_result(form, d, ty, flush, saturate)
    }

    fn fma(&mut self, form: &mut Form<'a>, operands: &[Operand<'a>]) -> Result<(), Error> {
        let [d, a, b, c] = Self::expect(form, operands)?;
        let ty = form.ty()?;
        let (flush, saturate, relu) = (form.has("ftz"), form.has("sat"), form.has("relu"));
        let is_single = matches!(ty, Type::F32 | Type::F16 | Type::F16x2);
        let Some(rounding) = form.rounding().filter(|_| is_single || !flush && !saturate) else {
            return Err(form.unknown());
        };
        let f = if relu { small::fma_with_relu(ty) } else { float::fma(ty, rounding) };
        let f = f.ok_or_else(|| form.unknown())?;
        let mut sources = [0; 3];
        for (source, operand) in sources.iter_mut().zip([a, b, c]) {
            *source = self.float_source(operand, ty, flush)?;
        }
        let [a, b, c] = sources;
        let (d, _) = self.target(d)?;
        let plain = ty == Type::F32 && rounding == Rounding::Nearest;
        self.emit(if plain { Op::FmaF32 { d, a, b, c } } else { Op::Ternary { f, d, a, b, c } });
        self.float_result(form, d, ty, flush, saturate)
    }

    fn unary(&mut self, form: &mut Form<'a>, opcode: &str, operands: &[Operand<'a>]) -> Result<(), Error> {
        let ty = form.ty()?;
        if ty.is_float() {
            let flush = form.has("ftz");
            let [d, a] = Self::expect(form, operands)?;
            let f = float::unary(opcode, ty).ok_or_else(|| form.unknown())?;
            let a = self.float_source(a, ty, flush)?;
            let (d, _) = self.target(d)?;
            self.emit(Op::Unary { f, d, a });
            return Ok(());
        }
        if opcode == "cnot" {
            let [d, a] = Self::expect(form, operands)?;
            let f = integer::binary("eq", ty).ok_or_else(|| form.unknown())?;
            let (a, b) = (self.source(a, ty)?, self.constant(0)?);
            let (d, _) = self.target(d)?;
            self.emit(Op::Binary { f, d, a, b });
            return Ok(());
        }
        let name = if form.has("shiftamt") { format!("{opcode}.shiftamt") } else { opcode.to_owned() };
        let f = bits::unary(&name, ty).or_else(|| integer::unary(&name, ty)).ok_or_else(|| form.unknown())?;
        self.emit_unary(form, f, operands)
    }

    /// Reciprocal, roots, and what is defined up to an error only.
    fn function(&mut self, form: &mut Form<'a>, opcode: &str, operands: &[Operand<'a>]) -> Result<(), Error> {
        let [d, a] = Self::expect(form, operands)?;
        let ty = form.ty()?;
        let flush = form.has("ftz");
        let approximate = form.has("approx");
        let rounding = form.rounding();
        let flushes = flush && ty != Type::F64 && !matches!(ty, Type::Bf16 | Type::Bf16x2);
        let a = self.float_source(a, ty, flushes)?;
        let (d, _) = self.target(d)?;
        match (opcode, rounding, approximate) {
            ("rcp", Some(rounding), false) => {
                let one = crate::decode::layout::float_bits(crate::lexer::Float::Double(1.0), ty)
                    .ok_or_else(|| form.unknown())?;
                let f = float::binary_rounded("div", ty, rounding).ok_or_else(|| form.unknown())?;
                let one = self.constant(one)?;
                self.emit(Op::Binary { f, d, a: one, b: a });
            }
            ("sqrt", Some(rounding), false) => {
                let f = float::root(ty, rounding).ok_or_else(|| form.unknown())?;
                self.emit(Op::Unary { f, d, a });
            }
            (_, None, true) => {
                let f = float::unary(&format!("{opcode}.approx"), ty).ok_or_else(|| form.unknown())?;
                self.emit(Op::Unary { f, d, a });
            }
            _ => return Err(form.unknown()),
        }
        self.float_result(form, d, ty, flushes, false)
    }

    fn bits_ternary(&mut self, form: &mut Form<'a>, opcode: &str, operands: &[Operand<'a>]) -> Result<(), Error> {
        let [d, a, b, c] = Self::expect(form, operands)?;
        let (f, ty) = if let ("dp4a" | "dp2a", [first, second]) = (opcode, &form.types[..]) {
            let signs = (first.is_signed(), second.is_signed());
            let half = if opcode == "dp2a" { format!("dp2a.{}", form.need(&["lo", "hi"])?) } else { opcode.to_owned() };
            (bits::dot(&half, signs.0, signs.1), Type::B32)
        } else {
            let parts: Vec<&str> = [
                form.one_of(&["l", "r"]),
                form.one_of(&["wrap", "clamp"]),
                form.one_of(&["f4e", "b4e", "rc8", "ecl", "ecr", "rc16"]),
            ]
            .into_iter()
            .flatten()
            .collect();
            let name = [&[opcode], &parts[..]].concat().join(".");
            (bits::ternary(&name, form.ty()?), form.ty()?)
        };
        let f = f.ok_or_else(|| form.unknown())?;
        // Positions and lengths of fields are words of 32 bits.
        let others = if opcode == "bfe" { Type::U32 } else { ty };
        let (a, b, c) = (self.source(a, ty)?, self.source(b, others)?, self.source(c, others)?);
        let (d, _) = self.target(d)?;
        self.emit(Op::Ternary { f, d, a, b, c });
        Ok(())
    }

    fn bits_quaternary(&mut self, form: &mut Form<'a>, opcode: &str, operands: &[Operand<'a>]) -> Result<(), Error> {
        let [d, a, b, c, e] = Self::expect(form, operands)?;
        let ty = form.ty()?;
        let f = bits::quaternary(opcode, ty).ok_or_else(|| form.unknown())?;
        let (a, b) = (self.source(a, ty)?, self.source(b, ty)?);
        let (c, e) = (self.source(c, Type::U32)?, self.source(e, Type::U32)?);
        let (d, _) = self.target(d)?;
        self.emit(Op::Quaternary { f, d, a, b, c, e });
        Ok(())
    }

    /// `lop3.b32 d, a, b, c, table`, or `lop3.or.b32 d|p, a, b, c, table, q`: then `p = (d != 0) or q`.
    fn lop3(&mut self, form: &mut Form<'a>, operands: &[Operand<'a>]) -> Result<(), Error> {
        let (values, combined) = match (form.one_of(&["or", "and"]), operands) {
            (None, values) => (values, None),
            (Some(combine), [values @ .., q]) => (values, Some((combine, q))),
            _ => return Err(form.unknown()),
        };
        if !matches!(values.last(), Some(Operand::Bits(0..256))) {
            return Err(form.error(format!("the table of {} is a number below 256", form.name())));
        }
        let Some((combine, q)) = combined else { return self.bits_quaternary(form, "lop3", values) };
        let (&[Operand::Pair(d, p), ref a, ref b, ref c, ref table], Type::B32) = (values, form.ty()?) else {
            return Err(form.unknown());
        };
        let f = |name: &str, ty| integer::binary(name, ty);
        let (Some(lop3), Some(differs), Some(combine)) =
            (bits::quaternary("lop3", Type::B32), f("ne", Type::B32), f(combine, Type::Pred))
        else {
            return Err(form.unknown());
        };
        let q = self.source(q, Type::Pred)?;
        let [a, b, c, e] = [a, b, c, table].map(|operand| self.source(operand, Type::B32));
        let (a, b, c, e) = (a?, b?, c?, e?);
        let (d, p) = (if d == "_" { self.temporary()? } else { self.target_name(d)? }, self.target_name(p)?);
        let (zero, holds) = (self.constant(0)?, self.temporary()?);
        self.emit(Op::Quaternary { f: lop3, d, a, b, c, e });
        self.emit(Op::Binary { f: differs, d: holds, a: d, b: zero });
        self.emit(Op::Binary { f: combine, d: p, a: holds, b: q });
        Ok(())
    }

    /// Puts into the predicate `d` how `a` and `b` compare.
    fn compare(&mut self, form: &mut Form<'a>, comparison: &str, ty: Type, [d, a, b]: [Reg; 3]) -> Result<(), Error> {
        if matches!(ty, Type::F16 | Type::Bf16) {
            let (a, b) = (self.widen(a, ty)?, self.widen(b, ty)?);
            let f = float::comparison(comparison, Type::F64).ok_or_else(|| form.unknown())?;
            self.emit(Op::Binary { f, d, a, b });
            return Ok(());
        }
        let f = if ty.is_float() { float::comparison(comparison, ty) } else { integer::binary(comparison, ty) };
        let f = f.ok_or_else(|| form.unknown())?;
        let signed = ty == Type::S32 && comparison == "lt";
        self.emit(if signed { Op::LessS32 { d, a, b } } else { Op::Binary { f, d, a, b } });
        Ok(())
    }

    /// A number of 16 bits as a double.
    fn widen(&mut self, a: Reg, from: Type) -> Result<Reg, Error> {
        let d = self.temporary()?;
        let conversion = Conversion {
            to: Type::F64,
            from,
            rounding: Rounding::Nearest,
            integral: false,
            saturate: false,
            finite: false,
            relu: false,
            flush: false,
            register: 64,
        };
        self.convert(d, a, conversion)?;
        Ok(d)
    }

    fn comparison(form: &mut Form<'a>) -> Result<&'static str, Error> {
        form.need(&[
            "eq", "ne", "lt", "le", "gt", "ge", "lo", "ls", "hi", "hs", "equ", "neu", "ltu", "leu", "gtu", "geu",
            "num", "nan",
        ])
    }

    /// `setp.lt.and.s32 p|q, a, b, c`: `p = (a < b) and c`, `q = !(a < b) and c`.
    fn setp(&mut self, form: &mut Form<'a>, operands: &[Operand<'a>]) -> Result<(), Error> {
        let comparison = Self::comparison(form)?;
        let combine = form.one_of(&["and", "or", "xor"]);
        let ty = form.ty()?;
        let flush = form.has("ftz");
        let (target, a, b, c) = match (combine, operands) {
            (None, [target, a, b]) => (target, a, b, None),
            (Some(combine), [target, a, b, c]) => (target, a, b, Some((combine, c))),
            _ => return Err(form.unknown()),
        };
        let (p, q) = match *target {
            Operand::Pair(p, q) => (self.target_name(p)?, Some(self.target_name(q)?)),
            _ => (self.target(target)?.0, None),
        };
        let combined = match c {
            Some((name, c)) => {
                Some((integer::binary(name, Type::Pred).ok_or_else(|| form.unknown())?, self.source(c, Type::Pred)?))
            }
            None => None,
        };
        let (a, b) = (self.float_source(a, ty, flush)?, self.float_source(b, ty, flush)?);
        if combined.is_none() && q.is_none() {
            return self.compare(form, comparison, ty, [p, a, b]);
        }
        let mut results = Vec::new();
        if let (Type::F16x2 | Type::Bf16x2, Some(_)) = (ty, q) {
            let half = if ty == Type::F16x2 { Type::F16 } else { Type::Bf16 };
            for place in 0..2 {
                let (d, a, b) = (self.temporary()?, self.piece(16, place, a)?, self.piece(16, place, b)?);
                self.compare(form, comparison, half, [d, a, b])?;
                results.push(d);
            }
        } else {
            let (holds, not) = (self.temporary()?, self.temporary()?);
            self.compare(form, comparison, ty, [holds, a, b])?;
            if q.is_some() {
                let f = integer::unary("not", Type::Pred).ok_or_else(|| form.unknown())?;
                self.emit(Op::Unary { f, d: not, a: holds });
            }
            results.extend([holds, not]);
        }
        match combined {
            Some((f, b)) if q.is_none() => {
                self.emit(Op::Binary { f, d: p, a: results[0], b });
                return Ok(());
            }
            // the one that is written first may be what both are combined with
            Some((f, b)) => {
                for result in &mut results {
                    let d = self.temporary()?;
                    self.emit(Op::Binary { f, d, a: *result, b });
                    *result = d;
                }
            }
            None => {}
        }
        for (d, a) in [Some(p), q].into_iter().zip(results).filter_map(|(d, a)| Some((d?, a))) {
            self.emit(Op::Move { d, a });
        }
        Ok(())
    }

    pub(super) fn piece(&mut self, bits: u32, place: usize, a: Reg) -> Result<Reg, Error> {
        let d = self.temporary()?;
        let f = packed::extract(bits, place).ok_or_else(|| self.error("a vector of such pieces is not known here"))?;
        self.emit(Op::Unary { f, d, a });
        Ok(d)
    }

    /// `set`: like `setp`, with a number as its result: all ones, or one.
    fn set(&mut self, form: &mut Form<'a>, operands: &[Operand<'a>]) -> Result<(), Error> {
        let [d, a, b] = Self::expect(form, operands)?;
        let comparison = Self::comparison(form)?;
        let flush = form.has("ftz");
        let [to, ty] = form.types[..] else { return Err(form.unknown()) };
        let (a, b) = (self.float_source(a, ty, flush)?, self.float_source(b, ty, flush)?);
        let pair = match ty {
            Type::F16x2 => Some(Type::F16),
            Type::Bf16x2 => Some(Type::Bf16),
            _ => None,
        };
        let one = match to {
            Type::F16 | Type::F16x2 => 0x3c00,
            Type::Bf16 | Type::Bf16x2 => 0x3f80,
            Type::F32 => 0x3f80_0000,
            // Of a pair, each half is a mask.
            _ if pair.is_some() => 0xffff,
            _ => to.mask(),
        };
        let (one, zero) = (self.constant(one)?, self.constant(0)?);
        let mut results = Vec::new();
        for place in 0..if pair.is_some() { 2 } else { 1 } {
            let (a, b) = if pair.is_some() { (self.piece(16, place, a)?, self.piece(16, place, b)?) } else { (a, b) };
            let (p, result) = (self.temporary()?, self.temporary()?);
            self.compare(form, comparison, pair.unwrap_or(ty), [p, a, b])?;
            self.emit(Op::Ternary { f: super::moves::select, d: result, a: one, b: zero, c: p });
            results.push(result);
        }
        let (d, _) = self.target(d)?;
        match results[..] {
            [low, high] => {
                let f = packed::insert(16, 1).ok_or_else(|| form.unknown())?;
                self.emit(Op::Binary { f, d, a: low, b: high });
            }
            _ => {
                self.emit(Op::Move { d, a: results[0] });
            }
        }
        Ok(())
    }
}
