//! A kernel writes to its own PE's memory, and signals to a PE that fetches it, without a fence.
//!
//! A signal puts no plain store before it, not even one to the sender's own memory. `nvshmem_fence` is not enough: it orders what goes to one
//! PE, and the signal goes to another.

#include <nvshmem.h>
#include <nvshmemx.h>

extern "C" __global__ void buggy(int *data, int *mine, uint64_t *flags, int *wrong) {
    if (nvshmem_my_pe() == 0) {
        data[threadIdx.x] = 7; // bug: first
        __syncthreads();
        if (threadIdx.x == 0) nvshmemx_signal_op(flags, 1, NVSHMEM_SIGNAL_SET, 1);
    } else if (threadIdx.x == 0) {
        nvshmem_signal_wait_until(flags, NVSHMEM_CMP_EQ, 1);
        if (nvshmem_int_g(data + 31, 0) != 7) *wrong = 1; // bug: second
    }
}

extern "C" __global__ void fixed(int *data, int *mine, uint64_t *flags, int *wrong) {
    if (nvshmem_my_pe() == 0) {
        data[threadIdx.x] = 7;
        __syncthreads();
        if (threadIdx.x == 0) {
            __threadfence_system();
            nvshmemx_signal_op(flags, 1, NVSHMEM_SIGNAL_SET, 1);
        }
    } else if (threadIdx.x == 0) {
        nvshmem_signal_wait_until(flags, NVSHMEM_CMP_EQ, 1);
        if (nvshmem_int_g(data + 31, 0) != 7) *wrong = 1;
    }
}
