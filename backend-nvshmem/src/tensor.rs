//! A tensor among a kernel's arguments: the driver encodes it for the GPU.
#![allow(unsafe_code)]

use cudarc::driver::sys::{
    self, CUtensorMap, CUtensorMapDataType, CUtensorMapFloatOOBfill, CUtensorMapInterleave, CUtensorMapL2promotion,
    CUtensorMapSwizzle,
};
use onesided::backend::{Tensor, TensorBytes};
use onesided::{At, DType, Error, ErrorKind, Fill, Result, Swizzle};

use crate::cuda::device;
use crate::library::cuda_version;
use crate::pe::Nvshmem;

const CALL: &str = "launch";

/// The first driver that encodes tensors, and the first GPU that knows them.
const DRIVER: i32 = 12_000;
const ARCHITECTURE: u32 = 90;

impl Nvshmem {
    /// What a kernel is given for a tensor at an address.
    pub(crate) fn tensor_map(&self, tensor: &Tensor, address: u64, at: At) -> Result<TensorBytes> {
        let failed = |error| device(CALL, error, at);
        let driver = cuda_version().map_err(failed)?;
        let architecture = self.device().architecture(CALL, at)?;
        if let Some(why) = cannot(driver, architecture) {
            return Err(Error::new(ErrorKind::Unsupported, CALL, why, at));
        }
        if !address.is_multiple_of(16) {
            let message = format!(
                "the memory of a tensor map lies at {address:#x}; make it at a multiple of 16, as Pe::alloc_aligned does"
            );
            return Err(Error::invalid(CALL, message, at));
        }
        self.device().bind(CALL, at)?;
        let mut map = CUtensorMap { opaque: [0; 16] };
        let rank = tensor.sizes.len();
        let lengths = [tensor.strides.len() + 1, tensor.tile.len(), tensor.steps.len()];
        assert!(lengths == [rank; 3] && (1..=5).contains(&rank), "the driver reads so many numbers: {tensor:?}");
        // SAFETY: writes the map, which is aligned as its type demands. Reads one number for each dimension, and one less for
        // the strides. It does not read the tensor. The driver has the function: see `cannot`.
        let encoded = unsafe {
            sys::cuTensorMapEncodeTiled(
                &raw mut map,
                data_type(tensor.dtype),
                rank as u32,
                address as *mut _,
                tensor.sizes.as_ptr(),
                tensor.strides.as_ptr(),
                tensor.tile.as_ptr(),
                tensor.steps.as_ptr(),
                CUtensorMapInterleave::CU_TENSOR_MAP_INTERLEAVE_NONE,
                swizzle(tensor.swizzle),
                CUtensorMapL2promotion::CU_TENSOR_MAP_L2_PROMOTION_NONE,
                fill(tensor.fill),
            )
        };
        encoded.result().map_err(failed)?;
        let mut bytes = [0; size_of::<TensorBytes>()];
        for (to, word) in bytes.chunks_exact_mut(8).zip(map.opaque) {
            to.copy_from_slice(&word.to_ne_bytes());
        }
        Ok(bytes)
    }
}

/// Why there are no tensor maps, if there are none.
fn cannot(driver: i32, architecture: u32) -> Option<String> {
    match (driver >= DRIVER, architecture >= ARCHITECTURE) {
        (true, true) => None,
        (false, _) => Some(format!(
            "tensor maps need a driver for CUDA 12.0 or later; this one is for {}.{}",
            driver / 1000,
            driver % 1000 / 10
        )),
        (true, false) => Some(format!("tensor maps need a GPU of sm_90 or later; this one is sm_{architecture}")),
    }
}

/// Signed integers of 8 and 16 bits have no type of their own: they are copied like unsigned ones, and not reduced.
fn data_type(dtype: DType) -> CUtensorMapDataType {
    use CUtensorMapDataType as T;
    match dtype {
        DType::I8 | DType::U8 => T::CU_TENSOR_MAP_DATA_TYPE_UINT8,
        DType::I16 | DType::U16 => T::CU_TENSOR_MAP_DATA_TYPE_UINT16,
        DType::I32 => T::CU_TENSOR_MAP_DATA_TYPE_INT32,
        DType::I64 => T::CU_TENSOR_MAP_DATA_TYPE_INT64,
        DType::U32 => T::CU_TENSOR_MAP_DATA_TYPE_UINT32,
        DType::U64 => T::CU_TENSOR_MAP_DATA_TYPE_UINT64,
        DType::F16 => T::CU_TENSOR_MAP_DATA_TYPE_FLOAT16,
        DType::BF16 => T::CU_TENSOR_MAP_DATA_TYPE_BFLOAT16,
        DType::F32 => T::CU_TENSOR_MAP_DATA_TYPE_FLOAT32,
        DType::F64 => T::CU_TENSOR_MAP_DATA_TYPE_FLOAT64,
    }
}

fn swizzle(swizzle: Swizzle) -> CUtensorMapSwizzle {
    use CUtensorMapSwizzle as S;
    match swizzle {
        Swizzle::None => S::CU_TENSOR_MAP_SWIZZLE_NONE,
        Swizzle::Bytes32 => S::CU_TENSOR_MAP_SWIZZLE_32B,
        Swizzle::Bytes64 => S::CU_TENSOR_MAP_SWIZZLE_64B,
        Swizzle::Bytes128 => S::CU_TENSOR_MAP_SWIZZLE_128B,
    }
}

fn fill(fill: Fill) -> CUtensorMapFloatOOBfill {
    match fill {
        Fill::Zeros => CUtensorMapFloatOOBfill::CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
        Fill::NaN => CUtensorMapFloatOOBfill::CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The driver is told a type as wide as the elements.
    #[test]
    fn types_are_as_wide_as_elements() {
        use CUtensorMapDataType as T;
        for dtype in DType::ALL {
            let bytes = match data_type(dtype) {
                T::CU_TENSOR_MAP_DATA_TYPE_UINT8 => 1,
                T::CU_TENSOR_MAP_DATA_TYPE_UINT16
                | T::CU_TENSOR_MAP_DATA_TYPE_FLOAT16
                | T::CU_TENSOR_MAP_DATA_TYPE_BFLOAT16 => 2,
                T::CU_TENSOR_MAP_DATA_TYPE_UINT32
                | T::CU_TENSOR_MAP_DATA_TYPE_INT32
                | T::CU_TENSOR_MAP_DATA_TYPE_FLOAT32 => 4,
                T::CU_TENSOR_MAP_DATA_TYPE_UINT64
                | T::CU_TENSOR_MAP_DATA_TYPE_INT64
                | T::CU_TENSOR_MAP_DATA_TYPE_FLOAT64 => 8,
                other => panic!("{dtype}: {other:?}"),
            };
            assert_eq!(bytes, dtype.size(), "{dtype}");
        }
    }

    #[test]
    fn a_map_is_as_large_as_the_kernel_s_parameter() {
        assert_eq!(size_of::<CUtensorMap>(), size_of::<TensorBytes>());
        assert!(align_of::<CUtensorMap>().is_multiple_of(64));
    }

    #[test]
    fn what_a_machine_lacks() {
        assert_eq!(cannot(12_000, 90), None);
        assert_eq!(cannot(13_010, 100), None);
        let old = cannot(11_080, 90).unwrap();
        assert_eq!(old, "tensor maps need a driver for CUDA 12.0 or later; this one is for 11.8");
        assert_eq!(cannot(12_040, 80).unwrap(), "tensor maps need a GPU of sm_90 or later; this one is sm_80");
    }
}
