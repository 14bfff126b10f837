//! A kernel sets a flag in another PE's memory by an atomic that is one within its own GPU only.
//!
//! `atomicExch` has the scope of the GPU. PEs on two GPUs need `atomicExch_system`.

#include <nvshmem.h>
#include <nvshmemx.h>

extern "C" __global__ void buggy(int *data, int *mine, uint64_t *flags, int *wrong) {
    if (nvshmem_my_pe() == 0) {
        atomicExch((unsigned long long *)nvshmem_ptr(flags, 1), 1ull); // bug: first
    } else {
        while (atomicAdd_system((unsigned long long *)flags, 0ull) != 1) {} // bug: second
    }
}

extern "C" __global__ void fixed(int *data, int *mine, uint64_t *flags, int *wrong) {
    if (nvshmem_my_pe() == 0) {
        atomicExch_system((unsigned long long *)nvshmem_ptr(flags, 1), 1ull);
    } else {
        while (atomicAdd_system((unsigned long long *)flags, 0ull) != 1) {}
    }
}
