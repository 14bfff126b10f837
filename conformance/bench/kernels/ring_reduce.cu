// A sum over all PEs, around the ring, in one launch. The array has a chunk for each PE.
//
//   reduce-scatter  step s: my partial sum of chunk me-s+1 goes to the next PE, which adds its own; after n-1 steps I hold chunk me+1
//   all-gather      step s: the complete chunk that came last goes on; after n-1 steps everyone has all
//
// Nobody asks whether it may write: each step has a slot and a signal of its own.
#include <nvshmem.h>
#include <nvshmemx.h>

// Sends a chunk to the next PE, and says so there.
__device__ void send(float *dst, const float *src, int chunk, uint64_t *signal, int next) {
#ifdef BROKEN
    // Two operations, and no fence between them: the signal can arrive before the data.
    nvshmemx_float_put_nbi_block(dst, src, chunk, next);
    if (threadIdx.x == 0) nvshmemx_signal_op(signal, 1, NVSHMEM_SIGNAL_SET, next);
#else
    nvshmemx_float_put_signal_nbi_block(dst, src, chunk, signal, 1, NVSHMEM_SIGNAL_SET, next);
#endif
}

// Waits until the previous PE has sent; then every thread of the block may read it.
__device__ void receive(uint64_t *signal) {
    if (threadIdx.x == 0) nvshmem_signal_wait_until(signal, NVSHMEM_CMP_EQ, 1);
    __syncthreads();
}

// `slots` and `total` have n chunks each, `signals` 2 n words, all 0.
extern "C" __global__ void ring_reduce(const float *mine, float *slots, float *total, int chunk, uint64_t *signals) {
    const int me = nvshmem_my_pe(), n = nvshmem_n_pes(), next = (me + 1) % n;
    uint64_t *reduced = signals, *gathered = signals + n;

    for (int i = threadIdx.x; i < chunk; i += blockDim.x) slots[i] = mine[me * chunk + i];
    __syncthreads();
    for (int step = 1; step < n; step++) {
        float *before = slots + (step - 1) * chunk, *now = slots + step * chunk;
        send(now, before, chunk, reduced + step, next);
        receive(reduced + step);
        const float *own = mine + (me + n - step) % n * chunk;
        for (int i = threadIdx.x; i < chunk; i += blockDim.x) now[i] += own[i];
        __syncthreads();
    }

    // The last slot is complete: it is the chunk that the next PE began with.
    for (int i = threadIdx.x; i < chunk; i += blockDim.x) total[next * chunk + i] = slots[(n - 1) * chunk + i];
    __syncthreads();
    for (int step = 1; step < n; step++) {
        float *newest = total + (next + n - (step - 1)) % n * chunk;
        send(newest, newest, chunk, gathered + step, next);
        receive(gathered + step);
    }
    if (threadIdx.x == 0) nvshmem_quiet(); // the sources are mine again
}
