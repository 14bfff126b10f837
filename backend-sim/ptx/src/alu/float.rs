//! Single and double precision.
//!
//! A result that is no number has the bits that GPUs give: `0x7fffffff` in single precision; in double precision the first operand
//! that is none, made quiet, else `0xfff8000000000000`.

use rustc_apfloat::Float as _;
use rustc_apfloat::ieee::Double;

use super::round::{DOUBLE, Rounding, SINGLE, fma_odd, to_odd, two_sum};
use crate::op::{Binary, Ternary, Unary};
use crate::types::Type;

fn single(a: u64) -> f32 {
    f32::from_bits(a as u32)
}
fn double(a: u64) -> f64 {
    f64::from_bits(a)
}
fn of_single(value: f32) -> u64 {
    if value.is_nan() { SINGLE.nan } else { value.to_bits().into() }
}
/// The bit of a double that is no number which tells that it raises nothing.
const QUIET: u64 = 1 << 51;
fn of_double(value: f64, operands: &[u64]) -> u64 {
    if !value.is_nan() {
        return value.to_bits();
    }
    operands.iter().find(|&&bits| double(bits).is_nan()).map_or(DOUBLE.nan, |bits| bits | QUIET)
}

/// A rounding as a constant, so that a function pointer can have it.
const fn rounding(index: u8) -> Rounding {
    match index {
        0 => Rounding::Zero,
        1 => Rounding::Down,
        _ => Rounding::Up,
    }
}
fn apfloat(index: u8) -> rustc_apfloat::Round {
    match rounding(index) {
        Rounding::Zero => rustc_apfloat::Round::TowardZero,
        Rounding::Down => rustc_apfloat::Round::TowardNegative,
        _ => rustc_apfloat::Round::TowardPositive,
    }
}

/// An exact sum of zero is `+0`, but `-0` when rounding down, or of two `-0`.
fn directed_sum<const R: u8>(a: f64, b: f64) -> u64 {
    let (sum, error) = two_sum(a, b);
    if sum == 0.0 && R == 1 && !(a.is_sign_positive() && b.is_sign_positive() && a == 0.0) {
        return SINGLE.sign();
    }
    let error = if error.is_nan() { 0.0 } else { error };
    SINGLE.round(to_odd(sum, error), rounding(R))
}
fn add_f32<const R: u8>(a: u64, b: u64) -> u64 {
    directed_sum::<R>(single(a).into(), single(b).into())
}
fn sub_f32<const R: u8>(a: u64, b: u64) -> u64 {
    directed_sum::<R>(single(a).into(), (-single(b)).into())
}
fn mul_f32<const R: u8>(a: u64, b: u64) -> u64 {
    SINGLE.round(f64::from(single(a)) * f64::from(single(b)), rounding(R))
}
fn div_f32<const R: u8>(a: u64, b: u64) -> u64 {
    let (a, b) = (f64::from(single(a)), f64::from(single(b)));
    let quotient = a / b;
    let rest = libm::fma(-quotient, b, a);
    let error = if b < 0.0 { -rest } else { rest };
    SINGLE.round(to_odd(quotient, if error.is_nan() { 0.0 } else { error }), rounding(R))
}
fn sqrt_f32<const R: u8>(a: u64) -> u64 {
    let a = f64::from(single(a));
    let root = libm::sqrt(a);
    let rest = libm::fma(-root, root, a);
    SINGLE.round(to_odd(root, if rest.is_nan() { 0.0 } else { rest }), rounding(R))
}
fn fma_f32<const R: u8>(a: u64, b: u64, c: u64) -> u64 {
    let (a, b, c) = (f64::from(single(a)), f64::from(single(b)), f64::from(single(c)));
    if a * b + c == 0.0 && a * b == -c {
        return directed_sum::<R>(a * b, c);
    }
    SINGLE.round(fma_odd(a, b, c), rounding(R))
}

