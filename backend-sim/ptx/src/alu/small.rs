//! Numbers of 16 bits: half precision and bfloat16, alone and in pairs.
//!
//! They are computed in double precision, which holds every product exactly, and rounded to odd before they are rounded to their
//! format: so each result is rounded once.

use super::round::{BFLOAT, Format, HALF, Rounding, fma_odd, to_odd, two_sum};
use crate::op::{Binary, Ternary, Unary};
use crate::types::Type;

const fn format(bfloat: bool) -> Format {
    if bfloat { BFLOAT } else { HALF }
}
fn value<const B: bool>(bits: u64) -> f64 {
    format(B).to_f64(bits & 0xffff)
}
fn bits<const B: bool>(value: f64) -> u64 {
    format(B).round(value, Rounding::Nearest)
}

fn sum(a: f64, b: f64) -> f64 {
    let (sum, error) = two_sum(a, b);
    to_odd(sum, if error.is_nan() { 0.0 } else { error })
}
fn add<const B: bool>(a: u64, b: u64) -> u64 {
    bits::<B>(sum(value::<B>(a), value::<B>(b)))
}
fn sub<const B: bool>(a: u64, b: u64) -> u64 {
    bits::<B>(sum(value::<B>(a), -value::<B>(b)))
}
fn mul<const B: bool>(a: u64, b: u64) -> u64 {
    bits::<B>(value::<B>(a) * value::<B>(b))
}
fn fma_one<const B: bool>(a: u64, b: u64, c: u64) -> u64 {
    let (a, b, c) = (value::<B>(a), value::<B>(b), value::<B>(c));
    bits::<B>(if a * b == -c { a * b + c } else { fma_odd(a, b, c) })
}
fn fma_relu<const B: bool>(a: u64, b: u64, c: u64) -> u64 {
    let result = fma_one::<B>(a, b, c);
    if result & 0x8000 != 0 { 0 } else { result }
}
fn min<const B: bool>(a: u64, b: u64) -> u64 {
    let (x, y) = (value::<B>(a), value::<B>(b));
    match (x.is_nan(), y.is_nan()) {
        (true, true) => format(B).nan,
        (true, false) => b & 0xffff,
        (false, true) => a & 0xffff,
        _ => (if x < y || (x == y && x.is_sign_negative()) { a } else { b }) & 0xffff,
    }
}
fn max<const B: bool>(a: u64, b: u64) -> u64 {
    let (x, y) = (value::<B>(a), value::<B>(b));
    match (x.is_nan(), y.is_nan()) {
        (true, true) => format(B).nan,
        (true, false) => b & 0xffff,
        (false, true) => a & 0xffff,
        _ => (if x > y || (x == y && x.is_sign_positive()) { a } else { b }) & 0xffff,
    }
}
fn min_nan<const B: bool>(a: u64, b: u64) -> u64 {
    if value::<B>(a).is_nan() || value::<B>(b).is_nan() { format(B).nan } else { min::<B>(a, b) }
}
fn max_nan<const B: bool>(a: u64, b: u64) -> u64 {
    if value::<B>(a).is_nan() || value::<B>(b).is_nan() { format(B).nan } else { max::<B>(a, b) }
}
/// As `with_xor_of_signs` of single precision.
fn with_xor_of_signs<const B: bool>(a: u64, b: u64, f: Binary) -> u64 {
    let result = f(a & 0x7fff, b & 0x7fff);
    if value::<B>(result).is_nan() { result } else { result | ((a ^ b) & 0x8000) }
}
fn min_xorsign<const B: bool>(a: u64, b: u64) -> u64 {
    with_xor_of_signs::<B>(a, b, min::<B>)
}
fn max_xorsign<const B: bool>(a: u64, b: u64) -> u64 {
    with_xor_of_signs::<B>(a, b, max::<B>)
}
fn min_nan_xorsign<const B: bool>(a: u64, b: u64) -> u64 {
    with_xor_of_signs::<B>(a, b, min_nan::<B>)
}
fn max_nan_xorsign<const B: bool>(a: u64, b: u64) -> u64 {
    with_xor_of_signs::<B>(a, b, max_nan::<B>)
}
fn neg<const B: bool>(a: u64) -> u64 {
    if value::<B>(a).is_nan() { format(B).nan } else { (a ^ 0x8000) & 0xffff }
}
fn abs<const B: bool>(a: u64) -> u64 {
    if value::<B>(a).is_nan() { format(B).nan } else { a & 0x7fff }
}
fn tanh<const B: bool>(a: u64) -> u64 {
    bits::<B>(libm::tanh(value::<B>(a)))
}
fn ex2<const B: bool>(a: u64) -> u64 {
    bits::<B>(libm::exp2(value::<B>(a)))
}
fn saturate<const B: bool>(a: u64) -> u64 {
    let value = value::<B>(a);
    bits::<B>(if value > 0.0 { value.min(1.0) } else { 0.0 })
}
fn flush(a: u64) -> u64 {
    if a & 0x7c00 == 0 { a & 0x8000 } else { a & 0xffff }
}

