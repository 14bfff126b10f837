//! Bit fields, permutations, counts, shifts of pairs.

use crate::op::{Binary, Quaternary, Ternary, Unary};
use crate::types::{Type, mask};

fn clz<const BITS: u32>(a: u64) -> u64 {
    u64::from((a & mask(BITS)).leading_zeros() - (64 - BITS))
}
fn brev<const BITS: u32>(a: u64) -> u64 {
    a.reverse_bits() >> (64 - BITS)
}
/// The position of the most significant bit that is not a sign; all ones if there is none.
fn bfind<const BITS: u32, const SIGNED: bool>(a: u64) -> u64 {
    let negative = SIGNED && a >> (BITS - 1) & 1 == 1;
    let bits = if negative { !a } else { a } & mask(BITS);
    if bits == 0 { 0xffff_ffff } else { u64::from(63 - bits.leading_zeros()) }
}
/// The left shift that brings that bit to the top.
fn bfind_shift<const BITS: u32, const SIGNED: bool>(a: u64) -> u64 {
    match bfind::<BITS, SIGNED>(a) {
        0xffff_ffff => 0xffff_ffff,
        position => u64::from(BITS - 1) - position,
    }
}

pub(crate) fn unary(name: &str, ty: Type) -> Option<Unary> {
    Some(match (name, ty) {
        ("popc", Type::B32) => |a| u64::from((a as u32).count_ones()),
        ("popc", Type::B64) => |a| u64::from(a.count_ones()),
        ("clz", Type::B32) => clz::<32>,
        ("clz", Type::B64) => clz::<64>,
        ("brev", Type::B32) => brev::<32>,
        ("brev", Type::B64) => brev::<64>,
        ("bfind", Type::U32) => bfind::<32, false>,
        ("bfind", Type::U64) => bfind::<64, false>,
        ("bfind", Type::S32) => bfind::<32, true>,
        ("bfind", Type::S64) => bfind::<64, true>,
        ("bfind.shiftamt", Type::U32) => bfind_shift::<32, false>,
        ("bfind.shiftamt", Type::U64) => bfind_shift::<64, false>,
        ("bfind.shiftamt", Type::S32) => bfind_shift::<32, true>,
        ("bfind.shiftamt", Type::S64) => bfind_shift::<64, true>,
        _ => return None,
    })
}

/// Position and length of a field are bytes.
fn field(position: u64, length: u64) -> (u32, u32) {
    (position as u32 & 0xff, length as u32 & 0xff)
}

fn bfe<const BITS: u32, const SIGNED: bool>(a: u64, position: u64, length: u64) -> u64 {
    let (position, length) = field(position, length);
    if length == 0 {
        return 0;
    }
    // Bits beyond the top are signs of the field's last bit that exists, or zero.
    let sign = if SIGNED { a >> (position + length - 1).min(BITS - 1) & 1 } else { 0 };
    let taken = if position >= BITS { 0 } else { (a & mask(BITS)) >> position & mask(length) };
    let present = length.min(BITS.saturating_sub(position));
    let above = if sign == 1 { !mask(present) } else { 0 };
    (taken | above) & mask(BITS)
}
fn bfi<const BITS: u32>(a: u64, b: u64, position: u64, length: u64) -> u64 {
    let (position, length) = field(position, length);
    if position >= BITS {
        return b & mask(BITS);
    }
    let place = mask(length) << position & mask(BITS);
    (b & mask(BITS) & !place) | (a << position & place)
}