fn ap(a: u64) -> Double {
    Double::from_bits(a.into())
}
fn of_ap(value: rustc_apfloat::StatusAnd<Double>, operands: &[u64]) -> u64 {
    of_double(double(value.value.to_bits() as u64), operands)
}
fn add_f64<const R: u8>(a: u64, b: u64) -> u64 {
    of_ap(ap(a).add_r(ap(b), apfloat(R)), &[a, b])
}
fn sub_f64<const R: u8>(a: u64, b: u64) -> u64 {
    of_ap(ap(a).sub_r(ap(b), apfloat(R)), &[a, b])
}
fn mul_f64<const R: u8>(a: u64, b: u64) -> u64 {
    of_ap(ap(a).mul_r(ap(b), apfloat(R)), &[a, b])
}
fn div_f64<const R: u8>(a: u64, b: u64) -> u64 {
    of_ap(ap(a).div_r(ap(b), apfloat(R)), &[a, b])
}
fn fma_f64<const R: u8>(a: u64, b: u64, c: u64) -> u64 {
    of_ap(ap(a).mul_add_r(ap(b), ap(c), apfloat(R)), &[a, b, c])
}
/// The root to the nearest, and a step where the exact root lies on the other side.
fn sqrt_f64<const R: u8>(a: u64) -> u64 {
    let value = double(a);
    let root = libm::sqrt(value);
    if !root.is_finite() || root == 0.0 {
        return of_double(root, &[a]);
    }
    // Tiny numbers are scaled by a power of four, so that the remainder is exact.
    let (scaled, by) = if value < 1e-200 { (value * 2_f64.powi(600), 2_f64.powi(300)) } else { (value, 1.0) };
    let rest = libm::fma(-(root * by), root * by, scaled);
    let bits = root.to_bits();
    match rounding(R) {
        Rounding::Up if rest > 0.0 => bits + 1,
        Rounding::Zero | Rounding::Down if rest < 0.0 => bits - 1,
        _ => bits,
    }
}

macro_rules! rounded {
    ($rounding:expr, $nearest:expr, $directed:ident) => {
        Some(match $rounding {
            Rounding::Nearest => $nearest,
            Rounding::Zero => $directed::<0>,
            Rounding::Down => $directed::<1>,
            Rounding::Up => $directed::<2>,
            Rounding::NearestAway => return None,
        })
    };
}

/// The smaller; a number beats what is none; `-0` is smaller than `+0`.
fn min_f32(a: u64, b: u64) -> u64 {
    let (x, y) = (single(a), single(b));
    if x.is_nan() || y.is_nan() {
        return of_single(if x.is_nan() { y } else { x });
    }
    of_single(if x < y || (x == y && x.is_sign_negative()) { x } else { y })
}
fn max_f32(a: u64, b: u64) -> u64 {
    let (x, y) = (single(a), single(b));
    if x.is_nan() || y.is_nan() {
        return of_single(if x.is_nan() { y } else { x });
    }
    of_single(if x > y || (x == y && x.is_sign_positive()) { x } else { y })
}
fn min_f64(a: u64, b: u64) -> u64 {
    let (x, y) = (double(a), double(b));
    if x.is_nan() || y.is_nan() {
        return of_double(if x.is_nan() { y } else { x }, &[a, b]);
    }
    (if x < y || (x == y && x.is_sign_negative()) { x } else { y }).to_bits()
}
fn max_f64(a: u64, b: u64) -> u64 {
    let (x, y) = (double(a), double(b));
    if x.is_nan() || y.is_nan() {
        return of_double(if x.is_nan() { y } else { x }, &[a, b]);
    }
    (if x > y || (x == y && x.is_sign_positive()) { x } else { y }).to_bits()
}
/// With `.NaN`: what is no number wins.
fn min_nan_f32(a: u64, b: u64) -> u64 {
    if single(a).is_nan() || single(b).is_nan() { SINGLE.nan } else { min_f32(a, b) }
}
fn max_nan_f32(a: u64, b: u64) -> u64 {
    if single(a).is_nan() || single(b).is_nan() { SINGLE.nan } else { max_f32(a, b) }
}

/// `.xorsign.abs`: the minimum or maximum of the magnitudes, negative if one operand is. What is no number has no sign.
fn with_xor_of_signs(a: u64, b: u64, f: Binary) -> u64 {
    let result = f(a & 0x7fff_ffff, b & 0x7fff_ffff);
    if single(result).is_nan() { result } else { result | ((a ^ b) & 0x8000_0000) }
}

/// Arithmetic, rounded to the nearest where that matters.
pub(crate) fn binary(name: &str, ty: Type) -> Option<Binary> {
    binary_rounded(name, ty, Rounding::Nearest)
}

