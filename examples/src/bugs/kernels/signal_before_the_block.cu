//! Each warp puts an element, and thread 0 sends the signal, without waiting for the others of its block.
//!
//! A fence of thread 0 orders what was put before it. Other warps may put later.

#include <nvshmem.h>
#include <nvshmemx.h>

extern "C" __global__ void buggy(int *data, int *mine, uint64_t *flags, int *wrong) {
    if (nvshmem_my_pe() == 0) {
        if (threadIdx.x % 32 == 0) nvshmem_int_p(data + threadIdx.x / 32, 1, 1); // bug: first
        if (threadIdx.x == 0) {
            nvshmem_fence();
            nvshmemx_signal_op(flags, 1, NVSHMEM_SIGNAL_SET, 1);
        }
    } else if (threadIdx.x == 0) {
        nvshmem_signal_wait_until(flags, NVSHMEM_CMP_EQ, 1);
        if (data[1] != 1) *wrong = 1; // bug: second
    }
}

extern "C" __global__ void fixed(int *data, int *mine, uint64_t *flags, int *wrong) {
    if (nvshmem_my_pe() == 0) {
        if (threadIdx.x % 32 == 0) nvshmem_int_p(data + threadIdx.x / 32, 1, 1);
        __syncthreads();
        if (threadIdx.x == 0) {
            nvshmem_fence();
            nvshmemx_signal_op(flags, 1, NVSHMEM_SIGNAL_SET, 1);
        }
    } else if (threadIdx.x == 0) {
        nvshmem_signal_wait_until(flags, NVSHMEM_CMP_EQ, 1);
        if (data[1] != 1) *wrong = 1;
    }
}
