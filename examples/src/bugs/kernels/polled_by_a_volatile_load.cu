//! A kernel polls the flag of a put_signal by a volatile load, and reads the data behind it.
//!
//! A volatile load acquires nothing. What is read afterwards may be older.

#include <nvshmem.h>
#include <nvshmemx.h>

extern "C" __global__ void buggy(int *data, int *mine, uint64_t *flags, int *wrong) {
    if (nvshmem_my_pe() == 0) {
        nvshmem_int_put_signal(data, mine, 8, flags, 1, NVSHMEM_SIGNAL_SET, 1); // bug: first
    } else {
        while (*(volatile uint64_t *)flags != 1) {}
        if (data[7] != 8) *wrong = 1; // bug: second
    }
}

extern "C" __global__ void fixed(int *data, int *mine, uint64_t *flags, int *wrong) {
    if (nvshmem_my_pe() == 0) {
        nvshmem_int_put_signal(data, mine, 8, flags, 1, NVSHMEM_SIGNAL_SET, 1);
    } else {
        nvshmem_signal_wait_until(flags, NVSHMEM_CMP_EQ, 1);
        if (data[7] != 8) *wrong = 1;
    }
}
