//! A tensor among a kernel's arguments, as the interpreter has it.

use onesided::backend::{Tensor, TensorBytes};
use onesided::{DType, Fill};
use onesided_ptx::{TensorMap, Type};

/// What its kernel is given, for memory at an address.
///
/// # Errors
/// If the interpreter does not take it.
pub(super) fn encoded(tensor: &Tensor, address: u64) -> Result<TensorBytes, String> {
    let Tensor { sizes, strides, tile, steps, .. } = tensor;
    let map = TensorMap {
        address,
        ty: type_of(tensor.dtype),
        rank: sizes.len(),
        sizes: filled(sizes, 1),
        strides: filled(strides, 0),
        tile: filled(tile, 1),
        steps: filled(steps, 1),
        swizzle: tensor.swizzle.bytes() as u32,
        fills_nan: tensor.fill == Fill::NaN,
    };
    map.encode().ok_or_else(|| format!("no tensor map: {map:?}"))
}

/// The numbers, and the same one in all dimensions that there are not.
fn filled<T: Copy, const N: usize>(numbers: &[T], rest: T) -> [T; N] {
    std::array::from_fn(|dimension| numbers.get(dimension).copied().unwrap_or(rest))
}

fn type_of(dtype: DType) -> Type {
    match dtype {
        DType::I8 => Type::S8,
        DType::I16 => Type::S16,
        DType::I32 => Type::S32,
        DType::I64 => Type::S64,
        DType::U8 => Type::U8,
        DType::U16 => Type::U16,
        DType::U32 => Type::U32,
        DType::U64 => Type::U64,
        DType::F16 => Type::F16,
        DType::BF16 => Type::Bf16,
        DType::F32 => Type::F32,
        DType::F64 => Type::F64,
    }
}
