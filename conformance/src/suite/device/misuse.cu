// Kernels that are wrong, each followed by the repaired one. What GPUs make of them is not predictable.
#include "kernel.h"

#define SHARED_TILE                                                                                                     \
    __shared__ int tile[64];                                                                                            \
    const int i = threadIdx.x

// Arguments.
KERNEL(put_beyond_the_end) { nvshmem_int_put(data + 30, in, 4, NEXT); }
KERNEL(put_up_to_the_end) { nvshmem_int_put(data + 28, in, 4, NEXT); }
KERNEL(put_to_nobody) { nvshmem_int_p(data, 1, ME + 1); }
KERNEL(put_to_somebody) { nvshmem_int_p(data, 1, (ME + 1) % N); }
KERNEL(put_from_shared_memory) {
    SHARED_TILE;
    tile[i] = i;
    __syncthreads();
    nvshmemx_int_put_block(data, tile, 4, NEXT);
}
KERNEL(put_of_a_copy_of_shared_memory) {
    SHARED_TILE;
    tile[i] = i;
    __syncthreads();
    if (i < 4) data[8 + i] = tile[i];
    __syncthreads();
    nvshmemx_int_put_block(data, data + 8, 4, NEXT);
}
KERNEL(put_to_a_pointer_of_a_peer) { nvshmem_int_p((int *)nvshmem_ptr(data, NEXT), 1, NEXT); }
KERNEL(store_to_a_pointer_of_a_peer) { *(int *)nvshmem_ptr(data, NEXT) = 1; }
KERNEL(signal_inside_the_data) { nvshmem_put64_signal(words, in, 2, words + 1, 1, NVSHMEM_SIGNAL_SET, NEXT); }
KERNEL(signal_beside_the_data) { nvshmem_put64_signal(words, in, 2, words + 2, 1, NVSHMEM_SIGNAL_SET, NEXT); }

// Groups: all threads call, with the same arguments.
KERNEL(half_a_block_puts) { if (threadIdx.x < 32) nvshmemx_int_put_block(data, in, 4, NEXT); }
KERNEL(half_a_block_puts_as_a_warp) { if (threadIdx.x < 32) nvshmemx_int_put_warp(data, in, 4, NEXT); }
KERNEL(each_thread_another_count) { nvshmemx_int_put_warp(data, in, 1 + threadIdx.x % 4, NEXT); }
KERNEL(all_threads_the_same_count) { nvshmemx_int_put_warp(data, in, 4, NEXT); }
// The other lanes have not ended: they wait for these.
KERNEL(some_lanes_shuffle) {
    if (threadIdx.x < 16) data[threadIdx.x] = __shfl_sync(0xffffffff, in[1], 0);
    __syncthreads();
}
KERNEL(lanes_of_the_mask_shuffle) {
    if (threadIdx.x < 16) data[threadIdx.x] = __shfl_sync(0x0000ffff, in[1], 0);
    __syncthreads();
}

// Shared memory.
KERNEL(shared_memory_races) {
    SHARED_TILE;
    tile[i] = 0;
    __syncthreads();
    tile[i] = in[i % 8];
    if (i < 8) out[i] = tile[63 - i];
}
KERNEL(shared_memory_behind_a_barrier) {
    SHARED_TILE;
    tile[i] = 0;
    __syncthreads();
    tile[i] = in[i % 8];
    __syncthreads();
    if (i < 8) out[i] = tile[63 - i];
}
KERNEL(shared_memory_nobody_wrote) {
    SHARED_TILE;
    if (i < 8) tile[i] = in[i];
    __syncthreads();
    if (i == 0) out[0] = tile[8];
}
KERNEL(shared_memory_somebody_wrote) {
    SHARED_TILE;
    if (i < 8) tile[i] = in[i];
    __syncthreads();
    if (i == 0) out[0] = tile[7];
}

