//! Numbers of 8 bits, in pairs: `e4m3`, which has no infinities, and `e5m2`, the upper half of a number in half precision.
//!
//! They are only converted. A conversion to them rounds to the nearest, of two to the even one, and saturates.

use super::round::{HALF, Rounding, SINGLE};
use crate::op::{Binary, Unary};

/// One of the two formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Eight {
    E4m3,
    E5m2,
}

/// What no number becomes, in either.
const NAN: u64 = 0x7f;
const SIGN: u64 = 0x80;

impl Eight {
    /// `e4m3x2` or `e5m2x2`.
    pub(crate) fn parse(word: &str) -> Option<Eight> {
        match word {
            "e4m3x2" => Some(Eight::E4m3),
            "e5m2x2" => Some(Eight::E5m2),
            _ => None,
        }
    }

    /// Bits of the fraction, the least exponent, and the bits of the largest number.
    const fn shape(self) -> (i32, i32, u64) {
        match self {
            Eight::E4m3 => (3, -6, 0x7e),
            Eight::E5m2 => (2, -14, 0x7b),
        }
    }

    fn round(self, value: f64, relu: bool) -> u64 {
        if value.is_nan() {
            return NAN;
        }
        if relu && value.is_sign_negative() {
            return 0;
        }
        let (fraction, least, largest) = self.shape();
        let sign = if value.is_sign_negative() { SIGN } else { 0 };
        let exponent = ((value.to_bits() >> 52 & 0x7ff) as i32 - 1023).max(least);
        // in units of the last place: exact, as the unit is a power of two
        let units = value.abs() * libm::ldexp(1.0, fraction - exponent);
        let units = if units.is_finite() { libm::rint(units) as u64 } else { 1 << (fraction + 1) };
        // a carry out of the fraction raises the exponent by itself, as the bits are laid out
        let bits = ((exponent - least) as u64) << fraction;
        sign | bits.saturating_add(units).min(largest)
    }

    /// In half precision, which holds every number of both formats.
    pub(crate) fn to_half(self, bits: u64) -> u64 {
        let sign = (bits & SIGN) << 8;
        let magnitude = bits & !SIGN & 0xff;
        match self {
            Eight::E5m2 if magnitude > 0x7c => HALF.nan,
            Eight::E5m2 => sign | magnitude << 8,
            Eight::E4m3 if magnitude == NAN => HALF.nan,
            Eight::E4m3 => {
                let (exponent, fraction) = ((magnitude >> 3) as i32, magnitude & 7);
                let units = if exponent == 0 { fraction } else { fraction | 8 };
                sign | HALF.pack(false, units, exponent.max(1) - 10, false, Rounding::Nearest)
            }
        }
    }
}

/// The formats of one function.
macro_rules! each {
    ($eight:expr, $relu:expr, $f:ident) => {
        match ($eight, $relu) {
            (Eight::E4m3, false) => $f::<true, false>,
            (Eight::E4m3, true) => $f::<true, true>,
            (Eight::E5m2, false) => $f::<false, false>,
            (Eight::E5m2, true) => $f::<false, true>,
        }
    };
}

const fn eight(e4m3: bool) -> Eight {
    if e4m3 { Eight::E4m3 } else { Eight::E5m2 }
}

fn singles<const E4M3: bool, const RELU: bool>(high: u64, low: u64) -> u64 {
    let one = |bits: u64| eight(E4M3).round(SINGLE.to_f64(bits & 0xffff_ffff), RELU);
    one(high) << 8 | one(low)
}

fn halves<const E4M3: bool, const RELU: bool>(both: u64) -> u64 {
    let one = |bits: u64| eight(E4M3).round(HALF.to_f64(bits & 0xffff), RELU);
    one(both >> 16) << 8 | one(both)
}

fn widened<const E4M3: bool, const RELU: bool>(both: u64) -> u64 {
    let one = |bits: u64| {
        let half = eight(E4M3).to_half(bits & 0xff);
        if RELU && half != HALF.nan && half & HALF.sign() != 0 { 0 } else { half }
    };
    one(both >> 8) << 16 | one(both)
}

