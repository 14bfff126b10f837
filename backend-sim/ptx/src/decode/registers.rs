//! What registers an instruction takes. Most are as wide as its type, and a register of floating-point numbers is none of integers. Another register is a
//! mistake that `ptxas` refuses, too.

use super::builder::Builder;
use super::form::Form;
use crate::error::Error;
use crate::syntax::Operand;
use crate::types::Type;

/// What an instruction asks of a register.
#[derive(Clone, Copy)]
enum Asked {
    Any,
    /// It is as wide as this type.
    Of(Type),
    /// As loads, stores and conversions: it may be wider.
    AtLeast(Type),
}

use Asked::{Any, AtLeast, Of};

const WORD: Asked = Of(Type::U32);
const PREDICATE: Asked = Of(Type::Pred);

fn bits(ty: Type) -> u32 {
    if ty == Type::Pred { 1 } else { ty.bits() }
}

/// Whether a register holds numbers of a kind that an instruction does not take. Registers of bits hold all kinds, and so do those of pairs.
fn are_of_other_kinds(register: Type, asked: Type) -> bool {
    let is_float = |ty| matches!(ty, Type::F16 | Type::Bf16 | Type::F32 | Type::F64);
    register.is_integer() && asked.is_float() || is_float(register) && asked.is_integer()
}

/// The type of a product that is twice as wide.
fn twice(ty: Type) -> Asked {
    Of(match ty {
        Type::U16 => Type::U32,
        Type::S16 => Type::S32,
        Type::U32 => Type::U64,
        Type::S32 => Type::S64,
        _ => return Any,
    })
}

/// What each operand must be; the last one stands for all that follow. Instructions with rules of their own have none here.
fn asked(form: &Form<'_>, opcode: &str) -> Option<Vec<Asked>> {
    if matches!(opcode, "bar" | "barrier") && !form.says("red") {
        return Some(vec![WORD]);
    }
    if opcode == "cp" && !form.says("tensor") {
        return Some(vec![Any, Any, WORD, Any]);
    }
    let (&first, &last) = (form.types.first()?, form.types.last()?);
    let one = Of(last);
    Some(match opcode {
        "mul" | "mad" if form.says("wide") => vec![twice(last), one, one, twice(last)],
        "add" | "addc" | "sub" | "subc" | "mul" | "div" | "rem" | "min" | "max" | "and" | "or" | "xor" | "copysign"
        | "mad" | "madc" | "fma" | "sad" | "neg" | "abs" | "not" | "cnot" | "brev" | "rcp" | "sqrt" | "rsqrt"
        | "sin" | "cos" | "lg2" | "ex2" | "tanh" | "prmt" | "shf" | "bmsk" | "szext" | "fns" | "dp4a" | "dp2a"
        | "cvta" | "redux" | "shfl" | "mov" | "activemask" | "nanosleep" => vec![one],
        "vadd2" | "vadd4" | "vsub2" | "vsub4" | "vavrg2" | "vavrg4" | "vabsdiff2" | "vabsdiff4" | "vmin2" | "vmin4"
        | "vmax2" | "vmax4" | "vset2" | "vset4" => vec![one],
        "shl" | "shr" => vec![one, one, WORD],
        "popc" | "clz" | "bfind" => vec![WORD, one],
        "bfe" => vec![one, one, WORD],
        "bfi" => vec![one, one, one, WORD],
        "lop3" => vec![one, one, one, one, one, PREDICATE],
        "setp" => vec![PREDICATE, one, one, PREDICATE],
        "testp" => vec![PREDICATE, one],
        "set" => vec![Of(first), one, one, PREDICATE],
        "selp" => vec![one, one, one, PREDICATE],
        "slct" => vec![Of(first), Of(first), Of(first), one],
        "vote" => vec![one, PREDICATE, WORD],
        "match" => vec![WORD, one, WORD],
        "getctarank" => vec![WORD, one],
        "cvt" => match (&form.types[..], form.says("f16x2") || form.says("bf16x2")) {
            ([to, from], true) => vec![Of(*to), Of(*from)],
            ([to, from], false) => vec![AtLeast(*to), AtLeast(*from)],
            _ => return None,
        },
        "ld" | "ldu" => vec![AtLeast(last), Any],
        "st" if !form.says("async") => vec![Any, AtLeast(last), Any],
        "atom" => vec![one, Any, one],
        "red" if !form.says("async") => vec![Any, one],
        "mbarrier" if form.says("pending_count") => vec![WORD, Of(Type::B64)],
        "mbarrier" if form.says("arrive") || form.says("arrive_drop") => vec![Of(Type::B64), WORD],
        "mbarrier" if form.says("parity") => vec![PREDICATE, Any, WORD],
        "mbarrier" if form.says("test_wait") || form.says("try_wait") => {
            vec![PREDICATE, Any, Of(Type::B64), WORD]
        }
        "mbarrier" => vec![Any, WORD],
        _ => return None,
    })
}

