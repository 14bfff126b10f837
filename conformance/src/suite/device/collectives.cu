// Collectives of a thread, a warp and a block that move data, on the world and on a team. On GPUs much of the library comes with each of
// them, so those that reduce stand in a file of their own.
#include "kernel.h"

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

// On a team.
OF_TEAM(team_broadcast) { nvshmemx_int_broadcast_block(team, data, in, 2, 1); }
OF_TEAM(team_fcollect) { nvshmem_int_fcollect(team, data, in, 2); }

// Members that differ.
KERNEL(roots_differ) { nvshmem_int_broadcast(NVSHMEM_TEAM_WORLD, data, in, 2, ME); }
