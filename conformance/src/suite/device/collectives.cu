// Collectives of a thread, a warp and a block, on the world and on a team. They stand in a file of their own because on GPUs much of the
// library comes with them.
#include "kernel.h"

// Barriers complete what was issued and meet.
KERNEL(barrier_thread) { nvshmem_int_p(data, in[0], NEXT); nvshmem_barrier_all(); out[0] = data[0]; }
KERNEL(barrier_warp) {
    if (FIRST) nvshmem_int_p(data, in[0], NEXT);
    __syncwarp();
    nvshmemx_barrier_all_warp();
    if (FIRST) out[0] = data[0];
}
KERNEL(barrier_block) {
    if (FIRST) nvshmem_int_p(data, in[0], NEXT);
    __syncthreads();
    nvshmemx_barrier_all_block();
    if (FIRST) out[0] = data[0];
}
KERNEL(barrier_completes_nbi) {
    nvshmem_int_put_nbi(data, in, 2, NEXT);
    nvshmem_barrier_all();
    out[0] = data[0];
    out[1] = data[1];
}
KERNEL(two_barriers) {
    nvshmem_int_p(data, in[1], NEXT);
    nvshmem_barrier_all();
    const int value = *(volatile int *)data;
    nvshmem_barrier_all();
    nvshmem_int_p(data, value + 1000, NEXT);
}

// Syncs meet, and complete nothing but stores.
KERNEL(sync_thread) { nvshmem_sync_all(); out[0] = 1; }
KERNEL(sync_warp) { nvshmemx_sync_all_warp(); if (FIRST) out[0] = 1; }
KERNEL(sync_block) { nvshmemx_sync_all_block(); if (FIRST) out[0] = 1; }
KERNEL(sync_does_not_complete) {
    nvshmem_int_p(data, in[1], NEXT);
    nvshmem_sync_all();
    out[0] = *(volatile int *)data;
}
KERNEL(quiet_and_sync) {
    nvshmem_int_p(data, in[1], NEXT);
    nvshmem_quiet();
    nvshmem_sync_all();
    out[0] = *(volatile int *)data;
}
KERNEL(pointer_store_then_barrier) {
    *(int *)nvshmem_ptr(data, NEXT) = in[3];
    nvshmem_barrier_all();
    out[0] = *data;
}
KERNEL(pointer_store_then_sync) {
    *(int *)nvshmem_ptr(data, NEXT) = in[3];
    __threadfence_system();
    nvshmem_sync_all();
    __threadfence_system();
    out[0] = *data;
}

// Data.
KERNEL(broadcast_thread) { nvshmem_int_broadcast(NVSHMEM_TEAM_WORLD, data, in, 2, 0); }
KERNEL(broadcast_warp) { nvshmemx_short_broadcast_warp(NVSHMEM_TEAM_WORLD, (short *)data, (short *)in, 5, 1); }
KERNEL(broadcast) { nvshmemx_int_broadcast_block(NVSHMEM_TEAM_WORLD, data, in, 4, 1); }
KERNEL(broadcast_of_bytes) { nvshmemx_broadcastmem_block(NVSHMEM_TEAM_WORLD, data, in, 6, 1); }
KERNEL(fcollect_thread) { nvshmem_int_fcollect(NVSHMEM_TEAM_WORLD, data, in, 2); }
KERNEL(fcollect_warp) { nvshmemx_int_fcollect_warp(NVSHMEM_TEAM_WORLD, data, in, 2); }
KERNEL(fcollect) { nvshmemx_int_fcollect_block(NVSHMEM_TEAM_WORLD, data, in, 2); }
KERNEL(alltoall_thread) { nvshmem_int_alltoall(NVSHMEM_TEAM_WORLD, data, in, 1); }
KERNEL(alltoall_warp) { nvshmemx_double_alltoall_warp(NVSHMEM_TEAM_WORLD, (double *)data, (double *)in, 1); }
KERNEL(alltoall) { nvshmemx_int_alltoall_block(NVSHMEM_TEAM_WORLD, data, in, 2); }
KERNEL(alltoall_of_three) { nvshmemx_int_alltoall_block(NVSHMEM_TEAM_WORLD, data, in, 2); }

