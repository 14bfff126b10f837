//! Arithmetic against LLVM's software floating point, for every rounding.

use proptest::prelude::*;
use rustc_apfloat::ieee::{BFloat, Double, Half, Single};
use rustc_apfloat::{Float as _, FloatConvert as _, Round};

use super::convert::Conversion;
use super::round::{DOUBLE, Format, HALF, Rounding, SINGLE};
use super::{float, integer, small};
use crate::types::Type;

const ROUNDINGS: [(Rounding, Round); 4] = [
    (Rounding::Nearest, Round::NearestTiesToEven),
    (Rounding::Zero, Round::TowardZero),
    (Rounding::Down, Round::TowardNegative),
    (Rounding::Up, Round::TowardPositive),
];

/// Any bits, but often edges, small exponents, and numbers that are near to each other.
fn words(bits: u32) -> impl Strategy<Value = u64> {
    let low = crate::types::mask(bits);
    let edges = match bits {
        16 => vec![
            0, 0x8000, 1, 0x8001, 0x3ff, 0x400, 0x3c00, 0x3c01, 0xbc00, 0x7bff, 0x7c00, 0xfc00, 0x7e00, 0x3f80, 0x7f7f,
            0x7f80,
        ],
        32 => vec![
            0,
            1 << 31,
            1,
            0x7f_ffff,
            0x80_0000,
            0x3f80_0000,
            0x3f80_0001,
            0xbf80_0000,
            0x7f7f_ffff,
            0x7f80_0000,
            0xff80_0000,
        ],
        _ => vec![
            0,
            1 << 63,
            1,
            0x3ff0 << 48,
            (0x3ff0 << 48) + 1,
            0xbff0 << 48,
            0x7fef_ffff_ffff_ffff,
            0x7ff0 << 48,
            (1 << 52) - 1,
            1 << 52,
        ],
    };
    let near = 1_u64 << (bits - 2);
    prop_oneof![
        any::<u64>().prop_map(move |word| word & low),
        prop::sample::select(edges),
        (0..1024_u64).prop_map(move |word| (near - 512 + word) & low),
    ]
}

/// Bits, or for what is no number the format's own.
fn canonical(format: Format, bits: u64) -> u64 {
    if format.to_f64(bits).is_nan() { format.nan } else { bits }
}

