//! A persistent kernel fills the same slot in every round, and the consumer never says that it is done with one.

#include <nvshmem.h>
#include <nvshmemx.h>

extern "C" __global__ void buggy(int *data, int *mine, uint64_t *flags, int *wrong) {
    for (int round = 1; round <= 2; round++) {
        if (nvshmem_my_pe() == 0) {
            nvshmem_int_put_signal(data, mine + round, 1, flags, round, NVSHMEM_SIGNAL_SET, 1); // bug: first
        } else {
            nvshmem_signal_wait_until(flags, NVSHMEM_CMP_GE, round);
            if (*data != round + 1) *wrong = 1; // bug: second
        }
    }
}

extern "C" __global__ void fixed(int *data, int *mine, uint64_t *flags, int *wrong) {
    for (int round = 1; round <= 2; round++) {
        if (nvshmem_my_pe() == 0) {
            nvshmem_int_put_signal(data, mine + round, 1, flags, round, NVSHMEM_SIGNAL_SET, 1);
            nvshmem_signal_wait_until(flags + 1, NVSHMEM_CMP_GE, round);
        } else {
            nvshmem_signal_wait_until(flags, NVSHMEM_CMP_GE, round);
            if (*data != round + 1) *wrong = 1;
            nvshmemx_signal_op(flags + 1, round, NVSHMEM_SIGNAL_SET, 0);
        }
    }
}
