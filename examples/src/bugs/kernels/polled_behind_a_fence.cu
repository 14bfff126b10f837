//! A kernel polls the flag of a put_signal by acquiring loads, and reads the data behind it.
//!
//! Over NVLink that is right. Data that a network brings is shown by NVSHMEM's waits: they do what a transport needs besides.

#include <nvshmem.h>
#include <nvshmemx.h>

__device__ uint64_t load_acquire(const uint64_t *at) {
    uint64_t value;
    asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(at) : "memory");
    return value;
}

extern "C" __global__ void buggy(int *data, int *mine, uint64_t *flags, int *wrong) {
    if (nvshmem_my_pe() == 0) {
        nvshmem_int_put_signal(data, mine, 8, flags, 1, NVSHMEM_SIGNAL_SET, 1); // bug: first
    } else {
        while (load_acquire(flags) != 1) {}
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
