// Threads, warps and blocks of one GPU: what they do among themselves, and how that leads to communication.
#include "kernel.h"
#include <cooperative_groups.h>

// Blocks add, hand over, take a lock, find out who is last.
KERNEL(blocks_add) { if (FIRST) atomicAdd(out, 1 + blockIdx.x); }
KERNEL(blocks_hand_over) {
    volatile unsigned *flag = (unsigned *)words;
    if (!FIRST) return;
    if (blockIdx.x == 0) {
        data[0] = 5;
        __threadfence();
        *flag = 1;
    } else if (blockIdx.x == 1) {
        while (*flag != 1) {}
        __threadfence();
        out[0] = data[0];
    }
}
// What has been handed over may be old. The kernel does not record it: see pointer_relaxed.
KERNEL(blocks_hand_over_without_fence) {
    volatile unsigned *flag = (unsigned *)words;
    if (blockIdx.x == 0) {
        data[0] = 5;
        *flag = 1;
    } else {
        while (*flag != 1) {}
        __threadfence();
        out[0] = data[0] >= 0;
    }
}
KERNEL(blocks_release_and_acquire) {
    unsigned value = 0;
    if (blockIdx.x == 0) {
        data[0] = 5;
        asm volatile("st.release.gpu.global.u32 [%0], 1;" ::"l"(words) : "memory");
    } else {
        while (value != 1) asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(words) : "memory");
        out[0] = data[0];
    }
}
KERNEL(blocks_lock) {
    unsigned *lock = (unsigned *)words;
    while (atomicCAS(lock, 0, 1) != 0) {}
    __threadfence();
    *(volatile int *)data += 1 + blockIdx.x;
    __threadfence();
    atomicExch(lock, 0);
}
KERNEL(blocks_take_tickets) { out[blockIdx.x] = atomicAdd(data, 1); }
KERNEL(blocks_compare_and_swap) { out[blockIdx.x] = atomicCAS(data, 0, 1 + blockIdx.x); }
KERNEL(stride_loop) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < 8; i += gridDim.x * blockDim.x) data[i] = 2 * in[i];
}

// Blocks communicate: one for each peer; the last one that comes puts what all have written; all meet before one puts.
KERNEL(a_block_for_each_peer) {
    if (blockIdx.x < N) nvshmemx_int_put_block(data + 2 * ME, in + 2 * blockIdx.x, 2, blockIdx.x);
}
KERNEL(last_block_puts) {
    data[8 + blockIdx.x] = in[blockIdx.x];
    __threadfence();
    if (atomicAdd((unsigned *)words + 14, 1) != gridDim.x - 1) return;
    __threadfence();
    nvshmem_int_put(data, data + 8, gridDim.x, NEXT);
}
KERNEL(grid_meets_before_a_put) {
    if (FIRST) data[8 + blockIdx.x] = in[blockIdx.x];
    cooperative_groups::this_grid().sync();
    if (blockIdx.x == 0) nvshmemx_int_put_block(data, data + 8, gridDim.x, NEXT);
}
KERNEL(grid_meets_after_a_wait) {
    if (blockIdx.x == 0 && FIRST) {
        nvshmem_int_put_signal(data, in, 4, words, 1, NVSHMEM_SIGNAL_SET, NEXT);
        nvshmem_signal_wait_until(words, NVSHMEM_CMP_EQ, 1);
    }
    cooperative_groups::this_grid().sync();
    if (FIRST) out[blockIdx.x] = data[2 * blockIdx.x];
}
KERNEL(stride_loop_of_puts) {
    for (int i = blockIdx.x; i < 4; i += gridDim.x) nvshmem_int_p(data + i, in[i], NEXT);
}
KERNEL(grid_in_two_dimensions) {
    const int i = blockIdx.y * gridDim.x + blockIdx.x;
    nvshmem_int_p(data + i, in[i], NEXT);
}

