//! Thread 0 waits for the signal, and the other threads read the data at once.
//!
//! What one thread has waited for, others know only behind a barrier of the block.

#include <nvshmem.h>
#include <nvshmemx.h>

extern "C" __global__ void buggy(int *data, int *mine, uint64_t *flags, int *wrong) {
    if (nvshmem_my_pe() == 0) {
        if (threadIdx.x == 0) nvshmem_int_put_signal(data, mine, 64, flags, 1, NVSHMEM_SIGNAL_SET, 1); // bug: first
    } else {
        if (threadIdx.x == 0) nvshmem_signal_wait_until(flags, NVSHMEM_CMP_EQ, 1);
        if (threadIdx.x == 32 && data[32] != 33) *wrong = 1; // bug: second
    }
}

extern "C" __global__ void fixed(int *data, int *mine, uint64_t *flags, int *wrong) {
    if (nvshmem_my_pe() == 0) {
        if (threadIdx.x == 0) nvshmem_int_put_signal(data, mine, 64, flags, 1, NVSHMEM_SIGNAL_SET, 1);
    } else {
        if (threadIdx.x == 0) nvshmem_signal_wait_until(flags, NVSHMEM_CMP_EQ, 1);
        __syncthreads();
        if (threadIdx.x == 32 && data[32] != 33) *wrong = 1;
    }
}
