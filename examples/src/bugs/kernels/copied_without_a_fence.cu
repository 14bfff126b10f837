//! Threads fill a tile in shared memory and meet, and one of them sends it to another PE by a bulk copy.
//!
//! Threads write shared memory through one proxy, and bulk copies read it through another one. A barrier orders the threads, not the proxies: each thread
//! that writes makes `fence.proxy.async` before it.

#include <nvshmem.h>
#include <nvshmemx.h>

__device__ static void send(int *data, int *tile) {
    if (threadIdx.x == 0) {
        int *theirs = (int *)nvshmem_ptr(data, 1);
        asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 256;" ::"l"(theirs), "r"((unsigned)__cvta_generic_to_shared(tile)) : "memory"); // bug: second
        asm volatile("cp.async.bulk.commit_group;" ::: "memory");
        asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
    }
}

extern "C" __global__ void buggy(int *data, int *mine, uint64_t *flags, int *wrong) {
    __shared__ alignas(16) int tile[64];
    if (nvshmem_my_pe() == 0) {
        tile[threadIdx.x] = mine[threadIdx.x]; // bug: first
        __syncthreads();
        send(data, tile);
    }
    nvshmemx_barrier_all_block();
    if (nvshmem_my_pe() == 1 && data[threadIdx.x] != threadIdx.x + 1) *wrong = 1;
}

extern "C" __global__ void fixed(int *data, int *mine, uint64_t *flags, int *wrong) {
    __shared__ alignas(16) int tile[64];
    if (nvshmem_my_pe() == 0) {
        tile[threadIdx.x] = mine[threadIdx.x];
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        __syncthreads();
        send(data, tile);
    }
    nvshmemx_barrier_all_block();
    if (nvshmem_my_pe() == 1 && data[threadIdx.x] != threadIdx.x + 1) *wrong = 1;
}