/// Eight bytes of `a` and `b`, of which each nibble of `c` selects one; its top bit selects that byte's sign, eight times.
fn prmt(a: u64, b: u64, c: u64) -> u64 {
    choose(a, b, [0, 4, 8, 12].map(|shift| c >> shift & 0xf))
}
fn choose(a: u64, b: u64, selectors: [u64; 4]) -> u64 {
    let bytes = (a & 0xffff_ffff) | b << 32;
    selectors.iter().enumerate().fold(0, |all, (place, selector)| {
        let byte = bytes >> ((selector & 7) * 8) & 0xff;
        let byte = if selector & 8 == 0 { byte } else { (byte >> 7) * 0xff };
        all | byte << (place * 8)
    })
}
fn prmt_mode<const MODE: u8>(a: u64, b: u64, c: u64) -> u64 {
    let n = c & 3;
    let selectors = match MODE {
        0 => [n, n + 1, n + 2, n + 3],                                     // f4e
        1 => [n, (n + 8 - 1) & 7, (n + 8 - 2) & 7, (n + 8 - 3) & 7],       // b4e
        2 => [n; 4],                                                       // rc8
        3 => [n, n.max(1), n.max(2), 3],                                   // ecl
        4 => [0, n.min(1), n.min(2), n],                                   // ecr
        _ => [(n & 1) * 2, (n & 1) * 2 + 1, (n & 1) * 2, (n & 1) * 2 + 1], // rc16
    };
    choose(a, b, selectors)
}

fn shift_left(a: u64, b: u64, amount: u32) -> u64 {
    ((b << 32 | (a & 0xffff_ffff)) << amount) >> 32
}
fn shift_right(a: u64, b: u64, amount: u32) -> u64 {
    (b << 32 | (a & 0xffff_ffff)) >> amount & 0xffff_ffff
}

/// Sums of products of bytes.
fn dp4a<const A: bool, const B: bool>(a: u64, b: u64, c: u64) -> u64 {
    let byte = |word: u64, place: u32, signed: bool| {
        let byte = (word >> (place * 8)) as u8;
        if signed { i64::from(byte.cast_signed()) } else { i64::from(byte) }
    };
    let sum = (0..4).map(|place| byte(a, place, A) * byte(b, place, B)).sum::<i64>();
    u64::from((c as u32).wrapping_add(sum as u32))
}
/// Sums of products of halves of `a` with the lower (or upper) bytes of `b`.
fn dp2a<const A: bool, const B: bool, const HIGH: u32>(a: u64, b: u64, c: u64) -> u64 {
    let half = |place: u32| {
        let half = (a >> (place * 16)) as u16;
        if A { i64::from(half.cast_signed()) } else { i64::from(half) }
    };
    let byte = |place: u32| {
        let byte = (b >> (HIGH * 16 + place * 8)) as u8;
        if B { i64::from(byte.cast_signed()) } else { i64::from(byte) }
    };
    let sum = half(0) * byte(0) + half(1) * byte(1);
    u64::from((c as u32).wrapping_add(sum as u32))
}

/// `fns`: where the `offset`th bit that is set lies, counted from the bit `base` on: upwards, or for a negative offset downwards. All ones if there is
/// none. PTX leaves open what a base beyond the word means: here nothing is found.
fn nth_bit(mask: u64, base: u64, offset: u64) -> u64 {
    let (mask, base, offset) = (mask as u32, base as u32, (offset as u32).cast_signed());
    let is_set = |place: &u32| mask >> place & 1 == 1;
    let skipped = (offset.unsigned_abs() as usize).saturating_sub(1);
    let found = match offset {
        _ if base > 31 => None,
        0 => Some(base).filter(is_set),
        1.. => (base..32).filter(is_set).nth(skipped),
        _ => (0..=base).rev().filter(is_set).nth(skipped),
    };
    found.unwrap_or(u32::MAX).into()
}

