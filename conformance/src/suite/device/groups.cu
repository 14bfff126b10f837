// Operations that a warp or a block makes together. All of its threads call, with the same arguments.
#include "kernel.h"

// Puts.
KERNEL(put_warp) { nvshmemx_int_put_warp(data, in, 8, NEXT); }
KERNEL(put_block) { nvshmemx_int_put_block(data, in, 8, NEXT); }
KERNEL(put8_warp) { nvshmemx_put8_warp(data, in, 7, NEXT); }
KERNEL(put64_block) { nvshmemx_put64_block(data, in, 3, NEXT); }
KERNEL(put128_warp) { nvshmemx_put128_warp(data, in, 2, NEXT); }
KERNEL(putmem_block) { nvshmemx_putmem_block(data + 1, in, 12, NEXT); }
KERNEL(put_of_shorts_warp) { nvshmemx_short_put_warp((short *)data, (short *)in, 5, NEXT); }
KERNEL(put_of_doubles_block) { nvshmemx_double_put_block((double *)data, (double *)in, 4, NEXT); }

// Gets.
KERNEL(get_warp) { nvshmemx_int_get_warp(out, in, 8, NEXT); }
KERNEL(get_block) { nvshmemx_int_get_block(out, in, 8, NEXT); }
KERNEL(get16_block) { nvshmemx_get16_block(out, in, 5, NEXT); }
KERNEL(getmem_warp) { nvshmemx_getmem_warp(out + 1, in, 12, NEXT); }
KERNEL(get_of_floats_block) { nvshmemx_float_get_block((float *)out, (float *)in, 6, NEXT); }

// Without waiting. One thread completes what all have issued together.
KERNEL(put_nbi_warp) { nvshmemx_int_put_nbi_warp(data, in, 8, NEXT); __syncwarp(); if (FIRST) nvshmem_quiet(); }
KERNEL(put_nbi_block) { nvshmemx_int_put_nbi_block(data, in, 8, NEXT); if (FIRST) nvshmem_quiet(); }
KERNEL(get_nbi_warp) {
    nvshmemx_int_get_nbi_warp(data, in, 8, NEXT);
    __syncwarp();
    if (!FIRST) return;
    nvshmem_quiet();
    out[0] = data[7];
}
KERNEL(get_nbi_block) {
    nvshmemx_int_get_nbi_block(data, in, 8, NEXT);
    __syncthreads();
    if (!FIRST) return;
    nvshmem_quiet();
    out[0] = data[7];
}

// Strides.
KERNEL(iput_warp) { nvshmemx_int_iput_warp(data, in, 2, 1, 4, NEXT); }
KERNEL(iget_block) { nvshmemx_int_iget_block(out, in, 2, 2, 4, NEXT); }

// What threads have written before, and read after.
KERNEL(put_of_what_the_block_wrote) {
    if (threadIdx.x < 8) data[8 + threadIdx.x] = 7;
    __syncthreads();
    nvshmemx_int_put_block(data, data + 8, 8, NEXT);
}
KERNEL(block_changes_what_it_got) {
    nvshmemx_int_get_block(data + 8, in, 8, NEXT);
    __syncthreads();
    if (threadIdx.x < 8) data[8 + threadIdx.x] += 1000;
    __syncthreads();
    nvshmemx_int_put_block(data, data + 8, 8, ME);
}

// Groups beside each other: each warp its own half, warps with different operations, blocks each their half.
KERNEL(each_warp_puts) {
    const int half = threadIdx.x / 32 * 4;
    nvshmemx_int_put_warp(data + half, in + half, 4, NEXT);
}
KERNEL(warps_differ) {
    if (threadIdx.x < 32)
        nvshmemx_int_put_warp(data, in, 4, NEXT);
    else
        nvshmemx_int_get_warp(out, in, 4, NEXT);
}
KERNEL(each_block_puts) {
    const int half = blockIdx.x * 4;
    nvshmemx_int_put_block(data + half, in + half, 4, NEXT);
}
// The last warp of the block has 8 threads; a block has two dimensions.
KERNEL(put_block_of_40) { nvshmemx_int_put_block(data, in, 8, NEXT); }
KERNEL(put_block_in_two_dimensions) { nvshmemx_int_put_block(data, in, 8, NEXT); }
