//! One thread polls a flag for its block, and each thread fences behind the barrier of the block instead of that one before it.
//!
//! A fence acquires what its own thread has read. The barrier tells the others nothing that the first did not know.

#include <nvshmem.h>
#include <nvshmemx.h>

extern "C" __global__ void buggy(int *data, int *mine, uint64_t *flags, int *wrong) {
    int i = threadIdx.x;
    if (nvshmem_my_pe() == 0) {
        ((int *)nvshmem_ptr(data, 1))[i] = mine[i]; // bug: first
        __threadfence_system();
        __syncthreads();
        if (i == 0) *(volatile uint64_t *)nvshmem_ptr(flags, 1) = 1;
    } else {
        if (i == 0) while (*(volatile uint64_t *)flags != 1) {}
        __syncthreads();
        __threadfence_system();
        if (data[i] != mine[i]) *wrong = 1; // bug: second
    }
}

extern "C" __global__ void fixed(int *data, int *mine, uint64_t *flags, int *wrong) {
    int i = threadIdx.x;
    if (nvshmem_my_pe() == 0) {
        ((int *)nvshmem_ptr(data, 1))[i] = mine[i];
        __threadfence_system();
        __syncthreads();
        if (i == 0) *(volatile uint64_t *)nvshmem_ptr(flags, 1) = 1;
    } else {
        if (i == 0) {
            while (*(volatile uint64_t *)flags != 1) {}
            __threadfence_system();
        }
        __syncthreads();
        if (data[i] != mine[i]) *wrong = 1;
    }
}
