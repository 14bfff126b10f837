//! A kernel puts, then sends a signal, and nothing orders the two.
//!
//! Calls of a kernel are ordered no more than those of the host. Between GPUs that are joined by NVLink the data comes first.

#include <nvshmem.h>
#include <nvshmemx.h>

extern "C" __global__ void buggy(int *data, int *mine, uint64_t *flags, int *wrong) {
    if (nvshmem_my_pe() == 0) {
        nvshmem_int_put(data, mine, 8, 1); // bug: first, fix
        nvshmemx_signal_op(flags, 1, NVSHMEM_SIGNAL_SET, 1);
    } else {
        nvshmem_signal_wait_until(flags, NVSHMEM_CMP_EQ, 1);
        if (data[7] != 8) *wrong = 1; // bug: second
    }
}

extern "C" __global__ void fixed(int *data, int *mine, uint64_t *flags, int *wrong) {
    if (nvshmem_my_pe() == 0) {
        nvshmem_int_put(data, mine, 8, 1);
        nvshmem_fence();
        nvshmemx_signal_op(flags, 1, NVSHMEM_SIGNAL_SET, 1);
    } else {
        nvshmem_signal_wait_until(flags, NVSHMEM_CMP_EQ, 1);
        if (data[7] != 8) *wrong = 1;
    }
}
