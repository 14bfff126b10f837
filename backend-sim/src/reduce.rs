//! Element-wise reduction on bytes.

use bytemuck::Pod;
use onesided::{DType, ReduceOp, bf16, f16};

/// `into[i] = into[i] <op> from[i]`, element by element. Both hold elements of `dtype`, at any alignment.
pub(crate) fn combine(dtype: DType, op: ReduceOp, into: &mut [u8], from: &[u8]) {
    match dtype {
        DType::I8 => integers::<i8>(op, into, from),
        DType::I16 => integers::<i16>(op, into, from),
        DType::I32 => integers::<i32>(op, into, from),
        DType::I64 => integers::<i64>(op, into, from),
        DType::U8 => integers::<u8>(op, into, from),
        DType::U16 => integers::<u16>(op, into, from),
        DType::U32 => integers::<u32>(op, into, from),
        DType::U64 => integers::<u64>(op, into, from),
        DType::F16 => floats::<f16>(op, into, from),
        DType::BF16 => floats::<bf16>(op, into, from),
        DType::F32 => floats::<f32>(op, into, from),
        DType::F64 => floats::<f64>(op, into, from),
    }
}

trait Integer: Pod + Ord {
    fn add(self, other: Self) -> Self;
    fn mul(self, other: Self) -> Self;
    fn and(self, other: Self) -> Self;
    fn or(self, other: Self) -> Self;
    fn xor(self, other: Self) -> Self;
}

macro_rules! integer {
    ($($t:ty),*) => {$(
        impl Integer for $t {
            fn add(self, other: Self) -> Self { self.wrapping_add(other) }
            fn mul(self, other: Self) -> Self { self.wrapping_mul(other) }
            fn and(self, other: Self) -> Self { self & other }
            fn or(self, other: Self) -> Self { self | other }
            fn xor(self, other: Self) -> Self { self ^ other }
        }
    )*};
}
integer!(i8, i16, i32, i64, u8, u16, u32, u64);

fn integers<T: Integer>(op: ReduceOp, into: &mut [u8], from: &[u8]) {
    match op {
        ReduceOp::Sum => zip(into, from, T::add),
        ReduceOp::Prod => zip(into, from, T::mul),
        ReduceOp::Min => zip(into, from, T::min),
        ReduceOp::Max => zip(into, from, T::max),
        ReduceOp::And => zip(into, from, T::and),
        ReduceOp::Or => zip(into, from, T::or),
        ReduceOp::Xor => zip(into, from, T::xor),
    }
}

fn floats<T: Pod + PartialOrd + std::ops::Add<Output = T> + std::ops::Mul<Output = T>>(
    op: ReduceOp,
    into: &mut [u8],
    from: &[u8],
) {
    match op {
        ReduceOp::Sum => zip(into, from, |a: T, b: T| a + b),
        ReduceOp::Prod => zip(into, from, |a: T, b: T| a * b),
        ReduceOp::Min => zip(into, from, |a: T, b: T| if b < a { b } else { a }),
        ReduceOp::Max => zip(into, from, |a: T, b: T| if b > a { b } else { a }),
        ReduceOp::And | ReduceOp::Or | ReduceOp::Xor => unreachable!("the API refuses bitwise reductions of floats"),
    }
}

fn zip<T: Pod>(into: &mut [u8], from: &[u8], f: impl Fn(T, T) -> T) {
    for (into, from) in into.chunks_exact_mut(size_of::<T>()).zip(from.chunks_exact(size_of::<T>())) {
        let (a, b) = (bytemuck::pod_read_unaligned(into), bytemuck::pod_read_unaligned(from));
        into.copy_from_slice(bytemuck::bytes_of(&f(a, b)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reduce<T: Pod>(dtype: DType, op: ReduceOp, a: T, b: T) -> T {
        let mut into = bytemuck::bytes_of(&a).to_vec();
        combine(dtype, op, &mut into, bytemuck::bytes_of(&b));
        bytemuck::pod_read_unaligned(&into)
    }

    #[test]
    fn every_operator() {
        let results = ReduceOp::ALL.map(|op| reduce(DType::U8, op, 0b1100u8, 0b1010));
        assert_eq!(results, [22, 120, 0b1010, 0b1100, 0b1000, 0b1110, 0b0110]);
    }

    #[test]
    fn signs_wrapping_and_halves() {
        assert_eq!(reduce(DType::I8, ReduceOp::Min, -1i8, 1), -1);
        assert_eq!(reduce(DType::U8, ReduceOp::Sum, 200u8, 100), 44);
        assert_eq!(reduce(DType::F16, ReduceOp::Sum, f16::from_f32(0.5), f16::from_f32(1.0)), f16::from_f32(1.5));
        assert_eq!(reduce(DType::BF16, ReduceOp::Max, bf16::from_f32(-2.0), bf16::from_f32(3.0)), bf16::from_f32(3.0));
        assert_eq!(reduce(DType::F64, ReduceOp::Prod, 1.5f64, 4.0), 6.0);
    }
}