/// The same for each half of a register.
macro_rules! pairs {
    ($f:expr, $a:ident) => {
        |$a| $f($a & 0xffff) | $f($a >> 16 & 0xffff) << 16
    };
    ($f:expr, $a:ident, $b:ident) => {
        |$a, $b| $f($a & 0xffff, $b & 0xffff) | $f($a >> 16 & 0xffff, $b >> 16 & 0xffff) << 16
    };
    ($f:expr, $a:ident, $b:ident, $c:ident) => {
        |$a, $b, $c| {
            $f($a & 0xffff, $b & 0xffff, $c & 0xffff)
                | $f($a >> 16 & 0xffff, $b >> 16 & 0xffff, $c >> 16 & 0xffff) << 16
        }
    };
}
pub(crate) use pairs;

/// One function in all four types.
macro_rules! each {
    ($ty:expr, $f:ident, $($argument:ident),+) => {
        match $ty {
            Type::F16 => $f::<false>,
            Type::Bf16 => $f::<true>,
            Type::F16x2 => pairs!($f::<false>, $($argument),+),
            Type::Bf16x2 => pairs!($f::<true>, $($argument),+),
            _ => return None,
        }
    };
}

pub(super) fn binary(name: &str, ty: Type) -> Option<Binary> {
    Some(match name {
        "add" => each!(ty, add, a, b),
        "sub" => each!(ty, sub, a, b),
        "mul" => each!(ty, mul, a, b),
        "min" => each!(ty, min, a, b),
        "max" => each!(ty, max, a, b),
        "min.NaN" => each!(ty, min_nan, a, b),
        "max.NaN" => each!(ty, max_nan, a, b),
        "min.xorsign" => each!(ty, min_xorsign, a, b),
        "max.xorsign" => each!(ty, max_xorsign, a, b),
        "min.NaN.xorsign" => each!(ty, min_nan_xorsign, a, b),
        "max.NaN.xorsign" => each!(ty, max_nan_xorsign, a, b),
        _ => return None,
    })
}

pub(super) fn fma(ty: Type) -> Option<Ternary> {
    Some(each!(ty, fma_one, a, b, c))
}

pub(crate) fn fma_with_relu(ty: Type) -> Option<Ternary> {
    Some(each!(ty, fma_relu, a, b, c))
}

pub(super) fn unary(name: &str, ty: Type) -> Option<Unary> {
    Some(match name {
        "neg" => each!(ty, neg, a),
        "abs" => each!(ty, abs, a),
        "tanh.approx" => each!(ty, tanh, a),
        "ex2.approx" => each!(ty, ex2, a),
        "saturate" => each!(ty, saturate, a),
        "flush" if ty == Type::F16 => flush,
        "flush" if ty == Type::F16x2 => pairs!(flush, a),
        _ => return None,
    })
}
