//! Half of a block calls a put of the whole block.
//!
//! The call is one of all threads: the other half never comes, and on a GPU the kernel hangs or copies a part.

#include <nvshmem.h>
#include <nvshmemx.h>

extern "C" __global__ void buggy(int *data, int *mine, uint64_t *flags, int *wrong) {
    if (nvshmem_my_pe() == 0 && threadIdx.x < 32) {
        nvshmemx_int_put_block(data, mine, 64, 1); // bug: first
    }
}

extern "C" __global__ void fixed(int *data, int *mine, uint64_t *flags, int *wrong) {
    if (nvshmem_my_pe() == 0) {
        nvshmemx_int_put_block(data, mine, 64, 1);
    }
}
