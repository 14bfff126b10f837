//! Arithmetic on registers: functions of 64-bit words, chosen when an instruction is decoded.
//!
//! A value lies in the low bits of its register, the bits above are zero. Results are bit-exact where PTX defines them.

pub(crate) mod bits;
pub(crate) mod convert;
pub(crate) mod eight;
pub(crate) mod float;
pub(crate) mod fma;
pub(crate) mod fragment;
pub(crate) mod group;
pub(crate) mod integer;
pub(crate) mod matrix;
pub(crate) mod packed;
pub(crate) mod round;
pub(crate) mod small;
#[cfg(test)]
mod tests;
pub(crate) mod tf32;
pub(crate) mod video;

use crate::types::Type;
use crate::world::AtomicOp;

/// The value that an atomic leaves behind.
pub(crate) fn atomic(op: AtomicOp, ty: Type, old: u64, b: u64, c: u64) -> u64 {
    let or_old = |name: &str| integer::binary(name, ty).map_or(old, |f| f(old, b));
    match op {
        AtomicOp::Add if ty.is_float() => float::binary("add", ty).map_or(old, |f| f(old, b)),
        AtomicOp::Min if ty.is_float() => float::binary("min", ty).map_or(old, |f| f(old, b)),
        AtomicOp::Max if ty.is_float() => float::binary("max", ty).map_or(old, |f| f(old, b)),
        AtomicOp::Add => or_old("add"),
        AtomicOp::Min => or_old("min"),
        AtomicOp::Max => or_old("max"),
        AtomicOp::Inc if old >= b => 0,
        AtomicOp::Inc => old + 1,
        AtomicOp::Dec if old == 0 || old > b => b,
        AtomicOp::Dec => old - 1,
        AtomicOp::And => old & b,
        AtomicOp::Or => old | b,
        AtomicOp::Xor => old ^ b,
        AtomicOp::Exchange => b & ty.mask(),
        AtomicOp::CompareSwap if old == b & ty.mask() => c & ty.mask(),
        AtomicOp::CompareSwap => old,
    }
}
