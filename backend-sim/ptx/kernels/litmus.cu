// Small kernels about order: what the simulator must find, and what it must not. The first argument is memory for data, the second for signals.
#include <nvshmem.h>
#include <nvshmemx.h>

// PE 0 puts data and then a signal; PE 1 waits and reads.
extern "C" __global__ void message(int *data, uint64_t *signal, int *seen) {
    if (nvshmem_my_pe() == 0) {
        nvshmem_int_p(data, 42, 1);
        nvshmem_fence();
        nvshmemx_signal_op(signal, 1, NVSHMEM_SIGNAL_SET, 1);
    } else {
        nvshmem_signal_wait_until(signal, NVSHMEM_CMP_EQ, 1);
        *seen = *data;
    }
}

// The same without the fence.
extern "C" __global__ void message_without_fence(int *data, uint64_t *signal, int *seen) {
    if (nvshmem_my_pe() == 0) {
        nvshmem_int_p(data, 42, 1);
        nvshmemx_signal_op(signal, 1, NVSHMEM_SIGNAL_SET, 1);
    } else {
        nvshmem_signal_wait_until(signal, NVSHMEM_CMP_EQ, 1);
        *seen = *data;
    }
}

// PE 0 stores through a pointer and releases a flag; PE 1 spins on it.
extern "C" __global__ void pointer(int *data, uint64_t *flag, int *seen) {
    if (nvshmem_my_pe() == 0) {
        int *there = (int *)nvshmem_ptr(data, 1);
        volatile uint64_t *there_flag = (uint64_t *)nvshmem_ptr(flag, 1);
        *there = 42;
        __threadfence_system();
        *there_flag = 1;
    } else {
        while (*(volatile uint64_t *)flag != 1) {}
        __threadfence_system();
        *seen = *data;
    }
}

// The same without the first fence.
extern "C" __global__ void pointer_without_fence(int *data, uint64_t *flag, int *seen) {
    if (nvshmem_my_pe() == 0) {
        int *there = (int *)nvshmem_ptr(data, 1);
        volatile uint64_t *there_flag = (uint64_t *)nvshmem_ptr(flag, 1);
        *there = 42;
        *there_flag = 1;
    } else {
        while (*(volatile uint64_t *)flag != 1) {}
        __threadfence_system();
        *seen = *data;
    }
}

// The flag is released and acquired within the GPU only.
extern "C" __global__ void narrow(int *data, unsigned *flag, int *seen) {
    if (nvshmem_my_pe() == 0) {
        *(int *)nvshmem_ptr(data, 1) = 42;
        asm volatile("st.release.gpu.u32 [%0], 1;" ::"l"(nvshmem_ptr(flag, 1)) : "memory");
    } else {
        unsigned value;
        do {
            asm volatile("ld.acquire.gpu.u32 %0, [%1];" : "=r"(value) : "l"(flag) : "memory");
        } while (value != 1);
        *seen = *data;
    }
}

// Every thread adds to a counter of PE 0 by NVSHMEM.
extern "C" __global__ void count(uint64_t *counter) {
    nvshmem_uint64_atomic_inc(counter, 0);
    nvshmem_quiet();
}

// Every block adds to a counter of its own GPU.
extern "C" __global__ void add(unsigned *counter) {
    if (threadIdx.x == 0) atomicAdd(counter, 1);
}

// Blocks write one word, plainly.
extern "C" __global__ void blocks_race(int *word) {
    if (threadIdx.x == 0) *word = blockIdx.x;
}

// Nobody sets the flag.
extern "C" __global__ void spin(uint64_t *flag) {
    while (*(volatile uint64_t *)flag == 0) {}
}

// All blocks wait for the last one.
extern "C" __global__ void last_block(unsigned *flag) {
    if (threadIdx.x != 0) return;
    if (blockIdx.x == gridDim.x - 1) {
        atomicExch(flag, 1);
    } else {
        while (atomicAdd(flag, 0) == 0) {}
    }
}

// One beyond the end.
extern "C" __global__ void beyond(int *buffer, int elements) {
    buffer[elements] = 1;
}

// A collective of the block.
extern "C" __global__ void sum(int *total, int *mine) {
    nvshmemx_int_sum_reduce_block(NVSHMEM_TEAM_WORLD, total, mine, 4);
}

// A wait for any of several words.
extern "C" __global__ void any(uint64_t *words, int *which) {
    if (nvshmem_my_pe() != 0) {
        nvshmem_uint64_p(words + nvshmem_my_pe(), 7, 0);
    } else {
        *which = (int)nvshmem_uint64_wait_until_any(words, 4, 0, NVSHMEM_CMP_EQ, 7);
    }
}

// One thread puts without completing, another one quiets.
extern "C" __global__ void fetch(uint64_t *counter, uint64_t *ticket) {
    ticket[threadIdx.x] = nvshmem_uint64_atomic_fetch_add(counter, 1, 0);
}

// Prints.
extern "C" __global__ void hello() {
    printf("hello from thread %d\n", threadIdx.x);
}

// PE 1 polls the signal by a call.
extern "C" __global__ void poll_by_a_call(int *data, uint64_t *signal, int *seen) {
    if (nvshmem_my_pe() == 0) {
        nvshmem_int_p(data, 42, 1);
        nvshmem_fence();
        nvshmemx_signal_op(signal, 1, NVSHMEM_SIGNAL_SET, 1);
    } else {
        while (nvshmem_signal_fetch(signal) != 1) {}
        *seen = *data;
    }
}

// A spin that asks in each round how many PEs there are, and where the signal is.
extern "C" __global__ void poll_and_ask(int *data, uint64_t *signal, int *seen) {
    if (nvshmem_my_pe() == 0) {
        *(int *)nvshmem_ptr(data, 1) = 42;
        __threadfence_system();
        *(volatile uint64_t *)nvshmem_ptr(signal, 1) = 1;
    } else {
        while (*(volatile uint64_t *)nvshmem_ptr(signal, nvshmem_my_pe()) + 1 != nvshmem_n_pes()) {}
        __threadfence_system();
        *seen = *data;
    }
}

// Nobody signals.
extern "C" __global__ void poll_alone(uint64_t *signal) {
    while (nvshmem_signal_fetch(signal) != 1) {}
}
