//! Block 0 writes what block 1 reads, and nothing orders the blocks of a grid.
//!
//! On a GPU block 0 has mostly ended its write by then.

#include <nvshmem.h>
#include <nvshmemx.h>

extern "C" __global__ void buggy(int *data, int *mine, uint64_t *flags, int *wrong) {
    if (nvshmem_my_pe() != 0) return;
    if (blockIdx.x == 0) {
        data[0] = 7; // bug: first
    } else {
        *wrong = data[0] != 7; // bug: second
    }
}

extern "C" __global__ void fixed(int *data, int *mine, uint64_t *flags, int *wrong) {
    if (nvshmem_my_pe() != 0) return;
    if (blockIdx.x == 0) {
        data[0] = 7;
        __threadfence();
        atomicExch((unsigned long long *)flags, 1ull);
    } else {
        while (atomicAdd((unsigned long long *)flags, 0ull) != 1) {}
        __threadfence();
        *wrong = data[0] != 7;
    }
}
