// The end of the job, and the regions of NVSHMEM 3.8.
#include <nvshmem.h>
#include <nvshmemx.h>

// PE 1 tells PE 0 `before`, and ends the job by its last thread. What stands behind that never happens.
extern "C" __global__ void leave(uint64_t *flag, int before, int status) {
    if (nvshmem_my_pe() == 1 && threadIdx.x == blockDim.x - 1) {
        if (before) nvshmemx_signal_op(flag, 1, NVSHMEM_SIGNAL_SET, 0);
        nvshmem_global_exit(status);
        nvshmemx_signal_op(flag, 2, NVSHMEM_SIGNAL_SET, 0);
    }
    __syncthreads();
    if (threadIdx.x == 0) nvshmem_signal_wait_until(flag, NVSHMEM_CMP_GE, 1);
    if (flag[0] == 2) __trap();
}

// Every thread notes what the calls about its block's region return.
extern "C" __global__ void region(int *noted, const int *from, int *to, int elements) {
    int *mine = noted + 8 * threadIdx.x;
    nvshmemx_region_attrs_t attrs = NVSHMEMX_REGION_ATTRS_INITIALIZER;
    attrs.hints = NVSHMEMX_REGION_HINT_BATCH_RMA;
    nvshmemx_region_handle_t handle = 0, other = 0;
    mine[0] = nvshmemx_region_start_block(&handle, &attrs);
    mine[1] = nvshmemx_region_start_block(&other, nullptr);
    mine[2] = nvshmemx_region_is_active(NVSHMEMX_REGION_HINT_BATCH_RMA, &mine[3]);
    nvshmem_int_put_nbi(to + elements * threadIdx.x, from + elements * threadIdx.x, elements,
                        (nvshmem_my_pe() + 1) % nvshmem_n_pes());
    mine[4] = nvshmemx_region_stop_block(other);
    mine[5] = nvshmemx_region_stop_block(handle);
    mine[6] = nvshmemx_region_is_active(NVSHMEMX_REGION_HINT_NONE, &mine[7]);
    nvshmem_quiet();
}

// Of half a block, as no block may.
extern "C" __global__ void half_a_region() {
    nvshmemx_region_handle_t handle = 0;
    if (threadIdx.x < blockDim.x / 2) nvshmemx_region_start_block(&handle, nullptr);
}