pub(crate) fn ternary(name: &str, ty: Type) -> Option<Ternary> {
    Some(match (name, ty) {
        ("bfe", Type::U32) => bfe::<32, false>,
        ("bfe", Type::U64) => bfe::<64, false>,
        ("bfe", Type::S32) => bfe::<32, true>,
        ("bfe", Type::S64) => bfe::<64, true>,
        ("fns", Type::B32) => nth_bit,
        ("prmt", Type::B32) => prmt,
        ("prmt.f4e", Type::B32) => prmt_mode::<0>,
        ("prmt.b4e", Type::B32) => prmt_mode::<1>,
        ("prmt.rc8", Type::B32) => prmt_mode::<2>,
        ("prmt.ecl", Type::B32) => prmt_mode::<3>,
        ("prmt.ecr", Type::B32) => prmt_mode::<4>,
        ("prmt.rc16", Type::B32) => prmt_mode::<5>,
        ("shf.l.wrap", Type::B32) => |a, b, c| shift_left(a, b, c as u32 & 31),
        ("shf.l.clamp", Type::B32) => |a, b, c| shift_left(a, b, (c as u32).min(32)),
        ("shf.r.wrap", Type::B32) => |a, b, c| shift_right(a, b, c as u32 & 31),
        ("shf.r.clamp", Type::B32) => |a, b, c| shift_right(a, b, (c as u32).min(32)),
        _ => return None,
    })
}

/// A mask of `b` bits from bit `a` on.
fn bmsk(a: u32, b: u32) -> u64 {
    mask(b) << a & 0xffff_ffff
}
/// The low bits as a number, with or without sign.
fn szext(a: u64, bits: u32, signed: bool) -> u64 {
    let low = a & mask(bits);
    let negative = signed && bits > 0 && low >> (bits - 1) & 1 == 1;
    (if negative { low | !mask(bits) } else { low }) & 0xffff_ffff
}

pub(crate) fn binary(name: &str, ty: Type) -> Option<Binary> {
    Some(match (name, ty) {
        ("bmsk.clamp", Type::B32) => |a, b| bmsk((a as u32).min(32), (b as u32).min(32)),
        ("bmsk.wrap", Type::B32) => |a, b| bmsk(a as u32 & 31, b as u32 & 31),
        ("szext.clamp", Type::U32) => |a, b| szext(a, (b as u32).min(32), false),
        ("szext.clamp", Type::S32) => |a, b| szext(a, (b as u32).min(32), true),
        ("szext.wrap", Type::U32) => |a, b| szext(a, b as u32 & 31, false),
        ("szext.wrap", Type::S32) => |a, b| szext(a, b as u32 & 31, true),
        _ => return None,
    })
}

/// By the signs of both factors.
pub(crate) fn dot(name: &str, a: bool, b: bool) -> Option<Ternary> {
    Some(match (name, a, b) {
        ("dp4a", false, false) => dp4a::<false, false>,
        ("dp4a", false, true) => dp4a::<false, true>,
        ("dp4a", true, false) => dp4a::<true, false>,
        ("dp4a", true, true) => dp4a::<true, true>,
        ("dp2a.lo", false, false) => dp2a::<false, false, 0>,
        ("dp2a.lo", false, true) => dp2a::<false, true, 0>,
        ("dp2a.lo", true, false) => dp2a::<true, false, 0>,
        ("dp2a.lo", true, true) => dp2a::<true, true, 0>,
        ("dp2a.hi", false, false) => dp2a::<false, false, 1>,
        ("dp2a.hi", false, true) => dp2a::<false, true, 1>,
        ("dp2a.hi", true, false) => dp2a::<true, false, 1>,
        ("dp2a.hi", true, true) => dp2a::<true, true, 1>,
        _ => return None,
    })
}

/// Any function of three bits, by its table.
fn lop3(a: u64, b: u64, c: u64, table: u64) -> u64 {
    (0..8).filter(|row| table >> row & 1 == 1).fold(0, |all, row| {
        let pick = |word: u64, bit: u64| if row & bit == 0 { !word } else { word };
        all | (pick(a, 4) & pick(b, 2) & pick(c, 1))
    }) & 0xffff_ffff
}

pub(crate) fn quaternary(name: &str, ty: Type) -> Option<Quaternary> {
    Some(match (name, ty) {
        ("bfi", Type::B32) => bfi::<32>,
        ("bfi", Type::B64) => bfi::<64>,
        ("lop3", Type::B32) => lop3,
        _ => return None,
    })
}
