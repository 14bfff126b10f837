//! A kernel waits for a signal, as it should, and reads the data by a read-only load.
//!
//! Such a load (`__ldg`, `ld.global.nc`) may be answered by a cache that no wait and no fence empties. It is for what nobody writes while the
//! kernel runs. The compiler makes one of any load through a pointer that is const and `__restrict__`.

#include <nvshmem.h>
#include <nvshmemx.h>

extern "C" __global__ void buggy(int *data, int *mine, uint64_t *flags, int *wrong) {
    if (nvshmem_my_pe() == 0) {
        nvshmem_int_put_signal(data, mine, 64, flags, 1, NVSHMEM_SIGNAL_SET, 1); // bug: first
    } else {
        nvshmem_signal_wait_until(flags, NVSHMEM_CMP_EQ, 1);
        if (__ldg(data + 32) != 33) *wrong = 1; // bug: second
    }
}

extern "C" __global__ void fixed(int *data, int *mine, uint64_t *flags, int *wrong) {
    if (nvshmem_my_pe() == 0) {
        nvshmem_int_put_signal(data, mine, 64, flags, 1, NVSHMEM_SIGNAL_SET, 1);
    } else {
        nvshmem_signal_wait_until(flags, NVSHMEM_CMP_EQ, 1);
        if (data[32] != 33) *wrong = 1;
    }
}
