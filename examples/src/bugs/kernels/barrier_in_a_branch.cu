//! A barrier of the block stands in a branch that only some of its threads take.

#include <nvshmem.h>
#include <nvshmemx.h>

extern "C" __global__ void buggy(int *data, int *mine, uint64_t *flags, int *wrong) {
    if (threadIdx.x < 16) {
        data[threadIdx.x] = mine[threadIdx.x];
        __syncthreads(); // bug: first
    } else {
        __syncwarp(0xffff0000);
        __syncthreads(); // bug: second
    }
}

extern "C" __global__ void fixed(int *data, int *mine, uint64_t *flags, int *wrong) {
    if (threadIdx.x < 16) {
        data[threadIdx.x] = mine[threadIdx.x];
    }
    __syncthreads();
}
