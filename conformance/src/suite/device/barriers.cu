// Barriers and syncs of a thread, a warp and a block, on the world and on a team.
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

// On a team.
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

// Members that differ.
KERNEL(barrier_against_sync) { if (ME == 0) nvshmem_barrier_all(); else nvshmem_sync_all(); }
KERNEL(sync_skipped) { if (ME == 0) nvshmem_sync_all(); }
