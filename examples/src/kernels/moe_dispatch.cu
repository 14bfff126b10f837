// Tokens go to the PEs of their experts and come back: dispatch and combine of a mixture of experts, as DeepEP and pplx-kernels have them.
// A signal says that the tokens of a PE are there, and how many: its value is the number of tokens plus one.
#include <nvshmem.h>
#include <nvshmemx.h>

#define WIDTH 4 // elements of a token

// One block, with a thread for each token and at least one for each PE. Shared memory: a number for each PE.
//   experts     of each of my tokens: the PE that has its expert
//   tokens      mine, WIDTH elements each; so many as `count` says
//   inbox       from each PE, room for `count` tokens
//   origin      of each token in the inbox: its number on its PE
//   dispatched  a word for each PE, all 0
extern "C" __global__ void dispatch(const int *experts, const float *tokens, int count, float *inbox, int *origin,
                                    uint64_t *dispatched) {
    extern __shared__ int sent[];
    const int me = nvshmem_my_pe(), n = nvshmem_n_pes(), thread = threadIdx.x;
    if (thread < n) sent[thread] = 0;
    __syncthreads();
    if (thread < count) {
        const int pe = experts[thread], slot = me * count + atomicAdd(&sent[pe], 1);
        nvshmem_float_put_nbi(inbox + slot * WIDTH, tokens + thread * WIDTH, WIDTH, pe);
        nvshmem_int_p(origin + slot, thread, pe);
        nvshmem_fence(); // each thread orders its own puts, before the barrier, in front of the signals behind it
    }
#ifndef BROKEN
    __syncthreads();
#endif
    // BROKEN: the first threads tell how many tokens they have seen so far, and that these are there.
    if (thread < n) nvshmemx_signal_op(dispatched + me, sent[thread] + 1, NVSHMEM_SIGNAL_SET, thread);
    __syncthreads();
    if (thread == 0) nvshmem_quiet();
}

// The experts compute, and send each token back to where it came from. One block, a thread for each token of a PE.
//   results   of each of my tokens, when it has come back
//   combined  one word, 0: how many of my tokens have come back
extern "C" __global__ void combine(float *inbox, const int *origin, int count, float *results, uint64_t *dispatched,
                                   uint64_t *combined) {
    __shared__ int received;
    const int me = nvshmem_my_pe(), n = nvshmem_n_pes(), thread = threadIdx.x;
    for (int pe = 0; pe < n; pe++) {
        if (thread == 0) received = nvshmem_signal_wait_until(dispatched + pe, NVSHMEM_CMP_NE, 0) - 1;
        __syncthreads();
        if (thread < received) {
            const int slot = pe * count + thread;
            float *token = inbox + slot * WIDTH;
            for (int i = 0; i < WIDTH; i++) token[i] = token[i] * 2.0f + me;
            nvshmem_float_put_signal(results + origin[slot] * WIDTH, token, WIDTH, combined, 1, NVSHMEM_SIGNAL_ADD, pe);
        }
        __syncthreads();
    }
    if (thread == 0) nvshmem_signal_wait_until(combined, NVSHMEM_CMP_EQ, count);
}
