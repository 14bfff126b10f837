//! Instructions on the bytes, or the halves, of registers: `vadd4.u32.u32.u32.sat %r1.b3210, %r2.b0000, %r3, %r4`.

use super::builder::Builder;
use super::form::Form;
use crate::alu::video::{Each, Video, video};
use crate::error::Error;
use crate::op::Op;
use crate::syntax::Operand;
use crate::types::Type;

impl<'a> Builder<'_, 'a> {
    pub(super) fn video(&mut self, form: &mut Form<'a>, opcode: &str, operands: &[Operand<'a>]) -> Result<(), Error> {
        let [d, a, b, c] = operands else { return Err(form.unknown()) };
        let (name, elements) = opcode.split_at(opcode.len() - 1);
        let elements = if elements == "4" { 4 } else { 2 };
        let each = match name {
            "vadd" => Each::Add,
            "vsub" => Each::Sub,
            "vavrg" => Each::Average,
            "vabsdiff" => Each::Distance,
            "vmin" => Each::Min,
            "vmax" => Each::Max,
            _ => match form.need(&["eq", "ne", "lt", "le", "gt", "ge"])? {
                "eq" => Each::Equal,
                "ne" => Each::Differs,
                "lt" => Each::Less,
                "le" => Each::AtMost,
                "gt" => Each::Greater,
                _ => Each::AtLeast,
            },
        };
        let types = match (name, &form.types[..]) {
            // whether something holds has no sign
            ("vset", &[a, b]) => [Type::U32, a, b],
            ("vset", _) => return Err(form.unknown()),
            (_, &[d, a, b]) => [d, a, b],
            _ => return Err(form.unknown()),
        };
        let saturates = name != "vset" && form.has("sat");
        let sums = form.has("add");
        if !types.iter().all(|ty| matches!(ty, Type::U32 | Type::S32)) || saturates && sums {
            return Err(form.unknown());
        }
        let how = Video {
            each,
            elements,
            signed: types.map(Type::is_signed),
            saturates,
            sums,
            mask: Self::mask_of(form, d, elements)?,
            chosen: [Self::chosen(form, a, elements, 0)?, Self::chosen(form, b, elements, elements)?],
        };
        let is_register = |operand: &Operand<'a>| match whole(operand) {
            Operand::Name { name, offset: 0 } => self.register(name).is_some(),
            _ => false,
        };
        if !operands.iter().all(is_register) {
            return Err(form.error(format!("the operands of {} are registers", form.name())));
        }
        let [a, b, c] = [a, b, c].map(|operand| self.source(&whole(operand), Type::B32));
        let (a, b, c, e) = (a?, b?, c?, self.constant(how.pack())?);
        let (d, _) = self.target(&whole(d))?;
        self.emit(Op::Quaternary { f: video, d, a, b, c, e });
        Ok(())
    }

    /// The elements that the destination names, as bits; all if it names none.
    fn mask_of(form: &Form<'a>, operand: &Operand<'a>, elements: u32) -> Result<u64, Error> {
        let Some(places) = Self::places(form, operand, elements, elements)? else { return Ok((1 << elements) - 1) };
        if places.is_empty() || !places.is_sorted_by(|one, next| one > next) {
            return Err(form.error(format!("{} names its elements from the highest to the lowest", form.name())));
        }
        Ok(places.iter().fold(0, |all, place| all | 1 << place))
    }

    /// Which elements of both operands one of them stands for, the lowest first.
    fn chosen(form: &Form<'a>, operand: &Operand<'a>, elements: u32, first: u32) -> Result<[u64; 4], Error> {
        let mut chosen = [0, 1, 2, 3].map(|place| u64::from((first + place) % 8));
        if let Some(places) = Self::places(form, operand, elements, 2 * elements)? {
            if places.len() != elements as usize {
                return Err(form.error(format!("an operand of {} names {elements} elements", form.name())));
            }
            chosen.iter_mut().zip(places.iter().rev()).for_each(|(chosen, place)| *chosen = *place);
        }
        Ok(chosen)
    }

    /// The digits behind the register, each below a bound.
    fn places(form: &Form<'a>, operand: &Operand<'a>, elements: u32, bound: u32) -> Result<Option<Vec<u64>>, Error> {
        let Operand::Part { name, part } = operand else { return Ok(None) };
        let places = part.strip_prefix(if elements == 4 { 'b' } else { 'h' });
        let places = places.and_then(|digits| {
            let digit = |digit: char| digit.to_digit(10).filter(|&digit| digit < bound).map(u64::from);
            digits.chars().map(digit).collect::<Option<Vec<_>>>()
        });
        places.map(Some).ok_or_else(|| form.error(format!("{name}.{part} is no operand of {}", form.name())))
    }
}

/// The register of which an operand names elements.
fn whole<'a>(operand: &Operand<'a>) -> Operand<'a> {
    match *operand {
        Operand::Part { name, .. } => Operand::Name { name, offset: 0 },
        ref other => other.clone(),
    }
}
