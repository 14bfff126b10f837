// What is told from one kernel of a stream to the next, and what a load of a signal says of the signal itself.
#include <nvshmem.h>
#include <nvshmemx.h>

// PE 1 stores to PE 0.
extern "C" __global__ void store(int *data) {
    if (nvshmem_my_pe() == 1) *(int *)nvshmem_ptr(data, 0) = 42;
}

// PE 1 sets PE 0's flag, for which PE 0 waits. Neither fences.
extern "C" __global__ void flag(int *flags) {
    if (nvshmem_my_pe() == 1) *(volatile int *)nvshmem_ptr(flags, 0) = 1;
    if (nvshmem_my_pe() == 0) while (*(volatile int *)flags == 0) {}
}

// PE 0 reads.
extern "C" __global__ void look(int *data, int *seen) {
    if (nvshmem_my_pe() == 0) *seen = *data;
}

// All of it in one kernel.
extern "C" __global__ void at_once(int *data, int *flags, int *seen) {
    if (nvshmem_my_pe() == 1) {
        *(int *)nvshmem_ptr(data, 0) = 42;
        *(volatile int *)nvshmem_ptr(flags, 0) = 1;
    }
    if (nvshmem_my_pe() == 0) {
        while (*(volatile int *)flags == 0) {}
        *seen = *data;
    }
}

// All others add to PE 0's signal. PE 0 polls it by a load until so many have come, and takes it back.
extern "C" __global__ void take_back(uint64_t *signal, uint64_t enough, bool resets) {
    if (nvshmem_my_pe() != 0) {
        nvshmemx_signal_op(signal, 1, NVSHMEM_SIGNAL_ADD, 0);
    } else {
        while (*(volatile uint64_t *)signal < enough) {}
        if (resets) *signal = 0;
    }
}

// All threads store. Then one signals to its own PE, and polls.
extern "C" __global__ void all_store(uint64_t *signal, int *word) {
    *word = 1;
    __syncthreads();
    if (threadIdx.x > 0) return;
    nvshmemx_signal_op(signal, 1, NVSHMEM_SIGNAL_SET, nvshmem_my_pe());
    while (*(volatile uint64_t *)signal == 0) {}
}

// Each thread stores one more than what another thread of the kernel before has stored.
extern "C" __global__ void pass_on(const int *from, int *to, unsigned other) {
    to[threadIdx.x] = from[threadIdx.x ^ other] + 1;
}
