//! A kernel begins by zeroing the flag for which it then waits, and the sender does not wait for that.
//!
//! The signal may have come already. Then it is lost, and the kernel waits for ever.

#include <nvshmem.h>
#include <nvshmemx.h>

extern "C" __global__ void buggy(int *data, int *mine, uint64_t *flags, int *wrong) {
    if (nvshmem_my_pe() == 0) {
        nvshmem_int_put_signal(data, mine, 8, flags, 1, NVSHMEM_SIGNAL_SET, 1); // bug: first
    } else {
        *flags = 0; // bug: second, fix
        nvshmem_signal_wait_until(flags, NVSHMEM_CMP_EQ, 1);
        if (data[7] != 8) *wrong = 1;
    }
}

extern "C" __global__ void fixed(int *data, int *mine, uint64_t *flags, int *wrong) {
    if (nvshmem_my_pe() == 1) *flags = 0;
    nvshmem_barrier_all();
    if (nvshmem_my_pe() == 0) {
        nvshmem_int_put_signal(data, mine, 8, flags, 1, NVSHMEM_SIGNAL_SET, 1);
    } else {
        nvshmem_signal_wait_until(flags, NVSHMEM_CMP_EQ, 1);
        if (data[7] != 8) *wrong = 1;
    }
}
