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

#[cfg(test)]
mod tests {
    use onesided::Swizzle;
    use onesided::backend::{AllocId, Span};

    use super::*;

    #[test]
    fn the_interpreter_has_what_the_program_has_said() {
        let memory = Span { alloc: AllocId(0), start: 0, len: 4096 };
        for dtype in DType::ALL {
            let tensor = Tensor {
                memory,
                dtype,
                sizes: vec![16, 5, 3],
                strides: vec![256, 1280],
                tile: vec![16, 4, 2],
                steps: vec![1, 2, 1],
                swizzle: if dtype.size() <= 4 { Swizzle::Bytes64 } else { Swizzle::Bytes128 },
                fill: if dtype.is_float() { Fill::NaN } else { Fill::Zeros },
            };
            let map = TensorMap::decode(&encoded(&tensor, 1 << 55).unwrap()).unwrap();
            let (ty, bytes, signed) = (map.ty, map.ty.bytes() as usize, map.ty.is_signed());
            assert_eq!((bytes, ty.is_float(), signed), (dtype.size(), dtype.is_float(), dtype.name().starts_with('i')));
            assert_eq!((map.address, map.rank, map.swizzle), (1 << 55, 3, if bytes <= 4 { 64 } else { 128 }));
            assert_eq!((map.sizes, map.strides), ([16, 5, 3, 1, 1], [256, 1280, 0, 0]));
            assert_eq!((map.tile, map.steps, map.fills_nan), ([16, 4, 2, 1, 1], [1, 2, 1, 1, 1], dtype.is_float()));
        }
    }
}
