//! What can lie in symmetric memory: the element types of NVSHMEM, and which operations each allows.
//!
//! NVSHMEM's typed functions come in families of types. Every type can be moved and summed, only integers reduce bitwise, some can
//! be waited on or updated atomically. Each family is a trait here: a call that the library does not have does not compile.

use std::fmt;

use half::{bf16, f16};

/// The element type of an operation, as data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(clippy::exhaustive_enums, reason = "a backend has functions for each type")]
pub enum DType {
    /// Signed 8-bit integer.
    I8,
    /// Signed 16-bit integer.
    I16,
    /// Signed 32-bit integer.
    I32,
    /// Signed 64-bit integer.
    I64,
    /// Unsigned 8-bit integer; also the type of plain bytes.
    U8,
    /// Unsigned 16-bit integer.
    U16,
    /// Unsigned 32-bit integer.
    U32,
    /// Unsigned 64-bit integer.
    U64,
    /// IEEE 754 half precision.
    F16,
    /// bfloat16: the upper half of an `f32`.
    BF16,
    /// IEEE 754 single precision.
    F32,
    /// IEEE 754 double precision.
    F64,
}

impl DType {
    /// Every element type, in the order of the enum.
    pub const ALL: [DType; 12] = [
        DType::I8,
        DType::I16,
        DType::I32,
        DType::I64,
        DType::U8,
        DType::U16,
        DType::U32,
        DType::U64,
        DType::F16,
        DType::BF16,
        DType::F32,
        DType::F64,
    ];

    /// Bytes of one element.
    #[inline]
    pub const fn size(self) -> usize {
        match self {
            DType::I8 | DType::U8 => 1,
            DType::I16 | DType::U16 | DType::F16 | DType::BF16 => 2,
            DType::I32 | DType::U32 | DType::F32 => 4,
            DType::I64 | DType::U64 | DType::F64 => 8,
        }
    }

    /// Whether it is a floating-point type: those do not reduce bitwise.
    #[inline]
    pub const fn is_float(self) -> bool {
        matches!(self, DType::F16 | DType::BF16 | DType::F32 | DType::F64)
    }

    /// The type's name in Rust.
    pub const fn name(self) -> &'static str {
        match self {
            DType::I8 => "i8",
            DType::I16 => "i16",
            DType::I32 => "i32",
            DType::I64 => "i64",
            DType::U8 => "u8",
            DType::U16 => "u16",
            DType::U32 => "u32",
            DType::U64 => "u64",
            DType::F16 => "f16",
            DType::BF16 => "bf16",
            DType::F32 => "f32",
            DType::F64 => "f64",
        }
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

mod sealed {
    pub trait Sealed {}
}

/// An element of symmetric memory. Every bit pattern is a value, so a race is a wrong value and never undefined behaviour.
///
/// Implemented for the types of [`DType`] and for no others: these are the types that NVSHMEM names. Larger plain data goes through
/// a buffer of `u8`, as with NVSHMEM's `mem` functions.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be an element of symmetric memory",
    note = "elements are i8, i16, i32, i64, u8, u16, u32, u64, onesided::f16, onesided::bf16, f32 and f64",
    note = "other plain data goes through a buffer of `u8`"
)]
pub trait Element: bytemuck::Pod + PartialEq + PartialOrd + fmt::Debug + fmt::Display + sealed::Sealed {
    /// The type as data.
    const DTYPE: DType;
    /// The element's bits, zero-extended to 64.
    fn to_bits64(self) -> u64;
    /// The element with these bits; higher bits are ignored.
    fn from_bits64(bits: u64) -> Self;
    /// The element nearest to a number, for filling buffers in tests and examples.
    fn from_f64(value: f64) -> Self;
    /// The element as the nearest `f64`, for comparing with a tolerance.
    fn as_f64(self) -> f64;
}

