//! A kernel puts, and all PEs sync in place of a barrier.
//!
//! `nvshmem_sync_all` says that everybody has come. It completes no put.

#include <nvshmem.h>
#include <nvshmemx.h>

extern "C" __global__ void buggy(int *data, int *mine, uint64_t *flags, int *wrong) {
    nvshmem_int_p(data, 7, 1 - nvshmem_my_pe()); // bug: first, fix
    nvshmem_sync_all();
    if (*data != 7) *wrong = 1; // bug: second
}

extern "C" __global__ void fixed(int *data, int *mine, uint64_t *flags, int *wrong) {
    nvshmem_int_p(data, 7, 1 - nvshmem_my_pe());
    nvshmem_barrier_all();
    if (*data != 7) *wrong = 1;
}
