//! Two integers of 16 bits in a register, and the pieces that vectors of registers are packed from.

use super::small::pairs;
use crate::op::{Binary, Unary};
use crate::types::Type;

fn add(a: u64, b: u64) -> u64 {
    a.wrapping_add(b) & 0xffff
}
fn min_unsigned(a: u64, b: u64) -> u64 {
    a.min(b)
}
fn max_unsigned(a: u64, b: u64) -> u64 {
    a.max(b)
}
fn min_signed(a: u64, b: u64) -> u64 {
    if (a as i16) < b as i16 { a } else { b }
}
fn max_signed(a: u64, b: u64) -> u64 {
    if (a as i16) > b as i16 { a } else { b }
}

pub(crate) fn binary(name: &str, ty: Type) -> Option<Binary> {
    Some(match (name, ty) {
        ("add", Type::U16x2 | Type::S16x2) => pairs!(add, a, b),
        ("min", Type::U16x2) => pairs!(min_unsigned, a, b),
        ("max", Type::U16x2) => pairs!(max_unsigned, a, b),
        ("min", Type::S16x2) => pairs!(min_signed, a, b),
        ("max", Type::S16x2) => pairs!(max_signed, a, b),
        _ => return None,
    })
}

/// One piece of `bits` bits out of a register: the first, second, third or fourth.
pub(crate) fn extract(bits: u32, place: usize) -> Option<Unary> {
    Some(match (bits, place) {
        (8, 0) => |a| a & 0xff,
        (8, 1) => |a| a >> 8 & 0xff,
        (8, 2) => |a| a >> 16 & 0xff,
        (8, 3) => |a| a >> 24 & 0xff,
        (16, 0) => |a| a & 0xffff,
        (16, 1) => |a| a >> 16 & 0xffff,
        (16, 2) => |a| a >> 32 & 0xffff,
        (16, 3) => |a| a >> 48 & 0xffff,
        (32, 0) => |a| a & 0xffff_ffff,
        (32, 1) => |a| a >> 32,
        _ => return None,
    })
}

/// Puts `b` above `a`'s lower bits: the second piece onto the first, and so on.
pub(crate) fn insert(bits: u32, place: usize) -> Option<Binary> {
    Some(match (bits, place) {
        (8, 1) => |a, b| (a & 0xff) | (b & 0xff) << 8,
        (8, 2) => |a, b| (a & 0xffff) | (b & 0xff) << 16,
        (8, 3) => |a, b| (a & 0xff_ffff) | (b & 0xff) << 24,
        (16, 1) => |a, b| (a & 0xffff) | (b & 0xffff) << 16,
        (16, 2) => |a, b| (a & 0xffff_ffff) | (b & 0xffff) << 32,
        (16, 3) => |a, b| (a & 0xffff_ffff_ffff) | (b & 0xffff) << 48,
        (32, 1) => |a, b| (a & 0xffff_ffff) | b << 32,
        _ => return None,
    })
}