/// Elements that can be waited for (`wait_until` and its forms): integers of 16, 32 and 64 bits.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be waited for",
    note = "NVSHMEM waits for i16, i32, i64, u16, u32 and u64; a signal says that data of another type is there"
)]
pub trait Waitable: Element {}
/// Elements that can be fetched, set and swapped atomically: 32- and 64-bit integers and floats.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be fetched, set or swapped atomically",
    note = "NVSHMEM does so with i32, i64, u32, u64, f32 and f64"
)]
pub trait AtomicSwap: Element {}
/// Elements with atomic add, inc and compare-and-swap: 32- and 64-bit integers.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no atomic add, inc or compare-and-swap",
    note = "NVSHMEM has them for i32, i64, u32 and u64"
)]
pub trait Atomic: AtomicSwap {}
/// Elements with atomic and, or, xor: 32- and 64-bit integers.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no atomic and, or, xor",
    note = "NVSHMEM has them for i32, i64, u32 and u64"
)]
pub trait AtomicBits: Atomic {}

macro_rules! elements {
    ($($t:ty, $dtype:ident, $to:expr, $from:expr, $from_f64:expr, $as_f64:expr;)*) => {$(
        impl sealed::Sealed for $t {}
        impl Element for $t {
            const DTYPE: DType = DType::$dtype;
            #[inline]
            fn to_bits64(self) -> u64 {
                $to(self)
            }
            #[inline]
            fn from_bits64(bits: u64) -> Self {
                $from(bits)
            }
            fn from_f64(value: f64) -> Self {
                $from_f64(value)
            }
            fn as_f64(self) -> f64 {
                $as_f64(self)
            }
        }
    )*};
}

elements! {
    i8, I8, |v: i8| u64::from(v as u8), |b| b as i8, |v| v as i8, f64::from;
    i16, I16, |v: i16| u64::from(v as u16), |b| b as i16, |v| v as i16, f64::from;
    i32, I32, |v: i32| u64::from(v as u32), |b| b as i32, |v| v as i32, f64::from;
    i64, I64, |v: i64| v as u64, |b| b as i64, |v| v as i64, |v| v as f64;
    u8, U8, u64::from, |b| b as u8, |v| v as u8, f64::from;
    u16, U16, u64::from, |b| b as u16, |v| v as u16, f64::from;
    u32, U32, u64::from, |b| b as u32, |v| v as u32, f64::from;
    u64, U64, |v| v, |b| b, |v| v as u64, |v| v as f64;
    f16, F16, |v: f16| u64::from(v.to_bits()), |b| f16::from_bits(b as u16), f16::from_f64, f16::to_f64;
    bf16, BF16, |v: bf16| u64::from(v.to_bits()), |b| bf16::from_bits(b as u16), bf16::from_f64, bf16::to_f64;
    f32, F32, |v: f32| u64::from(v.to_bits()), |b| f32::from_bits(b as u32), |v| v as f32, f64::from;
    f64, F64, f64::to_bits, f64::from_bits, |v| v, |v| v;
}

macro_rules! mark {
    ($trait:ident: $($t:ty),*) => {$(impl $trait for $t {})*};
}
mark!(Waitable: i16, i32, i64, u16, u32, u64);
mark!(AtomicSwap: i32, i64, u32, u64, f32, f64);
mark!(Atomic: i32, i64, u32, u64);
mark!(AtomicBits: i32, i64, u32, u64);

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trip<T: Element>() {
        for value in [0.0, 1.0, 3.0, 100.0] {
            let element = T::from_f64(value);
            assert_eq!(T::from_bits64(element.to_bits64()), element);
            assert_eq!(element.as_f64(), value);
        }
        assert_eq!(T::DTYPE.size(), size_of::<T>());
    }

    #[test]
    fn bits_round_trip() {
        round_trip::<i8>();
        round_trip::<i16>();
        round_trip::<i32>();
        round_trip::<i64>();
        round_trip::<u8>();
        round_trip::<u16>();
        round_trip::<u32>();
        round_trip::<u64>();
        round_trip::<f16>();
        round_trip::<bf16>();
        round_trip::<f32>();
        round_trip::<f64>();
    }

    #[test]
    fn negative_numbers_keep_their_bits() {
        assert_eq!((-1i8).to_bits64(), 0xff);
        assert_eq!(i16::from_bits64(0xffff), -1);
        assert_eq!(i32::from_bits64((-7i32).to_bits64()), -7);
        assert_eq!(f32::from_bits64((-0.5f32).to_bits64()), -0.5);
    }

    #[test]
    fn all_lists_every_type_once() {
        let mut seen = DType::ALL.to_vec();
        seen.sort();
        seen.dedup();
        assert_eq!(seen.len(), 12);
    }
}