macro_rules! same {
    ($format:expr, $name:expr, $ours:expr, $theirs:expr, $($operand:expr),+) => {
        let (ours, theirs) = ($ours, canonical($format, $theirs.value.to_bits() as u64));
        prop_assert_eq!(ours, theirs, "{} of {:x?}: {:#x}, not {:#x}", $name, [$($operand),+], ours, theirs);
    };
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn single_precision(a in words(32), b in words(32), c in words(32)) {
        let [x, y, z] = [a, b, c].map(|bits| Single::from_bits(bits.into()));
        for (ours, theirs) in ROUNDINGS {
            let binary = |name| float::binary_rounded(name, Type::F32, ours).unwrap()(a, b);
            same!(SINGLE, format!("add {ours:?}"), binary("add"), x.add_r(y, theirs), a, b);
            same!(SINGLE, format!("sub {ours:?}"), binary("sub"), x.sub_r(y, theirs), a, b);
            same!(SINGLE, format!("mul {ours:?}"), binary("mul"), x.mul_r(y, theirs), a, b);
            same!(SINGLE, format!("div {ours:?}"), binary("div"), x.div_r(y, theirs), a, b);
            same!(SINGLE, format!("fma {ours:?}"), float::fma(Type::F32, ours).unwrap()(a, b, c), x.mul_add_r(y, z, theirs), a, b, c);
        }
    }

    #[test]
    fn double_precision(a in words(64), b in words(64), c in words(64)) {
        let [x, y, z] = [a, b, c].map(|bits| Double::from_bits(bits.into()));
        for (ours, theirs) in ROUNDINGS {
            let binary = |name| canonical(DOUBLE, float::binary_rounded(name, Type::F64, ours).unwrap()(a, b));
            same!(DOUBLE, format!("add {ours:?}"), binary("add"), x.add_r(y, theirs), a, b);
            same!(DOUBLE, format!("mul {ours:?}"), binary("mul"), x.mul_r(y, theirs), a, b);
            same!(DOUBLE, format!("div {ours:?}"), binary("div"), x.div_r(y, theirs), a, b);
            let fma = canonical(DOUBLE, float::fma(Type::F64, ours).unwrap()(a, b, c));
            same!(DOUBLE, format!("fma {ours:?}"), fma, x.mul_add_r(y, z, theirs), a, b, c);
        }
    }

    /// The root rounded down is the largest number whose square is not larger.
    #[test]
    fn roots(a in words(64)) {
        for (ty, bits, format) in [(Type::F32, a & 0x7fff_ffff, SINGLE), (Type::F64, a & (u64::MAX >> 1), DOUBLE)] {
            let value = format.to_f64(bits);
            if !value.is_finite() || value == 0.0 {
                continue;
            }
            let [nearest, zero, down, up] = ROUNDINGS.map(|(ours, _)| float::root(ty, ours).unwrap()(bits));
            prop_assert_eq!(zero, down);
            prop_assert!(up - down <= 1 && (nearest == down || nearest == up));
            // Exactly, by software: the remainder of the square.
            let above = |root: u64| {
                let root = Double::from_bits(format.to_f64(root).to_bits().into());
                let rest = root.mul_add_r(root, -Double::from_bits(value.to_bits().into()), Round::TowardPositive).value;
                f64::from_bits(rest.to_bits() as u64)
            };
            if value > 1e-250 {
                prop_assert!(above(down) <= 0.0, "{:e}: {:e} is too large", value, format.to_f64(down));
                prop_assert!(above(up) >= 0.0, "{:e}: {:e} is too small", value, format.to_f64(up));
            }
        }
    }

    #[test]
    fn half_precision(a in words(16), b in words(16), c in words(16)) {
        macro_rules! check {
            ($float:ident, $ty:expr, $format:expr) => {
                let [x, y, z] = [a, b, c].map(|bits| $float::from_bits(bits.into()));
                let nearest = Round::NearestTiesToEven;
                let binary = |name| float::binary(name, $ty).unwrap()(a, b);
                same!($format, "add", binary("add"), x.add_r(y, nearest), a, b);
                same!($format, "sub", binary("sub"), x.sub_r(y, nearest), a, b);
                same!($format, "mul", binary("mul"), x.mul_r(y, nearest), a, b);
                same!($format, "fma", float::fma($ty, Rounding::Nearest).unwrap()(a, b, c), x.mul_add_r(y, z, nearest), a, b, c);
                // Pairs are the same twice.
                let (pair_a, pair_b) = (a | b << 16, b | a << 16);
                let pair = if $ty == Type::F16 { Type::F16x2 } else { Type::Bf16x2 };
                let swapped = float::binary("sub", $ty).unwrap()(b, a);
                prop_assert_eq!(float::binary("sub", pair).unwrap()(pair_a, pair_b), binary("sub") | swapped << 16);
            };
        }
        check!(Half, Type::F16, HALF);
        check!(BFloat, Type::Bf16, super::round::BFLOAT);
        let relu = small::fma_with_relu(Type::F16).unwrap()(a, b, c);
        let plain = float::fma(Type::F16, Rounding::Nearest).unwrap()(a, b, c);
        prop_assert_eq!(relu, if plain & 0x8000 == 0 { plain } else { 0 });
    }

    #[test]
    fn conversions(a in words(64)) {
        let conversion = |to, from, rounding| Conversion {
            to, from, rounding, integral: false, saturate: false, finite: false, relu: false, flush: false, register: 64,
        };
        let double = Double::from_bits(a.into());
        for (ours, theirs) in ROUNDINGS {
            let mut lost = false;
            let single: rustc_apfloat::StatusAnd<Single> = double.convert_r(theirs, &mut lost);
            let half: rustc_apfloat::StatusAnd<Half> = double.convert_r(theirs, &mut lost);
            let [to_single, to_half] = [Type::F32, Type::F16].map(|to| conversion(to, Type::F64, ours).apply(a));
            if double.is_nan() {
                // a GPU keeps sign and payload here, as this software does
                prop_assert_eq!([to_single, to_half], [single.value.to_bits() as u64, half.value.to_bits() as u64]);
            } else {
                same!(SINGLE, format!("f32.f64 {ours:?}"), to_single, single, a);
                same!(HALF, format!("f16.f64 {ours:?}"), to_half, half, a);
            }
            same!(SINGLE, format!("f32.s64 {ours:?}"), conversion(Type::F32, Type::S64, ours).apply(a), Single::from_i128_r(a.cast_signed().into(), theirs), a);
            same!(DOUBLE, format!("f64.u64 {ours:?}"), conversion(Type::F64, Type::U64, ours).apply(a), Double::from_u128_r(a.into(), theirs), a);
            // Beyond the range, and of what is no number, software agrees: the nearest number of the range, and zero.
            if !f64::from_bits(a).is_nan() {
                let mut exact = false;
                let integer = double.to_i128_r(32, theirs, &mut exact).value;
                prop_assert_eq!(conversion(Type::S32, Type::F64, ours).apply(a) as i32, integer as i32, "s32.f64 {:?} of {:#x}", ours, a);
            }
        }
    }
}

