// Groups of NVSHMEM 3.8: shared memory that the library may use, and a barrier by four warps.
#include <nvshmem.h>
#include <nvshmemx.h>

// Sends to the next PE, after the block has given all of its shared memory.
extern "C" __global__ void give(int *dst, const int *src, int size, int who) {
    extern __shared__ __align__(16) unsigned char room[];
    if (who == 0 || threadIdx.x < who) nvshmemx_give_smem(room, size > 0 ? size : nvshmemx_ask_smem(NVSHMEMX_SMEM_BARRIERS_ONLY));
    __syncthreads();
    nvshmemx_int_put_nbi_block(dst, src, 32, (nvshmem_my_pe() + 1) % nvshmem_n_pes());
    if (threadIdx.x == 0) nvshmem_quiet();
    nvshmemx_release_smem();
}

// Its own shared memory is no source.
extern "C" __global__ void put_from_smem(int *dst) {
    __shared__ int own[32];
    own[threadIdx.x] = threadIdx.x;
    __syncthreads();
    nvshmemx_int_put_block(dst, own, 32, nvshmem_my_pe());
}

// The first four warps of the block meet those of the other PEs, behind the put of one of their threads.
extern "C" __global__ void four_warps(int *dst, int *seen, bool all) {
    if (threadIdx.x >= 128 || !all && threadIdx.x == 100) return;
    if (threadIdx.x == 77) nvshmem_int_p(dst, 42, (nvshmem_my_pe() + 1) % nvshmem_n_pes());
    nvshmemx_barrier_warpgroup(NVSHMEM_TEAM_WORLD);
    if (threadIdx.x == 0) *seen = *dst;
}
