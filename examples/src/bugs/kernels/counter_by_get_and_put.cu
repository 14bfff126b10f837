//! Kernels of two PEs count in one word: each gets it, adds one, and puts it back.

#include <nvshmem.h>
#include <nvshmemx.h>

extern "C" __global__ void buggy(int *data, int *mine, uint64_t *flags, int *wrong) {
    const int count = nvshmem_int_g(data, 0); // bug: first
    nvshmem_int_p(data, count + 1, 0); // bug: second
    nvshmem_barrier_all();
    if (nvshmem_my_pe() == 0 && *data != 2) *wrong = 1;
}

extern "C" __global__ void fixed(int *data, int *mine, uint64_t *flags, int *wrong) {
    nvshmem_int_atomic_inc(data, 0);
    nvshmem_barrier_all();
    if (nvshmem_my_pe() == 0 && *data != 2) *wrong = 1;
}