#[test]
fn known_values() {
    // Half an ulp above one, with and without more behind it.
    assert_eq!(HALF.pack(false, (1 << 11) + 1, -11, false, Rounding::Nearest), 0x3c00);
    assert_eq!(HALF.pack(false, (1 << 13) + 4, -13, true, Rounding::Nearest), 0x3c01);
    // The largest number, and what becomes infinite.
    assert_eq!(HALF.round(65519.0, Rounding::Nearest), 0x7bff);
    assert_eq!(HALF.round(65520.0, Rounding::Nearest), 0x7c00);
    assert_eq!(HALF.round(-1e9, Rounding::Zero), 0xfbff);
    // The smallest subnormal number.
    assert_eq!(HALF.round(5.960_464_477_539_063e-8, Rounding::Nearest), 1);
    assert_eq!(HALF.round(1e-9, Rounding::Up), 1);
    // Comparisons of what is no number.
    let nan = f32::NAN.to_bits().into();
    for (name, expected) in
        [("eq", 0), ("ne", 0), ("lt", 0), ("neu", 1), ("equ", 1), ("gtu", 1), ("num", 0), ("nan", 1)]
    {
        assert_eq!(float::comparison(name, Type::F32).unwrap()(nan, 0), expected, "{name}");
    }
    assert_eq!(float::binary("min", Type::F32).unwrap()(0, 1 << 31), 1 << 31);
    assert_eq!(float::binary("max", Type::F32).unwrap()(nan, 0x3f80_0000), 0x3f80_0000);
}

/// What an H200 did with the kernels of `examples/compare.py`, where PTX leaves it open.
#[test]
fn what_is_no_number_and_divisions_by_zero_are_as_on_gpus() {
    let convert = |to, from, a| {
        let (rounding, register) = (Rounding::Nearest, 64);
        let (integral, saturate, finite, relu, flush) = (false, false, false, false, false);
        Conversion { to, from, rounding, integral, saturate, finite, relu, flush, register }.apply(a)
    };
    let (single, double) = (f32::NAN.to_bits().into(), f64::NAN.to_bits());
    assert_eq!(convert(Type::S32, Type::F32, single), 0);
    assert_eq!(convert(Type::S64, Type::F32, single), 1 << 63);
    assert_eq!(convert(Type::U64, Type::F16, 0x7e00), 1 << 63);
    assert_eq!(convert(Type::U8, Type::F64, double), 0x80);
    assert_eq!(convert(Type::S32, Type::F64, double), 0xffff_ffff_8000_0000);

    for (to, from, a, expected) in [
        (Type::F64, Type::F16, 0x7fff, 0x7fff_fc00_0000_0000),
        (Type::F32, Type::Bf16, 0xffff, 0xffff_0000),
        (Type::F16, Type::F64, u64::MAX, 0xffff),
        (Type::F32, Type::F64, 0x7ff8_0000_0000_0000, 0x7fc0_0000),
        (Type::F32, Type::F64, u64::MAX, 0xffff_ffff),
        (Type::F32, Type::F16, 0xffff, 0x7fff_ffff),
        (Type::F32, Type::Bf16, 0x7f88, 0x7f88_0000),
    ] {
        assert_eq!(convert(to, from, a), expected, "{to:?} of {from:?} {a:#x}");
    }

    assert_eq!(integer::binary("rem", Type::S16).unwrap()(0xa000, 0) & 0xffff, 0xffff);
    assert_eq!(integer::binary("rem", Type::U32).unwrap()(5, 0), 0xffff_ffff);
    assert_eq!(integer::binary("rem", Type::S64).unwrap()(33, 0), u64::MAX);

    assert_eq!(float::unary("neg", Type::F32).unwrap()(single), 0x7fff_ffff);
    assert_eq!(float::unary("neg", Type::F64).unwrap()(u64::MAX), u64::MAX);
    assert_eq!(float::unary("abs", Type::F64).unwrap()(u64::MAX), u64::MAX);
    assert_eq!(small::unary("neg", Type::F16x2).unwrap()(0x7fc0_0000), 0x7fff_8000);
    assert_eq!(small::unary("abs", Type::Bf16).unwrap()(0xffc1), 0x7fff);
    assert_eq!([0, 1 << 31, 1].map(|a| float::test("normal", Type::F32).unwrap()(a)), [1, 1, 0]);
}
