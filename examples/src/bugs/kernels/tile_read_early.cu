//! Threads fill a tile in shared memory, and one of them reads what another warp has filled, without a barrier of the block.

#include <nvshmem.h>
#include <nvshmemx.h>

extern "C" __global__ void buggy(int *data, int *mine, uint64_t *flags, int *wrong) {
    __shared__ int tile[64];
    tile[threadIdx.x] = 0;
    __syncthreads();
    tile[threadIdx.x] = mine[threadIdx.x]; // bug: first
    if (threadIdx.x == 0 && tile[32] != 33) *wrong = 1; // bug: second
}

extern "C" __global__ void fixed(int *data, int *mine, uint64_t *flags, int *wrong) {
    __shared__ int tile[64];
    tile[threadIdx.x] = 0;
    __syncthreads();
    tile[threadIdx.x] = mine[threadIdx.x];
    __syncthreads();
    if (threadIdx.x == 0 && tile[32] != 33) *wrong = 1;
}
