//! A block hands data to another one, with fences that order for their own blocks only.
//!
//! `__threadfence_block` has the scope of the block. Two blocks need `__threadfence`, two PEs `__threadfence_system`.

#include <nvshmem.h>
#include <nvshmemx.h>

extern "C" __global__ void buggy(int *data, int *mine, uint64_t *flags, int *wrong) {
    if (blockIdx.x == 0) {
        data[0] = 42; // bug: first
        __threadfence_block();
        *(volatile uint64_t *)flags = 1;
    } else {
        while (*(volatile uint64_t *)flags != 1) {}
        __threadfence_block();
        *wrong = data[0] != 42; // bug: second
    }
}

extern "C" __global__ void fixed(int *data, int *mine, uint64_t *flags, int *wrong) {
    if (blockIdx.x == 0) {
        data[0] = 42;
        __threadfence();
        *(volatile uint64_t *)flags = 1;
    } else {
        while (*(volatile uint64_t *)flags != 1) {}
        __threadfence();
        *wrong = data[0] != 42;
    }
}
