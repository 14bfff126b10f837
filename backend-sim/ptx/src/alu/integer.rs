//! Integer arithmetic and comparison, at every width, with and without sign.

use crate::op::{Binary, Carry, Ternary, Unary};
use crate::types::Type;

/// A number of an integer type, in the low bits of a register.
trait Int: Copy + Ord {
    const BITS: u32;
    const MIN: Self;
    const MAX: Self;
    fn of(register: u64) -> Self;
    fn to(self) -> u64;
    fn wide(self) -> i128;
    fn narrow(wide: i128) -> Self;
}

macro_rules! int {
    ($($ty:ident $unsigned:ident)*) => { $(
        impl Int for $ty {
            const BITS: u32 = $ty::BITS;
            const MIN: Self = $ty::MIN;
            const MAX: Self = $ty::MAX;
            fn of(register: u64) -> Self { register as $ty }
            fn to(self) -> u64 { u64::from(self as $unsigned) }
            fn wide(self) -> i128 { i128::from(self) }
            fn narrow(wide: i128) -> Self { wide as $ty }
        }
    )* };
}
int!(u8 u8 u16 u16 u32 u32 u64 u64 i8 u8 i16 u16 i32 u32 i64 u64);

/// The function `$f` for the type, if it is one of integers (or of bits, which are unsigned).
macro_rules! for_type {
    ($ty:expr, $f:ident) => {
        Some(match $ty {
            Type::U16 | Type::B16 => $f::<u16>,
            Type::U32 | Type::B32 => $f::<u32>,
            Type::U64 | Type::B64 => $f::<u64>,
            Type::S16 => $f::<i16>,
            Type::S32 => $f::<i32>,
            Type::S64 => $f::<i64>,
            _ => return None,
        })
    };
}

fn add<T: Int>(a: u64, b: u64) -> u64 {
    T::of(a.wrapping_add(b)).to()
}
fn sub<T: Int>(a: u64, b: u64) -> u64 {
    T::of(a.wrapping_sub(b)).to()
}
fn mul_lo<T: Int>(a: u64, b: u64) -> u64 {
    T::of(a.wrapping_mul(b)).to()
}
fn mul_hi<T: Int>(a: u64, b: u64) -> u64 {
    // The product of two numbers of 64 bits without sign needs all 128 bits; as i128 they are the same ones.
    T::narrow(T::of(a).wide().wrapping_mul(T::of(b).wide()) >> T::BITS).to()
}
fn mul_wide<T: Int>(a: u64, b: u64) -> u64 {
    let product = T::of(a).wide().wrapping_mul(T::of(b).wide());
    if T::BITS == 16 { u64::from(product as u32) } else { product as u64 }
}
/// Division by zero gives all ones, as GPUs do; PTX leaves it open. The quotient that does not fit wraps.
fn div<T: Int>(a: u64, b: u64) -> u64 {
    let divisor = T::of(b).wide();
    if divisor == 0 { T::of(u64::MAX).to() } else { T::narrow(T::of(a).wide() / divisor).to() }
}
/// The remainder has the dividend's sign. Of a division by zero it is all ones, as on GPUs; PTX leaves it open.
fn rem<T: Int>(a: u64, b: u64) -> u64 {
    let divisor = T::of(b).wide();
    if divisor == 0 { T::of(u64::MAX).to() } else { T::narrow(T::of(a).wide() % divisor).to() }
}
fn min<T: Int>(a: u64, b: u64) -> u64 {
    T::of(a).min(T::of(b)).to()
}
fn max<T: Int>(a: u64, b: u64) -> u64 {
    T::of(a).max(T::of(b)).to()
}
fn neg<T: Int>(a: u64) -> u64 {
    T::of(a.wrapping_neg()).to()
}
fn abs<T: Int>(a: u64) -> u64 {
    T::narrow(T::of(a).wide().abs()).to()
}
fn not<T: Int>(a: u64) -> u64 {
    T::of(!a).to()
}
fn add_saturating<T: Int>(a: u64, b: u64) -> u64 {
    clamp::<T>(T::of(a).wide() + T::of(b).wide())
}
fn sub_saturating<T: Int>(a: u64, b: u64) -> u64 {
    clamp::<T>(T::of(a).wide() - T::of(b).wide())
}
fn clamp<T: Int>(wide: i128) -> u64 {
    T::narrow(wide.clamp(T::MIN.wide(), T::MAX.wide())).to()
}
/// A shift by the width or more gives zero, or for signed numbers all signs: the amount is not taken modulo the width.
fn shl<T: Int>(a: u64, b: u64) -> u64 {
    let amount = b as u32;
    if amount >= T::BITS { 0 } else { T::of(a << amount).to() }
}
fn shr<T: Int>(a: u64, b: u64) -> u64 {
    let amount = (b as u32).min(T::BITS);
    T::narrow(T::of(a).wide() >> amount).to()
}
fn sad<T: Int>(a: u64, b: u64, c: u64) -> u64 {
    T::of(c.wrapping_add((T::of(a).wide() - T::of(b).wide()).unsigned_abs() as u64)).to()
}
fn mad_lo<T: Int>(a: u64, b: u64, c: u64) -> u64 {
    T::of(a.wrapping_mul(b).wrapping_add(c)).to()
}
fn mad_hi<T: Int>(a: u64, b: u64, c: u64) -> u64 {
    T::of(mul_hi::<T>(a, b).wrapping_add(c)).to()
}
fn mad_wide<T: Int>(a: u64, b: u64, c: u64) -> u64 {
    let sum = mul_wide::<T>(a, b).wrapping_add(c);
    if T::BITS == 16 { u64::from(sum as u32) } else { sum }
}
fn mad_hi_saturating(a: u64, b: u64, c: u64) -> u64 {
    clamp::<i32>(i32::of(mul_hi::<i32>(a, b)).wide() + i32::of(c).wide())
}