impl<'a> Builder<'_, 'a> {
    /// Refuses registers that an instruction does not take.
    pub(super) fn check_registers(&self, form: &Form<'a>, opcode: &str, operands: &[Operand<'a>]) -> Result<(), Error> {
        // Registers of 128 bits are checked where they are used.
        if form.types.contains(&Type::B128) {
            return Ok(());
        }
        let Some(all) = asked(form, opcode) else { return Ok(()) };
        let hinted = form.says("L2::cache_hint");
        let count = operands.len() - usize::from(hinted && !operands.is_empty());
        for (place, operand) in operands.iter().take(count).enumerate() {
            let Some(&asked) = all.get(place).or(all.last()) else { continue };
            self.check_operand(form, opcode, operand, asked)?;
        }
        Ok(())
    }

    fn check_operand(&self, form: &Form<'a>, opcode: &str, operand: &Operand<'a>, asked: Asked) -> Result<(), Error> {
        match operand {
            Operand::Name { name, offset: 0 } | Operand::Part { name, .. } => self.check_register(form, name, asked),
            Operand::Pair(name, predicate) => {
                self.check_register(form, name, asked)?;
                self.check_register(form, predicate, PREDICATE)
            }
            Operand::Not(name) => self.check_register(form, name, PREDICATE),
            Operand::Vector(elements) => {
                // A move makes one register of several, or takes it apart.
                let of_each = match asked {
                    Of(ty) if opcode == "mov" => match bits(ty) / u32::try_from(elements.len()).unwrap_or(1).max(1) {
                        8 => Of(Type::B8),
                        16 => Of(Type::B16),
                        32 => Of(Type::B32),
                        _ => Any,
                    },
                    asked => asked,
                };
                elements.iter().try_for_each(|element| self.check_operand(form, "", element, of_each))
            }
            _ => Ok(()),
        }
    }

    fn check_register(&self, form: &Form<'a>, name: &str, asked: Asked) -> Result<(), Error> {
        let Some((_, register)) = self.register(name) else { return Ok(()) };
        let (ty, fits) = match asked {
            Any => return Ok(()),
            Of(ty) => (ty, bits(register) == bits(ty)),
            AtLeast(ty) => (ty, register != Type::Pred && bits(register) >= bits(ty)),
        };
        let what = match (register, ty) {
            _ if fits && are_of_other_kinds(register, ty) && ty.is_float() => {
                format!("has integers, and {} takes floating-point numbers there", form.name())
            }
            _ if fits && are_of_other_kinds(register, ty) => {
                format!("has floating-point numbers, and {} takes integers there", form.name())
            }
            _ if fits => return Ok(()),
            (Type::Pred, _) => {
                format!("is a predicate, and {} takes a register of {} bits there", form.name(), bits(ty))
            }
            (_, Type::Pred) => format!("is no predicate, and {} takes one there", form.name()),
            _ => {
                format!("has {} bits, and {} takes a register of {} bits there", bits(register), form.name(), bits(ty))
            }
        };
        Err(form.error(format!("{name} {what}")))
    }
}
