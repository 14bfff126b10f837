//! A kernel changes the source of a non-blocking put before any quiet.

#include <nvshmem.h>
#include <nvshmemx.h>

extern "C" __global__ void buggy(int *data, int *mine, uint64_t *flags, int *wrong) {
    if (nvshmem_my_pe() == 0) {
        nvshmem_int_put_nbi(data, mine, 8, 1); // bug: first, fix
        mine[0] = 9; // bug: second
    }
    nvshmem_barrier_all();
    if (nvshmem_my_pe() == 1 && data[0] != 1) *wrong = 1;
}

extern "C" __global__ void fixed(int *data, int *mine, uint64_t *flags, int *wrong) {
    if (nvshmem_my_pe() == 0) {
        nvshmem_int_put_nbi(data, mine, 8, 1);
        nvshmemx_flush();
        mine[0] = 9;
    }
    nvshmem_barrier_all();
    if (nvshmem_my_pe() == 1 && data[0] != 1) *wrong = 1;
}
