//! How wide the registers of an instruction are. Most must be as wide as the instruction's type: a register of another width is a mistake that `ptxas` refuses, too.

use super::builder::Builder;
use super::form::Form;
use crate::error::Error;
use crate::syntax::Operand;
use crate::types::Type;

/// What an instruction asks of a register.
#[derive(Clone, Copy)]
enum Width {
    Any,
    /// Exactly so many bits. A predicate has one.
    Bits(u32),
    /// As loads, stores and conversions: the register may be wider.
    AtLeast(u32),
}

use Width::{Any, AtLeast, Bits};

fn bits(ty: Type) -> u32 {
    if ty == Type::Pred { 1 } else { ty.bits() }
}

/// What each operand must be; the last one stands for all that follow. Instructions with rules of their own have none here.
fn widths(form: &Form<'_>, opcode: &str) -> Option<Vec<Width>> {
    let is_wide = form.says("wide");
    let (first, last) = (bits(*form.types.first()?), bits(*form.types.last()?));
    let one = Bits(last);
    Some(match opcode {
        "mul" | "mad" if is_wide => vec![Bits(2 * last), one, one, Bits(2 * last)],
        "add" | "addc" | "sub" | "subc" | "mul" | "div" | "rem" | "min" | "max" | "and" | "or" | "xor" | "copysign"
        | "mad" | "madc" | "fma" | "sad" | "neg" | "abs" | "not" | "cnot" | "brev" | "rcp" | "sqrt" | "rsqrt"
        | "sin" | "cos" | "lg2" | "ex2" | "tanh" | "prmt" | "shf" | "bmsk" | "szext" | "fns" | "dp4a" | "dp2a"
        | "cvta" | "redux" | "shfl" => vec![one],
        "shl" | "shr" => vec![one, one, Bits(32)],
        "popc" | "clz" | "bfind" => vec![Bits(32), one],
        "bfe" => vec![one, one, Bits(32)],
        "bfi" => vec![one, one, one, Bits(32)],
        "lop3" => vec![one, one, one, one, one, Bits(1)],
        "setp" => vec![Bits(1), one, one, Bits(1)],
        "testp" => vec![Bits(1), one],
        "set" => vec![Bits(first), one, one, Bits(1)],
        "selp" => vec![one, one, one, Bits(1)],
        "slct" => vec![Bits(first), Bits(first), Bits(first), one],
        "vadd2" | "vadd4" | "vsub2" | "vsub4" | "vavrg2" | "vavrg4" | "vabsdiff2" | "vabsdiff4" | "vmin2" | "vmin4"
        | "vmax2" | "vmax4" | "vset2" | "vset4" => vec![one],
        "getctarank" => vec![Bits(32), one],
        "match" => vec![Bits(32), one, Bits(32)],
        "cvt" if form.types.len() == 2 => vec![AtLeast(first), AtLeast(last)],
        "mov" => vec![one],
        "ld" | "ldu" => vec![AtLeast(last), Any],
        "st" if !form.says("async") => vec![Any, AtLeast(last), Any],
        "atom" => vec![one, Any, one],
        "red" if !form.says("async") => vec![Any, one],
        _ => return None,
    })
}

impl<'a> Builder<'_, 'a> {
    /// Refuses registers of other widths than the instruction's.
    pub(super) fn check_widths(&self, form: &Form<'a>, opcode: &str, operands: &[Operand<'a>]) -> Result<(), Error> {
        // Registers of 128 bits are checked where they are used.
        if form.types.contains(&Type::B128) {
            return Ok(());
        }
        let Some(widths) = widths(form, opcode) else { return Ok(()) };
        let hinted = form.says("L2::cache_hint");
        let count = operands.len() - usize::from(hinted && !operands.is_empty());
        for (place, operand) in operands.iter().take(count).enumerate() {
            let Some(&width) = widths.get(place).or(widths.last()) else { continue };
            self.check_width(form, opcode, operand, width)?;
        }
        Ok(())
    }

    fn check_width(&self, form: &Form<'a>, opcode: &str, operand: &Operand<'a>, width: Width) -> Result<(), Error> {
        match operand {
            Operand::Name { name, offset: 0 } | Operand::Part { name, .. } => self.check_register(form, name, width),
            Operand::Pair(name, predicate) => {
                self.check_register(form, name, width)?;
                self.check_register(form, predicate, Bits(1))
            }
            Operand::Not(name) => self.check_register(form, name, Bits(1)),
            Operand::Vector(elements) => {
                // A move makes one register of several, or takes it apart.
                let of_each = match width {
                    Bits(bits) if opcode == "mov" => Bits(bits / u32::try_from(elements.len()).unwrap_or(1).max(1)),
                    width => width,
                };
                elements.iter().try_for_each(|element| self.check_width(form, "", element, of_each))
            }
            _ => Ok(()),
        }
    }

    fn check_register(&self, form: &Form<'a>, name: &str, width: Width) -> Result<(), Error> {
        let Some((_, ty)) = self.register(name) else { return Ok(()) };
        let found = bits(ty);
        let asked = match width {
            Any => return Ok(()),
            Bits(asked) if asked == found => return Ok(()),
            AtLeast(asked) if asked <= found => return Ok(()),
            Bits(asked) | AtLeast(asked) => asked,
        };
        let what = match (found, asked) {
            (1, _) => format!("is a predicate, and {} takes a register of {asked} bits there", form.name()),
            (_, 1) => format!("is no predicate, and {} takes one there", form.name()),
            _ => format!("has {found} bits, and {} takes a register of {asked} bits there", form.name()),
        };
        Err(form.error(format!("{name} {what}")))
    }
}
