//! A kernel uses the result of a non-blocking get at once.

#include <nvshmem.h>
#include <nvshmemx.h>

extern "C" __global__ void buggy(int *data, int *mine, uint64_t *flags, int *wrong) {
    if (nvshmem_my_pe() == 0) {
        nvshmem_int_get_nbi(data, mine, 8, 1); // bug: first, fix
        if (data[7] != 8) *wrong = 1; // bug: second
    }
}

extern "C" __global__ void fixed(int *data, int *mine, uint64_t *flags, int *wrong) {
    if (nvshmem_my_pe() == 0) {
        nvshmem_int_get_nbi(data, mine, 8, 1);
        nvshmem_quiet();
        if (data[7] != 8) *wrong = 1;
    }
}