// Shared memory: declared, of the launch, staged for a put.
KERNEL(shared_memory) {
    __shared__ int tile[64];
    tile[threadIdx.x] = in[threadIdx.x % 8];
    __syncthreads();
    if (threadIdx.x < 8) out[threadIdx.x] = tile[(threadIdx.x + 1) % 8];
}
KERNEL(dynamic_shared_memory) {
    extern __shared__ int tile_of_launch[];
    tile_of_launch[threadIdx.x] = in[threadIdx.x % 8];
    __syncthreads();
    if (threadIdx.x < 8) out[threadIdx.x] = tile_of_launch[63 - threadIdx.x];
}
KERNEL(shared_memory_staged_for_a_put) {
    __shared__ int tile[64];
    tile[threadIdx.x] = in[threadIdx.x % 8] + 1000;
    __syncthreads();
    if (threadIdx.x < 8) data[8 + threadIdx.x] = tile[7 - threadIdx.x];
    __syncthreads();
    nvshmemx_int_put_block(data, data + 8, 8, NEXT);
}
KERNEL(sum_in_shared_memory_to_an_atomic) {
    __shared__ int sum;
    if (FIRST) sum = 0;
    __syncthreads();
    atomicAdd(&sum, in[threadIdx.x % 8]);
    __syncthreads();
    if (FIRST) nvshmem_int_atomic_add(data, sum, 0);
}

// Warps: shuffles, votes, matches, and what they decide.
KERNEL(shuffle) {
    int value = in[threadIdx.x % 8];
    value += __shfl_xor_sync(0xffffffff, value, 1);
    if (threadIdx.x < 8) out[threadIdx.x] = value;
}
KERNEL(sum_of_a_warp_is_put) {
    int value = in[threadIdx.x % 8];
    for (int distance = 16; distance > 0; distance /= 2) value += __shfl_down_sync(0xffffffff, value, distance);
    if (FIRST) nvshmem_int_p(data, value, NEXT);
}
KERNEL(vote_decides_who_puts) {
    const unsigned wanted = __ballot_sync(0xffffffff, in[threadIdx.x % 8] % 4 == 3);
    if (threadIdx.x == __ffs(wanted) - 1) nvshmem_int_p(data, threadIdx.x, NEXT);
}
KERNEL(vote_of_all) {
    const int all = __all_sync(0xffffffff, in[0] == 100 * ME);
    if (FIRST) out[0] = all;
    if (__any_sync(0xffffffff, threadIdx.x == 31) && FIRST) nvshmem_int_p(data, __popc(__activemask()) > 0, NEXT);
}
KERNEL(match_decides_where_to_put) {
    const unsigned mine = __match_any_sync(0xffffffff, threadIdx.x % 2);
    if (threadIdx.x == __ffs(mine) - 1) nvshmem_int_p(data + threadIdx.x, __popc(mine), NEXT);
}
KERNEL(value_of_a_wait_is_handed_round) {
    int value = 0;
    if (FIRST) {
        nvshmemx_signal_op(words, 40 + ME, NVSHMEM_SIGNAL_SET, NEXT);
        value = (int)nvshmem_signal_wait_until(words, NVSHMEM_CMP_NE, 0);
    }
    value = __shfl_sync(0xffffffff, value, 0);
    if (threadIdx.x < 8) out[threadIdx.x] = value + threadIdx.x;
}

// A named barrier: the first warp waits for the data and arrives, the second one waits for the first and reads.
KERNEL(named_barrier) {
    if (threadIdx.x < 32) {
        if (FIRST) {
            nvshmem_int_put_signal(data, in, 4, words, 1, NVSHMEM_SIGNAL_SET, NEXT);
            nvshmem_signal_wait_until(words, NVSHMEM_CMP_EQ, 1);
            __threadfence_system();
        }
        __syncwarp();
        asm volatile("bar.arrive 1, 64;" ::: "memory");
    } else {
        asm volatile("bar.sync 1, 64;" ::: "memory");
        if (threadIdx.x < 36) out[threadIdx.x - 32] = data[threadIdx.x - 32];
    }
}
// One warp puts while the other one waits for what comes.
KERNEL(a_warp_puts_and_a_warp_waits) {
    __shared__ int arrived;
    if (threadIdx.x < 32)
        nvshmemx_int_put_signal_warp(data, in, 4, words, 1, NVSHMEM_SIGNAL_SET, NEXT);
    else if (threadIdx.x == 32)
        arrived = (int)nvshmem_signal_wait_until(words, NVSHMEM_CMP_EQ, 1);
    __syncthreads();
    if (threadIdx.x < 4) out[threadIdx.x] = data[threadIdx.x] + arrived;
}
KERNEL(barrier_that_counts) {
    const int odd = __syncthreads_count(threadIdx.x % 2), any = __syncthreads_or(threadIdx.x == 5);
    if (FIRST) nvshmem_int_p(data, 10 * odd + (any != 0), NEXT);
}
