// A sum over all PEs in one step, for small arrays: every PE puts its array into a slot on every other PE, waits for all of them, and adds.
// Two sets of slots alternate, so that the kernel can be launched again and again without a barrier.
#include <nvshmem.h>
#include <nvshmemx.h>

// `slots` has 2 n arrays; `arrived` has a word for each PE, all 0; `round` counts launches, from 1. At least n threads.
// One word for all PEs, to which each adds, would not do: a fast PE's next round could be taken for a slow one's.
extern "C" __global__ void allreduce(float *sum, const float *mine, float *slots, int elements, uint64_t *arrived, int round) {
    const int me = nvshmem_my_pe(), n = nvshmem_n_pes(), thread = threadIdx.x;
    float *slot = slots + round % 2 * n * elements;
    for (int i = 1; i < n; i++) {
        nvshmemx_float_put_signal_nbi_block(slot + me * elements, mine, elements, arrived + me, round, NVSHMEM_SIGNAL_SET,
                                            (me + i) % n);
    }
    if (thread < n && thread != me) nvshmem_signal_wait_until(arrived + thread, NVSHMEM_CMP_GE, round);
#ifndef BROKEN
    __syncthreads();
#endif
    // BROKEN: a thread has waited for one PE at most, and reads what all of them have sent.
    for (int i = thread; i < elements; i += blockDim.x) {
        float value = 0.0f;
        for (int pe = 0; pe < n; pe++) value += pe == me ? mine[i] : slot[pe * elements + i];
        sum[i] = value;
    }
    if (thread == 0) nvshmem_quiet(); // `mine` may change when the kernel has ended
}
