// Each PE puts to the next one: an element, an array by one thread, an array by the whole block.
#include <nvshmem.h>
#include <nvshmemx.h>

extern "C" __global__ void ring_p(int *destination) {
    int next = (nvshmem_my_pe() + 1) % nvshmem_n_pes();
    nvshmem_int_p(destination, nvshmem_my_pe(), next);
}

extern "C" __global__ void ring_put(float *destination, const float *source, int elements) {
    if (threadIdx.x == 0) {
        int next = (nvshmem_my_pe() + 1) % nvshmem_n_pes();
        nvshmem_float_put_nbi(destination, source, elements, next);
        nvshmem_quiet();
    }
}

extern "C" __global__ void ring_put_block(float *destination, float *source, int elements) {
    for (int i = threadIdx.x; i < elements; i += blockDim.x) {
        source[i] = nvshmem_my_pe() * 1000.0f + i;
    }
    __syncthreads();
    int next = (nvshmem_my_pe() + 1) % nvshmem_n_pes();
    nvshmemx_float_put_block(destination, source, elements, next);
    nvshmemx_barrier_all_block();
}
