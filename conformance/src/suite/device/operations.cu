// The kernels of the suite's chapter `device`. All take the same arguments: `in` holds 100 * rank + index, everything else begins as zeros.
#include <nvshmem.h>
#include <nvshmemx.h>

#define KERNEL(NAME) extern "C" __global__ void NAME(int *in, int *data, uint64_t *words, int *out)
#define ME nvshmem_my_pe()
#define N nvshmem_n_pes()
#define NEXT ((ME + 1) % N)
#define FIRST (threadIdx.x == 0)

// Operations of a thread.
KERNEL(p) { if (FIRST) nvshmem_int_p(data, in[1], NEXT); }
KERNEL(g) { if (FIRST) out[0] = nvshmem_int_g(in + 2, NEXT); }
KERNEL(put) { if (FIRST) nvshmem_int_put(data, in, 4, NEXT); }
KERNEL(put_nbi) { if (FIRST) { nvshmem_int_put_nbi(data, in, 4, NEXT); nvshmem_quiet(); } }
KERNEL(get) { if (FIRST) nvshmem_int_get(out, in, 4, NEXT); }
KERNEL(get_nbi) { if (FIRST) { nvshmem_int_get_nbi(out, in, 4, NEXT); nvshmem_quiet(); out[4] = out[0] + 1; } }
KERNEL(putmem) { if (FIRST) nvshmem_putmem(data + 1, in, 8, NEXT); }
KERNEL(iput) { if (FIRST) nvshmem_int_iput(data, in, 2, 1, 3, NEXT); }
KERNEL(iget) { if (FIRST) nvshmem_int_iget(out, in, 1, 2, 3, NEXT); }
KERNEL(p_by_all_threads) { nvshmem_int_p(data + threadIdx.x, in[threadIdx.x], NEXT); }
KERNEL(put_to_self) { if (FIRST) nvshmem_int_put(data, in, 4, ME); }

// Operations of a warp and of a block.
KERNEL(put_warp) { nvshmemx_int_put_warp(data, in, 8, NEXT); }
KERNEL(put_block) { nvshmemx_int_put_block(data, in, 8, NEXT); }
KERNEL(get_warp) { nvshmemx_int_get_warp(out, in, 8, NEXT); }
KERNEL(get_block) { nvshmemx_int_get_block(out, in, 8, NEXT); }
KERNEL(put_nbi_block) { nvshmemx_int_put_nbi_block(data, in, 8, NEXT); if (FIRST) nvshmem_quiet(); }
KERNEL(put_of_what_the_block_wrote) {
    data[8 + threadIdx.x % 8] = 7;
    __syncthreads();
    nvshmemx_int_put_block(data, data + 8, 8, NEXT);
}

// Signals and waits.
KERNEL(put_signal) {
    if (!FIRST) return;
    nvshmem_int_put_signal(data, in, 4, words, 1, NVSHMEM_SIGNAL_SET, NEXT);
    nvshmem_signal_wait_until(words, NVSHMEM_CMP_EQ, 1);
    for (int i = 0; i < 4; i++) out[i] = data[i];
}
KERNEL(put_signal_block) {
    nvshmemx_int_put_signal_block(data, in, 8, words, 1, NVSHMEM_SIGNAL_ADD, NEXT);
    if (FIRST) {
        nvshmem_signal_wait_until(words, NVSHMEM_CMP_GE, 1);
        for (int i = 0; i < 8; i++) out[i] = data[i];
    }
}
KERNEL(fenced_flag) {
    if (!FIRST) return;
    if (ME == 0) {
        nvshmem_int_p(data, 42, 1);
        nvshmem_fence();
        nvshmemx_signal_op(words, 1, NVSHMEM_SIGNAL_SET, 1);
    } else if (ME == 1) {
        nvshmem_signal_wait_until(words, NVSHMEM_CMP_EQ, 1);
        out[0] = data[0];
    }
}
KERNEL(flag_without_fence) {
    if (!FIRST) return;
    if (ME == 0) {
        nvshmem_int_p(data, 42, 1);
        nvshmemx_signal_op(words, 1, NVSHMEM_SIGNAL_SET, 1);
    } else if (ME == 1) {
        nvshmem_signal_wait_until(words, NVSHMEM_CMP_EQ, 1);
        out[0] = data[0];
    }
}
KERNEL(block_passes_on_what_a_thread_waited_for) {
    if (FIRST) {
        nvshmem_int_put_signal(data, in, 8, words, 1, NVSHMEM_SIGNAL_SET, NEXT);
        nvshmem_signal_wait_until(words, NVSHMEM_CMP_EQ, 1);
    }
    __syncthreads();
    if (threadIdx.x < 8) out[threadIdx.x] = data[threadIdx.x];
}
KERNEL(ping_pong) {
    if (!FIRST) return;
    for (uint64_t round = 1; round <= 3; round++) {
        if (ME == 0) nvshmemx_signal_op(words, round, NVSHMEM_SIGNAL_SET, 1);
        nvshmem_signal_wait_until(words, NVSHMEM_CMP_GE, round);
        if (ME == 1) nvshmemx_signal_op(words, round, NVSHMEM_SIGNAL_SET, 0);
    }
    out[0] = (int)nvshmem_signal_fetch(words);
}
KERNEL(wait_until_all) {
    if (!FIRST) return;
    for (int pe = 0; pe < N; pe++) nvshmem_uint64_p(words + ME, 5, pe);
    nvshmem_uint64_wait_until_all(words, N, 0, NVSHMEM_CMP_EQ, 5);
    out[0] = (int)(words[0] + words[N - 1]);
}
KERNEL(wait_until_any) {
    if (!FIRST) return;
    if (ME == 1) nvshmem_uint64_p(words + 3, 5, 0);
    if (ME == 0) out[0] = (int)nvshmem_uint64_wait_until_any(words, 4, 0, NVSHMEM_CMP_EQ, 5);
}
KERNEL(test_in_a_loop) {
    if (!FIRST) return;
    if (ME == 1) nvshmem_uint64_p(words, 5, 0);
    if (ME == 0) {
        while (!nvshmem_uint64_test(words, NVSHMEM_CMP_EQ, 5)) {}
        out[0] = 1;
    }
}

