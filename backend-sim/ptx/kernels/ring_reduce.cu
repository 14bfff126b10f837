// A sum over all PEs, chunk by chunk around the ring. Block b handles chunk b; a signal says that the previous PE has delivered.
#include <nvshmem.h>
#include <nvshmemx.h>

extern "C" __global__ void ring_reduce(int *sum, const int *mine, int *incoming, int elements, uint64_t *signals) {
    const int me = nvshmem_my_pe(), n = nvshmem_n_pes();
    const int next = (me + 1) % n;
    const int chunk = elements / gridDim.x, first = blockIdx.x * chunk;
    uint64_t *signal = signals + blockIdx.x;

    if (me != 0) {
        if (threadIdx.x == 0) nvshmem_signal_wait_until(signal, NVSHMEM_CMP_GE, 1);
        __syncthreads();
    }
    for (int i = threadIdx.x; i < chunk; i += blockDim.x) {
        sum[first + i] = mine[first + i] + (me == 0 ? 0 : incoming[first + i]);
    }
    __syncthreads();
    if (me != n - 1) {
        nvshmemx_int_put_signal_nbi_block(incoming + first, sum + first, chunk, signal, 1, NVSHMEM_SIGNAL_SET, next);
        return;
    }
    for (int pe = 0; pe < n - 1; pe++) {
        nvshmemx_int_put_signal_nbi_block(sum + first, sum + first, chunk, signal, 2, NVSHMEM_SIGNAL_SET, pe);
    }
}
