//! A kernel looks at a flag and loads a number, both by volatile accesses, and takes their order in the text for their order in time.
//!
//! PTX promises no such order between two words: the load can find the number as it was before the flag was set.

#include <nvshmem.h>

extern "C" __global__ void buggy(int *data, int *mine, uint64_t *flags, int *wrong) {
    volatile uint64_t *theirs = (volatile uint64_t *)nvshmem_ptr(flags, 1);
    if (nvshmem_my_pe() == 0) {
        theirs[1] = 8; // bug: first
        __threadfence_system();
        theirs[0] = 1;
    } else {
        volatile uint64_t *own = flags;
        while (own[0] != 1) {}
        if (own[1] != 8) *wrong = 1; // bug: second
    }
}

extern "C" __global__ void fixed(int *data, int *mine, uint64_t *flags, int *wrong) {
    volatile uint64_t *theirs = (volatile uint64_t *)nvshmem_ptr(flags, 1);
    if (nvshmem_my_pe() == 0) {
        theirs[1] = 8;
        __threadfence_system();
        theirs[0] = 1;
    } else {
        volatile uint64_t *own = flags;
        while (own[0] != 1) {}
        __threadfence_system();
        if (own[1] != 8) *wrong = 1;
    }
}
