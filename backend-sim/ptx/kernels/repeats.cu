// Loops that do not end, around calls that are no waits.
#include <nvshmem.h>

// Thread 1 of block 1 of PE 0 counts on PE 1 until that says stop, which it never does. The others make a call each, and end.
extern "C" __global__ void count_for_ever(int *words) {
    if (nvshmem_my_pe() != 0 || blockIdx.x != 1 || threadIdx.x != 1) {
        nvshmem_int_p(words + 2, 1, nvshmem_my_pe());
        return;
    }
    nvshmem_int_p(words + 3, 1, 1);
    while (nvshmem_int_g(words, 1) == 0) {
        nvshmem_int_atomic_inc(words + 1, 1);
    }
}
