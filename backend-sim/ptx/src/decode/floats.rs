//! Comparisons of floating-point numbers with constants, as comparisons of bits. A number of 16 bits may have been widened before.

use super::layout::float_bits;
use crate::alu::round::Format;
use crate::lexer::Float;
use crate::syntax::Operand;
use crate::types::Type;
use crate::world::{Compare, View};

/// How a part of a word compares.
type Compared<'a> = (Compare, Type, View<Operand<'a>>, Operand<'a>);

/// A comparison for equality. `flushes`: numbers below the least normal one count as zero. `widened`: the type of what was widened before.
pub(super) fn equal_as_bits<'a>(
    (compare, ty): (&str, Type),
    (flushes, widened): (bool, Option<Type>),
    view: View<Operand<'a>>,
    against: &Operand<'a>,
) -> Option<Compared<'a>> {
    let compare = match compare {
        "eq" => Compare::Eq,
        "neu" => Compare::Ne, // also where one of them is not a number
        _ => return None,
    };
    let Operand::Float(number) = *against else { return None };
    let of = widened.unwrap_or(ty);
    let (exponent, bits) = match of {
        Type::F16 => (0x7c00, Type::B16),
        Type::Bf16 => (0x7f80, Type::B16),
        Type::F32 => (0x7f80_0000, Type::B32),
        Type::F64 => (0x7ff0_0000_0000_0000, Type::B64),
        _ => return None,
    };
    let (number, unsigned) =
        (float_bits(number, of).filter(|&bits| of == ty || is_exact(number, bits, of))?, of.mask() >> 1);
    if !view.is_plain() || view.mask != of.mask() || number & unsigned > exponent {
        return None; // no part of a word, or nothing equals it
    }
    // zero has two signs, and any other number one form; the least numbers of 16 bits with a small exponent are not the least of 32
    let flushes = flushes && of != Type::F16;
    let zeros = if flushes { exponent } else { unsigned };
    let (mask, number) = if number & zeros == 0 { (zeros, 0) } else { (view.mask, number) };
    Some((compare, bits, View { mask, ..view }, Operand::Bits(number)))
}

/// Whether these bits of a type are exactly a number.
fn is_exact(number: Float, bits: u64, of: Type) -> bool {
    let number = match number {
        Float::Single(number) => f64::from(number),
        Float::Double(number) => number,
    };
    Format::of(of).is_some_and(|format| format.to_f64(bits) == number)
}

/// What a comparison of a widened number's bits says of its sign, unless it is no number: that has no sign behind a conversion.
pub(super) fn sign<'a>(
    (compare, ty): (Compare, Type),
    view: View<Operand<'a>>,
    against: &Operand<'a>,
) -> Option<Compared<'a>> {
    let Operand::Bits(number) = *against else { return None };
    let is_sign = match compare {
        Compare::Lt | Compare::Ge => number & ty.mask() == 0,
        Compare::Gt | Compare::Le => number & ty.mask() == ty.mask(),
        Compare::Eq | Compare::Ne => false,
    };
    (is_sign && ty == Type::S32).then(|| (compare, Type::S16, view, Operand::Bits(number & Type::S16.mask())))
}