// Waits.
KERNEL(nobody_signals) { nvshmem_signal_wait_until(words, NVSHMEM_CMP_EQ, 1); }
KERNEL(somebody_signals) {
    nvshmemx_signal_op(words, 1, NVSHMEM_SIGNAL_SET, NEXT);
    nvshmem_signal_wait_until(words, NVSHMEM_CMP_EQ, 1);
}
KERNEL(all_wait_before_they_signal) {
    nvshmem_signal_wait_until(words, NVSHMEM_CMP_EQ, 1);
    nvshmemx_signal_op(words, 1, NVSHMEM_SIGNAL_SET, NEXT);
}
KERNEL(one_signals_before_it_waits) {
    if (ME != 0) nvshmem_signal_wait_until(words, NVSHMEM_CMP_EQ, 1);
    nvshmemx_signal_op(words, 1, NVSHMEM_SIGNAL_SET, NEXT);
    if (ME == 0) nvshmem_signal_wait_until(words, NVSHMEM_CMP_EQ, 1);
}
// The compiler reads the word once.
KERNEL(poll_of_a_plain_word) {
    nvshmem_uint64_p(words, 1, NEXT);
    while (*words != 1) {}
    out[0] = 1;
}
KERNEL(poll_of_a_volatile_word) {
    nvshmem_uint64_atomic_set(words, 1, NEXT);
    while (*(volatile uint64_t *)words != 1) {}
    out[0] = 1;
}
// Acquiring loads, or a wait. The load shows the data over NVLink, and only a wait everywhere.
#define DATA_BEHIND(WAIT)                                                                                               \
    nvshmem_int_put_signal(data, in, 4, words, 1, NVSHMEM_SIGNAL_SET, NEXT);                                            \
    uint64_t value = 0;                                                                                                 \
    WAIT;
KERNEL(data_behind_an_acquiring_poll) {
    DATA_BEHIND(while (value != 1) asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(words) : "memory"))
    for (int i = 0; i < 4; i++) out[i] = data[i] >= 0;
}
KERNEL(data_behind_a_wait) {
    DATA_BEHIND(value = nvshmem_signal_wait_until(words, NVSHMEM_CMP_EQ, 1))
    for (int i = 0; i < 4; i++) out[i] = data[i] * (int)value;
}
// The flag of a PE is released and acquired within one GPU only.
#define FLAG_BY_POINTER(SCOPE)                                                                                          \
    uint64_t value = 0;                                                                                                 \
    *(int *)nvshmem_ptr(data, NEXT) = 5;                                                                                \
    asm volatile("st.release." SCOPE ".global.u64 [%0], 1;" ::"l"(nvshmem_ptr(words, NEXT)) : "memory");                \
    while (value != 1) asm volatile("ld.acquire." SCOPE ".global.u64 %0, [%1];" : "=l"(value) : "l"(words) : "memory"); \
    out[0] = data[0];
KERNEL(flag_within_the_gpu) { FLAG_BY_POINTER("gpu") }
KERNEL(flag_within_the_system) { FLAG_BY_POINTER("sys") }
// A thread polls for its block. It must fence itself: the fences of others, behind the barrier, acquire nothing that it has read.
#define POLL_FOR_THE_BLOCK(BEFORE, BEHIND)                                                                              \
    if (FIRST) {                                                                                                        \
        *(int *)nvshmem_ptr(data, NEXT) = 5;                                                                            \
        __threadfence_system();                                                                                         \
        *(volatile uint64_t *)nvshmem_ptr(words, NEXT) = 1;                                                             \
        while (*(volatile uint64_t *)words != 1) {}                                                                     \
        BEFORE;                                                                                                         \
    }                                                                                                                   \
    __syncthreads();                                                                                                    \
    BEHIND;                                                                                                             \
    if (threadIdx.x == 1) out[0] = data[0];
KERNEL(fence_behind_the_barrier) { POLL_FOR_THE_BLOCK(, __threadfence_system()) }
KERNEL(fence_before_the_barrier) { POLL_FOR_THE_BLOCK(__threadfence_system(), ) }

// Faults.
KERNEL(store_beyond_the_end) { data[32] = 1; }
KERNEL(store_up_to_the_end) { data[31] = 1; }
KERNEL(misaligned_load) { out[0] = (int)*(volatile uint64_t *)(in + 1); }
KERNEL(aligned_load) { out[0] = (int)*(volatile uint64_t *)(in + 2); }
KERNEL(trap) { if (N == 2) __trap(); }
KERNEL(no_trap) { if (N != 2) __trap(); }
// A word that is its own flag is read while it may be written. Where that is meant, a mark says so: it is no race, and all else stays as it is.
#include <onesided.h>
#define OWN_FLAG(MARK, LOOK)                                                                                            \
    volatile int *word = data;                                                                                          \
    nvshmem_int_p(data, 42, NEXT);                                                                                      \
    {                                                                                                                   \
        MARK;                                                                                                           \
        LOOK;                                                                                                           \
        out[0] = *word;                                                                                                 \
    }
#define MEANT ONESIDED_INTENDED_RACE("the word is its own flag")
KERNEL(word_polled) { OWN_FLAG(, while (*word == 0) {}) }
KERNEL(word_polled_as_meant) { OWN_FLAG(MEANT, while (*word == 0) {}) }
KERNEL(word_read_as_meant) { OWN_FLAG(MEANT, ) }
