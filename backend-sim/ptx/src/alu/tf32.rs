//! `tf32`: the upper 19 bits of a number in single precision, of which tensor cores make products.

use super::round::{Format, Rounding, SINGLE};
use crate::op::Unary;

const TF32: Format = Format { fraction: 10, exponent: 8, nan: 0x3_ffff };
/// The bits that are left out.
const BELOW: u32 = 13;

fn single<const R: u8, const RELU: bool, const FINITE: bool>(a: u64) -> u64 {
    let value = SINGLE.to_f64(a);
    if value.is_nan() {
        return SINGLE.nan;
    }
    if RELU && value.is_sign_negative() {
        return 0;
    }
    let rounding = match R {
        0 => Rounding::Nearest,
        1 => Rounding::NearestAway,
        _ => Rounding::Zero,
    };
    let bits = TF32.round(value, rounding);
    let is_infinite = bits & (TF32.sign() - 1) == TF32.infinity();
    (if FINITE && is_infinite { bits - 1 } else { bits }) << BELOW
}

/// From single precision, by one of the roundings that PTX has for this; negative numbers become zero, and infinities the largest finite number, if that is
/// asked.
pub(crate) fn of_single(rounding: Rounding, relu: bool, finite: bool) -> Option<Unary> {
    macro_rules! each {
        ($rounding:literal) => {
            match (relu, finite) {
                (false, false) => single::<$rounding, false, false>,
                (false, true) => single::<$rounding, false, true>,
                (true, false) => single::<$rounding, true, false>,
                (true, true) => single::<$rounding, true, true>,
            }
        };
    }
    Some(match rounding {
        Rounding::Nearest => each!(0),
        Rounding::NearestAway if !relu => each!(1),
        Rounding::Zero => each!(2),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By integers: half of what is left out is added, or what decides between two that are as near.
    fn expected(bits: u32, rounding: Rounding) -> u32 {
        let added = match rounding {
            Rounding::NearestAway => 0x1000,
            Rounding::Nearest => 0x0fff + (bits >> BELOW & 1),
            _ => 0,
        };
        (bits + added) & !0x1fff
    }

    #[test]
    fn numbers_are_rounded_to_11_digits() {
        let mut state = 0x9e37_79b9_u32;
        for step in 0..300_000_u32 {
            state ^= state << 13;
            state ^= state >> 17;
            state ^= state << 5;
            // some lie half way, some are subnormal, some near the largest
            let bits = match step % 4 {
                0 => state,
                1 => state & !0x1fff | 0x1000,
                2 => state & 0x807f_ffff,
                _ => state & 0x807f_ffff | 0x7f00_0000,
            };
            if f32::from_bits(bits).is_nan() {
                continue;
            }
            for rounding in [Rounding::Nearest, Rounding::NearestAway, Rounding::Zero] {
                let convert = of_single(rounding, false, false).unwrap();
                assert_eq!(convert(bits.into()), expected(bits, rounding).into(), "{bits:#x} by {rounding:?}");
            }
        }
    }

    #[test]
    fn what_is_no_number_or_too_large_or_negative() {
        let convert = |relu, finite, bits: u64| of_single(Rounding::Nearest, relu, finite).unwrap()(bits);
        assert_eq!(convert(false, false, 0xff80_0001), 0x7fff_ffff);
        assert_eq!(convert(true, true, 0xffc0_0000), 0x7fff_ffff);
        assert_eq!([false, true].map(|finite| convert(false, finite, 0x7f7f_ffff)), [0x7f80_0000, 0x7f7f_e000]);
        assert_eq!([false, true].map(|finite| convert(false, finite, 0xff80_0000)), [0xff80_0000, 0xff7f_e000]);
        assert_eq!([0xbf80_0000, 0x8000_0000, 0xff80_0000].map(|bits| convert(true, false, bits)), [0; 3]);
        assert!(of_single(Rounding::Up, false, false).is_none());
        assert!(of_single(Rounding::NearestAway, true, false).is_none());
    }
}
