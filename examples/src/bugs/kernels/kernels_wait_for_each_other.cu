//! Two kernels exchange signals, and each waits for the other's before it sends its own.

#include <nvshmem.h>
#include <nvshmemx.h>

extern "C" __global__ void buggy(int *data, int *mine, uint64_t *flags, int *wrong) {
    const int other = 1 - nvshmem_my_pe();
    nvshmem_signal_wait_until(flags, NVSHMEM_CMP_EQ, 1); // bug: first
    nvshmemx_signal_op(flags, 1, NVSHMEM_SIGNAL_SET, other);
}

extern "C" __global__ void fixed(int *data, int *mine, uint64_t *flags, int *wrong) {
    const int other = 1 - nvshmem_my_pe();
    nvshmemx_signal_op(flags, 1, NVSHMEM_SIGNAL_SET, other);
    nvshmem_signal_wait_until(flags, NVSHMEM_CMP_EQ, 1);
}
