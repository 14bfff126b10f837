// NVSHMEM calls whose arguments and results are structures, and our header beside CUDA's.
#include <nvshmem.h>
#include <nvshmemx.h>
#include <cuda/std/cstdint>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

extern "C" __global__ void types(__half *half, __nv_bfloat16 *bfloat, uint64_t *words, double2 *pair) {
    nvshmem_half_p(half, __hadd(nvshmem_half_g(half, 1), half[0]), 0);
    nvshmemx_bfloat16_sum_reduce_block(NVSHMEM_TEAM_WORLD, bfloat, bfloat, 4);
    nvshmemx_qp_uint64_p(words, 1, 0, NVSHMEMX_QP_DEFAULT);
    nvshmemx_double2_maxloc_reduce_block(NVSHMEM_TEAM_WORLD, pair, pair, 1);
    size_t met[2];
    words[2] = nvshmem_uint64_wait_until_some(words, 2, met, nullptr, NVSHMEM_CMP_GE, 1);
}
