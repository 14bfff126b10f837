// Every PE sends a part of its array to every PE. Block b sends to the PEs b, b + gridDim.x, ...; then all blocks meet, and one of them
// meets all PEs.
#include <nvshmem.h>
#include <nvshmemx.h>

// `arrived` counts blocks: 0 at the beginning.
extern "C" __global__ void alltoall(int *received, const int *parts, int elements, unsigned int *arrived) {
    const int me = nvshmem_my_pe(), n = nvshmem_n_pes();
    for (int pe = blockIdx.x; pe < n; pe += gridDim.x) {
        nvshmemx_int_put_nbi_block(received + me * elements, parts + pe * elements, elements, pe);
    }
    __shared__ bool last;
    if (threadIdx.x == 0) {
#ifndef BROKEN
        nvshmem_quiet(); // sync_all completes nothing
#endif
        // BROKEN: the PEs meet while puts are still on their way.
        __threadfence();
        last = atomicAdd(arrived, 1) == gridDim.x - 1;
        __threadfence();
    }
    __syncthreads();
    if (last) nvshmemx_sync_all_block();
}