fn eq<T: Int>(a: u64, b: u64) -> u64 {
    u64::from(T::of(a) == T::of(b))
}
fn ne<T: Int>(a: u64, b: u64) -> u64 {
    u64::from(T::of(a) != T::of(b))
}
fn lt<T: Int>(a: u64, b: u64) -> u64 {
    u64::from(T::of(a) < T::of(b))
}
fn le<T: Int>(a: u64, b: u64) -> u64 {
    u64::from(T::of(a) <= T::of(b))
}
fn gt<T: Int>(a: u64, b: u64) -> u64 {
    u64::from(T::of(a) > T::of(b))
}
fn ge<T: Int>(a: u64, b: u64) -> u64 {
    u64::from(T::of(a) >= T::of(b))
}

/// Carries: of addition the carry out; of subtraction the borrow.
fn add_carry<T: Int>(a: u64, b: u64, _: u64, carry: bool) -> (u64, bool) {
    let sum = u128::from(a & mask::<T>()) + u128::from(b & mask::<T>()) + u128::from(carry);
    (sum as u64 & mask::<T>(), sum >> T::BITS != 0)
}
fn sub_borrow<T: Int>(a: u64, b: u64, _: u64, borrow: bool) -> (u64, bool) {
    let difference = i128::from(a & mask::<T>()) - i128::from(b & mask::<T>()) - i128::from(borrow);
    (difference as u64 & mask::<T>(), difference < 0)
}
fn mad_lo_carry<T: Int>(a: u64, b: u64, c: u64, carry: bool) -> (u64, bool) {
    add_carry::<T>(mul_lo::<T>(a, b), c, 0, carry)
}
fn mad_hi_carry<T: Int>(a: u64, b: u64, c: u64, carry: bool) -> (u64, bool) {
    add_carry::<T>(mul_hi::<T>(a, b), c, 0, carry)
}
fn mask<T: Int>() -> u64 {
    crate::types::mask(T::BITS)
}

pub(crate) fn unary(name: &str, ty: Type) -> Option<Unary> {
    match name {
        "neg" if ty.is_signed() => for_type!(ty, neg),
        "abs" if ty.is_signed() => for_type!(ty, abs),
        "not" if ty == Type::Pred => Some(|a| a ^ 1),
        "not" => for_type!(ty, not),
        _ => None,
    }
}