// Reductions.
KERNEL(sum_reduce_thread) { nvshmem_int_sum_reduce(NVSHMEM_TEAM_WORLD, data, in, 2); }
KERNEL(sum_reduce) { nvshmemx_int_sum_reduce_block(NVSHMEM_TEAM_WORLD, data, in, 4); }
KERNEL(sum_reduce_of_three) { nvshmemx_int_sum_reduce_block(NVSHMEM_TEAM_WORLD, data, in, 2); }
KERNEL(sum_reduce_of_four) { nvshmem_int_sum_reduce(NVSHMEM_TEAM_WORLD, data, in, 1); }
KERNEL(prod_reduce) { nvshmemx_int_prod_reduce_block(NVSHMEM_TEAM_WORLD, data, in, 2); }
KERNEL(min_reduce) { nvshmemx_int_min_reduce_block(NVSHMEM_TEAM_WORLD, data, in, 2); }
KERNEL(max_reduce_warp) { nvshmemx_int_max_reduce_warp(NVSHMEM_TEAM_WORLD, data, in, 4); }
KERNEL(and_reduce) { nvshmemx_uint32_and_reduce_block(NVSHMEM_TEAM_WORLD, (uint32_t *)data, (uint32_t *)in, 4); }
KERNEL(or_reduce_warp) { nvshmemx_uint64_or_reduce_warp(NVSHMEM_TEAM_WORLD, words, (uint64_t *)in, 1); }
KERNEL(xor_reduce_thread) { nvshmem_uint32_xor_reduce(NVSHMEM_TEAM_WORLD, (uint32_t *)data, (uint32_t *)in, 4); }
KERNEL(float_sum_reduce) {
    if (threadIdx.x < 2) ((float *)data)[8 + threadIdx.x] = 0.5f + in[threadIdx.x];
    __syncthreads();
    nvshmemx_float_sum_reduce_block(NVSHMEM_TEAM_WORLD, (float *)data, (float *)data + 8, 2);
}
KERNEL(sum_reduce_in_place) { nvshmemx_int_sum_reduce_block(NVSHMEM_TEAM_WORLD, in, in, 2); __syncthreads(); if (FIRST) out[0] = in[1]; }
KERNEL(reducescatter) { nvshmemx_int_sum_reducescatter_block(NVSHMEM_TEAM_WORLD, data, in, 2); }
KERNEL(reducescatter_max_warp) { nvshmemx_int_max_reducescatter_warp(NVSHMEM_TEAM_WORLD, data, in, 2); }
KERNEL(reducescatter_min_thread) { nvshmem_int_min_reducescatter(NVSHMEM_TEAM_WORLD, data, in, 1); }
// The second one takes what the first one gave.
KERNEL(reduction_of_a_reduction) {
    nvshmemx_int_sum_reduce_block(NVSHMEM_TEAM_WORLD, data, in, 2);
    __syncthreads();
    nvshmemx_int_sum_reduce_block(NVSHMEM_TEAM_WORLD, data + 2, data, 2);
}

// On a team, which the kernel is given: PEs 0 and 2 of three.
#define OF_TEAM(NAME)                                                                                                   \
    extern "C" __global__ void NAME(int *in, int *data, uint64_t *words, int *out, nvshmem_team_t team)
OF_TEAM(team_queries) {
    out[0] = nvshmem_team_my_pe(team);
    out[1] = nvshmem_team_n_pes(team);
    out[2] = nvshmem_team_translate_pe(team, 1, NVSHMEM_TEAM_WORLD);
    out[3] = nvshmem_team_translate_pe(NVSHMEM_TEAM_WORLD, 1, team);
}
OF_TEAM(team_barrier) {
    const int other = nvshmem_team_translate_pe(team, 1 - nvshmem_team_my_pe(team), NVSHMEM_TEAM_WORLD);
    nvshmem_int_p(data, in[0] + 1, other);
    nvshmem_barrier(team);
    out[0] = data[0];
}
OF_TEAM(team_barrier_block) {
    const int other = nvshmem_team_translate_pe(team, 1 - nvshmem_team_my_pe(team), NVSHMEM_TEAM_WORLD);
    nvshmemx_int_put_block(data, in, 2, other);
    nvshmemx_barrier_block(team);
    if (FIRST) out[0] = data[1];
}
OF_TEAM(team_sync_warp) {
    nvshmemx_team_sync_warp(team);
    if (FIRST) out[0] = 1;
}
OF_TEAM(team_broadcast) { nvshmemx_int_broadcast_block(team, data, in, 2, 1); }
OF_TEAM(team_sum_reduce) { nvshmemx_int_sum_reduce_warp(team, data, in, 2); }
OF_TEAM(team_fcollect) { nvshmem_int_fcollect(team, data, in, 2); }

// Collectives that are wrong: members differ, one is missing, source and destination overlap.
KERNEL(barrier_against_sync) { if (ME == 0) nvshmem_barrier_all(); else nvshmem_sync_all(); }
KERNEL(sync_skipped) { if (ME == 0) nvshmem_sync_all(); }
KERNEL(roots_differ) { nvshmem_int_broadcast(NVSHMEM_TEAM_WORLD, data, in, 2, ME); }
KERNEL(counts_differ) { nvshmem_int_sum_reduce(NVSHMEM_TEAM_WORLD, data, in, 1 + ME); }
KERNEL(reduction_overlaps) { nvshmem_int_sum_reduce(NVSHMEM_TEAM_WORLD, data + 1, data, 2); }
