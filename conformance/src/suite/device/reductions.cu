// Reductions by a thread, a warp and a block, on the world and on a team.
#include "kernel.h"

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

// On a team.
OF_TEAM(team_sum_reduce) { nvshmemx_int_sum_reduce_warp(team, data, in, 2); }

// Members that differ; source and destination overlap.
KERNEL(counts_differ) { nvshmem_int_sum_reduce(NVSHMEM_TEAM_WORLD, data, in, 1 + ME); }
KERNEL(reduction_overlaps) { nvshmem_int_sum_reduce(NVSHMEM_TEAM_WORLD, data + 1, data, 2); }
