//! A kernel puts as many elements as it has threads, and the destination has fewer.

#include <nvshmem.h>
#include <nvshmemx.h>

extern "C" __global__ void buggy(int *data, int *mine, uint64_t *flags, int *wrong) {
    if (nvshmem_my_pe() == 0 && threadIdx.x == 0) {
        nvshmem_int_put(data + 32, mine, blockDim.x, 1); // bug: first
    }
}

extern "C" __global__ void fixed(int *data, int *mine, uint64_t *flags, int *wrong) {
    if (nvshmem_my_pe() == 0 && threadIdx.x == 0) {
        nvshmem_int_put(data + 32, mine, 32, 1);
    }
}