/// Two numbers in single precision, the first into the upper half.
pub(crate) fn of_singles(to: Eight, relu: bool) -> Binary {
    each!(to, relu, singles)
}

/// Two numbers in half precision.
pub(crate) fn of_halves(to: Eight, relu: bool) -> Unary {
    each!(to, relu, halves)
}

/// To two numbers in half precision.
pub(crate) fn to_halves(from: Eight, relu: bool) -> Unary {
    each!(from, relu, widened)
}

#[cfg(test)]
mod tests {
    use rustc_apfloat::ieee::{Float8E4M3FN, Float8E5M2, Half, Single};
    use rustc_apfloat::{Float as _, FloatConvert as _};

    use super::*;

    /// The same by LLVM's software floating point, and then saturated.
    fn expected<T: rustc_apfloat::FloatConvert<Float8E4M3FN> + rustc_apfloat::FloatConvert<Float8E5M2>>(
        value: T,
        to: Eight,
    ) -> u64 {
        if value.is_nan() {
            return NAN;
        }
        let sign = if value.is_negative() { SIGN } else { 0 };
        let infinite = value.is_infinite();
        let (bits, largest) = match to {
            Eight::E4m3 => {
                let to: Float8E4M3FN = value.convert(&mut false).value;
                (if to.is_nan() { None } else { Some(to.to_bits() as u64) }, 0x7e)
            }
            Eight::E5m2 => {
                let to: Float8E5M2 = value.convert(&mut false).value;
                (if to.is_infinite() { None } else { Some(to.to_bits() as u64) }, 0x7b)
            }
        };
        bits.filter(|_| !infinite).unwrap_or(sign | largest)
    }

    #[test]
    fn every_half_is_rounded_and_saturated() {
        for to in [Eight::E4m3, Eight::E5m2] {
            for bits in 0..=0xffff_u64 {
                let want = expected(Half::from_bits(bits.into()), to);
                assert_eq!(of_halves(to, false)(bits | bits << 16), want | want << 8, "{bits:#x} to {to:?}");
            }
        }
    }

    #[test]
    fn singles_are_rounded_once() {
        let mut state = 0x2545_f491_u32;
        for step in 0..200_000_u32 {
            state ^= state << 13;
            state ^= state >> 17;
            state ^= state << 5;
            // every other one is where a number of 8 bits is not yet zero or infinite
            let bits = if step % 2 == 0 { state } else { state & 0x87ff_ffff | 0x3800_0000 };
            let value = Single::from_bits(bits.into());
            for to in [Eight::E4m3, Eight::E5m2] {
                let want = expected(value, to);
                assert_eq!(of_singles(to, false)(bits.into(), 0x3f80_0000) >> 8, want, "{bits:#x} to {to:?}");
            }
        }
        assert_eq!(of_singles(Eight::E4m3, false)(0x3f80_0000, 0xbf80_0000), 0x38b8);
    }

    #[test]
    fn negative_numbers_become_zero_where_that_is_asked() {
        let [minus_one, minus_zero, nan] = [0xbf80_0000, 0x8000_0000, 0xffc0_0000];
        assert_eq!(of_singles(Eight::E4m3, true)(minus_one, minus_zero), 0);
        assert_eq!(of_singles(Eight::E5m2, true)(nan, 0x3f80_0000), 0x7f3c);
        assert_eq!(to_halves(Eight::E5m2, true)(0xbc3c), 0x3c00);
        assert_eq!(to_halves(Eight::E4m3, true)(0xff38), 0x7fff_3c00);
    }

    #[test]
    fn every_number_of_8_bits_comes_back() {
        for bits in 0..=0xff_u64 {
            let half = |value: Half| if value.is_nan() { 0x7fff } else { value.to_bits() as u64 };
            let e4m3 = half(Float8E4M3FN::from_bits(bits.into()).convert(&mut false).value);
            let e5m2 = half(Float8E5M2::from_bits(bits.into()).convert(&mut false).value);
            assert_eq!(to_halves(Eight::E4m3, false)(bits), e4m3, "{bits:#x}");
            assert_eq!(to_halves(Eight::E5m2, false)(bits << 8) >> 16, e5m2, "{bits:#x}");
        }
    }
}
