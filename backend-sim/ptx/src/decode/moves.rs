//! Moves, selections and conversions.

use super::builder::Builder;
use super::form::Form;
use super::window;
use crate::alu::convert::Conversion;
use crate::alu::eight::{self, Eight};
use crate::alu::round::Rounding;
use crate::alu::{integer, packed, tf32};
use crate::error::Error;
use crate::op::{Op, Reg, Special};
use crate::syntax::Operand;
use crate::types::{Space, Type};

pub(super) fn select(a: u64, b: u64, p: u64) -> u64 {
    if p & 1 == 1 { a } else { b }
}

/// Whether an address is in the window that begins there.
fn is_in(address: u64, window: u64) -> u64 {
    u64::from(address >> 56 == window >> 56)
}

impl<'a> Builder<'_, 'a> {
    pub(super) fn moves(&mut self, form: &mut Form<'a>, opcode: &str, operands: &[Operand<'a>]) -> Result<bool, Error> {
        match (opcode, operands) {
            ("mov", [d, a]) => self.mov(form, d, a)?,
            ("selp", [d, a, b, p]) => {
                let ty = form.ty()?;
                let (a, b, c) = (self.source(a, ty)?, self.source(b, ty)?, self.source(p, Type::Pred)?);
                let (d, _) = self.target(d)?;
                self.emit(Op::Ternary { f: select, d, a, b, c });
            }
            ("slct", [d, a, b, c]) => {
                let [ty, condition] = form.types[..] else { return Err(form.unknown()) };
                let flush = form.has("ftz");
                let (a, b, c) = (self.source(a, ty)?, self.source(b, ty)?, self.source(c, condition)?);
                let (d, _) = self.target(d)?;
                // A float that is no number selects `b`; `-0` is not less than zero.
                let f = match condition {
                    Type::S32 => |a, b, c| if (c as u32).cast_signed() >= 0 { a } else { b },
                    Type::F32 if flush => {
                        |a, b, c: u64| if f32::from_bits(c as u32) > -f32::MIN_POSITIVE { a } else { b }
                    }
                    Type::F32 => |a, b, c: u64| if f32::from_bits(c as u32) >= 0.0 { a } else { b },
                    _ => return Err(form.unknown()),
                };
                self.emit(Op::Ternary { f, d, a, b, c });
            }
            ("cvt", [d, a @ ..]) if let Some(word) = form.one_of(&["e4m3x2", "e5m2x2"]) => {
                self.cvt_eight(form, word, d, a)?;
            }
            ("cvt", [d, a]) if form.has("tf32") => self.cvt_tf32(form, d, a)?,
            ("cvt", [d, a]) => self.cvt(form, d, a)?,
            ("cvt", [d, high, low]) => self.cvt_pair(form, d, high, low)?,
            ("cvta", [d, a]) => self.cvta(form, d, a)?,
            ("isspacep", [d, a]) => self.isspacep(form, d, a)?,
            ("createpolicy", operands) => self.policy(form, operands)?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn mov(&mut self, form: &mut Form<'a>, d: &Operand<'a>, a: &Operand<'a>) -> Result<(), Error> {
        let ty = form.ty()?;
        if ty == Type::B128 {
            return self.mov_wide(form, d, a);
        }
        match (d, a) {
            (Operand::Vector(targets), Operand::Vector(sources)) if targets.len() == sources.len() => {
                let sources = sources.iter().map(|source| self.copy(source, ty)).collect::<Result<Vec<_>, _>>()?;
                for (target, a) in targets.iter().zip(sources) {
                    let (d, _) = self.target(target)?;
                    self.emit(Op::Move { d, a });
                }
            }
            (Operand::Vector(targets), source) => {
                let bits = ty.bits() / u32::try_from(targets.len().max(1)).unwrap_or(u32::MAX);
                let a = self.copy(source, ty)?;
                for (place, target) in targets.iter().enumerate() {
                    let f = packed::extract(bits, place).ok_or_else(|| form.unknown())?;
                    let (d, _) = self.target(target)?;
                    self.emit(Op::Unary { f, d, a });
                }
            }
            (target, Operand::Vector(sources)) => {
                let bits = ty.bits() / u32::try_from(sources.len().max(1)).unwrap_or(u32::MAX);
                let first = sources.first().ok_or_else(|| form.unknown())?;
                let mut all = self.source(first, ty)?;
                for (place, source) in sources.iter().enumerate().skip(1) {
                    let f = packed::insert(bits, place).ok_or_else(|| form.unknown())?;
                    let (b, d) = (self.source(source, ty)?, self.temporary()?);
                    self.emit(Op::Binary { f, d, a: all, b });
                    all = d;
                }
                let (d, _) = self.target(target)?;
                self.emit(Op::Move { d, a: all });
            }
            (target, source) => {
                let a = self.source(source, ty)?;
                let (d, register) = self.target(target)?;
                // A special register of 64 bits is read in its lower half by `mov.u32`.
                match integer::truncate(ty.bits())
                    .filter(|_| ty.bits() < 64 && ty != Type::Pred && register != Type::Pred)
                {
                    Some(f) if matches!(source, Operand::Name { name, .. } if name.starts_with("%clock") || name.starts_with("%globaltimer") || name.starts_with("%envreg")) =>
                    {
                        self.emit(Op::Unary { f, d, a });
                    }
                    _ => {
                        self.emit(Op::Move { d, a });
                    }
                }
            }
        }
        Ok(())
    }

    /// The operand in a register of its own, so that a target may be the same register.
    fn copy(&mut self, source: &Operand<'a>, ty: Type) -> Result<Reg, Error> {
        let (a, d) = (self.source(source, ty)?, self.temporary()?);
        self.emit(Op::Move { d, a });
        Ok(d)
    }

    pub(super) fn convert(&mut self, d: Reg, a: Reg, conversion: Conversion) -> Result<(), Error> {
        let how = u16::try_from(self.code.conversions.len())
            .map_err(|_| self.error("more than 65,535 conversions in a function"))?;
        self.code.conversions.push(conversion);
        self.emit(Op::Convert { d, a, how });
        Ok(())
    }

    fn conversion(form: &mut Form<'a>, to: Type, from: Type, register: u32) -> Conversion {
        let integral_word = form.one_of(&["rni", "rzi", "rmi", "rpi"]).and_then(Rounding::parse);
        let rounding = integral_word.or_else(|| form.rounding());
        Conversion {
            to,
            from,
            rounding: rounding.unwrap_or(Rounding::Nearest),
            integral: integral_word.is_some() && to.is_float(),
            saturate: form.has("sat"),
            finite: form.has("satfinite"),
            relu: form.has("relu"),
            flush: form.has("ftz"),
            register,
        }
    }

    fn cvt(&mut self, form: &mut Form<'a>, d: &Operand<'a>, a: &Operand<'a>) -> Result<(), Error> {
        let [to, from] = form.types[..] else { return Err(form.unknown()) };
        let known =
            |ty: Type| !matches!(ty, Type::Pred | Type::B128 | Type::U16x2 | Type::S16x2 | Type::F16x2 | Type::Bf16x2);
        if !known(to) || !known(from) {
            return Err(form.unknown());
        }
        let a = self.source(a, from)?;
        let (d, register) = self.target(d)?;
        let width = register.bits().min(64);
        // Between floats and integers, a rounding says how.
        let conversion = Self::conversion(form, to, from, width);
        if !to.is_float() && !from.is_float() && !conversion.saturate {
            return self.resize(d, a, to, from, width);
        }
        self.convert(d, a, conversion)
    }

    /// Between integers: the low bits, extended by the sign that is wanted.
    fn resize(&mut self, d: Reg, a: Reg, to: Type, from: Type, width: u32) -> Result<(), Error> {
        let narrow = to.bits().min(from.bits());
        let signed = if to.bits() <= from.bits() { to.is_signed() } else { from.is_signed() };
        let extended = if signed { to.bits().max(if to.is_signed() { width } else { 0 }) } else { narrow };
        let f = if signed && narrow < extended {
            integer::sign_extend(narrow, extended)
        } else {
            integer::truncate(narrow)
        };
        let f = f.ok_or_else(|| self.error("a conversion between these widths is not known here"))?;
        self.emit(Op::Unary { f, d, a });
        Ok(())
    }

    /// `cvt.rn.bf16x2.f32 d, high, low`.
    fn cvt_pair(
        &mut self,
        form: &mut Form<'a>,
        d: &Operand<'a>,
        high: &Operand<'a>,
        low: &Operand<'a>,
    ) -> Result<(), Error> {
        let to = match form.types[..] {
            [Type::F16x2, Type::F32] => Type::F16,
            [Type::Bf16x2, Type::F32] => Type::Bf16,
            _ => return Err(form.unknown()),
        };
        let (high, low) = (self.source(high, Type::F32)?, self.source(low, Type::F32)?);
        let (upper, lower) = (self.temporary()?, self.temporary()?);
        let conversion = Self::conversion(form, to, Type::F32, 16);
        self.convert(upper, high, conversion)?;
        self.convert(lower, low, conversion)?;
        let f = packed::insert(16, 1).ok_or_else(|| form.unknown())?;
        let (d, _) = self.target(d)?;
        self.emit(Op::Binary { f, d, a: lower, b: upper });
        Ok(())
    }

    /// `cvt.rn.satfinite.e4m3x2.f32 d, high, low`, and the other conversions to and from pairs of 8 bits.
    fn cvt_eight(&mut self, form: &mut Form<'a>, word: &str, d: &Operand<'a>, a: &[Operand<'a>]) -> Result<(), Error> {
        let eight = Eight::parse(word).ok_or_else(|| form.unknown())?;
        let (ty, relu) = (form.ty()?, form.has("relu"));
        let name = if ty == Type::F32 { "f32" } else { "f16x2" };
        let narrows = form.is_before(word, name);
        // it always rounds so, and to what is finite
        if !form.has("rn") || narrows && !form.has("satfinite") {
            return Err(form.unknown());
        }
        let op = match (ty, narrows, a) {
            (Type::F32, true, [high, low]) => {
                let (a, b) = (self.source(high, ty)?, self.source(low, ty)?);
                Op::Binary { f: eight::of_singles(eight, relu), d: self.target(d)?.0, a, b }
            }
            (Type::F16x2, true, [a]) => {
                let a = self.source(a, ty)?;
                Op::Unary { f: eight::of_halves(eight, relu), d: self.target(d)?.0, a }
            }
            (Type::F16x2, false, [a]) => {
                let a = self.source(a, Type::B16)?;
                Op::Unary { f: eight::to_halves(eight, relu), d: self.target(d)?.0, a }
            }
            _ => return Err(form.unknown()),
        };
        self.emit(op);
        Ok(())
    }

    /// `cvt.rna.tf32.f32 d, a`.
    fn cvt_tf32(&mut self, form: &mut Form<'a>, d: &Operand<'a>, a: &Operand<'a>) -> Result<(), Error> {
        let (ty, rounding) = (form.ty()?, form.rounding());
        let (relu, finite) = (form.has("relu"), form.has("satfinite"));
        let f = rounding.and_then(|rounding| tf32::of_single(rounding, relu, finite));
        let (Some(f), Type::F32, true) = (f, ty, form.is_before("tf32", "f32")) else { return Err(form.unknown()) };
        let (a, d) = (self.source(a, ty)?, self.target(d)?.0);
        self.emit(Op::Unary { f, d, a });
        Ok(())
    }

    /// Between addresses of a space and generic ones: the window is added or taken off.
    fn cvta(&mut self, form: &mut Form<'a>, d: &Operand<'a>, a: &Operand<'a>) -> Result<(), Error> {
        let to = form.has("to");
        let base = match form.space() {
            Space::Generic => return Err(form.unknown()),
            Space::Global => 0,
            Space::Shared => window::SHARED,
            Space::Local => window::LOCAL,
            Space::Const => window::CONST,
            Space::Param => window::PARAM,
        };
        let a = self.source(a, form.ty()?)?;
        let (d, _) = self.target(d)?;
        if base == 0 {
            self.emit(Op::Move { d, a });
        } else {
            let b = self.constant(if to { base.wrapping_neg() } else { base })?;
            self.emit(Op::Add64 { d, a, b });
        }
        Ok(())
    }

    /// `createpolicy`: a hint for caches, of which any value will do.
    fn policy(&mut self, form: &mut Form<'a>, operands: &[Operand<'a>]) -> Result<(), Error> {
        let d = match (form.need(&["fractional", "range", "cvt"])?, operands) {
            ("fractional", [d]) => d,
            ("fractional", [d, fraction]) => {
                self.source(fraction, Type::F32)?;
                d
            }
            ("range", [d, address, first, all]) => {
                if !matches!(form.space(), Space::Generic | Space::Global) {
                    return Err(form.unknown());
                }
                self.address(form, address)?;
                self.source(first, Type::U32)?;
                self.source(all, Type::U32)?;
                d
            }
            ("cvt", [d, property]) if form.has("L2") => {
                self.source(property, Type::B64)?;
                d
            }
            _ => return Err(form.unknown()),
        };
        form.priorities();
        if form.ty()? != Type::B64 {
            return Err(form.unknown());
        }
        let (d, a) = (self.target(d)?.0, self.constant(0)?);
        self.emit(Op::Move { d, a });
        Ok(())
    }

    fn isspacep(&mut self, form: &mut Form<'a>, d: &Operand<'a>, a: &Operand<'a>) -> Result<(), Error> {
        let of_cluster = form.says("shared::cluster");
        let space = match form.space() {
            Space::Generic => return Err(form.unknown()),
            Space::Global => 0,
            Space::Shared => window::SHARED,
            Space::Local => window::LOCAL,
            Space::Const => window::CONST,
            Space::Param => window::PARAM,
        };
        let (a, b) = (self.source(a, Type::U64)?, self.constant(space)?);
        let (d, _) = self.target(d)?;
        if space != window::SHARED || of_cluster {
            self.emit(Op::Binary { f: is_in, d, a, b });
            return Ok(());
        }
        // shared memory of the thread's own block
        let [there, own] = [self.temporary()?, self.temporary()?];
        self.emit(Op::RankOf { d: there, a });
        self.emit(Op::Special { d: own, what: Special::Rank });
        self.emit(Op::Binary { f: |there, own| u64::from(there == own), d: own, a: there, b: own });
        self.emit(Op::Binary { f: is_in, d: there, a, b });
        self.emit(Op::Binary { f: |there, own| there & own, d, a: there, b: own });
        Ok(())
    }
}
