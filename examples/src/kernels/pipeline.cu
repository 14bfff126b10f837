// Two kernels at work at the same time: `produce` computes blocks of numbers and puts them to the next PE, `consume` there adds them up.
// There are two slots; a slot is written again when the consumer has said that it is free.
#include <nvshmem.h>
#include <nvshmemx.h>

#define SLOTS 2

// `full` and `empty` have a word for each slot, all 0: in how many rounds it has been filled, and emptied.
extern "C" __global__ void produce(int *slots, int *staging, int elements, int blocks, uint64_t *full, uint64_t *empty) {
    const int me = nvshmem_my_pe(), n = nvshmem_n_pes(), next = (me + 1) % n;
    for (int block = 0; block < blocks; block++) {
        const int slot = block % SLOTS, round = block / SLOTS;
        for (int i = threadIdx.x; i < elements; i += blockDim.x) staging[i] = 100 * me + block;
#ifndef BROKEN
        if (threadIdx.x == 0) nvshmem_signal_wait_until(empty + slot, NVSHMEM_CMP_GE, round);
#endif
        // BROKEN: nobody asks whether the slot has been emptied.
        __syncthreads();
        nvshmemx_int_put_signal_block(slots + slot * elements, staging, elements, full + slot, round + 1, NVSHMEM_SIGNAL_SET, next);
        __syncthreads();
    }
}

extern "C" __global__ void consume(int *sums, const int *slots, int elements, int blocks, uint64_t *full, uint64_t *empty) {
    const int me = nvshmem_my_pe(), n = nvshmem_n_pes(), previous = (me + n - 1) % n;
    for (int block = 0; block < blocks; block++) {
        const int slot = block % SLOTS, round = block / SLOTS;
        if (threadIdx.x == 0) {
            nvshmem_signal_wait_until(full + slot, NVSHMEM_CMP_GE, round + 1);
            // The slot was read in an earlier round. On an H200, libnvshmem 3.4.5 waits without a fence, and without this one
            // the block read old values from its first-level cache.
            __threadfence_system();
        }
        __syncthreads();
        for (int i = threadIdx.x; i < elements; i += blockDim.x) sums[i] += slots[slot * elements + i];
        __syncthreads();
        if (threadIdx.x == 0) nvshmemx_signal_op(empty + slot, round + 1, NVSHMEM_SIGNAL_SET, previous);
    }
    if (threadIdx.x == 0) nvshmem_quiet(); // nobody waits for the last signals
}