// Atomics.
KERNEL(atomic_inc) { nvshmem_uint64_atomic_inc(words, 0); }
KERNEL(atomic_fetch_add) {
    if (FIRST) out[0] = (int)nvshmem_uint64_atomic_fetch_add(words, 1, 0);
}
KERNEL(atomic_compare_swap) {
    if (FIRST) out[0] = nvshmem_uint64_atomic_compare_swap(words, 0, ME + 1, 0) == 0;
}
KERNEL(atomic_or) { if (FIRST) nvshmem_uint64_atomic_or(words, 1 << ME, 0); }
KERNEL(atomic_swap_set_fetch) {
    if (!FIRST || ME != 0) return;
    nvshmem_uint64_atomic_set(words, 9, 1);
    nvshmem_quiet();
    out[0] = (int)nvshmem_uint64_atomic_swap(words, 4, 1);
    out[1] = (int)nvshmem_uint64_atomic_fetch(words, 1);
}

// Collectives.
KERNEL(barrier_thread) { if (FIRST) { nvshmem_int_p(data, in[0], NEXT); nvshmem_barrier_all(); out[0] = data[0]; } }
KERNEL(barrier_block) {
    if (FIRST) nvshmem_int_p(data, in[0], NEXT);
    __syncthreads();
    nvshmemx_barrier_all_block();
    if (FIRST) out[0] = data[0];
}
KERNEL(sync_warp) { nvshmemx_sync_all_warp(); if (FIRST) out[0] = 1; }
KERNEL(broadcast) { nvshmemx_int_broadcast_block(NVSHMEM_TEAM_WORLD, data, in, 4, 1); }
KERNEL(fcollect) { nvshmemx_int_fcollect_block(NVSHMEM_TEAM_WORLD, data, in, 2); }
KERNEL(alltoall) { nvshmemx_int_alltoall_block(NVSHMEM_TEAM_WORLD, data, in, 2); }
KERNEL(sum_reduce) { nvshmemx_int_sum_reduce_block(NVSHMEM_TEAM_WORLD, data, in, 4); }
KERNEL(max_reduce_warp) { nvshmemx_int_max_reduce_warp(NVSHMEM_TEAM_WORLD, data, in, 4); }
KERNEL(reducescatter) { nvshmemx_int_sum_reducescatter_block(NVSHMEM_TEAM_WORLD, data, in, 2); }

// Queries.
KERNEL(queries) {
    if (!FIRST) return;
    out[0] = ME;
    out[1] = N;
    out[2] = nvshmem_team_my_pe(NVSHMEM_TEAM_WORLD);
    out[3] = nvshmem_team_n_pes(NVSHMEM_TEAM_WORLD);
    out[4] = nvshmem_ptr(data, ME) == data;
}

// Memory of peers, by pointer.
KERNEL(pointer_store) {
    if (!FIRST) return;
    int *there = (int *)nvshmem_ptr(data, NEXT);
    uint64_t *flag = (uint64_t *)nvshmem_ptr(words, NEXT);
    *there = in[3];
    __threadfence_system();
    *(volatile uint64_t *)flag = 1;
    while (*(volatile uint64_t *)words != 1) {}
    __threadfence_system();
    out[0] = *data;
}
KERNEL(pointer_store_without_fence) {
    if (!FIRST) return;
    int *there = (int *)nvshmem_ptr(data, NEXT);
    uint64_t *flag = (uint64_t *)nvshmem_ptr(words, NEXT);
    *there = in[3];
    *(volatile uint64_t *)flag = 1;
    while (*(volatile uint64_t *)words != 1) {}
    __threadfence_system();
    out[0] = *data;
}
KERNEL(pointer_load) { if (FIRST) out[0] = *(int *)nvshmem_ptr(in + 1, NEXT); }

// Blocks of one GPU.
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
KERNEL(shared_memory) {
    __shared__ int tile[64];
    tile[threadIdx.x] = in[threadIdx.x % 8];
    __syncthreads();
    if (threadIdx.x < 8) out[threadIdx.x] = tile[(threadIdx.x + 1) % 8];
}
KERNEL(shuffle) {
    int value = in[threadIdx.x % 8];
    value += __shfl_xor_sync(0xffffffff, value, 1);
    if (threadIdx.x < 8) out[threadIdx.x] = value;
}