pub(crate) fn binary_rounded(name: &str, ty: Type, how: Rounding) -> Option<Binary> {
    match (name, ty) {
        ("add", Type::F32) => rounded!(how, |a, b| of_single(single(a) + single(b)), add_f32),
        ("sub", Type::F32) => rounded!(how, |a, b| of_single(single(a) - single(b)), sub_f32),
        ("mul", Type::F32) => rounded!(how, |a, b| of_single(single(a) * single(b)), mul_f32),
        ("div", Type::F32) => rounded!(how, |a, b| of_single(single(a) / single(b)), div_f32),
        ("add", Type::F64) => rounded!(how, |a, b| of_double(double(a) + double(b), &[a, b]), add_f64),
        ("sub", Type::F64) => rounded!(how, |a, b| of_double(double(a) - double(b), &[a, b]), sub_f64),
        ("mul", Type::F64) => rounded!(how, |a, b| of_double(double(a) * double(b), &[a, b]), mul_f64),
        ("div", Type::F64) => rounded!(how, |a, b| of_double(double(a) / double(b), &[a, b]), div_f64),
        ("min", Type::F32) => Some(min_f32),
        ("max", Type::F32) => Some(max_f32),
        ("min", Type::F64) => Some(min_f64),
        ("max", Type::F64) => Some(max_f64),
        ("min.NaN", Type::F32) => Some(min_nan_f32),
        ("max.NaN", Type::F32) => Some(max_nan_f32),
        ("min.xorsign", Type::F32) => Some(|a, b| with_xor_of_signs(a, b, min_f32)),
        ("max.xorsign", Type::F32) => Some(|a, b| with_xor_of_signs(a, b, max_f32)),
        ("min.NaN.xorsign", Type::F32) => Some(|a, b| with_xor_of_signs(a, b, min_nan_f32)),
        ("max.NaN.xorsign", Type::F32) => Some(|a, b| with_xor_of_signs(a, b, max_nan_f32)),
        // The magnitude of the second, the sign of the first.
        ("copysign", Type::F32) => Some(|a, b| (a & 0x8000_0000) | (b & 0x7fff_ffff)),
        ("copysign", Type::F64) => Some(|a, b| (a & 1 << 63) | (b & !(1 << 63))),
        (_, Type::F16 | Type::Bf16 | Type::F16x2 | Type::Bf16x2) => super::small::binary(name, ty),
        _ => None,
    }
}

pub(crate) fn fma(ty: Type, how: Rounding) -> Option<Ternary> {
    match ty {
        Type::F32 => rounded!(how, |a, b, c| of_single(single(a).mul_add(single(b), single(c))), fma_f32),
        Type::F64 => rounded!(how, |a, b, c| of_double(double(a).mul_add(double(b), double(c)), &[a, b, c]), fma_f64),
        _ => super::small::fma(ty),
    }
}

/// Functions that PTX defines up to an error only: here they are computed in double precision, and rounded once.
fn approximate(a: u64, f: fn(f64) -> f64) -> u64 {
    SINGLE.round(f(single(a).into()), Rounding::Nearest)
}

pub(crate) fn unary(name: &str, ty: Type) -> Option<Unary> {
    Some(match (name, ty) {
        // GPUs add zero: what is no number stays none, and has no sign to be changed.
        ("neg", Type::F32) => |a| if single(a).is_nan() { SINGLE.nan } else { a ^ 0x8000_0000 },
        ("neg", Type::F64) => |a| if double(a).is_nan() { a | QUIET } else { a ^ 1 << 63 },
        ("abs", Type::F32) => |a| if single(a).is_nan() { SINGLE.nan } else { a & 0x7fff_ffff },
        ("abs", Type::F64) => |a| if double(a).is_nan() { a | QUIET } else { a & !(1 << 63) },
        ("flush", Type::F32) => |a| if a & 0x7f80_0000 == 0 { a & 0x8000_0000 } else { a },
        ("saturate", Type::F32) => |a| {
            let value = single(a);
            of_single(if value > 0.0 { value.min(1.0) } else { 0.0 })
        },
        ("saturate", Type::F64) => |a| {
            let value = double(a);
            (if value > 0.0 { value.min(1.0) } else { 0.0 }).to_bits()
        },
        ("rcp.approx", Type::F32) => |a| approximate(a, |x| 1.0 / x),
        ("sqrt.approx", Type::F32) => |a| approximate(a, libm::sqrt),
        ("rsqrt.approx", Type::F32) => |a| approximate(a, |x| 1.0 / libm::sqrt(x)),
        ("sin.approx", Type::F32) => |a| approximate(a, libm::sin),
        ("cos.approx", Type::F32) => |a| approximate(a, libm::cos),
        ("lg2.approx", Type::F32) => |a| approximate(a, libm::log2),
        ("ex2.approx", Type::F32) => |a| approximate(a, libm::exp2),
        ("tanh.approx", Type::F32) => |a| approximate(a, libm::tanh),
        // The upper half of the result only; the lower one is zero.
        ("rcp.approx", Type::F64) => |a| of_double(1.0 / double(a), &[a]) & !0xffff_ffff,
        ("rsqrt.approx", Type::F64) => |a| of_double(1.0 / libm::sqrt(double(a)), &[a]) & !0xffff_ffff,
        (_, Type::F16 | Type::Bf16 | Type::F16x2 | Type::Bf16x2) => return super::small::unary(name, ty),
        _ => return None,
    })
}