/// `add`, `mul.hi`, `setp.lt`: by opcode and, where it matters, one modifier.
pub(crate) fn binary(name: &str, ty: Type) -> Option<Binary> {
    match name {
        "and" if ty == Type::Pred => Some(|a, b| a & b),
        "or" if ty == Type::Pred => Some(|a, b| a | b),
        "xor" if ty == Type::Pred => Some(|a, b| a ^ b),
        "and" if is_bits(ty) => Some(|a, b| a & b),
        "or" if is_bits(ty) => Some(|a, b| a | b),
        "xor" if is_bits(ty) => Some(|a, b| a ^ b),
        "shl" if is_bits(ty) => for_type!(ty, shl),
        "shr" => for_type!(ty, shr),
        "add" => for_type!(ty, add),
        "sub" => for_type!(ty, sub),
        "mul.lo" => for_type!(ty, mul_lo),
        "mul.hi" => for_type!(ty, mul_hi),
        "mul.wide" if ty.bits() < 64 => for_type!(ty, mul_wide),
        "div" => for_type!(ty, div),
        "rem" => for_type!(ty, rem),
        "min" => for_type!(ty, min),
        "max" => for_type!(ty, max),
        "add.sat" if ty == Type::S32 => Some(add_saturating::<i32>),
        "sub.sat" if ty == Type::S32 => Some(sub_saturating::<i32>),
        "eq" => for_type!(ty, eq),
        "ne" => for_type!(ty, ne),
        "lt" => for_type!(ty, lt),
        "le" => for_type!(ty, le),
        "gt" => for_type!(ty, gt),
        "ge" => for_type!(ty, ge),
        // Comparisons that say that they are without sign.
        "lo" if !ty.is_signed() => for_type!(ty, lt),
        "ls" if !ty.is_signed() => for_type!(ty, le),
        "hi" if !ty.is_signed() => for_type!(ty, gt),
        "hs" if !ty.is_signed() => for_type!(ty, ge),
        _ => None,
    }
}

fn is_bits(ty: Type) -> bool {
    matches!(ty, Type::B16 | Type::B32 | Type::B64)
}

pub(crate) fn ternary(name: &str, ty: Type) -> Option<Ternary> {
    match name {
        "mad.lo" => for_type!(ty, mad_lo),
        "mad.hi" => for_type!(ty, mad_hi),
        "mad.hi.sat" if ty == Type::S32 => Some(mad_hi_saturating),
        "mad.wide" if ty.bits() < 64 => for_type!(ty, mad_wide),
        "sad" => for_type!(ty, sad),
        _ => None,
    }
}

pub(crate) fn carry(name: &str, ty: Type) -> Option<Carry> {
    if ty.bits() < 32 {
        return None;
    }
    match name {
        "add" => for_type!(ty, add_carry),
        "sub" => for_type!(ty, sub_borrow),
        "mad.lo" => for_type!(ty, mad_lo_carry),
        "mad.hi" => for_type!(ty, mad_hi_carry),
        _ => None,
    }
}

/// The low `from` bits as a signed number, in a register of `to` bits.
pub(crate) fn sign_extend(from: u32, to: u32) -> Option<Unary> {
    fn extend<const FROM: u32, const TO: u32>(a: u64) -> u64 {
        let shift = 64 - FROM;
        ((a << shift).cast_signed() >> shift).cast_unsigned() & crate::types::mask(TO)
    }
    Some(match (from, to) {
        (8, 16) => extend::<8, 16>,
        (8, 32) => extend::<8, 32>,
        (8, 64) => extend::<8, 64>,
        (16, 32) => extend::<16, 32>,
        (16, 64) => extend::<16, 64>,
        (32, 64) => extend::<32, 64>,
        _ => return None,
    })
}

/// The low bits.
pub(crate) fn truncate(bits: u32) -> Option<Unary> {
    Some(match bits {
        1 => |a| a & 1,
        8 => |a| a & 0xff,
        16 => |a| a & 0xffff,
        32 => |a| a & 0xffff_ffff,
        64 => |a| a,
        _ => return None,
    })
}
