//! [`Mapping`]: device memory outside the symmetric heap, of the kind that NVSHMEM can register.
//!
//! `nvshmemx_buffer_register_symmetric` takes only memory of CUDA's virtual memory management, with handles that can be passed
//! to other processes. It maps the memory in steps of its own granularity: half a gigabyte, unless `NVSHMEM_CUMEM_GRANULARITY`
//! says otherwise. If a buffer is not a whole number of steps, 3.4.5 gives up its whole heap. So whole steps are allocated.
#![allow(unsafe_code)]

use cudarc::driver::sys::{self, CUdeviceptr};
use cudarc::driver::{CudaContext, DriverError};

use crate::problem::Problem;
use crate::setting;

/// The variable from which the library takes its step.
const STEP: &str = "NVSHMEM_CUMEM_GRANULARITY";

/// One physical allocation, mapped at one address.
#[derive(Debug)]
pub(crate) struct Mapping {
    address: CUdeviceptr,
    /// A multiple of the library's step and of CUDA's granularity.
    size: usize,
    handle: sys::CUmemGenericAllocationHandle,
}

impl Mapping {
    /// Allocates at least `bytes` and maps them, readable and writable by this device.
    pub(crate) fn new(context: &CudaContext, bytes: usize) -> Result<Mapping, DriverError> {
        let location =
            sys::CUmemLocation { type_: sys::CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE, id: context.cu_device() };
        let properties = sys::CUmemAllocationProp {
            type_: sys::CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED,
            requestedHandleTypes: sys::CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
            location,
            win32HandleMetaData: std::ptr::null_mut(),
            allocFlags: sys::CUmemAllocationProp_st__bindgen_ty_1 {
                compressionType: 0,
                // NVSHMEM's own heap has it if the device can. Registered memory should not differ.
                gpuDirectRDMACapable: u8::from(has_rdma(context)),
                usage: 0,
                reserved: [0; 4],
            },
        };
        let access =
            sys::CUmemAccessDesc { location, flags: sys::CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_READWRITE };

        // SAFETY: each call is given places of its own to write to; what a later call needs comes from an earlier one
        // that succeeded; and what was made is unmade when a later call fails.
        unsafe {
            let mut granularity = 0;
            let how = sys::CUmemAllocationGranularity_flags::CU_MEM_ALLOC_GRANULARITY_RECOMMENDED;
            sys::cuMemGetAllocationGranularity(&mut granularity, &properties, how).result()?;
            // A size that no number can hold is more than any GPU has.
            let size = whole_steps(bytes, registration_step(), granularity.max(1));
            let size = size.ok_or(DriverError(sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY))?;
            let (mut handle, mut address) = (0, 0);
            sys::cuMemCreate(&mut handle, size, &properties, 0).result()?;
            let mapped = sys::cuMemAddressReserve(&mut address, size, granularity, 0, 0)
                .result()
                .and_then(|()| sys::cuMemMap(address, size, 0, handle, 0).result())
                .and_then(|()| sys::cuMemSetAccess(address, size, &access, 1).result());
            let mapping = Mapping { address, size, handle };
            mapped.map(|()| mapping)
        }
    }

    /// The first byte.
    pub(crate) fn address(&self) -> CUdeviceptr {
        self.address
    }

    /// Bytes that are mapped: the size asked for, rounded up.
    pub(crate) fn size(&self) -> usize {
        self.size
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the handle was created by `new`. Calls for a step that `new` did not reach fail and do nothing.
        unsafe {
            if self.address != 0 {
                let _ = sys::cuMemUnmap(self.address, self.size);
                let _ = sys::cuMemAddressFree(self.address, self.size);
            }
            let _ = sys::cuMemRelease(self.handle);
        }
    }
}

/// Whether network cards can reach such memory.
fn has_rdma(context: &CudaContext) -> bool {
    let attribute = sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED;
    context.attribute(attribute).is_ok_and(|supported| supported != 0)
}

/// The end of the memory that is mapped at an address, without a gap; `None` if there is none.
pub(crate) fn mapped_end(address: CUdeviceptr) -> Option<u64> {
    let (mut base, mut size) = (0, 0);
    // SAFETY: writes the two; an address that means nothing is an error.
    let known = unsafe { sys::cuMemGetAddressRange_v2(&mut base, &mut size, address) };
    known.result().ok().map(|()| base + size as u64)
}

/// The step in which the library maps what is registered symmetrically.
pub(crate) fn registration_step() -> usize {
    setting::size(STEP).ok().flatten().unwrap_or(512 << 20) // `check_step` refused what is no size
}

/// Checks the step.
///
/// # Errors
/// [`Problem::Variable`] if it is not a size.
pub(crate) fn check_step() -> Result<(), Problem> {
    setting::size(STEP).map(drop)
}

/// `bytes`, rounded up to whole steps of both kinds. Neither need be a multiple of the other.
fn whole_steps(bytes: usize, step: usize, granularity: usize) -> Option<usize> {
    let (mut common, mut rest) = (step, granularity); // Euclid's: the largest that divides both
    while rest != 0 {
        (common, rest) = (rest, common % rest);
    }
    bytes.checked_next_multiple_of((step / common).checked_mul(granularity)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_whole_steps_of_the_library_and_of_cuda() {
        let mib = |bytes: usize| bytes << 20;
        for (bytes, step, granularity, size) in [
            (1, mib(512), mib(2), mib(512)),
            (mib(512) + 1, mib(512), mib(2), mib(1024)),
            (1, mib(3), mib(2), mib(6)), // 4 MiB would be no whole step of the library
            (mib(7), mib(2), mib(3), mib(12)),
            (5, 1, mib(2), mib(2)),
        ] {
            assert_eq!(whole_steps(bytes, step, granularity), Some(size), "{bytes} in {step} and {granularity}");
        }
        assert_eq!(whole_steps(usize::MAX, mib(512), mib(2)), None);
        assert_eq!(whole_steps(1, usize::MAX, usize::MAX - 1), None);
    }
}