pub(crate) fn root(ty: Type, how: Rounding) -> Option<Unary> {
    match ty {
        Type::F32 => rounded!(how, |a| of_single(libm::sqrtf(single(a))), sqrt_f32),
        Type::F64 => rounded!(how, |a| of_double(libm::sqrt(double(a)), &[a]), sqrt_f64),
        _ => None,
    }
}

/// Comparisons: `lt` is false where an operand is no number, `ltu` is true there.
fn compare<const F32: bool>(name: &str) -> Option<Binary> {
    fn pair<const F32: bool>(a: u64, b: u64) -> (f64, f64) {
        if F32 { (single(a).into(), single(b).into()) } else { (double(a), double(b)) }
    }
    use std::cmp::Ordering::{Equal, Greater, Less};
    macro_rules! holds {
        ($($order:pat_param)|+) => {
            |a, b| {
                let (x, y) = pair::<F32>(a, b);
                u64::from(matches!(x.partial_cmp(&y), $($order)|+))
            }
        };
    }
    Some(match name {
        "eq" => holds!(Some(Equal)),
        "ne" => holds!(Some(Less | Greater)),
        "lt" => holds!(Some(Less)),
        "le" => holds!(Some(Less | Equal)),
        "gt" => holds!(Some(Greater)),
        "ge" => holds!(Some(Greater | Equal)),
        "equ" => holds!(None | Some(Equal)),
        "neu" => holds!(None | Some(Less | Greater)),
        "ltu" => holds!(None | Some(Less)),
        "leu" => holds!(None | Some(Less | Equal)),
        "gtu" => holds!(None | Some(Greater)),
        "geu" => holds!(None | Some(Greater | Equal)),
        "num" => |a, b| u64::from(!pair::<F32>(a, b).0.is_nan() && !pair::<F32>(a, b).1.is_nan()),
        "nan" => |a, b| u64::from(pair::<F32>(a, b).0.is_nan() || pair::<F32>(a, b).1.is_nan()),
        _ => return None,
    })
}

pub(crate) fn comparison(name: &str, ty: Type) -> Option<Binary> {
    match ty {
        Type::F32 => compare::<true>(name),
        Type::F64 => compare::<false>(name),
        _ => None,
    }
}

/// `testp`: what kind of number it is.
pub(crate) fn test(name: &str, ty: Type) -> Option<Unary> {
    macro_rules! is {
        ($convert:ident, $value:ident, $condition:expr) => {
            |a| {
                let $value = $convert(a);
                u64::from($condition)
            }
        };
    }
    Some(match (name, ty) {
        ("finite", Type::F32) => is!(single, x, x.is_finite()),
        ("infinite", Type::F32) => is!(single, x, x.is_infinite()),
        ("number", Type::F32) => is!(single, x, !x.is_nan()),
        ("notanumber", Type::F32) => is!(single, x, x.is_nan()),
        ("normal", Type::F32) => is!(single, x, x.is_normal() || x == 0.0), // zero counts as normal
        ("subnormal", Type::F32) => is!(single, x, x.is_subnormal()),
        ("finite", Type::F64) => is!(double, x, x.is_finite()),
        ("infinite", Type::F64) => is!(double, x, x.is_infinite()),
        ("number", Type::F64) => is!(double, x, !x.is_nan()),
        ("notanumber", Type::F64) => is!(double, x, x.is_nan()),
        ("normal", Type::F64) => is!(double, x, x.is_normal() || x == 0.0),
        ("subnormal", Type::F64) => is!(double, x, x.is_subnormal()),
        _ => return None,
    })
}
